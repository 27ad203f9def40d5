// SPDX-License-Identifier: BSD-3-Clause
// One matrix eliminated chunk by chunk and joined, as the GPU does it, on the host: what is left of dominant rows is dominant, however many there are, and x has the backward error of elimination.
#define __device__
#define __forceinline__ inline
#include <cmath>
using std::fabs, std::fmax, std::signbit;

namespace trifold::cuda {

template <class T>
T fused(T a, T b, T c) {
    return std::fma(a, b, c);
}

template <class T>
struct Divisor {
    T by;
    explicit Divisor(T x) : by(x) {}
    T inverse() const { return 1 / by; }
    T of(T x) const { return x / by; }
};

}  // namespace trifold::cuda

#include "backends/cuda/tridiagonal/shared/dominant_rows.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "support/bands.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"
#include "trifold/dtype.hpp"

namespace trifold::tests {
namespace {

using cuda::DominantLink;
using cuda::DominantRow;
using cuda::DominantRows;

/// Rows that follow each other, and what each chunk of them leaves: recursively, until one chunk is left.
template <class T>
struct Chunks {
    std::size_t each;
    bool dominant = true;

    std::vector<T> solve(const std::vector<DominantRow<T>>& rows, const std::vector<T>& rhs) {
        const std::size_t n = rows.size(), chunks = (n + each - 1) / each;
        std::vector<T> inverse(n), lower(n), upper(n), x(n), last(chunks), first(chunks);
        std::vector<DominantLink<T>> links(chunks);
        for (std::size_t c = 0; c < chunks; ++c) {
            DominantRows<T> state;
            const std::size_t begin = c * each, end = std::min(begin + each, n) - 1;
            T y = 0;
            for (std::size_t i = begin; i < end; ++i) {
                const T weight = state.weight;
                state.eliminate(rows[i], inverse[i], lower[i]);
                upper[i] = state.g, dominant = dominant && std::abs(state.g) <= 1;
                y = cuda::fused(-lower[i], y, inverse[i] * rhs[i]), first[c] = cuda::fused(weight, y, first[c]);
            }
            last[c] = cuda::fused(-rows[end].lower, y, rhs[end]);
            links[c] = state.end(rows[end], true);
        }
        std::vector<DominantRow<T>> left(chunks);
        std::vector<T> right(chunks);
        for (std::size_t c = 0; c < chunks; ++c) {
            const bool behind = c + 1 < chunks;
            left[c] = behind ? links[c].with(links[c + 1]) : DominantRow<T>{links[c].lower, T(0), links[c].excess, links[c].below};
            right[c] = behind ? cuda::fused(-links[c].upper, first[c + 1], last[c]) : last[c];
            dominant = dominant && left[c].excess >= 0;
        }
        const std::vector<T> ends = chunks == 1 ? std::vector<T>{right[0] / (left[0].excess + std::abs(left[0].lower)) * (left[0].below ? -1 : 1)} : solve(left, right);
        for (std::size_t c = 0; c < chunks; ++c) {
            const std::size_t begin = c * each, end = std::min(begin + each, n) - 1;
            T y = c ? ends[c - 1] : T(0);
            for (std::size_t i = begin; i < end; ++i) x[i] = y = cuda::fused(-lower[i], y, inverse[i] * rhs[i]);
            x[end] = ends[c];
            for (std::size_t i = end; i-- > begin;) x[i] = cuda::fused(-upper[i], x[i + 1], x[i]);
        }
        return x;
    }
};

struct Kind {
    std::string name;
    /// lower, upper and what the diagonal has beyond them.
    std::function<void(Random&, double&, double&, double&)> row;
    bool signs = false;  ///< any
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all{
        {"-1, 2, -1", [](Random&, double& l, double& u, double& more) { l = u = -1, more = 0; }},
        {"1, 2, 1", [](Random&, double& l, double& u, double& more) { l = u = 1, more = 0; }},
        {"a little more", [](Random&, double& l, double& u, double& more) { l = u = -1, more = 1e-3; }},
        {"up the wind", [](Random&, double& l, double& u, double& more) { l = -1, u = -1e-3, more = 1e-3; }},
        {"down the wind", [](Random&, double& l, double& u, double& more) { l = -1e-3, u = -1, more = 1e-3; }},
        {"conductivity", [](Random& r, double& l, double& u, double& more) { l = -std::exp(r.uniform(-3, 3)), u = -std::exp(r.uniform(-3, 3)), more = 0; }},
        {"conductivity, any signs", [](Random& r, double& l, double& u, double& more) { l = std::exp(r.uniform(-3, 3)), u = std::exp(r.uniform(-3, 3)), more = 0; }, true},
        {"strong", [](Random& r, double& l, double& u, double& more) { l = r.uniform(-1, 1), u = r.uniform(-1, 1), more = 1; }, true},
        {"sometimes nothing beside", [](Random& r, double& l, double& u, double& more) { l = r.uniform(0, 1) < 0.1 ? 0 : -1, u = r.uniform(0, 1) < 0.1 ? 0 : -1, more = l == 0 || u == 0; }},
    };
    return all;
}

template <class T>
void joins(std::size_t rows, std::size_t each, const Kind& kind, bool constant_rhs) {
    SCOPED_TRACE(testing::Message() << rows << " rows, chunks of " << each << ", " << kind.name << ", " << name_of(dtype_of<T>));
    Bands<T> s(static_cast<std::int64_t>(rows));
    std::vector<DominantRow<T>> all(rows);
    Random random(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        double l, u, more;
        kind.row(random, l, u, more);
        if (kind.signs) l *= random.uniform(-1, 1) < 0 ? -1 : 1, u *= random.uniform(-1, 1) < 0 ? -1 : 1;
        const bool below = kind.signs && random.uniform(-1, 1) < 0;
        s.lower[i] = i ? static_cast<T>(l) : T(0), s.upper[i] = i + 1 < rows ? static_cast<T>(u) : T(0);
        const T diag = std::abs(static_cast<T>(l)) + std::abs(static_cast<T>(u)) + static_cast<T>(more);
        s.diag[i] = below ? -diag : diag, s.rhs[i] = static_cast<T>(constant_rhs ? 1 : random.uniform(-1, 1));
        all[i] = {s.lower[i], s.upper[i], std::max(diag - (std::abs(s.lower[i]) + std::abs(s.upper[i])), T(0)), below};
    }
    Chunks<T> chunks{each};
    const std::vector<T> x = chunks.solve(all, s.rhs);
    EXPECT_TRUE(chunks.dominant);
    EXPECT_LE(backward_error(cast<double>(s), as_double(x)), 16 * unit_roundoff(dtype_of<T>));
}

TEST(DominantRows, AreJoined) {
    for (const Kind& kind : kinds())
        for (const std::size_t rows : {1, 2, 3, 63, 64, 65, 128, 129, 1000, 4097, 100000})
            for (const std::size_t each : {2, 16, 64})
                for (const bool constant : {false, true}) joins<double>(rows, each, kind, constant), joins<float>(rows, each, kind, constant);
}

// Sums of rows are zero, of all of them: no row has anything that an elimination could take for a pivot of its own.
TEST(DominantRows, OfASingularMatrixSayThatItIs) {
    std::vector<DominantRow<double>> rows(1000, {-1, -1, 0, false});
    rows.front() = {0, -1, 0, false};
    DominantRows<double> state;
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
        double inverse, lower;
        state.eliminate(rows[i], inverse, lower);
        ASSERT_EQ(state.g, -1) << "row " << i;
    }
    EXPECT_EQ(state.end({-1, 0, 0, false}, true).excess + std::abs(state.end({-1, 0, 0, false}, true).lower), 0);
}

}  // namespace
}  // namespace trifold::tests
