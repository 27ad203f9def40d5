// SPDX-License-Identifier: BSD-3-Clause
// One call of `sweep` outside the vector units: typed arrays, the division of the scratch, halo rows copied aside.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "devices/prefetch_level.hpp"
#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// Rows and lanes of a tile: a cache line of one array in each lane.
template <class T>
inline constexpr std::int64_t line = 64 / sizeof(T);

/// lower, diag, upper, rhs: row i at data[i * step]; a scalar is a line of equal numbers with step 0.
template <class T>
struct SweepArrays {
    const T* data[4];
    std::int64_t step[4];
    T* x;
    std::int64_t rows;
    bool in_place;

    /// Row i of array k; outside the system that of an identity; entries that couple to outside it are 0.
    T at(int k, std::int64_t i) const {
        if (i < 0 || i >= rows) return T(k == 1);
        if ((k == 0 && i == 0) || (k == 2 && i == rows - 1)) return T(0);
        return data[k][i * step[k]];
    }
};

/// Where the tiles of c' and d' lie that are eliminated and not substituted yet. A new one takes the place that was read last: half of what
/// would else pass between the first two levels of cache, each line read there before it is written, stays in the first.
class TilePlaces {
public:
    /// A multiple of a cache line of them.
    static std::int64_t ints(std::int64_t tiles) { return (2 * tiles + 15) / 16 * 16; }

    TilePlaces(std::int32_t* memory, std::int64_t tiles) : place_(memory), free_(memory + tiles), tiles_(tiles) {
        for (std::int64_t k = tiles; k-- > 0;) free_[count_++] = static_cast<std::int32_t>(k);
    }
    /// The tile that comes next; `take` gives it its place, `advance` numbers on.
    std::int64_t take() { return place_[next_] = free_[--count_]; }
    void advance() { if (++next_ == tiles_) next_ = 0; }
    /// Of the tile so many before the next one.
    std::int64_t operator[](std::int64_t back) const { return place_[number(back)]; }
    void release(std::int64_t back) { free_[count_++] = place_[number(back)]; }

private:
    std::int64_t number(std::int64_t back) const { return back <= next_ ? next_ - back : next_ - back + tiles_; }

    std::int32_t *place_, *free_;
    std::int64_t tiles_, next_ = 0, count_ = 0;
};

/// Sizes in numbers of T, all multiples of a line.
template <class T>
struct SweepSizes {
    static constexpr std::int64_t lanes = line<T>;
    std::int64_t tile, ring_tiles, edge_stride, edges, boundary, block_repair, repairs, ends;

    SweepSizes(const tridiagonal::Stretches& cut, bool in_place) {
        tile = 2 * lanes * lanes + lanes;  // c' and d' of a line of rows in every lane, and a sum
        std::int64_t longest = 0, blocks = 0;
        for (std::int64_t group : {std::int64_t{0}, cut.groups - 1}) {
            const std::int64_t count = cut.blocks_in(group);
            longest = std::max(longest, (cut.length_in(group) / lanes + count - 1) / count);
            blocks = std::max(blocks, count);
        }
        ring_tiles = 2 * longest + cut.right / lanes + 2;
        edge_stride = std::max(cut.left, cut.right) + lanes;
        edges = 4 * lanes * edge_stride;
        boundary = cut.left + cut.right;
        block_repair = 3 * lanes;
        repairs = in_place ? cut.groups * blocks * block_repair : 0;
        ends = 3 * (lanes * lanes + 4 * lanes);
        blocks_per_group = blocks;
        boundaries = in_place ? cut.groups * boundary : 0;
        stored = (cut.groups * 8 + 63) / 64 * lanes;
    }
    std::int64_t blocks_per_group, boundaries, stored;

    std::int64_t per_thread() const { return ring_tiles * tile + 2 * edges + TilePlaces::ints(ring_tiles) * 4 / static_cast<std::int64_t>(sizeof(T)); }
    std::size_t bytes(int threads) const {
        return sizeof(T) * (4 * lanes + ends + stored + repairs + boundaries + threads * per_thread());
    }
};

/// How lines of memory are asked for ahead of their use. Twice: threads that share the memory have more of their requests dropped.
enum class Asking : std::uint8_t { once, twice, second_level };

/// What a kernel does of its work: less than all of it for benchmarks only. move: the same loads, requests, transposes and stores, an exclusive or of what was
/// loaded in the place of a row's elimination and of its substitution; move_and_wait: and a chain of one division per row, so that requests lie as far apart as a solve's.
enum class Work : std::uint8_t { solve, move, move_and_wait };

template <class T>
struct SweepJob {
    using Stretches = tridiagonal::Stretches;

    SweepArrays<T> arrays;
    Stretches cut;
    SweepSizes<T> sizes;
    T* ends;               ///< c', d' at the last row of the last stretch; then c', d' and sums of the rows outside the stretches
    std::int64_t* stored;  ///< per group, blocks of every lane that hold x
    T* repair;             ///< in place, per group and block: c', d' before the block and the x that its last row saw, of each lane
    T* boundaries;         ///< in place: rhs around the first row of each group
    T* threads;
    Asking asking = Asking::once;
    std::int64_t ask_tiles = sizeof(T) == 4 ? 3 : 4;  ///< ahead. Into the first level: less is late, more is evicted
    std::int64_t moved_halo = 0;                      ///< rows of it, for kernels that only move
    tridiagonal::StretchBound* bounds = nullptr;
    std::atomic<int> stop{0};
    std::atomic<std::int64_t> row{-1};

    SweepJob(const tridiagonal::System& system, const Stretches& cut_, void* scratch)
        : cut(cut_), sizes(cut_, system.in_place) {
        using tridiagonal::Operand;
        T* at = static_cast<T*>(scratch);
        const auto take = [&](std::int64_t count) { return std::exchange(at, at + count); };
        const Operand* operands[4] = {&system.lower, &system.diag, &system.upper, &system.rhs};
        for (int k = 0; k < 4; ++k) {
            T* const constants = take(line<T>);
            const bool view = operands[k]->kind == Operand::Kind::view;
            std::fill_n(constants, line<T>, static_cast<T>(operands[k]->value));
            arrays.data[k] = view ? static_cast<const T*>(operands[k]->data) : constants;
            arrays.step[k] = view;
        }
        arrays.x = static_cast<T*>(system.x.data);
        arrays.rows = system.rows;
        arrays.in_place = system.in_place;
        ends = take(sizes.ends);
        stored = reinterpret_cast<std::int64_t*>(take(sizes.stored));
        repair = take(sizes.repairs);
        boundaries = take(sizes.boundaries);
        threads = at;
    }

    /// How lines are asked for by so many threads.
    void ask_for(int threads_asking) {
        constexpr std::int64_t cached = std::int64_t{24} << 20;
        if (devices::asks_second_level()) asking = Asking::second_level, ask_tiles = 8;
        else if (threads_asking > 1 && arrays.rows * 5 * static_cast<std::int64_t>(sizeof(T)) > cached) asking = Asking::twice;
    }

    /// sweep(group, scratch of the thread) for all groups, until one of them stops the others.
    template <class Sweep>
    void each_group(int thread_count, const Sweep& sweep) {
        std::fill_n(stored, cut.groups, std::int64_t{0});
#pragma omp parallel num_threads(thread_count)
        {
            if (arrays.in_place) {
#pragma omp for schedule(static)
                for (std::int64_t group = 0; group < cut.groups; ++group) save_boundary(group);
            }
#pragma omp for schedule(dynamic, 1)
            for (std::int64_t group = 0; group < cut.groups; ++group)
                if (stop.load(std::memory_order_relaxed) == 0) sweep(group, threads + omp_get_thread_num() * sizes.per_thread());
        }
    }

    T* repair_of(std::int64_t group, std::int64_t block) const {
        return repair + (group * sizes.blocks_per_group + block) * sizes.block_repair;
    }

    /// In place, before anything is stored: what neighbouring groups read of each other's right-hand side.
    void save_boundary(std::int64_t group) const {
        T* const to = boundaries + group * sizes.boundary;
        const std::int64_t from = cut.group_start(group) - cut.left;
        for (std::int64_t i = 0; i < sizes.boundary; ++i) to[i] = arrays.at(3, from + i);
    }

    /// Copies the halos of all lanes of a group: left ones to edges, right ones after them. Before the group stores anything.
    void copy_edges(std::int64_t group, T* edges) const {
        const std::int64_t lanes = cut.lanes, length = cut.length_in(group);
        for (int side = 0; side < 2; ++side)
            for (int k = 0; k < 4; ++k)
                for (std::int64_t lane = 0; lane < lanes; ++lane) {
                    const std::int64_t count = side == 0 ? cut.left : cut.right;
                    const std::int64_t from = cut.group_start(group) + lane * length + (side == 0 ? -cut.left : length);
                    T* const to = edges + side * sizes.edges + (k * lanes + lane) * sizes.edge_stride;
                    const std::int64_t other = side == 0 ? (lane == 0 ? group : -1) : (lane + 1 == lanes ? group + 1 : -1);
                    if (k == 3 && arrays.in_place && other > 0 && other < cut.groups) {
                        const T* const saved = boundaries + other * sizes.boundary + (side == 0 ? 0 : cut.left);
                        std::copy_n(saved, count, to);
                    } else if (from >= 1 && from + count <= arrays.rows - 1) {
                        if (arrays.step[k]) std::copy_n(arrays.data[k] + from, count, to);
                        else std::fill_n(to, count, *arrays.data[k]);
                    } else {
                        for (std::int64_t i = 0; i < count; ++i) to[i] = arrays.at(k, from + i);
                    }
                }
    }

    void stop_at(tridiagonal::SweepStop why, std::int64_t where) {
        int expected = 0;
        if (stop.compare_exchange_strong(expected, static_cast<int>(why))) row.store(where);
    }
};

}  // namespace trifold::cpu
