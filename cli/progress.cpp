// SPDX-License-Identifier: BSD-3-Clause
#include "progress.hpp"

#include <algorithm>
#include <cstdio>

#include "output.hpp"

namespace trifold::cli {

ProgressLine::ProgressLine(bool quiet) : shown_(!quiet && terminal_on_stderr()) {}

void ProgressLine::stage(std::string text) {
    if (!shown_) return;
    text_ = std::move(text);
    draw(-1);
}

std::function<void(std::int64_t, std::int64_t)> ProgressLine::bar() {
    if (!shown_) return {};
    return [this](std::int64_t done, std::int64_t total) {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(40)) return;
        last_ = now;
        draw(total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1);
    };
}

void ProgressLine::draw(double share) {
    constexpr int width = 30;
    std::string line = "\r\033[K" + text_;
    if (share >= 0) {
        const int full = static_cast<int>(std::min(share, 1.0) * width);
        line += " [" + std::string(static_cast<std::size_t>(full), '#') +
                std::string(static_cast<std::size_t>(width - full), '.') + "] " +
                std::to_string(static_cast<int>(std::min(share, 1.0) * 100)) + " %";
    }
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    drawn_ = true;
}

void ProgressLine::clear() {
    if (drawn_) std::fputs("\r\033[K", stderr);
    drawn_ = false;
}

void Stopwatch::start(const std::string& name) {
    stop();
    running_ = static_cast<std::size_t>(
        std::find_if(steps_.begin(), steps_.end(), [&](const auto& step) { return step.first == name; }) -
        steps_.begin());
    if (running_ == steps_.size()) steps_.emplace_back(name, 0.0);
    since_ = Clock::now();
    runs_ = true;
}

void Stopwatch::stop() {
    if (runs_) steps_[running_].second += std::chrono::duration<double>(Clock::now() - since_).count();
    runs_ = false;
}

}  // namespace trifold::cli
