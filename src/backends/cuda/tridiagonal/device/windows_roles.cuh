// SPDX-License-Identifier: BSD-3-Clause
// What the warps of a block do with its windows, one after the other. Stages are taken in turns, by windows and by one
// that says that there is no other; `turn` counts windows.
//
// First pass, where one may do:
//   those that compute   reduce window t + 1, then finish window t, when its ends are known
//   the one that moves   shows what is left of window t + 1; stores window t, brings window t + 3
//   the one that couples joins the warps of window t and finds its ends from those around it, while t + 1 is being reduced
//   in place one more   sends rhs of window t away, before it is overwritten (either pass)
// Where two are wanted (the window is to be reduced only), its memory is free as soon as that is done; the one that couples, which has no ends to find
//   then, joins and shows: what moves windows has to do that and no more.
// Second pass: ends come from the chain before the rows do, so window t is reduced and finished in one go, while t + 1
//   and t + 2 are on their way.
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
    __device__ __forceinline__ Turns met() const { return {shared_address(shared.met)}; }
    __device__ __forceinline__ Turns finished() const { return {shared_address(shared.finished)}; }
    __device__ __forceinline__ Turns settled() const { return {shared_address(shared.settled)}; }

    __device__ __forceinline__ void next_stage() {
        if (++stage == stages) stage = 0, lap ^= 1;
    }
    __device__ __forceinline__ void wait_for_rows() const { Arrival{shared_address(&shared.full[stage])}.wait_together(lap); }

    /// The windows of this block, in their order; in the second pass from the last one to the first, since what the first pass read last
    /// is in the second-level cache still, and without those of systems that are good.
    struct Schedule {
        const Job<T>& job;
        const bool second;
        int next, system, part, systems_each, parts_each, known_system = -1;
        unsigned state = good;

        __device__ __forceinline__ Schedule(const Job<T>& from, bool second_pass) : job(from), second(second_pass) {
            const int blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
            systems_each = blocks / job.per_system, parts_each = blocks - systems_each * job.per_system;
            next = !second ? block : block < job.windows ? block + (job.windows - 1 - block) / blocks * blocks : -1;
            system = next / job.per_system, part = next - system * job.per_system;
        }
        __device__ __forceinline__ void advance() {
            const int blocks = static_cast<int>(gridDim.x);
            if (second) {
                next -= blocks, system -= systems_each, part -= parts_each;
                if (part < 0) part += job.per_system, --system;
            } else {
                next += blocks, system += systems_each, part += parts_each;
                if (part >= job.per_system) part -= job.per_system, ++system;
            }
        }
        /// Whether there is one, at `next`.
        __device__ __forceinline__ bool find() {
            for (; second && next >= 0; advance()) {
                if (system != known_system) state = job.state_of(system), known_system = system;
                if (state != good) break;
            }
            return second ? next >= 0 : next < job.windows;
        }
    };

    // ---- those that compute ----

    struct Rows {
        T *a, *b, *c, *d;
    };
    __device__ __forceinline__ Rows rows_of(int stage) const {
        const int4 shift = *reinterpret_cast<const int4*>(shared.place[stage].shift);
        T* const raw = shared.raw[stage][0] + (warp * lanes + lane) * R;
        return {raw + shift.x, raw + Shared::elements + shift.y, raw + 2 * Shared::elements + shift.z, raw + 3 * Shared::elements + shift.w};
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

    /// Second: of the passes.
    template <bool Second>
    __device__ __forceinline__ void compute(Maxima& most) {
        Lane<T, R> here, ahead;
        Way way;
        for (int stage_here = -1;;) {
            wait_for_rows();
            const Place& place = shared.place[stage];
            const int stage_ahead = stage;
            const int4 head = *reinterpret_cast<const int4*>(&place);  // window, system, rows, kind
            const int window = alike(head.x), kind = alike(head.w);
            const bool another = window >= 0, only_reduced = another && kind & Place::reduces;
            if (another) {
                const Rows own = rows_of(stage);
                if (kind & (Place::first | Place::last)) close_ends(own, place);
                if (!Second) published().wait(turn - 2);  // who joins has taken what is written next
                Part<T>& part = shared.parts[turn & 1][warp];
                if (Second || only_reduced) ahead.reduce_only(own.a, own.b, own.c, own.d, lane, part, way.sums);
                else ahead.reduce(own.a, own.b, own.c, own.d, lane, part, way);
                if (only_reduced) {
                    settled().wait(turn - 2);  // all have said so of the one before, and been heard
                    leave_to_copies();
                    __syncwarp();
                    if (lane == 0) met().arrive(turn), finished().arrive(turn);
                }
                __syncwarp();
                if (!Second && lane == 0) reduced().arrive(turn);
            }
            next_stage();
            if (Second) here = ahead, stage_here = another ? stage_ahead : -1;
            if (stage_here >= 0) finish<Second>(here, stage_here, Second ? turn : turn - 1, most);
            if (!another) return;
            ++turn, here = ahead, stage_here = only_reduced ? -1 : stage_ahead;
        }
    }

    template <bool Second>
    __device__ __forceinline__ void finish(const Lane<T, R>& state, int stage, int number, Maxima& most) {
        solved().wait(number);
        const int parity = number & 1;
        const T* const known = shared.known[parity];
        const T before = known[warp], end = known[warp + 1], of_a_warp = known[1 + lane % Warps];
        const Rows own = rows_of(stage);
        const bool skip = alike(shared.skip[parity]);
        if (!skip) {
            const Place& place = shared.place[stage];
            T x[R], left;
            state.solve(own.a, own.c, own.d, before, end, lane, x, left);
            Largest<T> largest;
            largest.add(of_a_warp);
#pragma unroll
            for (int i = 0; i < R; ++i) largest.add(x[i]);
            const unsigned top = __reduce_max_sync(~0u, held_bits(largest));
            if (lane == 0) {
                shared.first_x[parity][warp] = x[0], atomicMax(&shared.largest[parity], top);
                met().arrive(number);
            }
            const bool first_row = warp == 0 && lane == 0, last_row = warp == Warps - 1 && lane == lanes - 1;
            T X = number_of<T>(top) * beyond_cut<T>, after = __shfl_down_sync(~0u, x[0], 1);
            if (first_row && own.a[0] != T(0)) X = larger(X, fabs(left));
            if (last_row && own.c[R - 1] != T(0)) X = larger(X, fabs(known[Warps + 1]));
            bool good_here;
            if (!Second && state.dominant) {
                good_here = state.is_moderate(X);
                state.store(own.d, x);
                if (last_row) after = known[Warps + 1];
            } else {
                good_here = state.check(own.a, own.b, own.c, own.d, x, left, X, job.accept, [&] {
                    met().wait(number);
                    if (lane == lanes - 1)
                        after = warp + 1 < Warps ? shared.first_x[parity][warp + 1 < Warps ? warp + 1 : 0]
                                                 : known[Warps + 1];
                    return after;
                });
            }
            if (first_row && !place.begins())
                job.seams[place.window - 1].below =
                    side_of(x[0], left, own.a[0], own.a[0], own.b[0], own.c[0], job.accept * X);
            if (last_row && !place.ends())
                job.seams[place.window].above =
                    side_of(x[R - 1], after, own.c[R - 1], own.a[R - 1], own.b[R - 1], own.c[R - 1], job.accept * X);
            most = {max(most.inner, state.inner), max(most.reach, state.reach), max(most.growth, state.growth),
                    fmaxf(most.ends, state.lasting)};
            if (!good_here) shared.bad[parity] = 1;
        }
        leave_to_copies();
        __syncwarp();
        if (lane == 0) {
            if (skip) met().arrive(number);
            finished().arrive(number);
        }
    }

    // ---- the one that moves ----

    __device__ __forceinline__ void move() {
        const Mover<T, R, Warps> mover{job, shared, lane};
        Schedule windows(job, second);
        bool any = true;
        unsigned state_ahead = good;  // of the next window's system: asked for in time, once others have cleared it
        const auto bring = [&](int stage, bool after_store, bool look_ahead) {
            if (!any) return;
            if (!second && state_ahead == left) pass_over(windows), state_ahead = windows.next < job.windows ? job.state_of(windows.system) : good;
            any = !(second && state_ahead == left) && windows.find();
            const int kind = !second && state_ahead != good ? Place::reduces : 0;
            mover.load(any ? windows.next : -1, windows.system, windows.part, kind, stage, after_store);
            windows.advance();
            // In a second pass the only one's: others have to go on whatever becomes of one.
            if (look_ahead && (second ? windows.next >= 0 && job.levels.systems == 1 : windows.next < job.windows)) state_ahead = job.state_of(windows.system);
        };
        for (int s = 0; s < stages; ++s) bring((stage + s) % stages, false, false);
        if (second) {
            for (;; ++turn) {
                const int stage_here = stage;
                if (alike(shared.place[stage_here].window) < 0) break;
                next_stage();
                finished().wait(turn);
                const bool stores = settle(mover, stage_here, turn & 1);
                if (lane == 0) settled().arrive(turn);
                bring(stage_here, stores, true);
            }
            if (lane == 0) *const_cast<volatile int*>(&shared.over) = 1;  // to who fetches ends, and may be ahead of an end that comes too soon
            __syncwarp();
        } else {
            for (int stage_here = -1;; ++turn) {
                const int stage_ahead = stage, window = alike(shared.place[stage].window);
                const bool another = window >= 0, only_reduced = another && alike(shared.place[stage].kind) & Place::reduces;
                next_stage();
                if (another && !only_reduced) reduced().wait(turn), show_window(window);
                if (stage_here >= 0) {
                    finished().wait(turn - 1);
                    const bool stores = settle(mover, stage_here, turn - 1 & 1);
                    if (lane == 0) settled().arrive(turn - 1);
                    bring(stage_here, stores, true);
                }
                if (!another) break;
                if (only_reduced) {
                    finished().wait(turn), solved().wait(turn);
                    __syncwarp();
                    if (lane == 0) settled().arrive(turn);
                    bring(stage_ahead, false, true);
                }
                stage_here = only_reduced ? -1 : stage_ahead;
            }
        }
        mover.settled();
    }

    /// What is left of a system that is left to pivots: nobody wants it, but for those that wait for its windows.
    __device__ __forceinline__ void pass_over(Schedule& windows) const {
        const int system = windows.system;
        for (; windows.next < job.windows && windows.system == system; windows.advance())
            if (lane == 0) show_interface(job.interfaces + windows.next, Interface<T>{});
    }

    __device__ __forceinline__ void show_window(int window) const {
        Relation<T> joined;
        const Interface<T> whole = Parts::reduce(shared.parts[turn & 1], joined, lane);
        if (lane == 0) show_interface(job.interfaces + window, whole), shared.whole[turn & 1] = whole;
        __syncwarp();
        if (lane == 0) published().arrive(turn);
        keep_joined(window, joined);
    }

    /// For a second pass.
    __device__ __forceinline__ void keep_joined(int window, const Relation<T>& joined) const {
        if (job.second && lane < Shared::parts_width)
            job.joined[static_cast<std::int64_t>(window) * Shared::parts_width + lane] = joined;
    }

    __device__ __forceinline__ bool settle(const Mover<T, R, Warps>& mover, int stage, int parity) const {
        const bool skip = alike(shared.skip[parity]), bad = alike(shared.bad[parity]);
        const int window = shared.place[stage].window, system = shared.place[stage].system;
        const unsigned top = shared.largest[parity];
        __syncwarp();
        if (lane == 0) {
            shared.bad[parity] = 0, shared.largest[parity] = 0;
            if (!skip && bad) job.demote(system, left);
            if (!skip && !bad) atomicMax(job.largest + system, top), job.stored[window] = static_cast<unsigned char>(1 + shared.place[stage].shift[3]);
        }
        if (skip || bad) return false;
        mover.store(stage);
        return true;
    }

    // ---- the one that couples ----

    __device__ __forceinline__ void solve_ends() {
        for (;; ++turn) {
            wait_for_rows();
            const int window = alike(shared.place[stage].window), system = alike(shared.place[stage].system);
            const bool only_reduced = alike(shared.place[stage].kind) & Place::reduces;
            next_stage();
            if (window < 0) return;
            if (only_reduced) {
                settled().wait(turn - 2);  // who waits for this has waited for the one before
                __syncwarp();
                if (lane == 0) solved().arrive(turn);
                reduced().wait(turn);
                show_window(window);
                continue;
            }
            const unsigned state = job.state_of(system);
            reduced().wait(turn);
            // Joined a second time, since who shows the window is not done sooner; looked at only then, since looks that come too early are in the way.
            Relation<T> joined = Parts::closed(shared.parts[turn & 1], lane);
            Parts::join(joined, lane);
            published().wait(turn);
            Ends<T> ends;
            bool known = false;
            if (alike(state) == good) {
                known = couple(job, shared.whole[turn & 1], window, system, lane, ends);
                if (!known && lane == 0)
                    job.demote(system, again), *const_cast<volatile unsigned*>(&job.outcome->undecayed) = 1;
            }
            tell_ends(ends, joined, known);
        }
    }

    /// The second pass: what is asked of memory is there before the rows are.
    __device__ __forceinline__ void fetch_ends() {
        for (Schedule windows(job, true); windows.find(); windows.advance(), ++turn) {
            const T* const from = reinterpret_cast<const T*>(
                job.joined + static_cast<std::int64_t>(windows.next) * Shared::parts_width + lane % Shared::parts_width);
            const Relation<T> joined{from_other_block(from), from_other_block(from + 1), from_other_block(from + 2)};
            const Ends<T> ends = ends_of(job, windows.next, windows.system);
            const bool known = __shfl_sync(~0u, job.state_of(windows.system), 0) != left;
            while (!settled().is_over(turn - 2))  // what is written next has been used
                if (alike(*const_cast<const volatile int*>(&shared.over))) return;
            tell_ends(ends, joined, known);
        }
    }

    // ---- in place: the one that keeps rhs ----

    __device__ __forceinline__ void keep_rhs() {
        constexpr int vector = 16 / static_cast<int>(sizeof(T));
        for (;; ++turn) {
            wait_for_rows();
            const Place& place = shared.place[stage];
            const int window = alike(place.window), rows = place.rows, shift = place.shift[3], begin = shift / vector * vector;
            const bool only_reduced = alike(place.kind) & Place::reduces;
            const T* const from = shared.raw[stage][3] + begin;
            next_stage();
            if (window < 0) break;
            solved().wait(turn - 2);
            if (lane == 0 && !only_reduced) {
                leave_to_copies();
                const auto bytes = static_cast<unsigned>((shift + rows - begin + vector - 1) / vector * 16);
                send_bulk(job.kept + static_cast<std::int64_t>(window) * Shared::elements + begin, shared_address(from), bytes);
                await_sent_reads();
            }
            __syncwarp();
            if (lane == 0) solved().arrive(turn);
        }
        if (lane == 0) await_sent();
        __syncwarp();
    }

    /// To those that compute. joined: of warp lane - none.
    __device__ __forceinline__ void tell_ends(const Ends<T>& ends, const Relation<T>& joined, bool known) const {
        const int parity = turn & 1;
        if (known) {
            const T last = Parts::substitute(joined, ends.before, ends.last, lane);
            if (lane >= Parts::none && lane < Shared::parts_width) shared.known[parity][1 + lane - Parts::none] = last;
            if (lane == 0) shared.known[parity][0] = ends.before, shared.known[parity][Warps + 1] = ends.after;
        }
        if (lane == 0) shared.skip[parity] = !known;
        __syncwarp();
        if (lane == 0) solved().arrive(turn);
    }
};

}  // namespace trifold::cuda::windows
