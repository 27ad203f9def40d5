// SPDX-License-Identifier: BSD-3-Clause
// Devices of other vendors: small groups, little local memory, small buffers, no double precision (small_device_layer.cpp). Everything is solved there, or refused by a sentence, and never does
// the driver have to refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "support/random.hpp"
#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

struct Form {
    const char* name;
    std::int64_t rows, systems;
    bool interleaved, dominant;
    bool in_place = false;
};

constexpr Form forms[] = {{"short rows", 40, 30, false, true},          {"rows", 300, 9, false, true},       {"long rows", 530, 5, false, true},      {"longer rows", 1000, 5, false, true},
                          {"columns", 40, 100, true, true},             {"long columns", 300, 33, true, true}, {"longest columns", 512, 20, true, true}, {"to be pivoted", 100, 20, false, false},
                          {"columns to be pivoted", 100, 20, true, false}, {"one", 60000, 1, false, true},       {"one in place", 60000, 1, false, true, true}, {"one to be pivoted", 30000, 1, false, false}};

class SmallDevice : public testing::Test {
protected:
    void SetUp() override {
        device_ = opencl_device();
        if (!device_) GTEST_SKIP() << no_device;
        refused_ = layer_function<long()>("trifold_refused");
        if (!refused_) GTEST_SKIP() << no_layer;
    }

    static bool small(const char* what) { return std::strstr(std::getenv("TRIFOLD_SMALL_DEVICE"), what); }

    /// Largest |rhs - A x| over (|a| + |b| + |c|) max|x| of the system, in unit roundoffs; poisson: -1, 2, -1.
    template <class T>
    double solve(const Form& f, bool poisson = false) {
        const auto size = static_cast<std::size_t>(f.rows * f.systems);
        Random random(7);
        std::vector<T> lower(size), diag(size), upper(size), rhs(size), x(size, std::numeric_limits<T>::quiet_NaN());
        for (std::size_t i = 0; i < size; ++i) {
            lower[i] = poisson ? T(-1) : static_cast<T>(random.uniform(-1, 1)), upper[i] = poisson ? T(-1) : static_cast<T>(random.uniform(-1, 1));
            diag[i] = poisson ? T(2) : f.dominant ? static_cast<T>(4) : static_cast<T>(random.uniform(-1, 1)), rhs[i] = static_cast<T>(random.uniform(-1, 1));
        }
        const std::vector<T> given = rhs;
        std::vector<T>& to = f.in_place ? rhs : x;
        const auto view = [&]<class U>(U* data) {
            if (f.systems == 1) return View<U>::rows(std::span<U>(data, size));
            return f.interleaved ? View<U>::interleaved(data, f.rows, f.systems) : View<U>::contiguous(data, f.systems, f.rows);
        };
        const auto read = [&](const std::vector<T>& array) { return view(array.data()); };
        tridiagonal::Problem problem;
        problem.matrix = {read(lower), read(diag), read(upper)};
        problem.rhs = read(rhs), problem.x = view(to.data());
        Context context({.threads = 2, .profile_path = "none", .log = {}});
        Queue queue(context, device_->name);
        const Outcome outcome = tridiagonal::solve(queue, problem);
        EXPECT_TRUE(outcome.ok()) << f.name << ": " << name_of(outcome.reason);
        EXPECT_EQ(std::string(outcome.device), device_->name) << f.name;
        double worst = 0;
        for (std::int64_t s = 0; s < f.systems; ++s) {
            const auto at = [&](std::int64_t i) { return static_cast<std::size_t>(f.interleaved ? i * f.systems + s : s * f.rows + i); };
            double largest = 0;
            for (std::int64_t i = 0; i < f.rows; ++i) largest = std::max(largest, std::abs(static_cast<double>(to[at(i)])));
            for (std::int64_t i = 0; i < f.rows; ++i) {
                long double rest = given[at(i)] - static_cast<long double>(diag[at(i)]) * to[at(i)];
                if (i > 0) rest -= static_cast<long double>(lower[at(i)]) * to[at(i - 1)];
                if (i + 1 < f.rows) rest -= static_cast<long double>(upper[at(i)]) * to[at(i + 1)];
                const double share = static_cast<double>(std::abs(rest)) / (4 * largest);
                if (!(share <= worst)) worst = share;
            }
        }
        return worst / unit_roundoff(dtype_of<T>);
    }

    const Device* device_ = nullptr;
    long (*refused_)() = nullptr;
};

TEST_F(SmallDevice, SolvesInSinglePrecision) {
    for (const Form& f : forms) EXPECT_LE(solve<float>(f), 16) << f.name;
    EXPECT_LE(solve<float>({"poisson", 50000, 1, false, true}, true), 16);
    EXPECT_EQ(refused_(), 0);
}

TEST_F(SmallDevice, SolvesInDoublePrecisionOrSaysThatItCannot) {
    for (const Form& f : forms) {
        if (!small("fp64=0")) {
            EXPECT_LE(solve<double>(f), 16) << f.name;
            continue;
        }
        try {
            solve<double>(f);
            ADD_FAILURE() << f.name << " was solved without double precision";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::device_unavailable) << error.what();
            EXPECT_NE(std::string(error.what()).find("no FP64"), std::string::npos) << error.what();
        }
    }
    EXPECT_EQ(refused_(), 0);
}

// Too large for one buffer: a sentence, or in parts.
TEST_F(SmallDevice, SaysWhatIsTooLarge) {
    if (!small("alloc=")) GTEST_SKIP() << "its buffers are as large as before";
    try {
        solve<float>({"too large", 512, 10000, false, true});
        ADD_FAILURE() << "20 MB were taken in one buffer";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input) << error.what();
        EXPECT_NE(std::string(error.what()).find("at most 16 MiB at once"), std::string::npos) << error.what();
    }
    EXPECT_EQ(refused_(), 0);
}

TEST_F(SmallDevice, TakesALongSystemInParts) {
    if (!small("alloc=") || !device_->runtime) GTEST_SKIP() << "its buffers are as large as before, or it works in the host's memory";
    constexpr std::int64_t rows = 17 << 20;  // 272 MiB of operands
    for (const bool poisson : {false, true}) {
        const std::vector<float> beside(rows, -1.0f), diag(rows, poisson ? 2.0f : 4.0f);
        std::vector<float> rhs(rows, poisson ? 0.0f : 2.0f), x(rows);
        rhs.front() = rhs.back() = poisson ? 1.0f : 3.0f;  // x is 1 everywhere
        tridiagonal::Problem problem;
        const auto view = [](const std::vector<float>& array) { return View<const float>::rows(std::span<const float>(array)); };
        problem.matrix = {view(beside), view(diag), view(beside)};
        problem.rhs = view(rhs), problem.x = View<float>::rows(std::span<float>(x));
        Context context({.threads = 2, .profile_path = "none", .log = {}});
        Queue queue(context, device_->name);
        Report report;
        tridiagonal::Options options;
        options.report = &report;
        ASSERT_TRUE(tridiagonal::solve(queue, problem, options).ok());
        double rest = 0, largest = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto k = static_cast<std::size_t>(i);
            const double sides = (i > 0 ? double{x[k - 1]} : 0) + (i + 1 < rows ? double{x[k + 1]} : 0);
            rest = std::max(rest, std::abs(rhs[k] - double{diag[k]} * x[k] + sides)), largest = std::max(largest, std::abs(double{x[k]}));
        }
        EXPECT_LE(rest, 32 * 0x1p-24 * 4 * largest) << poisson;
        ASSERT_FALSE(report.devices.empty());
        EXPECT_EQ(report.devices[0].state, "") << report.devices[0].name;
        // Of what does not forget the memory holds y, g and h: when it is full, the cpu takes the rest.
        if (poisson) EXPECT_GT(report.devices[0].rows, 100000);
        else EXPECT_EQ(report.devices[0].rows, rows);
    }
    EXPECT_EQ(refused_(), 0);
}

}  // namespace
}  // namespace trifold::tests
