// SPDX-License-Identifier: BSD-3-Clause
// A line solve with all that can be done beside it, in one pass: the right-hand side if it is the first of its sweep, its matrices, the update if it is the last.
//
//   values or target = update(fields, (lower, diag, upper)^-1 (rhs(fields) or values)),   lower, diag, upper = coefficients(fields) or constants
//
// Arrays: fields any strides; values packed. Overwritten: values, or the target; where the right-hand side looks at neighbours of the target, the values that
//   it is written to become the target, and the target's place the values (fused.cpp).
// Who does what: a block has W lines side by side; a thread R rows of one of them in registers, with their factors; one thread per line joins the segments
//   (segments.cuh). Lines along x are read and written in the order of memory and change threads through shared memory.
// Factors are made from the coefficients in registers, once per set of lines: where all meshes have the same matrices, a block takes the same lines of one mesh after
//   the other and keeps them.
// Words per point, where each mesh makes its own factors: 2, and what coefficients, right-hand side and update read (heat: one of conductivity).
//   Where all meshes have one matrix, its fields come once per block.
// Numerics: segments.cuh. What is not finite reaches the ends of a segment and is reported as its line's.
#pragma once

#include "backends/cuda/mesh/fused/near.cuh"
#include "backends/cuda/mesh/fused/segments.cuh"
#include "backends/cuda/mesh/fused/staging.hpp"

#ifdef __CUDACC__

namespace trifold::cuda {

__device__ __forceinline__ bool any_of_block(bool one) { return __syncthreads_or(one) != 0; }
__device__ __forceinline__ void bring_nearer(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

/// The next kernel of the stream may come once this one leaves room; what those before it wrote is seen from here on.
__device__ __forceinline__ void follow_previous() { asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory"); }

__device__ __forceinline__ void refuse(MeshState* state, unsigned long long sweep) { atomicMin(&state->refused_at, sweep); }
__device__ __forceinline__ unsigned long long failed_at(const MeshState* state) { return *reinterpret_cast<const volatile unsigned long long*>(&state->failed_at); }

}  // namespace trifold::cuda

#endif

namespace trifold::cuda::fused {

/// What a launch knows besides MeshArguments.
template <class T>
struct PassArguments {
    T constant[3];
    T twice[2];       ///< of odd ends of the lines
    std::int64_t tasks;
};

/// C: real, fields, nx, ny, nz, edge, stride, axis, n (rows), R, S, W, line (number in its sweep), ring, end[2] (edges of the solution), has_coefficients, alike (all meshes have one matrix),
/// one (all lines have), from_fields (the right-hand side is made here), has_rhs, reach_x, reach_y, reach_z (of rhs), last, has_update, used (bit f: the update reads field f), target, exchanges (the
/// target's next values go to `values`), not_finite, Parameters, rhs, coefficients, update (near, p, out, x, y, z, mesh, step).
template <class C>
struct Lines {
    using T = typename C::real;
    static constexpr int R = C::R, S = C::S, W = C::W, n = C::n, threads = W * S;
    static constexpr int lines = C::axis == 0 ? C::ny * C::nz : C::axis == 1 ? C::nx * C::nz : C::nx * C::ny, sets = (lines + W - 1) / W;
    static constexpr Staging laid = staging(n, R, S, W, static_cast<int>(sizeof(T)));
    static constexpr int pitch = laid.pitch, stage = C::axis == 0 ? W * pitch : 0;
    using Joined = Join<T, S, W, C::ring>;
    static constexpr int in_memory = stage + Joined::values + W;
    static constexpr bool across = C::axis == 0;                                   ///< the order of memory is not that of segments
    static constexpr bool even = n == S * R, full = lines % W == 0;  ///< segments have one length; no set has places without a line

    const MeshArguments<T>& a;
    const typename C::Parameters& p;
    T *const staged, *const flags;
    const int thread, segment, column, first;
    const bool shorter;
    const Joined own, whole;  ///< of this segment's line; of the line that this thread joins

    __device__ __forceinline__ Lines(const MeshArguments<T>& arguments, const typename C::Parameters& parameters, T* memory, int t)
        : a(arguments), p(parameters), staged(memory), flags(memory + stage + Joined::values), thread(t), segment(t / W), column(t % W), first(even ? segment * R : (segment + 1) * n / S - R),
          shorter(!even && first < segment * n / S), own{memory + stage + column}, whole{memory + stage + t} {}

    struct Point {
        int x, y, z;
        bool there;
    };

    /// A row of a line.
    static __device__ __forceinline__ Point point(int line, int row, bool there) {
        if constexpr (C::axis == 0) return {row, line % C::ny, line / C::ny, there};
        else if constexpr (C::axis == 1) return {line % C::nx, row, line / C::nx, there};
        else return {line % C::nx, line / C::nx, row, there};
    }

    /// Place i of this thread in the order of memory.
    __device__ __forceinline__ Point place(int set, int i) const {
        if constexpr (across) {
            const int q = i * threads + thread, line = set * W + q / n;
            return point(line, q % n, (even || q < W * n) && (full || line < lines));
        } else {
            const int line = set * W + column;
            return point(line, first + i, (full || line < lines) && (even || i > 0 || !shorter));
        }
    }

    __device__ __forceinline__ T* value_at(const Point& at, std::int64_t mesh) const {
        return a.values + (mesh * (std::int64_t{C::nx} * C::ny * C::nz) + ((at.z * C::ny + at.y) * C::nx + at.x));
    }
    /// Of place i.
    __device__ __forceinline__ T* value_of(const Point& at, int set, int i, std::int64_t mesh) const {
        if constexpr (across) return a.values + (mesh * (std::int64_t{C::nx} * C::ny * C::nz) + (set * (W * n) + i * threads + thread));
        else return value_at(at, mesh);
    }
    __device__ __forceinline__ T* target_at(const Point& at, std::int64_t mesh) const {
        return a.field[C::target].data + mesh * C::stride(C::target, 3) + (at.x * C::stride(C::target, 0) + at.y * C::stride(C::target, 1) + at.z * C::stride(C::target, 2));
    }

    /// Where lines lie in shared memory: of place i in the order of memory, and of segments.
    __device__ __forceinline__ T& in_order(int i) const {
        if constexpr (threads % n == 0) return staged[thread / n * pitch + laid_at(thread % n) + i * (threads / n * pitch)];
        const int q = i * threads + thread;
        return staged[q / n * pitch + laid_at(q % n)];
    }
    __device__ __forceinline__ T& in_segment(int i) const { return staged[column * pitch + first + segment * laid.padding + i]; }
    static __device__ __forceinline__ int laid_at(int row) { return row + (laid.padding ? row / R * laid.padding : 0); }

    /// Values in the order of memory to that of segments, once nobody looks at `staged` any more.
    __device__ __forceinline__ void turn(T (&v)[R]) const {
#pragma unroll
        for (int i = 0; i < R; ++i)
            if (even || i * threads + thread < W * n) in_order(i) = v[i];
        block_barrier();
#pragma unroll
        for (int i = 0; i < R; ++i) v[i] = i > 0 || !shorter ? in_segment(i) : T(0);
        block_barrier();
    }

    /// Rows from place i on, in the order of memory: `count` of them.
    template <int count>
    __device__ __forceinline__ void coefficients(int set, int i, std::int64_t mesh, const PassArguments<T>& pass, T (&out)[count][3]) const {
        Taken<C, typename C::coefficients_reads> near[count];
        Point at[count];
        if constexpr (C::has_coefficients) {
#pragma unroll
            for (int k = 0; k < count; ++k) {
                at[k] = place(set, i + k);
                if (!(i + k < R && at[k].there)) at[k] = {0, 0, 0, false};
                near[k].take(Near<C, false>{a, at[k].x, at[k].y, at[k].z, mesh, T(0)});
            }
        }
#pragma unroll
        for (int k = 0; k < count; ++k) {
#pragma unroll
            for (int c = 0; c < 3; ++c) out[k][c] = C::has_coefficients ? T(c == 1) : pass.constant[c];
            if constexpr (C::has_coefficients) {
                C::coefficients(near[k], p, out[k], std::int64_t{at[k].x}, std::int64_t{at[k].y}, std::int64_t{at[k].z}, mesh, a.step);
                if (!at[k].there) out[k][0] = 0, out[k][1] = 1, out[k][2] = 0;
            }
        }
    }

    /// What a segment's first place, and ends of lines, make of a row; the part of a right-hand side that lies beyond an odd end.
    __device__ __forceinline__ void fold(int i, T (&row)[3], const PassArguments<T>& pass, T& low, T& high) const {
        if constexpr (!C::ring) {
            if (segment == 0 && i == (shorter ? 1 : 0)) {
                if (C::end(0) == edge_odd) low = pass.twice[0] * row[0];
                row[1] += C::end(0) == edge_even ? row[0] : -row[0], row[0] = 0;
            }
            if (segment == S - 1 && i == R - 1) {
                if (C::end(1) == edge_odd) high = pass.twice[1] * row[2];
                row[1] += C::end(1) == edge_even ? row[2] : -row[2], row[2] = 0;
            }
        }
        if (i == 0 && shorter) row[0] = -1, row[1] = 1, row[2] = 0;
    }

    template <class Factors>
    __device__ __forceinline__ void make(Factors& factors, int set, std::int64_t mesh, const PassArguments<T>& pass, T& low, T& high) const {
        low = high = 0;
        constexpr int batch = together<T, typename C::coefficients_reads>(R);
        T row[across ? 3 : 1][across ? R : 1];
#pragma unroll
        for (int i = 0; i < R; i += batch) {
            T out[batch][3];
            coefficients(set, i, mesh, pass, out);
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                if (i + k >= R) continue;
                if constexpr (across && C::has_coefficients) {
#pragma unroll
                    for (int c = 0; c < 3; ++c) row[c][i + k] = out[k][c];
                } else {
                    fold(i + k, out[k], pass, low, high);
                    factors.eliminate(i + k, out[k][0], out[k][1], out[k][2], shorter);
                }
            }
        }
        if constexpr (across && C::has_coefficients) {
#pragma unroll
            for (int k = 0; k < 3; ++k) turn(row[k]);
#pragma unroll
            for (int i = 0; i < R; ++i) {
                T out[3] = {row[0][i], row[1][i], row[2][i]};
                fold(i, out, pass, low, high);
                factors.eliminate(i, out[0], out[1], out[2], shorter);
            }
        }
        T alpha, rho, fill;
        factors.ends(shorter, alpha, rho, fill);
        own.coupling(segment) = factors.upper[R - 1], own.lower(segment) = fill, own.inverse(segment) = alpha, own.upper(segment) = rho;
    }

    /// Right-hand sides from place i on, in the order of memory.
    template <int count>
    __device__ __forceinline__ void right_hand_sides(int set, int i, std::int64_t mesh, T (&out)[count], Point (&at)[count]) const {
#pragma unroll
        for (int k = 0; k < count; ++k) {
            at[k] = place(set, i + k);
            at[k].there = at[k].there && i + k < R;
            out[k] = 0;
        }
        if constexpr (!C::from_fields || !C::has_rhs) {
#pragma unroll
            for (int k = 0; k < count; ++k)
                if (at[k].there) out[k] = C::from_fields ? *target_at(at[k], mesh) : *value_of(at[k], set, i + k, mesh);
        } else {
            Taken<C, typename C::rhs_reads> near[count];
            bool inside = true;
#pragma unroll
            for (int k = 0; k < count; ++k) {
                const Point& one = at[k];
                inside = inside && one.there && one.x >= C::reach_x && one.x + C::reach_x < C::nx && one.y >= C::reach_y && one.y + C::reach_y < C::ny && one.z >= C::reach_z && one.z + C::reach_z < C::nz;
            }
            if (inside) {
#pragma unroll
                for (int k = 0; k < count; ++k) near[k].take(Near<C, true>{a, at[k].x, at[k].y, at[k].z, mesh, T(0)});
            } else {
#pragma unroll
                for (int k = 0; k < count; ++k) near[k].take(at[k].there ? Near<C, false>{a, at[k].x, at[k].y, at[k].z, mesh, T(0)} : Near<C, false>{a, 0, 0, 0, mesh, T(0)});
            }
#pragma unroll
            for (int k = 0; k < count; ++k) {
                C::rhs(near[k], p, &out[k], std::int64_t{at[k].x}, std::int64_t{at[k].y}, std::int64_t{at[k].z}, mesh, a.step);
                if (!at[k].there) out[k] = 0;
            }
        }
    }

    __device__ __forceinline__ void load(T (&y)[R], int set, std::int64_t mesh) const {
        constexpr int batch = C::from_fields && C::has_rhs ? together<T, typename C::rhs_reads>(R) : across ? (R < 8 ? R : 8) : R;
        if constexpr (across) {
#pragma unroll 1
            for (int i = 0; i < R; i += batch) {
                T out[batch];
                Point at[batch];
                right_hand_sides(set, i, mesh, out, at);
#pragma unroll
                for (int k = 0; k < batch; ++k)
                    if (at[k].there) in_order(i + k) = out[k];
            }
            block_barrier();
#pragma unroll
            for (int i = 0; i < R; ++i) y[i] = i > 0 || !shorter ? in_segment(i) : T(0);
        } else {
#pragma unroll
            for (int i = 0; i < R; i += batch) {
                T out[batch];
                Point at[batch];
                right_hand_sides(set, i, mesh, out, at);
#pragma unroll
                for (int k = 0; k < batch; ++k)
                    if (i + k < R) y[i + k] = out[k];
            }
        }
    }

    /// What the update will read is brought nearer while lines are solved.
    __device__ __forceinline__ void bring_nearer(int set, std::int64_t mesh) const {
        if constexpr (C::last && C::has_update && C::used != 0) {
            if (thread % (128 / static_cast<int>(sizeof(T))) != 0 && W >= 128 / static_cast<int>(sizeof(T))) return;
#pragma unroll
            for (int i = 0; i < R; ++i) {
                const Point at = place(set, i);
#pragma unroll
                for (int f = 0; f < C::fields; ++f)
                    if (C::used >> f & 1)
                        if (at.there) cuda::bring_nearer(a.field[f].data + mesh * C::stride(f, 3) + (at.x * C::stride(f, 0) + at.y * C::stride(f, 1) + at.z * C::stride(f, 2)));
            }
        }
    }

    /// What the update reads of several points is asked for before any of them is stored.
    template <int count>
    __device__ __forceinline__ void store_some(const Point (&at)[count], int set, int i, std::int64_t mesh, const T (&solved)[count], const bool (&good)[count]) const {
        Taken<C, typename C::update_reads> near[count];
        if constexpr (C::last && C::has_update) {
#pragma unroll
            for (int k = 0; k < count; ++k)
                if (at[k].there) near[k].take(Near<C, true>{a, at[k].x, at[k].y, at[k].z, mesh, solved[k]});
        }
#pragma unroll
        for (int k = 0; k < count; ++k) {
            if (!at[k].there) continue;
            if constexpr (!C::last) {
                *value_of(at[k], set, i + k, mesh) = solved[k];
            } else {
                T* const target = target_at(at[k], mesh);
                T out[1] = {solved[k]};
                near[k].solution = solved[k];
                if (good[k]) {
                    if constexpr (C::has_update) C::update(near[k], p, out, std::int64_t{at[k].x}, std::int64_t{at[k].y}, std::int64_t{at[k].z}, mesh, a.step);
                } else {
                    if (!C::exchanges) continue;
                    out[0] = *target;  // as it was
                }
                if constexpr (C::exchanges) *value_of(at[k], set, i + k, mesh) = out[0];
                else *target = out[0];
            }
        }
    }

    __device__ __forceinline__ void store(T (&y)[R], int set, std::int64_t mesh, bool all_good, bool none_good) const {
        constexpr int batch = C::last && C::has_update ? together<T, typename C::update_reads>(R < 8 ? R : 8) : R < 8 ? R : 8;
        if constexpr (across) {
#pragma unroll
            for (int i = 0; i < R; ++i)
                if (i > 0 || !shorter) in_segment(i) = y[i];
            block_barrier();
        }
        const bool good = all_good || (!none_good && flags[column] == T(0));
#pragma unroll
        for (int i = 0; i < R; i += batch) {
            Point at[batch];
            T solved[batch];
            bool stays[batch];
#pragma unroll
            for (int k = 0; k < batch; ++k) {
                at[k] = place(set, i + k), at[k].there = at[k].there && i + k < R;
                if constexpr (across) {
                    solved[k] = at[k].there ? in_order(i + k) : T(0);
                    stays[k] = all_good || (!none_good && at[k].there && flags[((i + k) * threads + thread) / n] == T(0));
                } else {
                    solved[k] = y[i + k < R ? i + k : 0], stays[k] = good;
                }
            }
            store_some(at, set, i, mesh, solved, stays);
        }
        if constexpr (across) block_barrier();
    }

    /// Rare: marks lines that have failed, and reports each once, by the thread of its first segment. Returns whether the whole mesh is left out.
    __device__ __forceinline__ bool judge(int set, std::int64_t mesh, bool bad, bool failed_before) const {
        if (thread < W) flags[thread] = 0;
        block_barrier();
        if (bad) flags[column] = 1;
        block_barrier();
        const int before = *reinterpret_cast<const volatile unsigned char*>(&a.failed[mesh]), line = set * W + column;
        const bool out = failed_before && before != 0 && before != C::line + 1;
        if (segment == 0 && line < lines && flags[column] != T(0) && !out) {
            const Point at = point(line, 0, true);
            *reinterpret_cast<volatile unsigned char*>(&a.failed[mesh]) = static_cast<unsigned char>(C::line + 1);
            report_line(a.state, a.sweep, MeshState::key(C::line, ((mesh * C::nz + at.z) * C::ny + at.y) * C::nx + at.x, false, C::not_finite));
        }
        return out;
    }

    __device__ __forceinline__ void run(const PassArguments<T>& pass, std::int64_t block, std::int64_t blocks) const {
        const bool failed_before = failed_at(a.state) == a.sweep;
        const std::int64_t meshes = a.extent[3];
        // With one matrix for all meshes a block has neighbours in their order, else they are dealt to blocks.
        const std::int64_t begin = C::alike ? pass.tasks * block / blocks : block, end = C::alike ? pass.tasks * (block + 1) / blocks : pass.tasks, apart = C::alike ? 1 : blocks;
        SegmentFactors<T, R> factors;
        T low = 0, high = 0;
        int made = -1;
#pragma unroll 1
        for (std::int64_t task = begin; task < end; task += apart) {
            const std::int64_t number = a.backwards ? pass.tasks - 1 - task : task;
            const int set = static_cast<int>(C::alike ? number / meshes : number % sets);
            const std::int64_t mesh = C::alike ? number % meshes : number / sets;
            const bool makes = !C::alike || (C::one ? made < 0 : made != set);
            T y[R];
            // What needs no shared memory is on its way while factors are made.
            if constexpr (!across) load(y, set, mesh);
            if (makes) make(factors, set, mesh, pass, low, high), made = set;
            if constexpr (across) load(y, set, mesh);
            bring_nearer(set, mesh);
            if (segment == 0) {
                if (shorter) y[R > 1 ? 1 : 0] -= low;
                else y[0] -= low;
            }
            if (segment == S - 1) y[R - 1] -= high;
            const T z = factors.forwards(y, shorter);
            T last, before;
            own.last(segment) = y[R - 1], own.first(segment) = z;
            block_barrier();
            if (thread < W) {
                if (makes) whole.eliminate();
                whole.solve();
            }
            block_barrier();
            own.give(segment, last, before);
            factors.backwards(y, before, last);
            const bool there = set * W + column < lines, bad = there && !((shorter ? y[R > 1 ? 1 : 0] : y[0]) * T(0) + last * T(0) == T(0));
            const bool any = any_of_block(bad || failed_before);  // threads that began beside a failure elsewhere may differ in having seen it
            bool all_good = true, none_good = false;
            if (any) none_good = judge(set, mesh, bad, failed_before), all_good = false;
            store(y, set, mesh, all_good, none_good);
            if (any) block_barrier();
        }
    }
};

#ifdef __CUDACC__

template <class C>
__device__ __forceinline__ void pass(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const PassArguments<typename C::real>& pass) {
    using T = typename C::real;
    extern __shared__ int4 shared[];
    const Lines<C> lines(a, p, reinterpret_cast<T*>(shared), static_cast<int>(threadIdx.x));
    follow_previous();
    if (runs(a.state, a.sweep)) lines.run(pass, blockIdx.x, gridDim.x);
}

/// Before the first sweep: every row of every matrix of a line solve is dominated by its diagonal, strictly, or the sweeps from `from` on are refused.
template <class C>
__device__ __forceinline__ void check(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, std::int64_t points) {
    using T = typename C::real;
    bool good = true;
    for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < points; k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
        const std::int64_t mesh = k / (std::int64_t{C::nx} * C::ny * C::nz);
        const int at = static_cast<int>(k % (std::int64_t{C::nx} * C::ny * C::nz)), x = at % C::nx, y = at / C::nx % C::ny, z = at / (C::nx * C::ny), i = C::axis == 0 ? x : C::axis == 1 ? y : z;
        T row[3];
        C::coefficients(Near<C, false>{a, x, y, z, mesh, T(0)}, p, row, std::int64_t{x}, std::int64_t{y}, std::int64_t{z}, mesh, a.step);
        if (!C::ring && i == 0) row[1] += C::end(0) == edge_even ? row[0] : -row[0], row[0] = 0;
        if (!C::ring && i == C::n - 1) row[1] += C::end(1) == edge_even ? row[2] : -row[2], row[2] = 0;
        const T beside = fabs(row[0]) + fabs(row[2]), own = fabs(row[1]);
        good = good && own > beside && own * T(0) == T(0);
    }
    if (!good) refuse(a.state, a.sweep);
}

/// After the last sweep: where an odd number of exchanges has been done, the target's values are in the other place.
template <class T>
__device__ __forceinline__ void bring_back(const MeshState* state, T* target, const T* other, std::int64_t points, unsigned long long from, unsigned long long to, unsigned exchanging, unsigned each) {
    unsigned long long end = state->failed_at < to ? state->failed_at + 1 : to;
    if (state->refused_at < end) end = state->refused_at;
    unsigned odd = 0;
    for (unsigned s = 0; s < each; ++s)
        if (exchanging >> s & 1) odd ^= static_cast<unsigned>((end + each - 1 - s) / each - (from + each - 1 - s) / each) & 1;
    if (!odd) return;
    for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < points; k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) target[k] = other[k];
}

#endif

}  // namespace trifold::cuda::fused
