// SPDX-License-Identifier: BSD-3-Clause
// The right-hand side of a sweep and its lines along x in one pass, whose matrices are made where they are eliminated.
//
//   values = (lower, diag, upper)^-1 rhs(fields),   lower, diag, upper = coefficients(fields) or constants
//
// Arrays: fields any strides, in pieces of 16 bytes where these allow; values packed. Overwritten: values.
// Who does what: L lanes have a line, R points behind each other each (n = L R), a warp 32 / L lines; it goes along the last axis, C::deep rows or planes. What it has read of the next one stays in its
//   registers, and what its neighbours in a block read is in the first-level cache. Kept values (right_hand_side.cuh) of a face are made once for the points on both sides along x and the last axis.
//   A lane eliminates its segment as far as its last row; these rows are joined among lanes (reduced.cuh).
// Words per point: those of the fields that are read, and 1 (heat: 3 where right-hand side and kept matrices take 7).
// Numerics: reduced.cuh.
#pragma once

#include "backends/cuda/mesh/fused/reduced.cuh"
#include "backends/cuda/mesh/fused/right_hand_side.cuh"

#ifdef __CUDACC__

namespace trifold::cuda {

template <class T>
__device__ __forceinline__ T from_lane(T value, int lane, int lanes) {
    return __shfl_sync(~0u, value, lane, lanes);
}
__device__ __forceinline__ unsigned lanes_with(bool one) { return __ballot_sync(~0u, one); }
__device__ __forceinline__ void warp_barrier() { __syncwarp(); }

}  // namespace trifold::cuda

#endif

namespace trifold::cuda::fused {

/// Rows around the R points of a lane. C::window: count, at(k, 0 … 3) = field, how far along x (0 or 1), dy, dz.
template <class C>
struct Window {
    using T = typename C::real;
    static constexpr int R = C::R, count = C::window::count, along = C::nz > 1 ? 2 : 1;
    T value[count][R], left[count], right[count];

    static constexpr __device__ int find(int f, int dy, int dz) {
        int k = 0;
        while (k < count && (C::window::at(k, 0) != f || C::window::at(k, 2) != dy || C::window::at(k, 3) != dz)) ++k;
        return k < count ? k : -1;
    }
    /// The row that is row k of the next plane, if it is read: only a lane's own.
    static constexpr __device__ int next(int k) {
        if (C::window::at(k, 2) != 0 || C::window::at(k, 3) != 0) return -1;
        return find(C::window::at(k, 0), along == 1 ? 1 : 0, along == 2 ? 1 : 0);
    }
    static constexpr __device__ bool reaches(int k) { return C::window::at(k, 1) != 0; }
    /// The row that was row k in the plane before, held for it.
    static constexpr __device__ int before(int k) {
        if (C::window::at(k, 1) != 0 || C::window::at(k, along == 1 ? 3 : 2) != 0 || C::window::at(k, along == 1 ? 2 : 3) != -1) return -1;
        return find(C::window::at(k, 0), 0, 0);
    }
};

/// As a function looks around point i.
template <class C>
struct InWindow {
    using T = typename C::real;
    const Window<C>& window;
    int i;
    const T* held;

    template <int f, int dx, int dy, int dz>
    __device__ __forceinline__ T at() const {
        constexpr int k = Window<C>::find(f, dy, dz);
        if constexpr (dx == 0) return window.value[k][i];
        const int j = i + dx;
        return j < 0 ? window.left[k] : j >= C::R ? window.right[k] : window.value[k][j < 0 ? 0 : j >= C::R ? C::R - 1 : j];
    }
    template <int k>
    __device__ __forceinline__ T kept() const {
        return held[k];
    }
};

template <class C>
struct Rows {
    using T = typename C::real;
    using Around = Window<C>;
    static constexpr int R = C::R, L = C::n / R, along = Around::along, threads = 32 * C::warps, lines = threads / L;
    static constexpr int rows = along == 2 ? C::nz : C::ny, chunks = (rows + C::deep - 1) / C::deep;
    /// Beside each other in a block: rows of y, or, in a plane, chunks of them.
    static constexpr int beside = along == 2 ? C::ny : chunks, pieces_beside = (beside + lines - 1) / lines;
    static constexpr unsigned pieces = pieces_beside * (along == 2 ? chunks : 1);
    static constexpr int bytes = R * static_cast<int>(sizeof(T)), vector = (bytes % 16 == 0 ? 16 : bytes % 8 == 0 && sizeof(T) < 8 ? 8 : static_cast<int>(sizeof(T))) / static_cast<int>(sizeof(T));
    static constexpr int kept = C::kept > 0 ? C::kept : 1;
    static_assert(C::n == L * R && 32 % L == 0 && R >= 2);

    const MeshArguments<T>& a;
    const typename C::Parameters& p;
    const PassArguments<T>& pass;

    struct alignas(vector * sizeof(T)) Piece {
        T value[vector];
    };

    __device__ __forceinline__ void run(unsigned piece, std::int64_t mesh, int thread) const {
        const int lane = thread % L, line = static_cast<int>(piece % pieces_beside) * lines + thread / L, chunk = along == 2 ? static_cast<int>(piece / pieces_beside) : line;
        const int x = lane * R, first = chunk * C::deep;
        Around w;
        T carried[kept][R];
        {
            const int y = along == 2 ? smaller(line, C::ny - 1) : smaller(first, C::ny - 1), z = along == 2 ? first : 0;
            begin(w, carried, x, y, z, mesh);
        }
#pragma unroll 1
        for (int k = 0; k < C::deep; ++k) {
            if (along == 2 && first + k >= C::nz) break;
            const bool there = along == 2 ? line < C::ny : first + k < C::ny;
            const int y = along == 2 ? smaller(line, C::ny - 1) : smaller(first + k, C::ny - 1), z = along == 2 ? first + k : 0;
            plane(w, carried, lane, x, y, z, mesh, there);
        }
    }

private:
    static __device__ __forceinline__ int smaller(int i, int j) { return i < j ? i : j; }

    template <int k>
    __device__ __forceinline__ const T* row(int x, int y, int z, std::int64_t mesh) const {
        constexpr int f = C::window::at(k, 0);
        using Looks = Near<C, false>;
        return a.field[f].data + (mesh * C::stride(f, 3) + (x * C::stride(f, 0) + Looks::template place<f, 1, C::window::at(k, 2)>(y, C::ny) * C::stride(f, 1) + Looks::template place<f, 2, C::window::at(k, 3)>(z, C::nz) * C::stride(f, 2)));
    }

    /// `count` values of row k from point i on.
    template <int k, int count>
    __device__ __forceinline__ void take(Around& w, int i, int x, int y, int z, std::int64_t mesh) const {
        constexpr int f = C::window::at(k, 0);
        constexpr long stride = C::stride(f, 0);
        const T* const from = row<k>(x, y, z, mesh);
        if constexpr (stride == 0) {
            const T one = *from;
#pragma unroll
            for (int j = 0; j < count; ++j) w.value[k][i + j] = one;
        } else if constexpr (C::aligned(f) && count % vector == 0) {
#pragma unroll
            for (int j = 0; j < count; j += vector) {
                const Piece read = *reinterpret_cast<const Piece*>(from + i + j);
#pragma unroll
                for (int v = 0; v < vector; ++v) w.value[k][i + j + v] = read.value[v];
            }
        } else {
#pragma unroll
            for (int j = 0; j < count; ++j) w.value[k][i + j] = from[(i + j) * stride];
        }
        mirror<1, k, count>(w, i, y, C::ny);
        mirror<2, k, count>(w, i, z, C::nz);
    }

    template <int axis, int k, int count>
    __device__ __forceinline__ void mirror(Around& w, int i, int at, int n) const {
        constexpr int f = C::window::at(k, 0), d = C::window::at(k, axis + 1), side = d < 0 ? 0 : 1;
        if constexpr (d != 0 && C::edge(f, axis, side) == edge_odd) {
            const bool beyond = d < 0 ? at + d < 0 : at + d >= n;
            const T twice = a.field[f].twice[axis][side];
            if (beyond) {
#pragma unroll
                for (int j = 0; j < count; ++j) w.value[k][i + j] = twice - w.value[k][i + j];
            }
        }
    }

    /// What lies left and right of a lane's points.
    template <int k>
    __device__ __forceinline__ void ends(Around& w, int lane) const {
        constexpr int f = C::window::at(k, 0);
        const T before = from_lane(w.value[k][R - 1], (lane + L - 1) % L, L), after = from_lane(w.value[k][0], (lane + 1) % L, L);
        w.left[k] = lane > 0 || C::edge(f, 0, 0) == edge_periodic ? before : C::edge(f, 0, 0) == edge_odd ? a.field[f].twice[0][0] - w.value[k][0] : w.value[k][0];
        w.right[k] = lane + 1 < L || C::edge(f, 0, 1) == edge_periodic ? after : C::edge(f, 0, 1) == edge_odd ? a.field[f].twice[0][1] - w.value[k][R - 1] : w.value[k][R - 1];
    }

    /// Rows as a whole: at the start (All) every one, else those that the plane before has left, and what is looked at along x.
    template <bool All, int k = 0>
    __device__ __forceinline__ void whole_rows(Around& w, int lane, int x, int y, int z, std::int64_t mesh) const {
        if constexpr (k < Around::count) {
            if constexpr (!All && Around::next(k) >= 0) {
                hold<k>(w);
#pragma unroll
                for (int i = 0; i < R; ++i) w.value[k][i] = w.value[Around::next(k)][i];
            } else if constexpr (All || Around::reaches(k)) {
                take<k, R>(w, 0, x, y, z, mesh);
            }
            if constexpr (Around::reaches(k)) ends<k>(w, lane);
            whole_rows<All, k + 1>(w, lane, x, y, z, mesh);
        }
    }
    /// Row k, which the next plane's takes the place of, for whoever looks behind.
    template <int k, int other = 0>
    __device__ __forceinline__ void hold(Around& w) const {
        if constexpr (other < Around::count) {
            if constexpr (Around::before(other) == k) {
#pragma unroll
                for (int i = 0; i < R; ++i) w.value[other][i] = w.value[k][i];
            }
            hold<k, other + 1>(w);
        }
    }

    template <int count, int k = 0>
    __device__ __forceinline__ void pieces_of_rows(Around& w, int i, int x, int y, int z, std::int64_t mesh) const {
        if constexpr (k < Around::count) {
            if constexpr (Around::next(k) < 0 && Around::before(k) < 0 && !Around::reaches(k)) take<k, count>(w, i, x, y, z, mesh);
            pieces_of_rows<count, k + 1>(w, i, x, y, z, mesh);
        }
    }
    /// As if the plane before had held its rows: what is read of it becomes its own line's.
    template <int k = 0>
    __device__ __forceinline__ void behind(Around& w, int x, int y, int z, std::int64_t mesh) const {
        if constexpr (k < Around::count) {
            if constexpr (Around::before(k) >= 0) {
                take<k, R>(w, 0, x, y, z, mesh);
#pragma unroll
                for (int i = 0; i < R; ++i) w.value[Around::before(k)][i] = w.value[k][i];
            }
            behind<k + 1>(w, x, y, z, mesh);
        }
    }
    /// As if the plane before had left its rows.
    template <int k = 0>
    __device__ __forceinline__ void leave(Around& w) const {
        if constexpr (k < Around::count) {
            if constexpr (Around::next(k) >= 0) {
#pragma unroll
                for (int i = 0; i < R; ++i) w.value[Around::next(k)][i] = w.value[k][i];
            }
            leave<k + 1>(w);
        }
    }

    __device__ __forceinline__ void begin(Around& w, T (&carried)[kept][R], int x, int y, int z, std::int64_t mesh) const {
        if constexpr (C::kept > 0) {
            whole_rows<true>(w, x / R, x, y, z, mesh);
#pragma unroll
            for (int i = 0; i < R; ++i) {
                T out[kept] = {};
                C::keep(InWindow<C>{w, i, out}, p, out, std::int64_t{x + i}, std::int64_t{y}, std::int64_t{z}, mesh, a.step);
#pragma unroll
                for (int v = 0; v < C::kept; ++v) carried[v][i] = C::shared(v, 0) == along ? out[v] : T(0);
            }
        } else {
            whole_rows<true>(w, x / R, x, y, z, mesh);
        }
        leave(w);
        behind(w, x, y, z, mesh);
    }

    __device__ __forceinline__ void plane(Around& w, T (&carried)[kept][R], int lane, int x, int y, int z, std::int64_t mesh, bool there) const {
        constexpr int each = vector > 1 ? vector : R % 4 == 0 ? 4 : R % 3 == 0 ? 3 : 2;
        whole_rows<false>(w, lane, x, y, z, mesh);
        ReducedSegment<T, R> own;
        T beside_x[kept] = {};
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (i % each == 0) pieces_of_rows<(R % each == 0 ? each : 1)>(w, i, x, y, z, mesh);
            const std::int64_t own_x = x + i;
            T held[kept] = {};
            InWindow<C> near{w, i, held};
            if constexpr (C::kept > 0) {
                C::keep(near, p, held, own_x, std::int64_t{y}, std::int64_t{z}, mesh, a.step);
#pragma unroll
                for (int v = 0; v < C::kept; ++v) {
                    if (C::shared(v, 0) == 0 && i > 0) held[v] = beside_x[C::shared(v, 1)];
                    if (C::shared(v, 0) == along) held[v] = carried[v][i];
                }
#pragma unroll
                for (int v = 0; v < C::kept; ++v) {
                    beside_x[v] = held[v];
                    if (C::shared(v, 0) == along) carried[v][i] = held[C::shared(v, 1)];
                }
            }
            T right = 0, row[3];
            C::rhs(near, p, &right, own_x, std::int64_t{y}, std::int64_t{z}, mesh, a.step);
#pragma unroll
            for (int c = 0; c < 3; ++c) row[c] = C::has_coefficients ? T(c == 1) : pass.constant[c];
            if constexpr (C::has_coefficients) C::coefficients(near, p, row, own_x, std::int64_t{y}, std::int64_t{z}, mesh, a.step);
            if constexpr (!C::ring) {
                if (i == 0 && lane == 0) {
                    if (C::end(0) == edge_odd) right -= pass.twice[0] * row[0];
                    row[1] += C::end(0) == edge_even ? row[0] : -row[0], row[0] = 0;
                }
                if (i == R - 1 && lane == L - 1) {
                    if (C::end(1) == edge_odd) right -= pass.twice[1] * row[2];
                    row[1] += C::end(1) == edge_even ? row[2] : -row[2], row[2] = 0;
                }
            }
            own.add(i, row, right);
        }
        solve(own, lane);
        report(!(own.d[0] * T(0) + own.d[R - 1] * T(0) == T(0)) && there, lane, y, z, mesh);
        if (!there) return;
        T* const to = a.values + (mesh * (std::int64_t{C::nx} * C::ny * C::nz) + ((z * C::ny + y) * C::nx + x));
#pragma unroll
        for (int i = 0; i < R; i += vector) {
            Piece one;
#pragma unroll
            for (int v = 0; v < vector; ++v) one.value[v] = own.d[i + v];
            *reinterpret_cast<Piece*>(to + i) = one;
        }
    }

    static __device__ __forceinline__ LastRow<T> of_lane(const LastRow<T>& row, int lane) { return {from_lane(row.low, lane, L), from_lane(row.high, lane, L), from_lane(row.last, lane, L)}; }

    /// Where a line ends, what comes from beyond counts for nothing: it is multiplied by zero.
    static __device__ __forceinline__ void solve(ReducedSegment<T, R>& own, int lane) {
        own.turn_back();
        LastRow<T> row = own.last_row(of_lane(own.first(), (lane + 1) % L));
#pragma unroll
        for (int s = 1; s < L; s *= 2) {
            const LastRow<T> before = of_lane(row, (lane + L - s) % L), after = of_lane(row, (lane + s) % L);
            row.reduce(before, after);
        }
        if constexpr (C::ring) row.close();
        const T before = from_lane(row.last, (lane + L - 1) % L, L);
        own.finish(before, row.last);
    }

    /// Rare: lines that are not finite, each once.
    __device__ __forceinline__ void report(bool bad, int lane, int y, int z, std::int64_t mesh) const {
        const unsigned marks = lanes_with(bad);
        if (!marks) return;
        const int first = thread_number() % 32 / L * L;
        if (lane != 0 || !(marks >> first & (~0u >> (32 - L)))) return;
        *reinterpret_cast<volatile unsigned char*>(&a.failed[mesh]) = static_cast<unsigned char>(C::line + 1);
        report_line(a.state, a.sweep, MeshState::key(C::line, ((mesh * C::nz + z) * C::ny + y) * C::nx, false, C::not_finite));
    }
};

#ifdef __CUDACC__

template <class C>
__device__ __forceinline__ void rows(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const PassArguments<typename C::real>& pass) {
    using Own = Rows<C>;
    follow_previous();
    if (!runs(a.state, a.sweep)) return;
    const auto tasks = static_cast<unsigned>(a.extent[3]) * Own::pieces;
    for (unsigned task = blockIdx.x; task < tasks; task += gridDim.x) {
        const unsigned number = a.backwards ? tasks - 1 - task : task;
        Own{a, p, pass}.run(number % Own::pieces, number / Own::pieces, static_cast<int>(threadIdx.x));
    }
}

#endif

}  // namespace trifold::cuda::fused
