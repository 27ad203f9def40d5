// SPDX-License-Identifier: BSD-3-Clause
// What tests of failing calls share: the driver with something before it, one system and what has to be true of its solution, and an end for what hangs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "cuda/driver.hpp"
#include "trifold/trifold.hpp"
#include "unit/split.hpp"

namespace trifold::tests {

/// Of CUresult: an error of one call, and what every call returns where the GPU has gone.
inline constexpr int unknown_error = 999, launch_failed = 719;

inline const FailingDriver& failing_driver() {
    static const FailingDriver driver = stand_before_driver();
    return driver;
}

inline const ContextOptions two_threads{.threads = 2, .profile_path = "none", .log = {}};

/// Why nothing can be tested here; asks CUDA's driver nothing before something stands there.
inline std::string no_failing_gpu() {
    if (!failing_driver().why_not.empty()) return failing_driver().why_not;
    try {
        Context context(two_threads);
        Queue queue(context, "cuda:0");
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

/// What runs is given so long, then the process ends and says what it was: a kernel that waits for another one that was never enqueued is waited for for ever.
inline void must_end(const std::string& what, unsigned seconds = 60) {
    static char text[256];
    std::snprintf(text, sizeof text, "%s did not end in %u s\n", what.c_str(), seconds);
    std::signal(SIGALRM, [](int) {
        if (write(2, text, std::strlen(text)) < 0) _exit(4);
        _exit(3);
    });
    alarm(seconds);
}

inline double seconds_of(auto&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Every call where that fits into so many seconds, else every second, third …, a dozen at least; TRIFOLD_TEST_EVERY_CALL: all of them.
inline long step_of(long calls, double seconds_each, double limit_s) {
    if (std::getenv("TRIFOLD_TEST_EVERY_CALL")) return 1;
    return std::clamp(static_cast<long>(static_cast<double>(calls) * seconds_each / limit_s + 0.999), 1L, std::max(1L, calls / 12));
}

}  // namespace trifold::tests
