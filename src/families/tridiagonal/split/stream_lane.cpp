// SPDX-License-Identifier: BSD-3-Clause
// Chunks through a device with memory of its own. Words per row over the link: those of the operands that are arrays there, one back.
//
//   to:    | chunk 0 | chunk 1 | chunk 2 | …          what is in pageable memory the host copies to pinned memory first
//   run:             | chunk 0 | chunk 1 | …
//   from:                      | chunk 0 | …          to pinned memory where x is pageable or rhs; then the host stores it
#include <algorithm>
#include <thread>
#include <utility>

#include "families/tridiagonal/split/stream_link.hpp"

namespace trifold::tridiagonal::split {
namespace {

// Of the device's free memory.
constexpr double share_of_memory = 0.8;

// Bytes of one slot on the device.
std::size_t slot_bytes(const System& system, const Ops& ops, std::int64_t rows) {
    const Operands operands(system);
    std::size_t bytes = align(ops.outcome_bytes) + align(scratch_up_to(system, ops, rows));
    for (int k = 0; k < 5; ++k)
        if (operands.array(k)) bytes += align(static_cast<std::size_t>(rows) * size_of(system.dtype));
    return bytes;
}

struct SolveSlot : Slot {
    void *outcome = nullptr, *scratch = nullptr, *outcome_here = nullptr;
};

class StreamLane {
public:
    StreamLane(StreamLink& link, int slots, std::int64_t rows) : link_(link), rows_(rows), slots_(static_cast<std::size_t>(slots)) {}
    ~StreamLane() { close(); }

    bool run() {
        // Who may be late has a chunk before the driver is asked for anything, which would wait for the compiler.
        if (link_.may_be_late()) {
            Chunk* chunk = nullptr;
            if (link_.shared.board.take(link_.lane, true, chunk) != Board::Taken::chunk) return true;
            slots_[0].chunk = chunk;
            if (late_ = !link_.begin(); late_) return false;
        }
        if (!prepare()) return false;
        if (slots_[0].chunk && !enqueue(slots_[0])) return false;
        for (std::size_t next = slots_[0].chunk ? 1 % slots_.size() : 0;; next = (next + 1) % slots_.size()) {
            SolveSlot& slot = slots_[next];
            if (slot.chunk && !collect(slot)) return false;
            const bool empty = std::none_of(slots_.begin(), slots_.end(), [](const SolveSlot& s) { return s.chunk; });
            Chunk* chunk = nullptr;
            const Board::Taken taken = link_.shared.board.take(link_.lane, empty, chunk);
            if (taken == Board::Taken::chunk) {
                slot.chunk = chunk;
                if (!enqueue(slot)) return false;
            } else if (empty) {
                return true;
            }
        }
    }

    /// What it has goes to others.
    bool late() const noexcept { return late_; }
    void abandon() {
        if (!late_) link_.quiet();
        link_.shared.board.retire(link_.lane);
        for (SolveSlot& slot : slots_)
            if (slot.chunk) link_.shared.board.give_back(*slot.chunk), slot.chunk = nullptr;
    }

    /// Gives its marks back. Not watched.
    void close() {
        for (SolveSlot& slot : slots_) link_.release(slot);
    }

private:
    bool prepare() {
        const System& system = link_.shared.system;
        const Ops& ops = *link_.part.ops;
        const Operands operands(system);
        const std::size_t array = align(static_cast<std::size_t>(rows_) * link_.size), outcome = align(ops.outcome_bytes);
        std::size_t pinned = outcome;
        for (int k = 0; k < 5; ++k)
            if (link_.staged(k)) pinned += array;
        if (!link_.prepare(slots_.size() * slot_bytes(system, ops, rows_), slots_.size() * pinned)) return false;
        char *there = link_.kit.device_memory(), *here = link_.kit.host_memory();
        scratch_bytes_ = scratch_up_to(system, ops, rows_);
        int number = 0;
        for (SolveSlot& slot : slots_) {
            slot.number = number++;
            slot.outcome = there, there += outcome;
            slot.outcome_here = here, here += outcome;
            slot.scratch = there, there += align(scratch_bytes_);
            for (int k = 0; k < 5; ++k) {
                if (operands.array(k)) slot.array[k] = there, there += array;
                if (link_.staged(k)) slot.pinned[k] = here, here += array;
            }
        }
        return true;
    }

    bool enqueue(SolveSlot& slot) {
        return link_.send(slot) && link_.solve(link_.there(slot, slot.array[4]), slot.scratch, scratch_bytes_, slot.outcome, slot.outcome_here, link_.kit.run) &&
               link_.mark(slot, solved, link_.kit.run) && link_.fetch(slot, slot.array[4]);
    }

    // What a device cannot decide in a stream it solves in the queue where it may wait.
    bool solve_waiting(SolveSlot& slot, Outcome& outcome) {
        if (!link_.solve(link_.there(slot, slot.array[4]), slot.scratch, scratch_bytes_, slot.outcome, slot.outcome_here, nullptr)) return false;
        if (!link_.copy(nullptr, link_.x_here(slot), slot.array[4], static_cast<std::size_t>(slot.chunk->rows) * link_.size)) return false;
        if (!link_.device([&] { return link_.runtime.synchronize(link_.part.number, nullptr, link_.failure); })) return false;
        outcome = Outcome{};
        link_.part.ops->read_outcome(slot.outcome_here, outcome);
        return true;
    }

    // Waits for it, and stores what has come back.
    bool collect(SolveSlot& slot) {
        Chunk& chunk = *slot.chunk;
        if (!link_.wait(slot, true, true)) return false;
        Outcome outcome;
        link_.part.ops->read_outcome(slot.outcome_here, outcome);
        if (outcome.reason == Reason::unstable && !solve_waiting(slot, outcome)) return false;
        outcome.device = link_.part.ops->device;
        if (!outcome.ok()) {
            outcome.row = outcome.row >= 0 ? outcome.row + chunk.first : -1;
            link_.shared.board.stop(outcome);
            return abandon(), true;
        }
        const double before = std::max(slot.began, last_);
        if (link_.slower > 1) std::this_thread::sleep_for(std::chrono::duration<double>((link_.slower - 1) * std::max(0.0, link_.shared.seconds() - before)));
        link_.store(slot);
        // Chunks overlap: what counts is the time since the one before was done.
        last_ = link_.shared.seconds();
        link_.done.share.busy_s += last_ - before;
        link_.done.share.rows += chunk.rows, link_.done.share.chunks += 1;
        slot.chunk = nullptr;
        link_.shared.board.finish(chunk, outcome, last_ - before);
        return true;
    }

    StreamLink& link_;
    const std::int64_t rows_;
    std::vector<SolveSlot> slots_;
    std::size_t scratch_bytes_ = 0;
    bool late_ = false;
    double last_ = 0;
};

}  // namespace

std::int64_t slot_rows(const System& system, const Part& part, int slots, std::int64_t most) {
    std::size_t free = 0, total = 0;
    Failure failure;
    if (!part.runtime->memory_info(part.number, &free, &total, failure)) return 0;
    const double room = share_of_memory * static_cast<double>(free) / slots;
    for (std::int64_t rows = most; rows >= 4096; rows /= 2)
        if (static_cast<double>(slot_bytes(system, *part.ops, rows)) <= room) return rows;
    return 0;
}

void run_stream_lane(Shared& shared, int lane, const Part& part, int slots, std::int64_t rows, int copiers, devices::StreamKits& kits, Calls call, double slower,
                     Done& done) {
    auto kit = kits.take(*part.runtime, part.number);
    StreamLink link(shared, lane, part, copiers, *kit, std::move(call), slower, done);
    StreamLane stream(link, slots, rows);
    bool good = stream.run();
    if (!good) {
        done.retired = link.failure.message;
        stream.abandon();
        good = stream.late();
    }
    // A driver that has failed may not return from these either.
    link.watched([&] {
        stream.close(), link.close();
        if (!good) kit.reset();
    });
    if (good) kits.give_back(std::move(kit));
}

}  // namespace trifold::tridiagonal::split
