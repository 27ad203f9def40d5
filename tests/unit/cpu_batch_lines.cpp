// SPDX-License-Identifier: BSD-3-Clause
// Blocks of whole cache lines, eliminated while others are substituted: the same bits as where systems are scattered and blocks come
// one after the other, in place and beside, with systems that are refused here and there.
#include "unit/cpu_batch.hpp"

namespace trifold::cpu::test {
namespace {

template <class T>
class CpuBatchLines : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuBatchLines, Types);

/// Values of an element, the same in whatever array. `odd`: every how-manieth system is not dominant, or singular, or not finite.
struct Values {
    std::uint64_t seed;
    std::int64_t rows, inner, odd;

    double operator()(int w, std::int64_t i, std::int64_t j, std::int64_t k) const {
        std::uint64_t h = seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>((w * 7919 + i) * 104729 + j * inner + k);
        h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u, h ^= h >> 32;
        const double u = static_cast<double>(h >> 11) * 0x1p-52 - 1;
        const std::int64_t system = j * inner + k, kind = odd > 0 && system % odd == odd / 2 ? system / odd % 4 + 1 : 0;
        if (kind == 1) return u;
        if (kind == 2 && ((w == 1 && i == rows / 2) || (w == 0 && i == rows / 2 + 1) || (w == 2 && i == rows / 2 - 1))) return 0;  // no pivot
        if (kind == 3 && w == 3 && i == rows / 3) return std::numeric_limits<double>::quiet_NaN();
        if (kind == 4 && w == 1) return i % 2 ? 2 : 1e-9;
        return w == 1 ? 2.2 + std::abs(u) : u;
    }
};

/// shift: elements between the beginning of a line and that of the arrays.
template <class T>
Batch<T> batch_of(Layout layout, const Values& values, std::int64_t outer, std::int64_t pad, std::int64_t shift, bool in_place) {
    Batch<T> b(layout, values.rows, outer, values.inner, pad, 0, in_place);
    Guarded<T>* const arrays[] = {&b.lower, &b.diag, &b.upper, &b.rhs, &b.x};
    Operand* const operands[] = {&b.system.lower, &b.system.diag, &b.system.upper, &b.system.rhs, &b.system.x};
    for (int k = 0; k < 5; ++k) {
        Guarded<T>& a = *arrays[in_place && k == 4 ? 3 : k];
        const auto inside = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(a.data.data()) % 64 / sizeof(T));
        a.base = Batch<T>::guard - inside + shift;
        operands[k]->data = a.data.data() + a.base;
    }
    b.fill([&](int w, std::int64_t i, std::int64_t j, std::int64_t k) { return static_cast<T>(values(w, i, j, k)); });
    return b;
}

template <class T>
void same_as_scattered(Layout layout, const Values& values, std::int64_t outer, std::int64_t pad, std::int64_t shift, bool in_place, int threads) {
    Batch<T> b = batch_of<T>(layout, values, outer, pad, shift, in_place), apart = batch_of<T>(Layout::scattered, values, outer, 0, 0, in_place);
    std::vector<std::int8_t> status, expected;
    const Outcome outcome = run(b, Algorithm::automatic, threads, &status), other = run(apart, Algorithm::automatic, 1, &expected);
    EXPECT_EQ(status, expected);
    EXPECT_EQ(outcome.reason, other.reason);
    EXPECT_EQ(outcome.rescued, other.rescued);
    EXPECT_EQ(outcome.failures, other.failures);
    if (values.odd == 0) { EXPECT_EQ(outcome.rescued + outcome.failures, 0); }
    if (values.odd > 0 && values.rows > 6 && outer * values.inner > 4 * values.odd) { EXPECT_GT(outcome.rescued * outcome.failures, 0); }
    for (std::int64_t j = 0; j < outer; ++j)
        for (std::int64_t k = 0; k < values.inner; ++k)
            for (std::int64_t i = 0; i < values.rows; ++i) {
                const T x = *b.solution(i, j, k), y = *apart.solution(i, j, k);
                ASSERT_TRUE(x == y || (x != x && y != y)) << "row " << i << " of system " << j << ", " << k << ": " << x << " and " << y;
            }
    EXPECT_EQ(touched_outside(b, b.rhs), 0);
    EXPECT_EQ(touched_outside(b, b.x), 0);
}

TYPED_TEST(CpuBatchLines, SameBitsAsBlocksOneAfterTheOther) {
    using T = TypeParam;
    on_every_target([] {
        std::uint64_t seed = 1;
        constexpr std::int64_t line = 64 / sizeof(T);
        for (Layout layout : {Layout::interleaved, Layout::middle_axis})
            for (const std::int64_t rows : {2, 3, 12, 96, 97, 200, 700})
                for (const std::int64_t lines : {1, 2, 4, 7, 9})
                    for (const std::int64_t odd : {0, 1, 5, 97}) {
                        const Values values{seed++, rows, lines * line + (seed % 4 == 0 ? static_cast<std::int64_t>(seed) % line : 0), odd};
                        // Rows begin with a line where shift is 0 and this is a whole number of them.
                        const std::int64_t pad = (line - values.inner % line) % line + (seed % 3) * line;
                        SCOPED_TRACE(testing::Message() << name_of(layout) << ", " << rows << " rows, 2 x " << values.inner << " systems, odd " << odd);
                        same_as_scattered<T>(layout, values, 2, layout == Layout::middle_axis ? pad : (line - 2 * values.inner % line) % line,
                                             seed % 5 == 0 ? 3 : 0, seed % 2, 1 + static_cast<int>(seed % 3));
                    }
    });
}

TYPED_TEST(CpuBatchLines, RowsThatMeetInFewSetsOfACache) {
    using T = TypeParam;
    on_every_target([] {
        for (const std::int64_t odd : {0, 11}) same_as_scattered<T>(Layout::middle_axis, {5, 40, (64 << 10) / static_cast<std::int64_t>(sizeof(T)), odd}, 1, 0, 0, true, 2);
    });
}

TYPED_TEST(CpuBatchLines, ScalarsActAsArrays) {
    using T = TypeParam;
    on_every_target([] {
        constexpr std::int64_t line = 64 / sizeof(T);
        for (const std::int64_t rows : {5, 150, 300})
            for (int which = 1; which < 8; ++which) {
                Batch<T> arrays = batch_of<T>(Layout::middle_axis, {7, rows, 5 * line, 0}, 3, 0, 0, true);
                const double value[] = {-1.25, 4.5, 0.75};
                arrays.fill([&](int w, std::int64_t i, std::int64_t j, std::int64_t k) { return static_cast<T>(w < 3 ? value[w] : std::sin(1.0 + i + 3 * j + 7 * k)); });
                Batch<T> scalars = batch_of<T>(Layout::middle_axis, {7, rows, 5 * line, 0}, 3, 0, 0, true);
                scalars.fill([&](int w, std::int64_t i, std::int64_t j, std::int64_t k) { return static_cast<T>(w < 3 ? value[w] : std::sin(1.0 + i + 3 * j + 7 * k)); });
                Operand* const operands[] = {&scalars.system.lower, &scalars.system.diag, &scalars.system.upper};
                for (int w = 0; w < 3; ++w)
                    if (which >> w & 1) operands[w]->kind = Operand::Kind::scalar, operands[w]->value = value[w], operands[w]->data = nullptr;
                EXPECT_EQ(run(arrays).reason, Reason::exact);
                EXPECT_EQ(run(scalars).reason, Reason::exact);
                for (std::int64_t j = 0; j < 3; ++j)
                    for (std::int64_t k = 0; k < 5 * line; ++k)
                        for (std::int64_t i = 0; i < rows; ++i) ASSERT_EQ(*arrays.solution(i, j, k), *scalars.solution(i, j, k));
            }
    });
}

}  // namespace
}  // namespace trifold::cpu::test
