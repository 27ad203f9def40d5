// SPDX-License-Identifier: BSD-3-Clause
// A line solve on chip where every line has a matrix of its own: made by the user's function and eliminated once per run, by the threads that will use
// it, segment by segment; kept for all steps in registers of the thread (`held`) or at places of shared memory that are its own.
//
//   lower, inverse, upper of every row (fused/segments.cuh): 3 words per point and axis, 2 where matrices are symmetric within a segment; 4 (rings 5) words of the join per segment
//
// Words of shared memory per point, axis and step: 0 where held; 5 (4) else, loads of 16 bytes per lane without conflicts.
// Operations per point, axis and step: 7 (11). The last rows of a line's segments are joined by one thread per line.
// Numerics: nothing is pivoted; rows that are not strictly dominated by their diagonals are refused, as in fused/pass.cuh.
#pragma once

#include "backends/cuda/mesh/fused/segments.cuh"
#include "backends/cuda/mesh/resident/numbers.hpp"
#include "backends/cuda/mesh/resident/place.cuh"

namespace trifold::cuda::resident {

/// The factors of a segment of a symmetric matrix: two words a row.
template <class T, int R>
struct SymmetricFactors {
    T inverse[R], coupling[R];

    /// `first`: how the first row is coupled to the one before, by its pivot. `anew`: where they are wanted, instead of being kept from step to step.
    template <bool anew>
    __device__ __forceinline__ fused::SegmentFactors<T, R> all(T first) const {
        fused::SegmentFactors<T, R> factors;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            factors.inverse[i] = anew ? unforeseen(inverse[i]) : inverse[i];
            factors.lower[i] = i ? coupling[i ? i - 1 : 0] * factors.inverse[i] : first;
            factors.upper[i] = coupling[i] * factors.inverse[i];
        }
        return factors;
    }
};

/// What a thread keeps of a line solve from step to step.
template <class P, int l>
struct KeptFactors {
    using real = typename P::real;
    static constexpr int axis = P::plan.line[l].axis, K = Segment<P, axis>::count, R = P::plan.cut[axis].rows, held = P::plan.line[l].held ? R : 1;
    template <bool symmetric, class Dummy = void>
    struct Chosen {
        using type = fused::SegmentFactors<real, held>;
    };
    template <class Dummy>
    struct Chosen<true, Dummy> {
        using type = SymmetricFactors<real, held>;
    };
    typename Chosen<P::plan.line[l].symmetric>::type factors[P::plan.line[l].held ? K : 1];
    real first[K];                ///< of a symmetric matrix, how the first row is coupled to the segment before it, by its pivot
    real low[K], high[K];         ///< what the first and the last right-hand side lose
    std::int64_t first_step;
    real of_last[K], of_first[K];  ///< how much of a segment's ends its own row of the join has, divided by the pivot, and the one before it
};

template <class P, int l, bool more = (l < P::plan.lines)>
struct Kept {};
template <class P, int l>
struct Kept<P, l, true> {
    struct Nothing {};
    template <bool varies, class Dummy = void>
    struct Chosen {
        using type = Nothing;
    };
    template <class Dummy>
    struct Chosen<true, Dummy> {
        using type = KeptFactors<P, l>;
    };
    typename Chosen<P::plan.line[l].varies>::type own;
    Kept<P, l + 1> rest;

    template <int m>
    __device__ __forceinline__ auto& of() {
        if constexpr (m == l) return own;
        else return rest.template of<m>();
    }
    template <int m>
    __device__ __forceinline__ const auto& of() const {
        if constexpr (m == l) return own;
        else return rest.template of<m>();
    }
};

template <class P, int l>
class VaryingSolver {
    using real = typename P::real;
    static constexpr int axis = P::plan.line[l].axis, R = P::plan.cut[axis].rows, V = P::plan.vector, padded = P::plan.padded_rows(axis), threads = P::plan.threads;
    static constexpr bool joined = P::plan.joined(l), across = P::plan.crosses(axis), ring = P::plan.line[l].ring, ends = P::plan.line[l].ends, held = P::plan.line[l].held, symmetric = P::plan.line[l].symmetric;
    using Own = Segment<P, axis>;
    static constexpr int K = Own::count, S = P::plan.segments(axis), lines = P::plan.lines_along(axis), W = P::plan.join_lines(l);
    using Factors = fused::SegmentFactors<real, R>;
    using Join = fused::Join<real, joined ? S : 2, W, ring>;

public:
    __device__ __forceinline__ VaryingSolver(const Place<P>& place, const Own& own, const KeptFactors<P, l>& kept) : place_(place), own_(own), kept_(kept) {}

    /// Once per run: the matrices. False where a row is not dominated.
    static __device__ __forceinline__ bool make(const Place<P>& place, const Numbers<real>& numbers, KeptFactors<P, l>& kept) {
        const Own own(place.rank);
        bool good = true;
        kept.first_step = place.step;
        if (joined && across && thread_number() == 0) {
            open_letterbox(place.memory + box_of_ends), open_letterbox(place.memory + box_of_joined);
            if (lines_here(place) > 0) expect(place, box_of_ends);
            expect(place, box_of_joined);
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
            Factors factors;
            SymmetricFactors<real, R> half;
            kept.low[k] = kept.high[k] = 0;
#pragma unroll
            for (int i = 0; i < R; ++i) {
                real row[3] = {0, 1, 0};
                if (own.has(k, i)) {
                    std::int64_t x[3] = {own.x[k][0], own.x[k][1], own.x[k][2]};
                    for (int b = 0; b < 3; ++b)
                        if (P::plan.blocks_along(b) > 1) x[b] += place.first(b);
                    x[axis] += i;
                    P::template coefficients<l>(near_point<P, axis>(place, own.x[k], i, real(0)), numbers.parameters, row, x[0], x[1], x[2], place.mesh, place.step);
                    if (!ring && x[axis] == 0) fold(0, row[0], row[1], numbers, kept.low[k]);
                    if (!ring && x[axis] == P::plan.mesh[axis] - 1) fold(1, row[2], row[1], numbers, kept.high[k]);
                    const real beside = fabs(row[0]) + fabs(row[2]), diagonal = fabs(row[1]);
                    good = good && diagonal > beside && diagonal * real(0) == real(0);
                }
                factors.eliminate(i, row[0], row[1], row[2]);
                half.coupling[i] = row[2];
                if (symmetric && i > 0) good = good && row[0] == half.coupling[i > 0 ? i - 1 : 0];
            }
            if constexpr (joined) {
                real alpha, rho, fill;
                factors.ends(false, alpha, rho, fill);
                if (own.there[k]) {
                    const int line = own.line[k];
                    put(place, line, 0, own.number, factors.upper[R - 1]), put(place, line, 1, own.number, fill);
                    put(place, line, 2, own.number, alpha), put(place, line, 3, own.number, rho);
                }
            }
            kept.first[k] = factors.lower[0];
            if constexpr (held && symmetric) {
#pragma unroll
                for (int i = 0; i < R; ++i) half.inverse[i] = factors.inverse[i];
                kept.factors[k] = half;
            } else if constexpr (held) {
                kept.factors[k] = factors;
            } else {
                store(place, k, 0, factors.inverse), store(place, k, 1, symmetric ? half.coupling : factors.upper);
                if (!symmetric) store(place, k, 2, factors.lower);
            }
        }
        if constexpr (joined) {
            meet();
            each_joined(place, [](const Join& join, int) { join.eliminate(); });
            meet();
#pragma unroll
            for (int k = 0; k < K; ++k) {
                const int before = own.number > 0 ? own.number - 1 : S - 1;
                kept.of_last[k] = get(place, own.line[k], 2, own.number);
                kept.of_first[k] = ring || own.number > 0 ? -get(place, own.line[k], 0, before) * get(place, own.line[k], 2, before) : real(0);
            }
            if constexpr (across) cluster_barrier();
        }
        return good;
    }

    /// `right`(k, i): the right-hand side at point i of the k-th line. d becomes y.
    template <class Right>
    __device__ __forceinline__ void forwards(real (&d)[K][R], Right right) {
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
            for (int k = 0; k < K; ++k) {
                d[k][i] = own_.has(k, i) ? right(k, i) : real(0);
                if (ends && i == 0) d[k][i] -= kept_.low[k];
                if (ends && i == Own::last_rows - 1) d[k][i] -= kept_.high[k];
            }
#pragma unroll
        for (int k = 0; k < K; ++k) first_[k] = factors_of(k).forwards(d[k], false);
    }

    /// Between forwards and backwards: all threads of the block, or the cluster. What is left is done here.
    __device__ __forceinline__ void join(real (&d)[K][R]) {
        real last[K] = {}, before[K] = {};
        if constexpr (joined && across) {
            // Nobody waits for a barrier of the cluster: who joins a line waits for its ends, others for what they get back. A place is sent to again when what was made from it has
            // come to whoever sends.
            const auto round = static_cast<unsigned>(place_.step - kept_.first_step);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                if (!own_.there[k]) continue;
                const Elsewhere<real> owner(place_.memory, own_.line[k] / W);
                owner.send(place_of(own_.line[k], of_last, own_.number), kept_.of_last[k] * d[k][R - 1], box_of_ends);
                owner.send(place_of(own_.line[k], of_last + 1, own_.number), kept_.of_first[k] * first_[k], box_of_ends);
            }
            each_joined(place_, [&](const Join& join, int line) {
                wait_for_letters(place_.memory + box_of_ends, round);
                solve(join, [&](int s, real value) {
                    const int next = s + 1 < S ? s + 1 : 0;
                    Elsewhere<real>(place_.memory, s / own_segments).send(joined_at + s % own_segments * lines + line, value, box_of_joined);
                    Elsewhere<real>(place_.memory, next / own_segments).send(joined_at + (own_segments + next % own_segments) * lines + line, ring || next > 0 ? value : real(0), box_of_joined);
                });
            });
            if (thread_number() == 0 && lines_here(place_) > 0) expect(place_, box_of_ends);
            wait_for_letters(place_.memory + box_of_joined, round);
            if (thread_number() == 0) expect(place_, box_of_joined);
#pragma unroll
            for (int k = 0; k < K; ++k)
                last[k] = place_.memory[joined_at + own_.own * lines + own_.line[k]], before[k] = place_.memory[joined_at + (own_segments + own_.own) * lines + own_.line[k]];
        } else if constexpr (joined) {
#pragma unroll
            for (int k = 0; k < K; ++k)
                if (own_.there[k]) put(place_, own_.line[k], of_last, own_.number, kept_.of_last[k] * d[k][R - 1]), put(place_, own_.line[k], of_last + 1, own_.number, kept_.of_first[k] * first_[k]);
            meet();
            each_joined(place_, [](const Join& join, int) { solve(join, [&](int s, real value) { join.last(s) = value; }); });
            meet();
#pragma unroll
            for (int k = 0; k < K; ++k) {
                last[k] = get(place_, own_.line[k], of_last, own_.number);
                before[k] = ring || own_.number > 0 ? get(place_, own_.line[k], of_last, own_.number > 0 ? own_.number - 1 : S - 1) : real(0);
            }
        }
#pragma unroll
        for (int k = 0; k < K; ++k) factors_of(k).backwards(d[k], before[k], joined ? last[k] : d[k][R - 1]);
    }

    __device__ __forceinline__ void backwards(real (&)[K][R], int) {}

private:
    static constexpr int of_last = P::plan.join_matrix(l), own_segments = P::plan.cut[axis].segments;
    static constexpr int joined_at = P::plan.joined_at(l), box_of_joined = joined_at + P::plan.joined_size(l), box_of_ends = box_of_joined + V / 2;

    static __device__ __forceinline__ int lines_here(const Place<P>& place) {
        const int left = lines - place.rank * W;
        return left < W ? left : W;
    }
    static __device__ __forceinline__ void expect(const Place<P>& place, int box) {
        constexpr int bytes = sizeof(real);
        expect_letters(place.memory + box, box == box_of_ends ? lines_here(place) * 2 * S * bytes : 2 * own_segments * lines * bytes);
    }

    static __device__ __forceinline__ void fold(int side, real& beyond, real& diagonal, const Numbers<real>& numbers, real& lost) {
        const bool mirrored = P::plan.line[l].edge[side] == even;
        if (!mirrored) lost = numbers.ends[l][side] * beyond;
        diagonal += mirrored ? beyond : -beyond;
        beyond = 0;
    }

    static __device__ __forceinline__ void meet() {
        if (across) cluster_barrier();
        else block_barrier();
    }

    /// As Join::solve; what does not wait for the row before is done ahead, part of it by the segments' threads, since all others wait for this one.
    template <class Give>
    static __device__ __forceinline__ void solve(const Join& join, Give give) {
        constexpr int inner = ring ? S - 1 : S, at_once = S <= 16 ? inner : 8, all = ceiling(inner, at_once) * at_once;
        real g = 0, y[at_once];
#pragma unroll 1
        for (int first = 0; first < all; first += at_once) {
            real lower[at_once];
#pragma unroll
            for (int v = 0; v < at_once; ++v) {
                const int s = all == inner || first + v < inner ? first + v : inner - 1;
                y[v] = join.last(s), lower[v] = join.lower(s);
                if (s + 1 < S) y[v] += join.first(s + 1);
            }
#pragma unroll
            for (int v = 0; v < at_once; ++v) {
                if (all != inner && first + v >= inner) break;
                y[v] = g = multiply_add(-lower[v], g, y[v]);
                if (all > at_once) join.last(first + v) = g;
            }
        }
        g = 0;
#pragma unroll 1
        for (int first = all - at_once; first >= 0; first -= at_once) {
            real upper[at_once];
#pragma unroll
            for (int v = 0; v < at_once; ++v) {
                const int s = all == inner || first + v < inner ? first + v : inner - 1;
                upper[v] = s + 1 < inner ? join.upper(s) : real(0);
                if (all > at_once) y[v] = join.last(s);
            }
#pragma unroll
            for (int v = at_once - 1; v >= 0; --v) {
                if (all != inner && first + v >= inner) continue;
                g = multiply_add(-upper[v], g, y[v]);
                if (ring) join.last(first + v) = g;
                else give(first + v, g);
            }
        }
        if constexpr (ring) {
            const real rest = multiply_add(-join.upper(S - 1), g, -join.lower(S - 1) * join.last(S - 2));
            const real end = multiply_add(rest, join.inverse(S - 1), join.last(S - 1) + join.first(0));
#pragma unroll 4
            for (int s = 0; s < S - 1; ++s) give(s, multiply_add(-join.around(s), end, join.last(s)));
            give(S - 1, end);
        }
    }

    static constexpr int place_of(int line, int what, int s) { return P::plan.joins(l) + (what * S + s) * W + line % W; }

    static __device__ __forceinline__ void put(const Place<P>& place, int line, int what, int s, real value) {
        if constexpr (across) Elsewhere<real>(place.memory, line / W).store(place_of(line, what, s), value);
        else place.memory[place_of(line, what, s)] = value;
    }

    static __device__ __forceinline__ real get(const Place<P>& place, int line, int what, int s) {
        if constexpr (across) return Elsewhere<real>(place.memory, line / W).load(place_of(line, what, s));
        else return place.memory[place_of(line, what, s)];
    }

    template <class Visit>
    static __device__ __forceinline__ void each_joined(const Place<P>& place, Visit visit) {
#pragma unroll 1
        for (int q = thread_number(); q < W; q += threads)
            if (!across || place.rank * W + q < lines) visit(Join{place.memory + P::plan.joins(l) + q}, (across ? place.rank * W : 0) + q);
    }

    static __device__ __forceinline__ real* own_place(const Place<P>& place, int k, int which, int c) {
        return place.memory + P::plan.factors(l) + (((k * P::plan.factor_words(l) + which) * padded + c) * threads + thread_number() * V);
    }

    static __device__ __forceinline__ void store(const Place<P>& place, int k, int which, const real (&from)[R]) {
#pragma unroll
        for (int i = 0; i < R; ++i) own_place(place, k, which, i / V * V)[i % V] = from[i];
    }

    __device__ __forceinline__ void load(int k, int which, real (&to)[R]) const {
#pragma unroll
        for (int c = 0; c < R; c += V) {
            real four[V];
            load_vector(own_place(place_, k, which, c), four);
#pragma unroll
            for (int v = 0; v < V; ++v)
                if (c + v < R) to[c + v] = four[v];
        }
    }

    __device__ __forceinline__ Factors factors_of(int k) const {
        if constexpr (held && symmetric) {
            return kept_.factors[k].template all<true>(kept_.first[k]);
        } else if constexpr (held) {
            return kept_.factors[k];
        } else if constexpr (symmetric) {
            SymmetricFactors<real, R> half;
            load(k, 0, half.inverse), load(k, 1, half.coupling);
            return half.template all<false>(kept_.first[k]);
        } else {
            Factors factors;
            load(k, 0, factors.inverse), load(k, 1, factors.upper), load(k, 2, factors.lower);
            return factors;
        }
    }

    const Place<P>& place_;
    const Own& own_;
    const KeptFactors<P, l>& kept_;
    real first_[K];
};

/// All matrices that vary; before the first step, with all fields there.
template <class P, int l>
__device__ __forceinline__ bool make_factors(const Place<P>& place, const Numbers<typename P::real>& numbers, Kept<P, l>& kept) {
    if constexpr (l < P::plan.lines) {
        bool good = true;
        if constexpr (P::plan.line[l].varies) good = VaryingSolver<P, l>::make(place, numbers, kept.own);
        return make_factors<P, l + 1>(place, numbers, kept.rest) && good;
    } else {
        return true;
    }
}

}  // namespace trifold::cuda::resident
