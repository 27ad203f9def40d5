// SPDX-License-Identifier: BSD-3-Clause
// Ctrl-C and its like: the temporary file is removed and the command ends at once with 128 + the signal.
// What the shell has closed stays closed: no file of ours takes its number.
#pragma once

namespace trifold::cli {

/// SIGINT, SIGTERM and all else that would end the process from outside, unless the parent had them ignored. A file beyond the limit
/// of sizes (ulimit -f) is an error of the write, not a signal.
void install_interrupt_handlers();

/// Where stdin, stdout or stderr is closed, the next file that is opened would be taken for it: x would be lost, or hold the report.
void occupy_closed_streams();

/// The temporary file to remove, nullptr = none any more; an io::TemporaryWatch, called with signals blocked.
void watch_temporary(const char* path);

}  // namespace trifold::cli
