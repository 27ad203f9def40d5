// SPDX-License-Identifier: BSD-3-Clause
// Chunks reduced and finished on a device with memory of its own. Words per row: 4 in, 1 out over the link; there 15 for the three solves, 4 to
// combine them.
//
//   first pass    to:   | chunk 0 | chunk 1 | …       two chunks' operands at a time; y, g and h of all stay
//                 run:            | y g h 0 | y g h 1 | …
//   second pass   to:   | pieces a | pieces b | pieces c | …      of chunks that were reduced in the host's memory
//                 run:  | x 0 | x a | x 1 | x b | x 2 | x c | …
//                 from:       | x 0 | x a | x 1 | x b | x 2 | …
//
// A chunk is cut into parts of equal length, which one call solves, and what is left of it. The right-hand sides of one unit are parts of one array of zeros with a 1 at the end of every part's length.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "families/tridiagonal/split/coupled.hpp"
#include "families/tridiagonal/split/equal_systems.hpp"
#include "families/tridiagonal/split/reduce_sizes.hpp"
#include "families/tridiagonal/split/stream_link.hpp"

namespace trifold::tridiagonal::split {
namespace {

constexpr double share_of_memory = 0.8;

// The spikes' parts of x may be so many times larger than x itself; each is good to a few roundings of its own.
constexpr double most_cancelled = 8;

/// y, g and h of one chunk, `array` bytes apart, and behind them how large they are, part by part.
struct Stay {
    char* y = nullptr;
    std::size_t array = 0, numbers = 0;
    char* of(int k) const { return y + static_cast<std::size_t>(k) * array; }
    double* sizes() const { return reinterpret_cast<double*>(y + 3 * array); }
    std::size_t bytes() const { return 3 * array + numbers; }
};

class StreamReducer : public Reducer {
public:
    StreamReducer(Shared& shared, int lane, const Part& part, SpikeRows rows, std::int64_t piece_rows, int copiers, devices::StreamKits& kits, Calls call, Done& done)
        : kits_(kits), kit_(kits.take(*part.runtime, part.number)), part_(part), link_(std::make_unique<StreamLink>(shared, lane, part_, copiers, *kit_, std::move(call), 1, done)), dtype_(shared.system.dtype), rows_(rows),
          piece_(piece_rows), sizes_(shared.system, *part.ops, rows, piece_rows) {}

    ~StreamReducer() override { StreamReducer::close(); }

    // A driver that has failed may not return from these either.
    void close() override {
        if (!kit_) return;
        if (begun_)
            link_->watched([&] {
                link_->drain();
                for (Slot& slot : slots_) link_->release(slot);
                for (Slot& slot : back_) link_->release(slot);
                for (Slot& slot : sending_) link_->release(slot);
                link_->close();
                if (!why.empty()) kit_.reset();
            });
        begun_ = false;
        if (kit_) kits_.give_back(std::move(kit_));
    }

    bool reduce() override {
        if (!link_->begin()) return leave();
        begun_ = true;
        if (!prepare()) return leave();
        for (int next = 0;; next = (next + 1) % under_way) {
            Slot& slot = slots_[static_cast<std::size_t>(next)];
            if (slot.chunk && !collect(slot)) return leave();
            if (stopped_) return true;
            const bool empty = !slots_[0].chunk && !slots_[1].chunk, full = room_ < 3 * sizes_.array + sizes_.numbers;
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

    bool finish(Pieces& one, bool&) override {
        const std::size_t which = static_cast<std::size_t>(static_cast<Reduced*>(&one) - reduced.data()), n = which % queued;
        Slot& slot = back_[n];
        if (slot.chunk && !retrieve(slot)) return leave();
        slot.chunk = one.chunk;
        slot.began = link_->shared.seconds();
        under_[n] = &one;
        const Stay& own = stays_[which];
        link_->shared.system.dtype == DType::f32 ? write_factors<float>(n, one) : write_factors<double>(n, one);
        if (!link_->copy(kit_->run, factors_[n], factors_here_[n], 2 * static_cast<std::size_t>(one.count) * link_->size)) return leave();
        std::size_t part = 0;
        for (const Group& group : groups_of(one.chunk->rows, rows_.part)) {
            const std::size_t at = static_cast<std::size_t>(group.first) * link_->size;
            if (!link_->device([&] { return link_->runtime.combine(link_->part.number, kit_->run, dtype_, group.count, group.rows, own.y + at, own.of(1) + at, own.of(2) + at,
                                                                   factors_[n] + 2 * part * link_->size, own.sizes() + 2 * part, link_->failure); }))
                return leave();
            part += static_cast<std::size_t>(group.count);
        }
        const bool good = link_->copy(kit_->run, sizes_here_[n], own.sizes(), 2 * part * sizeof(double)) && link_->mark(slot, solved, kit_->run) && link_->fetch(slot, own.y);
        return good || leave();
    }

    bool takes_pieces() const override { return begun_ && good_for_pieces_ && link_->runtime.close_pieces && nothing_staged(); }

    bool make_room(Sent& all) override {
        Slot& slot = sending_[number_sent_ % queued];
        if (slot.chunk && !retrieve_sent(slot)) return leave();
        all = pieces_;
        return true;
    }

    bool finish_sent(Pieces& one) override {
        Sent ignored;
        if (!make_room(ignored)) return false;
        const std::size_t n = number_sent_++ % queued;
        Slot& slot = sending_[n];
        slot.chunk = one.chunk;
        sent_[n] = &one, pieces_.under_way += one.count;
        const System& all = link_->shared.system;
        const auto count = static_cast<std::size_t>(one.count);
        all.dtype == DType::f32 ? write_known<float>(n, one) : write_known<double>(n, one);
        if (!link_->copy(kit_->to, known_[n], known_here_[n], (2 * count + 2) * link_->size) || !link_->send(slot)) return leave();
        const System there = link_->there(slot, x_sent_[n]);
        devices::Pieces pieces;
        pieces.dtype = all.dtype, pieces.count = one.count, pieces.rows = piece_;
        pieces.lower = slot.array[0], pieces.upper = slot.array[2], pieces.lower_value = there.lower.value, pieces.upper_value = there.upper.value;
        pieces.rhs = slot.array[3], pieces.x = x_sent_[n], pieces.known = known_[n];
        float* const worst = reinterpret_cast<float*>(static_cast<char*>(known_[n]) + worst_at());
        const bool good = link_->device([&] { return link_->runtime.close_pieces(link_->part.number, kit_->run, pieces, link_->failure); }) &&
                          link_->solve(as_batch(there, {0, piece_, pieces.count}), scratch_[n % under_way], sizes_.scratch, outcome_sent_[n], outcome_sent_here_[n], kit_->run) &&
                          link_->device([&] { return link_->runtime.judge_pieces(link_->part.number, kit_->run, pieces, worst, link_->failure); }) &&
                          link_->copy(kit_->run, known_here_[n] + worst_at(), worst, sizeof(float)) && link_->mark(slot, solved, kit_->run) && link_->fetch(slot, x_sent_[n]);
        return good || leave();
    }

    bool flush(bool&) override {
        for (Slot& slot : back_)
            if (slot.chunk && !retrieve(slot)) return leave();
        for (Slot& slot : sending_)
            if (slot.chunk && !retrieve_sent(slot)) return leave();
        return true;
    }

private:
    bool prepare() {
        const double room = share_of_memory * static_cast<double>(rows_.free) - static_cast<double>(under_way * sizes_.pass + sizes_.zeros);
        const double all = 3.0 * static_cast<double>(link_->size) * static_cast<double>(link_->shared.system.rows) + 8.0 * static_cast<double>(sizes_.array + sizes_.numbers);
        room_ = static_cast<std::size_t>(std::max(0.0, std::min(room, all))) / 256 * 256;
        const std::size_t unit = align(static_cast<std::size_t>(rows_.part) * link_->size);
        std::size_t pinned = 3 * most_groups * sizes_.outcome + sizes_.numbers + queued / under_way * (sizes_.outcome + sizes_.known + 2 * sizes_.back);
        for (int k = 0; k < 5; ++k)
            if (link_->staged(k)) pinned += (k == 4 ? queued / under_way : 1) * sizes_.array;
        if (room_ < 3 * sizes_.array + sizes_.numbers) return link_->failure.say(ErrorCode::bad_input, "its memory does not hold one chunk");
        if (!link_->prepare(room_ + under_way * sizes_.pass + sizes_.zeros, under_way * pinned + unit)) return false;

        char *there = kit_->device_memory() + room_, *here = kit_->host_memory();
        const auto take = [](char*& from, std::size_t bytes) { return std::exchange(from, from + bytes); };
        const Operands operands(link_->shared.system);
        const std::size_t half = align(static_cast<std::size_t>(rows_.sent) * link_->size);
        for (std::size_t n = 0; n < under_way; ++n) {
            Slot& slot = slots_[n];
            slot.number = static_cast<int>(n);
            outcome_[n] = take(there, 3 * most_groups * sizes_.outcome);
            scratch_[n] = take(there, sizes_.scratch);
            ends_[n] = take(there, sizes_.numbers);
            char* const x = take(there, sizes_.array);
            outcome_here_[n] = take(here, 3 * most_groups * sizes_.outcome);
            numbers_here_[n] = take(here, sizes_.numbers);
            for (int k = 0; k < 4; ++k) {
                if (operands.array(k)) slot.array[k] = take(there, sizes_.array);
                if (link_->staged(k)) slot.pinned[k] = take(here, sizes_.array);
            }
            for (std::size_t of = n; of < queued; of += under_way) {
                Slot& sent = sending_[of];
                sent.number = static_cast<int>(of);
                for (int k = 0; k < 4; ++k)
                    if (slot.array[k]) sent.array[k] = slot.array[k] + of / under_way * half;
                x_sent_[of] = x + of / under_way * half;
            }
        }
        for (std::size_t n = 0; n < queued; ++n) {
            back_[n].number = queued + static_cast<int>(n);
            outcome_sent_[n] = take(there, sizes_.outcome);
            known_[n] = take(there, sizes_.known);
            factors_[n] = take(there, sizes_.back);
            outcome_sent_here_[n] = take(here, sizes_.outcome);
            known_here_[n] = take(here, sizes_.known);
            sizes_here_[n] = reinterpret_cast<double*>(take(here, sizes_.back));
            factors_here_[n] = take(here, sizes_.back);
            if (link_->staged(4)) back_[n].pinned[4] = take(here, sizes_.array);
        }
        zeros_ = there;
        free_ = kit_->device_memory();
        return fill_zeros(here);
    }

    // One part from the host, the others from those that are there: over the link all of them would take as long as the first of a chunk's operands, which wait for it.
    bool fill_zeros(char* part) {
        const std::size_t bytes = static_cast<std::size_t>(rows_.chunk + rows_.part) * link_->size;
        std::size_t there = static_cast<std::size_t>(rows_.part) * link_->size;
        std::memset(part, 0, there);
        const double one = 1;
        const float one_f = 1;
        std::memcpy(part + there - link_->size, link_->size == 4 ? static_cast<const void*>(&one_f) : &one, link_->size);
        if (!link_->copy(kit_->run, zeros_, part, there)) return false;
        for (std::size_t more; there < bytes; there += more)
            if (!link_->copy(kit_->run, zeros_ + there, zeros_, more = std::min(there, bytes - there))) return false;
        return true;
    }

    // Where the host copies operands or x it has no time for that, nor its memory.
    bool nothing_staged() const {
        for (int k = 0; k < 5; ++k)
            if (link_->staged(k)) return false;
        return true;
    }

    std::size_t worst_at() const { return sizes_.known - 256; }

    // By which g and h are added.
    template <class T>
    void write_factors(std::size_t n, const Pieces& one) {
        T* const to = reinterpret_cast<T*>(factors_here_[n]);
        for (std::int64_t k = 0; k < one.count; ++k) {
            const Piece piece = one.piece(k);
            const System here = slice(link_->shared.system, piece.first, piece.rows);
            to[2 * k] = static_cast<T>(-coupling(here, true) * one.ends[2 * k - 1]), to[2 * k + 1] = static_cast<T>(-coupling(here, false) * one.ends[2 * k + 2]);
        }
    }

    // x of every end, and beside them, in the system's type.
    template <class T>
    void write_known(std::size_t n, const Pieces& one) {
        T* const to = reinterpret_cast<T*>(known_here_[n]);
        for (std::int64_t k = -1; k < 2 * one.count + 1; ++k) to[k + 1] = static_cast<T>(one.ends[k]);
    }

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
        const Stay own{free_, align(static_cast<std::size_t>(rows) * link_->size), sizes_.numbers};
        free_ += own.bytes(), room_ -= own.bytes();
        stay_of_[n] = stays_.size();
        stays_.push_back(own);
        if (!link_->send(slot)) return false;
        std::size_t solves = 0, part = 0;
        for (const Group& group : groups_of(rows, rows_.part)) {
            for (int k = 0; k < 3; ++k, ++solves) {
                System one = link_->there(slot, own.of(k));
                if (k > 0) one.rhs.kind = Operand::Kind::view, one.rhs.row_stride = 1, one.rhs.data = zeros_ + (k == 1 ? rows_.part - 1 - group.first : rows_.part - group.rows - group.first) * static_cast<std::int64_t>(link_->size);
                if (!link_->solve(as_batch(one, group), scratch_[n], sizes_.scratch, static_cast<char*>(outcome_[n]) + solves * sizes_.outcome, outcome_here_[n] + solves * sizes_.outcome, kit_->run))
                    return false;
            }
            const std::size_t at = static_cast<std::size_t>(group.first) * link_->size;
            if (!link_->device([&] { return link_->runtime.gather_ends(link_->part.number, kit_->run, dtype_, group.count, group.rows, own.y + at, own.of(1) + at, own.of(2) + at,
                                                                       ends_[n] + 6 * part * link_->size, link_->failure); }))
                return false;
            part += static_cast<std::size_t>(group.count);
        }
        if (!link_->copy(kit_->run, numbers_here_[n], ends_[n], 6 * part * link_->size)) return false;
        return link_->mark(slot, solved, kit_->run);
    }

    double number(std::size_t slot, std::size_t k) const {
        const char* const at = numbers_here_[slot] + k * link_->size;
        return link_->size == 4 ? static_cast<double>(*reinterpret_cast<const float*>(at)) : *reinterpret_cast<const double*>(at);
    }

    bool collect(Slot& slot) {
        const auto n = static_cast<std::size_t>(slot.number);
        Chunk& chunk = *slot.chunk;
        if (!link_->wait(slot, true, false)) return false;
        Outcome outcome;
        const std::vector<Group> groups = groups_of(chunk.rows, rows_.part);
        for (std::size_t k = 0; k < 3 * groups.size(); ++k) {
            link_->part.ops->read_outcome(outcome_here_[n] + k * sizes_.outcome, outcome);
            if (outcome.ok()) continue;
            const Group& group = groups[k / 3];
            outcome.row = outcome.row >= 0 ? outcome.row + std::max<std::int64_t>(outcome.system, 0) * group.rows + group.first + chunk.first : -1;
            outcome.system = -1;
            link_->shared.board.stop(outcome);
            stopped_ = true;
            return release_chunks(), true;
        }
        Reduced out;
        out.chunk = &chunk;
        out.each = rows_.part, out.count = count_of(chunk.rows, rows_.part);
        out.own.reserve(static_cast<std::size_t>(2 * out.count));
        std::size_t at = 0;
        for (const Group& group : groups)
            for (std::int64_t part = 0; part < group.count; ++part, at += 6) {
                const Piece piece{chunk.first + group.first + part * group.rows, group.rows};
                const System here = slice(link_->shared.system, piece.first, piece.rows);
                const double a = coupling(here, true), c = coupling(here, false);
                for (std::size_t end = 0; end < 2; ++end)
                    out.own.push_back({{a * number(n, at + 2 + end), end == 0 ? 1.0 : 0.0, end == 1 ? 1.0 : 0.0, c * number(n, at + 4 + end)}, number(n, at + end)});
            }
        out.rows = out.own.data();
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
        const auto n = static_cast<std::size_t>(slot.number - queued);
        if (!link_->wait(slot, false, true)) return false;
        // What loses its sum another device does again.
        bool good = true;
        for (std::int64_t k = 0; k < under_[n]->count; ++k) good = good && sizes_here_[n][2 * k] <= most_cancelled * sizes_here_[n][2 * k + 1];
        settle(slot, *under_[n], good);
        return true;
    }

    bool retrieve_sent(Slot& slot) {
        const auto n = static_cast<std::size_t>(slot.number);
        if (!link_->wait(slot, true, true)) return false;
        Outcome outcome;
        link_->part.ops->read_outcome(outcome_sent_here_[n], outcome);
        float worst = 0;
        std::memcpy(&worst, known_here_[n] + worst_at(), sizeof worst);
        const bool good = outcome.ok() && static_cast<double>(worst) <= widest * unit_roundoff(link_->shared.system.dtype);
        good_for_pieces_ = good_for_pieces_ && good;
        pieces_.under_way -= sent_[n]->count, pieces_.back += sent_[n]->count;
        settle(slot, *sent_[n], good);
        return true;
    }

    void settle(Slot& slot, Pieces& one, bool good) {
        if (good) link_->store(slot);
        one.stored.assign(static_cast<std::size_t>(one.count), good);
        link_->done.share.busy_s += link_->shared.seconds() - std::max(slot.began, last_);
        last_ = link_->shared.seconds();
        if (good) link_->done.share.rows += slot.chunk->rows, link_->done.share.chunks += 1;
        slot.chunk = nullptr;
    }

    void release_chunks() {
        link_->quiet();
        for (Slot& slot : slots_)
            if (slot.chunk) link_->shared.board.give_back(*slot.chunk), slot.chunk = nullptr;
    }

    bool leave() {
        why = link_->failure.message;
        good_for_pieces_ = false;
        link_->shared.board.retire(link_->lane);
        release_chunks();
        return false;
    }

    bool begun_ = false;
    devices::StreamKits& kits_;
    std::unique_ptr<devices::StreamKit> kit_;
    const Part part_;
    std::unique_ptr<StreamLink> link_;
    const DType dtype_;  // a call that returns late finds it here
    const SpikeRows rows_;
    const std::int64_t piece_;
    const Sizes sizes_;
    std::array<Slot, under_way> slots_;             // what comes in the first pass
    std::array<Slot, queued> sending_, back_;       // in the second: what comes; what has been there since the first
    void *outcome_[under_way] = {}, *scratch_[under_way] = {};
    char *outcome_here_[under_way] = {}, *numbers_here_[under_way] = {}, *ends_[under_way] = {}, *zeros_ = nullptr;
    void* outcome_sent_[queued] = {};
    char *outcome_sent_here_[queued] = {}, *factors_[queued] = {}, *factors_here_[queued] = {}, *known_here_[queued] = {}, *known_[queued] = {}, *x_sent_[queued] = {};
    double* sizes_here_[queued] = {};
    std::size_t stay_of_[under_way] = {}, room_ = 0, number_sent_ = 0;
    char* free_ = nullptr;
    std::vector<Stay> stays_;
    Pieces *under_[queued] = {}, *sent_[queued] = {};  // in the second pass
    Sent pieces_;
    double last_ = 0;
    bool stopped_ = false, good_for_pieces_ = true;
};

}  // namespace

const char* reducer_refuses(const Part& part, const System& system) {
    if (part.runtime) return part.runtime->combine ? nullptr : "it cannot add up a chunk's spikes";
    if (!part.ops->reduce || !part.ops->finish) return "it has no reduce and finish";
    return part.ops->refuses(system, Algorithm::two_pass);
}

SpikeRows reducer_rows(const System& system, const Part& part, std::int64_t most, std::int64_t longest, std::int64_t piece_rows) {
    std::size_t free = 0, total = 0;
    Failure failure;
    if (!part.runtime->memory_info(part.number, &free, &total, failure)) return {};
    for (std::int64_t chunk = most / piece_rows * piece_rows; chunk >= std::max<std::int64_t>(4096, 4 * piece_rows); chunk = chunk / 2 / piece_rows * piece_rows) {
        const SpikeRows rows{chunk, std::min(chunk, longest / piece_rows * piece_rows), chunk / 2 / piece_rows * piece_rows, free};
        const Sizes sizes(system, *part.ops, rows, piece_rows);
        if (static_cast<double>(under_way * sizes.pass + sizes.zeros + 6 * sizes.array + 2 * sizes.numbers) <= share_of_memory * static_cast<double>(free)) return rows;
    }
    return {};
}

std::unique_ptr<Reducer> reducer_on_device(Shared& shared, int lane, const Part& part, SpikeRows rows, std::int64_t piece_rows, int copiers, devices::StreamKits& kits, Calls call,
                                           Done& done) {
    return std::make_unique<StreamReducer>(shared, lane, part, rows, piece_rows, copiers, kits, std::move(call), done);
}

}  // namespace trifold::tridiagonal::split
