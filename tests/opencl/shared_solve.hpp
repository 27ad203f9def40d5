// SPDX-License-Identifier: BSD-3-Clause
// A solve that several devices share, and calls of OpenCL's interface that are held meanwhile (failing_layer.cpp).
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {

/// Holds calls, and lets them go in the end.
class HeldCalls {
public:
    ~HeldCalls() {
        if (there()) let_go();
    }
    bool there() const { return hold_ && let_go_; }
    void hold(long call) const { hold_(call); }
    void let_go() const { let_go_(), wait_for_calls_left_behind(); }

private:
    void (*const hold_)(long) = layer_function<void(long)>("trifold_hold_call");
    void (*const let_go_)() = layer_function<void()>("trifold_let_go");
};

/// -1, 4, -1, or another diagonal; x is 1 everywhere.
struct SharedSolve {
    std::vector<double> beside, diag, rhs, x;
    double off = 1e-13;
    Report report;

    explicit SharedSolve(std::int64_t rows, bool in_place, double d = 4)
        : beside(static_cast<std::size_t>(rows), -1.0), diag(beside.size(), d), rhs(beside.size(), d - 2), x(in_place ? 0 : beside.size(), 0.0) {
        rhs.front() = rhs.back() = d - 1;
        if (d == 2) off = 1e-3;
    }

    const std::vector<double>& solution() const { return x.empty() ? rhs : x; }

    /// Whether x is what it should be.
    bool solve(Context& context, const std::string& devices, double patience) {
        Queue queue(context, devices);
        tridiagonal::Problem problem;
        problem.matrix = {View<const double>::rows(std::span<const double>(beside)), View<const double>::rows(std::span<const double>(diag)), View<const double>::rows(std::span<const double>(beside))};
        problem.rhs = View<const double>::rows(std::span<const double>(rhs));
        problem.x = View<double>::rows(std::span<double>(x.empty() ? rhs : x));
        tridiagonal::Options options;
        options.report = &report, options.patience_s = patience;
        if (!tridiagonal::solve(queue, problem, options).ok()) return false;
        for (const double value : solution())
            if (!(std::abs(value - 1) < off)) return false;
        return true;
    }

    std::int64_t rows_of(const std::string& device) const {
        std::int64_t sum = 0;
        for (const DeviceShare& share : report.devices) sum += share.name == device ? share.rows : 0;
        return sum;
    }

    std::string state_of(const std::string& device) const {
        for (const DeviceShare& share : report.devices)
            if (share.name == device) return share.state;
        return "not in the report";
    }
};

}  // namespace trifold::tests
