// SPDX-License-Identifier: BSD-3-Clause
// Lines along x, y and z with one factored matrix each, in two passes over memory (fused.hpp). With one matrix for all lines of an axis, what is done along
// one axis commutes with what is done along another; so all goes forwards first, and backwards then:
//
//   up    plane after plane: right-hand side, lines along x, along y and along z forwards; the last w along z stays in a front in cache
//   down  plane after plane, from the last one, row after row from the last one: along z and along y backwards, and the update
//
// 5 words per point and step through memory: u read, w written; w and u read, u written. Both passes read memory in order, down from its end to its beginning:
// rows that go backwards while their values go forwards are no stream, and took twice as long (256^3 FP64, Zen 4: 1.5 ns a point, 0.75 in order).
//
// Threads take planes in order. Each waits for the same rows of the plane before; so bits do not depend on how many there are.
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
        return planes([&](std::int64_t mesh, std::int64_t k, T* front, Worker<T>& worker, auto wait, auto tell) {
            const AlongZ<T> row{along_z.scale[static_cast<std::size_t>(k)], along_z.lower[static_cast<std::size_t>(k)], k == 0};
            T *const last_row = worker.room(apart()), *const to = this->between(mesh, k, 0);
            return this->strips(mesh, k, worker, [&](std::int64_t y, std::int64_t rows, T* strip, const ComingRows<T>& coming) {
                T* const own = front + y * apart();
                if (!wait(y + rows) || !rows_then_deep(along_x, along_y, row, strip, apart(), y, rows, last_row, own, apart(), to + y * this->between_pitch(), this->between_pitch(), far_, coming)) return false;
                for (std::int64_t r = 0; k == shape_.z - 1 && r < rows; ++r)
                    if (!all_finite(shape_.x, own + r * apart())) return false;  // whatever was not finite before is not finite there
                tell(y + rows);
                return true;
            });
        });
    }

    /// name(1 or 2, part, values) is called for lines along y of a plane or along z of a mesh that are not finite, as the values of their first row show.
    template <class Name>
    void down(const LineFactors<T>& along_y, const LineFactors<T>& along_z, Name name) {
        planes([&](std::int64_t mesh, std::int64_t k, T* front, Worker<T>& worker, auto wait, auto tell) {
            const std::int64_t z = shape_.z - 1 - k;
            T* const v = worker.room(apart());
            std::fill_n(v, apart(), T(0));
            for (std::int64_t y = shape_.y - 1; y >= 0; --y) {
                if ((shape_.y - 1 - y) % rows_told == 0) wait(std::min(shape_.y - y - 1 + rows_told, shape_.y));
                const T upper_z = along_z.upper[static_cast<std::size_t>(z)], upper_y = along_y.upper[static_cast<std::size_t>(y)];
                row_deep_backwards(upper_z, upper_y, k == 0, shape_.x, this->between(mesh, z, y), front + y * apart(), v, this->adds() ? this->target(mesh, z, y, 0) : nullptr);
                if (!this->adds()) this->update(worker, mesh, z, y, 0, shape_.x, v);
                if ((shape_.y - y) % rows_told == 0) tell(shape_.y - y);
            }
            if (!all_finite(shape_.x, v)) overflow(mesh, z, front, v, worker, name);
            tell(shape_.y);
            return true;
        });
    }

private:
    static constexpr std::int64_t rows_told = 8;

    struct alignas(64) Done {
        std::atomic<std::int64_t> rows = 0;
    };

    std::int64_t apart() const { return this->pitch(false, {}); }

    // visit(mesh, k, front, worker, wait, tell) for the k-th plane of every mesh on any thread. wait(n) returns when the plane before has told that n rows of it are done;
    // false, or a visit that returns false, ends all. Whoever has a plane began after all before it, so nobody waits for ever.
    template <class Visit>
    bool planes(Visit visit) {
        const bool whole_meshes = shape_.meshes >= threads_;  // each for one thread, with a front of its own
        const auto front_bytes = static_cast<std::size_t>(shape_.y * apart()) * sizeof(T);
        fronts_.resize(whole_meshes ? static_cast<std::size_t>(threads_) : 1);
        if (!whole_meshes && fronts_[0].bytes() == 0) fronts_[0] = AlignedBuffer(front_bytes);
        const std::int64_t each = whole_meshes ? shape_.z : 1, count = shape_.meshes * shape_.z;
        std::vector<Done> done(whole_meshes ? 0 : static_cast<std::size_t>(count));
        std::atomic<std::int64_t> next = 0;
        std::atomic<bool> good = true;
#pragma omp parallel num_threads(threads_)
        {
            const auto number = static_cast<std::size_t>(omp_get_thread_num());
            AlignedBuffer& front = fronts_[whole_meshes ? number : 0];
            if (front.bytes() == 0) front = AlignedBuffer(front_bytes);
            for (std::int64_t first; good && (first = each * next++) < count;)
                for (std::int64_t p = first; p < first + each && good; ++p) {
                    const auto wait = [&](std::int64_t rows) { return whole_meshes || p == 0 || until(done[static_cast<std::size_t>(p - 1)].rows, rows, good); };
                    const auto tell = [&](std::int64_t rows) {
                        if (!whole_meshes) done[static_cast<std::size_t>(p)].rows.store(rows, std::memory_order_release);
                    };
                    if (!visit(p / shape_.z, p % shape_.z, static_cast<T*>(front.data()), workers_[number], wait, tell)) good = false;
                }
        }
        return good;
    }

    static bool until(const std::atomic<std::int64_t>& told, std::int64_t rows, const std::atomic<bool>& good) {
        for (int spins = 0; told.load(std::memory_order_acquire) < rows; ++spins) {
            if (!good) return false;
            if (spins > 1000) std::this_thread::yield();
        }
        return true;
    }

    // Lines along z that have failed show in every plane from there on, so they are named once, in the first plane; before that, those along y.
    template <class Name>
    void overflow(std::int64_t mesh, std::int64_t z, const T* front, const T* v, Worker<T>& worker, Name name) {
        std::vector<T> t(static_cast<std::size_t>(shape_.x * shape_.y));
        for (std::int64_t y = 0; y < shape_.y; ++y) std::copy_n(front + y * apart(), shape_.x, t.data() + y * shape_.x);
        const std::int64_t row = (mesh * shape_.z + z) * shape_.y;
        if (all_finite(shape_.x * shape_.y, t.data())) name(1, Block{.first_row = row, .end_row = row + shape_.y}, v, worker);
        else if (z == 0) name(2, Block{.mesh = mesh, .y1 = shape_.y, .x1 = shape_.x}, t.data(), worker);
    }

    std::vector<AlignedBuffer> fronts_;
};

}  // namespace trifold::cpu
