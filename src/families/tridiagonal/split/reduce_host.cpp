// SPDX-License-Identifier: BSD-3-Clause
// Chunks reduced and finished by a device's own verbs, in the host's memory.
//
// The verbs take a system that begins and ends. A chunk within a longer one is given a piece more at either end: its own pieces are then what they would be in
// the whole. What the outer pieces become is not used, and nothing is stored there: one of their ends is NaN, which no device accepts.
//
// In place, in the second pass, a neighbour may be storing x where its piece's right-hand side was. There the chunk's own outer pieces are the ones that are not
// stored; then each of them is finished in a copy, between one piece that is the neighbour's (its matrix; for its right-hand side, which is not used, zeros) and one of
// the chunk's own.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/aligned_buffer.hpp"
#include "families/tridiagonal/split/coupled.hpp"

namespace trifold::tridiagonal::split {
namespace {

// Pieces of which all threads say what is to be said: one alone would take as long for that as all of them for some percent of the rows.
constexpr std::int64_t many = 8192;

class HostReducer : public Reducer {
public:
    HostReducer(Shared& shared, int lane, const Part& part, int threads, bool own, std::int64_t piece_rows, devices::ScratchArena& scratch, Calls call, Done& done)
        : shared_(shared), lane_(lane), part_(part), threads_(threads), own_(own), piece_(piece_rows), scratch_(scratch), call_(std::move(call)), done_(done),
          system_(shared.system), tolerance_(shared.tolerance) {}

    bool reduce() override {
        Chunk* chunk = nullptr;
        while (shared_.board.take(lane_, true, chunk) == Board::Taken::chunk) {
            const double begin = shared_.seconds();
            Reduced out;
            out.chunk = chunk;
            bool good = false, singular = false;
            try {
                good = call_.begin(failure_, shared_.board, lane_) && call_(failure_, [&, own = Rows{chunk->first, chunk->rows}] { return reduce_one(own, out, singular); });
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
        return call_(failure_, [&, own = Rows{one.chunk->first, one.chunk->rows}] { return reduce_one(own, one, singular); }) && !singular;
    }

    bool finish(Pieces& one, bool& bad) override {
        const double begin = shared_.seconds();
        bool good = false;
        try {
            one.stored.assign(static_cast<std::size_t>(one.count), 0);
            good = finish_one(one, bad);
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
    /// Of a chunk, which is the board's, and gone when a call returns whose lane was left behind.
    struct Rows {
        std::int64_t first, count;
    };

    /// The chunk with its outer pieces.
    struct Wider {
        std::int64_t before, after;  // pieces more: 0 or 1
        System system;
        Partition partition;
    };

    Wider widen(const Rows& own) const {
        const std::int64_t n = system_.rows;
        Wider w;
        w.before = own.first > 0, w.after = own.first + own.count < n;
        const std::int64_t first = own.first - w.before * piece_, end = own.first + own.count + w.after * piece_;
        w.system = slice(system_, first, end - first);
        w.partition = {end - first, piece_};
        return w;
    }

    Launch launch(devices::Scratch& block, const System& system) {
        // The device's own choice of pieces depends on the rows; these are of the whole system.
        System shape = system;
        shape.rows = std::max(shape.rows, std::min(system_.rows, 128 * (piece_ + 16)));
        block = scratch_.take(part_.ops->workspace(shape, Algorithm::two_pass, threads_));
        Launch out;
        out.threads = threads_;
        out.scratch = block.data(), out.scratch_bytes = block.bytes();
        out.tolerance = tolerance_;
        out.device = part_.ops->number;
        out.failure = &failure_;
        return out;
    }

    bool reduce_one(const Rows& own, Reduced& out, bool& singular) {
        const Wider w = widen(own);
        devices::Scratch block;
        const Launch with = launch(block, w.system);
        const std::int64_t pieces = w.partition.chunks();
        // Kept memory, with some more since the next solve's chunks are cut elsewhere: pages of fresh one would take as long as a tenth of the chunk. Nothing is copied, nor made of every piece: one thread would do that
        // while all others wait.
        const auto bytes = static_cast<std::size_t>(pieces) * (2 * sizeof(InterfaceRow) + sizeof(std::int64_t));
        out.kept = scratch_.take(bytes + bytes / 4);
        InterfaceRow* const rows = static_cast<InterfaceRow*>(out.kept.data());
        std::int64_t* const zero_pivot = reinterpret_cast<std::int64_t*>(rows + 2 * pieces);
        part_.ops->reduce(w.system, w.partition, with, rows, zero_pivot);
        if (failure_.code) return false;
        out.rows = rows + 2 * w.before;
        out.each = piece_, out.count = pieces - w.before - w.after;
        const std::int64_t* const own_pivots = zero_pivot + w.before;
        bool missing = false;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(|| : missing) if (out.count > many)
        for (std::int64_t k = 0; k < out.count; ++k) missing = missing || own_pivots[k] >= 0;
        singular = singular || missing;
        return true;
    }

    /// Some pieces of a chunk between two that are not stored, or the system's ends.
    struct Step {
        System system;
        std::int64_t from = 0, to = 0;      // pieces of the chunk that are finished
        bool before = false, after = false; // one more there
        std::int64_t pieces() const { return to - from + before + after; }
    };

    /// own pieces from … to-1 of the chunk, and one beside them where the system goes on, as the arrays have them.
    Step step(const Pieces& one, std::int64_t from, std::int64_t to) const {
        Step s;
        const Piece first = one.piece(from), last = one.piece(to - 1);
        s.from = from, s.to = to, s.before = first.first > 0, s.after = last.first + last.rows < system_.rows;
        const std::int64_t begin = first.first - s.before * piece_;
        // Beyond the piece after it, which may be the system's last and longer.
        const std::int64_t end = s.after ? last.first + last.rows + (to < one.count ? one.piece(to).rows : piece_) : last.first + last.rows;
        s.system = slice(system_, begin, end - begin);
        return s;
    }

    /// x and the right-hand side are in memory of the lane's own; zeros where the latter is a neighbour's.
    void set_aside(Step& s, const Chunk& chunk) {
        const std::size_t size = size_of(system_.dtype), bytes = static_cast<std::size_t>(s.system.rows) * size;
        if (store_.bytes() < bytes) store_ = AlignedBuffer(), store_ = AlignedBuffer(bytes);
        char* const here = static_cast<char*>(store_.data());
        if (system_.in_place) {
            const char* const from = static_cast<const char*>(s.system.rhs.data);
            const char* const base = static_cast<const char*>(system_.rhs.data);
            const auto row = (from - base) / static_cast<std::ptrdiff_t>(size);  // of its first
            const std::int64_t skip = std::max<std::int64_t>(chunk.first - row, 0), end = std::min(chunk.first + chunk.rows - row, s.system.rows);
            std::memset(here, 0, static_cast<std::size_t>(skip) * size);
            std::memcpy(here + static_cast<std::size_t>(skip) * size, from + static_cast<std::size_t>(skip) * size, static_cast<std::size_t>(end - skip) * size);
            std::memset(here + static_cast<std::size_t>(end) * size, 0, static_cast<std::size_t>(s.system.rows - end) * size);
            s.system.rhs.data = here;
        }
        s.system.x.data = here;
    }

    bool run(const Step& s, Pieces& one, bool copied, bool& bad) {
        constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
        const Partition partition{s.system.rows, piece_};
        if (partition.chunks() != s.pieces()) return failure_.say(ErrorCode::internal, "pieces of a chunk are not those of its neighbours");
        const auto pieces = static_cast<std::size_t>(s.pieces());
        const devices::Scratch kept = scratch_.take(pieces * (2 * sizeof(double) + sizeof(ChunkResidual)));
        double* const ends = static_cast<double*>(kept.data());
        ChunkResidual* const residuals = reinterpret_cast<ChunkResidual*>(ends + 2 * pieces);
        // The end of the piece before, all own ones, the end of the piece after.
        ends[0] = ends[2 * pieces - 1] = nothing;
        const double* const known = one.ends + 2 * s.from - s.before;
        const std::int64_t numbers = 2 * (s.to - s.from) + s.before + s.after;
#pragma omp parallel for num_threads(threads_) schedule(static) if (s.to - s.from > many)
        for (std::int64_t k = 0; k < numbers; ++k) ends[s.before + k] = known[k];
        const double widest_here = widest * unit_roundoff(system_.dtype), accept = system_.in_place ? widest_here : std::numeric_limits<double>::infinity();
        const bool good = call_(failure_, [&] {
            devices::Scratch block;
            const Launch with = launch(block, s.system);
            part_.ops->finish(s.system, partition, with, ends, accept, residuals);
            return failure_.code == 0;
        });
        if (!good) return false;
        const std::size_t size = size_of(system_.dtype);
        const std::int64_t begin = one.piece(s.from).first - s.before * piece_;
        bool refused = false;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(|| : refused) if (s.to - s.from > many)
        for (std::int64_t k = s.from; k < s.to; ++k) {
            const ChunkResidual& seen = residuals[k - s.from + s.before];
            one.stored[static_cast<std::size_t>(k)] = seen.stored;
            refused = refused || !(seen.residual <= widest_here) || !seen.stored;
            if (!copied || !seen.stored) continue;
            const Piece piece = one.piece(k);
            std::memcpy(slice(system_, piece.first, piece.rows).x.data, static_cast<char*>(store_.data()) + static_cast<std::size_t>(piece.first - begin) * size, static_cast<std::size_t>(piece.rows) * size);
        }
        bad = bad || refused;
        return true;
    }

    bool finish_one(Pieces& one, bool& bad) {
        Step whole = step(one, 0, one.count);
        if (own_ && !system_.in_place) return run(whole, one, false, bad);
        if (!own_ || one.count < 3) {
            if (!system_.in_place) whole.system.in_place = false;
            set_aside(whole, *one.chunk);
            return run(whole, one, true, bad);
        }
        const std::int64_t first = whole.before, end = one.count - whole.after;
        if (!run(step(one, first, end), one, false, bad)) return false;
        for (const bool at_front : {true, false}) {
            if (at_front ? !whole.before : !whole.after) continue;
            Step edge = at_front ? step(one, 0, 1) : step(one, one.count - 1, one.count);
            set_aside(edge, *one.chunk);
            if (!run(edge, one, true, bad)) return false;
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
    const bool own_;
    const std::int64_t piece_;
    devices::ScratchArena& scratch_;
    Calls call_;
    Done& done_;
    const System system_;
    const double tolerance_;
    Failure failure_;
    AlignedBuffer store_;
};

}  // namespace

std::unique_ptr<Reducer> reducer_on_host(Shared& shared, int lane, const Part& part, int threads, bool own, std::int64_t piece_rows, devices::ScratchArena& scratch,
                                         Calls call, Done& done) {
    return std::make_unique<HostReducer>(shared, lane, part, threads, own, piece_rows, scratch, std::move(call), done);
}

}  // namespace trifold::tridiagonal::split
