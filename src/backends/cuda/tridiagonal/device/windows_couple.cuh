// SPDX-License-Identifier: BSD-3-Clause
// How windows learn their ends. A window's warps become one Interface, which all blocks see. Where its neighbours' ends
// do not matter to it, a window needs the rows beside it, and else fifteen windows on either side: they are solved by
// one warp, a window per lane, as if nothing lay beyond them. What that neglects is bounded first: where |a| + |c| ≤
// 3/4, the unknown of a window moves by at most |a| / (1 - |c|) of what the one before does.
#pragma once

#include "backends/cuda/tridiagonal/device/windows_lane.cuh"
#include "backends/cuda/tridiagonal/device/windows_memory.cuh"

namespace trifold::cuda::windows {

inline constexpr int centre = 15;
/// A system of so many is solved by one warp as a whole.
inline constexpr int few_windows = 2 * lanes;

/// Logarithms in units of 2^-6, rounded towards +infinity by more than the hardware's is off.
inline constexpr int log_unit = 64;
__device__ __forceinline__ float log2_of(float x) {
    return fmaxf(__log2f(x), -4096.0f);
}
__device__ __forceinline__ int log_of_ratio(float above, float below) {
    return min(__float2int_ru((log2_of(above) - log2_of(below)) * log_unit) + 1, 0);
}

__device__ __forceinline__ unsigned seen(const unsigned* flag) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

template <class T>
__device__ __forceinline__ T from_other_block(const T* at) {
    return *const_cast<const volatile T*>(at);
}

/// No number that is shown to others: what an Interface is made of until it is.
template <class T>
__device__ __forceinline__ T nothing_yet() {
    if constexpr (sizeof(T) == 8)
        return __longlong_as_double(-1ll);
    else
        return __uint_as_float(~0u);
}
__device__ __forceinline__ bool is_nothing(double x) {
    return __double_as_longlong(x) == -1ll;
}
__device__ __forceinline__ bool is_nothing(float x) {
    return __float_as_uint(x) == ~0u;
}

template <class T>
__device__ __forceinline__ Interface<T> load_interface(const Interface<T>* from) {
    return {{from_other_block(&from->first.a), from_other_block(&from->first.c), from_other_block(&from->first.d)},
            {from_other_block(&from->last.a), from_other_block(&from->last.c), from_other_block(&from->last.d)}};
}

/// Word by word: every word is there when it is not nothing_yet, whatever the others are.
template <class T>
__device__ __forceinline__ bool is_there(const Interface<T>& it) {
    return !is_nothing(it.first.a) && !is_nothing(it.first.c) && !is_nothing(it.first.d) && !is_nothing(it.last.a) &&
           !is_nothing(it.last.c) && !is_nothing(it.last.d);
}

template <class T>
__device__ __forceinline__ Interface<T> await_interface(const Interface<T>* from) {
    for (;;) {
        const Interface<T> here = load_interface(from);
        if (is_there(here)) return here;
    }
}

template <class T>
__device__ __forceinline__ void show_interface(Interface<T>* to, const Interface<T>& what) {
    const T sum = fabs(what.first.a) + fabs(what.first.c) + fabs(what.first.d) + fabs(what.last.a) + fabs(what.last.c) +
                  fabs(what.last.d);
    const bool finite = finite_or_zero(sum) == sum;  // else its x will not pass
    const auto put = [&](T& at, T value) { const_cast<volatile T&>(at) = finite ? value : T(0); };
    put(to->first.a, what.first.a), put(to->first.c, what.first.c), put(to->first.d, what.first.d);
    put(to->last.a, what.last.a), put(to->last.c, what.last.c), put(to->last.d, what.last.d);
}

template <class T>
__device__ __forceinline__ Relation<T> close_with(const Relation<T>& last, const Relation<T>& next) {
    const Divisor<T> by(fused(-last.c, next.a, T(1)));
    return {by.of(last.a), by.of(-last.c * next.c), by.of(fused(-last.c, next.d, last.d))};
}

/// `row` without the unknown of the row before it.
template <class T>
__device__ __forceinline__ Relation<T> eliminated(const Relation<T>& row, const Relation<T>& above) {
    const Divisor<T> by(fused(-row.a, above.c, T(1)));
    return {by.of(-row.a * above.a), by.of(row.c), by.of(fused(-row.a, above.d, row.d))};
}

/// What is left of the warps becomes one, by one warp. The last lanes are warps; those before have the unknown before
/// the window for theirs.
template <class T, int Warps, int Width>
struct WarpsOfWindow {
    static constexpr int none = Width - Warps;

    /// The first row of warp lane - none, in its last unknown.
    __device__ __forceinline__ static Relation<T> first_row(const Part<T>& part) {
        Relation<T> first = part.first;
#pragma unroll
        for (int l = 0; l < 5; ++l) first = through(first, part.on_the_way[l]);
        return first;
    }
    __device__ __forceinline__ static const Part<T>& part_of(const Part<T>* parts, int lane) { return parts[max(lane % Width - none, 0)]; }

    /// The last row of warp lane - none, closed with the next warp's first one.
    __device__ __forceinline__ static Relation<T> closed(const Part<T>* parts, int lane) { return closed(part_of(parts, lane), first_row(part_of(parts, lane)), lane); }
    __device__ __forceinline__ static Relation<T> closed(const Part<T>& mine, const Relation<T>& first, int lane) {
        const int part = lane % Width - none;
        const Relation<T> next = from_below(first, 1, Width);
        Relation<T> own{T(-1), T(0), T(0)};
        if (part >= 0) own = mine.last;
        if (part >= 0 && part + 1 < Warps) own = close_with(own, next);
        return own;
    }

    /// own: as closed returns it; becomes what is left of warp lane - none.
    __device__ __forceinline__ static void join(Relation<T>& own, int lane) { OddEven<T, Width>::reduce(own, lane % Width); }

    __device__ __forceinline__ static Interface<T> reduce(const Part<T>* parts, Relation<T>& own, int lane) {
        const Part<T>& mine = part_of(parts, lane);
        const Relation<T> first = first_row(mine);
        own = closed(mine, first, lane);
        join(own, lane);
        return {OddEven<T, Width>::template through_all<none>(of_lane(first, none), own), of_lane(own, Width - 1)};
    }

    /// The last unknown of warp lane - none; joined: of that one, as reduce has left it.
    __device__ __forceinline__ static T substitute(const Relation<T>& joined, T before, T x, int lane) {
        return OddEven<T, Width>::substitute(joined, before, x, lane % Width);
    }
};

/// The unknown before a window, its last one, and the one after it.
template <class T>
struct Ends {
    T before, last, after;
};

/// From fifteen windows on either side; false where they do not forget what is beyond them. All lanes of a warp.
template <class T>
__device__ __noinline__ bool couple_widely(const Interface<T>* interfaces, int window, int first_of_system,
                                           int end_of_system, int weak, int lane, Ends<T>& ends) {
    const int other = window - centre + lane;
    const bool exists = other >= first_of_system && other < end_of_system;
    Interface<T> mine{};
    if (exists) mine = await_interface(interfaces + other);
    __syncwarp();
    const Relation<T> next = from_below(mine.first, 1, lanes);
    Relation<T> own = lane < lanes - 1 ? close_with(mine.last, next) : mine.last;
    const float fa = static_cast<float>(fabs(own.a)), fc = static_cast<float>(fabs(own.c));
    // Every window solves for itself: what two of them find for the same unknown must not differ by more than rounding.
    // The last lane's row is not closed, and says nothing of that.
    if (__any_sync(~0u, exists && lane < lanes - 1 && !(fa + fc <= 0.75f))) return false;
    const bool shrinks = exists && fa + fc <= 1;
    const int from_left = __reduce_add_sync(~0u, shrinks && lane < centre ? log_of_ratio(fa, 1 - fc) : 0);
    const int from_right = __reduce_add_sync(~0u, shrinks && lane > centre ? log_of_ratio(fc, 1 - fa) : 0);
    if ((window - centre > first_of_system && from_left > weak) ||
        (window + lanes - centre < end_of_system && from_right > weak))
        return false;
    if (lane == 0) own.a = 0;
    if (lane == lanes - 1) own.c = 0;
    OddEven<T, lanes>::reduce(own, lane);
    const T x = OddEven<T, lanes>::substitute(own, T(0), __shfl_sync(~0u, own.d, lanes - 1), lane),
            beyond = __shfl_down_sync(~0u, x, 1);
    const T after = fused(-next.c, beyond, fused(-next.a, x, next.d));
    ends = {__shfl_sync(~0u, x, centre - 1), __shfl_sync(~0u, x, centre), __shfl_sync(~0u, after, centre)};
    return true;
}

/// Up to lanes · Each windows in a row, all there are, Each per lane: their last unknowns, their first ones, and in `left` the
/// unknown before the lane's; whether all rows were light, of the lane. All lanes of a warp.
template <class T, int Each>
__device__ __forceinline__ bool solve_few(const Interface<T> (&mine)[Each], int lane, T (&last)[Each], T (&first)[Each], T& left) {
    // Last unknowns of the lane's windows, in the one before the lane and its last one; that one in the ones before and after the lane.
    Relation<T> rows[Each];
#pragma unroll
    for (int i = 0; i + 1 < Each; ++i) {
        rows[i] = close_with(mine[i].last, mine[i + 1].first);
        if (i > 0) rows[i] = eliminated(rows[i], rows[i - 1]);
    }
    Relation<T> own = mine[Each - 1].last;
    const Relation<T> next = from_below(mine[0].first, 1, lanes);
    if (lane < lanes - 1) own = close_with(own, next);
    if constexpr (Each > 1) {
        own = eliminated(own, rows[Each - 2]);
#pragma unroll
        for (int i = Each - 3; i >= 0; --i) rows[i] = through(rows[i], rows[i + 1]);
        const Relation<T> beyond = from_below(rows[0], 1, lanes);
        if (lane < lanes - 1) own = close_with(own, beyond);
    }
    OddEven<T, lanes>::reduce(own, lane);
    bool light = is_light(own);
#pragma unroll
    for (int i = 0; i + 1 < Each; ++i) light = light && is_light(rows[i]);
    const T x = OddEven<T, lanes>::substitute(own, T(0), __shfl_sync(~0u, own.d, lanes - 1), lane), above = __shfl_up_sync(~0u, x, 1);
    left = lane ? above : T(0);
#pragma unroll
    for (int i = 0; i < Each; ++i) {
        last[i] = i + 1 < Each ? fused(-rows[i].c, x, fused(-rows[i].a, left, rows[i].d)) : x;
        first[i] = fused(-mine[i].first.c, last[i], fused(-mine[i].first.a, i ? last[i ? i - 1 : 0] : left, mine[i].first.d));
    }
    return light;
}

/// Of what lanes have of Each parts: that of part `which`.
template <class T, int Each>
__device__ __forceinline__ T of_one(const T (&values)[Each], int which) {
    T value = __shfl_sync(~0u, values[0], which / Each);
#pragma unroll
    for (int i = 1; i < Each; ++i) {
        const T other = __shfl_sync(~0u, values[i], which / Each);
        if (which % Each == i) value = other;
    }
    return value;
}

/// The last unknowns of all parts (warps, blocks), Each per lane, and their first ones; left: the unknown before the lane's. light: whether all rows of the lane's parts are; returns whether
/// all were, those that join parts too: x needs no check then (thread/weight.cuh).
template <class T, int Each>
__device__ __forceinline__ bool solve_parts(const Interface<T> (&mine)[Each], bool light, T negligible, int lane, T (&last)[Each], T (&first)[Each], T& left) {
    const Relation<T> next = from_below(mine[0].first, 1, lanes);
    Largest<T> coupling;
#pragma unroll
    for (int i = 0; i < Each; ++i) {
        Relation<T> own = mine[i].last;
        if (i + 1 < Each || lane < lanes - 1) own = close_with(own, i + 1 < Each ? mine[i + 1 < Each ? i + 1 : 0].first : next);
        last[i] = own.d, coupling.add(own.a), coupling.add(own.c), light = light && is_light(own);
    }
    if (__all_sync(~0u, coupling.value() <= negligible)) {
        const T above = __shfl_up_sync(~0u, last[Each - 1], 1);
        left = lane ? above : T(0);
#pragma unroll
        for (int i = 0; i < Each; ++i)
            first[i] = fused(-mine[i].first.c, last[i], fused(-mine[i].first.a, i ? last[i ? i - 1 : 0] : left, mine[i].first.d));
    } else {
        light = solve_few<T, Each>(mine, lane, last, first, left) && light;
    }
    return __all_sync(~0u, light);
}

/// All windows of a system of at most lanes · Each, number `window` among them asking: every one of them finds the same
/// unknowns, to the last bit, so that seams agree however far the couplings reach. All lanes of a warp.
template <class T, int Each>
__device__ __noinline__ Ends<T> couple_all(const Interface<T>* interfaces, int window, int windows, int lane) {
    Interface<T> mine[Each];
    for (bool all_there = false; !all_there;) {
        all_there = true;
#pragma unroll
        for (int i = 0; i < Each; ++i) {
            mine[i] = Interface<T>{};
            if (lane * Each + i >= windows) continue;
            mine[i] = load_interface(interfaces + lane * Each + i);
            all_there &= is_there(mine[i]);
        }
    }
    __syncwarp();
    T last[Each], first[Each], left;
    solve_few<T, Each>(mine, lane, last, first, left);
    const T beyond = __shfl_down_sync(~0u, first[0], 1);
    Ends<T> ends{left, last[0], Each > 1 ? first[Each > 1 ? 1 : 0] : beyond};
#pragma unroll
    for (int i = 1; i < Each; ++i)
        if (window % Each == i) ends = {last[i - 1], last[i], i + 1 < Each ? first[i + 1 < Each ? i + 1 : 0] : beyond};
    const int from = window / Each;
    ends = {__shfl_sync(~0u, ends.before, from), __shfl_sync(~0u, ends.last, from), __shfl_sync(~0u, ends.after, from)};
    if (window + 1 >= windows) ends.after = 0;
    return ends;
}

/// From the windows beside it, else from all of its system where they are few, else from fifteen on either side. own: of
/// this window.
template <class T>
__device__ __forceinline__ bool couple(const Job<T>& job, const Interface<T>& own, int window, int system, int lane,
                                       Ends<T>& ends) {
    const int first_of_system = system * job.per_system, end_of_system = first_of_system + job.per_system;
    // Lanes 0 to 2: the last row of the window before; 3 to 5: the first one of the window after.
    const bool exists = lane < 3 ? window > first_of_system : lane < 6 && window + 1 < end_of_system;
    T word = 0;
    if (exists) {
        const T* const at = reinterpret_cast<const T*>(job.interfaces + window) + (lane < 3 ? lane - 3 : lane + 3);
        do word = from_other_block(at);
        while (is_nothing(word));
    }
    __syncwarp();
    const Relation<T> above{__shfl_sync(~0u, word, 0), __shfl_sync(~0u, word, 1), __shfl_sync(~0u, word, 2)};
    const Relation<T> below{__shfl_sync(~0u, word, 3), __shfl_sync(~0u, word, 4), __shfl_sync(~0u, word, 5)};
    const Relation<T> before = close_with(above, own.first), mine = close_with(own.last, below);
    Largest<T> size;
    size.add(before.a), size.add(before.c), size.add(mine.a), size.add(mine.c), size.add(below.c);
    if (size.value() <= job.negligible) {
        ends = {before.d, mine.d, fused(-below.a, mine.d, below.d)};
        return true;
    }
    if (job.per_system <= few_windows && job.per_system <= static_cast<int>(gridDim.x)) {
        const Interface<T>* const all = job.interfaces + first_of_system;
        const int number = window - first_of_system;
        ends = job.per_system <= lanes ? couple_all<T, 1>(all, number, job.per_system, lane)
                                       : couple_all<T, 2>(all, number, job.per_system, lane);
        return true;
    }
    return couple_widely(job.interfaces, window, first_of_system, end_of_system, job.weak, lane, ends);
}

/// The same from what solve_chain finds, when it is there. All lanes of a warp.
template <class T>
__device__ __forceinline__ Ends<T> ends_of(const Job<T>& job, int window, int system) {
    const int first_of_system = system * job.per_system, end_of_system = first_of_system + job.per_system;
    const bool begins = window == first_of_system, ends_here = window + 1 == end_of_system;
    const Interface<T> next = load_interface(job.interfaces + (ends_here ? window : window + 1));
    T before, last, beyond;
    do {
        before = from_other_block(job.ends + (begins ? window : window - 1)), last = from_other_block(job.ends + window);
        beyond = from_other_block(job.ends + (ends_here ? window : window + 1));
    } while (is_nothing(before) || is_nothing(last) || is_nothing(beyond));
    __syncwarp();
    return {begins ? T(0) : before, last, ends_here ? T(0) : fused(-next.first.c, beyond, fused(-next.first.a, last, next.first.d))};
}

}  // namespace trifold::cuda::windows
