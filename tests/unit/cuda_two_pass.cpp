// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the GPU's two passes, on the host: chunks reduced, merged level by level, spread and solved, in the order of
// the kernels but without their memory.
#define __device__
#define __host__
#include <algorithm>
#include <cmath>
#include <random>
using std::abs, std::max, std::min;
#include "backends/cuda/tridiagonal/device/chunk.cuh"
#include "backends/cuda/tridiagonal/device/couple.cuh"

#include <gtest/gtest.h>

#include "support/lapack.hpp"
#include "support/measure.hpp"
#include "support/truth.hpp"
#include "support/zoo.hpp"

namespace trifold::tests {
namespace {

template <class T>
struct Rows {
    Bands<T>* s;
    std::int64_t first;
    T& lower(int i) const { return s->lower[first + i]; }
    T& diag(int i) const { return s->diag[first + i]; }
    T& upper(int i) const { return s->upper[first + i]; }
    T& rhs(int i) const { return s->rhs[first + i]; }
};

template <class T>
cuda::TwoRows reduce(const Bands<T>& s, std::int64_t first, std::int64_t end, bool& regular) {
    cuda::Reducer<double, sizeof(T) == 8> chunk;
    for (std::int64_t i = first; i < end; ++i) {
        T l = s.lower[i], d = s.diag[i], u = s.upper[i], f = s.rhs[i];
        cuda::chunk::scale_row(l, d, u, f);
        chunk.add(l, d, u, f);
    }
    regular = regular && chunk.regular;
    return chunk.rows();
}

// x, or nothing where a column has no pivot.
template <class T>
std::vector<T> solve(Bands<T> s, std::int64_t m, std::int64_t together) {
    const std::int64_t n = s.rows();
    s.lower[0] = s.upper[n - 1] = 0;
    std::vector<cuda::LevelOf> levels{{n / m + (n % m > 1), static_cast<int>(together)}};
    std::vector<std::vector<double>> words, ends;
    const auto add = [&] { words.emplace_back(10 * levels.back().pitch()), ends.emplace_back(2 * levels.back().count); };
    const auto store = [&](std::size_t level, std::int64_t k, const cuda::TwoRows& two) { cuda::store_rows(words[level].data(), levels[level].pitch(), levels[level].place(k), two); };
    add();
    bool regular = true;
    const std::int64_t count = levels[0].count;
    const auto length = [&](std::int64_t k) { return static_cast<int>(k + 1 < count ? m : n - k * m); };
    for (std::int64_t k = 0; k < count; ++k) store(0, k, reduce(s, k * m, k * m + length(k), regular));
    // Single precision is reduced in double, and wants no long chunks.
    levels.emplace_back(levels[0].groups, cuda::group), add();
    for (std::int64_t g = 0; g < levels[0].groups; ++g) {
        cuda::TwoRows two;
        if (sizeof(T) == 4) {
            regular = cuda::merge(words[0].data(), levels[0], g, two) && regular;
        } else {
            const std::int64_t first = g * together * m, end = g + 1 < levels[0].groups ? first + together * m : n;
            two = reduce(s, first, end, regular);
        }
        store(1, g, two);
    }
    while (levels.back().count > cuda::group) {
        const std::size_t level = levels.size() - 1;
        levels.emplace_back(levels[level].groups, cuda::group), add();
        for (std::int64_t g = 0; g < levels[level].groups; ++g) {
            cuda::TwoRows two;
            regular = cuda::merge(words[level].data(), levels[level], g, two) && regular;
            store(level + 1, g, two);
        }
    }
    cuda::TwoRows two;
    double known[4] = {0, 0, 0, 0};
    regular = cuda::merge(words.back().data(), levels.back(), 0, two) && regular;
    regular = cuda::solve_last(two, known[1], known[2]) && regular;
    if (!regular) return {};
    cuda::spread(words.back().data(), levels.back(), 0, known, ends.back().data(), ends.back().data() + levels.back().count);
    for (std::size_t level = levels.size() - 1; level-- > 0;) {
        const std::int64_t groups = levels[level].groups;
        const std::vector<double>& e = ends[level + 1];
        for (std::int64_t g = 0; g < groups; ++g) {
            const double around[4] = {g > 0 ? e[groups + g - 1] : 0, e[g], e[groups + g], g + 1 < groups ? e[g + 1] : 0};
            double* const firsts = ends[level].data() + levels[level].first(g);
            cuda::spread(words[level].data(), levels[level], g, around, firsts, firsts + levels[level].count);
        }
    }
    const std::vector<double>& e = ends[0];
    for (std::int64_t k = 0; k < count; ++k)
        cuda::solve_chunk<T>(Rows<T>{&s, k * m}, length(k), k > 0 ? static_cast<T>(e[count + k - 1]) : T(0), static_cast<T>(e[k]), static_cast<T>(e[count + k]),
                             k + 1 < count ? static_cast<T>(e[k + 1]) : T(0));
    return s.rhs;
}

TEST(CudaTwoPass, ReducesMergesAndSpreads) {
    int solved = 0, tried = 0;
    for (const ZooEntry& entry : zoo()) {
        if (entry.dense) continue;
        for (const std::int64_t n : {64, 65, 95, 100, 513, 1000, 4096, 20002})
            for (const std::int64_t m : {32, 31, 30}) {
                SCOPED_TRACE(testing::Message() << entry.name << ", " << n << " rows, chunks of " << m);
                const Bands<double> s = make(entry, n, 7);
                if (!all_finite(s.diag) || (entry.singular_if_odd && n % 2 == 1)) continue;
                ++tried;
                const std::vector<double> x = solve(s, m, 4);
                if (x.empty() || !all_finite(x)) continue;
                if (backward_error(s, x) <= 10 * 0x1p-53) ++solved;
                const Bands<float> f = cast<float>(s);
                if (!all_finite(as_double(f.diag)) || !all_finite(as_double(f.lower)) || !all_finite(as_double(f.upper)) || !all_finite(as_double(f.rhs))) continue;
                ++tried;
                const std::vector<float> y = solve(f, m, 4);
                if (!y.empty() && backward_error(cast<double>(f), as_double(y)) <= 10 * 0x1p-24) ++solved;
            }
    }
    // What is not, is refused by its residual and left to LU.
    EXPECT_GT(tried, 1000);
    EXPECT_GE(solved, tried * 9 / 10) << "of " << tried;
}

// Rows multiplied by powers of two say the same: x has to be the same, bit by bit.
TEST(CudaTwoPass, RowsMayHaveAnyScale) {
    int compared = 0;
    std::mt19937_64 random(3);
    for (const ZooEntry& entry : zoo()) {
        if (entry.dense) continue;
        const Bands<float> s = cast<float>(make(entry, 1000, 5));
        Bands<double> wide = cast<double>(s), scaled = wide;  // so that no number leaves the range
        if (!all_finite(wide.diag) || !all_finite(wide.lower) || !all_finite(wide.upper) || !all_finite(wide.rhs)) continue;
        for (std::int64_t i = 0; i < s.rows(); ++i) {
            const int by = static_cast<int>(random() % 201) - 100;
            for (auto* const band : {&scaled.lower, &scaled.diag, &scaled.upper, &scaled.rhs}) (*band)[i] = std::ldexp((*band)[i], by);
        }
        const std::vector<double> x = solve(wide, 32, 4), y = solve(scaled, 32, 4);
        if (x.empty() || !all_finite(x)) continue;
        EXPECT_EQ(x, y) << entry.name;
        ++compared;
    }
    EXPECT_GT(compared, 10);
}

TEST(CudaTwoPass, ManyChunksDoNotDrownWhatTheyCouple) {
    for (const ZooEntry& entry : zoo()) {
        const std::string_view name = entry.name;
        if (name != "poisson" && !name.starts_with("16:")) continue;
        std::vector<double> own, lapack;
        for (std::uint64_t seed = 1; seed <= 15; ++seed) {
            const Bands<double> s = make(entry, 100003, seed);
            const std::vector<DoubleDouble> truth = true_solution(s);
            own.push_back(forward_error(solve(s, 32, 16), truth)), lapack.push_back(forward_error(gtsv(s).x, truth));
        }
        EXPECT_LE(median(own), 8 * median(lapack)) << name;
    }
}

}  // namespace
}  // namespace trifold::tests
