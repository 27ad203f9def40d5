// SPDX-License-Identifier: BSD-3-Clause
// Planes of a block in shared memory (planes.cuh): their places and barriers, how they come from memory and leave, and what blocks of a cluster send each other.
#pragma once

#include "backends/cuda/mesh/planes/layout.hpp"
#include "backends/cuda/mesh/planes/near.cuh"
#include "backends/cuda/mesh/points.cuh"
#include "backends/cuda/mesh/resident/blocks.cuh"
#include "backends/cuda/mesh/streaming/chip.cuh"
#include "backends/cuda/tridiagonal/block/copy_engine.cuh"

namespace trifold::cuda::planes {

/// Back: the step before ends here; Ahead: the next one begins.
template <class C, bool Back, bool Ahead>
struct PlanesPlaces {
    using T = typename C::real;
    static constexpr Layout<T> layout{C::nx, C::ny, C::S, C::R, C::R_y, C::H, C::nz / C::H, C::K};
    static constexpr int nx = C::nx, R_y = C::R_y, S = C::S, H = C::H, K = C::K, P = layout.plane(), segments = C::nz / H, threads = layout.threads(), slots = layout.slots;
    static constexpr int column_threads = layout.column_threads(), row_threads = layout.row_threads(), row_warps = row_threads / 32;  // that have columns, and rows
    static constexpr int row_only_warps = row_threads > column_threads ? (row_threads - column_threads) / 32 : 0;
    static constexpr int rows = C::ny / K, own_segments = S / K;  // of a plane, and of its lines along y, in a block
    static constexpr unsigned part_bytes = layout.part() * sizeof(T);
    static constexpr unsigned from_others = (S - own_segments) * 2 * nx * sizeof(T);  // ends of segments along y
    static constexpr int asks_values = threads - 32, sends_field = threads - 64;  // threads that do so
    static_assert(S * C::R == nx && S * R_y == C::ny && S % K == 0 && column_threads % 32 == 0 && row_threads % 32 == 0 && threads >= 64 && 32 % S == 0 && part_bytes % 16 == 0 && C::swizzled == layout.swizzled() && (!C::swizzled || part_bytes % 1024 == 0));
    using Two = Values<T, 2>;

    const MeshArguments<T>& a;
    const Pass<T>& pass;
    T* const memory;
    const int thread = static_cast<int>(threadIdx.x);
    const int rank = K > 1 ? static_cast<int>(blockIdx.x % K) : 0;       // of a cluster: a part of every plane
    const std::int64_t mesh = a.first_mesh + blockIdx.x / K / segments;
    const int segment = static_cast<int>(blockIdx.x / K % segments);      // in the order of planes of this pass
    const bool before_there = segment > 0, behind_there = segment < segments - 1;
    const int from = Ahead && before_there ? -1 : 0, to = Ahead && behind_there ? H : H - 1;  // planes that are looked at

    /// Whole warps have.
    static __device__ __forceinline__ bool has_columns() { return column_threads == threads || anew() < column_threads; }
    static __device__ __forceinline__ bool has_rows() { return row_threads == threads || anew() < row_threads; }
    __device__ __forceinline__ Arrival barrier(int which) const { return {streaming::shared_address(memory + layout.barriers()) + 8 * static_cast<unsigned>(which)}; }
    __device__ __forceinline__ Arrival full(int k) const { return barrier(k + slots & slots - 1); }
    __device__ __forceinline__ Arrival values_full() const { return barrier(slots); }
    __device__ __forceinline__ Arrival before_full() const { return barrier(slots + 1); }
    __device__ __forceinline__ Arrival ends_full(int turn) const { return barrier(slots + 2 + turn); }
    __device__ __forceinline__ Arrival beside_full(int turn) const { return barrier(slots + 4 + turn); }
    __device__ __forceinline__ Arrival looked() const { return barrier(slots + 6); }
    __device__ __forceinline__ unsigned left() const { return barrier(slots + 7).barrier; }
    __device__ __forceinline__ int* runs_of(int of_rank) const { return reinterpret_cast<int*>(memory + layout.barriers()) + 2 * layout.barrier_count + of_rank; }
    __device__ __forceinline__ T* slot(int k) const { return memory + (k + slots & slots - 1) * layout.part(); }
    /// Ends of segments along y, rows of nx: last rows, and what the first ones keep.
    __device__ __forceinline__ T* last(int turn) const { return memory + layout.last() + turn * S * nx; }
    __device__ __forceinline__ T* first(int turn) const { return memory + layout.first() + turn * (S + 1) * nx; }
    /// The row beyond this block's, of a plane: side 0 that of the block before.
    __device__ __forceinline__ T* beside(int turn, int side) const { return memory + layout.beside() + (2 * turn + side) * nx; }
    __device__ __forceinline__ int plane(int k) const { return pass.up ? segment * H + k : C::nz - 1 - segment * H - k; }
    /// Of a segment's first or last plane in the order of this pass.
    __device__ __forceinline__ std::int64_t end(int of, int last) const { return ((mesh * segments + (pass.up ? of : segments - 1 - of)) * 2 + (pass.up ? last : 1 - last)) * P; }
    __device__ __forceinline__ std::int64_t values_at(int k) const { return (mesh * C::nz + plane(k)) * P; }

    /// This block's part of the plane at `at` of an array (of mesh `of_mesh`, `apart` from each other).
    __device__ __forceinline__ void bring(const Arrival& there, T* place, const T* array, const TensorMap& map, std::int64_t at, std::int64_t of_mesh = 0, std::int64_t apart = 0) const {
        there.expect(part_bytes);
        if constexpr (C::swizzled)
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(streaming::shared_address(place)), "l"(&map), "r"(0),
                         "r"(static_cast<int>((at + rank * layout.part()) / layout.in_line)), "r"(static_cast<int>(of_mesh)), "r"(there.barrier)
                         : "memory");
        else there.copy(streaming::shared_address(place), array + of_mesh * apart + at + rank * layout.part(), part_bytes);
    }
    __device__ __forceinline__ void bring_field(int k) const {
        if (k >= from && k <= to) bring(full(k), slot(k), pass.from, pass.map_from, std::int64_t{plane(k)} * P, mesh, pass.from_apart);
    }
    /// Ends of segments are solved; beyond the last plane of this segment `before` has the solution.
    __device__ __forceinline__ void bring_values(int k) const {
        if (!Back || k < from || k > to || k == H) return;
        T* const place = memory + layout.values();
        if (k > 0 && k < H - 1) bring(values_full(), place, a.values, pass.map_values, values_at(k));
        else bring(values_full(), place, pass.solved, pass.map_solved, k < 0 ? end(segment - 1, 1) : end(segment, k != 0));
    }
    __device__ __forceinline__ void send(T* array, const TensorMap& map, std::int64_t at, const T* place, std::int64_t of_mesh = 0, std::int64_t apart = 0) const {
        if constexpr (C::swizzled)
            asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(0), "r"(static_cast<int>((at + rank * layout.part()) / layout.in_line)),
                         "r"(static_cast<int>(of_mesh)), "r"(streaming::shared_address(place))
                         : "memory");
        else
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(array + of_mesh * apart + at + rank * layout.part()), "r"(streaming::shared_address(place)), "r"(part_bytes) : "memory");
    }
    static __device__ __forceinline__ void sent() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
    static __device__ __forceinline__ void await_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
    /// By all lanes of warps that have rows, behind what they have stored. Whether this is the first lane of the warp that comes last.
    __device__ __forceinline__ bool leave(int k) const {
        streaming::before_bulk_copies();
        __syncwarp();
        unsigned before_it = 0;
        if (thread % 32 == 0) asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], 1;" : "=r"(before_it) : "r"(left()) : "memory");
        return before_it == static_cast<unsigned>((k + 1) * row_warps - 1);
    }
    /// What was eliminated of plane k lies where plane k - 1 was; of the last one what the first keeps, where that was.
    __device__ __forceinline__ void send_eliminated(int k) const {
        if (k == H - 1) send(pass.ends, pass.map_ends, end(segment, 1), slot(k - 1)), send(pass.ends, pass.map_ends, end(segment, 0), slot(k));
        else if (k > 0) send(a.values, pass.map_values, values_at(k), slot(k - 1));
        sent();
    }

    /// Tables, barriers, and what lies beyond the mesh: nothing that the kernel before has written.
    __device__ __forceinline__ void prepare() {
        for (int i = thread; i < layout.tables_xy(); i += threads) memory[layout.along_x() + i] = pass.tables[i];
        // Along z by plane of this pass: 1/pivot, lower, reach as it eliminates, upper, fill as it goes back.
        for (int i = thread; i < 5 * H; i += threads) {
            const int which = i / H, k = segment * H + i % H;
            memory[layout.along_z() + i] = pass.tables[layout.tables_xy() + (which < 3 ? k : C::nz - 1 - k) * 5 + which];
        }
        for (int i = thread; i < nx; i += threads)
#pragma unroll
            for (int turn = 0; turn < layout.turns(); ++turn) first(turn)[S * nx + i] = 0;
        if (!behind_there)
            for (int i = thread; i < layout.part(); i += threads) memory[layout.before() + i] = 0;
        if (thread == 0) {
            for (int k = 0; k < slots + 6; ++k) barrier(k).prepare(k == slots + 2 || k == slots + 3 ? 1 + (K - 1) * row_only_warps : 1);  // ends_full
            looked().prepare(row_warps);
            asm volatile("st.shared.u32 [%0], 0;" ::"r"(left()) : "memory");
        }
        streaming::before_bulk_copies();
    }

    /// By all threads of a cluster, whose barriers are ready then. Nobody's memory is written to before, nor once it has all it waits for.
    __device__ __forceinline__ bool all_run(bool on) const {
        if (thread < K) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(in_block(streaming::shared_address(runs_of(rank)), thread)), "r"(on ? 1 : 0) : "memory");
        cluster_barrier();
        bool all = true;
#pragma unroll
        for (int r = 0; r < K; ++r) all = all && *runs_of(r) != 0;
        return all;
    }

    /// Behind a barrier: the first planes are asked for.
    __device__ __forceinline__ void begin() {
        if (thread == asks_values) {
            if (Back && behind_there) bring(before_full(), memory + layout.before(), pass.solved, pass.map_solved, end(segment + 1, 0));
            bring_values(from);
            for (int k = -1; k <= 2; ++k) bring_field(k);
        }
        if (Back && behind_there) before_full().wait(0);
    }

    /// Planes of a cluster take places in turns: a block sends what is of plane k once the others have sent what is of plane k - 1, behind their last look at plane k - 2.
    __device__ __forceinline__ int turn_of(int k) const { return K > 1 ? k - from & 1 : 0; }
    __device__ __forceinline__ unsigned turns_before(int k) const { return static_cast<unsigned>(k - from) >> 1 & 1; }

    /// Of a segment of two lines along y of plane k, for all blocks: its last row as eliminated, and what its first one keeps.
    __device__ __forceinline__ void put_ends(int k, int at, const Two& of_last, const Two& of_first) const {
        const int of = turn_of(k);
        T *const last_row = last(of) + at, *const first_row = first(of) + at;
        *reinterpret_cast<Two*>(last_row) = of_last;
        *reinterpret_cast<Two*>(first_row) = of_first;
        if constexpr (K > 1) {
            if (thread == 0) ends_full(of).expect(from_others);
#pragma unroll
            for (int r = 1; r < K; ++r) {
                const int to_rank = (rank + r) % K;
                const unsigned news = in_block(ends_full(of).barrier, to_rank);
                trifold::cuda::send(in_block(streaming::shared_address(last_row), to_rank), of_last.at[0], of_last.at[1], news);
                trifold::cuda::send(in_block(streaming::shared_address(first_row), to_rank), of_first.at[0], of_first.at[1], news);
            }
        }
    }

    /// Other blocks send rows beside those of plane k in place of those of plane k - 2, behind all ends of plane k. Warps without columns, which send no ends, say besides that they have looked at them.
    __device__ __forceinline__ void put_no_ends(int k) const {
        if (thread % 32 != 0) return;
#pragma unroll
        for (int r = 1; r < K; ++r) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_block(ends_full(turn_of(k)).barrier, (rank + r) % K)) : "memory");
    }

    /// Where no ends are sent: all of a cluster have looked at the rows beside those of the planes before.
    static __device__ __forceinline__ void await_cluster() {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }

    /// Rows at the ends of this block's part of plane k, for the right-hand sides of the blocks beside it.
    __device__ __forceinline__ void send_beside(int k, const ThreadColumns<C>& place, const Two& low, const Two& high) const {
        if (thread == 0) beside_full(k & 1).expect(((rank > 0) + (rank < K - 1)) * nx * static_cast<unsigned>(sizeof(T)));
        const int at = in_plane<C>(0, place.column);
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const Two& two = side ? high : low;
            if (side ? place.own_y < own_segments - 1 || rank == K - 1 : place.own_y > 0 || rank == 0) continue;
            const int to_rank = rank + (side ? 1 : -1);
            trifold::cuda::send(in_block(streaming::shared_address(beside(k & 1, 1 - side) + at), to_rank), two.at[0], two.at[1], in_block(beside_full(k & 1).barrier, to_rank));
        }
    }

    __device__ __forceinline__ void send_beside(int k) const {
        if (!has_columns()) return;
        const ThreadColumns<C> place(anew());
        send_beside(k, place, *reinterpret_cast<const Two*>(slot(k) + place.at(0)), *reinterpret_cast<const Two*>(slot(k) + place.at(R_y - 1)));
    }
};

}  // namespace trifold::cuda::planes
