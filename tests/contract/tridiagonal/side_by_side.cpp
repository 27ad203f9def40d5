// SPDX-License-Identifier: BSD-3-Clause
// Batches whose systems lie side by side: interleaved, or along a middle axis; lengths around every boundary of chunks, blocks and
// clusters of them, widths around those of tiles, padded or not; failures in the middle of long columns.
#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

class SideBySide : public OnDevice {
protected:
    static Recipe interleaved(std::int64_t rows, std::int64_t systems, bool in_place, bool dominant) {
        Recipe recipe;
        recipe.rows = rows;
        recipe.batch = {systems};
        recipe.layout = Layout::interleaved;
        recipe.in_place = in_place;
        recipe.dominant = dominant;
        recipe.seed = static_cast<std::uint64_t>(rows * 977 + systems);
        return recipe;
    }

    template <class T>
    void solve(const Recipe& recipe) {
        SCOPED_TRACE(recipe.text());
        Trial<T> trial(recipe);
        trial.expect_solved(tridiagonal::solve(queue, trial.problem()));
    }

    /// rhs[o][i][j] along i, `pad` unused columns behind every row; on this queue's device and on the reference.
    template <class T>
    void middle_axis(std::int64_t outer, std::int64_t rows, std::int64_t columns, std::int64_t pad) {
        SCOPED_TRACE(testing::Message() << outer << " x " << rows << " x " << columns << " + " << pad);
        const std::int64_t row = columns + pad, plane = rows * row + 2 * pad;
        Random random(static_cast<std::uint64_t>(rows * 31 + columns));
        std::vector<T> lower, diag, upper, rhs;
        for (std::int64_t k = 0; k < outer * plane; ++k) {
            lower.push_back(static_cast<T>(random.uniform(-1, 1))), upper.push_back(static_cast<T>(random.uniform(-1, 1)));
            diag.push_back(static_cast<T>(random.uniform(2.5, 3))), rhs.push_back(static_cast<T>(random.uniform(-1, 1)));
        }
        std::vector<T> x(rhs.size(), T(77)), expected = x;
        const auto all = [&]<class U>(U* data, Memory where) {
            const Dim batch[] = {{outer, plane}, {columns, 1}};
            return View<U>::strided(data, {rows, row}, batch, where);
        };
        const auto problem = [&](const T* a, const T* b, const T* c, const T* d, T* to, Memory where) {
            tridiagonal::Problem p;
            p.matrix.lower = all(a, where), p.matrix.diag = all(b, where), p.matrix.upper = all(c, where);
            p.rhs = all(d, where), p.x = all(to, where);
            return p;
        };
        const auto there = [&](const std::vector<T>& values) { return DeviceArray<T>(queue, std::span<const T>(values)); };
        const DeviceArray<T> a = there(lower), b = there(diag), c = there(upper), d = there(rhs), to = there(x);
        ASSERT_TRUE(tridiagonal::solve(queue, problem(a.data(), b.data(), c.data(), d.data(), to.data(), d.memory())).ok());
        to.download(x);
        Queue oracle(context(), "reference");
        ASSERT_TRUE(tridiagonal::solve(oracle, problem(lower.data(), diag.data(), upper.data(), rhs.data(), expected.data(), {})).ok());
        for (std::size_t k = 0; k < x.size(); ++k) ASSERT_LE(std::abs(x[k] - expected[k]), 60 * unit_roundoff(dtype_of<T>)) << "element " << k;
    }
};

TEST_P(SideBySide, Lengths) {
    for (const std::int64_t rows : {3, 5, 6, 7, 12, 15, 16, 17, 31, 32, 33, 48, 49, 63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257, 272, 273, 511, 512,
                                    513, 700, 769, 1000, 1023, 1024, 1025, 2049, 4095, 4096, 4097, 4352, 4353, 5003, 8192, 16417})
        for (const std::int64_t systems : {12, 36, 68}) {
            if (rows > 600 && systems != 36) continue;
            for (const bool in_place : {false, true}) {
                solve<double>(interleaved(rows, systems, in_place, true));
                solve<float>(interleaved(rows, systems, in_place, true));
            }
        }
}

TEST_P(SideBySide, Widths) {
    for (std::int64_t systems = 1; systems <= 34; ++systems)
        for (const std::int64_t rows : {9, 40, 150, 300}) {
            solve<double>(interleaved(rows, systems, systems % 2, true));
            solve<float>(interleaved(rows, systems, systems % 2, true));
        }
    for (const std::int64_t systems : {63, 64, 65, 100, 127, 128, 129, 255, 257, 513})
        for (const std::int64_t rows : {16, 70, 260}) {
            solve<double>(interleaved(rows, systems, false, true));
            solve<float>(interleaved(rows, systems, false, true));
        }
}

TEST_P(SideBySide, WidthsOfLongColumns) {
    for (const std::int64_t systems : {1, 11, 12, 13, 31, 32, 33, 63, 64, 65, 130})
        for (const bool in_place : {false, true}) {
            solve<double>(interleaved(4500, systems, in_place, true));
            solve<float>(interleaved(4500, systems, in_place, true));
        }
}

TEST_P(SideBySide, MiddleAxis) {
    if (GetParam() == "reference") GTEST_SKIP() << "what others are compared with";
    for (const std::int64_t rows : {8, 16, 33, 128, 130, 256, 300, 513, 1000})
        for (const std::int64_t columns : {16, 32, 33, 48, 96, 130})
            for (const std::int64_t pad : {0, 4, 1}) {
                middle_axis<double>(3, rows, columns, pad);
                middle_axis<float>(3, rows, columns, pad);
            }
    for (const std::int64_t pad : {0, 1}) middle_axis<double>(2, 4609, 40, pad), middle_axis<float>(2, 4609, 72, pad);
}

// Where rows are a large power of two apart, tiles of columns are taken from places far apart.
TEST_P(SideBySide, RowsALargePowerOfTwoApart) {
    TRIFOLD_NOT_THE_REFERENCE();
    solve<float>(interleaved(130, 65536, false, true));
    solve<double>(interleaved(66, 65536, false, true));
}

TEST_P(SideBySide, PivotsAreTakenWhereTheyAreNeeded) {
    for (const std::int64_t rows : {8, 16, 40, 128, 256, 300, 600, 1000, 1100, 4500}) {
        solve<double>(interleaved(rows, 36, false, false));
        solve<float>(interleaved(rows, 36, true, false));
    }
    for (const std::int64_t rows : {10, 20, 40, 64, 100})  // tiles of more columns than a word has bits
        for (const std::int64_t systems : {260, 1100}) {
            solve<double>(interleaved(rows, systems, false, false));
            solve<float>(interleaved(rows, systems, true, false));
        }
}

// Among dominant systems: some that elimination solves without exchanges though their rows are not dominant, and some that need exchanges.
TEST_P(SideBySide, DominantOrNotTogether) {
    for (const bool in_place : {false, true})
        for (const std::int64_t rows : {64, 150, 256, 300, 600, 1100, 2500, 4500}) {
            SCOPED_TRACE(testing::Message() << rows << " rows, in place " << in_place);
            Trial<double> trial(interleaved(rows, 68, in_place, true));
            Random random(static_cast<std::uint64_t>(rows));
            const auto scale = [](std::int64_t i) { return i % 2 ? 8.0 : 1.0; };  // of unknowns: rows are dominant no more, pivots as good as before
            for (std::int64_t k = 0; k < trial.systems(); ++k)
                for (std::int64_t i = 0; i < rows && k % 3 != 0; ++i)
                    for (int band = 0; band < 3; ++band)
                        trial.coefficient(band, i, k) = k % 3 == 1 ? trial.coefficient(band, i, k) * scale(i + band + 1) : random.uniform(-1, 1);
            const Outcome outcome = tridiagonal::solve(queue, trial.problem());
            ASSERT_TRUE(outcome.ok()) << outcome.failures;
            for (std::int64_t k = 0; k < trial.systems(); ++k)
                ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k;
        }
}

// -1, 2, -1: weakly dominant, ends that feel each other over all rows. And one column of these that needs exchanges.
TEST_P(SideBySide, LongColumnsThatDoNotDecay) {
    for (const bool in_place : {false, true})
        for (const bool one_needs_pivots : {false, true})
            for (const std::int64_t rows : {4500, 20000}) {
                SCOPED_TRACE(testing::Message() << rows << " rows, in place " << in_place << ", one needs pivots " << one_needs_pivots);
                Trial<double> trial(interleaved(rows, 36, in_place, true));
                Random random(static_cast<std::uint64_t>(rows));
                for (std::int64_t k = 0; k < trial.systems(); ++k)
                    for (std::int64_t i = 0; i < rows; ++i)
                        for (int band = 0; band < 3; ++band) trial.coefficient(band, i, k) = one_needs_pivots && k == 17 ? random.uniform(-1, 1) : band == 1 ? 2 : -1;
                const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                ASSERT_TRUE(outcome.ok()) << outcome.failures;
                for (std::int64_t k = 0; k < trial.systems(); ++k)
                    ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k;
            }
}

TEST_P(SideBySide, AFailedColumnIsNamedAndLeftAsItWas) {
    for (const bool in_place : {false, true})
        for (const std::int64_t rows : {8, 16, 40, 128, 256, 300, 600, 1000, 1100, 4500})
            for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1}) {
                SCOPED_TRACE(testing::Message() << rows << " rows, in place " << in_place << ", row " << row);
                const std::int64_t systems = rows < 50 ? 260 : 36, bad = systems - 15;
                Trial<double> trial(interleaved(rows, systems, in_place, true));
                trial.coefficient(1, row, bad) = 0;
                if (row > 0) trial.coefficient(0, row, bad) = trial.coefficient(2, row - 1, bad) = 0;
                if (row < rows - 1) trial.coefficient(2, row, bad) = trial.coefficient(0, row + 1, bad) = 0;
                const Outcome outcome = tridiagonal::solve(queue, trial.problem());
                EXPECT_EQ(outcome.reason, Reason::singular);
                EXPECT_EQ(outcome.system, bad);
                EXPECT_EQ(outcome.row, row);
                EXPECT_EQ(outcome.failures, 1);
                if (in_place) {
                    const std::vector<double> left = trial.solution(bad), before = trial.system(bad).rhs;
                    for (std::int64_t i = 0; i < rows; ++i) ASSERT_NEAR(left[i], before[i], 1e-12) << i;
                }
                for (std::int64_t k = 0; k < systems; ++k)
                    if (k != bad) {
                        ASSERT_LE(backward_error(trial.system(k), trial.solution(k)), 20 * unit_roundoff(DType::f64)) << "system " << k;
                    }
            }
}

TEST_P(SideBySide, TheSameBitsAgain) {
    for (const std::int64_t rows : {40, 256, 300, 1100, 4500}) {
        const Recipe recipe = interleaved(rows, 68, false, false);
        std::vector<std::vector<double>> first;
        for (int run = 0; run < 3; ++run) {
            Trial<double> trial(recipe);
            ASSERT_TRUE(tridiagonal::solve(queue, trial.problem()).ok());
            for (std::int64_t k = 0; k < trial.systems(); ++k) {
                if (run == 0) first.push_back(trial.stored(k));
                else ASSERT_EQ(trial.stored(k), first[static_cast<std::size_t>(k)]) << rows << " rows, system " << k;
            }
        }
    }
}

TRIFOLD_ON_EVERY_DEVICE(SideBySide);

}  // namespace
}  // namespace trifold::tests
