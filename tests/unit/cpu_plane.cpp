// SPDX-License-Identifier: BSD-3-Clause
// Lines along x and y of one plane, forwards: past the caches and not, by one thread and by several that take strips in turns. All give the same bits, and those of the recurrence but for rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "backends/cpu/mesh/fused.hpp"
#include "base/aligned_buffer.hpp"
#include "support/random.hpp"
#include "support/simd_targets.hpp"

namespace trifold::tests {
namespace {

using cpu::LineFactors;

template <class T>
LineFactors<T> random_factors(std::int64_t n, Random& random) {
    std::vector<T> a, b, c;
    for (std::int64_t i = 0; i < n; ++i) a.push_back(static_cast<T>(random.uniform(-1, 1))), b.push_back(static_cast<T>(random.uniform(2.5, 4))), c.push_back(static_cast<T>(random.uniform(-1, 1)));
    return cpu::factor_line(n, a.data(), b.data(), c.data());
}

template <class T>
struct Rows {
    std::int64_t count, pitch;
    AlignedBuffer memory;

    Rows(std::int64_t rows, std::int64_t width) : count(rows), pitch((width + 15) / 16 * 16), memory(static_cast<std::size_t>(rows * pitch) * sizeof(T)) { std::fill_n(data(), rows * pitch, T(0)); }
    T* data() { return static_cast<T*>(memory.data()); }
    T* row(std::int64_t y) { return data() + y * pitch; }
};

template <class T>
class PlaneForwards {
public:
    PlaneForwards(std::int64_t nx, std::int64_t ny, std::uint64_t seed) : random_(seed), nx_(nx), ny_(ny), x_(random_factors<T>(nx, random_)), y_(random_factors<T>(ny, random_)), rhs_(ny, nx) {
        for (std::int64_t y = 0; y < ny; ++y)
            for (std::int64_t x = 0; x < nx; ++x) rhs_.row(y)[x] = static_cast<T>(random_.uniform(-1, 1));
    }

    /// w by so many threads; bad: a row with a value that is not finite.
    bool run(Rows<T>& plane, int threads, bool past_cache, std::int64_t bad = -1) {
        const std::int64_t most = cpu::strip_rows<T>(), strips = (ny_ + most - 1) / most;
        Rows<T> last(1, nx_);
        std::fill_n(last.data(), last.pitch, T(77));
        std::vector<cpu::Count> done(static_cast<std::size_t>(threads));
        std::atomic<bool> good = true;
        const auto strips_of = [&](int number) {
            Rows<T> strip(most, nx_);
            for (std::int64_t s = number; s < strips; s += threads) {
                const std::int64_t rows = std::min(most, ny_ - s * most);
                for (std::int64_t r = 0; r < most; ++r) {
                    if (r < rows) std::copy_n(rhs_.row(s * most + r), strip.pitch, strip.row(r));
                    else std::fill_n(strip.row(r), strip.pitch, T(0));
                    if (s * most + r == bad) strip.row(r)[nx_ / 2] = NAN;
                }
                cpu::Turn turn{.before = s > 0 ? &done[static_cast<std::size_t>((number + threads - 1) % threads)].done : nullptr, .own = &done[static_cast<std::size_t>(number)].done, .number = s};
                if (threads == 1) turn = {};
                if (!cpu::rows_then_forwards(x_, y_, strip.data(), strip.pitch, s * most, rows, plane.data(), plane.pitch, past_cache ? last.data() : nullptr, {}, turn)) good = false;
            }
        };
        std::vector<std::thread> team;
        for (int number = 0; number < threads; ++number) team.emplace_back(strips_of, number);
        for (std::thread& one : team) one.join();
        for (std::int64_t x = 0; past_cache && bad < 0 && x < nx_; ++x) EXPECT_EQ(last.data()[x], plane.row(ny_ - 1)[x]) << "last row, column " << x;
        return good;
    }

    /// The recurrences of factored.hpp, in double.
    void check(Rows<T>& plane) {
        std::vector<double> before(static_cast<std::size_t>(nx_), 0.0), row(before);
        for (std::int64_t y = 0; y < ny_; ++y) {
            const auto at = [](const std::vector<T>& values, std::int64_t i) { return static_cast<double>(values[static_cast<std::size_t>(i)]); };
            double w = 0;
            for (std::int64_t x = 0; x < nx_; ++x) row[static_cast<std::size_t>(x)] = w = at(x_.scale, x) * rhs_.row(y)[x] - at(x_.lower, x) * w;
            for (std::int64_t x = nx_ - 2; x >= 0; --x) row[static_cast<std::size_t>(x)] -= at(x_.upper, x) * row[static_cast<std::size_t>(x + 1)];
            for (std::int64_t x = 0; x < nx_; ++x) {
                double& own = before[static_cast<std::size_t>(x)];
                own = at(y_.scale, y) * row[static_cast<std::size_t>(x)] - at(y_.lower, y) * own;
                ASSERT_NEAR(plane.row(y)[x], own, 16 * std::numeric_limits<T>::epsilon()) << "row " << y << ", column " << x;
            }
        }
    }

private:
    Random random_;
    std::int64_t nx_, ny_;
    LineFactors<T> x_, y_;
    Rows<T> rhs_;
};

template <class T>
class CpuPlane : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(CpuPlane, Precisions);

TYPED_TEST(CpuPlane, ThreadsAndStoresPastTheCachesChangeNoBit) {
    on_every_target([] {
        std::uint64_t seed = 2026;
        for (const std::int64_t nx : {16, 17, 127, 128, 129, 300, 1031})
            for (const std::int64_t ny : {1, 2, 3, 7, 8, 9, 17, 31, 64, 131}) {
                SCOPED_TRACE("columns " + std::to_string(nx) + ", rows " + std::to_string(ny) + ", seed " + std::to_string(++seed));
                PlaneForwards<TypeParam> forwards(nx, ny, seed);
                Rows<TypeParam> expected(ny, nx), plane(ny, nx);
                ASSERT_TRUE(forwards.run(expected, 1, false));
                forwards.check(expected);
                for (const int threads : {1, 2, 3, 5})
                    for (const bool past_cache : {false, true}) {
                        std::fill_n(plane.data(), ny * plane.pitch, TypeParam(-77));
                        ASSERT_TRUE(forwards.run(plane, threads, past_cache));
                        for (std::int64_t y = 0; y < ny; ++y)
                            for (std::int64_t x = 0; x < nx; ++x) ASSERT_EQ(plane.row(y)[x], expected.row(y)[x]) << threads << " threads, row " << y << ", column " << x;
                    }
                if (testing::Test::HasFailure()) return;
            }
    });
}

TYPED_TEST(CpuPlane, WhatIsNotFiniteIsToldAndStopsNobody) {
    constexpr std::int64_t nx = 300, ny = 131;
    PlaneForwards<TypeParam> forwards(nx, ny, 7);
    Rows<TypeParam> plane(ny, nx);
    for (const std::int64_t bad : {0, 8, 77, 130})
        for (const int threads : {1, 2, 3}) EXPECT_FALSE(forwards.run(plane, threads, true, bad)) << "row " << bad << ", " << threads << " threads";
}

}  // namespace
}  // namespace trifold::tests
