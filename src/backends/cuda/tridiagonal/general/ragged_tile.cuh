// SPDX-License-Identifier: BSD-3-Clause
// Systems of different lengths that lie one after the other, as many at a time as a block's shared memory holds:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i]
//
// Arrays: one-dimensional, any stride, or numbers; system k has rows offsets[k] … offsets[k+1]-1. x may be d, or be added to. Overwritten: x of systems that were solved. Couplings across the ends
//   of systems are never used, whatever they hold, and those before the first and behind the last row of a tile not read.
// Who does what: a tile is whole systems that follow each other. With the couplings between them cleared they are one system, and nothing depends on where they end: each thread has the same
//   number of rows, which it eliminates where they lie: x[i] = D - A x[before] - C x[i+1], and beside that what its first row has in x[before] and x[last]. Last rows, closed with the next
//   thread's first one, are put into each other, every other one of those that are left (cyclic reduction: no unknown is found twice), until nothing couples any more: soon, where systems are short or
//   forget. Then x comes back.
// Words per row of device memory: 4 read, 1 written (2 read, 1 written more where it is added). Of shared memory 11, and 5 that come and go.
// Numerics: nothing is pivoted there. What every elimination leaves must weigh |A| + |C| ≤ 17/16, which is backward stable row by row (decision 53), whatever scale a system beside it has; pivots
//   must be within PivotRange and all x finite. Else nothing is stored, and the tile's systems are eliminated with pivots, each for itself (pivoted_chunk.cuh): a single one by all threads, several by
//   a warp each. What these leave, or what is singular, is for one thread's solve_line, which names the row. What fails is not stored: in place it has its right-hand side, bit by bit.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/operand.cuh"
#include "backends/cuda/tridiagonal/pivoted_lanes.cuh"
#ifdef __CUDACC__  // else a test has what is asked of it
#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/pivoted_line.cuh"
#endif

namespace trifold::cuda {

template <class T>
struct RaggedJob {
    const std::int64_t* offsets = nullptr;  ///< systems + 1
    std::int64_t systems = 0, window = 1;   ///< window: systems that a block of ragged_tile_kernel looks at
    std::int64_t least_alone = 0;           ///< rows from which on a system is not ragged_single_kernel's
    int tile_rows = 0, chip_rows = 0;       ///< what a block of either kernel holds
    Line<T> lower, diag, upper, rhs, x;     ///< of all rows
    bool adds = false, pivots = false;      ///< pivots: all systems are eliminated with pivots
    const std::int64_t* list = nullptr;     ///< not null: only these systems are solved, and with pivots at once
    const unsigned* listed = nullptr;       ///< how many
    T* scratch = nullptr;                   ///< of blocks, for systems that no shared memory holds
    std::int64_t scratch_rows = 0;          ///< of each
    std::int8_t* status = nullptr;
    DeviceOutcome* outcome = nullptr;
};

/// Systems that a block solves together.
struct RaggedPart {
    std::int64_t system = 0, row = 0;  ///< the first ones
    int systems = 0, rows = 0;
};

template <class T>
__device__ __forceinline__ Line<T> line_from(const Line<T>& line, std::int64_t row) {
    return {line.data ? line.data + row * line.row_stride : nullptr, line.value, line.row_stride};
}

// What is rare must not take registers from what is not.
#ifdef __CUDACC__
#define TRIFOLD_RARE __device__ __noinline__
#else
#define TRIFOLD_RARE inline
#endif

template <class T>
TRIFOLD_RARE PivotedVerdict<T> solve_ragged_line(const RaggedJob<T>* job, std::int64_t row, int n, T* scratch) {
    const Line<T> found{scratch + 3 * n, T(0), 1};  // where solve_line has it
    return solve_line(line_from(job->lower, row), line_from(job->diag, row), line_from(job->upper, row), line_from(job->rhs, row), found, n, scratch, 1);
}

template <class T, int Threads, int Systems>
TRIFOLD_RARE void pivot_tile(const RaggedJob<T>* job, int capacity, unsigned char* memory, std::int64_t system, std::int64_t row, int systems, int rows);

/// A block of `Threads` threads, a power of two, and its shared memory: at most `Systems` systems at a time.
template <class T, int Threads, int Systems>
struct RaggedTile {
    static constexpr int E = 16 / static_cast<int>(sizeof(T)), warps = Threads / 32, most_chunk = 31;  ///< rows of a thread: what substituting may multiply by is a power of that, and choices of pivots are remembered
    static constexpr int solved = -1, left = -2;  ///< verdicts; others are rows that are not finite

    const RaggedJob<T>& job;
    int capacity;  ///< rows, at most Threads * most_chunk
    unsigned char* memory;

    // Four arrays, then firsts and links of threads, equations of warps, where systems begin, verdicts.
    __host__ __device__ static constexpr int pitch_for(int rows) { return (rows + E + E - 1) / E * E; }
    __host__ __device__ static constexpr int tile_bytes(int rows) { return 4 * pitch_for(rows) * static_cast<int>(sizeof(T)); }
    __host__ __device__ static constexpr int bytes(int rows) {
        return tile_bytes(rows) + 6 * Threads * static_cast<int>(sizeof(T)) + warps * static_cast<int>(sizeof(Equations<T>)) + (2 * Systems + 1) * 4;
    }

    __device__ T* array(int k) const { return reinterpret_cast<T*>(memory) + k * pitch_for(capacity); }
    __device__ T* firsts() const { return reinterpret_cast<T*>(memory + tile_bytes(capacity)); }
    __device__ T* links() const { return firsts() + 3 * Threads; }
    __device__ Equations<T>* across() const { return reinterpret_cast<Equations<T>*>(links() + 3 * Threads); }
    __device__ int* starts() const { return reinterpret_cast<int*>(across() + warps); }
    __device__ int* verdicts() const { return starts() + Systems + 1; }

    __device__ static int thread() { return static_cast<int>(threadIdx.x); }
    __device__ static void put(T* to, int at, const Relation<T>& row) { to[at] = row.a, to[Threads + at] = row.c, to[2 * Threads + at] = row.d; }
    __device__ static Relation<T> get(const T* from, int at) { return {from[at], from[Threads + at], from[2 * Threads + at]}; }

    /// As many systems from k on, before `end`, as fit; none where k alone does not. By all threads.
    __device__ RaggedPart choose(std::int64_t k, std::int64_t end) const {
        constexpr int rounds = Systems / Threads;
        static_assert(rounds * Threads == Systems);
        int* const begins = starts();
        RaggedPart part{k, job.offsets[k], 0, 0};
        __syncthreads();  // `starts` may still be read
        if (thread() == 0) begins[0] = 0;
        for (int round = 0; round < rounds; ++round) {
            const int s = round * Threads + thread();
            bool fits = false;
            if (k + s < end) {
                const std::int64_t rows = job.offsets[k + s + 1] - part.row;
                fits = rows <= capacity;
                if (fits) begins[s + 1] = static_cast<int>(rows);
            }
            const int more = __syncthreads_count(fits);
            part.systems += more;
            if (more < Threads) break;
        }
        part.rows = begins[part.systems];
        return part;
    }

    /// All systems k … end-1 that fit.
    __device__ void solve_all(std::int64_t k, std::int64_t end) const {
        while (k < end) {
            const RaggedPart part = choose(k, end);
            if (job.status)
                for (int s = thread(); s < part.systems; s += Threads)
                    if (starts()[s] == starts()[s + 1]) job.status[k + s] = static_cast<std::int8_t>(Reason::none);
            if (part.rows > 0) solve(part);
            k += part.systems > 0 ? part.systems : 1;
        }
    }

    /// One system that fits.
    __device__ void solve_one(std::int64_t k, std::int64_t row, int rows) const {
        __syncthreads();
        if (thread() == 0) starts()[0] = 0, starts()[1] = rows;
        __syncthreads();
        solve({k, row, 1, rows});
    }

    /// `starts` are there.
    __device__ void solve(const RaggedPart& part) const {
        if (job.pivots || job.list || !solve_unpivoted(part)) pivot_tile<T, Threads, Systems>(&job, capacity, memory, part.system, part.row, part.systems, part.rows);
    }

private:
    __device__ static __forceinline__ void copy(T* to, const T* from) {
#ifdef __CUDACC__
        copy_async(shared_address(to), from);
#else
        *to = *from;
#endif
    }
    __device__ static __forceinline__ void copy_vector(T* to, const T* from) {
#ifdef __CUDACC__
        copy_vector_async(shared_address(to), from);
#else
        for (int j = 0; j < E; ++j) to[j] = from[j];
#endif
    }
    __device__ static __forceinline__ void await() {
#ifdef __CUDACC__
        await_copies();
#endif
        __syncthreads();
    }

    /// Rows first … last-1 of a part; returns where its row 0 is: as far from a boundary of 16 bytes as in device memory.
    __device__ T* load(T* to, const Line<T>& all, std::int64_t row, int first, int last) const {
        const Line<T> from = line_from(all, row);
        if (!from.data || from.row_stride != 1) {
            for (int i = first + thread(); i < last; i += Threads) from.data ? copy(to + i, from.data + i * from.row_stride) : void(to[i] = from.value);
            return to;
        }
        const int e = static_cast<int>(reinterpret_cast<std::uintptr_t>(from.data) / sizeof(T) % E);
        to += e;
        const int head = min(last, first + (E - (e + first) % E) % E), vectors = (last - head) / E, tail = head + vectors * E;
        if (first + thread() < head) copy(to + first + thread(), from.data + first + thread());
#pragma unroll 4
        for (int v = thread(); v < vectors; v += Threads) copy_vector(to + head + v * E, from.data + head + v * E);
        if (tail + thread() < last) copy(to + tail + thread(), from.data + tail + thread());
        return to;
    }

    /// Couplings across the ends of systems.
    __device__ void clear_seams(const RaggedPart& part, T* lower, T* upper) const {
        const int* const begins = starts();
        for (int s = thread(); s < part.systems; s += Threads)
            if (begins[s] < begins[s + 1]) lower[begins[s]] = 0, upper[begins[s + 1] - 1] = 0;
        __syncthreads();
    }

    __device__ static __forceinline__ bool light(const Relation<T>& row) { return fabs(row.a) + fabs(row.c) <= T(1.0625); }  // neither is NaN

    /// false: nothing was stored.
    __device__ bool solve_unpivoted(const RaggedPart& part) const {
        constexpr T negligible = sizeof(T) == 8 ? T(0x1p-60) : T(0x1p-31);  // of an unknown, beside roundoff of x
        const int rows = part.rows, own_thread = thread();
        T *const a = load(array(0), job.lower, part.row, 1, rows), *const b = load(array(1), job.diag, part.row, 0, rows), *const c = load(array(2), job.upper, part.row, 0, rows - 1),
                 *const d = load(array(3), job.rhs, part.row, 0, rows);
        await();
        clear_seams(part, a, c);

        // Odd, so that threads read from different banks.
        const int each = (rows + Threads - 1) / Threads | 1, begin = min(own_thread * each, rows), end = min(begin + each, rows);
        PivotRange<T> range;
        bool good = true;
        Relation<T> own{T(0), T(0), T(0)}, first{T(0), T(-1), T(0)};  // first: of the chunk's first row, in what is before the chunk and the row that was last; itself, to begin with
        if (begin < end) {
            Relation<T> row{T(-1), T(0), T(0)};  // what is before the chunk, in terms of itself
            T lower = a[begin], diag = b[begin], upper = c[begin], rhs = d[begin];
#pragma unroll 1
            for (int i = begin; i < end; ++i) {
                const int then = min(i + 1, end - 1);  // asked for before this row is stored
                const T next_lower = a[then], next_diag = b[then], next_upper = c[then], next_rhs = d[then];
                const T pivot = fused(-lower, row.c, diag);
                range.see(pivot);
                T over;
                const T k = divide_by(pivot, upper, over);
                row = {-(lower * k) * row.a, over, fused(-lower, row.d, rhs) * k};
                a[i] = row.a, c[i] = row.c, d[i] = row.d;
                good = good && light(row);
                if (i + 1 < end) {
                    first = {fused(-first.c, row.a, first.a), -first.c * row.c, fused(-first.c, row.d, first.d)};
                    good = good && light(first);
                }
                lower = next_lower, diag = next_diag, upper = next_upper, rhs = next_rhs;
            }
            own = row;
        }
        put(firsts(), own_thread, first);
        __syncthreads();
        if (begin < end && end < rows) {  // what is behind the last row of all is nothing
            const Relation<T> next = get(firsts(), own_thread + 1);
            const T k = range.invert(fused(-own.c, next.a, T(1)));
            own = {own.a * k, -own.c * next.c * k, fused(-own.c, next.d, own.d) * k};
            good = good && light(own);
        }
        put(links(), own_thread, own);

        int apart = 1;
        for (; apart < Threads; apart *= 2) {
            const bool there = (own_thread & (apart - 1)) == apart - 1;
            if (!__syncthreads_or(there && !(fabs(own.a) <= negligible && fabs(own.c) <= negligible))) break;
            if ((own_thread & (2 * apart - 1)) != 2 * apart - 1) continue;
            const Relation<T> above = get(links(), own_thread - apart), below = own_thread + apart < Threads ? get(links(), own_thread + apart) : Relation<T>{T(0), T(0), T(0)};
            const T k = range.invert(fused(-own.c, below.a, fused(-own.a, above.c, T(1))));
            own = {-own.a * above.a * k, -own.c * below.c * k, fused(-own.c, below.d, fused(-own.a, above.d, own.d)) * k};
            good = good && light(own);
            put(links(), own_thread, own);
        }
        T* const found = firsts();  // read last before the first of these barriers
        if ((own_thread & (apart - 1)) == apart - 1) found[own_thread] = own.d;
        for (apart /= 2; apart > 0; apart /= 2) {
            __syncthreads();
            if ((own_thread & (2 * apart - 1)) != apart - 1) continue;
            const T above = own_thread >= apart ? found[own_thread - apart] : T(0), below = own_thread + apart < Threads ? found[own_thread + apart] : T(0);
            found[own_thread] = fused(-own.c, below, fused(-own.a, above, own.d));
        }
        __syncthreads();

        if (begin < end) {
            const T before = own_thread > 0 ? found[own_thread - 1] : T(0);
            T x = found[own_thread], zero = x * T(0);
            d[end - 1] = x;
#pragma unroll 2
            for (int i = end - 2; i >= begin; --i) {
                x = fused(-c[i], x, fused(-a[i], before, d[i]));
                zero = fused(x, T(0), zero);
                d[i] = x;
            }
            good = good && zero == T(0);
        }
        if (__syncthreads_or(!(good && range.good))) return false;
        store(line_from(job.x, part.row), d, rows, own_thread, Threads);
        return true;
    }

    /// Rows from, from + step, …
    __device__ void store(const Line<T>& x, const T* values, int rows, int from, int step) const {
        for (int i = from; i < rows; i += step) x.at(i) = job.adds ? x[i] + values[i] : values[i];
    }

public:
    /// `starts` are there. What is solved is stored, what fails told.
    __device__ __forceinline__ void solve_pivoted(const RaggedPart& part) const {
        const int rows = part.rows, lane = thread() & 31, warp = thread() / 32;
        T* const tile = array(0);  // the four arrays `rows` apart
        const Line<T>* const lines[4] = {&job.lower, &job.diag, &job.upper, &job.rhs};
        for (int k = 0; k < 4; ++k) {
            const Line<T> from = line_from(*lines[k], part.row);
            for (int i = thread() + (k == 0); i < rows - (k == 2); i += Threads) from.data ? copy(tile + k * rows + i, from.data + i * from.row_stride) : void(tile[k * rows + i] = from.value);
        }
        if (thread() == 0) verdicts()[0] = rows + 1;
        await();
        clear_seams(part, tile, tile + 2 * rows);
        if (part.systems == 1) {
            solve_by_lanes<true>(tile, 0, BlockRows::whole(rows), 1, Threads, verdicts(), across());
            __syncthreads();
            if (thread() == 0) verdicts()[0] = verdicts()[0] > rows ? solved : verdicts()[0] == rows ? left : verdicts()[0];
        } else {
            for (int s = warp; s < part.systems; s += warps) {
                const int n = starts()[s + 1] - starts()[s];
                if (n == 0) continue;
                const int verdict = solve_by_warp(tile + starts()[s], rows, n);
                if (lane == 0) verdicts()[s] = verdict;
            }
        }
        __syncthreads();
        const bool alone = part.systems == 1;
        for (int s = alone ? 0 : warp; s < part.systems; s += alone ? 1 : warps) {
            const int start = starts()[s], n = starts()[s + 1] - start;
            if (n > 0 && verdicts()[s] == solved) store(line_from(job.x, part.row + start), tile + 3 * rows + start, n, alone ? thread() : lane, alone ? Threads : 32);
        }
        __syncthreads();  // the tile is scratch now: of each system, four times its rows
        unsigned rescued = 0;
        for (int s = thread(); s < part.systems; s += Threads) {
            const int start = starts()[s], n = starts()[s + 1] - start, verdict = n > 0 ? verdicts()[s] : solved;
            PivotedVerdict<T> end{Reason::exact, -1};
            if (verdict == left) {
                T* const scratch = tile + 4 * start;
                end = solve_ragged_line(&job, part.row + start, n, scratch);
                if (end.reason == Reason::exact) store(line_from(job.x, part.row + start), scratch + 3 * n, n, 0, 1);
            } else if (verdict != solved) {
                end = {Reason::not_finite, verdict};
            }
            if (end.reason != Reason::exact) report_failure(job.outcome, job.status, part.system + s, end.row, end.reason);
            else if (n > 0) ++rescued;
        }
        if (rescued > 0 && !job.pivots) report_rescued(job.outcome, rescued);
        __syncthreads();
    }

    /// Of n rows, its arrays `pitch` apart, by `lanes` neighbours, a power of two, of a warp; the others have systems of their own.
    __device__ static int solve_by_warp(T* system, int pitch, int n, int lanes = 32) {
        const int lane = thread() & 31, place = lane & (lanes - 1), each = (n + lanes - 1) / lanes | 1, first = min(place * each, n);
        PivotedChunk<T, true> chunk{system + first, pitch, min(each, n - first)};
        PivotRange<T> range;
        int bad = n;
        const Equations<T> own = chunk.reduce(bad, range);
        LaneTree<T> tree{{}, lane, lanes};
        const Equations<T> all = tree.join(own, range);
        const bool finished = chunk.finish(tree.substitute(solve_ends(all, range)));
        int verdict = bad < n ? first + bad : finished && range.good ? n + 1 : n;
#pragma unroll 1
        for (int mask = lanes / 2; mask > 0; mask /= 2) verdict = min(verdict, __shfl_xor_sync(~0u, verdict, mask));
        return verdict > n ? solved : verdict == n ? left : verdict;
    }
};

template <class T, int Threads, int Systems>
TRIFOLD_RARE void pivot_tile(const RaggedJob<T>* job, int capacity, unsigned char* memory, std::int64_t system, std::int64_t row, int systems, int rows) {
    RaggedTile<T, Threads, Systems>{*job, capacity, memory}.solve_pivoted({system, row, systems, rows});
}

#undef TRIFOLD_RARE

}  // namespace trifold::cuda
