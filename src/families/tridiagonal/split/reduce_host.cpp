// SPDX-License-Identifier: BSD-3-Clause
// Chunks reduced and finished by a device's own verbs, in the host's memory.
//
// The verbs take a system that begins and ends. A chunk within a longer one is given a piece more at either end: its own pieces are then what they would be in
// the whole. What the outer pieces become is not used, and nothing is stored there: one of their ends is NaN, which no device accepts. In place, in the second
// pass, a neighbour may be storing x where such a piece reads its right-hand side: it may read either.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/aligned_buffer.hpp"
#include "families/tridiagonal/split/coupled.hpp"

namespace trifold::tridiagonal::split {
namespace {

class HostReducer : public Reducer {
public:
    HostReducer(Shared& shared, int lane, const Part& part, int threads, bool rebuilds, std::int64_t piece_rows, devices::ScratchArena& scratch, const Trouble& trouble,
                Done& done)
        : shared_(shared), lane_(lane), part_(part), threads_(threads), aside_(shared.system.in_place && !rebuilds), piece_(piece_rows), scratch_(scratch),
          call_(trouble), done_(done) {}

    bool reduce() override {
        Chunk* chunk = nullptr;
        while (shared_.board.take(lane_, true, chunk) == Board::Taken::chunk) {
            const double begin = shared_.seconds();
            Reduced out;
            out.chunk = chunk;
            bool good = false, singular = false;
            try {
                good = call_(failure_, [&] { return reduce_one(out, singular); });
            } catch (const std::exception& error) {
                failure_.say(ErrorCode::bad_input, error.what());
            }
            if (!good) return leave(*chunk);
            if (singular) {
                Outcome outcome;
                outcome.reason = Reason::singular;
                shared_.board.give_back(*chunk);
                shared_.board.stop(outcome);
                return true;
            }
            const double end = shared_.seconds();
            done_.add(lane_, 0, "kernel", *chunk, begin, end, needed_bytes(shared_.system, chunk->rows));
            done_.share.busy_s += end - begin;
            reduced.push_back(std::move(out));
            Outcome outcome;
            outcome.reason = Reason::exact;
            shared_.board.finish(*chunk, outcome, end - begin);
        }
        return true;
    }

    bool reduce_again(Reduced& one) override {
        bool singular = false;
        return call_(failure_, [&] { return reduce_one(one, singular); }) && !singular;
    }

    bool finish(Reduced& one, const double* boundary, bool& bad) override {
        const double begin = shared_.seconds();
        bool good = false;
        try {
            good = call_(failure_, [&] { return finish_one(one, boundary, bad); });
        } catch (const std::exception& error) {
            failure_.say(ErrorCode::bad_input, error.what());
        }
        if (!good) return why = failure_.message, false;
        const double end = shared_.seconds();
        done_.add(lane_, 0, "kernel", *one.chunk, begin, end, needed_bytes(shared_.system, one.chunk->rows));
        done_.share.busy_s += end - begin;
        done_.share.rows += one.chunk->rows, done_.share.chunks += 1;
        return true;
    }

    bool flush(bool&) override { return true; }

private:
    /// The chunk with its outer pieces.
    struct Wider {
        std::int64_t before, after;  // pieces more: 0 or 1
        System system;
        Partition partition;
    };

    Wider widen(const Chunk& chunk) const {
        const std::int64_t n = shared_.system.rows;
        Wider w;
        w.before = chunk.first > 0, w.after = chunk.first + chunk.rows < n;
        const std::int64_t first = chunk.first - w.before * piece_, end = chunk.first + chunk.rows + w.after * std::min(piece_, n - chunk.first - chunk.rows);
        w.system = slice(shared_.system, first, end - first);
        w.partition = {end - first, piece_};
        return w;
    }

    Launch launch(devices::Scratch& block, const Wider& w) {
        // The device's own choice of pieces depends on the rows; these are of the whole system.
        System shape = w.system;
        shape.rows = std::max(shape.rows, std::min(shared_.system.rows, 128 * (piece_ + 16)));
        block = scratch_.take(part_.ops->workspace(shape, Algorithm::two_pass, threads_));
        Launch out;
        out.threads = threads_;
        out.scratch = block.data(), out.scratch_bytes = block.bytes();
        out.tolerance = shared_.tolerance;
        out.device = part_.ops->number;
        out.failure = &failure_;
        return out;
    }

    bool reduce_one(Reduced& out, bool& singular) {
        const Wider w = widen(*out.chunk);
        devices::Scratch block;
        const Launch with = launch(block, w);
        const auto pieces = static_cast<std::size_t>(w.partition.chunks());
        std::vector<InterfaceRow> rows(2 * pieces);
        std::vector<std::int64_t> zero_pivot(pieces);
        part_.ops->reduce(w.system, w.partition, with, rows.data(), zero_pivot.data());
        if (failure_.code) return false;
        out.rows.assign(rows.begin() + 2 * w.before, rows.end() - 2 * w.after);
        const std::int64_t offset = out.chunk->first - w.before * piece_;
        for (std::int64_t k = w.before; k < w.partition.chunks() - w.after; ++k) {
            singular = singular || zero_pivot[static_cast<std::size_t>(k)] >= 0;
            out.pieces.push_back({offset + w.partition.first(k), w.partition.last(k) - w.partition.first(k) + 1});
        }
        return true;
    }

    bool finish_one(Reduced& one, const double* boundary, bool& bad) {
        Wider w = widen(*one.chunk);
        devices::Scratch block;
        const Launch with = launch(block, w);
        const auto own = static_cast<std::int64_t>(one.pieces.size()), pieces = w.partition.chunks();
        constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
        std::vector<double> ends(static_cast<std::size_t>(2 * pieces), nothing);
        const double* const from = boundary - w.before;  // the neighbour's last before, its first after
        std::copy_n(from, 2 * own + w.before + w.after, ends.begin() + w.before);
        std::vector<ChunkResidual> residuals(static_cast<std::size_t>(pieces));
        const std::size_t size = size_of(shared_.system.dtype), bytes = static_cast<std::size_t>(w.system.rows) * size;
        if (aside_) {
            if (store_.bytes() < bytes) store_ = AlignedBuffer(), store_ = AlignedBuffer(bytes);
            w.system.x.data = store_.data(), w.system.in_place = false;
        }
        const double accept = shared_.system.in_place ? widest * unit_roundoff(shared_.system.dtype) : std::numeric_limits<double>::infinity();
        part_.ops->finish(w.system, w.partition, with, ends.data(), accept, residuals.data());
        if (failure_.code) return false;
        for (std::int64_t k = 0; k < own; ++k) {
            Piece& piece = one.pieces[static_cast<std::size_t>(k)];
            const ChunkResidual& seen = residuals[static_cast<std::size_t>(k + w.before)];
            piece.stored = seen.stored;
            piece.before = piece.first > 0 ? boundary[2 * k - 1] : 0;
            piece.after = piece.first + piece.rows < shared_.system.rows ? boundary[2 * k + 2] : 0;
            if (!(seen.residual <= widest * unit_roundoff(shared_.system.dtype)) || !seen.stored) bad = true;
            if (aside_ && seen.stored)
                std::memcpy(slice(shared_.system, piece.first, piece.rows).x.data, static_cast<char*>(store_.data()) + static_cast<std::size_t>(piece.first - (one.chunk->first - w.before * piece_)) * size,
                            static_cast<std::size_t>(piece.rows) * size);
        }
        return true;
    }

    bool leave(Chunk& chunk) {
        why = failure_.message;
        shared_.board.retire(lane_);
        shared_.board.give_back(chunk);
        return false;
    }

    Shared& shared_;
    const int lane_;
    const Part part_;
    const int threads_;
    const bool aside_;
    const std::int64_t piece_;
    devices::ScratchArena& scratch_;
    Calls call_;
    Done& done_;
    Failure failure_;
    AlignedBuffer store_;
};

}  // namespace

std::unique_ptr<Reducer> reducer_on_host(Shared& shared, int lane, const Part& part, int threads, bool rebuilds, std::int64_t piece_rows, devices::ScratchArena& scratch,
                                         const Trouble& trouble, Done& done) {
    return std::make_unique<HostReducer>(shared, lane, part, threads, rebuilds, piece_rows, scratch, trouble, done);
}

}  // namespace trifold::tridiagonal::split
