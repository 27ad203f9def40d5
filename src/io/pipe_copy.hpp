// SPDX-License-Identifier: BSD-3-Clause
// Pipes as files: an archive is read from its end, and shapes are read before values.
#pragma once

#include <string>

namespace trifold::io {

/// A file without a name, open for reading and writing, that goes with the process. Throws Error(bad_input) naming `who`.
int nameless_file(const std::string& who);

/// Where what `path` holds can be opened, from its beginning and more than once: `path` itself, or for a pipe ("-" is stdin)
/// a copy of it that is made at the first call and kept. Throws Error(bad_input).
std::string readable_again(const std::string& path);

}  // namespace trifold::io
