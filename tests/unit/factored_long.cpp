// SPDX-License-Identifier: BSD-3-Clause
// One long system that does not forget, in chunks that are joined, whatever the number of this machine's cores. Rows that are alike are rounded alike, and what
// they round adds up at the end of a chunk: on such rows nothing may be left of it.
#include "backends/cpu/tridiagonal/factored_long.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "support/random.hpp"
#include "support/simd_targets.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

using cpu::LongMode;

enum class Rows { poisson, scaled, signs, wave, growing, varied };
enum class Right { unit, constant, alternating, ramp, random, smooth, steps };
constexpr Rows every_row[] = {Rows::poisson, Rows::scaled, Rows::signs, Rows::wave, Rows::growing, Rows::varied};
constexpr Right every_right[] = {Right::unit, Right::constant, Right::alternating, Right::ramp, Right::random, Right::smooth, Right::steps};

// more: what is added to the diagonal.
template <class T>
Bands<T> matrix_of(Rows kind, std::int64_t n, double more = 0) {
    Random random(17);
    Bands<T> s(n);
    for (std::int64_t i = 0; i < n; ++i) {
        double a = -1, b = 2 + more, c = -1;
        switch (kind) {
            case Rows::poisson: break;
            case Rows::scaled: a *= 0.3, b *= 0.3, c *= 0.3; break;
            case Rows::signs: a = i > 0 ? s.upper[i - 1] : T(0), c = random.uniform(-1, 1) < 0 ? -1 : 1; break;
            case Rows::wave: b = 2 * std::cos(std::numbers::pi / static_cast<double>(2 * n)); break;
            case Rows::growing: a = -1.004, c = -0.996; break;
            case Rows::varied: a = i > 0 ? s.upper[i - 1] : T(-1), c = static_cast<T>(-random.uniform(0.5, 1)), b = -(a + c); break;
        }
        s.lower[i] = static_cast<T>(a), s.diag[i] = static_cast<T>(b), s.upper[i] = static_cast<T>(c);
    }
    s.lower.front() = s.upper.back() = 0;
    return s;
}

template <class T>
std::vector<T> right_of(Right kind, std::int64_t n) {
    Random random(5);
    std::vector<T> rhs(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        const double at = static_cast<double>(i) / static_cast<double>(n);
        double value = 0;
        switch (kind) {
            case Right::unit: value = i == n / 3; break;
            case Right::constant: value = 1; break;
            case Right::alternating: value = i % 2 ? -1 : 1; break;
            case Right::ramp: value = at; break;
            case Right::random: value = random.uniform(-1, 1); break;
            case Right::smooth: value = std::sin(20 * at); break;
            case Right::steps: value = i % 128 < 64 ? 1 : -1; break;
        }
        rhs[static_cast<std::size_t>(i)] = static_cast<T>(value);
    }
    return rhs;
}

// 1/p, l, c' of every row.
template <class T>
std::vector<T> eliminated(const Bands<T>& s) {
    std::vector<T> numbers(static_cast<std::size_t>(3 * s.rows()));
    T c = 0;
    for (std::int64_t i = 0; i < s.rows(); ++i) {
        const T scale = 1 / (s.diag[i] - s.lower[i] * c);
        numbers[3 * i] = scale, numbers[3 * i + 1] = s.lower[i] * scale, numbers[3 * i + 2] = c = s.upper[i] * scale;
    }
    return numbers;
}

template <class T>
class InChunks {
public:
    explicit InChunks(const Bands<T>& s, int threads = 2) : memory_(cpu::long_factor_bytes<T>(s.rows())) { cpu::long_factor(s.rows(), eliminated(s).data(), memory_.data, threads); }
    bool coupled() const { return cpu::long_mode<T>(memory_.data) == LongMode::coupled; }
    std::vector<T> solve(const Bands<T>& s, int threads = 2, bool in_place = false) const {
        std::vector<T> x = s.rhs;
        tridiagonal::Problem problem = problem_of(s, x);
        if (in_place) problem.rhs = problem.x;
        const Scratch64 scratch(cpu::long_scratch<T>(s.rows(), threads));
        EXPECT_TRUE(cpu::long_solve<T>(tridiagonal::normalise(problem), memory_.data, threads, scratch.data));
        return x;
    }

private:
    Scratch64 memory_;
};

// The largest residual of a row over what is summed in it, in roundoffs.
template <class T>
double rowwise_error(const Bands<T>& s, const std::vector<T>& x) {
    double worst = 0;
    for (std::int64_t i = 0, n = s.rows(); i < n; ++i) {
        const auto term = [&](const std::vector<T>& band, std::int64_t k) { return k < 0 || k >= n ? 0.0L : static_cast<long double>(band[i]) * x[k]; };
        const long double before = term(s.lower, i - 1), own = term(s.diag, i), after = term(s.upper, i + 1), rhs = s.rhs[i];
        const long double size = std::abs(before) + std::abs(own) + std::abs(after) + std::abs(rhs);
        if (size > 0) worst = std::max(worst, static_cast<double>(std::abs(rhs - before - own - after) / size));
    }
    return worst / unit_roundoff(dtype_of<T>);
}

template <class T>
void expect_solved(const Bands<T>& s, const std::vector<T>& x, bool by_rows) {
    EXPECT_LE(backward_error(cast<double>(s), as_double(x)), 10 * unit_roundoff(dtype_of<T>));
    if (by_rows) { EXPECT_LE(rowwise_error(s, x), 30); }
}

template <class T>
void every_right_hand_side(Rows rows, std::int64_t n, double more = 0) {
    Bands<T> s = matrix_of<T>(rows, n, more);
    const InChunks<T> kept(s);
    SCOPED_TRACE(testing::Message() << name_of(dtype_of<T>) << ", " << n << " rows of kind " << static_cast<int>(rows) << ", " << more << " more");
    ASSERT_TRUE(kept.coupled());
    for (const Right right : every_right) {
        SCOPED_TRACE(testing::Message() << "right-hand side " << static_cast<int>(right));
        s.rhs = right_of<T>(right, n);
        // What a unit leaves far from itself is rounded where numbers end.
        expect_solved(s, kept.solve(s), right != Right::unit);
    }
}

TEST(CpuFactoredLong, RowsThatAreAlike) {
    for (const std::int64_t n : {4096, 4351, 20011, 100003})
        for (const Rows rows : every_row) every_right_hand_side<double>(rows, n), every_right_hand_side<float>(rows, n);
}

TEST(CpuFactoredLong, SlowDecays) {
    for (const double more : {1e-6, 1e-4, 1e-3, 1e-2}) every_right_hand_side<double>(Rows::poisson, 4351, more), every_right_hand_side<float>(Rows::poisson, 4351, more);
}

TEST(CpuFactoredLong, AMillionRows) {
    const auto attempt = [&]<class T>(T) {
        Bands<T> s = matrix_of<T>(Rows::poisson, 1100003);
        const InChunks<T> kept(s);
        for (const Right right : {Right::constant, Right::alternating, Right::random}) {
            s.rhs = right_of<T>(right, s.rows());
            expect_solved(s, kept.solve(s), true);
        }
    };
    attempt(double());
    attempt(float());
}

TEST(CpuFactoredLong, EveryInstructionSet) {
    on_every_target([] {
        for (const Rows rows : {Rows::scaled, Rows::signs}) every_right_hand_side<double>(rows, 5003), every_right_hand_side<float>(rows, 5003);
    });
}

TEST(CpuFactoredLong, TheSameBitsWithAnyNumberOfThreadsAndInPlace) {
    for (const std::int64_t n : {4351, 100003, 1100003})
        for (const Right right : {Right::alternating, Right::random}) {
            SCOPED_TRACE(testing::Message() << n << " rows, right-hand side " << static_cast<int>(right));
            Bands<double> s = matrix_of<double>(Rows::scaled, n);
            s.rhs = right_of<double>(right, n);
            const std::vector<double> expected = InChunks<double>(s, 1).solve(s, 1);
            for (const int threads : {1, 2, 3, 7})
                for (const bool in_place : {false, true}) ASSERT_EQ(InChunks<double>(s, threads).solve(s, threads, in_place), expected) << threads << " threads";
        }
}

}  // namespace
}  // namespace trifold::tests
