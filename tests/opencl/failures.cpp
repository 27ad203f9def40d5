// SPDX-License-Identifier: BSD-3-Clause
// Every call of OpenCL's interface fails once (failing_layer.cpp): the solve then throws and says so, or is right; the next one is right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

struct Layer {
    long (*calls)() = nullptr;
    void (*fail)(long, int) = nullptr;
};

struct Case {
    const char* name;
    std::int64_t rows, systems;
    bool interleaved, in_place;
    tridiagonal::Algorithm algorithm = tridiagonal::Algorithm::automatic;
    bool kept = false;  ///< by a Factor in the device's memory
};

class Failures : public testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        device_ = opencl_device_name();
        if (device_.empty()) GTEST_SKIP() << no_device;
        layer_ = {layer_function<long()>("trifold_calls"), layer_function<void(long, int)>("trifold_fail_call")};
        if (!layer_.fail) GTEST_SKIP() << no_layer;
        layer_.fail(-1, 0);
        if (GetParam().kept && !opencl_device()->runtime) GTEST_SKIP() << device_ << " works in the host's memory, where the cpu factors";
    }
    void TearDown() override {
        if (layer_.fail) layer_.fail(-1, 0);
    }

    /// -1, 4, -1 with rhs 2 but for the ends, where it is 3: x is 1 everywhere. Returns whether it is.
    bool solve() {
        const Case& c = GetParam();
        const auto size = static_cast<std::size_t>(c.rows * c.systems);
        std::vector<double> rhs(size, 2.0), x(size, 0.0);
        for (std::int64_t s = 0; s < c.systems; ++s)
            for (const std::int64_t row : {std::int64_t{0}, c.rows - 1}) rhs[static_cast<std::size_t>(c.interleaved ? row * c.systems + s : s * c.rows + row)] = 3.0;
        Context context({.threads = 2, .profile_path = "none", .log = {}});
        Queue queue(context, device_);
        tridiagonal::Problem problem;
        problem.matrix = {-1.0, 4.0, -1.0};
        const std::vector<double> beside(size, -1.0), diag(size, 4.0);
        if (c.algorithm == tridiagonal::Algorithm::truncated_spike)  // has no numbers in place of arrays
            problem.matrix = {View<const double>::rows(std::span(beside)), View<const double>::rows(std::span(diag)), View<const double>::rows(std::span(beside))};
        std::vector<double>& to = c.in_place ? rhs : x;
        const auto view = [&]<class T>(T* data) {
            if (c.systems == 1) return View<T>::rows(std::span<T>(data, size));
            return c.interleaved ? View<T>::interleaved(data, c.rows, c.systems) : View<T>::contiguous(data, c.systems, c.rows);
        };
        problem.rhs = view(static_cast<const double*>(rhs.data())), problem.x = view(to.data());
        tridiagonal::Options options;
        options.algorithm = c.algorithm;
        if (c.kept) {
            // Gaps between the entries.
            DeviceArray<double> there(queue, 2 * static_cast<std::int64_t>(size));
            there.upload(std::vector<double>(2 * size, 4.0));
            const Dim along[] = {{c.systems, 2 * c.rows}};
            const std::int64_t batch[] = {c.systems};
            const tridiagonal::Factor factor(queue, {-1.0, View<const double>::strided(there.data(), {c.rows, 2}, along, there.memory()), View<const double>::contiguous(beside.data(), c.systems, c.rows)}, c.rows, batch);
            if (!factor.outcome().ok() || !factor.solve(problem.rhs, problem.x).ok()) return false;
        } else if (!tridiagonal::solve(queue, problem, options).ok()) {
            return false;
        }
        for (const double value : to)
            if (!(std::abs(value - 1) < 1e-13)) return false;
        return true;
    }

    std::string device_;
    Layer layer_;
};

TEST_P(Failures, AreSaidAndPass) {
    ASSERT_TRUE(solve());
    layer_.fail(-1, 0);
    ASSERT_TRUE(solve());
    const long calls = layer_.calls();
    ASSERT_GT(calls, 0);
    int said = 0;
    for (const int lasting : {0, 1})
        for (long k = 0; k < calls; ++k) {
            layer_.fail(k, lasting);
            try {
                EXPECT_TRUE(solve()) << "a wrong answer where call " << k << " of " << calls << " failed";
            } catch (const Error& error) {
                ++said;
                EXPECT_NE(std::string(error.what()).find("CL_OUT_OF_RESOURCES"), std::string::npos) << error.what();
                EXPECT_NE(std::string(error.what()).find(device_), std::string::npos) << error.what();
                EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
            }
            layer_.fail(-1, 0);
            EXPECT_TRUE(solve()) << "after call " << k << " of " << calls << " had failed";
        }
    EXPECT_GT(said, 0);
}

// A driver is told an argument when it has changed, and what has changed is seen: other arrays, and new ones in place of some that were given back.
TEST(Arguments, AreSetWhereTheyHaveChanged) {
    const Device* const device = opencl_device();
    if (!device) GTEST_SKIP() << no_device;
    if (!device->runtime) GTEST_SKIP() << "its memory is the host's";
    const Layer layer{layer_function<long()>("trifold_calls"), layer_function<void(long, int)>("trifold_fail_call")};
    if (!layer.fail) GTEST_SKIP() << no_layer;
    constexpr std::int64_t rows = 2000;
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    Queue queue(context, device->name);
    const auto filled = [&](double value) {
        std::vector<double> host(rows, 2 * value);
        host.front() = host.back() = 3 * value;
        DeviceArray<double> array(queue, rows);
        copy(queue, array.data(), host.data(), rows * sizeof(double));
        return array;
    };
    const auto largest_error = [&](const DeviceArray<double>& x, double value) {
        std::vector<double> host(rows);
        copy(queue, host.data(), x.data(), rows * sizeof(double));
        double error = 0;
        for (const double here : host) error = std::max(error, std::abs(here - value));
        return error;
    };
    DeviceArray<double> one = filled(1), two = filled(2), x(queue, rows), y(queue, rows);
    tridiagonal::Problem problem;
    problem.matrix = {-1.0, 4.0, -1.0};
    tridiagonal::PendingOutcome outcome(queue);
    DeviceArray<std::byte> scratch;
    const auto solve = [&](const DeviceArray<double>& rhs, DeviceArray<double>& to) {
        problem.rhs = View<const double>::rows(std::span<const double>(rhs.data(), rows)), problem.x = View<double>::rows(std::span(to.data(), rows));
        std::size_t bytes = 0;
        for (const WorkspaceNeed& need : tridiagonal::workspace(queue, problem, {})) bytes = std::max(bytes, need.bytes);
        if (!scratch.data()) scratch = DeviceArray<std::byte>(queue, static_cast<std::int64_t>(bytes));
        tridiagonal::Options options;
        options.workspace = {scratch.data(), bytes};
        solve_async(queue, problem, options, outcome);
    };
    for (int k = 0; k < 3; ++k) solve(one, x);
    layer.fail(-1, 0);
    solve(one, x);
    EXPECT_LE(layer.calls(), 2) << "more than a launch, and that it is to begin";
    solve(two, y);
    EXPECT_LE(largest_error(x, 1), 1e-13);
    EXPECT_LE(largest_error(y, 2), 1e-13);
    for (int k = 3; k < 8; ++k) {
        one = DeviceArray<double>(), one = filled(k);
        solve(one, x);
        EXPECT_LE(largest_error(x, k), 1e-12) << k;
    }
}

INSTANTIATE_TEST_SUITE_P(Solves, Failures,
                         testing::Values(Case{"contiguous", 100, 30, false, false}, Case{"interleaved", 100, 30, true, false}, Case{"single", 60000, 1, false, false}, Case{"short", 2000, 1, false, false},
                                         Case{"single_in_place", 20000, 1, false, true}, Case{"two_pass", 20000, 1, false, false, tridiagonal::Algorithm::two_pass},
                                         Case{"truncated_spike", 20000, 1, false, false, tridiagonal::Algorithm::truncated_spike},
                                         Case{"kept", 100, 30, false, false, tridiagonal::Algorithm::automatic, true}),
                         [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace trifold::tests
