// SPDX-License-Identifier: BSD-3-Clause
// Ragged batches on a GPU: who takes which systems, and tiles of them, run on the host thread by thread.
#include "unit/cuda_ragged_on_host.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "backends/cuda/tridiagonal/general/ragged_plan.hpp"
#include "support/bands.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"
#include "trifold/dtype.hpp"

namespace trifold::tests {
namespace {

enum class Kind { dominant, random, poisson, slow, any_scale };
constexpr Kind kinds[] = {Kind::dominant, Kind::random, Kind::poisson, Kind::slow, Kind::any_scale};

/// Systems one after the other, `apart` elements from row to row, what lies between and around them NaN, and what couples them across their ends as well.
template <class T>
struct Ragged {
    static constexpr int threads = 64, systems_at_once = 128;
    using Tile = cuda::RaggedTile<T, threads, systems_at_once>;

    std::vector<std::int64_t> offsets;
    std::vector<T> lower, diag, upper, rhs, x;
    std::int64_t apart = 1;
    int shift = 0;           ///< of the arrays, from a boundary of 16 bytes, one by one more
    bool in_place = false, adds = false, pivots = false, reversed = false;
    std::vector<std::int8_t> status;
    cuda::DeviceOutcome outcome;

    Ragged(std::vector<std::int64_t> lengths, Kind kind, std::int64_t apart = 1, std::int64_t before = 3) : apart(apart) {
        offsets.push_back(before);
        for (const std::int64_t n : lengths) offsets.push_back(offsets.back() + n);
        const auto count = static_cast<std::size_t>((offsets.back() + 2) * apart);
        for (std::vector<T>* array : {&lower, &diag, &upper, &rhs, &x}) array->assign(count, std::numeric_limits<T>::quiet_NaN());
        Random random(static_cast<std::uint64_t>(offsets.back()) + 7 * static_cast<std::uint64_t>(kind));
        for (std::size_t k = 0; k < lengths.size(); ++k) {
            const double scale = kind == Kind::any_scale ? std::exp2(std::floor(random.uniform(-40, 40))) : 1;
            for (std::int64_t i = offsets[k]; i < offsets[k + 1]; ++i) {
                double l = random.uniform(-1, 1), d = random.uniform(-1, 1), u = random.uniform(-1, 1);
                if (kind == Kind::dominant || kind == Kind::any_scale) d = std::copysign(2.1 + std::abs(d), d);
                if (kind == Kind::poisson) l = u = -1, d = 2;
                if (kind == Kind::slow) l = u = -1, d = 2 + 1e-3;
                if (i > offsets[k]) at(lower, i) = static_cast<T>(l);
                at(diag, i) = static_cast<T>(d);
                if (i + 1 < offsets[k + 1]) at(upper, i) = static_cast<T>(u);
                at(rhs, i) = static_cast<T>(scale * random.uniform(-1, 1));
                at(x, i) = static_cast<T>(random.uniform(-1, 1));
            }
        }
    }

    T& at(std::vector<T>& array, std::int64_t i) const { return array[static_cast<std::size_t>(i * apart)]; }
    std::int64_t systems() const { return static_cast<std::int64_t>(offsets.size()) - 1; }

    Bands<T> system(std::int64_t k) {
        Bands<T> one(offsets[k + 1] - offsets[k]);
        for (std::int64_t i = 0; i < one.rows(); ++i) {
            const std::int64_t row = offsets[k] + i;
            one.lower[i] = i ? at(lower, row) : T(0), one.diag[i] = at(diag, row), one.upper[i] = i + 1 < one.rows() ? at(upper, row) : T(0), one.rhs[i] = at(rhs, row);
        }
        return one;
    }

    /// x as the kernel leaves it, NaN where nothing may be; inputs are looked at.
    std::vector<T> solve(int capacity) {
        status.assign(static_cast<std::size_t>(systems()), static_cast<std::int8_t>(Reason::exact));
        std::int64_t longest = 0;
        for (std::int64_t k = 0; k < systems(); ++k) longest = std::max(longest, offsets[k + 1] - offsets[k]);
        outcome = cuda::fresh_outcome(longest, systems(), 0);
        constexpr std::size_t room = 8;
        std::vector<T> memory[5];
        cuda::Line<T> lines[5];
        const std::vector<T>* const arrays[5] = {&lower, &diag, &upper, &rhs, &x};
        for (int m = 0; m < 5; ++m) {
            memory[m].resize(arrays[m]->size() + room);
            auto* const boundary = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory[m].data()) + 15) / 16 * 16);
            T* const begin = boundary + (shift + m * (shift > 0)) % Tile::E;
            std::copy(arrays[m]->begin(), arrays[m]->end(), begin);
            lines[m] = {begin, T(0), apart};
        }
        if (in_place) lines[4] = lines[3];
        cuda::RaggedJob<T> job;
        job.offsets = offsets.data(), job.systems = systems(), job.window = systems();
        job.lower = lines[0], job.diag = lines[1], job.upper = lines[2], job.rhs = lines[3], job.x = lines[4];
        job.adds = adds, job.pivots = pivots, job.status = status.data(), job.outcome = &outcome;
        BlocksOnHost block(1, threads, static_cast<std::size_t>(Tile::bytes(capacity)), reversed);
        block.run([&](unsigned char* shared) { Tile{job, capacity, shared}.solve_all(0, job.systems); });
        for (int m = 0; m < (in_place ? 3 : 4); ++m) EXPECT_EQ(std::memcmp(lines[m].data, arrays[m]->data(), arrays[m]->size() * sizeof(T)), 0) << "array " << m << " was written";
        return {lines[4].data, lines[4].data + x.size()};
    }

    void expect_solved(int capacity, double roundoffs = 16) {
        SCOPED_TRACE(testing::Message() << systems() << " systems, " << offsets.back() << " rows, capacity " << capacity << ", apart " << apart << ", shift " << shift << ", in place " << in_place << ", adds " << adds
                                        << ", pivots " << pivots << ", " << name_of(dtype_of<T>));
        const std::vector<T> before = in_place ? rhs : x;
        std::vector<T> found = solve(capacity);
        EXPECT_EQ(outcome.failures, 0u);
        for (std::int64_t k = 0; k < systems(); ++k) {
            const std::int64_t n = offsets[k + 1] - offsets[k];
            ASSERT_EQ(status[static_cast<std::size_t>(k)], n > 0 ? 1 : 0) << "system " << k;
            if (n == 0) continue;
            std::vector<double> solution;
            for (std::int64_t i = offsets[k]; i < offsets[k + 1]; ++i) solution.push_back(static_cast<double>(at(found, i)) - (adds ? static_cast<double>(at(x, i)) : 0));
            const double error = backward_error(cast<double>(system(k)), solution);
            // What is added is rounded once more, beside whatever x was.
            ASSERT_LE(error, (roundoffs + (adds ? 1e3 : 0)) * unit_roundoff(dtype_of<T>)) << "system " << k << " of " << n << " rows";
        }
        outside_is_untouched(found, before);
        reversed = true;
        const std::vector<T> again = solve(capacity);
        reversed = false;
        EXPECT_EQ(std::memcmp(found.data(), again.data(), found.size() * sizeof(T)), 0) << "threads that run in another order find something else";
    }

    void outside_is_untouched(const std::vector<T>& found, const std::vector<T>& before) const {
        for (std::size_t e = 0; e < found.size(); ++e) {
            const auto row = static_cast<std::int64_t>(e) / apart;
            if (static_cast<std::int64_t>(e) % apart == 0 && row >= offsets.front() && row < offsets.back()) continue;
            ASSERT_EQ(std::memcmp(&found[e], &before[e], sizeof(T)), 0) << "element " << e;
        }
    }
};

std::vector<std::vector<std::int64_t>> shapes() {
    Random random(5);
    std::vector<std::vector<std::int64_t>> all{{1}, {0, 2, 0}, {3, 1, 1, 0, 2}, {300}, {299, 1}, {64, 64, 64, 64, 64}, std::vector<std::int64_t>(400, 1), {7, 290, 0, 0, 150, 150, 1, 299, 2}};
    for (const int longest : {4, 40, 280}) {
        std::vector<std::int64_t> lengths;
        for (int k = 0; k < 60; ++k) lengths.push_back(random.below(longest + 1));
        all.push_back(lengths);
    }
    return all;
}

TEST(RaggedTiles, SolveWholeSystems) {
    for (const auto& lengths : shapes())
        for (const Kind kind : kinds) {
            Ragged<double> ragged(lengths, kind);
            ragged.expect_solved(300);
            if (kind != Kind::random) { EXPECT_EQ(ragged.outcome.rescued, 0u) << "dominant rows need no pivots"; }
            Ragged<float>(lengths, kind).expect_solved(301);
            if (HasFailure()) return;
        }
}

TEST(RaggedTiles, TakeAnyStrideAndAlignment) {
    const std::vector<std::int64_t> lengths{5, 64, 0, 33, 100, 1, 1, 90, 17};
    for (const std::int64_t apart : {1, 2})
        for (const int shift : {0, 1, 2, 3})
            for (const Kind kind : {Kind::dominant, Kind::random})
                for (const auto& [in_place, adds] : {std::pair{false, false}, {true, false}, {false, true}}) {
                    const auto attempt = [&, in_place = in_place, adds = adds](auto ragged) {
                        ragged.shift = shift, ragged.in_place = in_place, ragged.adds = adds;
                        ragged.expect_solved(130);
                    };
                    attempt(Ragged<double>(lengths, kind, apart)), attempt(Ragged<float>(lengths, kind, apart));
                    if (HasFailure()) return;
                }
}

TEST(RaggedTiles, EliminateWithPivotsWhereAsked) {
    for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{1}, {3, 1, 1, 0, 2}, {299, 1}, {300}, {7, 290, 0, 0, 150, 150, 1, 299, 2}})
        for (const Kind kind : {Kind::dominant, Kind::random}) {
            Ragged<double> ragged(lengths, kind);
            ragged.pivots = true;
            ragged.expect_solved(300);
            EXPECT_EQ(ragged.outcome.rescued, 0u);
            if (HasFailure()) return;
        }
}

// A pivot of 10^-9 loses nine digits; beside a system whose x is 10^12 times as large nobody would see that in what is left of rows.
TEST(RaggedTiles, WhatIsLargeBesideThemHidesNothing) {
    Ragged<double> ragged({9, 9, 9, 9}, Kind::dominant);
    for (std::int64_t i = ragged.offsets[1]; i < ragged.offsets[2]; ++i) ragged.rhs[i] *= 1e12;
    ragged.diag[ragged.offsets[2]] = 1e-9;
    ragged.lower[ragged.offsets[2] + 1] = 1;
    ragged.expect_solved(100, 8);
    EXPECT_GT(ragged.outcome.rescued, 0u);
}

// Reciprocals of what is larger are no numbers on a GPU.
TEST(RaggedTiles, TakeNumbersOfAnySize) {
    for (const float size : {1e-37f, 1e-30f, 1.0f, 1e30f, 3e38f}) {
        Ragged<float> ragged({3, 20, 1}, Kind::dominant);
        for (std::int64_t k = 0; k < 3; ++k)
            for (std::int64_t i = ragged.offsets[k]; i < ragged.offsets[k + 1]; ++i) {
                if (i > ragged.offsets[k]) ragged.lower[i] = size / 8;
                ragged.diag[i] = size, ragged.rhs[i] = size / 4;
                if (i + 1 < ragged.offsets[k + 1]) ragged.upper[i] = size / 8;
            }
        ragged.expect_solved(60);
    }
}

TEST(RaggedTiles, NameWhatFailsAndSolveTheRest) {
    const std::vector<std::int64_t> lengths{40, 5, 0, 33, 100, 1, 7, 90, 17};
    for (const bool in_place : {false, true})
        for (const int capacity : {100, 400}) {
            SCOPED_TRACE(testing::Message() << "in place " << in_place << ", capacity " << capacity);
            Ragged<double> ragged(lengths, Kind::dominant);
            ragged.in_place = in_place;
            const std::int64_t zero = ragged.offsets[4] + 50, nan = ragged.offsets[6] + 3, infinite = ragged.offsets[8];
            ragged.diag[zero] = ragged.lower[zero] = ragged.upper[zero] = ragged.upper[zero - 1] = ragged.lower[zero + 1] = 0;
            ragged.lower[nan] = std::numeric_limits<double>::quiet_NaN();
            ragged.rhs[infinite] = std::numeric_limits<double>::infinity();
            ragged.diag[ragged.offsets[5]] = 0;
            const std::vector<double> before = in_place ? ragged.rhs : ragged.x;
            std::vector<double> found = ragged.solve(capacity);
            EXPECT_EQ(ragged.outcome.failures, 4u);
            EXPECT_EQ(ragged.outcome.first, cuda::failure_key(4, 100, 50, Reason::singular));
            const std::vector<int> expected{1, 1, 0, 1, -1, -1, -2, 1, -2};
            for (std::int64_t k = 0; k < ragged.systems(); ++k) {
                EXPECT_EQ(ragged.status[static_cast<std::size_t>(k)], expected[static_cast<std::size_t>(k)]) << "system " << k;
                const std::int64_t first = ragged.offsets[k], n = ragged.offsets[k + 1] - first;
                if (expected[static_cast<std::size_t>(k)] < 0) { EXPECT_EQ(std::memcmp(&found[first], &before[first], static_cast<std::size_t>(n) * 8), 0) << "x of system " << k << " was written"; }
                else if (n > 0) { EXPECT_LE(backward_error(ragged.system(k), {found.begin() + first, found.begin() + first + n}), 16 * unit_roundoff(DType::f64)) << "system " << k; }
            }
            ragged.outside_is_untouched(found, before);
        }
}

// Of coefficients that are numbers nothing is read.
TEST(RaggedTiles, TakeNumbersForArrays) {
    Ragged<double> ragged({50, 0, 70, 3, 200}, Kind::slow);
    const int capacity = 150;  // the last one does not fit, and is not this kernel's
    cuda::RaggedJob<double> job;
    std::vector<std::int8_t> status(5, 1);
    cuda::DeviceOutcome outcome = cuda::fresh_outcome(200, 5, 0);
    job.offsets = ragged.offsets.data(), job.systems = 5, job.window = 5;
    job.lower = job.upper = {nullptr, -1, 0}, job.diag = {nullptr, 2 + 1e-3, 0};
    job.rhs = {ragged.rhs.data(), 0, 1}, job.x = {ragged.x.data(), 0, 1};
    job.status = status.data(), job.outcome = &outcome;
    std::vector<double> before = ragged.x;
    BlocksOnHost block(1, 64, static_cast<std::size_t>(Ragged<double>::Tile::bytes(capacity)), false);
    block.run([&](unsigned char* shared) { Ragged<double>::Tile{job, capacity, shared}.solve_all(0, 5); });
    EXPECT_EQ(outcome.failures, 0u);
    for (const std::int64_t k : {0, 2, 3})
        EXPECT_LE(backward_error(ragged.system(k), {ragged.x.begin() + ragged.offsets[k], ragged.x.begin() + ragged.offsets[k + 1]}), 16 * unit_roundoff(DType::f64)) << k;
    EXPECT_TRUE(std::equal(ragged.x.begin() + ragged.offsets[4], ragged.x.begin() + ragged.offsets[5], before.begin() + ragged.offsets[4]));
}

TEST(RaggedPlan, SendsEverySystemToOnePlace) {
    cuda::RaggedLimits limits;
    limits.tile_rows = 1152, limits.chip_rows = 6300, limits.multiprocessors = 132;
    Random random(3);
    for (const std::int64_t longest : {1, 100, 1152, 1153, 6300, 6301, 40000, 300000})
        for (const std::int64_t systems : {1, 20, 700, 40000}) {
            SCOPED_TRACE(testing::Message() << systems << " systems of up to " << longest);
            std::vector<std::int64_t> offsets{0};
            tridiagonal::System system;
            std::int64_t tiles = 0;
            for (std::int64_t k = 0; k < systems; ++k) {
                const std::int64_t n = k + 1 == systems ? longest : random.below(longest + 1);
                offsets.push_back(offsets.back() + n);
                system.rows = std::max(system.rows, n);
                tiles += n <= limits.tile_rows;
            }
            system.offsets = offsets.data(), system.ragged_systems = systems;
            const cuda::RaggedPlan plan = cuda::plan_ragged(system, limits);
            EXPECT_EQ(plan.rows, offsets.back());
            EXPECT_EQ(tiles + plan.singles + plan.alone, systems);
            EXPECT_GE(plan.window * plan.windows, systems);
            EXPECT_LT(plan.window * (plan.windows - 1), systems);
            EXPECT_GT(plan.least_alone, limits.chip_rows);
            std::int64_t alone = 0, longest_single = 0;
            for (std::int64_t k = 0; k < systems; ++k) {
                const std::int64_t n = offsets[k + 1] - offsets[k];
                if (n >= plan.least_alone) ++alone;
                else if (n > limits.tile_rows) longest_single = std::max(longest_single, n);
            }
            EXPECT_EQ(plan.alone, alone);
            EXPECT_EQ(plan.longest_single, longest_single);
        }
}

// Cut as kernels cut, run after run: there is room for what they find, and no system of runs is left out.
TEST(RaggedPlan, HasRoomForAllRuns) {
    cuda::RaggedLimits limits;
    limits.tile_rows = 1152, limits.tile_warps = 4, limits.chip_rows = 6300, limits.multiprocessors = 132;
    limits.warp_rows = 544, limits.block_warps = 6, limits.multiprocessor_warps = 12;
    limits.resident = [](int warps, int) { return 12 / warps; };
    Random random(4);
    const std::int64_t whole = cuda::most_warps_of_team * limits.warp_rows;
    for (const std::int64_t longest : {1, 3, 60, 543, 544, 545, 2176, 2177, 6000, 8704, 8705, 40000, 262143, 262144, 300000})
        for (const std::int64_t systems : {1, 20, 700, 30000})
            for (const std::int64_t usual : {longest, std::min<std::int64_t>(longest, 30)}) {
                SCOPED_TRACE(testing::Message() << systems << " systems of up to " << longest << ", most of up to " << usual);
                if (systems * usual > std::int64_t{1} << 28) continue;
                std::vector<std::int64_t> offsets{random.below(50)};
                tridiagonal::System system;
                for (std::int64_t k = 0; k < systems; ++k) {
                    offsets.push_back(offsets.back() + (k == systems / 2 ? longest : random.below(usual + 1)));
                    system.rows = std::max(system.rows, offsets.back() - offsets[offsets.size() - 2]);
                }
                system.offsets = offsets.data(), system.ragged_systems = systems;
                const cuda::RaggedPlan plan = cuda::plan_ragged(system, limits);
                const cuda::RunsPlan& runs = plan.runs;
                std::int64_t alone = 0, in_parts = 0, parts = 0, long_runs = 0, count = 0, most = 0;
                for (std::int64_t k = 0; k < systems; ++k) {
                    const std::int64_t n = offsets[k + 1] - offsets[k];
                    if (n >= plan.least_alone) ++alone;
                    else most = std::max(most, n);
                    if (n >= plan.least_alone || runs.longest == 0) continue;
                    if (n > runs.whole) {
                        const std::int64_t its = (n + limits.warp_rows - 1) / limits.warp_rows;
                        ++in_parts, parts += its;
                        ASSERT_LE(its, 32 * 17) << "more than a warp closes";
                    } else if (n > runs.team.rows) {
                        ++long_runs;
                        ASSERT_LE(n, runs.long_team.rows);
                    } else {
                        ASSERT_LE(n, runs.capacity);
                    }
                }
                EXPECT_EQ(plan.alone, alone);
                EXPECT_GE(runs.longest, most);
                if (runs.longest == 0) continue;
                EXPECT_EQ(runs.whole, whole);
                EXPECT_LE(in_parts, runs.cut_systems);
                EXPECT_LE(parts, runs.most_parts);
                EXPECT_LE(long_runs, runs.long_systems);
                EXPECT_LE(runs.team.warps * runs.team.blocks, cuda::most_warps_of_team);
                EXPECT_GE(runs.window * runs.windows, plan.rows);
                for (std::int64_t k = 0, w = 0; w < runs.windows; ++w) {
                    const std::int64_t end_row = w + 1 < runs.windows ? offsets[0] + (w + 1) * runs.window : offsets.back() + 1;
                    std::int64_t end = k;
                    while (end < systems && offsets[end] < end_row) ++end;
                    while (k < end) {
                        std::int64_t next = k;
                        while (next < end && offsets[next + 1] - offsets[k] <= runs.capacity) ++next;
                        count += next > k && offsets[next] > offsets[k];
                        k = std::max(next, k + 1);
                    }
                }
                EXPECT_LE(count, runs.most_runs);
            }
}

}  // namespace
}  // namespace trifold::tests
