// SPDX-License-Identifier: BSD-3-Clause
#include "interrupt.hpp"

#include <fcntl.h>
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
    if (signal == SIGQUIT) {  // asks for a core, delivered when this returns
        struct sigaction usual {};
        usual.sa_handler = SIG_DFL;
        sigaction(signal, &usual, nullptr);
        raise(signal);
        return;
    }
    _exit(128 + signal);
}

}  // namespace

void install_interrupt_handlers() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignore, nullptr);
    // Batch systems announce the end of the time with SIGUSR1, SIGUSR2 or SIGXCPU.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGALRM, SIGVTALRM, SIGUSR1, SIGUSR2, SIGXCPU}) {
        struct sigaction old {};
        sigaction(signal, nullptr, &old);
        if (old.sa_handler == SIG_IGN) continue;
        struct sigaction action {};
        action.sa_handler = end;
        sigfillset(&action.sa_mask);
        sigaction(signal, &action, nullptr);
    }
}

void occupy_closed_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0) (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the other way round: its use still fails
}

void watch_temporary(const char* path) {
    has_temporary = 0;
    if (!path || std::strlen(path) > PATH_MAX) return;
    std::strcpy(temporary, path);
    has_temporary = 1;
}

}  // namespace trifold::cli
