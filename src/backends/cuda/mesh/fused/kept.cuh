// SPDX-License-Identifier: BSD-3-Clause
// A pass whose matrices were eliminated before the first sweep of the run, and are read.
//
//   values or target = update(fields, (lower, diag, upper)^-1 values)
//
// Arrays: `kept`, per set of lines (of every mesh, unless all have the same) as it lies in shared memory: the joins' matrices [S][W], inverse pivots [R][threads], couplings upwards [R][threads],
//   what lies beyond odd ends [2][W], couplings downwards [R][threads]. The last are not read where all matrices of the line solve are symmetric, bit by bit.
// Who does what: as pass.cuh; factors stay in shared memory, where those of the next set are on their way while one is stored, and are kept where all meshes have the same.
//   A thread has its R values in registers, and little else: two blocks and more share a multiprocessor, one computes while others wait.
// Words per point: 2 for values, 2 for factors (3 where a matrix is not symmetric), 7/R for joins and ends; and what the update reads. None for factors where meshes are many and share them.
// Numerics: as segments.cuh; keep() looks whether every row is dominated by its diagonal, strictly.
#pragma once

#include "backends/cuda/mesh/fused/pass.cuh"

#ifdef __CUDACC__

namespace trifold::cuda {

template <int bytes>
__device__ __forceinline__ void bring(void* to, const void* from) {
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if constexpr (bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(bytes) : "memory");
}
/// What this thread has asked for is there.
__device__ __forceinline__ void brought() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace trifold::cuda

#endif

namespace trifold::cuda::fused {

/// What a launch knows of kept matrices.
template <class T>
struct KeptArguments {
    T* memory;
    unsigned* asymmetric;  ///< set where a matrix is found to be
    bool symmetric;
};

/// The factors of a segment with the rows that they were made of.
template <class T, int R>
struct SegmentRows : SegmentFactors<T, R> {
    T below[R], above[R];
    bool dominated = true;

    __device__ __forceinline__ void eliminate(int i, T a, T b, T c, bool shorter) {
        below[i] = a, above[i] = c;
        const T beside = (a < 0 ? -a : a) + (c < 0 ? -c : c), own = b < 0 ? -b : b;
        if (i > 0 || !shorter) dominated = dominated && own > beside && own * T(0) == T(0);
        SegmentFactors<T, R>::eliminate(i, a, b, c);
    }
};

template <class C>
struct KeptLines : Lines<C> {
    using Base = Lines<C>;
    using typename Base::T;
    using Base::R, Base::S, Base::W, Base::n, Base::threads, Base::across, Base::sets, Base::lines;
    static constexpr int joins = Base::Joined::matrix * S * W, plane = R * threads, ahead = joins + 2 * plane + 2 * W, words = ahead + plane;  ///< of a set
    static constexpr int vector = 16 / static_cast<int>(sizeof(T)), planes = (Base::in_memory + vector - 1) / vector * vector;
    static_assert(threads % 32 == 0 && 2 * W % vector == 0 && Base::stage % vector == 0);

    T *const inverse, *const upper, *const beyond, *const lower;

    using Base::a, Base::thread, Base::segment, Base::column, Base::shorter, Base::own, Base::whole, Base::staged;

    __device__ __forceinline__ KeptLines(const MeshArguments<T>& arguments, const typename C::Parameters& parameters, T* memory, int t)
        : Base(arguments, parameters, memory, t), inverse(memory + planes), upper(inverse + plane), beyond(upper + plane), lower(beyond + 2 * W) {}

    static constexpr int in_memory(bool symmetric) { return planes + 2 * plane + 2 * W + (symmetric ? 0 : plane); }

    /// The first row's coupling with the segment before it, where matrices are symmetric.
    __device__ __forceinline__ T across_segments() const {
        if (segment > 0) return upper[(R - 1) * threads + thread - W];
        return C::ring ? upper[(R - 1) * threads + thread + (S - 1) * W] : T(0);
    }

    /// The couplings of a row by its inverse pivot, read where they are used.
    struct Factors {
        const T *inverse, *upper, *below;
        T first;
        bool shorter;

        __device__ __forceinline__ T pivot(int i) const { return inverse[i * threads]; }
        __device__ __forceinline__ T up(int i, T pivot) const { return upper[i * threads] * pivot; }
        __device__ __forceinline__ T down(int i, T pivot) const {
            if (i == 0) return shorter ? T(-1) : first * pivot;
            if (i == 1) return (shorter ? first : below[threads]) * pivot;
            return below[i * threads] * pivot;
        }
    };

    __device__ __forceinline__ Factors factors(bool symmetric) const {
        const T* const below = symmetric ? upper + thread - threads : lower + thread;
        return {inverse + thread, upper + thread, below, symmetric ? across_segments() : shorter ? below[R > 1 ? threads : 0] : below[0], shorter};
    }

    /// As SegmentFactors.
    static __device__ __forceinline__ T forwards(const Factors& f, T (&y)[R]) {
        T reach = f.shorter ? T(0) : T(1), z = 0;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const T pivot = f.pivot(i);
            y[i] = i ? multiply_add(-f.down(i, pivot), y[i ? i - 1 : 0], y[i] * pivot) : y[i] * pivot;
            if (i + 1 < R) {
                z = multiply_add(reach, y[i], z);
                reach = i == 0 && f.shorter ? T(1) : -f.up(i, pivot) * reach;
            }
        }
        return z;
    }

    static __device__ __forceinline__ void backwards(const Factors& f, T (&y)[R], T before, T last) {
        T fill = f.down(0, f.pivot(0));
#pragma unroll
        for (int i = 0; i + 1 < R; ++i) {
            y[i] = multiply_add(-fill, before, y[i]);
            fill = -f.down(i + 1, f.pivot(i + 1)) * fill;
        }
        y[R - 1] = last;
#pragma unroll
        for (int i = R - 2; i >= 0; --i) y[i] = multiply_add(-f.up(i, f.pivot(i)), y[i + 1], y[i]);
    }

    __device__ __forceinline__ void copy(T* to, const T* from, int count) const {
        for (int k = thread * vector; k < count; k += threads * vector) cuda::bring<16>(to + k, from + k);
    }

    __device__ __forceinline__ void bring_set(const KeptArguments<T>& kept, std::int64_t number) const {
        const T* const from = kept.memory + number * words;
        copy(staged + Base::stage, from, joins);
        copy(inverse, from + joins, 2 * plane + 2 * W + (kept.symmetric ? 0 : plane));
    }

    /// Before the first sweep: sets `block`, block + blocks … of all.
    __device__ __forceinline__ void keep(const PassArguments<T>& pass, const KeptArguments<T>& kept, std::int64_t block, std::int64_t blocks) const {
        bool dominated = true, symmetric = true;
        const std::int64_t all = C::one ? 1 : C::alike ? sets : sets * a.extent[3];
#pragma unroll 1
        for (std::int64_t number = block; number < all; number += blocks) {
            SegmentRows<T, R> made;
            T low, high;
            Base::make(made, static_cast<int>(number % sets), number / sets, pass, low, high);
            dominated = dominated && made.dominated;
            own.last(segment) = made.above[R - 1];
            block_barrier();
            const T first = made.below[shorter && R > 1 ? 1 : 0];
            if (segment > 0) symmetric = symmetric && first == own.last(segment - 1);
            else if (C::ring) symmetric = symmetric && first == own.last(S - 1);
#pragma unroll
            for (int i = 1; i < R; ++i)
                if (i > 1 || !shorter) symmetric = symmetric && made.below[i] == made.above[i - 1];
            if (thread < W) whole.eliminate();
            block_barrier();
            T* const to = kept.memory + number * words;
            for (int k = thread; k < joins; k += threads) to[k] = staged[Base::stage + k];
#pragma unroll
            for (int i = 0; i < R; ++i) {
                T* const row = to + joins + i * threads + thread;
                row[0] = made.inverse[i], row[plane] = made.above[i], row[2 * plane + 2 * W] = made.below[i];
            }
            if (segment == 0) to[joins + 2 * plane + column] = low;
            if (segment == S - 1) to[joins + 2 * plane + W + column] = high;
            block_barrier();
        }
        if (!dominated) refuse(a.state, a.sweep);
        if (!symmetric) *kept.asymmetric = 1;
    }

    /// Values into registers, or on their way into shared memory.
    __device__ __forceinline__ void bring_values(T (&y)[R], int set, std::int64_t mesh) const {
#pragma unroll
        for (int i = 0; i < R; ++i) {
            const typename Base::Point at = Base::place(set, i);
            if (!across) y[i] = 0;
            if (!at.there) continue;
            const T* const from = C::from_fields ? Base::target_at(at, mesh) : Base::value_of(at, set, i, mesh);
            if constexpr (across) cuda::bring<sizeof(T)>(&Base::in_order(i), from);
            else y[i] = *from;
        }
    }

    /// A block's tasks. With one matrix for all meshes a block has neighbours in their order, else they are dealt to blocks.
    struct Share {
        std::int64_t begin, end, apart;
    };
    __device__ __forceinline__ Share share(const PassArguments<T>& pass, std::int64_t block, std::int64_t blocks) const {
        if (C::alike) return {pass.tasks * block / blocks, pass.tasks * (block + 1) / blocks, 1};
        return {block, pass.tasks, blocks};
    }
    /// The set of matrices that a task needs, as they are kept: the sets of one mesh after the other's, or once for all meshes or lines.
    __device__ __forceinline__ std::int64_t needed(const PassArguments<T>& pass, std::int64_t task) const {
        const std::int64_t number = a.backwards ? pass.tasks - 1 - task : task;
        return C::one ? 0 : C::alike ? number / a.extent[3] : number;
    }

    /// What no pass before has written: the matrices of the first task.
    __device__ __forceinline__ void begin(const PassArguments<T>& pass, const KeptArguments<T>& kept, std::int64_t block, std::int64_t blocks) const {
        const Share own = share(pass, block, blocks);
        if (own.begin < own.end) bring_set(kept, needed(pass, own.begin));
    }

    __device__ __forceinline__ void run(const PassArguments<T>& pass, const KeptArguments<T>& kept, std::int64_t block, std::int64_t blocks, bool failed_before) const {
        const bool symmetric = kept.symmetric;
        const std::int64_t meshes = a.extent[3];
        const Share tasks = share(pass, block, blocks);
        std::int64_t there = needed(pass, tasks.begin);
        Factors f;
#pragma unroll 1
        for (std::int64_t task = tasks.begin; task < tasks.end; task += tasks.apart) {
            const std::int64_t number = a.backwards ? pass.tasks - 1 - task : task;
            const int set = static_cast<int>(C::alike ? number / meshes : number % sets);
            const std::int64_t mesh = C::alike ? number % meshes : number / sets, wanted = needed(pass, task);
            T y[R];
            bring_values(y, set, mesh);
            if (there != wanted) bring_set(kept, wanted);
            Base::bring_nearer(set, mesh);
            brought();
            block_barrier();
            if (!C::alike || task == tasks.begin || there != wanted) f = factors(symmetric);
            there = wanted;
            if constexpr (across) {
#pragma unroll
                for (int i = 0; i < R; ++i) y[i] = i > 0 || !shorter ? Base::in_segment(i) : T(0);
            }
            if (segment == 0) {
                if (shorter) y[R > 1 ? 1 : 0] -= beyond[column];
                else y[0] -= beyond[column];
            }
            if (segment == S - 1) y[R - 1] -= beyond[W + column];
            const T z = forwards(f, y);
            T last, before;
            own.last(segment) = y[R - 1], own.first(segment) = z;
            block_barrier();
            if (thread < W) whole.solve();
            block_barrier();
            own.give(segment, last, before);
            backwards(f, y, before, last);
            const bool is_line = set * W + column < lines, bad = is_line && !((shorter ? y[R > 1 ? 1 : 0] : y[0]) * T(0) + last * T(0) == T(0));
            const bool any = any_of_block(bad || failed_before);
            // Nobody looks at this set's factors any more.
            if (!C::alike && task + tasks.apart < tasks.end) there = needed(pass, task + tasks.apart), bring_set(kept, there);
            bool all_good = true, none_good = false;
            if (any) none_good = Base::judge(set, mesh, bad, failed_before), all_good = false;
            Base::store(y, set, mesh, all_good, none_good);
            if (any) block_barrier();
        }
    }
};

#ifdef __CUDACC__

template <class C>
__device__ __forceinline__ void kept_pass(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const PassArguments<typename C::real>& pass, const KeptArguments<typename C::real>& kept) {
    using T = typename C::real;
    extern __shared__ int4 shared[];
    const KeptLines<C> lines(a, p, reinterpret_cast<T*>(shared), static_cast<int>(threadIdx.x));
    lines.begin(pass, kept, blockIdx.x, gridDim.x);
    follow_previous();
    const bool failed_before = failed_at(a.state) == a.sweep;
    if (runs(a.state, a.sweep)) lines.run(pass, kept, blockIdx.x, gridDim.x, failed_before);
    else brought();
}

template <class C>
__device__ __forceinline__ void keep(const MeshArguments<typename C::real>& a, const typename C::Parameters& p, const PassArguments<typename C::real>& pass, const KeptArguments<typename C::real>& kept) {
    using T = typename C::real;
    extern __shared__ int4 shared[];
    const KeptLines<C> lines(a, p, reinterpret_cast<T*>(shared), static_cast<int>(threadIdx.x));
    lines.keep(pass, kept, blockIdx.x, gridDim.x);
}

#endif

}  // namespace trifold::cuda::fused
