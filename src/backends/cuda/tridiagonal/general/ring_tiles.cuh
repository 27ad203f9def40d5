// SPDX-License-Identifier: BSD-3-Clause
// Rings on chip whose rows stay dominant:   a[i] x[i-1] + b[i] x[i] + c[i] x[i+1] = d[i],   x[-1] = x[n-1], x[n] = x[0],   for every system
//
// Shapes: as in pivoted_line.cuh; any strides. x may be d, or be added to. Overwritten: x, but for rings that are marked.
// Who does what: a block has some rings in shared memory, as they lie in device memory, a thread for each `chunk` rows of one. It eliminates them where they lie: every row becomes
//   x[i] = D - A x[before] - C x[i+1], in place of a, c and d, and the chunk's first row one in terms of x[before] and x[last]. Its last row is closed with the first one of the chunk
//   after it, the last chunk's with the first chunk's: what is left is a ring of chunks, which is cut into chunks again, a thread each, where there are more than eight, and in the
//   end is one chunk that closes on itself:   x[last] (1 + A - C (A0 + C0)) = D - C D0.   Nothing is found twice. Chunks are of an odd length, and a ring begins at any of its
//   rows: at such that threads read from different banks.
// Words per row of device memory: 4 read, 1 written, one more read where it is added. Of shared memory 14, and 8 or 9 that come and go: 180 bytes in double precision, of 128 a clock,
//   for 40 from device memory, of which a multiprocessor gets 19 a clock: two thirds of the time.
// Numerics: nothing is pivoted. What every elimination leaves must weigh |A| + |C| ≤ 17/16, which is backward stable row by row (decision 53). The last equation's rounding is one
//   of its row, whatever is left of its pivot. Rings that weigh more, or are not finite, are marked and not stored: for ring_kernel.cuh.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/general/ring_job.hpp"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"
#include "backends/cuda/tridiagonal/thread/flushed.cuh"
#include "backends/cuda/tridiagonal/thread/largest.cuh"

namespace trifold::cuda {

/// Rows of a chunk in shared memory: row i lies `step` (begin + i) elements on, `step` (begin + i - wrap) where that is behind the ring's end. `b` null: the diagonal is 1.
template <class T>
struct SharedChunk {
    T *a, *c, *d;
    const T* b;
    int step, begin, wrap, count;

    __device__ __forceinline__ int after(int at) const { return at + step == wrap * step ? 0 : at + step; }
    __device__ __forceinline__ int before(int at) const { return at == 0 ? (wrap - 1) * step : at - step; }
    __device__ __forceinline__ int place(int i) const { return (begin + i < wrap ? begin + i : begin + i - wrap) * step; }

    /// Leaves every row in terms of the unknown before the chunk and the next one. first: in terms of the chunk's last one; last: of those before and after the chunk.
    __device__ __forceinline__ void reduce(Relation<T>& first, Relation<T>& last, Largest<T>& weight, Flushed<T>& flushed) const {
        int at = begin * step;
        T lower = a[at], diag = b ? b[at] : T(1), upper = c[at], rhs = d[at];
        Relation<T> row{T(-1), T(0), T(0)};  // what is before the chunk, in terms of itself
#pragma unroll 1
        for (int i = 0; i < count; ++i) {
            const int then = i + 1 < count ? after(at) : at;  // asked for before this row is stored
            const T next_lower = a[then], next_diag = b ? b[then] : T(1), next_upper = c[then], next_rhs = d[then];
            T over;
            const T k = divide_by(fused(-lower, row.c, diag), upper, over);
            flushed.add(k);
            row = {-(lower * k) * row.a, over, fused(-lower, row.d, rhs) * k};
            weight.add(fabs(row.a) + fabs(row.c));
            a[at] = row.a, c[at] = row.c, d[at] = row.d;
            lower = next_lower, diag = next_diag, upper = next_upper, rhs = next_rhs;
            at = then;
        }
        last = row;
        first = {T(0), T(-1), T(0)};  // the last row itself
        at = place(count - 1);
#pragma unroll 2
        for (int i = count - 2; i >= 0; --i) {
            at = before(at);
            const T up = c[at];
            first = {fused(-up, first.a, a[at]), -up * first.c, fused(-up, first.d, d[at])};
        }
    }

    /// The last unknown of a chunk that is all of its ring.
    __device__ __forceinline__ static T closed(const Relation<T>& first, const Relation<T>& last) {
        return fused(-last.c, first.d, last.d) * reciprocal(fused(-last.c, first.a + first.c, T(1) + last.a));
    }

    /// x in place of d.
    __device__ __forceinline__ void substitute(T x_before, T x_last, Largest<T>& size) const {
        int at = place(count - 1);
        T x = x_last;
        size.add(x);
        d[at] = x;
#pragma unroll 2
        for (int i = count - 2; i >= 0; --i) {
            at = before(at);
            x = fused(-c[at], x, fused(-a[at], x_before, d[at]));
            size.add(x);
            d[at] = x;
        }
    }
};

__device__ __forceinline__ void copy_async_16(unsigned to, const void* from) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory"); }

template <class T>
__global__ void __launch_bounds__(most_tile_threads) ring_tile_kernel(const __grid_constant__ RingTileJob<T> job) {
    using Arrays = TileArrays<T>;
    constexpr int E = 16 / static_cast<int>(sizeof(T));
    extern __shared__ int4 shared[];
    const RingTiles& cut = job.cut;
    const bool along = job.rings.along_rows;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x), n = job.rings.rows, elements = cut.rings * n;
    T* const tile = reinterpret_cast<T*>(shared);
    T *const a = tile, *const b = a + elements, *const c = b + elements, *const d = c + elements;
    Arrays* const arrays = reinterpret_cast<Arrays*>(d + elements);
    const std::int64_t first_ring = static_cast<std::int64_t>(blockIdx.x) * cut.rings;
    const int rings = static_cast<int>(min(static_cast<std::int64_t>(cut.rings), job.rings.levels.systems - first_ring));
    const int step = along ? 1 : cut.rings;  // from row to row
    const auto place = [&](int ring, int row) { return along ? ring * n + row : row * step + ring; };

    const bool vectors = along || rings == cut.rings, all_vectors = vectors && job.vectors == 31;
    for (int k = thread; k < rings; k += threads) {
        Arrays& of = arrays[k];
        of.bad = 0;
        if (all_vectors && k > 0) continue;  // they lie as in shared memory
        std::int64_t index[4] = {first_ring + k, 0, 0, 0};
        if (job.rings.levels.levels > 1) job.rings.levels.indices(first_ring + k, index);
#pragma unroll
        for (int m = 0; m < 5; ++m) of.data[m] = line_of(job.rings.operand[m], index).data;
        // Corners, which come with the others where these come as vectors.
        const auto corner = [&](int m, const Source<T>& from, int row) {
            if (!job.rings.operand[m].data || job.vectors >> m & 1) return;
            const Line<T> line = line_of(from, index);
            copy_async(shared_address(tile + m * elements + place(k, row)), line.data);
        };
        corner(0, job.rings.right, 0), corner(2, job.rings.left, n - 1);
    }
    __syncthreads();
    // Calls visit(ring, row) for all rows, those side by side in memory by neighbouring threads.
    const auto each = [&](auto visit) {
        const unsigned side = static_cast<unsigned>(along ? n : rings), inverse = along ? cut.row_inverse : rings == cut.rings ? cut.ring_inverse : ~0u / side + 1;
#pragma unroll 4
        for (int e = thread; e < rings * n; e += threads) {
            const int far = side == 1 ? e : static_cast<int>(__umulhi(static_cast<unsigned>(e), inverse)), near = e - far * static_cast<int>(side);
            along ? visit(far, near) : visit(near, far);
        }
    };
    // Calls visit(element of the tile, place in device memory, of E elements); the rest of a run along rows by one(element, place). base: of the block's first ring.
    const auto each_vector = [&](T* base, std::int64_t row_stride, auto visit, auto one) {
        if (along) {
            const int all = rings * n, whole = all / E;
#pragma unroll 4
            for (int e = thread; e < whole; e += threads) visit(e * E, base + e * E);
            for (int e = whole * E + thread; e < all; e += threads) one(e, base + e);
        } else {
            const int pieces = cut.rings / E, shift = __ffs(pieces) - 1;
#pragma unroll 4
            for (int e = thread; e < pieces * n; e += threads) {
                const int row = e >> shift, piece = (e & (pieces - 1)) * E;
                visit(row * step + piece, base + row * row_stride + piece);
            }
        }
    };
#pragma unroll 1
    for (int m = 0; m < 4; ++m) {
        const Source<T>& operand = job.rings.operand[m];
        T* const to = tile + m * elements;
        const unsigned target = shared_address(to);
        const std::int64_t apart = operand.row_stride;
        if (!operand.data) {
            for (int e = thread; e < elements; e += threads) to[e] = operand.value;
        } else if (job.vectors >> m & 1 && vectors) {
            each_vector(arrays[0].data[m], apart, [&](int e, const T* from) { copy_async_16(target + static_cast<unsigned>(e * static_cast<int>(sizeof(T))), from); },
                        [&](int e, const T* from) { copy_async(target + static_cast<unsigned>(e * static_cast<int>(sizeof(T))), from); });
        } else {
            const int left_out = job.vectors >> m & 1 ? -1 : m == 0 ? 0 : m == 2 ? n - 1 : -1;
            each([&](int ring, int row) {
                if (row != left_out) copy_async(target + static_cast<unsigned>(place(ring, row) * static_cast<int>(sizeof(T))), arrays[ring].data[m] + row * apart);
            });
        }
    }
    await_copies();
    __syncthreads();

    constexpr T heavy = T(1.0625), limit = sizeof(T) == 8 ? T(1e290) : T(1e30);
    const int ring = along ? thread / cut.chunks : thread % cut.rings, own = along ? thread - ring * cut.chunks : thread / cut.rings;
    const bool active = ring < rings && own < cut.chunks;
    const int base = along ? ring * n : ring;
    Largest<T> weight, size;
    Flushed<T> flushed;
    Relation<T> first{}, last{};
    SharedChunk<T> rows{a + base, c + base, d + base, b + base, step, own * cut.chunk, n, min(cut.chunk, n - own * cut.chunk)};
    if (along) {  // a ring begins anywhere: as if it were a whole number of chunks long, or, one chunk, where banks are free
        constexpr int banks = 128 / static_cast<int>(sizeof(T));
        rows.begin += cut.chunks == 1 ? ring * n / banks % n : ring * (cut.chunks * cut.chunk - n) % banks % n;
        if (rows.begin >= n) rows.begin -= n;
    }
    if (active) rows.reduce(first, last, weight, flushed);
    T x_before, x;
    if (cut.chunks == 1) {
        x_before = x = active ? SharedChunk<T>::closed(first, last) : T(0);
    } else {
        // Where b was: the ring of chunks, three words each; first rows that they are closed with; the same once more of chunks of chunks.
        T *const links = b + base, *const firsts = links + 3 * cut.chunks * step, *const top = firsts + 3 * cut.chunks * step, *const top_firsts = top + 3 * cut.groups * step;
        const auto put = [&](T* to, int k, const Relation<T>& row) { to += 3 * k * step, to[0] = row.a, to[step] = row.c, to[2 * step] = row.d; };
        const auto get = [&](const T* from, int k) { return from += 3 * k * step, Relation<T>{from[0], from[step], from[2 * step]}; };
        const auto unknown = [&](const T* from, int k) { return from[(3 * k + 2) * step]; };
        const auto close_with = [&](const Relation<T>& row, const Relation<T>& next) {
            const T k = reciprocal(fused(-row.c, next.a, T(1)));
            const Relation<T> joint{row.a * k, -row.c * next.c * k, fused(-row.c, next.d, row.d) * k};
            weight.add(fabs(joint.a) + fabs(joint.c));
            return joint;
        };
        const auto chunk_of = [&](T* at, int from, int count, int all) { return SharedChunk<T>{at, at + step, at + 2 * step, nullptr, 3 * step, from, all, count}; };
        // By one thread: the ring of `count` relations is one chunk; x in place of d.
        const auto solve_whole = [&](T* at, int count) {
            const SharedChunk<T> whole = chunk_of(at, 0, count, count);
            Relation<T> its_first, its_last;
            whole.reduce(its_first, its_last, weight, flushed);
            const T end = SharedChunk<T>::closed(its_first, its_last);
            whole.substitute(end, end, size);
        };
        __syncthreads();
        if (active) put(firsts, own, first);
        __syncthreads();
        if (active) put(links, own, close_with(last, get(firsts, own + 1 < cut.chunks ? own + 1 : 0)));
        __syncthreads();
        if (cut.groups == 1) {
            if (active && own == 0) solve_whole(links, cut.chunks);
        } else {
            const bool joins = active && own < cut.groups;
            const SharedChunk<T> group = chunk_of(links, own * cut.group, min(cut.group, cut.chunks - own * cut.group), cut.chunks);
            Relation<T> group_first, group_last;
            if (joins) group.reduce(group_first, group_last, weight, flushed), put(top_firsts, own, group_first);
            __syncthreads();
            if (joins) put(top, own, close_with(group_last, get(top_firsts, own + 1 < cut.groups ? own + 1 : 0)));
            __syncthreads();
            if (active && own == 0) solve_whole(top, cut.groups);
            __syncthreads();
            if (joins) group.substitute(unknown(top, own ? own - 1 : cut.groups - 1), unknown(top, own), size);
        }
        __syncthreads();
        if (active) x_before = unknown(links, own ? own - 1 : cut.chunks - 1), x = unknown(links, own);
    }
    bool bad = false;
    if (active) {
        rows.substitute(x_before, x, size);
        bad = !(weight.value() <= heavy && size.value() < limit) || flushed.any();
        if (bad) arrays[ring].bad = 1;
    }
    const bool all_good = !__syncthreads_or(bad);

    const std::int64_t apart = job.rings.operand[4].row_stride;
    const bool adds = job.rings.adds;
    if (all_good && vectors && job.vectors >> 4 & 1) {
        each_vector(arrays[0].data[4], apart, [&](int e, T* to) { __stcs(reinterpret_cast<int4*>(to), *reinterpret_cast<const int4*>(d + e)); }, [&](int e, T* to) { *to = d[e]; });
    } else {
        each([&](int k, int row) {
            if (arrays[k].bad) return;
            T& to = all_vectors ? arrays[0].data[4][along ? place(k, row) : row * apart + k] : arrays[k].data[4][row * apart];
            const T found = d[place(k, row)];
            if (adds) to += found;
            else __stcs(&to, found);
        });
    }
    for (int k = thread; k < rings; k += threads) {
        job.rings.marks[first_ring + k] = arrays[k].bad != 0;
        if (arrays[k].bad) atomicAdd(&job.rings.outcome->handed_over, 1ull);
    }
}

}  // namespace trifold::cuda
