// SPDX-License-Identifier: BSD-3-Clause
// Parts of a mesh in the memory of the thread that works on them: where their rows lie, and how values get in and out.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <deque>

#include "backends/cpu/mesh/copy.hpp"
#include "backends/cpu/mesh/fused.hpp"
#include "backends/cpu/mesh/matrices.hpp"
#include "backends/cpu/mesh/passes.hpp"
#include "backends/cpu/mesh/star.hpp"
#include "backends/cpu/useful_threads.hpp"
#include "devices/prefetch_level.hpp"

namespace trifold::cpu {

// What a block of planes or columns may take, matrices included: most of a second-level cache of 1 MiB. Smaller ones make the pieces of
// rows that a block of columns reads too short for the memory: 384 KiB cost 10 % on 400³ (Zen 5).
constexpr std::int64_t block_bytes = 768 << 10;

// What the rows of a strip take.
constexpr std::int64_t strip_bytes = 64 << 10;

// Above this, what is written between passes goes past the caches: they would have to read it first. Zen 4, one thread: the step of 128^3 in doubles (16 MiB, which
// the third level would hold) takes 2.9 ns a point so, 3.6 otherwise; 96^3 2.2 and 2.6; 64^3 3.0 and 2.5.
constexpr std::int64_t far_bytes = 4 << 20;

// A part of the mesh that one thread takes: rows first … end - 1 of all meshes' rows along x, whole planes of them; or the columns
// x0 … x1 - 1 of rows y0 … y1 - 1 of one mesh.
struct Block {
    std::int64_t first_row = 0, end_row = 0;
    std::int64_t mesh = 0, y0 = 0, y1 = 0, x0 = 0, x1 = 0;
};

template <class T>
struct Worker {
    mesh::MeshRows<T> rows;
    MatrixMemory<T> matrices;
    std::vector<mesh::LineEnds<T>> ends;
    AlignedBuffer values, scratch;
    std::vector<std::int8_t> status;
    std::vector<T> row, beyond;  // beyond: rows of a star beyond the mesh's sides

    Worker(const mesh::Checked& checked) : rows(checked, checked.problem->shape.x), row(static_cast<std::size_t>(checked.problem->shape.x)) {}

    T* room(std::int64_t count) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
        if (bytes > values.bytes()) values = AlignedBuffer(bytes);
        return static_cast<T*>(values.data());
    }

    LineTeam team(std::size_t bytes, int threads) {
        if (bytes > scratch.bytes()) scratch = AlignedBuffer(bytes);
        return {threads, scratch.data(), scratch.bytes()};
    }
};

/// From row to row of what lies in memory between passes: whole lines of the cache, but for meshes that are narrower than one.
template <class T>
constexpr std::int64_t between_pitch(std::int64_t x) {
    constexpr std::int64_t line = 64 / sizeof(T);
    return x < line ? x : (x + line - 1) / line * line;
}

template <class T>
constexpr std::int64_t between_values(const MeshShape& shape) {
    return shape.meshes * shape.z * shape.y * between_pitch<T>(shape.x);
}

template <class T>
class Blocks {
protected:
    using Points = std::array<T*, 3>;
    static constexpr std::int64_t line_values = 64 / sizeof(T);  // of a line of the cache
    static constexpr std::int64_t ahead_bytes = 16 << 10;        // between what is asked for and what is worked on

    Blocks(const mesh::Checked& checked, const tridiagonal::Launch& launch)
        : checked_(checked), problem_(*checked.problem), shape_(problem_.shape), threads_(useful_threads(shape_.points(), points_per_thread, launch.threads)),
          between_(static_cast<T*>(launch.scratch)), far_(shape_.points() * static_cast<std::int64_t>(sizeof(T)) > far_bytes), failed_(static_cast<std::size_t>(shape_.meshes)) {
        for (int k = 0; k < threads_; ++k) workers_.emplace_back(checked);
    }

    void evaluate(Worker<T>& worker, const PointFunction& function, const mesh::Access& access, std::int64_t mesh, std::int64_t z, std::int64_t y,
                  std::int64_t x, std::int64_t count, const Points& out, const T* solution = nullptr) {
        worker.rows.run(function, access, mesh, z, y, x, count, step_, solution, out);
    }

    // Rows to come, into the level that this processor is best asked for: requests for the first one hold its few miss buffers on Zen 4.
    void ask_for(const T* first, std::int64_t count) const {
        for (const T* p = first; p < first + count; p += line_values) {
            if (second_level_) __builtin_prefetch(p, 0, 2);
            else __builtin_prefetch(p);
        }
    }

    // From row to row of a block: not a power of two apart, which would crowd them into few sets of the cache. Of planes whole lines of the cache.
    std::int64_t pitch(bool columns, const Block& block) const {
        const std::int64_t count = columns ? block.x1 - block.x0 : shape_.x;
        if (!columns && count >= line_values) return line_values * ((count + line_values - 1) / line_values | 1);
        const bool one_column = columns && block.y1 - block.y0 > 1;  // rows of several y follow each other: lines of one stride
        return count % (8 * line_values) == 0 && !one_column ? count + line_values : count;
    }

    void take(const Pass& pass, const Block& block, T* values, int threads) {
        const std::int64_t x0 = pass.columns ? block.x0 : 0, count = pass.columns ? block.x1 - block.x0 : shape_.x;
        each_row(pass.columns, block, values, threads, [&](Worker<T>&, std::int64_t mesh, std::int64_t z, std::int64_t y, T* row) {
            const T* const from = between(mesh, z, y) + x0;
            if (pass.columns) ask_for(from + 2 * shape_.y * between_pitch(), count);
            std::copy_n(from, count, row);
        });
    }

    void give(const Pass& pass, const Block& block, T* values, int threads) {
        const std::int64_t x0 = pass.columns ? block.x0 : 0, count = pass.columns ? block.x1 - block.x0 : shape_.x;
        each_row(pass.columns, block, values, threads, [&](Worker<T>&, std::int64_t mesh, std::int64_t z, std::int64_t y, T* row) {
            T* const to = between(mesh, z, y) + x0;
            if (far_) copy_past_cache(row, count, to);
            else std::copy_n(row, count, to);
        });
    }

    // The right-hand sides of rows y0 … y1 - 1 of a plane, strip after strip: visit(first row, rows, strip, what comes next) solves lines along x, until it returns false.
    template <class Visit>
    bool strips(std::int64_t mesh, std::int64_t z, std::int64_t y0, std::int64_t y1, Worker<T>& worker, Visit visit) {
        const std::int64_t most = strip_rows<T>();
        for (std::int64_t y = y0; y < y1; y += most) {
            const std::int64_t rows = std::min(most, y1 - y);
            if (!visit(y, rows, strip(mesh, z, y, rows, worker), y + most < y1 ? coming(mesh, z, y + most) : coming(mesh, z + 1, y0))) return false;
        }
        return true;
    }

    // One of them, in the worker's scratch.
    T* strip(std::int64_t mesh, std::int64_t z, std::int64_t y, std::int64_t rows, Worker<T>& worker) {
        const std::int64_t apart = pitch(false, {}), most = strip_rows<T>();
        T* const strip = static_cast<T*>(worker.team(static_cast<std::size_t>(most * apart) * sizeof(T), 1).scratch);
        if (star_) right_hand_sides(worker, mesh, z, y, rows, strip, apart);
        for (std::int64_t r = 0; r < most; ++r) {
            T* const row = strip + r * apart;
            if (r < rows && !star_) right_hand_side(worker, mesh, z, y + r, row);
            std::fill(row + (r < rows ? shape_.x : 0), row + apart, T(0));
        }
        return strip;
    }

    T* between(std::int64_t mesh, std::int64_t z, std::int64_t y) const { return between_ + ((mesh * shape_.z + z) * shape_.y + y) * between_pitch(); }
    std::int64_t between_pitch() const { return cpu::between_pitch<T>(shape_.x); }

    // Calls visit(worker, mesh, z, y, the block's values of that row) for all rows of a block.
    template <class Visit>
    void each_row(bool columns, const Block& block, T* values, int threads, Visit visit) {
        const std::int64_t rows = columns ? shape_.z * (block.y1 - block.y0) : block.end_row - block.first_row;
        const auto one = [&](Worker<T>& worker, std::int64_t r) {
            if (columns) {
                const std::int64_t across = block.y1 - block.y0;
                visit(worker, block.mesh, r / across, block.y0 + r % across, values + r * pitch(true, block));
            } else {
                const std::int64_t row = block.first_row + r, p = row / shape_.y;
                visit(worker, p / shape_.z, p % shape_.z, row % shape_.y, values + r * pitch(false, block));
            }
        };
        if (threads == 1) {
            Worker<T>& worker = workers_[static_cast<std::size_t>(omp_get_thread_num())];
            for (std::int64_t r = 0; r < rows; ++r) one(worker, r);
            return;
        }
#pragma omp parallel for schedule(static) num_threads(threads)
        for (std::int64_t r = 0; r < rows; ++r) one(workers_[static_cast<std::size_t>(omp_get_thread_num())], r);
    }

    // What the right-hand sides of rows from y on read that nothing has read before: of every field the row farthest on in the plane farthest on. Past the
    // end of a plane lies the next one.
    ComingRows<T> coming(std::int64_t mesh, std::int64_t z, std::int64_t y) const {
        ComingRows<T> found{.second_level = second_level_};
        for (int f = 0; f < one_->rhs.fields && f < checked_.solution_field(); ++f) {
            const AnyField& field = problem_.fields[static_cast<std::size_t>(f)];
            const unsigned read = one_->rhs.field[static_cast<std::size_t>(f)].rows;
            if (!read || field.stride[0] != 1) continue;
            const int row = 31 - __builtin_clz(read), dz = row / rows_across - max_reach, dy = row % rows_across - max_reach;
            found.rows[static_cast<std::size_t>(found.count++)] = {static_cast<const T*>(field.data) + mesh * field.stride[3] + (z + dz) * field.stride[2] + (y + dy) * field.stride[1], field.stride[1]};
        }
        return found;
    }

    // Of a star: rows that have room for whole vectors.
    void right_hand_sides(Worker<T>& worker, std::int64_t mesh, std::int64_t z, std::int64_t y, std::int64_t rows, T* to, std::int64_t apart) const {
        star_right_hand_sides(star_, star_rows(star_, problem_, mesh, z, y, rows, worker.beyond), rows, shape_.x, to, apart);
    }

    void right_hand_side(Worker<T>& worker, std::int64_t mesh, std::int64_t z, std::int64_t y, T* row) {
        if (star_) right_hand_sides(worker, mesh, z, y, 1, row, 0);
        else if (one_->sweep->rhs) evaluate(worker, one_->sweep->rhs, one_->rhs, mesh, z, y, 0, shape_.x, {row});
        else worker.rows.copy(one_->sweep->target, mesh, z, y, 0, shape_.x, row);
    }

    void right_hand_side(const Block& block, T* values, int threads) {
        // Rows that are in cache anyway: several at once. (From further away 160^3 in doubles took 10 % longer so.)
        if (star_ && !far_ && threads == 1) {
            constexpr std::int64_t most = 4;
            const std::int64_t apart = pitch(false, block);
            for (std::int64_t r = block.first_row, end; r < block.end_row; r = end) {
                const std::int64_t p = r / shape_.y;
                end = std::min({r + most, (p + 1) * shape_.y, block.end_row});
                right_hand_sides(workers_[static_cast<std::size_t>(omp_get_thread_num())], p / shape_.z, p % shape_.z, r - p * shape_.y, end - r, values + (r - block.first_row) * apart, apart);
            }
            return;
        }
        each_row(false, block, values, threads, [&](Worker<T>& worker, std::int64_t mesh, std::int64_t z, std::int64_t y, T* row) {
            const ComingRows<T> next = coming(mesh, z, y + 2);
            for (int k = 0; k < next.count && shape_.z > 1; ++k) ask_for(next.rows[static_cast<std::size_t>(k)].first, shape_.x);
            right_hand_side(worker, mesh, z, y, row);
        });
    }

    T* target(std::int64_t mesh, std::int64_t z, std::int64_t y, std::int64_t x) const {
        const AnyField& field = problem_.fields[static_cast<std::size_t>(one_->sweep->target)];
        return static_cast<T*>(field.data) + mesh * field.stride[3] + z * field.stride[2] + y * field.stride[1] + x * field.stride[0];
    }

    std::int64_t target_stride(std::size_t axis) const { return problem_.fields[static_cast<std::size_t>(one_->sweep->target)].stride[axis]; }

    // The update is a sum, which the last line solve can make of rows as it goes.
    bool adds() const { return one_->adds && target_stride(0) == 1; }

    void update(Worker<T>& worker, std::int64_t mesh, std::int64_t z, std::int64_t y, std::int64_t x0, std::int64_t count, const T* row) {
        const std::int64_t stride = target_stride(0);
        T* const to = target(mesh, z, y, x0);
        if (stride == 1) {
            if (one_->sweep->update) evaluate(worker, one_->sweep->update, one_->update, mesh, z, y, x0, count, {to}, row);
            else std::copy_n(row, count, to);
            return;
        }
        if (one_->sweep->update) evaluate(worker, one_->sweep->update, one_->update, mesh, z, y, x0, count, {worker.row.data()}, row), row = worker.row.data();
        for (std::int64_t i = 0; i < count; ++i) to[i * stride] = row[i];
    }

    void update(const Pass& pass, const Block& block, T* values, int threads) {
        const std::int64_t x0 = pass.columns ? block.x0 : 0, count = pass.columns ? block.x1 - block.x0 : shape_.x;
        each_row(pass.columns, block, values, threads, [&](Worker<T>& worker, std::int64_t mesh, std::int64_t z, std::int64_t y, T* row) {
            if (failed_[static_cast<std::size_t>(mesh)]) return;
            if (pass.columns) ask_for(target(mesh, z + 2, y, x0), count);
            update(worker, mesh, z, y, x0, count, row);
        });
    }

    LineShape lines_of(int axis, const Block& block) const {
        const std::int64_t rows = block.end_row - block.first_row, apart = pitch(axis == 2, block);
        if (axis == 0) return {.n = shape_.x, .row_stride = 1, .outer = rows, .outer_stride = apart};
        if (axis == 1) return {.n = shape_.y, .row_stride = apart, .outer = rows / shape_.y, .outer_stride = shape_.y * apart, .inner = shape_.x};
        return {.n = shape_.z, .row_stride = (block.y1 - block.y0) * apart, .inner = (block.y1 - block.y0) * (block.x1 - block.x0)};
    }

    const mesh::Checked& checked_;
    const MeshProblem& problem_;
    const MeshShape shape_;
    const int threads_;
    T* const between_;  // passes: between_values of them, [mesh][z][y][between_pitch]
    const bool far_;    // it is larger than caches are
    const bool second_level_ = devices::asks_second_level();
    std::vector<std::atomic<int>> failed_;  // per mesh: 1 + the number of the line solve that failed
    std::deque<Worker<T>> workers_;

    const mesh::CheckedSweep* one_ = nullptr;
    Star<T> star_;  // its right-hand side, where it is one
    std::int64_t step_ = 0;
};

}  // namespace trifold::cpu
