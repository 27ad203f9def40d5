// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/sweep.hpp"

#include <memory>

#include "backends/cpu/mesh/kept.hpp"
#include "backends/cpu/mesh/plane.hpp"

namespace trifold::cpu {
namespace {

using mesh::CheckedSweep;
using mesh::LineEnds;
using tridiagonal::Launch;

// Factors of matrices that vary are kept in as much: from further away they take as long as to be made again. (Rings would have to be closed anew too.)
constexpr std::size_t kept_bytes = std::size_t{8} << 20, kept_bytes_of_rings = std::size_t{16} << 20;

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
class Sweeps : Plane<T> {
    using Base = Plane<T>;
    using Base::checked_, Base::problem_, Base::shape_, Base::threads_, Base::far_, Base::failed_, Base::workers_, Base::one_, Base::star_, Base::step_;
    using Base::evaluate, Base::ask_for, Base::pitch, Base::between, Base::target, Base::take, Base::give, Base::each_row, Base::right_hand_side, Base::update, Base::lines_of;
    using typename Base::Points;

public:
    Sweeps(const mesh::Checked& checked, const Launch& launch, SweepOutcome& outcome) : Base(checked, launch), outcome_(outcome) {
        for (const CheckedSweep& one : checked.sweeps) {
            passes_.push_back(passes_of(one, problem_));
            stars_.push_back(star_of<T>(one, problem_));
            shared_.emplace_back(one.sweep->lines.size());
            kept_.emplace_back(one.sweep->lines.size());
        }
    }

    /// Before the first step: matrices that are the same in all of them and in all meshes are eliminated once, where that stays in cache. This must not depend on the number of meshes or
    /// steps, since roundings do.
    void keep(std::int64_t first_step) {
        step_ = first_step;
        const auto each = [&](auto visit) {
            for (std::size_t s = 0; s < checked_.sweeps.size(); ++s) {
                one_ = &checked_.sweeps[s];
                for (std::size_t k = 0; k < one_->sweep->lines.size(); ++k)
                    if (const LineSolve& line = one_->sweep->lines[k]; !same_on_every_line(line) && unchanging(line, one_->coefficients[k])) visit(line, one_->coefficients[k], kept_[s][k]);
            }
        };
        std::size_t bytes = 0, most = kept_bytes;
        each([&](const LineSolve& line, const mesh::Access&, auto&) { bytes += KeptLines<T>::bytes(shape_, ring(line)), most = ring(line) ? kept_bytes_of_rings : most; });
        if (bytes > most) return;
        each([&](const LineSolve& line, const mesh::Access& access, std::unique_ptr<KeptLines<T>>& kept) {
            std::unique_ptr<KeptLines<T>> made = std::make_unique<KeptLines<T>>(shape_, line.axis, ring(line));
            for (std::int64_t r = 0; r < shape_.y * shape_.z; ++r)
                evaluate(workers_[0], line.coefficients, access, 0, r / shape_.y, r % shape_.y, 0, shape_.x, {made->lower() + r * shape_.x, made->diag() + r * shape_.x, made->upper() + r * shape_.x});
            if (made->eliminate(sides(line))) kept = std::move(made);
        });
    }

    bool run(std::size_t number, std::int64_t step) {
        one_ = &checked_.sweeps[number], star_ = stars_[number];
        shared_now_ = &shared_[number], kept_now_ = &kept_[number];
        step_ = step;
        for (std::size_t k = 0; k < one_->sweep->lines.size(); ++k) make_shared(k);
        if (!solid_fuses(number) || !solid(number))
            for (const Pass& pass : passes_[number]) over_blocks(pass);
        if (outcome_.failures > 0) outcome_.sweep = static_cast<int>(number), outcome_.step = step;
        return outcome_.failures == 0;
    }

private:
    bool same_on_every_line(const LineSolve& line) const { return !line.coefficients || line.same_on_every_line; }
    const Sides& sides(const LineSolve& line) const { return one_->sweep->solution[static_cast<std::size_t>(line.axis)]; }
    bool ring(const LineSolve& line) const { return sides(line).low.edge == Edge::periodic && shape_.along(line.axis) > 2; }

    bool unchanging(const LineSolve& line, const mesh::Access& read) const {
        if (mesh::mentions(line.coefficients, "step") || mesh::mentions(line.coefficients, "mesh")) return false;
        for (std::size_t f = 0; f < problem_.fields.size(); ++f) {
            if (read.field[f].rows == 0) continue;
            if (problem_.fields[f].stride[3] != 0) return false;
            for (const CheckedSweep& one : checked_.sweeps)
                if (problem_.fields[static_cast<std::size_t>(one.sweep->target)].data == problem_.fields[f].data) return false;
        }
        return true;
    }

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

    // ---- blocks ----

    std::vector<Block> blocks_of(const Pass& pass) const {
        std::int64_t words = 1;
        for (std::size_t k = pass.first_line; k < pass.end_line; ++k)
            if (!same_on_every_line(one_->sweep->lines[k])) words = ring(one_->sweep->lines[k]) ? 6 : std::max<std::int64_t>(words, 4);
        const std::int64_t values = block_bytes / static_cast<std::int64_t>(sizeof(T)) / words;
        std::vector<Block> blocks;
        if (!pass.columns) {
            const std::int64_t planes = shape_.meshes * shape_.z;
            const std::int64_t shared_out = (planes + 4 * threads_ - 1) / (4 * threads_), at_once = std::clamp<std::int64_t>(values / (shape_.x * shape_.y), 1, std::max<std::int64_t>(shared_out, 1));
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

    // Few planes of one matrix an axis: sooner each by a thread than by all in turn.
    bool by_one_each(const Pass& pass, std::int64_t count) const {
        if (planes_fuse(pass)) return this->planes_by_one_each(count, threads_);
        bool shared = pass.rhs && !pass.columns && pass.end_line == pass.first_line + 2;
        for (std::size_t k = pass.first_line; shared && k < pass.end_line; ++k) shared = same_on_every_line(one_->sweep->lines[k]);
        return shared && this->planes_apart_by_one_each(count);
    }

    // Each block by one thread; or, where blocks are few, all threads on one after the other.
    void over_blocks(const Pass& pass) {
        const std::vector<Block> blocks = blocks_of(pass);
        const auto count = static_cast<std::int64_t>(blocks.size());
        if (count < threads_ && !by_one_each(pass, count)) {
            for (const Block& block : blocks) over_block(pass, block, workers_[0], threads_);
            return;
        }
        if (count == 1) return over_block(pass, blocks[0], workers_[0], 1);
#pragma omp parallel for schedule(dynamic) num_threads(static_cast<int>(std::min<std::int64_t>(count, threads_)))
        for (std::int64_t b = 0; b < count; ++b) over_block(pass, blocks[static_cast<std::size_t>(b)], workers_[static_cast<std::size_t>(omp_get_thread_num())], 1);
    }

    void over_block(const Pass& pass, const Block& block, Worker<T>& worker, int threads) {
        if (pass.columns && failed_[static_cast<std::size_t>(block.mesh)]) return;
        const std::int64_t rows = pass.columns ? shape_.z * (block.y1 - block.y0) : block.end_row - block.first_row;
        const bool planes = planes_fuse(pass) && (threads == 1 || this->far_plane(threads));
        T* const values = worker.room((planes ? rows + 1 : rows) * pitch(pass.columns, block));
        if (planes) return fused_planes(pass, block, values, worker, threads);
        if (threads == 1 && columns_fuse(pass)) return fused_columns(pass, block, values, worker);
        one_by_one(pass, block, values, worker, threads);
    }

    void one_by_one(const Pass& pass, const Block& block, T* values, Worker<T>& worker, int threads) {
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

    // ---- several things at once (fused.hpp): where anything is not finite, the same one by one finds what and where ----

    bool simple(std::size_t k, int axis) const {
        const SharedLine<T>& shared = (*shared_now_)[k];
        return one_->sweep->lines[k].axis == axis && same_on_every_line(one_->sweep->lines[k]) && shared.matrices.factors && !shared.matrices.ring && shared.ends[0].low == 0 &&
               shared.ends[0].high == 0;
    }

    bool solid_fuses(std::size_t number) const {
        return passes_[number].size() == 2 && one_->sweep->lines.size() == 3 && shape_.x >= Base::line_values && simple(0, 0) && simple(1, 1) && simple(2, 2);
    }

    // False: something is not finite, and no field has been changed.
    bool solid(std::size_t number) {
        const auto factors = [&](std::size_t k) -> const LineFactors<T>& { return *shared_[number][k].matrices.factors; };
        if (!this->up(factors(0), factors(1), factors(2))) return false;
        this->down(factors(1), factors(2), [&](std::size_t k, const Block& part, const T* first, Worker<T>& worker) { name_overflow(k, part, first, worker); });
        return true;
    }

    bool planes_fuse(const Pass& pass) const {
        return pass.rhs && !pass.columns && pass.end_line == pass.first_line + 2 && simple(pass.first_line, 0) && simple(pass.first_line + 1, 1) && shape_.x >= Base::line_values;
    }

    bool columns_fuse(const Pass& pass) const { return !pass.rhs && pass.columns && pass.update && pass.end_line == pass.first_line + 1 && simple(pass.first_line, 2); }

    // Behind the block's rows lies one more.
    void fused_planes(const Pass& pass, const Block& block, T* plane, Worker<T>& worker, int threads) {
        const LineFactors<T>&along_x = *(*shared_now_)[pass.first_line].matrices.factors, &along_y = *(*shared_now_)[pass.first_line + 1].matrices.factors;
        T* const row = plane + (block.end_row - block.first_row) * pitch(false, block);
        for (std::int64_t first = block.first_row; first < block.end_row; first += shape_.y) {
            const std::int64_t p = first / shape_.y, mesh = p / shape_.z, z = p % shape_.z;
            bool good = this->plane_forwards(along_x, along_y, mesh, z, plane, row, threads, worker);
            if (good && !pass.update) good = this->plane_backwards_between(along_y, mesh, z, plane, threads);
            const Block own{.first_row = first, .end_row = first + shape_.y};
            if (!good) {
                one_by_one(pass, own, plane, worker, threads);
                continue;
            }
            if (!pass.update) continue;
            this->plane_backwards_updating(along_y, mesh, z, plane, row, threads, worker);
            name_overflow(pass.first_line + 1, own, row, worker);
        }
    }

    void fused_columns(const Pass& pass, const Block& block, T* values, Worker<T>& worker) {
        const LineFactors<T>& f = *(*shared_now_)[pass.first_line].matrices.factors;
        const LineShape lines = lines_of(2, block);
        const std::int64_t count = block.x1 - block.x0;
        const std::int64_t on = std::max<std::int64_t>(Base::ahead_bytes / static_cast<std::int64_t>(sizeof(T)) / lines.inner, 2);
        const auto each = [&](std::int64_t z, auto row) {
            for (std::int64_t y = block.y0; y < block.y1; ++y) row(y, values + z * lines.row_stride + (y - block.y0) * count);
        };
        for (std::int64_t z = 0; z < shape_.z; ++z)
            each(z, [&](std::int64_t y, T* w) {
                const T* const r = between(block.mesh, z, y) + block.x0;
                ask_for(r + on * shape_.y * this->between_pitch(), count);
                row_forwards(f.scale[static_cast<std::size_t>(z)], f.lower[static_cast<std::size_t>(z)], count, r, z > 0 ? w - lines.row_stride : r, w);
            });
        if (!all_finite(lines.inner, values + (shape_.z - 1) * lines.row_stride)) return one_by_one(pass, block, values, worker, 1);
        for (std::int64_t z = shape_.z - 1; z >= 0; --z)
            each(z, [&](std::int64_t y, T* w) {
                if (z + 1 < shape_.z) row_backwards(f.upper[static_cast<std::size_t>(z)], count, w, w + lines.row_stride, w);
                ask_for(target(block.mesh, z - on, y, block.x0), count);
                update(worker, block.mesh, z, y, block.x0, count, w);
            });
        name_overflow(pass.first_line, block, values, worker);
    }

    // Lines that are finite forwards and not backwards; their update has been done.
    void name_overflow(std::size_t k, const Block& block, const T* values, Worker<T>& worker) {
        const LineShape lines = lines_of(one_->sweep->lines[k].axis, block);
        if (all_finite(lines.inner, values)) return;
        LineFailure failure{.reason = Reason::not_finite};
        worker.status.resize(std::max(worker.status.size(), static_cast<std::size_t>(lines.inner)));
        for (std::int64_t l = 0; l < lines.inner; ++l) {
            const bool bad = !std::isfinite(values[l]);
            if (bad && failure.first < 0) failure.first = l;
            failure.failures += bad;
            worker.status[static_cast<std::size_t>(l)] = static_cast<std::int8_t>(bad ? Reason::not_finite : Reason::exact);
        }
        note(k, block, lines, failure, worker.status);
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

    // ---- lines ----

    void solve(std::size_t k, const Block& block, T* values, Worker<T>& worker, int threads) {
        const LineSolve& line = one_->sweep->lines[k];
        const LineShape lines = lines_of(line.axis, block);
        if (worker.status.size() < static_cast<std::size_t>(lines.lines())) worker.status.resize(static_cast<std::size_t>(lines.lines()));
        if (const KeptLines<T>* const kept = (*kept_now_)[k].get()) {
            if (const LineFailure failure = solve_kept(*kept, line.axis, block, lines, values, worker, threads); failure.failures > 0) note(k, block, lines, failure, worker.status);
            return;
        }
        LineMatrices<T> m;
        const std::vector<LineEnds<T>>* ends = &worker.ends;
        if (same_on_every_line(line)) {
            m = (*shared_now_)[k].matrices;
            ends = &(*shared_now_)[k].ends;
        } else {
            m = own_matrices(k, block, lines, worker, threads);
        }
        subtract_ends(lines, *ends, values);
        const LineFailure failure = solve_lines(lines, m, values, worker.status.data(), worker.team(line_scratch(lines, m, threads), threads));
        if (failure.rescued > 0 || failure.failures > 0) note(k, block, lines, failure, worker.status);
    }

    // Pieces of one mesh, or of one plane, as the kept factors lie.
    LineFailure solve_kept(const KeptLines<T>& kept, int axis, const Block& block, const LineShape& lines, T* values, Worker<T>& worker, int threads) {
        const std::int64_t of_mesh = axis == 0 ? shape_.y * shape_.z : shape_.x * shape_.z, begin = axis == 0 ? block.first_row : axis == 1 ? block.first_row / shape_.y * shape_.x : block.y0 * shape_.x + block.x0;
        const std::int64_t count = lines.lines(), together = axis == 1 ? lines.inner : count, apart = axis == 0 ? lines.outer_stride : 1, each = axis == 0 ? 32 : std::max<std::int64_t>(64, (together + threads - 1) / threads);
        const std::size_t buffer = (static_cast<std::size_t>(line_buffer(lines.n)) * sizeof(T) + 63) / 64 * 64;
        const LineTeam team = worker.team(axis == 0 ? buffer * static_cast<std::size_t>(threads) : 0, threads);
        LineFailure all;
        const auto piece = [&](std::int64_t l, std::int64_t end, int thread) {
            while (l < end) {
                const std::int64_t own = axis == 2 ? begin + l : (begin + l) % of_mesh, stop = std::min({end, l + (axis == 2 ? count : axis == 0 ? of_mesh - own : lines.inner - l % lines.inner)});
                T* const at = values + (axis == 1 ? l / lines.inner * lines.outer_stride + l % lines.inner : l * apart);
                LineFailure one = kept.solve(own, stop - l, lines.row_stride, apart, at, worker.status.data() + l, reinterpret_cast<T*>(static_cast<char*>(team.scratch) + static_cast<std::size_t>(thread) * (axis == 0 ? buffer : 0)));
                if (one.failures > 0) {
#pragma omp critical(trifold_mesh_kept)
                    {
                        all.failures += one.failures, all.reason = one.reason;
                        if (all.first < 0 || l + one.first < all.first) all.first = l + one.first;
                    }
                }
                l = stop;
            }
        };
        if (threads == 1) piece(0, count, 0);
        else {
            const std::int64_t parts = (count + each - 1) / each;
#pragma omp parallel for schedule(static) num_threads(threads)
            for (std::int64_t part = 0; part < parts; ++part) piece(part * each, std::min((part + 1) * each, count), omp_get_thread_num());
        }
        return all;
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

    SweepOutcome& outcome_;
    std::vector<std::vector<Pass>> passes_;
    std::vector<Star<T>> stars_;  // per sweep
    std::vector<std::vector<SharedLine<T>>> shared_;  // per sweep and line solve
    std::vector<std::vector<std::unique_ptr<KeptLines<T>>>> kept_;  // likewise; none where matrices are made where they are used
    std::array<std::int64_t, 5> first_ = none;

    std::vector<SharedLine<T>>* shared_now_ = nullptr;
    std::vector<std::unique_ptr<KeptLines<T>>>* kept_now_ = nullptr;
};

template <class T>
void run(const mesh::Checked& checked, std::int64_t first_step, std::int64_t steps, const Launch& launch, SweepOutcome& outcome) {
    Sweeps<T> sweeps(checked, launch, outcome);
    sweeps.keep(first_step);
    for (std::int64_t step = first_step; step < first_step + steps; ++step)
        for (std::size_t s = 0; s < checked.sweeps.size(); ++s)
            if (!sweeps.run(s, step)) return;
}

}  // namespace

std::size_t mesh_bytes(const mesh::Checked& checked, int) {
    for (const CheckedSweep& one : checked.sweeps)
        if (passes_of(one, *checked.problem).size() > 1) return static_cast<std::size_t>(checked.dtype == DType::f32 ? between_values<float>(checked.problem->shape) * 4 : between_values<double>(checked.problem->shape) * 8);
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
