// SPDX-License-Identifier: BSD-3-Clause
// One line on stderr that says what is being done and how far it is; only on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace trifold::cli {

class ProgressLine {
public:
    explicit ProgressLine(bool quiet);
    ~ProgressLine() { clear(); }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    /// Shows `text` until the next stage.
    void stage(std::string text);

    /// Fills the bar of the current stage; empty where nothing is shown.
    std::function<void(std::int64_t done, std::int64_t total)> bar();

    void clear();

private:
    void draw(double share);

    bool shown_;
    bool drawn_ = false;
    std::string text_;
    std::chrono::steady_clock::time_point last_{};
};

/// Wall seconds of the steps of a command, in order.
class Stopwatch {
public:
    using Clock = std::chrono::steady_clock;

    /// Ends the running step, if any, and starts this one; a name that ran before goes on.
    void start(const std::string& name);
    void stop();
    double total() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
    const std::vector<std::pair<std::string, double>>& steps() const { return steps_; }

private:
    Clock::time_point begin_ = Clock::now(), since_{};
    std::size_t running_ = 0;
    bool runs_ = false;
    std::vector<std::pair<std::string, double>> steps_;
};

}  // namespace trifold::cli
