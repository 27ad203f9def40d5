// SPDX-License-Identifier: BSD-3-Clause
// Ctrl-C and its like: the temporary file is removed and the command ends at once with 128 + the signal.
#pragma once

namespace trifold::cli {

/// SIGINT, SIGTERM, SIGHUP and SIGPIPE, unless the parent had them ignored.
void install_interrupt_handlers();

/// The temporary file to remove, nullptr = none any more; an io::TemporaryWatch, called with signals blocked.
void watch_temporary(const char* path);

}  // namespace trifold::cli
