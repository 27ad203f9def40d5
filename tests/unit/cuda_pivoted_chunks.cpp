// SPDX-License-Identifier: BSD-3-Clause
// Chunks of a few rows, joined by twos, in double precision, and for that one correction with residuals of twice the precision, as lanes of a GPU share a system that needs pivots, on the host: how far x is
// from the truth.
#include "unit/cuda_pivots_on_host.hpp"

#include "backends/cuda/tridiagonal/device/two_pass_spread.hpp"
#include "backends/cuda/tridiagonal/pivoted_chunk.cuh"
#include "backends/cuda/tridiagonal/precise_residual.cuh"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/bands.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"
#include "support/truth.hpp"
#include "trifold/dtype.hpp"

namespace trifold::tests {
namespace {

/// A tree over chunks of `each` rows of T, eliminated in double precision.
template <class T>
struct Chunks {
    using Chunk = cuda::PivotedChunk<double, true, T>;
    std::vector<T> memory;
    std::vector<Chunk> chunks;
    std::vector<cuda::Joint<double>> joints;
    cuda::PivotRange<double> range;

    /// apart: rows stay as they are; `again`: those of the last solve, of which only rhs is new.
    bool solve(const Bands<T>& s, const std::vector<T>& rhs, int each, std::vector<T>& x, bool apart = false, bool again = false) {
        const int n = static_cast<int>(s.rows());
        if (!again) memory.clear();
        chunks.clear();
        if (again) std::copy(rhs.begin(), rhs.end(), memory.end() - n);
        else
            for (const std::vector<T>* const array : {&s.lower, &s.diag, &s.upper, &rhs}) memory.insert(memory.end(), array->begin(), array->end());
        memory.resize(static_cast<std::size_t>(apart ? 8 : 4) * s.rhs.size());
        for (int first = 0; first < n; first += each) {
            Chunk chunk{memory.data() + first, n, std::min(each, n - first)};
            if (apart) chunk.rhs = (again ? 7 : 3) * n, chunk.to = 4 * n;
            chunks.push_back(chunk);
        }
        joints.resize(2 * std::bit_ceil(chunks.size()));
        bool good = substitute(0, chunks.size(), 0, solve_ends(join(0, chunks.size(), 0), range));
        x.assign(memory.end() - n, memory.end());
        return good && range.good;
    }

private:
    cuda::Equations<double> join(std::size_t begin, std::size_t end, std::size_t node) {
        if (end - begin == 1) {
            int bad = 0;
            return chunks[begin].reduce(bad, range);
        }
        const std::size_t middle = (begin + end) / 2;
        const cuda::Equations<double> left = join(begin, middle, 2 * node + 1), right = join(middle, end, 2 * node + 2);
        return joints[node].eliminate(left, right, range);
    }

    bool substitute(std::size_t begin, std::size_t end, std::size_t node, const cuda::Ends<double>& ends) {
        if (end - begin == 1) return chunks[begin].finish(ends);
        double left_last, right_first;
        joints[node].substitute(ends, left_last, right_first);
        const std::size_t middle = (begin + end) / 2;
        const bool left = substitute(begin, middle, 2 * node + 1, {ends.before, ends.first, left_last, right_first});
        return substitute(middle, end, 2 * node + 2, {left_last, right_first, ends.last, ends.after}) && left;
    }
};

struct Kind {
    std::string name;
    std::function<void(Random&, double&, double&, double&)> row;
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all{
        {"random", [](Random& r, double& l, double& d, double& u) { l = r.uniform(-1, 1), d = r.uniform(-1, 1), u = r.uniform(-1, 1); }},
        {"next to no diagonal", [](Random&, double& l, double& d, double& u) { l = u = 1, d = 1e-8; }},
        {"waves", [](Random&, double& l, double& d, double& u) { l = u = -1, d = 0.7; }},
        {"slow waves", [](Random&, double& l, double& d, double& u) { l = u = -1, d = 1.9; }},
        {"solutions that grow", [](Random&, double& l, double& d, double& u) { l = d = -1, u = 1.01; }},
        {"skew", [](Random&, double& l, double& d, double& u) { l = 1, d = 0.1, u = -1; }},
        {"rows of any scale", [](Random& r, double& l, double& d, double& u) {
             const double scale = std::exp2(std::floor(r.uniform(-20, 20)));
             l = scale * r.uniform(-1, 1), d = scale * r.uniform(-1, 1), u = scale * r.uniform(-1, 1);
         }},
    };
    return all;
}

template <class T>
void correct(std::int64_t rows, int each, const Kind& kind) {
    SCOPED_TRACE(testing::Message() << rows << " rows, chunks of " << each << ", " << kind.name << ", " << name_of(dtype_of<T>));
    Bands<T> s(rows);
    Random random(static_cast<std::uint64_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) {
        double l, d, u;
        kind.row(random, l, d, u);
        s.lower[i] = static_cast<T>(i ? l : 0), s.diag[i] = static_cast<T>(d), s.upper[i] = static_cast<T>(i + 1 < rows ? u : 0), s.rhs[i] = static_cast<T>(random.uniform(-1, 1));
    }
    Chunks<T> chunks, kept;
    std::vector<T> x, z, of_kept, rest(s.rhs.size());
    ASSERT_TRUE(chunks.solve(s, s.rhs, each, x));
    ASSERT_TRUE(kept.solve(s, s.rhs, each, of_kept, true));
    EXPECT_EQ(x, of_kept);
    const double u = unit_roundoff(dtype_of<T>);
    const std::vector<DoubleDouble> truth = true_solution(cast<double>(s));
    if (sizeof(T) == 4) {
        double size = 0;
        for (const T one : x) size = std::max<double>(size, std::abs(one));
        EXPECT_LE(largest_error(as_double(x), truth) / size, 4 * u);
        return;
    }
    for (std::int64_t i = 0; i < rows; ++i) rest[i] = cuda::precise_residual(s.lower[i], s.diag[i], s.upper[i], s.rhs[i], i ? x[i - 1] : T(0), x[i], i + 1 < rows ? x[i + 1] : T(0));
    ASSERT_TRUE(chunks.solve(s, rest, each, z));
    ASSERT_TRUE(kept.solve(s, rest, each, of_kept, true, true));
    EXPECT_EQ(z, of_kept);
    double change = 0, size = 0;
    for (std::int64_t i = 0; i < rows; ++i) x[i] += z[i], change = std::max<double>(change, std::abs(z[i])), size = std::max<double>(size, std::abs(x[i]));
    change /= size;
    ASSERT_LE(change, 0x1p-6);
    EXPECT_LE(largest_error(as_double(x), truth) / size, 2 * u + 4 * change * change) << "what was corrected: " << change;
}

TEST(PivotedChunks, InDoubleOrCorrectedOnceLoseNothing) {
    for (const Kind& kind : kinds())
        for (const std::int64_t rows : {1, 2, 3, 7, 64, 65, 1000, 4609, 40000})
            for (const int each : {1, 2, 3, 9, 33}) {
                correct<float>(rows, each, kind);
                if (HasFatalFailure()) return;
                correct<double>(rows, each, kind);
                if (HasFatalFailure()) return;
            }
}

// Whatever the device: all rows are dealt, no segment is larger than its team has room for, no team has more than it keeps ends of, and no block more than its lanes join.
TEST(Spread, DealsAllRows) {
    using cuda::two_pass::Spread;
    int kinds = 0;  // a bit for each of 4, 5 and 8 words a row, held or not, in turns or not
    for (std::int64_t n = 64; n < 5'000'000; n += 1 + n / 97)
        for (const std::int64_t blocks : {8, 16, 51, 132, 170})
            for (const std::int64_t teams : {1, 3})
                for (const std::int64_t room : {800, 8592, 17280})
                    for (const bool corrects : {false, true}) {
                        const std::int64_t alone = teams * room;
                        const Spread spread(n, {blocks, teams, room, alone, Spread::most_turns, corrects});
                        if (spread.segments == 0) continue;
                        ASSERT_GE(static_cast<std::int64_t>(spread.segments) * spread.rows, n);
                        ASSERT_LT(static_cast<std::int64_t>(spread.segments - 1) * spread.rows, n);
                        ASSERT_EQ(spread.rows % Spread::together, 0);
                        ASSERT_LE(spread.rows, Spread::most_rows);
                        ASSERT_LE(spread.segments, Spread::most_of(n));
                        ASSERT_LE(spread.segments, blocks * spread.of_group);
                        ASSERT_LE(spread.of_group, Spread::most_of_group);
                        ASSERT_LE(spread.groups(), Spread::most_groups);
                        ASSERT_LE(spread.teams, teams);
                        ASSERT_LE(spread.turns(), Spread::most_turns);
                        if (spread.turns() > 1) {
                            ASSERT_LE(spread.segments, Spread::most_in_turns(n));
                            ASSERT_EQ(spread.words, 4);
                        }
                        ASSERT_LE(static_cast<std::int64_t>(spread.rows) * spread.words * (spread.held ? spread.turns() : 1), spread.teams == 1 ? alone : room);
                        kinds |= 1 << (spread.words == 4 ? 0 : spread.words == 5 ? 1 : 2) | (spread.held ? 8 : 16) | (spread.turns() > 1 ? 32 : 64);
                    }
    EXPECT_EQ(kinds, 127);
    EXPECT_GT(Spread(1 << 20, {132, 3, 8592, 25776, Spread::most_turns, true}).segments, 0);
    EXPECT_EQ(Spread(1 << 26, {132, 3, 8592, 25776, Spread::most_turns, true}).segments, 0);
}

}  // namespace
}  // namespace trifold::tests
