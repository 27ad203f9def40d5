// SPDX-License-Identifier: BSD-3-Clause
// A block's shared memory, and the warp that fills and empties it.
//
// Shape: raw[stage][k] holds operand k (lower, diag, upper, rhs) of a window, row r at element shift[k] + r, so that a
//   copy keeps its offset from a line of 128 bytes: with another one the copy engine asks the second-level cache for two
//   halves of every line. x takes the place of rhs.
// Arrays whose rows lie side by side come and go by the copy engine, but for what is off 16 bytes at either end; others
//   element by element; scalars are written. lower[0] and upper[n-1] of a system are not touched.
// Words per row: 4 read, 1 written.
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/block/copy_out.cuh"
#include "backends/cuda/tridiagonal/device/windows_job.cuh"

namespace trifold::cuda::windows {

/// What lies in a stage. window < 0: nothing does, and nothing will.
struct __align__(16) Place {
    int window, system, rows;
    int kind;  ///< 1: with the first row of its system, 2: with the last, 4: to be reduced only
    int shift[4];

    static constexpr int first = 1, last = 2, reduces = 4;

    __device__ __forceinline__ bool begins() const {
        return kind & first;
    }
    __device__ __forceinline__ bool ends() const {
        return kind & last;
    }
    __device__ __forceinline__ bool only_reduced() const {
        return kind & reduces;
    }
};

template <class T, int R, int Warps>
struct Memory {
    static constexpr int line = 128 / static_cast<int>(sizeof(T)), rows = lanes * Warps * R, elements = rows + line,
                         parts_width = Warps <= 8 ? 8 : 16;

    T raw[stages][4][elements];
    Place place[stages];
    Part<T> parts[2][Warps];
    Interface<T> whole[2];
    T known[2][Warps + 2];  ///< the unknown before the window, the last one of every warp, the one after the window
    T first_x[2][Warps];
    unsigned long long full[stages], reduced[2], published[2], solved[2], met[2],
        finished[2], settled[2];
    unsigned largest[2];
    int bad[2], skip[2], over;  ///< over: a second pass has ended
};

/// Rows per lane and warps that compute: three windows fill shared memory, and odd counts of rows meet in no bank.
template <class T>
struct Shape;
template <>
struct Shape<double> {
    static constexpr int rows = 9, warps = 8;
};
template <>
struct Shape<float> {
    static constexpr int rows = 17, warps = 8;
};

template <class T>
using SharedOf = Memory<T, Shape<T>::rows, Shape<T>::warps>;

/// Of lane 0, by all: the compiler then knows that a warp goes one way, and its shuffles need not look for lanes that have gone another.
__device__ __forceinline__ int alike(int x) { return __shfl_sync(~0u, x, 0); }

/// Phase r of a pair of barriers that are used in turns.
struct Turns {
    unsigned at;
    __device__ __forceinline__ Arrival of(int r) const { return {at + 8 * (r & 1)}; }
    __device__ __forceinline__ void wait(int r) const { of(r).wait_together(r >> 1 & 1); }
    __device__ __forceinline__ bool is_over(int r) const { return of(r).is_over_together(r >> 1 & 1); }
    __device__ __forceinline__ void arrive(int r) const { of(r).arrive(); }
};

/// By all lanes of one warp. Lane o brings operand o, lane 3 also takes x away.
template <class T, int R, int Warps>
struct Mover {
    using Shared = Memory<T, R, Warps>;
    static constexpr int vector = 16 / static_cast<int>(sizeof(T)), storer = 3;
    const Job<T>& job;
    Shared& shared;
    int lane;

    __device__ __forceinline__ static int in_line(const T* at) {
        return static_cast<int>(reinterpret_cast<std::uintptr_t>(at) / sizeof(T)) & (Shared::line - 1);
    }
    __device__ __forceinline__ static int head(const T* at, int count) {
        return min(count, (vector - in_line(at)) & (vector - 1));
    }

    __device__ __forceinline__ void prepare() const {
        if (lane != 0) return;
        shared.over = 0;
        for (int s = 0; s < stages; ++s) Arrival{shared_address(&shared.full[s])}.prepare(1 + lanes);
        for (int p = 0; p < 2; ++p) {
            Arrival{shared_address(&shared.reduced[p])}.prepare(Warps),
                Arrival{shared_address(&shared.published[p])}.prepare(1);
            Arrival{shared_address(&shared.solved[p])}.prepare(job.in_place ? 2 : 1), Arrival{shared_address(&shared.met[p])}.prepare(Warps);
            Arrival{shared_address(&shared.finished[p])}.prepare(Warps), Arrival{shared_address(&shared.settled[p])}.prepare(1);
            shared.largest[p] = 0, shared.bad[p] = 0, shared.skip[p] = 0;
        }
    }

    /// Window `w`, number `part` of system k, on its way to `stage`; w < 0: there is none. kind: 0 or Place::reduces.
    /// `after_store`: x leaves there first.
    __device__ __forceinline__ void load(int w, int k, int part, int kind, int stage, bool after_store) const {
        if (!job.plain || w < 0) return load_slowly(*this, w, k, part, kind, stage, after_store);
        const Arrival arrival{shared_address(&shared.full[stage])};
        const T* const base = lane == 0   ? job.input[0].data
                              : lane == 1 ? job.input[1].data
                              : lane == 2 ? job.input[2].data
                                          : job.input[3].data;
        const std::int64_t apart = lane == 0   ? job.input[0].level_stride[0]
                                   : lane == 1 ? job.input[1].level_stride[0]
                                   : lane == 2 ? job.input[2].level_stride[0]
                                               : job.input[3].level_stride[0];
        const std::int64_t first = static_cast<std::int64_t>(part) * Shared::rows;
        const bool begins = part == 0, ends = part + 1 == job.per_system, inside = !begins && !ends;
        const int rows = ends ? static_cast<int>(job.rows - first) : Shared::rows;
        const T* const from = base + (k * apart + first);
        const int shift = in_line(from), low = lane == 0 && begins, high = rows - (lane == 2 && ends);
        // Whole vectors of 16 bytes: inside a system with what neighbours have of them, at its ends what is off them by itself.
        const int body = inside ? -(shift & (vector - 1)) : low + head(from + low, high - low),
                  end = body + (inside ? rows + (body ? vector : 0) : (high - body) / vector * vector);
        const bool odd = lane < 4 && !inside && (low < body || end < high);
        const unsigned bytes = lane < 4 ? static_cast<unsigned>((end - body) * static_cast<int>(sizeof(T))) : 0;
        T* const to = shared.raw[stage][lane & 3] + shift;
        Place& place = shared.place[stage];
        if (lane < 4) place.shift[lane] = shift;
        if (lane == 0)
            *reinterpret_cast<int4*>(&place) = make_int4(w, k, rows, kind | (begins ? 1 : 0) | (ends ? 2 : 0));
        const bool elements = !inside && __any_sync(~0u, odd);
        if (elements) {
            if (lane == storer && after_store) await_sent_reads();
            if (odd) {
                for (int i = low; i < body; ++i) copy_async(shared_address(to + i), from + i);
                for (int i = end; i < high; ++i) copy_async(shared_address(to + i), from + i);
            }
        }
        const unsigned all = job.even && inside ? 4 * Shared::rows * static_cast<unsigned>(sizeof(T)) : __reduce_add_sync(~0u, bytes);
        arrive(arrival, all, elements);
        if (lane < storer && bytes) arrival.copy(shared_address(to + body), from + body, bytes);
        if (lane != storer) return;
        if (after_store) await_sent_reads();
        if (bytes) arrival.copy(shared_address(to + body), from + body, bytes);
    }

    /// The same for operands that the copy engine does not take. By value: what has an
    /// address would live in memory.
    __device__ __noinline__ static void load_slowly(Mover self, int w, int k, int part, int kind, int stage,
                                                    bool after_store) {
        self.load_any(w, k, part, kind, stage, after_store);
    }

    __device__ __forceinline__ void load_any(int w, int k, int part, int kind, int stage, bool after_store) const {
        const Arrival arrival{shared_address(&shared.full[stage])};
        Place& place = shared.place[stage];
        if (w < 0) {
            if (lane == 0) place.window = -1;
            arrive(arrival, 0, false);
            return;
        }
        const std::int64_t first = static_cast<std::int64_t>(part) * Shared::rows;
        const int rows = static_cast<int>(min(static_cast<std::int64_t>(Shared::rows), job.rows - first));
        const bool begins = part == 0, ends = part + 1 == job.per_system;
        std::int64_t index[4];
        job.levels.indices(k, index);
        const T* bulk_from = nullptr;  // lane o: of operand o
        unsigned bulk_to = 0, bytes = 0;
        int shift[4];
        const auto bring = [&](int o, bool elements) {
            const Line<T> line = line_of(job.input[o], index);
            const int low = o == 0 && begins, high = rows - (o == 2 && ends);
            const T* const from = line.data + first * line.row_stride;
            const bool bulk = line.data && line.row_stride == 1;
            shift[o] = bulk ? in_line(from) : o == 3 ? in_line(line_of(job.x, index).data + first) : 0;
            T* const to = shared.raw[stage][o] + shift[o];
            if (bulk) {
                const int body = low + head(from + low, high - low), end = body + (high - body) / vector * vector;
                if (lane == o)
                    bulk_from = from + body, bulk_to = shared_address(to + body),
                    bytes = static_cast<unsigned>((end - body) * static_cast<int>(sizeof(T)));
                if (!elements) return;
                if (lane < body - low) copy_async(shared_address(to + low + lane), from + low + lane);
                if (lane < high - end) copy_async(shared_address(to + end + lane), from + end + lane);
            } else if (elements && line.data) {
#pragma unroll 4
                for (int i = low + lane; i < high; i += lanes)
                    copy_async(shared_address(to + i), from + i * line.row_stride);
            } else if (elements) {
                for (int i = lane; i < rows; i += lanes) to[i] = line.value;
            }
        };
        bring(0, true), bring(1, true), bring(2, true), bring(3, false);
        if (after_store) stored();
        bring(3, true);
        const unsigned all = __reduce_add_sync(~0u, bytes);
        if (lane == 0) {
            place.window = w, place.system = k, place.rows = rows, place.kind = (begins ? 1 : 0) | (ends ? 2 : 0) | kind;
            for (int o = 0; o < 4; ++o) place.shift[o] = shift[o];
        }
        arrive(arrival, all, true);
        if (bytes) arrival.copy(bulk_to, bulk_from, bytes);
    }

    /// x of the window in `stage`.
    __device__ __forceinline__ void store(int stage) const {
        const Place& place = shared.place[stage];
        const int part = place.window - place.system * job.per_system, shift = place.shift[3];
        T* const to = job.x.data + (place.system * job.x.level_stride[0] + static_cast<std::int64_t>(part) * Shared::rows);
        if (!job.plain || ((in_line(to) - shift) & (vector - 1)) != 0) return store_slowly(*this, stage, part);
        send_rows(to, shared.raw[stage][3] + shift, place.rows);
    }

    __device__ __noinline__ static void store_slowly(Mover self, int stage, int part) {
        self.store_any(stage, part);
    }

    __device__ __forceinline__ void store_any(int stage, int part) const {
        const Place& place = shared.place[stage];
        std::int64_t index[4];
        job.levels.indices(place.system, index);
        const Line<T> x = line_of(job.x, index);
        const int rows = place.rows;
        T* const to = x.data + static_cast<std::int64_t>(part) * Shared::rows * x.row_stride;
        const T* const from = shared.raw[stage][3] + place.shift[3];
        if (x.row_stride == 1 && ((in_line(to) - place.shift[3]) & (vector - 1)) == 0) return send_rows(to, from, rows);
#pragma unroll 4
        for (int i = lane; i < rows; i += lanes) to[i * x.row_stride] = from[i];
        leave_to_copies();
        __syncwarp();
    }

    /// x has left shared memory.
    __device__ __forceinline__ void stored() const {
        if (lane == storer) await_sent_reads();
        __syncwarp();
    }

    /// x is where it belongs.
    __device__ __forceinline__ void settled() const {
        if (lane == storer) await_sent();
        __syncwarp();
    }

private:
    /// All lanes; `elements`: when their copies of single elements are there too. What they have written is seen by who waits.
    __device__ __forceinline__ void arrive(const Arrival& arrival, unsigned bytes, bool elements) const {
        if (elements) arrival.arrive_after_copies();
        __syncwarp();
        if (lane == 0) {
            if (!elements) arrival.arrive_for(lanes);
            arrival.expect(bytes);
        }
        __syncwarp();
    }

    /// As far off 16 bytes there as here.
    __device__ __forceinline__ void send_rows(T* to, const T* from, int rows) const {
        const int body = head(to, rows), end = body + (rows - body) / vector * vector;
        if (lane < body) to[lane] = from[lane];
        if (lane < rows - end) to[end + lane] = from[end + lane];
        if (lane == storer && end > body)
            send_bulk(to + body, shared_address(from + body), static_cast<unsigned>((end - body) * static_cast<int>(sizeof(T))));
        if (body > 0 || end < rows) leave_to_copies(), __syncwarp();
    }
};

}  // namespace trifold::cuda::windows
