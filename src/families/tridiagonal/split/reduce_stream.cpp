// SPDX-License-Identifier: BSD-3-Clause
// Chunks reduced and finished on a device with memory of its own. Words per row: 4 in, 1 out over the link; there 15 for the three solves, 4 to
// combine them.
//
//   first pass    to:   | chunk 0 | chunk 1 | …       two chunks' operands at a time; y, g and h of all stay
//                 run:            | y g h 0 | y g h 1 | …
//   second pass   run:  | x 0 | x 1 | …
//                 from:       | x 0 | x 1 | …
//
// The two right-hand sides of one unit are parts of one array of zeros with a 1 in the middle.
#include <algorithm>
#include <array>
#include <cmath>

#include "families/tridiagonal/split/coupled.hpp"
#include "families/tridiagonal/split/stream_link.hpp"

namespace trifold::tridiagonal::split {
namespace {

constexpr int under_way = 2;
constexpr double share_of_memory = 0.8;
constexpr std::size_t zero_block = std::size_t{1} << 20;

// The spikes' parts of x may be so many times larger than x itself; each is good to a few roundings of its own.
constexpr double most_cancelled = 8;

// Per chunk that stays, and per chunk that is under way.
struct Sizes {
    std::size_t array, pass, scratch, zeros, outcome;

    Sizes(const System& system, const Ops& ops, std::int64_t rows) {
        array = align(static_cast<std::size_t>(rows) * size_of(system.dtype));
        scratch = align(scratch_up_to(system, ops, rows));
        outcome = align(ops.outcome_bytes);
        const Operands operands(system);
        int arrays = 0;
        for (int k = 0; k < 4; ++k) arrays += operands.array(k);
        pass = static_cast<std::size_t>(arrays) * array + scratch + 3 * outcome;
        zeros = 2 * array;
    }
};

/// y, g and h of one chunk, `array` bytes apart, and behind them how large they are.
struct Stay {
    char* y = nullptr;
    std::size_t array = 0;
    char* of(int k) const { return y + static_cast<std::size_t>(k) * array; }
    double* sizes() const { return reinterpret_cast<double*>(y + 3 * array); }
    std::size_t bytes() const { return 3 * array + 256; }
};

class StreamReducer : public Reducer {
public:
    StreamReducer(Shared& shared, int lane, const Part& part, std::int64_t rows, int copiers, devices::StreamKits& kits, Calls call, Done& done)
        : kits_(kits), kit_(kits.take(*part.runtime, part.number)), part_(part), link_(std::make_unique<StreamLink>(shared, lane, part_, copiers, *kit_, std::move(call), 1, done)), rows_(rows),
          sizes_(shared.system, *part.ops, rows) {}

    ~StreamReducer() override {
        if (begun_) link_->drain();
        for (Slot& slot : slots_) link_->release(slot);
        link_.reset();
        if (why.empty() || !begun_) kits_.give_back(std::move(kit_));
    }

    bool reduce() override {
        if (!link_->begin()) return leave();
        begun_ = true;
        if (!prepare()) return leave();
        for (int next = 0;; next = (next + 1) % under_way) {
            Slot& slot = slots_[static_cast<std::size_t>(next)];
            if (slot.chunk && !collect(slot)) return leave();
            if (stopped_) return true;
            const bool empty = !slots_[0].chunk && !slots_[1].chunk, full = room_ < 3 * sizes_.array + 256;
            Chunk* chunk = nullptr;
            if (!full && link_->shared.board.take(link_->lane, empty, chunk) == Board::Taken::chunk) {
                slot.chunk = chunk;
                if (!enqueue(slot)) return leave();
            } else if (empty) {
                if (full) link_->shared.board.retire(link_->lane);
                return true;
            }
        }
    }

    bool finish(Reduced& one, const double* boundary, bool&) override {
        const std::size_t which = static_cast<std::size_t>(&one - reduced.data());
        Slot& slot = slots_[which % under_way];
        if (slot.chunk && !retrieve(slot)) return leave();
        const Chunk& chunk = *one.chunk;
        const System here = slice(link_->shared.system, chunk.first, chunk.rows);
        Piece& piece = one.pieces[0];
        piece.before = chunk.first > 0 ? boundary[-1] : 0;
        piece.after = chunk.first + chunk.rows < link_->shared.system.rows ? boundary[2] : 0;
        slot.chunk = one.chunk;
        slot.began = link_->shared.seconds();
        under_[which % under_way] = &one;
        const Stay& own = stays_[which];
        const double alpha = -coupling(here, true) * piece.before, beta = -coupling(here, false) * piece.after;
        const bool good =
            link_->device([&] { return link_->runtime.combine(link_->part.number, kit_->run, link_->shared.system.dtype, chunk.rows, own.y, own.of(1), own.of(2), alpha, beta,
                                                               own.sizes(), link_->failure); }) &&
            link_->copy(kit_->run, sizes_here(which % under_way), own.sizes(), 2 * sizeof(double)) && link_->mark(slot, solved, kit_->run) && link_->fetch(slot, own.y);
        return good || leave();
    }

    bool flush(bool&) override {
        for (Slot& slot : slots_)
            if (slot.chunk && !retrieve(slot)) return leave();
        return true;
    }

private:
    bool prepare() {
        std::size_t free = 0, total = 0;
        if (!link_->device([&] { return link_->runtime.memory_info(link_->part.number, &free, &total, link_->failure); })) return false;
        const double room = share_of_memory * static_cast<double>(free) - static_cast<double>(under_way * sizes_.pass + sizes_.zeros);
        const double all = 3.0 * static_cast<double>(link_->size) * static_cast<double>(link_->shared.system.rows) + 8.0 * static_cast<double>(sizes_.array);
        room_ = static_cast<std::size_t>(std::max(0.0, std::min(room, all))) / 256 * 256;
        std::size_t pinned = 3 * sizes_.outcome + 256;
        for (int k = 0; k < 5; ++k)
            if (link_->staged(k)) pinned += sizes_.array;
        if (room_ < 3 * sizes_.array + 256) return link_->failure.say(ErrorCode::bad_input, "its memory does not hold one chunk");
        if (!link_->prepare(room_ + under_way * sizes_.pass + sizes_.zeros, under_way * pinned + zero_block + 256)) return false;

        char *there = kit_->device_memory() + room_, *here = kit_->host_memory();
        const Operands operands(link_->shared.system);
        for (int n = 0; n < under_way; ++n) {
            Slot& slot = slots_[static_cast<std::size_t>(n)];
            slot.number = n;
            outcome_[n] = there, there += 3 * sizes_.outcome;
            scratch_[n] = there, there += sizes_.scratch;
            outcome_here_[n] = here, here += 3 * sizes_.outcome;
            numbers_here_[n] = here, here += 256;
            for (int k = 0; k < 5; ++k) {
                if (k < 4 && operands.array(k)) slot.array[k] = there, there += sizes_.array;
                if (link_->staged(k)) slot.pinned[k] = here, here += sizes_.array;
            }
        }
        zeros_ = there;
        free_ = kit_->device_memory();
        return fill_zeros(here);
    }

    // From a small block over and over: a long one of the host's would take as long as several chunks.
    bool fill_zeros(char* block) {
        const std::size_t bytes = 2 * static_cast<std::size_t>(rows_) * link_->size, middle = static_cast<std::size_t>(rows_ - 1) * link_->size;
        std::memset(block, 0, zero_block);
        for (std::size_t at = 0; at < bytes; at += zero_block)
            if (!link_->copy(kit_->run, zeros_ + at, block, std::min(zero_block, bytes - at))) return false;
        const double one = 1;
        const float one_f = 1;
        char* const there = block + zero_block;
        std::memcpy(there, link_->size == 4 ? static_cast<const void*>(&one_f) : &one, link_->size);
        return link_->copy(kit_->run, zeros_ + middle, there, link_->size);
    }

    double* sizes_here(std::size_t slot) const { return reinterpret_cast<double*>(numbers_here_[slot] + 128); }

    // lower of the first row, upper of the last one: 0 where nothing lies beyond.
    double coupling(const System& here, bool first) const {
        const Operand& operand = first ? here.lower : here.upper;
        const std::int64_t row = first ? 0 : here.rows - 1;
        const System& all = link_->shared.system;
        const Operand& whole = first ? all.lower : all.upper;
        if (operand.kind == Operand::Kind::scalar) return operand.value;
        const char* const at = static_cast<const char*>(operand.data) + static_cast<std::size_t>(row * operand.row_stride) * link_->size;
        const char* const edge = static_cast<const char*>(whole.data) + (first ? 0 : static_cast<std::size_t>((all.rows - 1) * whole.row_stride) * link_->size);
        if (at == edge) return 0;
        return all.dtype == DType::f32 ? static_cast<double>(*reinterpret_cast<const float*>(at)) : *reinterpret_cast<const double*>(at);
    }

    bool enqueue(Slot& slot) {
        const auto n = static_cast<std::size_t>(slot.number);
        const std::int64_t rows = slot.chunk->rows;
        const Stay own{free_, align(static_cast<std::size_t>(rows) * link_->size)};
        free_ += own.bytes(), room_ -= own.bytes();
        stay_of_[n] = stays_.size();
        stays_.push_back(own);
        if (!link_->send(slot)) return false;
        for (int k = 0; k < 3; ++k) {
            System one = link_->there(slot, own.of(k));
            if (k > 0) one.rhs.kind = Operand::Kind::view, one.rhs.row_stride = 1, one.rhs.data = zeros_ + static_cast<std::size_t>(k == 1 ? rows_ - 1 : rows_ - rows) * link_->size;
            if (!link_->solve(one, scratch_[n], sizes_.scratch, static_cast<char*>(outcome_[n]) + static_cast<std::size_t>(k) * sizes_.outcome,
                              outcome_here_[n] + static_cast<std::size_t>(k) * sizes_.outcome, kit_->run))
                return false;
            for (int end = 0; end < 2; ++end)
                if (!link_->copy(kit_->run, numbers_here_[n] + static_cast<std::size_t>(2 * k + end) * link_->size,
                                 own.of(k) + static_cast<std::size_t>(end ? rows - 1 : 0) * link_->size, link_->size))
                    return false;
        }
        return link_->mark(slot, solved, kit_->run);
    }

    double number(std::size_t slot, int k) const {
        const char* const at = numbers_here_[slot] + static_cast<std::size_t>(k) * link_->size;
        return link_->size == 4 ? static_cast<double>(*reinterpret_cast<const float*>(at)) : *reinterpret_cast<const double*>(at);
    }

    bool collect(Slot& slot) {
        const auto n = static_cast<std::size_t>(slot.number);
        Chunk& chunk = *slot.chunk;
        if (!link_->wait(slot, true, false)) return false;
        Outcome outcome;
        for (int k = 0; k < 3; ++k) {
            link_->part.ops->read_outcome(outcome_here_[n] + static_cast<std::size_t>(k) * sizes_.outcome, outcome);
            if (outcome.ok()) continue;
            outcome.row = outcome.row >= 0 ? outcome.row + chunk.first : -1;
            link_->shared.board.stop(outcome);
            stopped_ = true;
            return release_chunks(), true;
        }
        const System here = slice(link_->shared.system, chunk.first, chunk.rows);
        const double a = coupling(here, true), c = coupling(here, false);
        Reduced out;
        out.chunk = &chunk;
        out.pieces.push_back({chunk.first, chunk.rows});
        for (int end = 0; end < 2; ++end)
            out.rows.push_back({{a * number(n, 2 + end), end == 0 ? 1.0 : 0.0, end == 1 ? 1.0 : 0.0, c * number(n, 4 + end)}, number(n, end)});
        if (reduced.size() != stay_of_[n]) return link_->failure.say(ErrorCode::internal, "chunks of a reducer out of order");
        reduced.push_back(std::move(out));
        const double now = link_->shared.seconds(), seconds = now - std::max(slot.began, last_);
        last_ = now;
        link_->done.share.busy_s += seconds;
        slot.chunk = nullptr;
        outcome.reason = Reason::exact;
        link_->shared.board.finish(chunk, outcome, seconds);
        return true;
    }

    bool retrieve(Slot& slot) {
        const auto n = static_cast<std::size_t>(slot.number);
        if (!link_->wait(slot, false, true)) return false;
        const double terms = sizes_here(n)[0], size = sizes_here(n)[1];
        // What loses its sum another device does again.
        const bool good = terms <= most_cancelled * size;
        if (good) link_->store(slot);
        under_[n]->pieces[0].stored = good;
        link_->done.share.busy_s += link_->shared.seconds() - std::max(slot.began, last_);
        last_ = link_->shared.seconds();
        if (good) link_->done.share.rows += slot.chunk->rows, link_->done.share.chunks += 1;
        slot.chunk = nullptr;
        return true;
    }

    void release_chunks() {
        link_->quiet();
        for (Slot& slot : slots_)
            if (slot.chunk && under_[static_cast<std::size_t>(slot.number)] == nullptr) link_->shared.board.give_back(*slot.chunk), slot.chunk = nullptr;
    }

    bool leave() {
        why = link_->failure.message;
        link_->shared.board.retire(link_->lane);
        release_chunks();
        return false;
    }

    bool begun_ = false;
    devices::StreamKits& kits_;
    std::unique_ptr<devices::StreamKit> kit_;
    const Part part_;
    std::unique_ptr<StreamLink> link_;
    const std::int64_t rows_;
    const Sizes sizes_;
    std::array<Slot, under_way> slots_;
    void *outcome_[under_way] = {}, *scratch_[under_way] = {};
    char *outcome_here_[under_way] = {}, *numbers_here_[under_way] = {}, *zeros_ = nullptr;
    std::size_t stay_of_[under_way] = {}, room_ = 0;
    char* free_ = nullptr;
    std::vector<Stay> stays_;
    Reduced* under_[under_way] = {};  // in the second pass
    double last_ = 0;
    bool stopped_ = false;
};

}  // namespace

const char* reducer_refuses(const Part& part, const System& system) {
    if (part.runtime) return part.runtime->combine ? nullptr : "it cannot add up a chunk's spikes";
    if (!part.ops->reduce || !part.ops->finish) return "it has no reduce and finish";
    return part.ops->refuses(system, Algorithm::two_pass);
}

std::int64_t reducer_rows(const System& system, const Part& part, std::int64_t most) {
    std::size_t free = 0, total = 0;
    Failure failure;
    if (!part.runtime->memory_info(part.number, &free, &total, failure)) return 0;
    for (std::int64_t rows = most; rows >= 4096; rows /= 2) {
        const Sizes sizes(system, *part.ops, rows);
        if (static_cast<double>(under_way * sizes.pass + sizes.zeros + 6 * sizes.array + 512) <= share_of_memory * static_cast<double>(free)) return rows;
    }
    return 0;
}

std::unique_ptr<Reducer> reducer_on_device(Shared& shared, int lane, const Part& part, std::int64_t rows, int copiers, devices::StreamKits& kits, Calls call,
                                           Done& done) {
    return std::make_unique<StreamReducer>(shared, lane, part, rows, copiers, kits, std::move(call), done);
}

}  // namespace trifold::tridiagonal::split
