// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/sweep.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <deque>

#include "backends/cpu/mesh/copy.hpp"
#include "backends/cpu/mesh/matrices.hpp"
#include "backends/cpu/mesh/passes.hpp"
#include "devices/prefetch_level.hpp"

namespace trifold::cpu {
namespace {

using mesh::CheckedSweep;
using mesh::LineEnds;
using mesh::MeshRows;
using tridiagonal::Launch;

// What a block of planes or columns may take, matrices included: most of a second-level cache of 1 MiB. Smaller ones make the pieces of
// rows that a block of columns reads too short for the memory: 384 KiB cost 10 % on 400³ (Zen 5).
constexpr std::int64_t block_bytes = 768 << 10;

// What the rows of a strip take.
constexpr std::int64_t strip_bytes = 64 << 10;

// Above this, what is written between passes goes past the caches: they would have to read it first.
constexpr std::int64_t far_bytes = 24 << 20;

// A part of the mesh that one thread takes: rows first … end - 1 of all meshes' rows along x, whole planes of them; or the columns
// x0 … x1 - 1 of rows y0 … y1 - 1 of one mesh.
struct Block {
    std::int64_t first_row = 0, end_row = 0;
    std::int64_t mesh = 0, y0 = 0, y1 = 0, x0 = 0, x1 = 0;
};

template <class T>
struct Worker {
    MeshRows<T> rows;
    MatrixMemory<T> matrices;
    std::vector<LineEnds<T>> ends;
    AlignedBuffer values, scratch;
    std::vector<std::int8_t> status;
    std::vector<T> row;

    Worker(const mesh::Checked& checked) : rows(checked, checked.problem->shape.x), row(static_cast<std::size_t>(checked.problem->shape.x)) {}

    LineTeam team(std::size_t bytes, int threads) {
        if (bytes > scratch.bytes()) scratch = AlignedBuffer(bytes);
        return {threads, scratch.data(), scratch.bytes()};
    }
};

// The matrices of a line solve that are the same on every line.
template <class T>
struct SharedLine {
    MatrixMemory<T> memory;
    LineMatrices<T> matrices;
    LineFactors<T> factors;
    std::vector<LineEnds<T>> ends;
    bool made = false;
};

template <class T>
class Sweeps {
public:
    Sweeps(const mesh::Checked& checked, const Launch& launch, SweepOutcome& outcome)
        : checked_(checked), problem_(*checked.problem), shape_(problem_.shape), plane_(shape_.x * shape_.y), threads_(std::max(launch.threads, 1)),
          between_(static_cast<T*>(launch.scratch)), far_(shape_.points() * static_cast<std::int64_t>(sizeof(T)) > far_bytes), outcome_(outcome), failed_(static_cast<std::size_t>(shape_.meshes)) {
        for (int k = 0; k < threads_; ++k) workers_.emplace_back(checked);
        for (const CheckedSweep& one : checked.sweeps) {
            passes_.push_back(passes_of(one, problem_));
            shared_.emplace_back(one.sweep->lines.size());
        }
    }

    bool run(std::size_t number, std::int64_t step) {
        one_ = &checked_.sweeps[number];
        shared_now_ = &shared_[number];
        step_ = step;
        for (std::size_t k = 0; k < one_->sweep->lines.size(); ++k) make_shared(k);
        for (const Pass& pass : passes_[number]) over_blocks(pass);
        if (outcome_.failures > 0) outcome_.sweep = static_cast<int>(number), outcome_.step = step;
        return outcome_.failures == 0;
    }

private:
    using Points = std::array<T*, 3>;

    bool same_on_every_line(const LineSolve& line) const { return !line.coefficients || line.same_on_every_line; }
    const Sides& sides(const LineSolve& line) const { return one_->sweep->solution[static_cast<std::size_t>(line.axis)]; }
    bool ring(const LineSolve& line) const { return sides(line).low.edge == Edge::periodic && shape_.along(line.axis) > 2; }

    // Along y and z the function is asked for one point at a time.
    void make_shared(std::size_t k) {
        const LineSolve& line = one_->sweep->lines[k];
        SharedLine<T>& shared = (*shared_now_)[k];
        if (!same_on_every_line(line) || (shared.made && !line.coefficients)) return;
        Worker<T>& worker = workers_[0];
        const std::int64_t n = shape_.along(line.axis);
        LineMatrices<T>& m = shared.matrices = shared.memory.matrices(n, 1, ring(line));
        for (std::int64_t i = 0; i < n && !line.coefficients; ++i)
            m.lower[i] = static_cast<T>(line.constant[0]), m.diag[i] = static_cast<T>(line.constant[1]), m.upper[i] = static_cast<T>(line.constant[2]);
        if (line.coefficients && line.axis == 0) evaluate(worker, line.coefficients, one_->coefficients[k], 0, 0, 0, 0, n, {m.lower, m.diag, m.upper});
        for (std::int64_t i = 0; i < n && line.coefficients && line.axis > 0; ++i)
            evaluate(worker, line.coefficients, one_->coefficients[k], 0, line.axis == 2 ? i : 0, line.axis == 1 ? i : 0, 0, 1, {m.lower + i, m.diag + i, m.upper + i});
        const LineShape lines{.n = n};
        close_lines(m, lines, sides(line), worker.team(line_scratch(lines, m, 1), 1), shared.ends);
        shared.factors = factor_line(n, m.lower, m.diag, m.upper);
        if (shared.factors.usable()) m.factors = &shared.factors;
        shared.made = true;
    }

    void evaluate(Worker<T>& worker, const PointFunction& function, const mesh::Access& access, std::int64_t mesh, std::int64_t z, std::int64_t y,
                  std::int64_t x, std::int64_t count, const Points& out, const T* solution = nullptr) {
        worker.rows.run(function, access, mesh, z, y, x, count, step_, solution, out);
    }

    // Rows to come, into the level that this processor is best asked for: requests for the first one hold its few miss buffers on Zen 4.
    void ask_for(const T* p) const {
        if (second_level_) __builtin_prefetch(p, 0, 2);
        else __builtin_prefetch(p);
    }

    // ---- blocks ----

    std::vector<Block> blocks_of(const Pass& pass) const {
        std::int64_t words = 1;
        for (std::size_t k = pass.first_line; k < pass.end_line; ++k)
            if (!same_on_every_line(one_->sweep->lines[k])) words = ring(one_->sweep->lines[k]) ? 6 : std::max<std::int64_t>(words, 4);
        const std::int64_t values = block_bytes / static_cast<std::int64_t>(sizeof(T)) / words;
        std::vector<Block> blocks;
        if (!pass.columns) {
            const std::int64_t planes = shape_.meshes * shape_.z;
            const std::int64_t shared_out = (planes + 4 * threads_ - 1) / (4 * threads_), at_once = std::clamp<std::int64_t>(values / plane_, 1, std::max<std::int64_t>(shared_out, 1));
            for (std::int64_t p = 0; p < planes; p += at_once) blocks.push_back({.first_row = p * shape_.y, .end_row = std::min(p + at_once, planes) * shape_.y});
            return blocks;
        }
        // Whole lines of the cache, several of them, so that the columns' rows are not too short for the memory.
        const std::int64_t wide = std::max<std::int64_t>(values / shape_.z / 64 * 64, 64);
        const std::int64_t rows = std::max<std::int64_t>(wide / shape_.x, 1), across = std::min(wide, shape_.x);
        for (std::int64_t m = 0; m < shape_.meshes; ++m)
            for (std::int64_t y = 0; y < shape_.y; y += rows)
                for (std::int64_t x = 0; x < shape_.x; x += across)
                    blocks.push_back({.mesh = m, .y0 = y, .y1 = std::min(y + rows, shape_.y), .x0 = x, .x1 = std::min(x + across, shape_.x)});
        return blocks;
    }

    // Each block by one thread; or, where blocks are few, all threads on one after the other.
    void over_blocks(const Pass& pass) {
        const std::vector<Block> blocks = blocks_of(pass);
        const auto count = static_cast<std::int64_t>(blocks.size());
        if (count < threads_) {
            for (const Block& block : blocks) over_block(pass, block, workers_[0], threads_);
            return;
        }
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
        for (std::int64_t b = 0; b < count; ++b) over_block(pass, blocks[static_cast<std::size_t>(b)], workers_[static_cast<std::size_t>(omp_get_thread_num())], 1);
    }

    void over_block(const Pass& pass, const Block& block, Worker<T>& worker, int threads) {
        if (pass.columns && failed_[static_cast<std::size_t>(block.mesh)]) return;
        const std::int64_t rows = pass.columns ? shape_.z * (block.y1 - block.y0) : block.end_row - block.first_row;
        const std::size_t bytes = static_cast<std::size_t>(rows * pitch(pass.columns, block)) * sizeof(T);
        if (bytes > worker.values.bytes()) worker.values = AlignedBuffer(bytes);
        T* const values = static_cast<T*>(worker.values.data());
        std::size_t next = pass.first_line;
        if (pass.rhs && threads == 1 && next < pass.end_line && one_->sweep->lines[next].axis == 0) {
            by_strips(next++, block, values, worker);
        } else if (pass.rhs) {
            right_hand_side(block, values, threads);
        } else {
            take(pass, block, values, threads);
        }
        for (; next < pass.end_line; ++next) solve(next, block, values, worker, threads);
        if (pass.update) update(pass, block, values, threads);
        else give(pass, block, values, threads);
    }

    // Right-hand sides and lines along x of a few rows at a time, which stay in the first-level cache.
    void by_strips(std::size_t k, const Block& block, T* values, Worker<T>& worker) {
        const std::int64_t at_once = std::max<std::int64_t>(strip_bytes / static_cast<std::int64_t>(sizeof(T)) / shape_.x / 32 * 32, 32);
        for (std::int64_t first = block.first_row; first < block.end_row; first += at_once) {
            const Block strip{.first_row = first, .end_row = std::min(first + at_once, block.end_row)};
            T* const own = values + (first - block.first_row) * pitch(false, block);
            right_hand_side(strip, own, 1);
            solve(k, strip, own, worker, 1);
        }
    }

    // From row to row of a block: packed, but not a power of two apart, which would crowd them into few sets of the cache.
    std::int64_t pitch(bool columns, const Block& block) const {
        constexpr std::int64_t line = 64 / sizeof(T);
        const std::int64_t count = columns ? block.x1 - block.x0 : shape_.x;
        const bool one_column = columns && block.y1 - block.y0 > 1;  // rows of several y follow each other: lines of one stride
        return count % (8 * line) == 0 && !one_column ? count + line : count;
    }

    void take(const Pass& pass, const Block& block, T* values, int threads) {
        const std::int64_t x0 = pass.columns ? block.x0 : 0, count = pass.columns ? block.x1 - block.x0 : shape_.x;
        constexpr std::int64_t line = 64 / sizeof(T);
        each_row(pass.columns, block, values, threads, [&](Worker<T>&, std::int64_t mesh, std::int64_t z, std::int64_t y, T* row) {
            const T* const from = between(mesh, z, y) + x0;
            if (pass.columns)
                for (std::int64_t i = 0; i < count; i += line) ask_for(from + 2 * plane_ + i);
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

    T* between(std::int64_t mesh, std::int64_t z, std::int64_t y) const { return between_ + ((mesh * shape_.z + z) * shape_.y + y) * shape_.x; }

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

    void right_hand_side(const Block& block, T* values, int threads) {
        // The row that will be the first to be read two rows on.
        int far_row = -1, far_field = 0;
        for (int f = 0; f < one_->rhs.fields && f < checked_.solution_field(); ++f)
            if (const unsigned read = one_->rhs.field[static_cast<std::size_t>(f)].rows; read && shape_.z > 1) {
                const int row = 31 - __builtin_clz(read);
                if (row > far_row) far_row = row, far_field = f;
            }
        const AnyField& field = problem_.fields[static_cast<std::size_t>(far_field)];
        each_row(false, block, values, threads, [&](Worker<T>& worker, std::int64_t mesh, std::int64_t z, std::int64_t y, T* row) {
            if (far_row >= 0 && field.stride[0] == 1 && field.stride[1] > 0) {
                const T* const ahead = static_cast<const T*>(field.data) + mesh * field.stride[3] + (z + far_row / rows_across - max_reach) * field.stride[2] + (y + 2) * field.stride[1];
                for (std::int64_t i = 0; i < shape_.x; i += 64 / static_cast<std::int64_t>(sizeof(T))) ask_for(ahead + i);
            }
            if (one_->sweep->rhs) evaluate(worker, one_->sweep->rhs, one_->rhs, mesh, z, y, 0, shape_.x, {row});
            else worker.rows.copy(one_->sweep->target, mesh, z, y, 0, shape_.x, row);
        });
    }

    void update(const Pass& pass, const Block& block, T* values, int threads) {
        const AnyField& target = problem_.fields[static_cast<std::size_t>(one_->sweep->target)];
        const std::int64_t x0 = pass.columns ? block.x0 : 0, count = pass.columns ? block.x1 - block.x0 : shape_.x;
        each_row(pass.columns, block, values, threads, [&](Worker<T>& worker, std::int64_t mesh, std::int64_t z, std::int64_t y, T* row) {
            if (failed_[static_cast<std::size_t>(mesh)]) return;
            T* const to = static_cast<T*>(target.data) + mesh * target.stride[3] + z * target.stride[2] + y * target.stride[1] + x0 * target.stride[0];
            if (pass.columns && target.stride[0] == 1)
                for (std::int64_t i = 0; i < count; i += 64 / static_cast<std::int64_t>(sizeof(T))) ask_for(to + 2 * target.stride[2] + i);
            if (target.stride[0] == 1) {
                if (one_->sweep->update) evaluate(worker, one_->sweep->update, one_->update, mesh, z, y, x0, count, {to}, row);
                else std::copy_n(row, count, to);
                return;
            }
            const T* from = row;
            if (one_->sweep->update) {
                evaluate(worker, one_->sweep->update, one_->update, mesh, z, y, x0, count, {worker.row.data()}, row);
                from = worker.row.data();
            }
            for (std::int64_t i = 0; i < count; ++i) to[i * target.stride[0]] = from[i];
        });
    }

    // ---- lines ----

    LineShape lines_of(int axis, const Block& block) const {
        const std::int64_t rows = block.end_row - block.first_row, apart = pitch(axis == 2, block);
        if (axis == 0) return {.n = shape_.x, .row_stride = 1, .outer = rows, .outer_stride = apart};
        if (axis == 1) return {.n = shape_.y, .row_stride = apart, .outer = rows / shape_.y, .outer_stride = shape_.y * apart, .inner = shape_.x};
        return {.n = shape_.z, .row_stride = (block.y1 - block.y0) * apart, .inner = (block.y1 - block.y0) * (block.x1 - block.x0)};
    }

    void solve(std::size_t k, const Block& block, T* values, Worker<T>& worker, int threads) {
        const LineSolve& line = one_->sweep->lines[k];
        const LineShape lines = lines_of(line.axis, block);
        LineMatrices<T> m;
        const std::vector<LineEnds<T>>* ends = &worker.ends;
        if (same_on_every_line(line)) {
            m = (*shared_now_)[k].matrices;
            ends = &(*shared_now_)[k].ends;
        } else {
            m = own_matrices(k, block, lines, worker, threads);
        }
        subtract_ends(lines, *ends, values);
        if (worker.status.size() < static_cast<std::size_t>(lines.lines())) worker.status.resize(static_cast<std::size_t>(lines.lines()));
        const LineFailure failure = solve_lines(lines, m, values, worker.status.data(), worker.team(line_scratch(lines, m, threads), threads));
        if (failure.rescued > 0 || failure.failures > 0) note(k, block, lines, failure, worker.status);
    }

    // As the lines of the block lie.
    LineMatrices<T> own_matrices(std::size_t k, const Block& block, const LineShape& lines, Worker<T>& worker, int threads) {
        const LineSolve& line = one_->sweep->lines[k];
        const bool columns = line.axis == 2;
        const std::int64_t rows = columns ? shape_.z * (block.y1 - block.y0) : block.end_row - block.first_row;
        LineMatrices<T> m = worker.matrices.matrices(rows * pitch(columns, block), lines.lines(), ring(line));
        m.row_stride = lines.row_stride, m.outer_stride = lines.outer_stride, m.inner_stride = lines.inner > 1 ? 1 : 0;
        if (lines.lines() == 1) m.outer_stride = lines.values();  // its own, not one for all
        const std::int64_t x0 = columns ? block.x0 : 0, count = columns ? block.x1 - block.x0 : shape_.x;
        each_row(columns, block, m.lower, threads, [&](Worker<T>& other, std::int64_t mesh, std::int64_t z, std::int64_t y, T* lower) {
            evaluate(other, line.coefficients, one_->coefficients[k], mesh, z, y, x0, count, {lower, m.diag + (lower - m.lower), m.upper + (lower - m.lower)});
        });
        close_lines(m, lines, sides(line), worker.team(line_scratch(lines, m, threads), threads), worker.ends);
        return m;
    }

    std::array<std::int64_t, 4> place(int axis, const Block& block, const LineShape& lines, std::int64_t number, std::int64_t row) const {  // x, y, z, mesh
        const std::int64_t o = number / lines.inner, j = number % lines.inner;
        if (axis == 2) {
            const std::int64_t across = block.x1 - block.x0;
            return {block.x0 + j % across, block.y0 + j / across, row, block.mesh};
        }
        const std::int64_t line = axis == 0 ? block.first_row + o : block.first_row + o * shape_.y, p = line / shape_.y;
        if (axis == 0) return {row, line % shape_.y, p % shape_.z, p / shape_.z};
        return {j, row, p % shape_.z, p / shape_.z};
    }

    // The first failure is that of the first line solve that has one, in the first mesh, plane, row, column.
    void note(std::size_t k, const Block& block, const LineShape& lines, const LineFailure& failure, const std::vector<std::int8_t>& status) {
#pragma omp critical(trifold_mesh_failure)
        {
            outcome_.rescued += failure.rescued;
            const int axis = one_->sweep->lines[k].axis;
            for (std::int64_t l = 0; l < lines.lines() && failure.failures > 0; ++l) {
                if (trifold::ok(static_cast<Reason>(status[static_cast<std::size_t>(l)]))) continue;
                const auto [x, y, z, mesh] = place(axis, block, lines, l, l == failure.first ? failure.row : -1);
                // Whichever block is done first: what failed before this line is not counted, what failed after it does not hide it.
                std::atomic<int>& since = failed_[static_cast<std::size_t>(mesh)];
                if (since != 0 && since < static_cast<int>(k + 1)) continue;
                since = static_cast<int>(k + 1);
                ++outcome_.failures;
                const std::array<std::int64_t, 5> rank{static_cast<std::int64_t>(k), mesh, axis == 2 ? 0 : z, axis == 1 ? 0 : y, axis == 0 ? 0 : x};
                if (first_ != none && first_ < rank) continue;
                first_ = rank;
                outcome_.reason = static_cast<Reason>(status[static_cast<std::size_t>(l)]);
                outcome_.axis = axis, outcome_.mesh = mesh, outcome_.x = x, outcome_.y = y, outcome_.z = z;
            }
        }
    }

    static constexpr std::array<std::int64_t, 5> none{-1, -1, -1, -1, -1};

    const mesh::Checked& checked_;
    const MeshProblem& problem_;
    const MeshShape shape_;
    const std::int64_t plane_;
    const int threads_;
    T* const between_;  // passes: [mesh][z][y][x]
    const bool far_;    // it is larger than caches are
    const bool second_level_ = devices::asks_second_level();
    SweepOutcome& outcome_;
    std::vector<std::atomic<int>> failed_;  // per mesh: 1 + the number of the line solve that failed
    std::deque<Worker<T>> workers_;
    std::vector<std::vector<Pass>> passes_;
    std::vector<std::vector<SharedLine<T>>> shared_;  // per sweep and line solve
    std::array<std::int64_t, 5> first_ = none;

    const CheckedSweep* one_ = nullptr;
    std::vector<SharedLine<T>>* shared_now_ = nullptr;
    std::int64_t step_ = 0;
};

template <class T>
void run(const mesh::Checked& checked, std::int64_t first_step, std::int64_t steps, const Launch& launch, SweepOutcome& outcome) {
    Sweeps<T> sweeps(checked, launch, outcome);
    for (std::int64_t step = first_step; step < first_step + steps; ++step)
        for (std::size_t s = 0; s < checked.sweeps.size(); ++s)
            if (!sweeps.run(s, step)) return;
}

}  // namespace

std::size_t mesh_bytes(const mesh::Checked& checked, int) {
    for (const CheckedSweep& one : checked.sweeps)
        if (passes_of(one, *checked.problem).size() > 1) return static_cast<std::size_t>(checked.problem->shape.points()) * size_of(checked.dtype);
    return 0;
}

void mesh_sweep(const mesh::Checked& checked, std::int64_t first_step, std::int64_t steps, const Launch& launch, SweepOutcome& outcome) {
    outcome = {};
    outcome.device = "cpu";
    outcome.reason = Reason::exact;
    if (checked.dtype == DType::f32) run<float>(checked, first_step, steps, launch, outcome);
    else run<double>(checked, first_step, steps, launch, outcome);
}

}  // namespace trifold::cpu
