// SPDX-License-Identifier: BSD-3-Clause
// Compiled programs in files: $XDG_CACHE_HOME/trifold/opencl, else ~/.cache/trifold/opencl. A file that is damaged, or cannot be
// read or written, is as good as none.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace trifold::opencl {

/// 128 bits of these texts: of the driver, the options and the source.
std::string program_key(std::initializer_list<std::string_view> texts);

/// Empty: none.
std::vector<unsigned char> load_program(const std::string& key);

/// Whole or not at all, whoever else writes it at the same time.
void store_program(const std::string& key, const std::vector<unsigned char>& binary);

/// Keeps a text that does not compile, with what the compiler says. Returns where; empty: nowhere.
std::string keep_failure(const std::string& key, const std::string& text, const std::string& log);

}  // namespace trifold::opencl
