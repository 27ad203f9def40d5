// SPDX-License-Identifier: BSD-3-Clause
// Long systems that do not decay, and several of them: both passes without pivots, what they leave to pivots, the edges
// of windows.
#include "cuda/long_system.hpp"

namespace trifold::tests {
namespace {

using LongSystems = LongSystem;

/// Rows of a window and of a lane (src/backends/cuda/tridiagonal/device/windows.cu).
template <class T>
constexpr std::size_t window = sizeof(T) == 8 ? 2304 : 4352;
template <class T>
constexpr std::size_t chunk = sizeof(T) == 8 ? 9 : 17;

template <class T>
System<T> laplace(std::size_t n, double more, std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(-1, 1);
    System<T> s(n);
    for (std::size_t i = 0; i < n; ++i)
        s.lower[i] = s.upper[i] = -1, s.diag[i] = static_cast<T>(2 + more), s.rhs[i] = static_cast<T>(any(random));
    return s;
}

/// Without pivots: nobody has looked at residuals as the pivoted passes do.
bool unpivoted(const Outcome& outcome) {
    return std::isnan(outcome.residual) && outcome.rescued == 0;
}

TEST_F(LongSystems, ThatDoNotDecayTakeTwoPasses) {
    std::mt19937_64 random(21);
    const auto check = [&]<class T>(T) {
        for (const std::size_t windows : {700, 1500})  // shorter ones all multiprocessors hold
            for (const int beside : {-1, 0, 1, 2, 300}) {
                if (windows > 1000 && beside != 2) continue;  // long enough for all that a block does in turns
                auto system = laplace<T>(windows * window<T> + static_cast<std::size_t>(beside), 0, random);
                SCOPED_TRACE(system.size());
                std::vector<T> x, again;
                const Outcome outcome = solve(system, x, Algorithm::automatic);
                expect_good(system, x, outcome);
                EXPECT_STREQ(outcome.branch, "two_pass");
                EXPECT_TRUE(outcome.tried_other);
                EXPECT_TRUE(unpivoted(outcome));
                solve(system, again, Algorithm::automatic);
                EXPECT_EQ(x, again);
                if (HasFatalFailure()) return;
            }
    };
    check(double());
    check(float());
}

// As many windows as a warp solves as a whole are coupled in one pass, whatever they do to each other; one more is not. (By name: else these are a cluster's, or all multiprocessors hold them.)
TEST_F(LongSystems, OfFewWindowsTakeOnePass) {
    std::mt19937_64 random(28);
    const auto check = [&]<class T>(T) {
        for (const std::size_t windows : {16, 31, 32, 33, 46, 63, 64, 65})
            for (const std::size_t less : {std::size_t{0}, window<T> / 2}) {
                auto system = laplace<T>(windows * window<T> - less, 0, random);
                SCOPED_TRACE(system.size());
                std::vector<T> x, again;
                const Outcome outcome = solve(system, x, Algorithm::certified);
                if (windows > 64) {
                    EXPECT_EQ(outcome.reason, Reason::not_certified);
                    continue;
                }
                expect_good(system, x, outcome);
                EXPECT_STREQ(outcome.branch, "certified");
                EXPECT_TRUE(unpivoted(outcome));
                solve(system, again, Algorithm::certified);
                EXPECT_EQ(x, again);
                if (HasFatalFailure()) return;
            }
    };
    check(double());
    check(float());
}

// Where rows sum to nothing and couplings face each other with one sign, errors are far below the condition number (4 n^2 /
// pi^2) times the roundoff: chunks that are alike do not add up their roundings.
TEST_F(LongSystems, KeepTheSumsOfRows) {
    std::mt19937_64 random(26);
    const auto check = [&]<class T>(T) {
        for (const auto& [windows, kind] : {std::pair{41, 0}, {41, 1}, {41, 2}, {41, 3}, {150, 0}, {150, 3}, {450, 0}, {450, 3}}) {
            SCOPED_TRACE(testing::Message() << windows << " windows, kind " << kind);
            const std::size_t n = static_cast<std::size_t>(windows) * window<T> + 5;
            auto system = laplace<T>(n, 0, random);
            std::uniform_int_distribution<int> conductance(768, 1280);  // their sums are exact
            T before = 1024;
            for (std::size_t i = 0; i < n; ++i) {
                if (kind == 1) system.lower[i] = system.upper[i] = 1, system.diag[i] = -2;
                if (kind == 2) system.lower[i] = system.upper[i] = 1;
                if (kind != 3) continue;
                const auto after = static_cast<T>(conductance(random));
                system.lower[i] = -before, system.upper[i] = -after, system.diag[i] = before + after;
                before = after;
            }
            std::vector<T> x;
            expect_good(system, x, solve(system, x, Algorithm::automatic));
            if (HasFatalFailure()) return;
            const auto truth = system.exact();
            typename System<T>::Twice error = 0, largest = 0;
            for (std::size_t i = 0; i < n; ++i)
                error = std::max(error, std::abs(x[i] - truth[i])), largest = std::max(largest, std::abs(truth[i]));
            const double condition = 0.4 * static_cast<double>(n) * static_cast<double>(n);
            EXPECT_LE(error, 1e-3 * condition * unit_roundoff(sizeof(T) == 8 ? DType::f64 : DType::f32) * largest);
        }
    };
    check(double());
    check(float());
}

// Rows multiplied by powers of two say the same: pivots are chosen alike, and x is the same bit by bit.
TEST_F(LongSystems, PivotsDoNotDependOnTheScaleOfRows) {
    std::mt19937_64 random(31);
    const auto check = [&]<class T>(T) {
        for (const std::size_t n : {1000, 20011, 300000}) {
            SCOPED_TRACE(n);
            auto system = random_system<T>(n, 0, random);
            std::uniform_real_distribution<double> any(-1, 1);
            for (std::size_t i = 0; i < n; ++i) system.diag[i] = static_cast<T>(any(random));
            auto scaled = system;
            for (std::size_t i = 0; i < n; ++i) {
                const int by = static_cast<int>(random() % 41) - 20;
                for (auto* const band : {&scaled.lower, &scaled.diag, &scaled.upper, &scaled.rhs}) (*band)[i] = std::ldexp((*band)[i], by);
            }
            std::vector<T> x, y;
            const Outcome one = solve(system, x, Algorithm::two_pass), other = solve(scaled, y, Algorithm::two_pass);
            ASSERT_TRUE(one.ok() && other.ok());
            ASSERT_EQ(one.reason, other.reason);
            EXPECT_EQ(x, y);
        }
    };
    check(double());
    check(float());
}

// What needs pivots is solved by many lanes: that one thread could do it too, in a thousand times the time, must not hide that they fail.
TEST_F(LongSystems, PivotsAreFoundInTwoPasses) {
    std::mt19937_64 random(32);
    const auto check = [&]<class T>(T) {
        std::uniform_real_distribution<double> any(-1, 1);
        for (const bool forgets : {true, false})
            for (const std::size_t n : {std::size_t{140003}, std::size_t{300000}, std::size_t{700001}, std::size_t{1200003}, std::size_t{2500003}}) {  // by one team of each block, by three, these in turns, long chunks (FP64)
                System<T> system(n);
                for (std::size_t i = 0; i < n; ++i) {
                    system.lower[i] = static_cast<T>(forgets ? any(random) : -1), system.diag[i] = static_cast<T>(forgets ? any(random) : 0.7);
                    system.upper[i] = static_cast<T>(forgets ? any(random) : -1), system.rhs[i] = static_cast<T>(any(random));
                }
                for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::two_pass})
                    for (const auto& [off, in_place] : {std::pair{0, false}, {1, false}, {0, true}}) {
                        SCOPED_TRACE(testing::Message() << (forgets ? "random" : "waves") << ", " << n << " rows, off " << off << (in_place ? ", in place" : "") << ", algorithm " << static_cast<int>(algorithm));
                        std::vector<T> x;
                        const Outcome outcome = solve_there(system, x, off, in_place, algorithm);
                        expect_good(system, x, outcome);
                        if (algorithm == Algorithm::two_pass) EXPECT_STREQ(outcome.branch, "two_pass");
                        else EXPECT_STRNE(outcome.branch, "lu");  // waves of few windows need no pivots
                        if (HasFatalFailure()) return;
                    }
                // Who would come to it row by row, from the first one on, names the same one.
                const std::size_t bad = n - 5;
                system.rhs[bad] = std::numeric_limits<T>::quiet_NaN(), system.diag[bad + 2] = std::numeric_limits<T>::infinity();
                for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::two_pass})
                    for (const bool in_place : {false, true}) {
                        std::vector<T> x;
                        const Outcome outcome = solve_there(system, x, 0, in_place, algorithm);
                        EXPECT_EQ(outcome.reason, Reason::not_finite);
                        EXPECT_EQ(outcome.row, static_cast<std::int64_t>(bad));
                        if (in_place && algorithm == Algorithm::two_pass) EXPECT_EQ(x[bad - 1], system.rhs[bad - 1]);
                    }
            }
    };
    check(double());
    check(float());
}

// From what needs the windows beside it to what needs more than there are.
TEST_F(LongSystems, DecayOverManyRows) {
    std::mt19937_64 random(22);
    const auto check = [&]<class T>(T) {
        for (const double more : {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-9}) {
            SCOPED_TRACE(more);
            auto system = laplace<T>(2600017, more, random);
            std::vector<T> x;
            const Outcome outcome = solve(system, x, Algorithm::automatic);
            expect_good(system, x, outcome);
            EXPECT_TRUE(unpivoted(outcome));
            if (more >= 1e-5) {
                EXPECT_STREQ(outcome.branch, "certified");
            }
            if (more <= 1e-8) {
                EXPECT_STREQ(outcome.branch, "two_pass");
            }
        }
    };
    check(double());
    check(float());
}

// Large couplings across the edge of a window, and pivots that vanish there.
TEST_F(LongSystems, EdgesOfWindows) {
    std::mt19937_64 random(23);
    const auto check = [&]<class T>(T) {
        for (const double dominance : {0.0, 1.02, 3.0})
            for (const int beside : {-2, -1, 0, 1})
                for (const int kind : {0, 1, 2}) {
                    SCOPED_TRACE(testing::Message() << dominance << " " << beside << " " << kind);
                    const std::size_t n = 60 * window<T> + 7;
                    auto system = dominance == 0 ? laplace<T>(n, 0, random) : random_system<T>(n, dominance, random);
                    for (const std::size_t w : {1, 5, 19}) {
                        const std::size_t i = w * window<T> + static_cast<std::size_t>(beside);
                        if (kind == 0) system.lower[i] *= T(1e5), system.upper[i] *= T(-1e5);
                        if (kind == 1) system.diag[i] = 0;
                        if (kind == 2) system.diag[i] *= T(1e-12);
                    }
                    std::vector<T> x;
                    expect_good(system, x, solve(system, x, Algorithm::automatic));
                    if (HasFatalFailure()) return;
                }
    };
    check(double());
    check(float());
}

TEST_F(LongSystems, InPlace) {
    std::mt19937_64 random(24);
    for (const int kind : {0, 1, 2}) {
        SCOPED_TRACE(kind);
        auto system = laplace<double>(2600031, kind == 2 ? 1e-3 : 0, random);
        // Late enough that windows have been stored, a pivot vanishes.
        if (kind != 0) system.diag[100 * window<double> + 40 * chunk<double>] = 0;
        std::vector<double> x = system.rhs;
        auto problem = system.problem(x);
        problem.rhs = View<double>::rows(x);
        const Outcome outcome = tridiagonal::solve(*queue, problem, {});
        expect_good(system, x, outcome);
        EXPECT_STREQ(outcome.branch, "two_pass");
        EXPECT_EQ(unpivoted(outcome), kind == 0);
    }
}

TEST_F(LongSystems, SayWhatIsWrong) {
    std::mt19937_64 random(25);
    auto system = laplace<double>(110003, 0, random);
    std::vector<double> x;
    system.rhs[70001] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(solve(system, x, Algorithm::automatic).reason, Reason::not_finite);
    system.rhs[70001] = 1;
    system.lower[70001] = system.diag[70001] = system.upper[70001] = 0;
    EXPECT_EQ(solve(system, x, Algorithm::automatic).reason, Reason::singular);
}

/// Systems side by side in memory, each `pitch` elements after the one before.
struct Several {
    std::vector<System<double>> one;
    std::vector<double> lower, diag, upper, rhs, x;
    std::int64_t rows, pitch;
    std::vector<std::int8_t> status;

    Several(std::vector<System<double>> systems, std::int64_t pitch)
        : one(std::move(systems)), rows(static_cast<std::int64_t>(one[0].size())), pitch(pitch), status(one.size()) {
        const auto all = [&](std::vector<double> System<double>::*member) {
            std::vector<double> to(one.size() * static_cast<std::size_t>(pitch),
                                   std::numeric_limits<double>::quiet_NaN());
            for (std::size_t k = 0; k < one.size(); ++k)
                std::copy((one[k].*member).begin(), (one[k].*member).end(),
                          to.begin() + static_cast<std::ptrdiff_t>(k) * pitch);
            return to;
        };
        lower = all(&System<double>::lower), diag = all(&System<double>::diag), upper = all(&System<double>::upper),
        rhs = all(&System<double>::rhs);
        for (std::size_t k = 0; k < one.size(); ++k)
            lower[k * static_cast<std::size_t>(pitch)] =
                upper[k * static_cast<std::size_t>(pitch) + one[k].size() - 1] =
                    std::numeric_limits<double>::quiet_NaN();
        x.assign(rhs.size(), -77);
    }

    tridiagonal::Problem problem(bool in_place) {
        const auto count = static_cast<std::int64_t>(one.size());
        tridiagonal::Problem p;
        p.matrix.lower = View<const double>::contiguous(lower.data(), count, rows, pitch),
        p.matrix.diag = View<const double>::contiguous(diag.data(), count, rows, pitch);
        p.matrix.upper = View<const double>::contiguous(upper.data(), count, rows, pitch);
        if (in_place) x = rhs;
        p.rhs = in_place ? View<const double>::contiguous(x.data(), count, rows, pitch)
                         : View<const double>::contiguous(rhs.data(), count, rows, pitch);
        p.x = View<double>::contiguous(x.data(), count, rows, pitch);
        return p;
    }

    std::vector<double> solution(std::size_t k) const {
        const auto begin = x.begin() + static_cast<std::ptrdiff_t>(k) * pitch;
        return {begin, begin + rows};
    }
};

TEST_F(LongSystems, SeveralInOneLaunch) {
    std::mt19937_64 random(26);
    for (const std::int64_t n : {30000, 30011, 46080, 100001})
        for (const std::int64_t gap : {0, 5})
            for (const bool in_place : {false, true}) {
                SCOPED_TRACE(testing::Message() << n << " " << gap << " " << in_place);
                const auto rows = static_cast<std::size_t>(n);
                std::vector<System<double>> systems;
                for (int k = 0; k < 12; ++k)
                    systems.push_back(k % 3 == 0 ? laplace<double>(rows, k == 3 ? 1e-6 : 0, random)
                                                 : random_system<double>(rows, k % 3 == 1 ? 1.02 : 3, random));
                systems[4].diag[20007] = 0;  // wants a pivot
                systems[6].diag[20007] = 0;
                systems[7].lower[25000] = systems[7].diag[25000] = systems[7].upper[25000] = 0;  // singular
                systems[8].rhs[29000] = std::numeric_limits<double>::infinity();
                Several all(std::move(systems), n + gap);
                const auto problem = all.problem(in_place);
                tridiagonal::Options options;
                options.status = all.status.data();
                const Outcome outcome = tridiagonal::solve(*queue, problem, options);
                EXPECT_EQ(outcome.failures, 2);
                EXPECT_EQ(outcome.system, 7);
                EXPECT_EQ(outcome.row, n - 1);  // rows are exchanged until there is none
                EXPECT_EQ(outcome.reason, Reason::singular);
                for (std::size_t k = 0; k < all.one.size(); ++k) {
                    SCOPED_TRACE(k);
                    const Reason expected = k == 7 ? Reason::singular : k == 8 ? Reason::not_finite : Reason::exact;
                    EXPECT_EQ(all.status[k], static_cast<std::int8_t>(expected));
                    Outcome own;
                    own.reason = Reason::exact;
                    if (expected == Reason::exact) expect_good(all.one[k], all.solution(k), own);
                    if (HasFatalFailure()) return;
                }
                for (std::size_t k = 0; k + 1 < all.one.size(); ++k)
                    for (std::int64_t g = 0; g < gap; ++g) {
                        const double between =
                            all.x[k * static_cast<std::size_t>(n + gap) + rows + static_cast<std::size_t>(g)];
                        EXPECT_TRUE(in_place ? std::isnan(between) : between == -77);
                    }
            }
}

// One after the other without gaps they are one long system whose couplings between systems are nobody's: what lies there is not read, and a system
// beside one that is 10^12 times larger is as exact as by itself.
TEST_F(LongSystems, SideBySideWithoutGaps) {
    std::mt19937_64 random(29);
    for (const std::int64_t n : {30000, 30011, 33792})  // longer than a cluster takes
        for (const bool in_place : {false, true})
            for (const int bad : {-1, 0, 23, 46}) {
                SCOPED_TRACE(testing::Message() << n << " " << in_place << " " << bad);
                std::vector<System<double>> systems;
                for (int k = 0; k < 47; ++k) {
                    systems.push_back(random_system<double>(static_cast<std::size_t>(n), 3, random));
                    if (k % 3 == 1)
                        for (double& f : systems.back().rhs) f *= 1e-12;
                    if (k % 5 == 2)
                        for (double& f : systems.back().rhs) f = 0;
                }
                if (bad >= 0) systems[static_cast<std::size_t>(bad)] = laplace<double>(static_cast<std::size_t>(n), 0, random);
                Several all(std::move(systems), n);
                const auto problem = all.problem(in_place);
                const Outcome outcome = tridiagonal::solve(*queue, problem);
                EXPECT_EQ(outcome.reason, Reason::exact);
                EXPECT_EQ(outcome.rescued, 0);
                EXPECT_STREQ(outcome.branch, "certified");
                EXPECT_TRUE(std::isnan(outcome.certificate));
                for (std::size_t k = 0; k < all.one.size(); ++k) {
                    SCOPED_TRACE(k);
                    expect_good(all.one[k], all.solution(k), outcome);
                    if (HasFatalFailure()) return;
                }
            }
}

// Shorter ones, many of them: windows with halos come before the kernels that keep a system on chip, which have all where one does not decay.
TEST_F(LongSystems, ManyThatAlsoFitTheChip) {
    std::mt19937_64 random(31);
    for (const auto& [n, in_place] : {std::pair{6402, false}, std::pair{20001, false}, std::pair{8192, true}}) {
        const auto rows = static_cast<std::size_t>(n);
        std::vector<System<double>> systems;
        for (int k = 0; k <= (1 << 22) / n; ++k) {
            systems.push_back(random_system<double>(rows, 3, random));
            if (k % 3 == 1)
                for (double& f : systems.back().rhs) f *= 1e-12;
        }
        Several all(std::move(systems), n);
        for (const int kind : {0, 1, 2}) {
            SCOPED_TRACE(testing::Message() << n << " " << in_place << " " << kind);
            auto& other = all.one[150];
            if (kind >= 1) other = laplace<double>(rows, 0, random);
            if (kind == 2) other.diag[300] = 0;  // wants a pivot
            const std::ptrdiff_t at = 150 * n;
            std::copy(other.lower.begin() + 1, other.lower.end(), all.lower.begin() + at + 1), std::copy(other.diag.begin(), other.diag.end(), all.diag.begin() + at);
            std::copy(other.upper.begin(), other.upper.end() - 1, all.upper.begin() + at), std::copy(other.rhs.begin(), other.rhs.end(), all.rhs.begin() + at);
            all.status.assign(all.one.size(), 55);
            tridiagonal::Options options;
            options.status = all.status.data();
            const Outcome outcome = tridiagonal::solve(*queue, all.problem(in_place), options);
            EXPECT_EQ(outcome.reason, Reason::exact);
            EXPECT_STREQ(outcome.branch, "thomas");
            EXPECT_LE(outcome.rescued, kind == 2 ? 1 : 0);
            const std::vector<double> first = all.x;
            Outcome own;
            own.reason = Reason::exact;
            for (std::size_t k = 0; k < all.one.size(); ++k) {
                SCOPED_TRACE(k);
                ASSERT_EQ(all.status[k], static_cast<std::int8_t>(Reason::exact));
                if (k % 29 == 5 || k == 150) expect_good(all.one[k], all.solution(k), own);
                if (HasFatalFailure()) return;
            }
            ASSERT_TRUE(tridiagonal::solve(*queue, all.problem(in_place), options).ok());
            EXPECT_TRUE(all.x == first);
        }
    }
}

// Blocks take a window of another system with every turn, and learn at different times that one pass does not do for it:
// windows that are only reduced follow each other and others in any order.
TEST_F(LongSystems, ManyThatDoNotForget) {
    std::mt19937_64 random(27);
    constexpr std::int64_t n = 200000;
    std::vector<System<double>> systems;
    for (int k = 0; k < 48; ++k) systems.push_back(laplace<double>(n, 0, random));
    Several all(std::move(systems), n);
    std::vector<double> first;
    for (int round = 0; round < 8; ++round) {
        const auto problem = all.problem(false);
        const Outcome outcome = tridiagonal::solve(*queue, problem);
        ASSERT_TRUE(outcome.ok());
        EXPECT_EQ(outcome.rescued, 0);
        EXPECT_STREQ(outcome.branch, "two_pass");
        if (round == 0) {
            first = all.x;
            for (const std::size_t k : {0, 23, 47}) expect_good(all.one[k], all.solution(k), outcome);
        }
        EXPECT_TRUE(all.x == first) << "round " << round;
    }
}

}  // namespace
}  // namespace trifold::tests
