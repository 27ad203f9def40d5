// SPDX-License-Identifier: BSD-3-Clause
// Lines along y or z whose matrices are made in the pass that solves them, and the update where they are the last ones of their sweep.
//
//   values or target = update(fields, (lower, diag, upper)^-1 values),   lower, diag, upper = coefficients(fields)
//
// Who does what: as pass.cuh, a block has W lines side by side and a thread R rows of one of them, few enough that its matrices' fields, values and reduced rows are in registers; all of them are asked for before the first is used.
//   A block has one set of lines: others of its multiprocessor wait for memory while it computes. Segments are joined in shared memory, a barrier for each step (reduced.cuh).
// Words per point: 2 for values, those of the fields that coefficients read (heat: 1 where kept matrices are 2), and what the update reads.
// Numerics: reduced.cuh.
#pragma once

#include "backends/cuda/mesh/fused/pass.cuh"
#include "backends/cuda/mesh/fused/reduced.cuh"

namespace trifold::cuda::fused {

template <class C>
struct MadeLines : Lines<C> {
    using Base = Lines<C>;
    using typename Base::T;
    using typename Base::Point;
    using Base::R, Base::S, Base::W, Base::n, Base::threads, Base::lines, Base::sets, Base::a, Base::p, Base::thread, Base::segment, Base::column, Base::first;
    static_assert(C::axis > 0 && Base::even && (!C::ring || (S & (S - 1)) == 0));
    using Base::Base;

    /// The fields of a line's matrix, a row more on both sides.
    struct Around {
        T value[C::fields][R + 2];
    };
    struct InColumn {
        const Around& around;
        const MeshArguments<T>& a;
        const Point& point;
        std::int64_t mesh;
        int i;

        template <int f, int dx, int dy, int dz>
        __device__ __forceinline__ T at() const {
            constexpr int along = C::axis == 1 ? dy : dz;
            if constexpr (dx == 0 && (C::axis == 1 ? dz : dy) == 0 && along >= -1 && along <= 1) return around.value[f][i + 1 + along];
            else return Near<C, false>{a, point.x, point.y, point.z, mesh, T(0)}.template at<f, dx, dy, dz>();
        }
    };

    static constexpr __device__ bool reads(int f, int d) {
        for (int k = 0; k < C::coefficients_reads::count; ++k)
            if (C::coefficients_reads::at(k, 0) == f && C::coefficients_reads::at(k, 1) == 0 && C::coefficients_reads::at(k, C::axis == 1 ? 3 : 2) == 0 && C::coefficients_reads::at(k, C::axis + 1) == d) return true;
        return false;
    }

    template <int f = 0>
    __device__ __forceinline__ void take(Around& around, int set, std::int64_t mesh) const {
        if constexpr (f < C::fields) {
            constexpr bool any = reads(f, -1) || reads(f, 0) || reads(f, 1);
            const Point low = Base::place(set, 0), high = Base::place(set, R - 1);
            if constexpr (any) {
#pragma unroll
                for (int i = 0; i < R; ++i) {
                    const Point at = Base::place(set, i);
                    around.value[f][i + 1] = at.there ? Near<C, false>{a, at.x, at.y, at.z, mesh, T(0)}.template at<f, 0, 0, 0>() : T(0);
                }
            }
            if constexpr (reads(f, -1)) around.value[f][0] = low.there ? Near<C, false>{a, low.x, low.y, low.z, mesh, T(0)}.template at<f, 0, C::axis == 1 ? -1 : 0, C::axis == 2 ? -1 : 0>() : T(0);
            if constexpr (reads(f, 1)) around.value[f][R + 1] = high.there ? Near<C, false>{a, high.x, high.y, high.z, mesh, T(0)}.template at<f, 0, C::axis == 1 ? 1 : 0, C::axis == 2 ? 1 : 0>() : T(0);
            take<f + 1>(around, set, mesh);
        }
    }

    /// Of the last rows' system, in turns in one of two places.
    struct Shared {
        T* memory;

        __device__ __forceinline__ void put(int thread, const LastRow<T>& row) const { memory[thread] = row.low, memory[threads + thread] = row.high, memory[2 * threads + thread] = row.last; }
        __device__ __forceinline__ LastRow<T> get(int thread) const { return {memory[thread], memory[threads + thread], memory[2 * threads + thread]}; }
    };
    __device__ __forceinline__ int away(int s) const { return (segment + s + S) % S * W + column; }

    __device__ __forceinline__ void solve(ReducedSegment<T, R>& own) const {
        const Shared places[2] = {{Base::staged + Base::stage}, {Base::staged + Base::stage + 3 * threads}};
        own.turn_back();
        places[0].put(thread, own.first());
        block_barrier();
        LastRow<T> row = own.last_row(places[0].get(away(1)));
        int turn = 1;
#pragma unroll
        for (int s = 1; s < S; s *= 2, turn ^= 1) {
            places[turn].put(thread, row);
            block_barrier();
            const LastRow<T> none{T(0), T(0), T(0)}, before = C::ring || segment >= s ? places[turn].get(away(-s)) : none, after = C::ring || segment + s < S ? places[turn].get(away(s)) : none;
            row.reduce(before, after);
        }
        if constexpr (C::ring) row.close();
        places[turn].put(thread, row);
        block_barrier();
        const T before = C::ring || segment > 0 ? places[turn].get(away(-1)).last : T(0);
        own.finish(before, row.last);
    }

    __device__ __forceinline__ void run(const PassArguments<T>& pass, std::int64_t task, bool failed_before) const {
        const std::int64_t number = a.backwards ? pass.tasks - 1 - task : task, mesh = number / sets;
        const int set = static_cast<int>(number % sets);
        Around around;
        T right[R];
        take(around, set, mesh);
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const Point at = Base::place(set, i);
            right[i] = at.there ? *Base::value_of(at, set, i, mesh) : T(0);
        }
        Base::bring_nearer(set, mesh);
        ReducedSegment<T, R> own;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const Point at = Base::place(set, i);
            T row[3] = {0, 1, 0}, low = 0, high = 0;
            C::coefficients(InColumn{around, a, at, mesh, i}, p, row, std::int64_t{at.x}, std::int64_t{at.y}, std::int64_t{at.z}, mesh, a.step);
            if (!at.there) row[0] = 0, row[1] = 1, row[2] = 0;
            Base::fold(i, row, pass, low, high);
            own.add(i, row, right[i] - low - high);
        }
        solve(own);
        const bool is_line = set * W + column < lines, bad = is_line && !(own.d[0] * T(0) + own.d[R - 1] * T(0) == T(0));
        const bool any = any_of_block(bad || failed_before);
        bool all_good = true, none_good = false;
        if (any) none_good = Base::judge(set, mesh, bad, failed_before), all_good = false;
        Base::store(own.d, set, mesh, all_good, none_good);
        if (any) block_barrier();
    }
};

#ifdef __CUDACC__

template <class C>
__device__ __forceinline__ void made_pass(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const PassArguments<typename C::real>& pass) {
    using T = typename C::real;
    extern __shared__ int4 shared[];
    const MadeLines<C> own(a, p, reinterpret_cast<T*>(shared), static_cast<int>(threadIdx.x));
    follow_previous();
    const bool failed_before = failed_at(a.state) == a.sweep;
    if (!runs(a.state, a.sweep)) return;
    for (std::int64_t task = blockIdx.x; task < pass.tasks; task += gridDim.x) own.run(pass, task, failed_before);
}

#endif

}  // namespace trifold::cuda::fused
