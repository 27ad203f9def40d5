// SPDX-License-Identifier: BSD-3-Clause
// Batches against LU in long double: every vector length, layout, odd size and kind of coefficient; nothing beside the views is
// touched, and the answer does not depend on threads or neighbours.
#include "unit/cpu_batch.hpp"

#include <memory>

#include "backends/cpu/tridiagonal/batch_plan.hpp"

namespace trifold::cpu::test {
namespace {

template <class T>
void dominant(Batch<T>& b, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> u(-1, 1);
    b.fill([&](int w, std::int64_t, std::int64_t, std::int64_t) { return static_cast<T>(w == 1 ? 2.2 + std::abs(u(random)) : u(random)); });
}

template <class T>
void expect_solved(Batch<T>& b, const std::vector<T>& rhs, double factor) {
    double worst = 0, error = 0;
    for (std::int64_t j = 0; j < b.outer; ++j)
        for (std::int64_t k = 0; k < b.inner; ++k) {
            worst = std::max(worst, backward_error(b, j, k, rhs));
            const auto x = truth(b, j, k, rhs);
            for (std::int64_t i = 0; i < b.rows; ++i) error = std::max(error, static_cast<double>(std::abs(x[i] - *b.solution(i, j, k))));
        }
    EXPECT_LE(worst, factor * unit_roundoff(dtype_of<T>));
    EXPECT_LE(error, 20 * unit_roundoff(dtype_of<T>));
    EXPECT_EQ(touched_outside(b, b.rhs), 0);
    EXPECT_EQ(touched_outside(b, b.x), 0);
}

template <class T>
class CpuBatch : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuBatch, Types);

TYPED_TEST(CpuBatch, SizesLayoutsAndVectors) {
    using T = TypeParam;
    on_every_target([] {
        unsigned seed = 1;
        for (Layout layout : {Layout::contiguous, Layout::interleaved, Layout::middle_axis, Layout::scattered})
            for (std::int64_t n : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 18, 63, 64, 65, 255, 257})
                for (bool in_place : {false, true}) {
                    const std::int64_t inner[] = {1, 3, 8, 17, 33, 64, 71, 130};
                    const std::int64_t m = inner[seed % 8], pad = seed % 3 == 0 ? 0 : seed % 11, shift = seed % 5;
                    SCOPED_TRACE(testing::Message() << name_of(layout) << " n " << n << " systems 2x" << m << " pad " << pad << " shift " << shift
                                                    << (in_place ? " in place" : ""));
                    Batch<T> b(layout, n, 2, m, pad, shift, in_place);
                    dominant(b, seed++);
                    const auto rhs = kept_rhs(b);
                    const Outcome outcome = run(b);
                    EXPECT_EQ(outcome.reason, Reason::exact);
                    EXPECT_EQ(outcome.rescued, 0);
                    expect_solved(b, rhs, 4);
                }
    });
}

TYPED_TEST(CpuBatch, AlignedOutOfPlaceStreams) {
    using T = TypeParam;
    on_every_target([] {
        for (Layout layout : {Layout::contiguous, Layout::interleaved})
            for (std::int64_t n : {64, 128}) {
                Batch<T> b(layout, n, 1, 128, 0, 0, false);
                const std::size_t off = reinterpret_cast<std::uintptr_t>(b.x.data.data()) % 64 / sizeof(T);
                b.x.base = Batch<T>::guard - static_cast<std::int64_t>(off);
                b.system.x.data = b.x.data.data() + b.x.base;
                dominant(b, static_cast<unsigned>(n));
                const auto rhs = kept_rhs(b);
                EXPECT_EQ(run(b).reason, Reason::exact);
                expect_solved(b, rhs, 4);
            }
    });
}

TYPED_TEST(CpuBatch, LongSystemsGoInSegments) {
    using T = TypeParam;
    on_every_target([] {
        for (Layout layout : {Layout::contiguous, Layout::interleaved})
            for (std::int64_t n : {4096, 20011, 131072 + 4099}) {
                Batch<T> b(layout, n, 1, n > 100000 ? 9 : 19, 1, 1, n != 4096);
                dominant(b, static_cast<unsigned>(n));
                const auto rhs = kept_rhs(b);
                EXPECT_EQ(run(b).reason, Reason::exact);
                expect_solved(b, rhs, 4);
            }
    });
}

// The same bits whatever the number of threads, the place of a system in its vector, and the kind of target that has FMA.
TYPED_TEST(CpuBatch, BitwiseIndependentOfThreadsAndNeighbours) {
    using T = TypeParam;
    for (Layout layout : {Layout::contiguous, Layout::interleaved, Layout::middle_axis}) {
        Batch<T> one(layout, 300, 6, 77, 3, 0, false), two = one, shifted(layout, 300, 5, 76, 3, 0, false);
        dominant(one, 5);
        two.lower.data = one.lower.data, two.diag.data = one.diag.data, two.upper.data = one.upper.data, two.rhs.data = one.rhs.data;
        const auto bind = [](Batch<T>& b) {
            b.system.lower.data = b.lower.data.data() + b.lower.base, b.system.diag.data = b.diag.data.data() + b.diag.base;
            b.system.upper.data = b.upper.data.data() + b.upper.base, b.system.rhs.data = b.rhs.data.data() + b.rhs.base;
            b.system.x.data = b.x.data.data() + b.x.base;
        };
        bind(two);
        shifted.fill([&](int w, std::int64_t i, std::int64_t j, std::int64_t k) {
            Guarded<T>* arrays[] = {&one.lower, &one.diag, &one.upper, &one.rhs};
            return arrays[w]->at(i, j + 1, k + 1);
        });
        run(one, Algorithm::automatic, 1);
        run(two, Algorithm::automatic, 3);
        run(shifted);
        for (std::int64_t j = 0; j < 6; ++j)
            for (std::int64_t k = 0; k < 77; ++k)
                for (std::int64_t i = 0; i < 300; ++i) {
                    ASSERT_EQ(*one.solution(i, j, k), *two.solution(i, j, k));
                    ASSERT_TRUE(j == 0 || k == 0 || *one.solution(i, j, k) == *shifted.solution(i, j - 1, k - 1));
                }
    }
}

TYPED_TEST(CpuBatch, ScalarSharedAndMixedCoefficients) {
    using T = TypeParam;
    on_every_target([] {
        for (Layout layout : {Layout::contiguous, Layout::interleaved, Layout::middle_axis})
            for (std::int64_t n : {4, 40, 133}) {
                Batch<T> b(layout, n, 3, 37, 2, 0, true);
                b.fill([&](int w, std::int64_t i, std::int64_t j, std::int64_t k) {
                    return static_cast<T>(w == 0 ? -1.25 : w == 1 ? 4 + 0.01 * static_cast<double>(i % 7) : w == 2 ? -0.5 : std::sin(1.0 + i + 3 * j + 7 * k));
                });
                b.system.lower.kind = b.system.upper.kind = Operand::Kind::scalar;
                b.system.lower.value = -1.25, b.system.upper.value = -0.5;
                // diag: one column shared by all systems.
                std::vector<T> column(n);
                for (std::int64_t i = 0; i < n; ++i) column[i] = b.diag.at(i, 0, 0);
                b.system.diag.data = column.data(), b.system.diag.row_stride = 1;
                b.system.diag.level_stride[0] = b.system.diag.level_stride[1] = 0;
                const auto rhs = kept_rhs(b);
                EXPECT_EQ(run(b).reason, Reason::exact);
                expect_solved(b, rhs, 4);
            }
    });
}

// LAPACK's packed diagonals: lower's first and upper's last element do not exist. Exact allocations, for the sanitizers.
TYPED_TEST(CpuBatch, PackedDiagonalsAreNotReadOutside) {
    using T = TypeParam;
    for (std::int64_t n : {2, 9, 33, 100}) {
        const std::int64_t m = 37;
        Batch<T> b(Layout::contiguous, n, 1, m, 0, 0, true);
        dominant(b, static_cast<unsigned>(n));
        const auto lower = std::make_unique<T[]>((n - 1) * m), upper = std::make_unique<T[]>((n - 1) * m);
        for (std::int64_t k = 0; k < m; ++k)
            for (std::int64_t i = 0; i + 1 < n; ++i) lower[k * (n - 1) + i] = b.lower.at(i + 1, 0, k), upper[k * (n - 1) + i] = b.upper.at(i, 0, k);
        b.system.lower.data = lower.get() - 1, b.system.upper.data = upper.get();
        b.system.lower.level_stride[1] = b.system.upper.level_stride[1] = n - 1;
        const auto rhs = kept_rhs(b);
        EXPECT_EQ(run(b).reason, Reason::exact);
        expect_solved(b, rhs, 4);
    }
}

// One by one they would take thirty times as long.
TEST(CpuBatchShape, SystemsSideBySideAreLanesThoughTheirRightHandSideIsOne) {
    tridiagonal::System system;
    system.rows = 64, system.levels = 2, system.extent[0] = 1000, system.extent[1] = 32;
    for (tridiagonal::Operand* const o : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x}) {
        o->kind = tridiagonal::Operand::Kind::view;
        o->row_stride = 32, o->level_stride[0] = 64 * 32, o->level_stride[1] = 1;
    }
    EXPECT_EQ(shape_of(system).lane_level, 1);
    system.rhs.row_stride = 1, system.rhs.level_stride[0] = system.rhs.level_stride[1] = 0;
    EXPECT_EQ(shape_of(system).lane_level, 1);
}

}  // namespace
}  // namespace trifold::cpu::test
