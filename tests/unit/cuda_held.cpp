// SPDX-License-Identifier: BSD-3-Clause
// One system that all multiprocessors hold, its lanes, warps and blocks on the host: all but the launch and the copies.
#include "cuda_warps_on_host.hpp"

#include "backends/cuda/tridiagonal/device/held_joint.cuh"

#include <gtest/gtest.h>

#include <vector>

#include "support/random.hpp"
#include "trifold/dtype.hpp"

namespace trifold::tests {
namespace {

using namespace cuda;

template <class T>
struct Rows {
    std::vector<T> lower, diag, upper, rhs;
    explicit Rows(std::size_t n) : lower(n), diag(n), upper(n), rhs(n) {}
    std::size_t size() const { return diag.size(); }

    /// Elimination without exchanges in twice the precision.
    std::vector<long double> exact() const {
        const std::size_t n = size();
        std::vector<long double> c(n), y(n);
        for (std::size_t i = 0; i < n; ++i) {
            const long double a = i ? lower[i] : T(0), p = diag[i] - (i ? a * c[i - 1] : 0);
            c[i] = upper[i] / p, y[i] = (rhs[i] - (i ? a * y[i - 1] : 0)) / p;
        }
        for (std::size_t i = n - 1; i-- > 0;) y[i] -= c[i] * y[i + 1];
        return y;
    }
};

template <class T>
struct Answer {
    std::vector<T> x;
    DeviceOutcome outcome;
    bool certain = true, good = true, grown = false;
};

/// As held_kernel does, `rows_of_lane` rows a lane.
template <class T>
Answer<T> solve(const Rows<T>& system, int rows_of_lane) {
    using namespace held;
    constexpr int R = most_rows<T>;
    const auto n = static_cast<std::int64_t>(system.size()), of_block = static_cast<std::int64_t>(held::Memory<T>::pitch(rows_of_lane));
    const auto blocks = static_cast<int>((n + of_block - 1) / of_block);
    Answer<T> answer;
    answer.x.assign(system.size(), std::numeric_limits<T>::quiet_NaN());
    std::vector<News<T>> news(static_cast<std::size_t>(blocks));
    std::memset(static_cast<void*>(news.data()), 0xff, news.size() * sizeof(News<T>));
    const T u = std::numeric_limits<T>::epsilon() / 2;
    held::Job<T> job;
    job.rows = n, job.rows_of_lane = rows_of_lane, job.news = news.data(), job.outcome = &answer.outcome;
    job.accept = 16 * u, job.roundoff = u, job.negligible = u / 16;
    gridDim.x = static_cast<unsigned>(blocks);
    BlocksOnHost host(blocks, threads, held::Memory<T>::bytes(rows_of_lane, false) + 128, false);
    host.run([&](unsigned char* bytes) {
        auto& shared = *reinterpret_cast<held::Memory<T>*>((reinterpret_cast<std::uintptr_t>(bytes) + 127) / 128 * 128);
        const int thread = thread_number(), lane = thread % lanes, warp = thread / lanes - 1, block = rank_in_cluster();
        const auto place = [&](int k) { return shared.rows(k, rows_of_lane, false) + (warp * lanes + lane) * rows_of_lane; };
        const std::int64_t first = block * of_block + (warp * lanes + lane) * rows_of_lane;
        if (warp < 0) {
            BlockJoint<T> joint{job, shared, lane, {}, {}, false};
            block_barrier();
            joint.join(true);
            cluster_barrier();
            for (int b = lane; b < blocks; b += lanes) shared.all[b] = news[static_cast<std::size_t>(b)];
            __syncwarp();
            joint.solve(true);
            return block_barrier();
        }
        held::Lane<T, R> state;
        const auto of = [&](const std::vector<T>& v, int i, T missing) { return first + i < n ? v[static_cast<std::size_t>(first + i)] : missing; };
        for (int i = 0; i < rows_of_lane; ++i) {
            place(0)[i] = first + i > 0 ? of(system.lower, i, T(0)) : T(0), place(1)[i] = of(system.diag, i, T(1));
            place(2)[i] = first + i + 1 < n ? of(system.upper, i, T(0)) : T(0), state.d[i] = of(system.rhs, i, T(0));
        }
        __syncwarp();
        T lower[4], diag[4], upper[4];
        for (int i = 0; i < 4; ++i) lower[i] = place(0)[i % rows_of_lane], diag[i] = place(1)[i % rows_of_lane], upper[i] = place(2)[i % rows_of_lane];
        held::Part<T> part;
        state.reduce(place(0), place(1), place(2), rows_of_lane, lane, job.negligible, windows::hardly_dominant(lower, diag, upper, lane), part);
        part.hardly = __reduce_max_sync(~0u, min(state.hardly, 0x7fffffffu));
        if (lane == 0) shared.parts[warp] = part;
        answer.grown |= state.grown;
        block_barrier();
        cluster_barrier();
        block_barrier();
        T x[R], left;
        state.solve(place(0), place(2), rows_of_lane, shared.ends[warp], shared.ends[warp + 1], lane, x, left);
        if (lane == 0) x[0] = shared.begins[warp];
        T after = __shfl_down_sync(~0u, x[0], 1), largest = shared.largest;
        if (lane == lanes - 1) after = shared.begins[warp + 1];
        for (int i = 0; i < rows_of_lane; ++i) largest = fmax(largest, fabs(x[i]));
        answer.good &= state.check(place(0), place(1), place(2), rows_of_lane, x, left, after, job.accept * largest);
        answer.certain &= shared.certain != 0;
        for (int i = 0; i < rows_of_lane && first + i < n; ++i) answer.x[static_cast<std::size_t>(first + i)] = x[i];
    });
    return answer;
}

/// Beside the largest |x|.
template <class T>
double error_of(const Rows<T>& system, const std::vector<T>& x) {
    const auto truth = system.exact();
    long double error = 0, largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) error = std::max(error, std::abs(x[i] - truth[i])), largest = std::max(largest, std::abs(truth[i]));
    return static_cast<double>(error / largest);
}

template <class T>
Rows<T> made(std::size_t n, double diagonal, double coupling, Random& random) {
    const auto any = [](Random& from) { return from.uniform(-1, 1); };
    Rows<T> s(n);
    for (std::size_t i = 0; i < n; ++i) {
        s.lower[i] = static_cast<T>(coupling ? coupling : any(random)), s.upper[i] = static_cast<T>(coupling ? coupling : any(random));
        s.diag[i] = static_cast<T>(diagonal), s.rhs[i] = static_cast<T>(any(random));
    }
    return s;
}

constexpr std::size_t lanes_of_block = static_cast<std::size_t>(held::warps * held::lanes);

template <class T>
class HeldOnHost : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(HeldOnHost, Types);

// Rows that fill no lane to its end solve to nothing, and take no certificate from the others.
TYPED_TEST(HeldOnHost, DominantRowsAreCertified) {
    using T = TypeParam;
    Random random(20261201);
    for (const auto& [n, each] : {std::pair{lanes_of_block * 3 + 1, 3}, {lanes_of_block * 5 * 2, 5}, {lanes_of_block * 9 - 7, 9}}) {
        SCOPED_TRACE(testing::Message() << n << " rows, " << each << " a lane");
        const auto system = made<T>(n, 3, 0, random);
        const Answer<T> answer = solve(system, each);
        EXPECT_TRUE(answer.certain && answer.good && !answer.grown);
        EXPECT_EQ(answer.outcome.reason, static_cast<int>(Reason::certified));
        const double error = error_of(system, answer.x);
        EXPECT_LE(error, 8 * std::numeric_limits<T>::epsilon());
        EXPECT_LE(error, answer.outcome.certificate);
        EXPECT_LE(answer.outcome.certificate, 1e4 * std::numeric_limits<T>::epsilon());
    }
}

// Rows that sum to nothing: errors are far below the condition number times the roundoff, however few rows a warp has.
TYPED_TEST(HeldOnHost, SumsOfRowsGoAlong) {
    using T = TypeParam;
    Random random(20261202);
    for (const auto& [n, each] : {std::pair{lanes_of_block * 3 * 2 + 100, 3}, {lanes_of_block * 7, 7}}) {
        SCOPED_TRACE(testing::Message() << n << " rows, " << each << " a lane");
        const auto system = made<T>(n, 2, -1, random);
        const Answer<T> answer = solve(system, each);
        EXPECT_TRUE(answer.certain && answer.good);
        EXPECT_EQ(answer.outcome.reason, static_cast<int>(Reason::exact)) << "no bound follows from rows that are not dominant";
        EXPECT_LE(error_of(system, answer.x), 1e-3 * 0.4 * static_cast<double>(n) * static_cast<double>(n) * std::numeric_limits<T>::epsilon() / 2);
    }
}

// Rows that nobody can be sure of are looked at one by one; a pivot that is next to none shows in the one after it.
TYPED_TEST(HeldOnHost, WhatIsNotDominantIsSeen) {
    using T = TypeParam;
    Random random(20261203);
    const std::size_t n = lanes_of_block * 5 + 33;
    auto waves = made<T>(n, 1.7, -1, random);
    const Answer<T> seen = solve(waves, 5);
    EXPECT_FALSE(seen.certain);
    EXPECT_TRUE(seen.good && !seen.grown);
    auto vanishing = made<T>(n, 3, 0, random);
    vanishing.diag[5 * 40] = T(1e-12), vanishing.lower[5 * 40] = 0, vanishing.upper[5 * 40] = 1, vanishing.lower[5 * 40 + 1] = 1;
    const Answer<T> grown = solve(vanishing, 5);
    EXPECT_TRUE(grown.grown && !grown.certain);
    auto nothing = made<T>(n, 3, 0, random);
    nothing.rhs[777] = std::numeric_limits<T>::quiet_NaN();
    const Answer<T> not_finite = solve(nothing, 5);
    EXPECT_FALSE(not_finite.certain || not_finite.good);
    auto large = made<T>(n, 3, 0, random);
    large.diag[1234] = large.rhs[1234] = std::numeric_limits<T>::max() * T(0.7);  // its reciprocal is flushed to 0
    const Answer<T> flushed = solve(large, 5);
    EXPECT_FALSE(flushed.certain || flushed.good);
}

}  // namespace
}  // namespace trifold::tests
