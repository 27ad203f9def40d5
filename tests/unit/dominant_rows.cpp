// SPDX-License-Identifier: BSD-3-Clause
// Two passes over rows like those of diffusion: no exchanges, no residual, sums of rows kept; and what is left to three rows.
#include <cmath>
#include <limits>

#include "backends/cpu/tridiagonal/finish.hpp"
#include "support/truth.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t chunk = 496;

/// Layers of conductance k: rows -k[i], k[i] + k[i+1] + more, -k[i+1].
template <class T>
Bands<T> layers(std::int64_t rows, double contrast, double more, double sign, std::uint64_t seed) {
    Random random(seed);
    Bands<T> s(rows);
    double above = 1;
    for (std::int64_t i = 0; i < rows; ++i) {
        const double below = std::pow(contrast, random.uniform(0, 1));
        s.lower[i] = static_cast<T>(-sign * above), s.upper[i] = static_cast<T>(-sign * below);
        s.diag[i] = static_cast<T>(-s.lower[i] - s.upper[i] + sign * more);
        s.rhs[i] = static_cast<T>(random.uniform(-1, 1));
        above = below;
    }
    s.lower.front() = s.upper.back() = T(0);
    return s;
}

template <class T>
double roundoffs(double value) { return value / unit_roundoff(dtype_of<T>); }

/// What `reduce` left of chunk k, one thread.
template <class T>
std::vector<tridiagonal::InterfaceRow> interface_rows(const Bands<T>& s) {
    std::vector<T> x(s.rhs.size());
    const tridiagonal::System system = tridiagonal::normalise(problem_of(s, x));
    const tridiagonal::Partition partition{s.rows(), chunk};
    std::vector<tridiagonal::InterfaceRow> rows(static_cast<std::size_t>(2 * partition.chunks()));
    std::vector<std::int64_t> zero_pivot(static_cast<std::size_t>(partition.chunks()));
    const Scratch64 scratch(cpu::two_pass_scratch(system, chunk, 1));
    tridiagonal::Launch launch;
    launch.scratch = scratch.data, launch.scratch_bytes = scratch.memory.size() - 64;
    cpu::reduce(system, partition, launch, rows.data(), zero_pivot.data());
    return rows;
}

/// Rows without exchanges leave one without x[first] and one without x[last+1].
template <class T>
bool without_exchanges(const Bands<T>& s, std::int64_t of) {
    const auto rows = interface_rows(s);
    return rows[2 * of].coefficient[1] == 0 && rows[2 * of + 1].coefficient[3] == 0;
}

constexpr std::int64_t some = 70 * chunk + 13;  // groups of 2 to 32 chunks, and a few left over

/// rough: of a right-hand side whose x has neighbours that differ; else the x of random numbers, which is smooth and large where nothing is forgotten.
template <class T>
void answers(double contrast, double more, double sign, bool rough) {
    Bands<T> s = layers<T>(some, contrast, more, sign, 7);
    if (rough) {
        Random random(8);
        std::vector<T> x(s.rhs.size());
        for (T& value : x) value = static_cast<T>(random.uniform(-1, 1));
        for (std::size_t i = 0; i < x.size(); ++i) s.rhs[i] = s.diag[i] * x[i] + (i > 0 ? s.lower[i] * x[i - 1] : T(0)) + (i + 1 < x.size() ? s.upper[i] * x[i + 1] : T(0));
    }
    // A diagonal of 10^4 in floats, rounded, may lack some thousandth of what is left of its row.
    if (sizeof(T) == 8 || contrast < 100) { ASSERT_TRUE(without_exchanges(s, 3)); }
    const std::vector<T> apart = two_pass(any_chunks(), s, chunk).x;
    for (const bool in_place : {false, true})
        for (const int threads : {1, 3}) {
            SCOPED_TRACE(testing::Message() << "contrast " << contrast << ", " << more << " more, sign " << sign << (rough ? ", rough, " : ", ") << trifold::name_of(dtype_of<T>));
            const Solved<T> solved = two_pass(any_chunks(), s, chunk, threads, in_place);
            EXPECT_EQ(solved.outcome.reason, Reason::exact);
            EXPECT_STREQ(solved.outcome.branch, "two_pass");
            EXPECT_LE(roundoffs<T>(solved.outcome.residual), 10);
            EXPECT_LE(roundoffs<T>(backward_error(cast<double>(s), as_double(solved.x))), 6);
            EXPECT_EQ(solved.x, apart);
        }
}

TEST(DominantRows, AreSolvedToAFewRoundings) {
    on_every_target([] {
        for (const double sign : {1.0, -1.0})
            for (const double contrast : {1.0, 20.0, 1e4})
                for (const double more : {0.0, 1e-7, 1e-5, 1e-3, 0.1, 10.0})
                    for (const bool rough : {false, true}) answers<double>(contrast, more, sign, rough), answers<float>(contrast, more, sign, rough);
    });
}

/// Layers of eight rows whose conductances are up to 10^4 apart: x of hundreds of rows is one and the same but for little, and every pivot is next to its coupling.
template <class T>
Bands<T> thick_layers(double number, std::uint64_t seed) {
    constexpr std::int64_t rows = 1200 * chunk + 13;
    Random random(seed);
    Bands<T> s(rows);
    double conductance = 0, above = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const double before = conductance;
        if (i % 8 == 0) conductance = std::pow(1e4, random.uniform(-0.5, 0.5));
        const double below = number * (i % 8 == 0 ? 2 * before * conductance / (before + conductance) : conductance);
        s.lower[i] = static_cast<T>(-above), s.upper[i] = static_cast<T>(-below), s.diag[i] = static_cast<T>(1 + above + below);
        s.rhs[i] = static_cast<T>(random.uniform(-1, 1));
        above = below;
    }
    s.lower.front() = s.upper.back() = T(0);
    return s;
}

template <class T>
void layered(double number, std::uint64_t seed) {
    SCOPED_TRACE(testing::Message() << "number " << number << ", seed " << seed << ", " << trifold::name_of(dtype_of<T>));
    const Solved<T> solved = two_pass(any_chunks(), thick_layers<T>(number, seed), chunk, 1);
    EXPECT_EQ(solved.outcome.reason, Reason::exact);
    EXPECT_LE(roundoffs<T>(solved.outcome.residual), 6);
}

TEST(DominantRows, RoundingsOfSmallDifferencesDoNotAddUp) {
    on_every_target([] {
        for (const double number : {1e5, 3e5, 1e6, 1e8})
            for (const std::uint64_t seed : {5, 6}) layered<double>(number, seed), layered<float>(number, seed);
    });
}

/// Poisson's equation with a known solution: the condition is of the order of rows², so what counts is how roundings add up.
TEST(DominantRows, ErrorsAddUpAsInLapack) {
    on_every_target([] {
        constexpr std::int64_t rows = 200 * chunk + 77;
        Bands<double> s = layers<double>(rows, 1, 0, 1, 8);
        std::vector<double> truth;
        for (const DoubleDouble value : true_solution(s)) truth.push_back(static_cast<double>(value));
        const auto error = [&](const std::vector<double>& x) {
            double most = 0, size = 0;
            for (std::int64_t i = 0; i < rows; ++i) most = std::max(most, std::abs(x[i] - truth[i])), size = std::max(size, std::abs(truth[i]));
            return most / size;
        };
        EXPECT_LE(error(two_pass(any_chunks(), s, chunk).x), 2 * error(gtsv(s).x));
    });
}

TEST(DominantRows, OthersAreLeftToThreeRows) {
    on_every_target([] {
        constexpr std::int64_t at = 3 * chunk + 77;
        const auto taken = [](auto change) {
            Bands<double> s = layers<double>(some, 3, 0, 1, 9);
            change(s);
            const Solved<double> solved = two_pass(any_chunks(), s, chunk);
            EXPECT_TRUE(solved.outcome.ok());
            EXPECT_LE(roundoffs<double>(backward_error(s, solved.x)), 10);
            return without_exchanges(s, 3);
        };
        EXPECT_TRUE(taken([](Bands<double>&) {}));
        EXPECT_TRUE(taken([](Bands<double>& s) { s.lower[at] = s.upper[at - 1] = 0; })) << "zeros have no sign";
        EXPECT_TRUE(taken([](Bands<double>& s) { s.diag[at] *= 1 - 1e-9; })) << "some roundings";
        EXPECT_FALSE(taken([](Bands<double>& s) { s.diag[at] *= 0.9; }));
        EXPECT_FALSE(taken([](Bands<double>& s) { s.lower[at] = -s.lower[at]; }));
        EXPECT_FALSE(taken([](Bands<double>& s) { s.upper[at] = -s.upper[at]; }));
        EXPECT_FALSE(taken([](Bands<double>& s) { s.diag[at] = -s.diag[at]; }));
        EXPECT_FALSE(taken([](Bands<double>& s) { s.lower[at] = -1e-280, s.diag[at] = 2e-280, s.upper[at] = -1e-280; })) << "sums would be flushed to zero";
        EXPECT_FALSE(taken([](Bands<double>& s) { s.lower[at] = -1e280, s.diag[at] = 2e280, s.upper[at] = -1e280, s.rhs[at] = 1e280; })) << "reciprocals would";
    });
}

template <class T>
void is_seen(std::int64_t row, T bad) {
    for (auto band : {&Bands<T>::lower, &Bands<T>::diag, &Bands<T>::upper, &Bands<T>::rhs}) {
        if ((band == &Bands<T>::lower && row == 0) || (band == &Bands<T>::upper && row == some - 1)) continue;
        Bands<T> s = layers<T>(some, 3, 0, 1, 10);
        (s.*band)[static_cast<std::size_t>(row)] = bad;
        for (const bool in_place : {false, true}) {
            const Outcome outcome = two_pass(any_chunks(), s, chunk, 2, in_place).outcome;
            if (std::isinf(bad) && band != &Bands<T>::rhs && outcome.ok()) { EXPECT_STREQ(outcome.branch, "lu"); }  // taken for its limit
            else EXPECT_EQ(outcome.reason, Reason::not_finite) << row;
        }
    }
}

TEST(DominantRows, NotFiniteIsSeenAnywhere) {
    on_every_target([] {
        for (const std::int64_t row : {std::int64_t{0}, std::int64_t{7}, chunk - 1, chunk, 3 * chunk - 2, std::int64_t{20000}, some - 1}) {
            for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) is_seen<double>(row, bad);
            for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) is_seen<float>(row, bad);
        }
    });
}

/// Neumann's conditions at both ends: the sums of all rows are zero, and so is the last pivot.
TEST(DominantRows, ASingularSystemIsNotSolved) {
    on_every_target([] {
        Bands<double> s = layers<double>(some, 1, 0, 1, 11);
        s.diag.front() = s.diag.back() = 1;
        for (const bool in_place : {false, true}) {
            const Solved<double> solved = two_pass(any_chunks(), s, chunk, 1, in_place);
            if (solved.outcome.ok()) { EXPECT_LE(roundoffs<double>(backward_error(s, solved.x)), 10); }
            else EXPECT_TRUE(solved.outcome.reason == Reason::singular || solved.outcome.reason == Reason::unstable) << trifold::name_of(solved.outcome.reason);
        }
    });
}

/// A device that shares a system finishes chunks beside others': where an end is not known, x is somebody else's.
TEST(DominantRows, NothingIsStoredBetweenUnknownEnds) {
    on_every_target([] {
        for (const bool waves : {false, true}) {
            const std::int64_t rows = waves ? (std::int64_t{1} << 19) + 200 : some;  // of waves, as many as two rows at a time are taken for
            Bands<double> s = layers<double>(rows, 3, 0, 1, 13);
            if (waves)
                for (std::int64_t i = 0; i < rows; ++i) s.lower[i] = s.upper[i] = 1, s.diag[i] = 0.5;
            s.lower.front() = s.upper.back() = 0;
            const std::vector<double> solution = two_pass(any_chunks(), s, chunk).x;
            std::vector<double> x(s.rhs.size(), 77);
            const tridiagonal::System system = tridiagonal::normalise(problem_of(s, x));
            const tridiagonal::Partition partition{rows, chunk};
            std::vector<double> boundary;
            for (std::int64_t k = 0; k < partition.chunks(); ++k) boundary.insert(boundary.end(), {solution[partition.first(k)], solution[partition.last(k)]});
            boundary[0] = boundary[2 * 21 + 1] = std::numeric_limits<double>::quiet_NaN();
            std::vector<tridiagonal::ChunkResidual> residuals(static_cast<std::size_t>(partition.chunks()));
            const Scratch64 scratch(cpu::two_pass_scratch(system, chunk, 1));
            tridiagonal::Launch launch;
            launch.scratch = scratch.data, launch.scratch_bytes = scratch.memory.size() - 64;
            cpu::finish(system, partition, launch, boundary.data(), std::numeric_limits<double>::infinity(), residuals.data());
            for (std::int64_t k = 0; k < partition.chunks(); ++k) {
                const bool unknown = k == 0 || k == 21 || k == 22;  // an end of its own, or the one before it
                EXPECT_EQ(residuals[static_cast<std::size_t>(k)].stored, !unknown) << k;
                const auto first = static_cast<std::size_t>(partition.first(k)), end = static_cast<std::size_t>(partition.last(k) + 1);
                for (std::size_t i = first; i < end; ++i) ASSERT_NEAR(x[i], unknown ? 77 : solution[i], unknown ? 0 : 1e-6 * (1 + std::abs(solution[i]))) << i;
            }
        }
    });
}

/// Long enough for x to go past the caches, by whole lines wherever it begins; nothing before or behind x is written.
template <class T>
void stored_whole(std::int64_t rows) {
    const Bands<T> s = layers<T>(rows, 3, 0, 1, 12);
    constexpr std::int64_t margin = 64;
    std::vector<T> expected;
    for (const std::int64_t offset : {0, 1, 5}) {
        std::vector<T> memory(static_cast<std::size_t>(rows + 2 * margin), T{77});
        T* const line = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) / sizeof(T);
        T* const x = line + 16 + offset;
        std::vector<T> unused(s.rhs.size());
        tridiagonal::System system = tridiagonal::normalise(problem_of(s, unused));
        system.x.data = x;
        const Scratch64 scratch(tridiagonal::two_pass_workspace(any_chunks(), system, 2, chunk));
        tridiagonal::Launch launch;
        launch.threads = 2, launch.scratch = scratch.data, launch.scratch_bytes = scratch.memory.size() - 64;
        ASSERT_EQ(tridiagonal::solve_two_pass(any_chunks(), system, launch, chunk).reason, Reason::exact);
        if (offset == 0) {
            expected.assign(x, x + rows);
            EXPECT_LE(roundoffs<T>(backward_error(cast<double>(s), as_double(expected))), 6);
        }
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), x)) << offset;
        EXPECT_TRUE(std::all_of(memory.data(), x, [](T value) { return value == T{77}; }));
        EXPECT_TRUE(std::all_of(x + rows, memory.data() + memory.size(), [](T value) { return value == T{77}; }));
    }
}

TEST(DominantRows, WholeLinesOfXWhereverItBegins) {
    stored_whole<double>(1'700'003);
    stored_whole<float>(3'400'003);
}

}  // namespace
}  // namespace trifold::tests
