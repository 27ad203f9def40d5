// SPDX-License-Identifier: BSD-3-Clause
// Lines along x, y and z with one factored matrix each, in two passes over memory (fused.hpp):
//
//   up    plane after plane: right-hand side, lines along x and y, lines along z forwards, whose last w stays in a front in cache
//   down  plane after plane, from the last one: lines along z backwards, and the update
//
// 5 words per point and step through memory: u read, w written; w and u read, u written. Both passes read in order: lines along z in blocks of columns that fit
// the second level, forwards and backwards in one pass, take as many words, but in pieces of a few KiB, which cost this
// pass 1.15 ns a point where whole planes take 0.67 (256^3 FP64, Zen 4, nothing else computed); the front costs 0.2.
//
// Threads take planes in order. Each waits only at the lines along z, for the same columns of the plane before; so bits do not depend on threads.
#pragma once

#include <atomic>
#include <thread>

#include "backends/cpu/mesh/blocks.hpp"
#include "backends/cpu/mesh/fused.hpp"

namespace trifold::cpu {

template <class T>
class Solid : protected Blocks<T> {
protected:
    using Base = Blocks<T>;
    using Base::Base;
    using Base::shape_, Base::threads_, Base::workers_, Base::far_;

    /// False: something is not finite. Changes no field.
    bool up(const LineFactors<T>& along_x, const LineFactors<T>& along_y, const LineFactors<T>& along_z) {
        const bool whole_meshes = shape_.meshes >= threads_;  // for one thread, with a front of its own
        const std::int64_t front_bytes = shape_.y * apart() * static_cast<std::int64_t>(sizeof(T));
        fronts_.resize(whole_meshes ? static_cast<std::size_t>(threads_) : 1);
        if (!whole_meshes && fronts_[0].bytes() == 0) fronts_[0] = AlignedBuffer(static_cast<std::size_t>(front_bytes));
        std::vector<Done> done(static_cast<std::size_t>((shape_.x + strip_columns - 1) / strip_columns));
        std::atomic<std::int64_t> next = 0;
        std::atomic<bool> good = true;
        const std::int64_t planes_each = whole_meshes ? shape_.z : 1, count = shape_.meshes * shape_.z / planes_each;
#pragma omp parallel num_threads(threads_)
        {
            const auto number = static_cast<std::size_t>(omp_get_thread_num());
            AlignedBuffer& front = fronts_[whole_meshes ? number : 0];
            if (front.bytes() == 0) front = AlignedBuffer(static_cast<std::size_t>(front_bytes));
            for (std::int64_t k; good && (k = next++) < count;)
                for (std::int64_t p = k * planes_each; p < (k + 1) * planes_each && good; ++p)
                    if (!plane(along_x, along_y, along_z, p, workers_[number], static_cast<T*>(front.data()), whole_meshes ? nullptr : done.data(), good)) good = false;
        }
        return good;
    }

    /// `ended` is called for every part of a mesh with the solution in its first plane.
    template <class Ended>
    void down(const LineFactors<T>& along_z, Ended ended) {
        // Large parts are read in order for longer.
        const std::int64_t least = std::max<std::int64_t>(part_bytes / static_cast<std::int64_t>(sizeof(T)) / shape_.x, 1), wanted = shape_.meshes >= 2 * threads_ || threads_ == 1 ? 1 : 2 * threads_;
        const std::int64_t rows = std::min(std::max((shape_.y + wanted - 1) / wanted, least), shape_.y), parts = (shape_.y + rows - 1) / rows;
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
        for (std::int64_t k = 0; k < shape_.meshes * parts; ++k) {
            const std::int64_t y0 = k % parts * rows;
            Worker<T>& worker = workers_[static_cast<std::size_t>(omp_get_thread_num())];
            const Block part{.mesh = k / parts, .y0 = y0, .y1 = std::min(y0 + rows, shape_.y), .x0 = 0, .x1 = shape_.x};
            ended(part, down(along_z, part, worker), worker);
        }
    }

private:
    static constexpr std::int64_t strip_columns = 512 / sizeof(T), part_bytes = 64 << 10;

    struct alignas(64) Done {
        std::atomic<std::int64_t> planes = 0;
    };

    std::int64_t apart() const { return this->pitch(false, {}); }

    bool plane(const LineFactors<T>& along_x, const LineFactors<T>& along_y, const LineFactors<T>& along_z, std::int64_t p, Worker<T>& worker, T* front, Done* done,
               const std::atomic<bool>& good) {
        const std::int64_t mesh = p / shape_.z, z = p % shape_.z;
        T* const w = worker.room(shape_.y * apart());
        if (!this->planes_forwards(along_x, along_y, mesh, z, w, worker)) return false;
        const AlongZ<T> row{along_z.scale[static_cast<std::size_t>(z)], along_z.lower[static_cast<std::size_t>(z)], z == 0};
        T* const to = this->between(mesh, z, 0);
        for (std::int64_t x = 0, k = 0; x < shape_.x; x += strip_columns, ++k) {
            if (done && !wait(done[k].planes, p, good)) return false;
            const std::int64_t columns = std::min(strip_columns, shape_.x - x);
            if (!backwards_then_forwards(along_y, columns, w + x, apart(), row, front + x, to + x, this->between_pitch(), far_)) return false;
            for (std::int64_t y = 0; z == shape_.z - 1 && y < shape_.y; ++y)
                if (!all_finite(columns, front + y * apart() + x)) return false;
            if (done) done[k].planes.store(p + 1, std::memory_order_release);
        }
        return true;
    }

    static bool wait(const std::atomic<std::int64_t>& planes, std::int64_t p, const std::atomic<bool>& good) {
        for (int spins = 0; planes.load(std::memory_order_acquire) < p; ++spins) {
            if (!good) return false;
            if (spins > 1000) std::this_thread::yield();
        }
        return true;
    }

    const T* down(const LineFactors<T>& along_z, const Block& part, Worker<T>& worker) {
        const std::int64_t count = (part.y1 - part.y0) * shape_.x;
        T* const v = worker.room(count);
        std::fill_n(v, count, T(0));
        const bool adds = this->adds(), in_order = adds && this->target_stride(1) == shape_.x && this->between_pitch() == shape_.x;
        const std::int64_t rows_at_once = in_order ? part.y1 - part.y0 : 1;
        for (std::int64_t z = shape_.z - 1; z >= 0; --z)
            for (std::int64_t y = part.y0; y < part.y1; y += rows_at_once) {
                const T upper = along_z.upper[static_cast<std::size_t>(z)], *const w = this->between(part.mesh, z, y);
                T* const row = v + (y - part.y0) * shape_.x;
                if (adds) {
                    row_backwards_adding(upper, rows_at_once * shape_.x, w, row, row, this->target(part.mesh, z, y, 0));
                } else {
                    row_backwards(upper, shape_.x, w, row, row);
                    this->update(worker, part.mesh, z, y, 0, shape_.x, row);
                }
            }
        return v;
    }

    std::vector<AlignedBuffer> fronts_;
};

}  // namespace trifold::cpu
