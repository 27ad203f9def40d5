// SPDX-License-Identifier: BSD-3-Clause
// What the parts of a call took.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace trifold::tridiagonal {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// In the order in which they were met first; kept only where a report is asked.
class Phases {
public:
    explicit Phases(bool kept) : kept_(kept) {}

    /// The part that began at `start` ends now: returns its seconds.
    double end(const char* name, Clock::time_point start) {
        const double s = seconds_since(start);
        if (!kept_) return s;
        for (auto& [known, time] : all_)
            if (known == name) return time += s, s;
        all_.emplace_back(name, s);
        return s;
    }

    void add(std::string name, double seconds) {
        if (kept_) all_.emplace_back(std::move(name), seconds);
    }
    void add(const std::vector<std::pair<std::string, double>>& others) {
        if (kept_) all_.insert(all_.end(), others.begin(), others.end());
    }

    std::vector<std::pair<std::string, double>> take() { return std::move(all_); }

private:
    bool kept_;
    std::vector<std::pair<std::string, double>> all_;
};

}  // namespace trifold::tridiagonal
