// SPDX-License-Identifier: BSD-3-Clause
// Laws that hold for every system, tried on random ones on every device (RapidCheck prints what it needs to try again).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/run.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

Context& context() {
    static Context shared({.threads = 2, .profile_path = "none", .log = {}});
    return shared;
}

// A batch of systems side by side in memory of the C order that the axis asks for.
struct Batch {
    std::int64_t rows = 0, systems = 0;
    bool interleaved = false, dominant = false, periodic = false;
    std::vector<double> lower, diag, upper, rhs;

    std::size_t place(std::int64_t i, std::int64_t k) const { return static_cast<std::size_t>(interleaved ? i * systems + k : k * rows + i); }

    template <class T>
    View<T> view(T* data) const {
        return interleaved ? View<T>::interleaved(data, rows, systems) : View<T>::contiguous(data, systems, rows);
    }

    std::vector<double> solve(const std::string& device, const std::vector<double>& right, bool transposed = false) const {
        std::vector<double> x(right.size());
        tridiagonal::Problem problem;
        problem.matrix = {view(lower.data()), view(diag.data()), view(upper.data()), periodic, transposed};
        problem.rhs = view(right.data());
        problem.x = view(x.data());
        Queue queue(context(), device);
        const Outcome outcome = tridiagonal::solve(queue, problem);
        RC_ASSERT(outcome.ok());
        return x;
    }

    Bands<double> system(std::int64_t k, bool transposed = false) const {
        Bands<double> s(rows, periodic);
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t before = (i + rows - 1) % rows, after = (i + 1) % rows;
            s.lower[i] = transposed ? upper[place(before, k)] : lower[place(i, k)];
            s.upper[i] = transposed ? lower[place(after, k)] : upper[place(i, k)];
            s.diag[i] = diag[place(i, k)];
            s.rhs[i] = rhs[place(i, k)];
        }
        return s;
    }
};

Batch any_batch() {
    Batch b;
    b.rows = *rc::gen::inRange<std::int64_t>(1, 200);
    b.systems = *rc::gen::inRange<std::int64_t>(1, 24);
    b.interleaved = *rc::gen::arbitrary<bool>();
    b.dominant = *rc::gen::arbitrary<bool>();
    b.periodic = *rc::gen::inRange(0, 4) == 0;
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    for (std::int64_t i = 0; i < b.rows * b.systems; ++i) {
        b.lower.push_back(random.uniform(-1, 1));
        b.upper.push_back(random.uniform(-1, 1));
        const double d = random.uniform(-1, 1);
        b.diag.push_back(b.dominant ? std::copysign(2.2 + std::abs(d), d) : d);
        b.rhs.push_back(random.normal(0, 1));
    }
    return b;
}

std::vector<double> numbers(std::size_t count) {
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    std::vector<double> values(count);
    for (double& value : values) value = random.normal(0, 1);
    return values;
}

class Law : public testing::TestWithParam<std::string> {};

// The residual of what a linear combination of solutions solves is as small as that of a solution.
void linear(const std::string& device) {
    const Batch b = any_batch();
    const std::vector<double> other = numbers(b.rhs.size());
    const double factor = *rc::gen::inRange(-8, 9);
    std::vector<double> sum(b.rhs.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = b.rhs[i] + factor * other[i];
    const std::vector<double> x = b.solve(device, b.rhs), y = b.solve(device, other), z = b.solve(device, sum);
    for (std::int64_t k = 0; k < b.systems; ++k) {
        Bands<double> s = b.system(k);
        double scale = 0, worst = 0;
        for (std::int64_t i = 0; i < b.rows; ++i) {
            const std::size_t p = b.place(i, k);
            scale = std::max({scale, std::abs(x[p]), std::abs(factor * y[p]), std::abs(z[p]), std::abs(b.rhs[p]), std::abs(factor * other[p])});
        }
        std::vector<double> difference(b.rows);
        for (std::int64_t i = 0; i < b.rows; ++i) difference[i] = (x[b.place(i, k)] + factor * y[b.place(i, k)] - z[b.place(i, k)]) / scale;
        // A (x + f y - z) = 0, each part with a backward error of a few units of roundoff.
        for (std::int64_t i = 0; i < b.rows; ++i) worst = std::max(worst, std::abs(row_times(s, difference, i)));
        RC_ASSERT(worst <= 500 * 0x1p-53);
    }
}

void residual_is_small(const std::string& device) {
    const Batch b = any_batch();
    const std::vector<double> x = b.solve(device, b.rhs);
    for (std::int64_t k = 0; k < b.systems; ++k) {
        std::vector<double> own(b.rows);
        for (std::int64_t i = 0; i < b.rows; ++i) own[i] = x[b.place(i, k)];
        RC_ASSERT(backward_error(b.system(k), own) <= 20 * 0x1p-53);
    }
}

void transposition_is_an_exchange(const std::string& device) {
    const Batch b = any_batch();
    const std::vector<double> x = b.solve(device, b.rhs, true);
    for (std::int64_t k = 0; k < b.systems; ++k) {
        std::vector<double> own(b.rows);
        for (std::int64_t i = 0; i < b.rows; ++i) own[i] = x[b.place(i, k)];
        RC_ASSERT(backward_error(b.system(k, true), own) <= 20 * 0x1p-53);
    }
}

// Bit for bit: powers of two change exponents only. Dominant, so that nothing comes near the ends of the range.
void powers_of_two_scale(const std::string& device) {
    Batch b = any_batch();
    const double matrix = std::ldexp(1.0, *rc::gen::inRange(-60, 61)), right = std::ldexp(1.0, *rc::gen::inRange(-60, 61));
    const std::vector<double> x = b.solve(device, b.rhs);
    for (auto* band : {&b.lower, &b.diag, &b.upper})
        for (double& value : *band) value *= matrix;
    std::vector<double> rhs = b.rhs;
    for (double& value : rhs) value *= right;
    const std::vector<double> y = b.solve(device, rhs);
    for (std::size_t i = 0; i < x.size(); ++i) RC_ASSERT(y[i] == x[i] * (right / matrix));
}

// The order of the systems in a batch changes their order in x, and nothing else but rounding.
void systems_do_not_know_each_other(const std::string& device) {
    const Batch b = any_batch();
    Batch turned = b;
    const std::int64_t shift = *rc::gen::inRange<std::int64_t>(0, b.systems);
    for (std::int64_t k = 0; k < b.systems; ++k)
        for (std::int64_t i = 0; i < b.rows; ++i) {
            const std::size_t from = b.place(i, k), to = b.place(i, (k + shift) % b.systems);
            turned.lower[to] = b.lower[from], turned.diag[to] = b.diag[from], turned.upper[to] = b.upper[from], turned.rhs[to] = b.rhs[from];
        }
    const std::vector<double> x = b.solve(device, b.rhs), y = turned.solve(device, turned.rhs);
    for (std::int64_t k = 0; k < b.systems; ++k) {
        const std::int64_t moved = (k + shift) % b.systems;
        for (std::int64_t i = 0; i < b.rows; ++i) {
            if (!b.dominant) continue;
            RC_ASSERT(std::abs(y[b.place(i, moved)] - x[b.place(i, k)]) <= 40 * 0x1p-53 * largest(x));
        }
        std::vector<double> own(b.rows);
        for (std::int64_t i = 0; i < b.rows; ++i) own[i] = y[b.place(i, moved)];
        RC_ASSERT(backward_error(b.system(k), own) <= 20 * 0x1p-53);
    }
}

void in_place_gives_the_same(const std::string& device) {
    const Batch b = any_batch();
    const std::vector<double> x = b.solve(device, b.rhs);
    std::vector<double> both = b.rhs;
    tridiagonal::Problem problem;
    problem.matrix = {b.view(b.lower.data()), b.view(b.diag.data()), b.view(b.upper.data()), b.periodic, false};
    problem.rhs = problem.x = b.view(both.data());
    Queue queue(context(), device);
    RC_ASSERT(tridiagonal::solve(queue, problem).ok());
    RC_ASSERT(both == x);
}

#define TRIFOLD_LAW(name, holds)                                   \
    TEST_P(Law, name) {                                            \
        const std::string device = GetParam();                     \
        EXPECT_TRUE(rc::check(#name, [&] { holds(device); }));     \
    }

TRIFOLD_LAW(Linear, linear)
TRIFOLD_LAW(ResidualIsSmall, residual_is_small)
TRIFOLD_LAW(TranspositionIsAnExchange, transposition_is_an_exchange)
TRIFOLD_LAW(PowersOfTwoScale, powers_of_two_scale)
TRIFOLD_LAW(SystemsDoNotKnowEachOther, systems_do_not_know_each_other)
TRIFOLD_LAW(InPlaceGivesTheSame, in_place_gives_the_same)

std::vector<std::string> devices() {
    std::vector<std::string> names;
    for (const DeviceInfo& device : context().devices()) names.push_back(device.name);
    return names;
}

INSTANTIATE_TEST_SUITE_P(Device, Law, testing::ValuesIn(devices()), [](const auto& info) {
    std::string name = info.param;
    std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    return name;
});

}  // namespace
}  // namespace trifold::tests
