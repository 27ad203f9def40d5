// SPDX-License-Identifier: BSD-3-Clause
// stdout is data, stderr is talk.
#pragma once

#include <string>

namespace trifold::cli {

/// Throws Error(bad_input) where stdout cannot take it.
void print(const std::string& data);

/// One line "trifold: …" on stderr.
void say(const std::string& line);

/// Whether escapes for colour may go to stdout: a terminal, not dumb, and NO_COLOR unset or empty (no-color.org).
bool colour_on_stdout();

/// Whether a line on stderr may be redrawn.
bool terminal_on_stderr();
bool terminal_on_stdout();

}  // namespace trifold::cli
