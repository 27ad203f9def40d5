// SPDX-License-Identifier: BSD-3-Clause
// The cpu's pivoted sweep on every target: where it answers, how well, and what it leaves to the two passes.
#include <cmath>
#include <limits>

#include "backends/cpu/tridiagonal/pivoted.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Launch;
using tridiagonal::System;

constexpr std::int64_t enough = (std::int64_t{1} << 19) + 13;

template <class T>
struct Sweep {
    std::vector<T> x;
    System system;

    explicit Sweep(const Bands<T>& s, std::size_t shift = 0) : x(s.rhs.size(), T{77}), system(tridiagonal::normalise(problem_of(s, x))) {
        x.resize(x.size() + shift, T{77});
        system.x.data = x.data() + shift;
    }
    bool run(int threads = 1) {
        const Scratch64 scratch(cpu::pivoted_scratch(system, threads));
        Launch launch;
        launch.threads = threads;
        launch.scratch = scratch.data;
        launch.scratch_bytes = scratch.memory.size() - 64;
        return cpu::sweep_pivoted(system, launch);
    }
};

/// The largest residual over runs of 512 rows, each against its own scale, in units of roundoff.
template <class T>
double worst_run(const Bands<T>& s, const T* x) {
    double worst = 0;
    const std::int64_t n = s.rows();
    for (std::int64_t first = 0; first < n; first += 512) {
        double residual = 0, matrix = 0, size = 0, right = 0;
        for (std::int64_t i = first; i < std::min(first + 512, n); ++i) {
            const double a = i > 0 ? s.lower[i] : 0, b = s.diag[i], c = i + 1 < n ? s.upper[i] : 0, r = s.rhs[i];
            const double left = r - (i > 0 ? a * x[i - 1] : 0) - b * x[i] - (i + 1 < n ? c * x[i + 1] : 0);
            if (!std::isfinite(left)) return left;
            residual = std::max(residual, std::abs(left)), matrix = std::max({matrix, std::abs(a), std::abs(b), std::abs(c)});
            size = std::max(size, std::abs(static_cast<double>(x[i]))), right = std::max(right, std::abs(r));
        }
        worst = std::max(worst, residual / (matrix * size + right));
    }
    return worst / unit_roundoff(dtype_of<T>);
}

template <class T>
void answers() {
    for (const double dominance : {0.0, 0.7, 1.5})
        for (const std::int64_t rows : {enough, enough + 4321, 2 * enough}) {
            Bands<T> s = cast<T>(random_system(rows, dominance, 31));
            s.lower.front() = s.upper.back() = std::numeric_limits<T>::quiet_NaN();
            on_every_target([&, dominance = dominance, rows = rows] {
                Sweep<T> sweep(s);
                ASSERT_TRUE(sweep.run()) << dominance << ", " << rows << " rows";
                // Where blocks meet, what they differ by comes on top of what partial pivoting leaves in a row.
                EXPECT_LE(worst_run(s, sweep.x.data()), 10) << dominance << ", " << rows << " rows";
            });
        }
}

TEST(PivotedSweep, AnswersWhereTheMatrixForgets) {
    answers<double>();
    answers<float>();
}

TEST(PivotedSweep, TakesLongerBlocksWhereTheMatrixForgetsSlowly) {
    Bands<double> s = random_system(enough, 0, 38);
    for (std::int64_t i = 0; i < enough; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2.01;
    on_every_target([&] {
        Sweep<double> sweep(s);
        ASSERT_TRUE(sweep.run());
        EXPECT_LE(worst_run(s, sweep.x.data()), 10);
    });
    EXPECT_GT(cpu::pivoted_decay(Sweep<double>(s).system, 0x1p-55, 10000), 300);
}

template <class T>
void threads_and_alignment() {
    const Bands<T> s = cast<T>(random_system(enough, 0, 32));
    Sweep<T> one(s);
    ASSERT_TRUE(one.run());
    for (const int threads : {2, 3, 7}) {
        Sweep<T> many(s);
        ASSERT_TRUE(many.run(threads));
        EXPECT_EQ(one.x, many.x);
    }
    for (const std::size_t shift : {1, 3, 7}) {
        Sweep<T> shifted(s, shift);
        ASSERT_TRUE(shifted.run());
        EXPECT_LE(worst_run(s, shifted.x.data() + shift), 10);
        for (std::size_t k = 0; k < shift; ++k) EXPECT_EQ(shifted.x[k], T{77});
    }
}

TEST(PivotedSweep, IsTheSameForAnyThreadsAndTakesAnyAlignment) {
    on_every_target([] {
        threads_and_alignment<double>();
        threads_and_alignment<float>();
    });
}

template <class T>
void reads_nothing_outside(bool at_start) {
    const Bands<T> s = cast<T>(random_system(enough, 0, 33));
    const Fenced<T> lower({s.lower.begin() + 1, s.lower.end()}, at_start), upper({s.upper.begin(), s.upper.end() - 1}, at_start);
    const Fenced<T> diag(s.diag, at_start), rhs(s.rhs, at_start), x(std::vector<T>(enough, T{77}), at_start);
    Sweep<T> sweep(s);
    sweep.system.lower.data = lower.data - 1, sweep.system.upper.data = upper.data, sweep.system.diag.data = diag.data;
    sweep.system.rhs.data = rhs.data, sweep.system.x.data = x.data;
    ASSERT_TRUE(sweep.run());
    EXPECT_LE(worst_run(s, x.data), 10);
}

TEST(PivotedSweep, TakesARightHandSideThatIsZeroNearlyEverywhere) {
    on_every_target([] {
        Bands<double> s = random_system(enough, 0, 37);
        std::fill(s.rhs.begin(), s.rhs.end(), 0);
        Sweep<double> zero(s);
        ASSERT_TRUE(zero.run());
        EXPECT_EQ(zero.x, std::vector<double>(enough, 0));
        for (const std::int64_t row : {std::int64_t{100}, enough / 3, enough / 2 + 5, enough - 20}) s.rhs[row] = 1 + 1e-3 * row;
        Sweep<double> sweep(s);
        ASSERT_TRUE(sweep.run());
        EXPECT_LE(backward_error(s, sweep.x), 4 * 0x1p-53);
    });
}

TEST(PivotedSweep, ReadsAndWritesNothingOutsideTheArrays) {
    on_every_target([] {
        for (const bool at_start : {false, true}) reads_nothing_outside<double>(at_start), reads_nothing_outside<float>(at_start);
    });
}

TEST(PivotedSweep, ScalarsActAsArrays) {
    on_every_target([] {
        Bands<double> s(enough);
        std::fill(s.lower.begin(), s.lower.end(), -1), std::fill(s.upper.begin(), s.upper.end(), 0.25);
        std::fill(s.diag.begin(), s.diag.end(), 2.5), std::fill(s.rhs.begin(), s.rhs.end(), 3);
        Sweep<double> arrays(s), scalars(s);
        tridiagonal::Operand* const operands[4] = {&scalars.system.lower, &scalars.system.diag, &scalars.system.upper, &scalars.system.rhs};
        const double values[4] = {-1, 2.5, 0.25, 3};
        for (int k = 0; k < 4; ++k) operands[k]->kind = tridiagonal::Operand::Kind::scalar, operands[k]->value = values[k], operands[k]->data = nullptr;
        ASSERT_TRUE(arrays.run());
        ASSERT_TRUE(scalars.run());
        EXPECT_EQ(arrays.x, scalars.x);
    });
}

/// `rows` rows of Poisson's equation from `first` on: over them nothing is forgotten.
Bands<double> with_poisson(Bands<double> s, std::int64_t first, std::int64_t rows) {
    for (std::int64_t i = first; i < first + rows; ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2;
    return s;
}

TEST(PivotedSweep, DoesNotStartWhereNothingIsForgotten) {
    on_every_target([] {
        for (const double diag : {2.0, 1.2, 0.0}) {  // Poisson; waves; every second unknown alone
            Bands<double> s = with_poisson(random_system(enough, 0, 34), 0, enough);
            std::fill(s.diag.begin(), s.diag.end(), diag);
            Sweep<double> sweep(s);
            EXPECT_FALSE(sweep.run()) << diag;
            EXPECT_EQ(sweep.x, std::vector<double>(enough, 77)) << diag;
        }
        EXPECT_EQ(cpu::pivoted_scratch(Sweep<double>(random_system(1000, 0, 34)).system, 1), 0u) << "too short";
    });
}

TEST(PivotedSweep, SeesWhereLittleIsForgotten) {
    on_every_target([] {
        // The places that are looked at beforehand are odd multiples of rows / 8.
        const std::int64_t lengths[] = {5000, 50000};
        for (const std::int64_t length : lengths) {
            const Bands<double> s = with_poisson(random_system(enough, 0, 35), enough / 4 - length / 2, length);
            EXPECT_FALSE(Sweep<double>(s).run()) << length;
            const Solved<double> solved = two_pass(cpu::cpu_ops(), s, tridiagonal::two_pass_chunk_rows(enough, DType::f64), 2);
            EXPECT_TRUE(solved.outcome.ok());
            EXPECT_LE(backward_error(s, solved.x), 10 * 0x1p-53) << solved.outcome.branch;
        }
    });
}

TEST(PivotedSweep, LeavesWhatIsNotFiniteAndWhatIsSingular) {
    on_every_target([] {
        const Bands<double> good = random_system(enough, 0, 36);
        for (const std::int64_t row : {std::int64_t{0}, std::int64_t{5}, enough / 3, enough / 2 + 77, enough - 2, enough - 1}) {
            Bands<double> s = good;
            s.rhs[row] = std::numeric_limits<double>::quiet_NaN();
            EXPECT_FALSE(Sweep<double>(s).run()) << row;
            s.rhs[row] = std::numeric_limits<double>::infinity();
            EXPECT_FALSE(Sweep<double>(s).run()) << row;
            for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
                for (std::vector<double> Bands<double>::*array : {&Bands<double>::lower, &Bands<double>::diag, &Bands<double>::upper}) {
                    if (array == &Bands<double>::lower ? row == 0 : array == &Bands<double>::upper && row == enough - 1) continue;
                    s = good;
                    (s.*array)[row] = bad;
                    EXPECT_FALSE(Sweep<double>(s).run()) << row;
                }
            s = good;
            s.diag[row] = 0;  // a column of zeros
            if (row > 0) s.upper[row - 1] = 0;
            if (row + 1 < enough) s.lower[row + 1] = 0;
            EXPECT_FALSE(Sweep<double>(s).run()) << row;
            const Outcome outcome = two_pass(cpu::cpu_ops(), s, tridiagonal::two_pass_chunk_rows(enough, DType::f64)).outcome;
            EXPECT_EQ(outcome.reason, Reason::singular) << row;
        }
    });
}

TEST(PivotedSweep, ZooIsAsGoodAsLapack) {
    int answered = 0;
    for (const ZooEntry& entry : zoo()) {
        if (entry.dense) continue;
        const Bands<double> s = make(entry, enough + 1, 1);
        if (!all_finite(s.diag) || !all_finite(s.lower) || !all_finite(s.upper) || !all_finite(s.rhs)) continue;
        Sweep<double> first(s);
        if (!first.run()) continue;
        ++answered;
        const Gtsv<double> peer = gtsv(s);
        ASSERT_EQ(peer.info, 0) << entry.name;
        const double allowed = 10 * std::max(backward_error(s, peer.x), 0x1p-53);
        on_every_target([&] {
            Sweep<double> sweep(s);
            EXPECT_TRUE(sweep.run()) << entry.name;
            EXPECT_LE(backward_error(s, sweep.x), allowed) << entry.name;
        });
    }
    EXPECT_GE(answered, 8);
}

}  // namespace
}  // namespace trifold::tests
