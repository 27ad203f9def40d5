// SPDX-License-Identifier: BSD-3-Clause
// The second of two pivoted passes: a warp brings a tile of chunks into shared memory, lanes solve them between their ends, and then all of them
// multiply x with the rows read again (from the second-level cache) and keep the largest residual. Shapes and numerics: two_pass.cu.
// Words per row: 4 read, 1 written. Rows of a chunk wait for each other; warps, of which a multiprocessor has twelve, for nobody. In double precision, where these have room for 16 chunks each,
// two lanes share a chunk, and each eliminates from its end to the middle.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_check.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_tile.cuh"

namespace trifold::cuda::two_pass {

/// Lanes that share a chunk.
template <class T>
inline constexpr int sides = sizeof(T) == 8 ? 2 : 1;
template <class T>
using Tiled = Tile<T, lanes / sides<T>>;

/// Of finish_kernel, on a multiprocessor.
inline constexpr int finish_blocks = 3;

/// Two equations in the two unknowns in the middle of a chunk, from either side.
template <class T>
struct Middle {
    T left[4], right[4], rhs[4];  ///< coefficients of the unknown before the middle, and behind it

    /// Of four equations two determine the unknowns, two should hold then. Both lanes of a chunk do the same.
    __device__ __forceinline__ void solve(T& before, T& behind) {
#pragma unroll
        for (int k = 1; k < 4; ++k) exchange_if(abs(left[k]) > abs(left[0]), k, 0);
        const T first = reciprocal(left[0]);
#pragma unroll
        for (int k = 1; k < 4; ++k) {
            const T m = left[k] * first;
            right[k] -= m * right[0], rhs[k] -= m * rhs[0];
        }
#pragma unroll
        for (int k = 2; k < 4; ++k) exchange_if(abs(right[k]) > abs(right[1]), k, 1);
        behind = rhs[1] * reciprocal(right[1]);
        before = (rhs[0] - right[0] * behind) * first;
    }

private:
    __device__ __forceinline__ void exchange_if(bool wanted, int a, int b) {
        const auto exchange = [&](T& p, T& q) {
            const T kept = p;
            p = wanted ? q : p, q = wanted ? kept : q;
        };
        exchange(left[a], left[b]), exchange(right[a], right[b]), exchange(rhs[a], rhs[b]);
    }
};

/// Chunks of 32 rows, each by a lane, or by lanes l and l + 16. A pivot's row takes the place of the row that has joined; x takes that of the right-hand side.
template <class T>
__device__ __forceinline__ void solve_full(const Tiled<T>& tile, int lane, T before, T first, T last, T after) {
    constexpr int E = together<T>, pieces = chunk_rows / E, own_pieces = pieces / sides<T>;
    const int chunk = lane % Tiled<T>::of_all;
    const bool up = lane >= Tiled<T>::of_all;  // from the last row on
    // Piece p of the lane's; rows in the order in which they are eliminated.
    const auto at = [&](int which, int p) -> Piece<T>& { return tile.piece(which, chunk, up ? pieces - 1 - p : p); };
    const auto ordered = [&](const Piece<T>& from) {
        if (sides<T> == 1) return from;
        Piece<T> to;
#pragma unroll
        for (int i = 0; i < E; ++i) to.at[i] = up ? from.at[E - 1 - i] : from.at[i];
        return to;
    };
    const int near = up ? 2 : 0, far = 2 - near;  // arrays: of the unknown that was eliminated before, and of the next one
    const auto row_of = [](const Piece<T>& l, const Piece<T>& d, const Piece<T>& u, const Piece<T>& f, int i) { return chunk::Short<T>{l.at[i], d.at[i], u.at[i], f.at[i]}; };
    Piece<T> l = ordered(at(near, 0)), d = ordered(at(1, 0)), u = ordered(at(far, 0)), f = ordered(at(3, 0));
    const T outside = up ? after : before, end = up ? last : first;
    Eliminator<T> down(row_of(l, d, u, f, 0), row_of(l, d, u, f, 1), outside, end);
    const auto join = [&](int i) {
        const chunk::Short<T> pivot = down.join(row_of(l, d, u, f, i));
        l.at[i] = pivot.p, d.at[i] = pivot.q, u.at[i] = pivot.r, f.at[i] = pivot.rhs;
    };
#pragma unroll
    for (int i = 2; i < E; ++i) join(i);
#pragma unroll 1
    for (int p = 0;;) {
        at(near, p) = l, at(1, p) = d, at(far, p) = u, at(3, p) = f;
        if (++p == own_pieces) break;
        l = ordered(at(near, p)), d = ordered(at(1, p)), u = ordered(at(far, p)), f = ordered(at(3, p));
#pragma unroll
        for (int i = 0; i < E; ++i) join(i);
    }
    T next = last, beyond = after;
    if constexpr (sides<T> == 2) {  // p: of the lane's own last unknown, q: of the other lane's
        Middle<T> middle;
        const chunk::Short<T> own[2] = {down.c0, down.c1};
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const T p = __shfl_xor_sync(~0u, own[k].p, lanes / 2), q = __shfl_xor_sync(~0u, own[k].q, lanes / 2), rhs = __shfl_xor_sync(~0u, own[k].rhs, lanes / 2);
            middle.left[k] = up ? p : own[k].p, middle.right[k] = up ? q : own[k].q, middle.rhs[k] = up ? rhs : own[k].rhs;
            middle.left[2 + k] = up ? own[k].q : q, middle.right[2 + k] = up ? own[k].p : p, middle.rhs[2 + k] = up ? own[k].rhs : rhs;
        }
        T x_left, x_right;
        middle.solve(x_left, x_right);
        next = up ? x_right : x_left, beyond = up ? x_left : x_right;
    }
    // Piece p has the pivots' rows of the lane's unknowns E p - 1 … E p + E - 2.
#pragma unroll 1
    for (int p = own_pieces - 1; p >= 0; --p) {
        l = at(near, p), d = at(1, p), u = at(far, p), f = at(3, p);
        Piece<T> x;
        x.at[E - 1] = next;
#pragma unroll
        for (int i = E - 1; i >= 0; --i) {
            if (p == 0 && i < 2) break;
            const T now = substituted(row_of(l, d, u, f, i), next, beyond);
            if (i > 0) x.at[i - 1] = now;
            beyond = next, next = now;
        }
        if (p == 0) x.at[0] = end;
        at(3, p) = ordered(x);
    }
}

template <class T>
struct TileFinish {
    static constexpr int E = together<T>, pieces = Tiled<T>::rows_of_all / E / lanes;  ///< pieces of a tile, for each lane
    const Job<T>& job;
    const Rows<T>& system;
    const Tiled<T>& tile;
    std::int64_t k;
    int lane = static_cast<int>(threadIdx.x) % lanes;

    __device__ __forceinline__ T end(int which, std::int64_t chunk) const {
        const std::int64_t count = job.cut.count[0];
        return chunk < 0 || chunk >= count ? T(0) : static_cast<T>(job.ends_of(k, 0)[which * count + chunk]);
    }

    __device__ __forceinline__ void solve() const {
        const int own = lane % Tiled<T>::of_all;
        const std::int64_t chunk = tile.first_chunk + own;
        const T before = end(1, chunk - 1), first = end(0, chunk), last = end(1, chunk), after = end(0, chunk + 1);
        if (tile.full()) solve_full(tile, lane, before, first, last, after);
        else if (lane < tile.chunks) solve_chunk<T>(ChunkRows<T, Tiled<T>::of_all>{tile, lane}, tile.rows_of(lane), before, first, last, after);
        __syncwarp();
    }

    /// Whether rows and x lie side by side.
    __device__ __forceinline__ bool is_whole() const { return tile.whole(system) && Rows<T>::is_plain(system.x); }

    /// Of a whole tile: the rows that a lane multiplies with x later, piece i of E for each array; from the second-level cache.
    __device__ __forceinline__ void fetch(Piece<T> (&to)[4], int i) const {
#pragma unroll
        for (int a = 0; a < 4; ++a) to[a] = *reinterpret_cast<const Piece<T>*>(tile.from(a) + (i * lanes + lane) * E);
    }

    /// rows: pieces 0 and 1, as fetch brought them.
    __device__ __forceinline__ void store_and_check_whole(Piece<T> (&rows)[2][4]) const {
        Seen<T> seen;
        const T before = end(1, tile.first_chunk - 1), after = end(0, tile.first_chunk + Tiled<T>::of_all);
        T* const to = system.x.data + tile.first + lane * E;
        const auto x_at = [&](int r) { return tile.array(3)[Tiled<T>::place(r / chunk_rows, r % chunk_rows)]; };
#pragma unroll 2
        for (int i = 0; i < pieces; ++i) {
            const int r = (i * lanes + lane) * E;
            Piece<T> row[4];
#pragma unroll
            for (int a = 0; a < 4; ++a) row[a] = rows[i & 1][a];
            fetch(rows[i & 1], min(i + 2, pieces - 1));
            const Piece<T> x = tile.piece(3, r / chunk_rows, r % chunk_rows / E);
            T above = __shfl_up_sync(~0u, x.at[E - 1], 1), below = __shfl_down_sync(~0u, x.at[0], 1);
            if (lane == 0) above = i > 0 ? x_at(r - 1) : before;
            if (lane == lanes - 1) below = i + 1 < pieces ? x_at(r + E) : after;
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const T up = e > 0 ? x.at[e > 0 ? e - 1 : 0] : above, down = e + 1 < E ? x.at[e + 1 < E ? e + 1 : 0] : below;
                seen.add(row[0].at[e], row[1].at[e], row[2].at[e], row[3].at[e], x.at[e], row[3].at[e] - row[0].at[e] * up - row[1].at[e] * x.at[e] - row[2].at[e] * down);
            }
            *reinterpret_cast<Piece<T>*>(to + i * lanes * E) = x;
        }
        seen.store_of_warp(job.found[k]);
    }

    __device__ __forceinline__ void store_and_check() const {
        Seen<T> seen;
        const T before = end(1, tile.first_chunk - 1), after = end(0, tile.first_chunk + Tiled<T>::of_all);
        const T* const solution = tile.array(3);
#pragma unroll 1
        for (int r = lane; r < tile.rows; r += lanes) {
            const std::int64_t i = tile.first + r;
            const T x = solution[tile.place(r)], above = r > 0 ? solution[tile.place(r - 1)] : before, below = r + 1 < tile.rows ? solution[tile.place(r + 1)] : after;
            const T l = system.lower(i), d = system.line[1][i], u = system.upper(i), f = system.line[3][i];
            seen.add(l, d, u, f, x, f - l * above - d * x - u * below);
            system.x.at(i) = x;
        }
        seen.store_of_warp(job.found[k]);
    }

    __device__ __forceinline__ void add() const {
        const T* const solution = tile.array(3);
        if (is_whole()) {
#pragma unroll 4
            for (int i = 0; i < pieces; ++i) {
                const int r = (i * lanes + lane) * E;
                Piece<T>& to = *reinterpret_cast<Piece<T>*>(system.x.data + tile.first + r);
                const Piece<T> more = tile.piece(3, r / chunk_rows, r % chunk_rows / E);
                Piece<T> x = to;
#pragma unroll
                for (int e = 0; e < E; ++e) x.at[e] += more.at[e];
                to = x;
            }
            return;
        }
        for (int r = lane; r < tile.rows; r += lanes) system.x.at(tile.first + r) += solution[tile.place(r)];
    }
};

/// By a warp. memory: Tiled::bytes of its own. system: with what is left in the place of rhs, where x is corrected.
template <class T, bool again>
__device__ __forceinline__ void finish_tile(const Job<T>& job, const Rows<T>& system, std::int64_t k, std::int64_t number, T* memory) {
    const Tiled<T> tile(job, memory, number);
    tile.load(system);
    const TileFinish<T> finish{job, system, tile, k};
    if constexpr (again) {
        finish.solve();
        finish.add();
    } else if (finish.is_whole()) {
        Piece<T> rows[2][4];  // on their way while the tile is solved
        finish.fetch(rows[0], 0), finish.fetch(rows[1], 1);
        finish.solve();
        finish.store_and_check_whole(rows);
    } else {
        finish.solve();
        finish.store_and_check();
    }
    __syncwarp();
}

template <class T, bool again>
__global__ void __launch_bounds__(block_threads, finish_blocks) finish_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    extern __shared__ double shared[];
    const std::int64_t k = job.system();
    if (job.idle(k) || job.found[k].irregular) return;
    const Rows<T> system(job, k, again);
    const int warp = static_cast<int>(threadIdx.x) / lanes;
    constexpr int warps = block_threads / lanes;
    T* const memory = reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(shared) + warp * Tiled<T>::bytes);
    for (std::int64_t number = blockIdx.x * std::int64_t{warps} + warp; number < job.cut.tiles(Tiled<T>::of_all); number += gridDim.x * std::int64_t{warps})
        finish_tile<T, again>(job, system, k, number, memory);
}

template <class T>
__device__ void copy_of(const Job<T>& job, std::int64_t k) {
    std::int64_t index[4];
    job.levels.indices(k, index);
    const Line<T> x = line_of(job.x, index);
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < job.cut.rows; i += stride)
        x.at(i) = job.kept_x[k * job.cut.rows + i];
}

template <class T>
__global__ void copy_kernel(const __grid_constant__ Job<T> job) {
    after_the_kernel_before();
    const std::int64_t k = job.system();
    if (job.marks[k] == accepted) copy_of(job, k);
}

}  // namespace trifold::cuda::two_pass
