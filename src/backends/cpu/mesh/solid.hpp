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
// Each thread has rows of its own in all planes, with their part of the front, which so stays in its caches; of a plane only the row that lines along y go on from
// passes from one thread to the next, some planes behind. Bits do not depend on how many there are.
#pragma once

#include <atomic>

#include "backends/cpu/mesh/blocks.hpp"
#include "backends/cpu/mesh/fused.hpp"
#include "backends/cpu/mesh/turn.hpp"

namespace trifold::cpu {

template <class T>
class Solid : protected Blocks<T> {
protected:
    using Base = Blocks<T>;
    using Base::Base;
    using Base::shape_, Base::threads_, Base::workers_, Base::far_;

    /// False: something is not finite. Changes no field.
    bool up(const LineFactors<T>& along_x, const LineFactors<T>& along_y, const LineFactors<T>& along_z) {
        return planes(true, [&](std::int64_t mesh, std::int64_t k, const Rows& own, T* front, T* last_row, Worker<T>& worker) {
            const AlongZ<T> row{along_z.scale[static_cast<std::size_t>(k)], along_z.lower[static_cast<std::size_t>(k)], k == 0};
            T* const to = this->between(mesh, k, 0);
            return this->strips(mesh, k, own.first, own.end, worker, [&](std::int64_t y, std::int64_t rows, T* strip, const ComingRows<T>& coming) {
                T* const at = front + (y - own.first) * apart();
                if (!rows_then_deep(along_x, along_y, row, strip, apart(), y, rows, last_row, at, apart(), to + y * this->between_pitch(), this->between_pitch(), far_, coming)) return false;
                for (std::int64_t r = 0; k == shape_.z - 1 && r < rows; ++r)
                    if (!all_finite(shape_.x, at + r * apart())) return false;  // whatever was not finite before is not finite there
                return true;
            });
        });
    }

    /// name(1 or 2, part, values) is called for lines along y of a plane or along z of a mesh that are not finite, as the values of their first row show.
    template <class Name>
    void down(const LineFactors<T>& along_y, const LineFactors<T>& along_z, Name name) {
        std::vector<char> finite(static_cast<std::size_t>(shape_.meshes), 1);
        planes(false, [&](std::int64_t mesh, std::int64_t k, const Rows& own, T* front, T* v, Worker<T>& worker) {
            const std::int64_t z = shape_.z - 1 - k;
            for (std::int64_t y = own.end - 1; y >= own.first; --y) {
                back(along_y, along_z, mesh, z, y, front + (y - own.first) * apart(), v, this->adds() ? this->target(mesh, z, y, 0) : nullptr);
                if (!this->adds()) this->update(worker, mesh, z, y, 0, shape_.x, v);
            }
            if (own.first == 0 && !all_finite(shape_.x, v)) finite[static_cast<std::size_t>(mesh)] = 0;
            return true;
        });
        for (std::int64_t mesh = 0; mesh < shape_.meshes; ++mesh)
            if (!finite[static_cast<std::size_t>(mesh)]) overflows(along_y, along_z, mesh, name);
    }

private:
    static constexpr std::int64_t handed_planes = 16;  ///< that one thread may be ahead of the next

    struct Rows {
        std::int64_t first, end;
    };

    // Rows along x on their way from a thread to the next: of so many planes given and taken.
    struct alignas(64) Handed {
        std::atomic<std::int64_t> given = 0;
        alignas(64) std::atomic<std::int64_t> taken = 0;
        AlignedBuffer rows;
    };

    std::int64_t apart() const { return this->pitch(false, {}); }

    void back(const LineFactors<T>& along_y, const LineFactors<T>& along_z, std::int64_t mesh, std::int64_t z, std::int64_t y, T* front, T* v, T* sum) const {
        row_deep_backwards(along_z.upper[static_cast<std::size_t>(z)], along_y.upper[static_cast<std::size_t>(y)], z == shape_.z - 1, shape_.x, this->between(mesh, z, y), front, v, sum);
    }

    // visit(mesh, k, own rows, their front, row, worker) for the k-th plane of every mesh and all its rows, on one thread or on several: upwards from the first row to the last, else from the
    // last to the first. row: zeros at the first of them; what a visit leaves in it goes to whoever has the next rows of that plane. A visit that returns false ends all.
    template <class Visit>
    bool planes(bool upwards, Visit visit) {
        const bool whole_meshes = shape_.meshes >= threads_;  // each for one thread
        const std::int64_t strip = strip_rows<T>(), strips = (shape_.y + strip - 1) / strip;
        fronts_.resize(static_cast<std::size_t>(threads_));
        std::vector<Handed> handed(whole_meshes ? 0 : static_cast<std::size_t>(threads_));
        std::atomic<std::int64_t> next = 0;
        std::atomic<bool> good = true;
#pragma omp parallel num_threads(threads_)
        {
            const auto number = static_cast<std::size_t>(omp_get_thread_num());
            const std::int64_t bands = whole_meshes ? 1 : std::min<std::int64_t>(omp_get_num_threads(), strips), band = whole_meshes ? 0 : static_cast<std::int64_t>(number);
            const Rows own{strips * band / bands * strip, std::min(strips * (band + 1) / bands * strip, shape_.y)};
            Handed* const before = whole_meshes || band == (upwards ? 0 : bands - 1) ? nullptr : &handed[number - (upwards ? 1 : -1)];
            Handed* const after = whole_meshes || band == (upwards ? bands - 1 : 0) ? nullptr : &handed[number];
            const auto each = [&](std::int64_t first, std::int64_t end) {
                const auto bytes = static_cast<std::size_t>((own.end - own.first) * apart()) * sizeof(T), row_bytes = static_cast<std::size_t>(apart()) * sizeof(T);
                if (fronts_[number].bytes() < bytes) fronts_[number] = AlignedBuffer(bytes);
                if (after) after->rows = AlignedBuffer(handed_planes * row_bytes);
                T *const front = static_cast<T*>(fronts_[number].data()), *const row = workers_[number].room(apart());
                for (std::int64_t p = first; p < end; ++p) {
                    const std::int64_t place = p % handed_planes * apart();
                    if (!before) {
                        std::fill_n(row, apart(), T(0));
                    } else {
                        if (!until(before->given, p + 1, &good)) return;
                        std::copy_n(static_cast<const T*>(before->rows.data()) + place, apart(), row);
                        before->taken.store(p + 1, std::memory_order_release);
                    }
                    if (!visit(p / shape_.z, p % shape_.z, own, front, row, workers_[number])) good = false;
                    if (!good) return;
                    if (!after) continue;
                    if (!until(after->taken, p + 1 - handed_planes, &good)) return;
                    std::copy_n(row, apart(), static_cast<T*>(after->rows.data()) + place);
                    after->given.store(p + 1, std::memory_order_release);
                }
            };
            if (!whole_meshes && band < bands) each(0, shape_.meshes * shape_.z);
            if (whole_meshes)
                for (std::int64_t mesh; good && (mesh = next++) < shape_.meshes;) each(mesh * shape_.z, (mesh + 1) * shape_.z);
        }
        return good;
    }

    // The way down once more, where something was not finite, to name what.
    template <class Name>
    void overflows(const LineFactors<T>& along_y, const LineFactors<T>& along_z, std::int64_t mesh, Name name) {
        std::vector<T> front(static_cast<std::size_t>(shape_.y * apart())), v(static_cast<std::size_t>(apart()));
        for (std::int64_t z = shape_.z - 1; z >= 0; --z) {
            std::fill(v.begin(), v.end(), T(0));
            for (std::int64_t y = shape_.y - 1; y >= 0; --y) back(along_y, along_z, mesh, z, y, front.data() + y * apart(), v.data(), nullptr);
            if (!all_finite(shape_.x, v.data())) overflow(mesh, z, front.data(), v.data(), workers_[0], name);
        }
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
