// SPDX-License-Identifier: BSD-3-Clause
#include "interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <initializer_list>

namespace trifold::cli {
namespace {

// A handler may touch nothing that allocates. A solve cannot be stopped half way, so the process ends instead.
char temporary[PATH_MAX + 1];
volatile sig_atomic_t has_temporary = 0;

void end(int signal) {
    if (has_temporary) unlink(temporary);
    if (signal == SIGINT) {
        static const char text[] = "\ntrifold: interrupted; files are whole or were not written\n";
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
    }
    _exit(128 + signal);
}

}  // namespace

void install_interrupt_handlers() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
        struct sigaction old {};
        sigaction(signal, nullptr, &old);
        if (old.sa_handler == SIG_IGN) continue;
        struct sigaction action {};
        action.sa_handler = end;
        sigfillset(&action.sa_mask);
        sigaction(signal, &action, nullptr);
    }
}

void watch_temporary(const char* path) {
    has_temporary = 0;
    if (!path || std::strlen(path) > PATH_MAX) return;
    std::strcpy(temporary, path);
    has_temporary = 1;
}

}  // namespace trifold::cli
