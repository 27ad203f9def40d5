// SPDX-License-Identifier: BSD-3-Clause
// Who watches calls of a driver: one that does not return is given up; a process that was stopped meanwhile has not waited for it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "families/tridiagonal/split/watch.hpp"

namespace trifold::tests {
namespace {

using namespace tridiagonal::split;

constexpr double patience_s = 2;  // a busy machine makes a call of 0.2 s several times as long

/// As Ctrl-Z and fg: this process stands still for so long, a moment from now.
pid_t stop_for(unsigned seconds) {
    const pid_t here = getpid(), child = fork();
    if (child == 0) {
        usleep(100'000);
        kill(here, SIGSTOP);
        sleep(seconds);
        kill(here, SIGCONT);
        _exit(0);
    }
    return child;
}

/// One call that takes so many hundredths of a second of a process that runs. Whether it was given up.
bool given_up(int hundredths, unsigned stopped_s) {
    auto left = std::make_shared<std::atomic<bool>>(false);
    const auto pulse = std::make_shared<Pulse>();
    LaneThreads threads(patience_s, [left](std::size_t) { *left = true; });
    const pid_t child = stopped_s > 0 ? stop_for(stopped_s) : -1;
    threads.start(0, pulse, [pulse, hundredths] {
        pulse->enter();
        for (int k = 0; k < hundredths; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        pulse->leave();
    });
    threads.wait();
    if (child > 0) waitpid(child, nullptr, 0);
    return *left;
}

TEST(Watch, GivesUpWhatDoesNotReturn) { EXPECT_TRUE(given_up(600, 0)); }

TEST(Watch, AProcessThatWasStoppedHasNotWaited) {
    EXPECT_FALSE(given_up(20, 3));
    EXPECT_TRUE(given_up(600, 1)) << "nor has that call returned since";
}

}  // namespace
}  // namespace trifold::tests
