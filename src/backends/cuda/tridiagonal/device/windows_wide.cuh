// SPDX-License-Identifier: BSD-3-Clause
// Windows with wide halos: one system whose rows are dominant and that forgets within a warp's rows.
//
//   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   i = 0 … rows-1
//
// A block solves a window without waiting for others: a warp on either side reduces rows of the neighbours, as these reduce them too, so that both find the unknown between
// them by the same operations from the same numbers. What is beyond is forgotten, else the pass gives up. Warps are joined by the unknowns between them alone.
// A stage is free as soon as its window is solved: where coupled windows keep one that waits for its ends, another one is on its way.
// Words per row: 4 read, 1 written; halos from the second-level cache.
// Numerics: docs/algorithms/gpu_single.md. Dominant rows need no check; seams between windows are looked at by both sides. What is not so is left to coupled windows.
#pragma once

#include <cooperative_groups.h>

#include "backends/cuda/tridiagonal/device/windows_chain.cuh"

namespace trifold::cuda::windows {

/// Rows per lane, warps whose x is kept, windows in shared memory: one is solved, one is on its way.
template <class T>
struct WideShape;
template <>
struct WideShape<double> {
    static constexpr int rows = 11, warps = 7, stages = 2;
};
template <>
struct WideShape<float> {
    static constexpr int rows = 21, warps = 7, stages = 2;
};

template <class T>
struct WideMemory {
    using Shape = WideShape<T>;
    static constexpr int line = 128 / static_cast<int>(sizeof(T)), side = lanes * Shape::rows, kept = Shape::warps * side, rows = kept + 2 * side;
    static_assert(side % line == 0);

    T raw[Shape::stages][4][rows];
    Interface<T> parts[2][Shape::warps + 2];  ///< of warps in the order of their rows
    unsigned long long full[Shape::stages], finished[Shape::stages];
    int window[Shape::stages];  ///< < 0: there is none, nor will be
    int fails;
};

/// Rows of a halo that probably do, whole lines; 0: none do. From what windows with halos have seen: the least of their half warps forgets by 2^-found. Where rows are unlike,
/// that is a sum of random numbers: so 1.4, which layered diffusion of any number wants. Where only later ones gave up, as many rows as a half has.
template <class T>
__device__ __forceinline__ int halo_of(const Job<T>& job, unsigned forgets) {
    using Shared = WideMemory<T>;
    const float found = static_cast<float>(forgets) / 32, times = -static_cast<float>(job.weak) / log_unit / found;
    const float rows = static_cast<float>(job.rows_of_half) * (forgets == ~0u ? 1.0f : fmaxf(1.4f * sqrtf(times), times));
    return rows <= 1.1f * Shared::side ? min((static_cast<int>(rows) + Shared::line - 1) / Shared::line * Shared::line, Shared::side) : 0;
}

template <class T>
struct WideLane {
    static constexpr int R = WideShape<T>::rows;
    T k[R - 1];       ///< 1 / pivots
    Relation<T> own;  ///< of the lane's last unknown among the warp's
    int apart;
    unsigned hardly;

    /// What is left of the warp comes into `part`. Returns false where rows are not dominant, or sum to nearly nothing.
    __device__ __forceinline__ bool reduce(const T* a, const T* b, const T* c, const T* d, int lane, T negligible, Interface<T>& part) {
        Chunk<T, R> rows;
        hardly = 0;
        Flushed<T> flushed;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const T l = a[i], m = b[i], u = c[i];
            const T pivot = rows.eliminate_to_check(i, l, m, u, d[i]);
            flushed.add(pivot);
            if (i < R - 1) k[i < R - 1 ? i : 0] = pivot;
            hardly = max(hardly, bits_of(fabs(m)) - bits_of((fabs(m) - fabs(l)) - fabs(u)));
        }
        rows.reduce();
        part.first = rows.first(), own = rows.last();
        const Relation<T> next = from_below(part.first, 1, lanes);
        if (lane < lanes - 1) own = close_with(own, next);
        T rest = T(1) - fabs(own.a) - fabs(own.c);
        const bool other = (lane < lanes - 1 && fabs(rest) < Lane<T, R>::little) || hardly > Lane<T, R>::most_hardly || flushed.any();
        part.first = of_lane(part.first, 0);
        apart = OddEven<T, lanes>::template reduce<false, true>(own, rest, lane, part.first, negligible);
        part.last = of_lane(own, lanes - 1);
        return !__any_sync(~0u, other);
    }

    /// x of the rows; before, end: the unknown before the warp and its last one.
    __device__ __forceinline__ void solve(const T* a, const T* c, const T* d, T before, T end, int lane, T (&x)[R]) const {
        const T mine = OddEven<T, lanes>::substitute(own, before, end, lane, apart), above = __shfl_up_sync(~0u, mine, 1);
        T y = lane ? above : before;
#pragma unroll
        for (int i = 0; i < R - 1; ++i) x[i] = y = fused(-a[i], y, d[i]) * k[i];
        x[R - 1] = mine;
#pragma unroll
        for (int i = R - 2; i >= 0; --i) x[i] = fused(-(c[i] * k[i]), x[i + 1], x[i]);
    }
};

/// Its memory is for something else again.
__device__ __forceinline__ void forget(const Arrival& barrier) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier.barrier) : "memory"); }

/// Warps: those whose x is kept, one before them, one after them, the one that moves.
template <class T>
struct Wide {
    using Shape = WideShape<T>;
    using Shared = WideMemory<T>;
    static constexpr int R = Shape::rows, Warps = Shape::warps, side = Shared::side, kept = Shared::kept, stages = Shape::stages, vector = 16 / static_cast<int>(sizeof(T));
    static constexpr int before_all = Warps, after_all = Warps + 1, mover = Warps + 2;
    static constexpr unsigned long long given_up = ~0ull;
    Shared& shared;
    const int warp, lane, halo, count;
    const std::int64_t all, whole;  ///< rows; those that come in whole vectors
    const T accept, negligible;
    const T* const input[4];
    T* const to;
    Seam<T>* const seams;
    unsigned* const largest;
    DeviceOutcome* const outcome;

    __device__ __forceinline__ Wide(const Job<T>& job, void* memory, int halo_rows)
        : shared(*static_cast<Shared*>(memory)), warp(alike(static_cast<int>(threadIdx.x) / lanes)), lane(static_cast<int>(threadIdx.x) % lanes), halo(halo_rows),
          count(static_cast<int>((job.rows + kept - 1) / kept)), all(job.rows), whole(job.rows / vector * vector), accept(job.accept), negligible(job.negligible),
          input{job.input[0].data, job.input[1].data, job.input[2].data, job.input[3].data}, to(job.x.data), seams(job.seams), largest(job.largest), outcome(job.outcome) {}

    __device__ __forceinline__ Arrival full(int stage) const { return {shared_address(&shared.full[stage])}; }
    __device__ __forceinline__ Arrival finished(int stage) const { return {shared_address(&shared.finished[stage])}; }
    __device__ __forceinline__ bool given_up_by_one() const { return *const_cast<volatile unsigned long long*>(&outcome->seams) == given_up; }
    __device__ __forceinline__ void give_up() const { *const_cast<volatile unsigned long long*>(&outcome->seams) = given_up; }

    // ---- the one that moves, by one lane ----

    __device__ __forceinline__ void bring(int window, int stage) const {
        shared.window[stage] = window < count ? window : -1;
        if (window >= count) return full(stage).arrive();
        const std::int64_t first = static_cast<std::int64_t>(window) * kept, from = max(first - halo, std::int64_t{0}), end = min(first + kept + halo, whole);
        const auto size = static_cast<unsigned>(max(end - from, std::int64_t{0}) * static_cast<int>(sizeof(T)));
        full(stage).expect(4 * size);
        if (size == 0) return;
#pragma unroll
        for (int k = 0; k < 4; ++k) full(stage).copy(shared_address(&shared.raw[stage][k][side + (from - first)]), input[k] + from, size);
    }

    __device__ __forceinline__ void move() const {
        const int stride = static_cast<int>(gridDim.x);
        int stage = 0;
        unsigned lap = 0;
        const auto next_stage = [&] {
            if (++stage == stages) stage = 0, lap ^= 1;
        };
        for (int window = static_cast<int>(blockIdx.x); window < count; window += stride) {
            const bool others = given_up_by_one();
            finished(stage).wait(lap);
            if (shared.fails) {
                give_up();
                for (int s = 1; s < stages; ++s) next_stage(), full(stage).wait(lap);  // what was asked for has to arrive
                break;
            }
            const std::int64_t at = static_cast<std::int64_t>(window) * kept;
            const auto size = static_cast<int>((min(at + kept, whole) - at) * static_cast<int>(sizeof(T)));
            if (size > 0) send_bulk(to + at, shared_address(&shared.raw[stage][3][side]), static_cast<unsigned>(size));
            await_sent_reads();
            bring(others ? count : window + stages * stride, stage);
            next_stage();
            if (shared.window[stage] < 0) break;
        }
        await_sent();
    }

    // ---- those that compute ----

    /// Rows that are missing, those that do not come in whole vectors, and what elimination must not see. first: the lane's, as the system counts and as the window does.
    __device__ __forceinline__ void close_ends(std::int64_t first, int in_window, T* a, T* b, T* c, T* d) const {
        for (int i = 0; i < R; ++i) {
            const std::int64_t row = first + i;
            if (in_window + i < -halo || in_window + i >= kept + halo) continue;
            if (row < 0 || row >= all) {
                a[i] = 0, b[i] = 1, c[i] = 0, d[i] = 0;
                continue;
            }
            if (row >= whole) a[i] = input[0][row], b[i] = input[1][row], c[i] = row + 1 < all ? input[2][row] : T(0), d[i] = input[3][row];
            if (row == 0) a[i] = 0;
            if (row + 1 == all) c[i] = 0;
        }
    }

    /// Where a halo has no rows: what is beyond it is handed on as it is, so that what is left of its coupling is that of the rows that are there.
    __device__ __forceinline__ void fill_halos() const {
        for (int i = static_cast<int>(threadIdx.x); i < stages * 2 * (side - halo); i += static_cast<int>(blockDim.x)) {
            const int stage = i % stages, row = i / stages % (side - halo);
            const bool left = i / stages < side - halo;
            const int at = left ? row : Shared::rows - 1 - row;
            T(&rows)[4][Shared::rows] = shared.raw[stage];
            rows[0][at] = left ? T(-1) : T(0), rows[1][at] = 1, rows[2][at] = left ? T(0) : T(-1), rows[3][at] = 0;
        }
    }

    __device__ __forceinline__ void compute(float& lasting, unsigned& most, bool& bad) const {
        const int stride = static_cast<int>(gridDim.x);
        const int place = warp == before_all ? 0 : warp == after_all ? Warps + 1 : warp + 1;  // in the order of rows
        const int first = ((place - 1) * lanes + lane) * R;                                   // from the first row that is kept on
        WideLane<T> own;
        int stage = 0;
        unsigned lap = 0;
        for (int window = static_cast<int>(blockIdx.x), turn = 0; window < count; window += stride, ++turn) {
            full(stage).wait_together(lap);
            if (alike(shared.window[stage]) < 0) break;
            T(&rows)[4][Shared::rows] = shared.raw[stage];
            T *const a = rows[0] + side + first, *const b = rows[1] + side + first, *const c = rows[2] + side + first, *const d = rows[3] + side + first;
            const std::int64_t begin = static_cast<std::int64_t>(window) * kept;
            if (window == 0 || begin + kept + halo > whole) close_ends(begin + first, first, a, b, c, d);

            Interface<T> part;
            const bool dominant = own.reduce(a, b, c, d, lane, negligible, part) || warp >= Warps;  // halos' rows are others' to judge
            if (!dominant || bad) part.last.a = T(NAN);
            Interface<T>* const parts = shared.parts[turn & 1];
            if (lane == 0) parts[place] = part;
            asm volatile("bar.sync 1, %0;" ::"n"(lanes * (Warps + 2)) : "memory");

            // The last unknown of every warp but the last, by every warp: what is beyond the warps beside it is forgotten.
            const int between = min(lane, Warps);
            const Relation<T> joint = close_with(parts[between].last, parts[between + 1].first);
            const bool fails = __any_sync(~0u, !(fabs(joint.a) <= negligible && fabs(joint.c) <= negligible));
            const T after = parts[Warps + 1].first.d, of_end = parts[Warps + 1].first.a;
            if (fails || warp >= Warps) {
                if (fails && lane == 0) shared.fails = 1;
                leave_to_copies();
                __syncwarp();
                if (lane == 0) finished(stage).arrive();
                if (fails) break;
            } else {
                const T before = __shfl_sync(~0u, joint.d, warp), end = __shfl_sync(~0u, joint.d, warp + 1);
                T x[R];
                own.solve(a, c, d, before, end, lane, x);
                Largest<T> size;
#pragma unroll
                for (int i = 0; i < R; ++i) size.add(x[i]), d[i] = x[i];
                const unsigned top = __reduce_max_sync(~0u, held_bits(size));
                const T X = number_of<T>(top) * beyond_cut<T>;
                bad |= !Lane<T, R>::is_moderate(X);
                most = max(most, top), lasting = fmaxf(lasting, Lane<T, R>::lasts_by_rows(own.hardly));
                leave_to_copies();
                if (begin + kept > whole)
                    for (int i = 0; i < R; ++i)
                        if (begin + first + i >= whole && begin + first + i < all) to[begin + first + i] = x[i];
                if (warp == 0 && lane == 0 && window > 0) seams[window - 1].below = side_of(x[0], before, a[0], a[0], b[0], c[0], accept * X);
                if (warp == Warps - 1 && lane == lanes - 1 && window + 1 < count)
                    seams[window].above = side_of(x[R - 1], fused(-of_end, x[R - 1], after), c[R - 1], a[R - 1], b[R - 1], c[R - 1], accept * X);
                __syncwarp();
                if (lane == 0) finished(stage).arrive();
            }
            if (++stage == stages) stage = 0, lap ^= 1;
        }
    }

    // ---- all ----

    /// Whether x is there and good.
    __device__ bool run(Maxima& maxima) const {
        const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
        if (warp == mover && lane == 0) {
            for (int s = 0; s < stages; ++s) full(s).prepare(1), finished(s).prepare(Warps + 2);
            shared.fails = 0;
            if (blockIdx.x == 0) *largest = 0;
            for (int s = 0; s < stages; ++s) bring(static_cast<int>(blockIdx.x) + s * static_cast<int>(gridDim.x), s);
        }
        fill_halos();
        leave_to_copies();
        __syncthreads();
        float lasting = 0;
        unsigned most = 0;
        bool bad = false;
        if (warp < mover) compute(lasting, most, bad);
        else if (warp == mover && lane == 0) move();
        __syncwarp();
        if (bad) give_up();
        __syncthreads();
        if (threadIdx.x == 0)
            for (int s = 0; s < stages; ++s) forget(full(s)), forget(finished(s));
        grid.sync();
        if (given_up_by_one()) return false;

        if (warp < Warps && lane == 0) atomicMax(largest, most);
        Largest<T> excess;
        for (int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); s < count - 1; s += static_cast<int>(gridDim.x * blockDim.x)) {
            T words[sizeof(Seam<T>) / sizeof(T)];
#pragma unroll
            for (int m = 0; m < static_cast<int>(sizeof words / sizeof words[0]); ++m) words[m] = __ldcg(reinterpret_cast<const T*>(seams + s) + m);
            excess.add(excess_of(Side<T>{words[0], words[1], words[2], words[3]}, Side<T>{words[4], words[5], words[6], words[7]}));
        }
        const unsigned over = __reduce_max_sync(~0u, held_bits(excess));
        if (lane == 0 && over) atomicMax(&outcome->seams, static_cast<unsigned long long>(over));
        grid.sync();
        const auto worst = static_cast<unsigned>(*const_cast<volatile unsigned long long*>(&outcome->seams));
        const double floor = 0x1p-40 * static_cast<double>(accept) * static_cast<double>(number_of<T>(*const_cast<volatile unsigned*>(largest)));
        maxima.ends = lasting;
        return static_cast<double>(number_of<T>(worst) * beyond_cut<T>) <= floor;
    }
};

/// By all threads of all blocks; apart from the rest of the kernel, whose registers it would crowd.
template <class T>
__device__ __noinline__ bool solve_widely(const Job<T>* job, int halo, void* memory, Maxima* maxima) {
    return Wide<T>(*job, memory, halo).run(*maxima);
}

}  // namespace trifold::cuda::windows
