// SPDX-License-Identifier: BSD-3-Clause
// What the warps of a block do with its windows, one after the other. Stages are taken in turns, by windows and by one
// that says that there is no other; `turn` counts windows.
//
//   those that compute   reduce window t + 1, then finish window t, when its ends are known
//   the one that moves   joins the warps of window t + 1 and shows what is left; stores window t, brings window t + 3
//   the one that couples finds the ends of window t from those around it, while t + 1 is being reduced
#pragma once

#include "backends/cuda/tridiagonal/device/windows_chain.cuh"

namespace trifold::cuda::windows {

template <class T, int R, int Warps>
struct Block {
    using Shared = Memory<T, R, Warps>;
    using Parts = WarpsOfWindow<T, Warps, Shared::parts_width>;
    const Job<T>& job;
    Shared& shared;
    int warp, lane;
    int stage = 0, lap = 0, turn = 0;
    bool second = false;

    __device__ __forceinline__ Turns reduced() const { return {shared_address(shared.reduced)}; }
    __device__ __forceinline__ Turns published() const { return {shared_address(shared.published)}; }
    __device__ __forceinline__ Turns solved() const { return {shared_address(shared.solved)}; }
    __device__ __forceinline__ Turns finished() const { return {shared_address(shared.finished)}; }

    __device__ __forceinline__ void next_stage() {
        if (++stage == stages) stage = 0, lap ^= 1;
    }
    __device__ __forceinline__ void wait_for_rows() const { Arrival{shared_address(&shared.full[stage])}.wait(lap); }

    // ---- those that compute ----

    struct Rows {
        T *a, *b, *c, *d;
    };
    __device__ __forceinline__ Rows rows_of(int stage) const {
        const int first = (warp * lanes + lane) * R;
        const auto of = [&](int k) { return shared.raw[stage][k] + shared.place[stage].shift[k] + first; };
        return {of(0), of(1), of(2), of(3)};
    }

    /// What elimination must not see: lower of the first row, upper of the last one, and the rows that are missing to
    /// the window.
    __device__ __forceinline__ void close_ends(const Rows& own, const Place& place) const {
        const int first = (warp * lanes + lane) * R;
        if (place.begins() && first == 0) own.a[0] = 0;
        if (first + R < place.rows) return;
        for (int i = max(place.rows - first, 0); i < R; ++i) own.a[i] = 0, own.b[i] = 1, own.c[i] = 0, own.d[i] = 0;
        const int last = place.rows - 1 - first;
        if (place.ends() && last >= 0 && last < R) own.c[last] = 0;
    }

    __device__ __forceinline__ void compute(Maxima& most) {
        Lane<T, R> here, ahead;
        int stage_here = -1;
        for (;;) {
            wait_for_rows();
            const Place& place = shared.place[stage];
            const bool another = place.window >= 0;
            if (another) {
                const Rows own = rows_of(stage);
                if (place.edges != 0) close_ends(own, place);
                ahead.reduce(own.a, own.b, own.c, own.d, lane, shared.parts[turn & 1][warp]);
                __syncwarp();
                if (lane == 0) reduced().arrive(turn);
            }
            if (stage_here >= 0) finish(here, stage_here, turn - 1, most);
            const int done = stage;
            next_stage();
            if (!another) return;
            ++turn, here = ahead, stage_here = done;
        }
    }

    __device__ __forceinline__ void finish(const Lane<T, R>& state, int stage, int number, Maxima& most) {
        solved().wait(number);
        const int parity = number & 1;
        if (!shared.skip[parity]) {
            const Place& place = shared.place[stage];
            const Rows own = rows_of(stage);
            const T* const known = shared.known[parity];
            T x[R], left;
            state.solve(own.a, own.c, own.d, known[warp], known[warp + 1], lane, x, left);
            Largest<T> largest;
#pragma unroll
            for (int i = 0; i < R; ++i) largest.add(x[i]);
            const unsigned top = __reduce_max_sync(~0u, held_bits(largest));
            if (lane == 0) shared.first_x[parity][warp] = x[0], atomicMax(&shared.largest[parity], top);
            asm volatile("bar.sync 1, %0;" ::"n"(lanes * Warps) : "memory");
            T after = __shfl_down_sync(~0u, x[0], 1);
            if (lane == lanes - 1)
                after = warp + 1 < Warps ? shared.first_x[parity][warp + 1 < Warps ? warp + 1 : 0] : known[Warps + 1];
            T X = number_of<T>(*const_cast<volatile unsigned*>(&shared.largest[parity])) * beyond_cut<T>;
            if (warp == 0 && lane == 0 && own.a[0] != T(0)) X = larger(X, fabs(left));
            if (warp == Warps - 1 && lane == lanes - 1 && own.c[R - 1] != T(0)) X = larger(X, fabs(after));
            const bool good_here = state.check(own.a, own.b, own.c, own.d, x, left, after, X, job.accept);
            if (warp == 0 && lane == 0 && !place.begins())
                job.seams[place.window - 1].below =
                    side_of(x[0], left, own.a[0], own.a[0], own.b[0], own.c[0], job.accept * X);
            if (warp == Warps - 1 && lane == lanes - 1 && !place.ends())
                job.seams[place.window].above =
                    side_of(x[R - 1], after, own.c[R - 1], own.a[R - 1], own.b[R - 1], own.c[R - 1], job.accept * X);
            most = {max(most.inner, state.inner), max(most.reach, state.reach), max(most.growth, state.growth),
                    fmaxf(most.ends, state.lasting)};
            if (!good_here) shared.bad[parity] = 1;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::
                         : "memory");  // the copy engine reads x and writes the next window
        __syncwarp();
        if (lane == 0) finished().arrive(number);
    }

    // ---- the one that moves ----

    __device__ __forceinline__ void move() {
        const Mover<T, R, Warps> mover{job, shared, lane};
        const int blocks = static_cast<int>(gridDim.x), systems_each = blocks / job.per_system,
                  parts_each = blocks - systems_each * job.per_system;
        int next = static_cast<int>(blockIdx.x), system = next / job.per_system, part = next - system * job.per_system;
        bool any = true;
        const auto skip_on = [&] {
            next += blocks, system += systems_each, part += parts_each;
            if (part >= job.per_system) part -= job.per_system, ++system;
        };
        const auto bring = [&](int stage, bool after_store) {
            if (!any) return;
            while (second && next < job.windows && job.state_of(system) == good) skip_on();
            any = next < job.windows;
            mover.load(any ? next : -1, system, part, stage, after_store);
            skip_on();
        };
        for (int s = 0; s < stages; ++s) bring((stage + s) % stages, false);
        for (int stage_here = -1;;) {
            const int stage_next = stage, window = shared.place[stage].window;
            const bool another = window >= 0;
            next_stage();
            if (another) reduced().wait(turn), show_window(window);
            if (stage_here >= 0) {
                finished().wait(turn - 1);
                const bool stores = settle(mover, stage_here, turn - 1 & 1);
                bring(stage_here, stores);
            }
            if (!another) break;
            ++turn, stage_here = stage_next;
        }
        mover.settled();
    }

    __device__ __forceinline__ void show_window(int window) const {
        const Interface<T> whole = Parts::reduce(shared.parts[turn & 1], shared.joined[turn & 1], lane);
        if (lane != 0) return;
        shared.whole[turn & 1] = whole;
        if (!second) show_interface(job.interfaces + window, whole);
        published().arrive(turn);
    }

    __device__ __forceinline__ bool settle(const Mover<T, R, Warps>& mover, int stage, int parity) const {
        const bool skip = shared.skip[parity], bad = shared.bad[parity];
        const int window = shared.place[stage].window, system = shared.place[stage].system;
        const unsigned top = shared.largest[parity];
        __syncwarp();
        if (lane == 0) {
            shared.bad[parity] = 0, shared.largest[parity] = 0;
            if (!skip && bad) job.demote(system, left);
            if (!skip && !bad) atomicMax(job.largest + system, top), job.stored[window] = 1;
        }
        if (skip || bad) return false;
        mover.store(stage);
        return true;
    }

    // ---- the one that couples ----

    __device__ __forceinline__ void solve_ends() {
        for (;; ++turn) {
            wait_for_rows();
            const int window = shared.place[stage].window, system = shared.place[stage].system;
            next_stage();
            if (window < 0) return;
            published().wait(turn);
            const unsigned state_here = job.state_of(system);  // on its way while others are waited for
            Ends<T> ends;
            bool decays = true;
            if (second)
                ends = ends_of(job, window, system);
            else
                decays = couple(job, shared.whole[turn & 1], window, system, lane, ends);
            const unsigned state = __shfl_sync(~0u, state_here, 0);
            const bool known = decays && (second ? state != left : state == good);
            if (!decays && lane == 0 && state == good)
                job.demote(system, again), *const_cast<volatile unsigned*>(&job.outcome->undecayed) = 1;
            const int parity = turn & 1;
            if (known) {
                const T last = Parts::substitute(shared.joined[parity], ends.before, ends.last, lane);
                if (lane >= Parts::none && lane < Shared::parts_width)
                    shared.known[parity][1 + lane - Parts::none] = last;
                if (lane == 0) shared.known[parity][0] = ends.before, shared.known[parity][Warps + 1] = ends.after;
            }
            if (lane == 0) shared.skip[parity] = !known;
            __syncwarp();
            if (lane == 0) solved().arrive(turn);
        }
    }
};

}  // namespace trifold::cuda::windows
