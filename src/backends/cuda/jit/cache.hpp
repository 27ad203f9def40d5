// SPDX-License-Identifier: BSD-3-Clause
// Machine code that was compiled before, in files: $XDG_CACHE_HOME/trifold/kernels, else ~/.cache/trifold/kernels. A file that is
// damaged, or cannot be read or written, is as good as none.
#pragma once

#include <string>

namespace trifold::cuda::jit {

/// Empty: none.
std::string load_cubin(const std::string& key);

/// Whole or not at all, whoever else writes it at the same time.
void store_cubin(const std::string& key, const std::string& cubin);

/// Keeps a text that does not compile, with what the compiler says, to look at. Returns where; empty: nowhere.
std::string keep_failure(const std::string& key, const std::string& text, const std::string& log);

}  // namespace trifold::cuda::jit
