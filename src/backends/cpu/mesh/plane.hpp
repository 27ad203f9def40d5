// SPDX-License-Identifier: BSD-3-Clause
// Lines along x and y of one plane with one factored matrix each (fused.hpp), by one thread or by all, where planes are fewer than threads.
//
// Words per point, planes that no cache holds: u read, w written past the caches; w and u read, u written: 5 in all. (Planes that one holds are read from it, small ones by one thread each, others by several
// one thing after the other: so fewer lines of the cache pass from one to the next.)
//
// Threads take strips in turns, the same ones forwards and backwards, so that lines of the cache of u stay with one core. Forwards, right-hand sides and lines along x, down the strip, need no
// other strip; back over it, where lines along y go on from the strip before, each follows that one some columns behind. Backwards, each follows the strip behind it by a piece of columns. Bits do
// not depend on how many there are.
#pragma once

#include <vector>

#include "backends/cpu/mesh/fused.hpp"
#include "backends/cpu/mesh/solid.hpp"
#include "backends/cpu/mesh/turn.hpp"
#include "devices/topology.hpp"

namespace trifold::cpu {

template <class T>
class Plane : protected Solid<T> {
protected:
    using Base = Solid<T>;
    using Base::Base;
    using Base::shape_, Base::workers_, Base::far_;

    /// The last level of cache that these threads have does not hold a plane of w and one of the field.
    bool far_plane(int threads) const {
        constexpr std::int64_t least = std::int64_t{8} << 20;  // below it, machines are not looked at
        const std::int64_t bytes = shape_.y * this->pitch(false, {}) * static_cast<std::int64_t>(sizeof(T));
        if (bytes < least) return false;
        const devices::Topology& machine = devices::read_topology();
        return bytes > static_cast<std::int64_t>(threads == 1 && machine.l3 ? machine.l3 : machine.last_level()) / 2;
    }

    /// So few planes sooner by one thread each, in its caches, than by all, one plane and one thing after the other, which costs some 100 µs a step and plane for lines of the cache that pass from core to
    /// core, and 1.6 times the work. Measured: docs/notes/cpu_sweeps.md.
    bool planes_by_one_each(std::int64_t count, int threads) const {
        constexpr double bytes_that_pass = 600e3, work = 1.6;  // what a thread does of a plane in that time
        const double bytes = static_cast<double>(shape_.y * this->pitch(false, {})) * sizeof(T), share = work * static_cast<double>(count) / threads;
        return !far_plane(threads) && bytes * (1 - share) < bytes_that_pass * static_cast<double>(count);
    }

    /// The same where one thing goes after the other in any case (rings): all threads of one plane are hardly faster than one, 0.4 of 16 where one has 0.3 (FP64, 400² to 1400²).
    bool planes_apart_by_one_each(std::int64_t count) const {
        constexpr std::int64_t large = 8 << 20, many = 4;  // several of these come from memory beside each other
        return count >= (shape_.y * this->pitch(false, {}) * static_cast<std::int64_t>(sizeof(T)) <= large ? 2 : many);
    }

    /// w of lines along y, in rows of the plane that lie pitch(false, …) apart. row: one of them, of any content. False: something is not finite.
    bool plane_forwards(const LineFactors<T>& along_x, const LineFactors<T>& along_y, std::int64_t mesh, std::int64_t z, T* plane, T* row, int threads, Worker<T>& worker) {
        const std::int64_t apart = this->pitch(false, {}), most = strip_rows<T>(), strips = (shape_.y + most - 1) / most;
        T* const last_row = far_plane(threads) ? row : nullptr;
        if (threads == 1)
            return this->strips(mesh, z, 0, shape_.y, worker, [&](std::int64_t y, std::int64_t rows, T* strip, const ComingRows<T>& coming) {
                return rows_then_forwards(along_x, along_y, strip, apart, y, rows, plane, apart, last_row, coming, {});
            }) && all_finite(shape_.x, last_row ? last_row : plane + (shape_.y - 1) * apart);
        std::vector<Count> done(static_cast<std::size_t>(threads));
        std::atomic<bool> good = true;
#pragma omp parallel num_threads(threads)
        {
            const std::int64_t number = omp_get_thread_num(), all = omp_get_num_threads();
            Worker<T>& own = workers_[static_cast<std::size_t>(number)];
            // Every strip is gone over, since others wait for it.
            for (std::int64_t s = number; s < strips; s += all) {
                const std::int64_t y = s * most, rows = std::min(most, shape_.y - y);
                Turn turn{.before = s > 0 ? &done[static_cast<std::size_t>((number + all - 1) % all)].done : nullptr, .own = &done[static_cast<std::size_t>(number)].done, .number = s};
                if (all == 1) turn = {};
                if (!rows_then_forwards(along_x, along_y, this->strip(mesh, z, y, rows, own), apart, y, rows, plane, apart, last_row, this->coming(mesh, z, y + all * most), turn)) good = false;
            }
        }
        return good && all_finite(shape_.x, last_row ? last_row : plane + (shape_.y - 1) * apart);
    }

    /// Lines along y backwards, to where they lie between passes. False: something is not finite.
    bool plane_backwards_between(const LineFactors<T>& along_y, std::int64_t mesh, std::int64_t z, const T* plane, int threads) {
        const std::int64_t apart = this->pitch(false, {});
        const std::int64_t lines = (shape_.x + Base::line_values - 1) / Base::line_values;  // of the cache
        std::atomic<bool> good = true;
        const auto columns = [&](std::int64_t number, std::int64_t all) {
            const std::int64_t x0 = lines * number / all * Base::line_values, x1 = std::min(lines * (number + 1) / all * Base::line_values, shape_.x);
            if (x1 > x0 && !backwards_to(along_y, x1 - x0, plane + x0, apart, this->between(mesh, z, 0) + x0, this->between_pitch(), far_)) good = false;
        };
        if (threads == 1) {
            columns(0, 1);
            return good;
        }
#pragma omp parallel num_threads(threads)
        columns(omp_get_thread_num(), omp_get_num_threads());
        return good;
    }

    /// Lines along y backwards, and the update. v: a row, on return that of the first one.
    void plane_backwards_updating(const LineFactors<T>& along_y, std::int64_t mesh, std::int64_t z, const T* plane, T* v, int threads, Worker<T>& worker) {
        const std::int64_t apart = this->pitch(false, {});
        const auto rows = [&](std::int64_t first, std::int64_t end, std::int64_t x0, std::int64_t count, Worker<T>& own) {
            if (end == shape_.y) std::fill_n(v + x0, count, T(0));
            for (std::int64_t y = end - 1; y >= first; --y) {
                const T upper = along_y.upper[static_cast<std::size_t>(y)], *const w = plane + y * apart + x0;
                if (this->adds()) {
                    row_backwards_adding(upper, count, w, v + x0, v + x0, this->target(mesh, z, y, x0));
                    continue;
                }
                row_backwards(upper, count, w, v + x0, v + x0);
                this->update(own, mesh, z, y, x0, count, v + x0);
            }
        };
        if (threads == 1) return rows(0, shape_.y, 0, shape_.x, worker);
        const std::int64_t most = strip_rows<T>(), strips = (shape_.y + most - 1) / most, pieces = (shape_.x + piece - 1) / piece;
        std::vector<Count> done(static_cast<std::size_t>(threads));
#pragma omp parallel num_threads(threads)
        {
            const std::int64_t number = omp_get_thread_num(), all = omp_get_num_threads();
            for (std::int64_t s = strips - 1; s >= 0; --s) {
                if (s % all != number) continue;
                // Pieces done when the strip behind it begins.
                const std::int64_t before = (strips - 2 - s) * pieces;
                for (std::int64_t k = 0; k < pieces; ++k) {
                    if (s + 1 < strips && all > 1) until(done[static_cast<std::size_t>((s + 1) % all)].done, before + k + 1);
                    rows(s * most, std::min((s + 1) * most, shape_.y), k * piece, std::min(piece, shape_.x - k * piece), workers_[static_cast<std::size_t>(number)]);
                    done[static_cast<std::size_t>(number)].done.store(before + pieces + k + 1, std::memory_order_release);
                }
            }
        }
    }

private:
    static constexpr std::int64_t piece = 2048 / sizeof(T);  ///< columns that go from a thread to the next, backwards
};

}  // namespace trifold::cpu
