// SPDX-License-Identifier: BSD-3-Clause
// Runs of whole systems of different lengths, rows side by side, on chip:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i]
//
// Arrays: one-dimensional, without gaps. x may be d, or be added to. Couplings across the ends of systems may be anything; the first of lower and the last of upper need not exist.
// Who does what: as in block/rows_kernel.cuh. A warp has up to 32 R rows: a run, or, where a run is a team's, a part of one. Couplings where a system ends (a bit for each row says so) are cleared in shared memory, and what is left is one
//   system. Runs are drawn one ahead of the one that is asked for, since where a run lies comes from memory too.
// Words per row of device memory: 4 read, 1 written, and a bit.
// Numerics: nothing is pivoted. Per lane, and per system within it, max|rhs - A x| ≤ accept × max|diag| × max|x|, which no other system's x or diagonal changes. Else the system is marked and not stored; where several warps share a run, all of
//   its systems are.
#pragma once

#include "backends/cuda/tridiagonal/block/rows_kernel.cuh"
#include "backends/cuda/tridiagonal/general/ragged_cut.cuh"

namespace trifold::cuda {

template <class T>
struct RaggedRunsJob {
    const RaggedRun* runs = nullptr;
    const unsigned* run_count = nullptr;
    unsigned* tickets = nullptr;
    const std::int64_t* offsets = nullptr;
    const unsigned* ends = nullptr;   ///< RaggedCut's
    std::int64_t first = 0, end = 0;  ///< rows of the batch
    T* operand[5] = {};               ///< lower, diag, upper, rhs, x
    bool adds = false;
    T accept = 0;
    int warps = 1, blocks = 1;        ///< of a block, of a cluster
    int tile_elements = 0, tiles = 0, scratch = 0, couplings = 0, exchange = 0, own = 0;  ///< in shared memory: of an operand's rows of a warp; offsets (block/rows_layout.hpp), of what follows too
    unsigned char* marks = nullptr;     ///< of systems: 1 where it is for others, 2 where it has failed
    unsigned long long* any = nullptr;  ///< not zero where something was marked
    // Of runs that are not dominant (ragged_dominant.cuh).
    RaggedRun* others = nullptr;
    unsigned* other_count = nullptr;
    // Of parts of long systems (ragged_parts.cuh).
    const RaggedParts* cut_systems = nullptr;
    const unsigned* cut_count = nullptr;
    T* relations = nullptr;             ///< per part: first, last
    T* found = nullptr;                 ///< per part: its last unknown
    T* around = nullptr;                ///< per part, null where runs are no parts: the unknown before it, its last one, the one behind it; NaN where its system is marked
    bool in_place = false;
    std::int8_t* status = nullptr;
    DeviceOutcome* outcome = nullptr;
};

inline constexpr int run_line = 64;  ///< bytes: a tile keeps its offset from so many

/// What a warp has in shared memory beside its rows: the run that is solved and the next one, whose rows are -1 where there is none; how many runs there are; bits of the rows.
template <class T, int R>
struct alignas(16) RunOfWarp {
    RaggedRun runs[2];
    T around[3];
    unsigned count;
    unsigned bits[R + 3];
};

/// Of shared memory per operand, wherever in a line the rows begin.
template <class T, int R>
inline constexpr int runs_tile_elements = (32 * R + 2 * (run_line / static_cast<int>(sizeof(T))) - 2) / (run_line / static_cast<int>(sizeof(T))) * (run_line / static_cast<int>(sizeof(T)));

/// Fills in where things lie, and returns the bytes of a block.
template <class T, int R>
int lay_out(RaggedRunsJob<T>& job, bool couple) {
    job.tile_elements = runs_tile_elements<T, R>;
    const RowsMemory layout(static_cast<int>(sizeof(T)), job.warps, job.tile_elements, job.tile_elements, 0, couple, job.warps * job.blocks);
    job.tiles = layout.tiles, job.scratch = layout.scratch, job.couplings = layout.couplings, job.exchange = layout.exchange, job.own = (layout.bytes + 15) / 16 * 16;
    return job.own + job.warps * static_cast<int>(sizeof(RunOfWarp<T, R>));
}

/// Lane k < 4 asks for its operand's rows. Returns its shift, in byte k.
template <class T>
__device__ __forceinline__ unsigned ask_run(const RaggedRunsJob<T>& job, const RowsPlace<T>& home, std::int64_t row, int k) {
    constexpr int E = 16 / sizeof(T), around = 4;  // rows that a piece of 16 bytes may have before or behind
    if (home.rows == 0) {
        home.arrival.expect(0);
        return 0;
    }
    const T* const from = job.operand[k] + row;
    const int shift = (static_cast<int>(reinterpret_cast<std::uintptr_t>(from)) & (run_line - 1)) / static_cast<int>(sizeof(T)), over = shift % E;
    const unsigned to = shared_address(home.tile(k)) + shift * sizeof(T);
    if (row - job.first >= around && job.end - row - home.rows >= around) {
        const unsigned bytes = static_cast<unsigned>(over + home.rows + E - 1) / E * 16;
        home.arrival.expect(bytes);
        home.arrival.copy(to - over * sizeof(T), from - over, bytes);
    } else {
        const int low = k == 0 && row == job.first, high = home.rows - (k == 2 && row + home.rows == job.end);
        const int begin = (over + low + E - 1) / E * E - over, end = (over + high) / E * E - over;
        const bool some = end > begin;
        home.arrival.expect(some ? static_cast<unsigned>(end - begin) * sizeof(T) : 0);
        if (some) home.arrival.copy(to + begin * sizeof(T), from + begin, static_cast<unsigned>(end - begin) * sizeof(T));
#pragma unroll 1
        for (int i = low; i < (some ? begin : high); ++i) copy_async(to + i * sizeof(T), from + i);
#pragma unroll 1
        for (int i = some ? end : high; i < high; ++i) copy_async(to + i * sizeof(T), from + i);
    }
    return static_cast<unsigned>(shift) << 8 * k;
}

/// x of a warp's rows, by all lanes; the copy engine may still read it then, for lane 3.
template <class T>
__device__ __forceinline__ void store_run(const RaggedRunsJob<T>& job, T* to, const T* x, int rows, int lane) {
    constexpr int E = 16 / sizeof(T);
    if (rows == 0) return;
    if (job.adds) {
        add_run<Adding::loads>(to, x, rows, lane);
    } else if (offset_in_vector(to) == static_cast<int>(shared_address(x) % 16 / sizeof(T))) {
        if (lane == 3) {
            const int head = min((E - offset_in_vector(to)) % E, rows), body = (rows - head) / E * E;
            if (body)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + head), "r"(shared_address(x + head)), "r"(static_cast<unsigned>(body * sizeof(T))) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#pragma unroll 1
            for (int i = 0; i < head; ++i) to[i] = x[i];
#pragma unroll 1
            for (int i = head + body; i < rows; ++i) to[i] = x[i];
        }
    } else {
#pragma unroll 4
        for (int i = lane; i < rows; i += 32) to[i] = x[i];
    }
}

/// A warp's run of which some systems are not good: those are marked, the others stored.
template <class T, int R>
__device__ __noinline__ void mark_some(const RaggedRunsJob<T>& job, const RaggedRun* run, const T* x, RowsVerdict<R> verdict, int lane) {
    const std::int64_t k = run->system, end = k + run->systems, row = run->row;
    verdict.each([&](int i) {
        const std::int64_t at = row + min(lane * R + i, run->rows - 1);
        job.marks[system_from(job.offsets, k + 1, end + 1, at + 1) - 1] = 1;  // the first offset behind that row is the end of its system
    });
    if (lane == 0) atomicAdd(job.any, 1ull);
    __syncwarp();
    T* const to = job.operand[4];
    const auto store = [&](std::int64_t i) { job.adds ? void(to[i] += x[i - row]) : void(to[i] = x[i - row]); };
    for (std::int64_t base = k; base < end; base += 32) {
        const std::int64_t s = base + lane;
        const bool good = s < end && *const_cast<volatile unsigned char*>(job.marks + s) == 0;
        const std::int64_t begin = good ? job.offsets[s] : 0, behind = good ? job.offsets[s + 1] : 0;
        if (end - k >= 32) {
            for (std::int64_t i = begin; i < behind; ++i) store(i);
            continue;
        }
        for (int j = 0; j < static_cast<int>(end - k); ++j) {
            const std::int64_t from = __shfl_sync(~0u, begin, j), before = __shfl_sync(~0u, behind, j);
            for (std::int64_t i = from + lane; i < before; i += 32) store(i);
        }
    }
    __syncwarp();
}

/// What a warp asks again where it is needed: registers are for the rows.
template <class T, int R, bool Couple>
struct WarpOfRuns {
    const RaggedRunsJob<T>& job;

    __device__ __forceinline__ static int lane() { return static_cast<int>(threadIdx.x) & 31; }
    __device__ __forceinline__ int parts() const { return job.warps * job.blocks; }
    __device__ __forceinline__ int part() const { return Couple ? (job.blocks > 1 ? static_cast<int>(blockIdx.x) % job.blocks * job.warps : 0) + warp_again() : 0; }
    __device__ __forceinline__ unsigned teams() const { return Couple ? gridDim.x / static_cast<unsigned>(job.blocks) : gridDim.x * static_cast<unsigned>(job.warps); }
    __device__ __forceinline__ unsigned first_turn() const { return Couple ? blockIdx.x / static_cast<unsigned>(job.blocks) : blockIdx.x * static_cast<unsigned>(job.warps) + threadIdx.x / 32; }
    __device__ __forceinline__ RunOfWarp<T, R>* own() const { return in_shared<RunOfWarp<T, R>>(job.own) + warp_again(); }
    __device__ __forceinline__ const RaggedRun& run(unsigned round) const { return own()->runs[round & 1]; }
    __device__ __forceinline__ Exchange<T> exchange() const { return {shared_address(in_shared<char>(8 * job.warps)), job.exchange, parts(), job.blocks, true}; }
    __device__ __forceinline__ WarpRows<T> joined() const { return WarpRows<T>(in_shared<T>(job.scratch) + warp_again() * warp_words); }
    __device__ __forceinline__ RowsPlace<T> here(unsigned round) const {
        RowsPlace<T> home;
        home.warp = warp_again(), home.part = part();
        home.tiles = job.tiles + home.warp * 4 * job.tile_elements * static_cast<int>(sizeof(T));
        home.apart = job.tile_elements;
        home.bad = -1;
        home.arrival = {shared_address(in_shared<char>(8 * home.warp))};
        const int rows = run(round).rows;
        home.first_row = Couple ? min(home.part * 32 * R, rows) : 0;
        home.rows = Couple ? min(32 * R, rows - home.first_row) : rows;
        return home;
    }
    __device__ __forceinline__ std::int64_t row_of(unsigned round, const RowsPlace<T>& home) const { return run(round).row + home.first_row; }

    /// By lane 0.
    __device__ __forceinline__ void bring_run(unsigned turn, unsigned round) const {
        RaggedRun* const to = own()->runs + (round & 1);
        if (turn < own()->count) copy_vector_async(shared_address(to), job.runs + turn), copy_vector_async(shared_address(to) + 16, reinterpret_cast<const char*>(job.runs + turn) + 16);
        else to->rows = -1;
    }
    /// Bits of a run's rows and of the one before, and what is around a part, if that is known.
    __device__ __forceinline__ void bring_bits(unsigned round) const {
        constexpr int words = (R + 3 + 31) / 32;
        const RowsPlace<T> home = here(round);
        const std::int64_t from = row_of(round, home) - job.first + bits_before - 1;
        const int last = static_cast<int>((from & 31) + home.rows) / 32;
#pragma unroll
        for (int w = 0; w < words; ++w)
            if (lane() + 32 * w <= last) copy_async(shared_address(own()->bits + lane() + 32 * w), job.ends + from / 32 + lane() + 32 * w);
        if (!Couple && job.around && lane() < 3) copy_async(shared_address(own()->around + lane()), job.around + 3 * static_cast<std::int64_t>(run(round).part) + lane());
    }

    /// Clears couplings where systems end, and what only fills a lane. Returns the lane's bits. By all lanes, between barriers of the warp.
    __device__ __forceinline__ unsigned long long close(unsigned round, const RowsPlace<T>& home, const RowsTile<T>& at) const {
        const int start = lane() * R, have = min(home.rows - start, R), before = static_cast<int>(row_of(round, home) - job.first + bits_before - 1) & 31;
        const unsigned* const bits_of_rows = own()->bits;
        unsigned long long bits = 0;
        if (have > 0) {
            const unsigned* const word = bits_of_rows + (before + 1 + start) / 32;
            bits = (word[0] | static_cast<unsigned long long>(word[1]) << 32) >> ((before + 1 + start) & 31);
            bits &= (1ull << have) - 1;
#pragma unroll 1
            for (unsigned long long rest = bits; rest; rest &= rest - 1) {
                const int i = start + __ffsll(static_cast<long long>(rest)) - 1;
                at.c[i] = 0;
                if (i + 1 < home.rows) at.a[i + 1] = 0;
            }
            if (lane() == 0 && bits_of_rows[0] >> before & 1) at.a[0] = 0;
        }
        constexpr T least = sizeof(T) == 8 ? T(0x1p-1000) : T(0x1p-120);  // rows that only fill a lane: x = 0 (rows_kernel.cuh)
#pragma unroll 1
        for (int row = home.rows + lane(); row < (home.rows + R - 1) / R * R; row += 32) at.a[row] = 0, at.b[row] = least, at.c[row] = 0, at.d[row] = 0;
        return bits;
    }

    /// Before the first round: false where there is nothing for the team.
    __device__ __forceinline__ bool begin() const {
        if (first_turn() >= *job.run_count) return false;
        if (lane() == 0) {
            own()->count = *job.run_count;
            Arrival{shared_address(in_shared<char>(8 * warp_again()))}.prepare(4);
            bring_run(first_turn(), 0), bring_run(first_turn() + teams(), 1);
        }
        if constexpr (Couple) {
            if (threadIdx.x == 0) exchange().prepare(job.warps);
            if (job.blocks > 1) {
                asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
                asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
            } else {
                __syncthreads();
            }
        }
        await_copies();
        __syncwarp();
        return true;
    }
    /// Lanes from, … to - 1 ask for their operands. Returns what ask_run does.
    __device__ __forceinline__ unsigned ask(unsigned round, int from, int to) const {
        if (lane() < from || lane() >= to) return 0;
        const RowsPlace<T> home = here(round);
        return ask_run(job, home, row_of(round, home), lane());
    }
};

/// Not an addition: that is made for all lanes together, even if there is one, and waits for its answer.
__device__ __forceinline__ unsigned next_ticket(unsigned* tickets) {
    unsigned ticket;
    asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], 0x7fffffff;" : "=r"(ticket) : "l"(tickets) : "memory");
    return ticket;
}

/// The systems of a run, or a part's, whose x is not good though rows were. Others of their rows have been stored: what was in their place is gone where x was rhs or is added to. By one thread.
template <class T>
__device__ __noinline__ void mark_lost(const RaggedRunsJob<T>& job, const RaggedRun& run) {
    const bool lost = job.in_place || job.adds;
    for (std::int64_t k = run.system; k < run.system + run.systems; ++k) {
        if (*const_cast<volatile unsigned char*>(job.marks + k) != 0 || job.offsets[k] == job.offsets[k + 1]) continue;
        auto* const word = reinterpret_cast<unsigned*>(job.marks + (k & ~std::int64_t{3}));  // marks begin at a multiple of 4
        const int shift = 8 * static_cast<int>(k & 3);
        const unsigned old = atomicOr(word, (lost ? 2u : 1u) << shift) >> shift & 255;
        if (old == 0) lost ? report_failure(job.outcome, job.status, k, -1, Reason::unstable) : void(atomicAdd(job.any, 1ull));
    }
}

template <class T, int R, bool Couple>
__device__ __forceinline__ void solve_runs_of(const RaggedRunsJob<T>& job) {
    const WarpOfRuns<T, R, Couple> warp{job};
    const int lane = warp.lane();
    if (!warp.begin()) return;
    warp.bring_bits(0);
    unsigned shifts = __reduce_or_sync(~0u, warp.ask(0, 0, 4));
#pragma unroll 1
    for (unsigned round = 0;; ++round) {
        unsigned later_turn = 0;
        if (lane == 0 && warp.part() == 0) later_turn = next_ticket(job.tickets) + 2 * warp.teams();
        Chunk<T, R> rows;
        RowBits<R> ends;
        bool active, broken = false;  // broken: its own rows will tell, others must not suffer
        {
            const RowsPlace<T> home = warp.here(round);
            await_copies();
            home.arrival.wait(round & 1);
            __syncwarp();
            ends = static_cast<RowBits<R>>(warp.close(round, home, RowsTile<T>(home, shifts, 0)) & ((1ull << (R - 1)) - 1));
            active = lane * R < home.rows;
            __syncwarp();
        }
        if (active) {
            const RowsTile<T> at(warp.here(round), shifts, lane * R);
#pragma unroll
            for (int i = 0; i < R; ++i) rows.eliminate_to_check(i, at.a[i], at.b[i], at.c[i], at.d[i]);
            rows.reduce();
            const T sum = fabs(rows.a[0]) + fabs(rows.c[0]) + fabs(rows.d[0]) + fabs(rows.a[R - 1]) + fabs(rows.c[R - 1]) + fabs(rows.d[R - 1]);
            broken = finite_or_zero(sum) != sum;
        }
        if (!active || broken) rows.a[0] = rows.c[0] = rows.d[0] = rows.a[R - 1] = rows.c[R - 1] = rows.d[R - 1] = 0;
        Relation<T> warp_first;
        const Relation<T> warp_last = warp.joined().template reduce<Couple>(rows.first(), rows.last(), lane, warp_first);
        Around<T> around{T(0), warp_last.d, T(0)};
        if constexpr (Couple) {
            const Exchange<T> exchange = warp.exchange();
            exchange.tell(round & 1, warp.part(), warp_first, warp_last, later_turn, lane);
            Relation<T> their_first, their_last;
            exchange.hear(round & 1, round >> 1 & 1, warp_again() == 0, their_first, their_last, lane);
            T* const memory = in_shared<T>(warp.parts() <= 16 ? job.scratch : job.couplings) + warp_again() * warp_words;
            around = solve_parts(their_first, their_last, warp.parts(), warp.part(), memory, lane);
        } else if (job.around) {
            const T* const known = warp.own()->around;
            around = {known[0], known[1], known[2]};
        }
        T left;
        const T mine = warp.joined().substitute(around.before, around.last, lane, left);
        const Relation<T> next{__shfl_down_sync(~0u, rows.a[0], 1), __shfl_down_sync(~0u, rows.c[0], 1), __shfl_down_sync(~0u, rows.d[0], 1)};
        const T x_next = __shfl_down_sync(~0u, mine, 1);
        const T after = lane < 31 ? fused(-next.c, x_next, fused(-next.a, mine, next.d)) : around.after;

        const RowBits<R> all_ends = of_all_lanes(ends);
        RowsVerdict<R> verdict;
        if (active) {
            const RowsTile<T> at(warp.here(round), shifts, lane * R);
            if (all_ends == 0) verdict = check_rows<false>(rows, at, left, mine, after, job.accept, ends, all_ends, broken);
            else verdict = check_rows<true>(rows, at, left, mine, after, job.accept, ends, all_ends, broken);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine reads and overwrites what was written here
        bool all = !__any_sync(~0u, verdict.failed());
        __syncwarp();
        const bool goes_on = warp.run(round + 1).rows >= 0;
        unsigned later_shifts = 0;
        if constexpr (Couple) warp.exchange().judge(round & 1, warp.part(), all, lane);
        if (goes_on) {
            warp.bring_bits(round + 1);
            later_shifts = warp.ask(round + 1, 0, 3);
        }
        if constexpr (Couple) all = warp.exchange().agree(round & 1, round >> 1 & 1, warp_again() == 0, lane);
        {
            const RowsPlace<T> home = warp.here(round);
            const T* const x = home.tile(3) + (shifts >> 24);
            if (all) {
                store_run(job, job.operand[4] + warp.row_of(round, home), x, home.rows, lane);
            } else if constexpr (!Couple) {
                if (!job.around) mark_some<T, R>(job, &warp.run(round), x, verdict, lane);
                else if (lane == 0) mark_lost(job, warp.run(round));
            } else if (home.part == 0) {
                const RaggedRun& run = warp.run(round);
                for (std::int64_t k = lane; k < run.systems; k += 32) job.marks[run.system + k] = 1;
                if (lane == 0) atomicAdd(job.any, 1ull);
            }
        }
        __syncwarp();
        if (lane == 0) warp.bring_run(Couple ? *warp.exchange().ticket_of(round & 1) : later_turn, round);  // in place of the one that is done
        await_reads();
        __syncwarp();
        if (!goes_on) break;
        later_shifts |= warp.ask(round + 1, 3, 4);
        shifts = __reduce_or_sync(~0u, later_shifts);
    }
    await_copies();
    // Messages still go to blocks of the cluster.
    if (Couple && job.blocks > 1) {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
}

template <class T, int R, bool Couple, int Threads, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks) ragged_runs_kernel(const __grid_constant__ RaggedRunsJob<T> job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // runs_take keeps others away
    after_the_kernel_before();
    solve_runs_of<T, R, Couple>(job);
#endif
}

}  // namespace trifold::cuda
