// SPDX-License-Identifier: BSD-3-Clause
// A warp of windows and of a cluster's systems on the host: what is left of its rows, x between known ends, and when nobody need look at residuals.
#include "cuda_warps_on_host.hpp"

#include "backends/cuda/tridiagonal/device/windows_lane.cuh"

#include <gtest/gtest.h>

#include <vector>

#include "support/random.hpp"

namespace trifold::tests {
namespace {

using namespace cuda;

constexpr int lanes = 32;

template <class T>
struct Warp {
    std::vector<T> a, b, c, d;
    explicit Warp(int rows) : a(static_cast<std::size_t>(rows)), b(a.size()), c(a.size()), d(a.size()) {}
};

template <class T>
struct Found {
    windows::Whole<T> whole;  ///< of reduce_only
    bool dominant = true;     ///< of reduce, which looks for such rows
    bool good = true;
    std::vector<T> x;
};

/// x of all rows between x = 1 before them and x = -1 after them, R rows a lane.
template <class T, int R>
Found<T> solve(const Warp<T>& rows) {
    Found<T> found;
    found.x.resize(rows.a.size());
    BlocksOnHost(1, lanes, 128, false).run([&](unsigned char*) {
        const int lane = thread_number(), first = lane * R;
        const auto at = [&](const std::vector<T>& of) { return of.data() + first; };
        const T u = std::numeric_limits<T>::epsilon() / 2;
        windows::Lane<T, R> state;
        windows::Way way;
        windows::Part<T> part;
        state.reduce(at(rows.a), at(rows.b), at(rows.c), at(rows.d), lane, part, way);
        found.dominant &= state.dominant;
        windows::Whole<T> whole;
        whole.negligible = 0;
        bool sums = false;
        state.reduce_only(at(rows.a), at(rows.b), at(rows.c), at(rows.d), lane, whole, sums);
        if (lane == 0) found.whole = whole;
        const T before = 1, after = -1, end = whole.last.d - whole.last.a * before - whole.last.c * after;
        T x[R], left, largest = 1;
        state.solve(at(rows.a), at(rows.c), at(rows.d), before, end, lane, x, left, whole.apart);
        T below = __shfl_down_sync(~0u, x[0], 1);
        if (lane == lanes - 1) below = after;
        for (int i = 0; i < R; ++i) largest = fmax(largest, fabs(x[i]));
        T stored[R];
        std::copy(at(rows.d), at(rows.d) + R, stored);
        found.good &= state.check(at(rows.a), at(rows.b), at(rows.c), stored, x, left, largest, 16 * u, [&] { return below; });
        std::copy(stored, stored + R, found.x.begin() + first);
    });
    return found;
}

template <class T>
Warp<T> made(int rows, double diagonal, double coupling, std::uint64_t seed) {
    Random random(seed);
    Warp<T> warp(rows);
    for (std::size_t i = 0; i < warp.a.size(); ++i) {
        warp.a[i] = static_cast<T>(coupling ? coupling : random.uniform(-1, 1)), warp.c[i] = static_cast<T>(coupling ? coupling : random.uniform(-1, 1));
        warp.b[i] = static_cast<T>(diagonal), warp.d[i] = static_cast<T>(random.uniform(-1, 1));
    }
    return warp;
}

/// The largest error beside the largest |x|.
template <class T>
double error_of(const Warp<T>& rows, const std::vector<T>& x) {
    const std::size_t n = x.size();
    std::vector<long double> c(n), y(n);
    for (std::size_t i = 0; i < n; ++i) {
        const long double f = rows.d[i] - (i ? 0 : rows.a[i] * 1.0L) - (i + 1 < n ? 0 : rows.c[i] * -1.0L), p = rows.b[i] - (i ? rows.a[i] * c[i - 1] : 0);
        c[i] = rows.c[i] / p, y[i] = (f - (i ? rows.a[i] * y[i - 1] : 0)) / p;
    }
    for (std::size_t i = n - 1; i-- > 0;) y[i] -= c[i] * y[i + 1];
    long double error = 0, largest = 0;
    for (std::size_t i = 0; i < n; ++i) error = std::max(error, std::abs(x[i] - y[i])), largest = std::max(largest, std::abs(y[i]));
    return static_cast<double>(error / largest);
}

template <class T>
class WindowsLane : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(WindowsLane, Types);

template <class T, int R>
void check() {
    constexpr double u = std::numeric_limits<T>::epsilon() / 2;
    SCOPED_TRACE(testing::Message() << R << " rows a lane");
    const auto dominant = made<T>(lanes * R, 3, 0, 1);
    const auto found = solve<T, R>(dominant);
    EXPECT_TRUE(found.dominant && found.whole.light && found.good);
    EXPECT_LE(error_of(dominant, found.x), 8 * u);

    const auto poisson = made<T>(lanes * R, 2, -1, 2);
    const auto sums = solve<T, R>(poisson);
    EXPECT_FALSE(sums.dominant);
    EXPECT_TRUE(sums.whole.light && sums.good);
    EXPECT_LE(error_of(poisson, sums.x), 1e-3 * 0.4 * (lanes * R) * (lanes * R) * u + 8 * u);

    // Its reciprocal is flushed to 0: x would be 0 in its row, and all beside it looks well.
    auto large = dominant;
    large.b[R + 2] = large.d[R + 2] = std::numeric_limits<T>::max() * T(0.7);
    const auto flushed = solve<T, R>(large);
    EXPECT_FALSE(flushed.dominant || flushed.whole.light || flushed.good);

    auto nothing = dominant;
    nothing.d[5 * R] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_FALSE((solve<T, R>(nothing).good));
}

TYPED_TEST(WindowsLane, KnowsWhenToLook) {
    using T = TypeParam;
    check<T, 4>(), check<T, 8>(), check<T, 13>(), check<T, sizeof(T) == 8 ? 9 : 17>();
}

}  // namespace
}  // namespace trifold::tests
