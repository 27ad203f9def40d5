// SPDX-License-Identifier: BSD-3-Clause
#include "certified.hpp"

#include <cmath>

#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/truth.hpp"

namespace trifold::tests {
namespace {

template <class T>
class CertifiedSolve : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(CertifiedSolve, Types);

template <class T>
constexpr std::int64_t lanes = 64 / sizeof(T);

/// One implicit step of diffusion.
template <class T>
Bands<T> diffusion(std::int64_t n, double number, std::uint64_t seed = 1) {
    Random random(seed);
    Bands<T> s(n);
    for (std::int64_t i = 0; i < n; ++i) {
        s.lower[i] = s.upper[i] = static_cast<T>(-number);
        s.diag[i] = static_cast<T>(1 + 2 * number);
        s.rhs[i] = static_cast<T>(random.uniform(-1, 1));
    }
    return s;
}

template <class T>
double relative_error(const Bands<T>& s, const std::vector<T>& x) {
    const std::vector<DoubleDouble> truth = true_solution(cast<double>(s));
    double most = 0;
    for (const DoubleDouble value : truth) most = std::max(most, std::abs(value.hi));
    return largest_error(as_double(x), truth) / most;
}

TYPED_TEST(CertifiedSolve, EveryLengthAroundTheTilesInAndOutOfPlace) {
    using T = TypeParam;
    on_every_target([] {
        for (std::int64_t extra = 0; extra < 2 * lanes<T> + 3; ++extra)
            for (const bool in_place : {false, true}) {
                How how;
                how.in_place = in_place;
                how.offset = extra % lanes<T>;
                how.stretches = tiles<T>(7, 8, 9, 18, 0x1p-10 * unit_roundoff(dtype_of<T>));
                const std::int64_t n = lanes<T> * lanes<T> * 18 * (1 + extra % 3) + lanes<T> + 1 + extra * (lanes<T> / 2);
                const Bands<T> s = diffusion<T>(n, 0.2, extra);
                const Certified<T> result = certify(s, how);
                ASSERT_TRUE(result.accepted) << n;
                ASSERT_TRUE(result.fences) << n;
                ASSERT_LE(relative_error(s, result.x), 8 * unit_roundoff(dtype_of<T>)) << n;
                ASSERT_LE(result.outcome.certificate, 500 * unit_roundoff(dtype_of<T>));
                ASSERT_EQ(result.outcome.certified_share, 1);
            }
    });
}

TYPED_TEST(CertifiedSolve, PlansItsOwnStretches) {
    using T = TypeParam;
    for (const std::int64_t n : {20011, 100003, 1000003}) {
        How how;
        const Bands<T> s = diffusion<T>(n, 1);
        const Certified<T> result = certify(s, how);
        ASSERT_TRUE(result.accepted && result.fences) << n;
        EXPECT_LE(relative_error(s, result.x), 20 * unit_roundoff(dtype_of<T>));
        EXPECT_LE(result.outcome.certificate, 5e3 * unit_roundoff(dtype_of<T>));
    }
}

TYPED_TEST(CertifiedSolve, BitsDoNotDependOnThreads) {
    using T = TypeParam;
    const Bands<T> s = diffusion<T>(200003, 1);
    How how;
    const Certified<T> one = certify(s, how);
    ASSERT_TRUE(one.accepted);
    for (const int threads : {2, 3, 7})
        for (const bool in_place : {false, true}) {
            how.threads = threads, how.in_place = in_place;
            const Certified<T> many = certify(s, how);
            ASSERT_TRUE(many.accepted && many.fences);
            EXPECT_EQ(0, std::memcmp(one.x.data(), many.x.data(), one.x.size() * sizeof(T)));
            EXPECT_EQ(one.outcome.certificate, many.outcome.certificate);
        }
}

TYPED_TEST(CertifiedSolve, ScalarsForTheMatrix) {
    using T = TypeParam;
    const std::int64_t n = 50021;
    const Bands<T> s = diffusion<T>(n, 1);
    How how;
    const Certified<T> arrays = certify(s, how);
    std::vector<T> rhs = s.rhs, x(n + 64);
    T* const aligned = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(x.data()) + 63) / 64 * 64);
    System system;
    system.dtype = dtype_of<T>, system.rows = n;
    system.lower.value = system.upper.value = -1, system.diag.value = 3;
    system.rhs.kind = system.x.kind = Operand::Kind::view, system.rhs.row_stride = system.x.row_stride = 1;
    system.rhs.data = rhs.data(), system.x.data = aligned;
    Launch launch;
    launch.tolerance = unit_roundoff(dtype_of<T>);
    launch.scratch_bytes = tridiagonal::certified_workspace(sweep_ops(), system, 1);
    std::vector<std::byte> scratch(launch.scratch_bytes + 64);
    launch.scratch = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
    Outcome outcome;
    ASSERT_TRUE(tridiagonal::solve_certified(sweep_ops(), system, launch, outcome));
    EXPECT_EQ(0, std::memcmp(aligned, arrays.x.data(), n * sizeof(T)));
}

// One thread's part of a larger system is cut into few groups and stored past the caches: x is as good, and nothing is written beyond the scratch.
TYPED_TEST(CertifiedSolve, APartOfALargerSystem) {
    using T = TypeParam;
    for (const std::int64_t n : {8192, 12345, 16384, 20000, 50021, 300007, 1048576})
        for (const bool in_place : {false, true})
            for (const double diffusivity : {0.3, 1.0, 10.0, 100.0}) {
                const std::int64_t of_rows = n % 2 ? 0 : std::int64_t{1} << 30;
                const Bands<T> s = diffusion<T>(n, diffusivity);
                How how;
                how.in_place = in_place, how.part = {of_rows, true};
                const Certified<T> result = certify(s, how);
                // Whose halos are too long for so few rows is handed over.
                if (diffusivity > 1 && !result.accepted) continue;
                ASSERT_TRUE(result.accepted && result.fences) << n << (in_place ? ", in place" : "");
                EXPECT_TRUE(result.outcome.ok());
                EXPECT_LE(backward_error(cast<double>(s), as_double(result.x)), 8 * unit_roundoff(dtype_of<T>)) << n << (in_place ? ", in place" : "");
            }
}

TEST(CertifiedSolveF32, IsExactWhereOnlyTheForwardBoundIsLost) {
    // Condition 4e4 leaves FP32 a bound of a few per cent; the backward error is that of elimination in one go.
    const Bands<float> s = diffusion<float>(300007, 3e3);
    for (const bool in_place : {false, true}) {
        How how;
        how.in_place = in_place;
        const Certified<float> result = certify(s, how);
        ASSERT_TRUE(result.accepted && result.fences);
        EXPECT_EQ(result.outcome.reason, Reason::exact);
        EXPECT_TRUE(std::isnan(result.outcome.certificate));
        EXPECT_LE(backward_error(cast<double>(s), as_double(result.x)), 8 * unit_roundoff(DType::f32));
    }
}

/// In place and handed over: the right-hand side is there again, to rounding.
template <class T>
void expect_handed_over(const Bands<T>& s, How how, Reason reason) {
    how.in_place = false;
    const Certified<T> apart = certify(s, how);
    ASSERT_FALSE(apart.accepted);
    EXPECT_EQ(apart.outcome.reason, reason);
    how.in_place = true;
    for (const int threads : {1, 2}) {
        how.threads = threads;
        const Certified<T> result = certify(s, how);
        ASSERT_FALSE(result.accepted);
        ASSERT_TRUE(result.fences);
        EXPECT_EQ(result.outcome.reason, reason);
        double scale = 0;
        for (std::int64_t i = 0; i < s.rows(); ++i)
            if (std::isfinite(s.rhs[i])) scale = std::max(scale, std::abs(static_cast<double>(s.rhs[i])));
        for (std::int64_t i = 0; i < s.rows(); ++i) {
            if (!std::isfinite(s.rhs[i])) continue;
            ASSERT_LE(std::abs(static_cast<double>(result.x[i]) - static_cast<double>(s.rhs[i])), 50 * unit_roundoff(dtype_of<T>) * scale) << i;
        }
    }
}

template <class T>
How small_stretches() {
    How how;
    how.stretches = tiles<T>(7, 8, 9, 18, 0x1p-10 * unit_roundoff(dtype_of<T>));
    return how;
}

TYPED_TEST(CertifiedSolve, HandsOverWhereNothingDecays) {
    using T = TypeParam;
    Bands<T> s = diffusion<T>(lanes<T> * lanes<T> * 18 * 6 + 50, 0.2);
    // Decay ends in the midst of the third group, after others were stored.
    for (std::int64_t i = lanes<T> * lanes<T> * 18 * 2 + 999; i < s.rows(); ++i) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2;
    expect_handed_over(s, small_stretches<T>(), Reason::not_certified);
}

TYPED_TEST(CertifiedSolve, HandsOverAtSmallPivots) {
    using T = TypeParam;
    for (const T pivot : {T(0), T(1e-3)}) {
        Bands<T> s = diffusion<T>(lanes<T> * lanes<T> * 18 * 4 + 50, 0.2);
        const std::int64_t bad = lanes<T> * lanes<T> * 18 * 2 + 777;
        s.lower[bad] = 0, s.diag[bad] = pivot;
        expect_handed_over(s, small_stretches<T>(), Reason::unstable);
    }
}

TYPED_TEST(CertifiedSolve, HandsOverNaNAndInfinity) {
    using T = TypeParam;
    for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()})
        for (int array = 0; array < 4; ++array)
            for (const std::int64_t place : {std::int64_t{1}, std::int64_t{777}, lanes<T> * lanes<T> * 36 + 40}) {
                Bands<T> s = diffusion<T>(lanes<T> * lanes<T> * 18 * 2 + 50 + lanes<T>, 0.2);
                std::vector<T>* const arrays[] = {&s.lower, &s.diag, &s.upper, &s.rhs};
                (*arrays[array])[place] = bad;
                How how = small_stretches<T>();
                const Certified<T> result = certify(s, how);
                if (array == 1 && std::isinf(bad)) continue;  // x = 0 there: a solution
                EXPECT_FALSE(result.accepted) << array << " " << place;
            }
}

TYPED_TEST(CertifiedSolve, AValueBeyondTheBlockIsSeen) {
    using T = TypeParam;
    // Halos end at the tolerance itself; blocks of size 1 lie before one of 1e12, and their truncation is 1e12 times larger.
    How how;
    how.stretches = tiles<T>(7, 8, 9, 18, unit_roundoff(dtype_of<T>));
    Bands<T> s = diffusion<T>(lanes<T> * lanes<T> * 18 * 2 + 50, 0.2);
    EXPECT_TRUE(certify(s, how).accepted);
    const std::int64_t giant = lanes<T> + 20 * 9 * lanes<T> + 6 * lanes<T>;  // in the halo of a block, but for its end
    for (std::int64_t i = giant; i < giant + 2 * lanes<T>; ++i) s.rhs[i] *= T(1e12);
    const Certified<T> result = certify(s, how);
    if (result.accepted) {
        EXPECT_LE(relative_error(s, result.x), result.outcome.certificate);
    }
    how.stretches.close = 0x1p-42 * unit_roundoff(dtype_of<T>);
    how.stretches.right *= 2, how.stretches.block *= 2, how.stretches.length *= 2;
    EXPECT_TRUE(certify(s, how).accepted);
}

TYPED_TEST(CertifiedSolve, ZerosAreExact) {
    using T = TypeParam;
    Bands<T> s = diffusion<T>(30011, 1);
    std::fill(s.rhs.begin(), s.rhs.end(), T(0));
    const Certified<T> result = certify(s, How{});
    ASSERT_TRUE(result.accepted);
    EXPECT_EQ(result.outcome.certificate, 0);
    for (const T value : result.x) ASSERT_EQ(value, 0);
    s.rhs[15000] = 1;  // a source in the midst of them
    EXPECT_TRUE(certify(s, How{}).accepted);
}

TYPED_TEST(CertifiedSolve, RefusesPoissonBeforeAnythingIsStored) {
    using T = TypeParam;
    Bands<T> s = diffusion<T>(100003, 1);
    std::fill(s.diag.begin(), s.diag.end(), T(2));
    How how;
    how.in_place = true;
    const Certified<T> result = certify(s, how);
    EXPECT_FALSE(result.accepted);
    EXPECT_EQ(result.outcome.reason, Reason::not_certified);
    EXPECT_EQ(0, std::memcmp(result.x.data(), s.rhs.data(), s.rhs.size() * sizeof(T)));
}

TEST(CertifiedRefuses, WhatItCannotRead) {
    System system;
    system.rows = 100000;
    system.x.kind = system.rhs.kind = Operand::Kind::view;
    system.x.row_stride = system.rhs.row_stride = 1;
    EXPECT_EQ(tridiagonal::certified_refuses(sweep_ops(), system), nullptr);
    System other = system;
    other.rows = 1000;
    EXPECT_STREQ(tridiagonal::certified_refuses(sweep_ops(), other), "there are too few rows to cut");
    other = system, other.rhs.row_stride = 2;
    EXPECT_STREQ(tridiagonal::certified_refuses(sweep_ops(), other), "certified needs rows that lie side by side");
    other = system, other.periodic = true;
    EXPECT_NE(tridiagonal::certified_refuses(sweep_ops(), other), nullptr);
    other = system, other.accumulate = true;
    EXPECT_NE(tridiagonal::certified_refuses(sweep_ops(), other), nullptr);
    other = system, other.levels = 1;
    EXPECT_NE(tridiagonal::certified_refuses(sweep_ops(), other), nullptr);
    EXPECT_NE(tridiagonal::certified_refuses(tridiagonal::Ops{}, system), nullptr);
}

}  // namespace
}  // namespace trifold::tests
