// SPDX-License-Identifier: BSD-3-Clause
// A window of the certified pass on its way into one of a block's two stages of shared memory, and x on its way out.
//
// Shape: four operands, `elements` each; row r of the window's first halo chunk on lies at element pad + r. Contiguous operands that begin at a 16-byte
//   boundary come by the copy engine, whole windows at a time; others element by element; scalars are written. Rows that do not exist
//   are left as they are.
// Words per row: what is read, once, and the halos again (8 % of 96 chunks, from the second-level cache).
#pragma once

#include "backends/cuda/tridiagonal/block/copy_engine.cuh"
#include "backends/cuda/tridiagonal/block/copy_out.cuh"
#include "backends/cuda/tridiagonal/device/certified_job.cuh"

namespace trifold::cuda::certified {

template <class T, int R, int Warps>
struct Stage {
    using Path = typename Input<T>::Path;
    static constexpr int line = 128 / static_cast<int>(sizeof(T));
    static constexpr int elements = ((Warps * (lanes - 2 * halo) + 2 * halo) * R + 2 * line - 1) / line * line;
    static constexpr unsigned storer = 32;  ///< the thread that sends x, while the first one asks for rows
    static constexpr int all_elements = 5 * elements;  ///< x too, which leaves while the next window comes

    T* data;
    unsigned barrier;

    __device__ __forceinline__ T* at(int k) const { return data + k * elements; }
    /// Where row 0 of the first halo chunk lies: so that the window's own rows, and all copies, begin with a line of 128 bytes.
    __host__ __device__ __forceinline__ static int pad() { return (line - halo * R % line) % line; }

    /// What is saved of rhs per seam: pad, the chunks before it, the chunks after it, pad.
    __host__ __device__ __forceinline__ static std::int64_t saved_elements() { return 2 * (pad() + halo * R); }

    /// By one thread.
    __device__ void prepare(const Job<T>& job) const { arrival().prepare(job.all_bulk ? 1 : 1 + 2 * 32 * Warps); }

    __device__ __forceinline__ Arrival arrival() const { return {barrier}; }

    __device__ __forceinline__ void wait(unsigned parity) const { arrival().wait(parity); }

    /// The rows of a window; beyond the last window, nothing arrives. All threads of the block, of which `by` asks. Overwritten: in place a neighbour may have stored
    /// its x where the halos of rhs were, which then come from what has been saved.
    template <bool Overwritten>
    __device__ __forceinline__ void load(const Job<T>& job, int window, unsigned by) const {
        const int first = window * job.kept - halo, last = first + job.kept + 2 * halo;
        if (job.all_bulk && first >= 0 && last < job.chunks) {
            if (threadIdx.x == by) {
                const Arrival arrival = this->arrival();
                const int before = pad();
                const unsigned bytes = static_cast<unsigned>(((last - first) * R + before) * static_cast<int>(sizeof(T)));
                arrival.expect(4 * bytes);
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    if (k == 3 && Overwritten) continue;
                    arrival.copy(shared_address(at(k)), job.input[k].data + (static_cast<std::int64_t>(first) * R - before), bytes);
                }
                if constexpr (Overwritten) {
                    const int side = before + halo * R, own = job.kept * R;
                    const T* const left = job.saved + static_cast<std::int64_t>(window - 1) * saved_elements();
                    arrival.copy(shared_address(at(3)), left, side * sizeof(T));
                    arrival.copy(shared_address(at(3) + side), job.input[3].data + static_cast<std::int64_t>(window) * own, own * sizeof(T));
                    arrival.copy(shared_address(at(3) + side + own), left + saved_elements() + side, halo * R * sizeof(T));
                }
            }
        } else if (job.all_bulk && !Overwritten) {
            if (threadIdx.x == by) load_what_there_is(*this, &job, first);
        } else {
            load_slowly(*this, &job, window, Overwritten);
        }
    }

    /// The same of a block's first window, also where it is the system's: all blocks wait for the one that asks last.
    __device__ __forceinline__ void load_first(const Job<T>& job, int window, unsigned by) const {
        const int first = window * job.kept - halo, last = first + job.kept + 2 * halo;
        if (!job.all_bulk || last >= job.chunks) return load<false>(job, window, by);
        if (threadIdx.x != by) return;
        const Arrival arrival = this->arrival();
        const int before = pad(), missing = first < 0 ? before + halo * R : 0;
        const unsigned bytes = static_cast<unsigned>(((last - first) * R + before - missing) * static_cast<int>(sizeof(T)));
        arrival.expect(4 * bytes);
#pragma unroll
        for (int k = 0; k < 4; ++k) arrival.copy(shared_address(at(k) + missing), job.input[k].data + (static_cast<std::int64_t>(first) * R - before + missing), bytes);
    }

    /// At the ends of a system, whole vectors by the copy engine and the rest element by element. Short: a block may begin with it.
    __device__ __noinline__ static void load_what_there_is(Stage self, const Job<T>* job, int first_chunk) {
        constexpr int E = 16 / static_cast<int>(sizeof(T));
        const std::int64_t row = static_cast<std::int64_t>(first_chunk) * R - pad();
        const int low = first_chunk < 0 ? pad() + halo * R : 0, whole = (job->kept + 2 * halo) * R + pad();
        const int high = max(static_cast<int>(min(job->rows - row, static_cast<std::int64_t>(whole))), low), body = low + (high - low) / E * E;
        const unsigned bytes = static_cast<unsigned>((body - low) * static_cast<int>(sizeof(T)));
        const Arrival arrival = self.arrival();
        arrival.expect(4 * bytes);
#pragma unroll 1
        for (int k = 0; k < 4; ++k) {
            const T* const from = job->input[k].data + row;
            if (bytes) arrival.copy(shared_address(self.at(k) + low), from + low, bytes);
            for (int i = body; i < high; ++i) copy_async(shared_address(self.at(k) + i), from + i);
        }
    }

    /// The same at the ends of a system in place, and for operands that the copy engine does not take. By value: what has an address would live in
    /// memory, not in registers.
    __device__ __noinline__ static void load_slowly(Stage self, const Job<T>* job, int window, bool overwritten) {
        self.load_any(*job, window, overwritten);
    }

    __device__ void load_any(const Job<T>& job, int window, bool overwritten) const {
        const Arrival arrival = this->arrival();
        const int thread = static_cast<int>(threadIdx.x), begin = window * job.kept, end = begin + job.kept;
        constexpr int E = 16 / sizeof(T);
        // Pieces from one array each, what was saved with stride 1.
        const auto pieces = [&](int k, auto visit) {
            if (window >= job.windows) return;
            const T* const own = job.input[k].data;
            const auto piece = [&](const T* array, int from, int to, std::int64_t stride) {  // array: of row 0
                const std::int64_t first = static_cast<std::int64_t>(max(from, 0)) * R, last = min(static_cast<std::int64_t>(to) * R, job.rows);
                if (first < last) visit(array, first, static_cast<int>(last - first), at(k) + (first - static_cast<std::int64_t>(begin - halo) * R) + pad(), stride);
            };
            if (k == 3 && overwritten) {
                const T* const left = job.saved + (window - 1) * saved_elements() + pad();  // its row is begin - halo's first
                piece(left - static_cast<std::int64_t>(begin - halo) * R, begin - halo, begin, 1);
                piece(own, begin, end, job.input[k].row_stride);
                piece(left + saved_elements() + halo * R - static_cast<std::int64_t>(end) * R, end, end + halo, 1);
            } else {
                piece(own, begin - halo, end + halo, job.input[k].row_stride);
            }
        };
        if (thread == 0) {
            unsigned bytes = 0;
            for (int k = 0; k < 4; ++k)
                if (job.input[k].path == Path::bulk) pieces(k, [&](const T*, std::int64_t, int length, T*, std::int64_t) { bytes += length / E * 16; });
            arrival.expect(bytes);
            for (int k = 0; k < 4; ++k)
                if (job.input[k].path == Path::bulk)
                    pieces(k, [&](const T* array, std::int64_t row, int length, T* target, std::int64_t) {
                        const int body = length / E * E;
                        if (body) arrival.copy(shared_address(target), array + row, body * sizeof(T));
                        for (int i = body; i < length; ++i) copy_async(shared_address(target + i), array + row + i);
                    });
        }
        if (job.all_bulk) return;
        for (int k = 0; k < 4; ++k) {
            if (job.input[k].path == Path::bulk) continue;
            pieces(k, [&](const T* array, std::int64_t row, int length, T* target, std::int64_t stride) {
                if (job.input[k].path == Path::scalar) {
                    for (int i = thread; i < length; i += 32 * Warps) target[i] = job.input[k].value;
                } else {
#pragma unroll 4
                    for (int i = thread; i < length; i += 32 * Warps) copy_async(shared_address(target + i), array + (row + i) * stride);
                }
            });
        }
        arrival.arrive_after_copies();
        arrival.arrive();  // with what was written here
    }

    /// x of the window's own rows. All threads, after a barrier; `stored` and another barrier come before x is written again.
    __device__ __forceinline__ void store(const Job<T>& job, int window) const {
        const std::int64_t row = static_cast<std::int64_t>(window) * job.kept * R;
        const int length = static_cast<int>(min(static_cast<std::int64_t>(job.kept) * R, job.rows - row));
        const T* const from = at(4);
        if (job.bulk_x && length == job.kept * R) {
            if (threadIdx.x == storer) send_bulk(job.x + row, shared_address(from), static_cast<unsigned>(length * static_cast<int>(sizeof(T))));
        } else {
            for (int i = static_cast<int>(threadIdx.x); i < length; i += 32 * Warps) job.x[(row + i) * job.x_stride] = from[i];
        }
    }

    /// rhs of the window's own rows. All threads, before the stage is loaded again.
    __device__ __forceinline__ void keep_rhs(const Job<T>& job, int window) const {
        if (threadIdx.x == storer) {
            leave_to_copies();
            send_bulk(job.kept_rhs + static_cast<std::int64_t>(window) * job.kept * R, shared_address(at(3) + pad() + halo * R), static_cast<unsigned>(job.kept * R * static_cast<int>(sizeof(T))));
            await_sent_reads();
        }
        __syncthreads();
    }

    /// x has been read, by the copy engine: it may be overwritten, or the block end.
    __device__ __forceinline__ static void stored() {
        if (threadIdx.x == storer) await_sent_reads();
    }
};

}  // namespace trifold::cuda::certified
