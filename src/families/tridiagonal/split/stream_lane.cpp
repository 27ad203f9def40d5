// SPDX-License-Identifier: BSD-3-Clause
// Chunks through a device with memory of its own. Words per row over the link: those of the operands that are arrays there, one back.
//
//   to:    | chunk 0 | chunk 1 | chunk 2 | …          what is in pageable memory the host copies to pinned memory first
//   run:             | chunk 0 | chunk 1 | …
//   from:                      | chunk 0 | …          beside x in pageable memory, and in place, to pinned memory; the host stores it
//
// Three queues, so that both directions of the link and the kernels overlap; a slot is the memory of one chunk. In place, x is stored by the host
// when all of the chunk has arrived: until then the right-hand side is what another device would need.
#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "families/tridiagonal/split/lane.hpp"

namespace trifold::tridiagonal::split {
namespace {

constexpr std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// Of the device's free memory.
constexpr double share_of_memory = 0.8;

struct Operands {
    const Operand* of[5];
    explicit Operands(const System& s) : of{&s.lower, &s.diag, &s.upper, &s.rhs, &s.x} {}
    bool array(int k) const { return of[k]->kind == Operand::Kind::view; }
};

System shaped(const System& system, std::int64_t rows) {
    System s = system;
    s.rows = rows;
    s.in_place = false;
    return s;
}

// Bytes of one slot on the device.
std::size_t slot_bytes(const System& system, const Ops& ops, std::int64_t rows) {
    const Operands operands(system);
    std::size_t bytes = align(ops.outcome_bytes) + align(ops.workspace(shaped(system, rows), Algorithm::automatic, 1));
    for (int k = 0; k < 5; ++k)
        if (operands.array(k)) bytes += align(static_cast<std::size_t>(rows) * size_of(system.dtype));
    return bytes;
}

void copy_on_host(void* to, const void* from, std::size_t bytes, int threads) {
    constexpr std::size_t worth = 1 << 20;
    const auto parts = static_cast<std::int64_t>(std::clamp<std::size_t>(bytes / worth, 1, static_cast<std::size_t>(std::max(threads, 1))));
    const std::size_t each = (bytes / static_cast<std::size_t>(parts) + 63) / 64 * 64;
#pragma omp parallel for num_threads(static_cast<int>(parts)) schedule(static) if (parts > 1)
    for (std::int64_t part = 0; part < parts; ++part) {
        const std::size_t at = std::min(static_cast<std::size_t>(part) * each, bytes), end = part + 1 == parts ? bytes : std::min(at + each, bytes);
        std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, end - at);
    }
}

// Marks of one slot; given back when it is used again.
enum Mark { arriving, arrived, solved, leaving, left, marks };

class StreamLane {
public:
    StreamLane(Shared& shared, int lane, const Part& part, int slots, std::int64_t rows, int copiers, devices::StreamKit& kit, const Trouble& trouble,
               Done& done)
        : shared_(shared), lane_(lane), part_(part), runtime_(*part.runtime), rows_(rows), copiers_(copiers), kit_(kit), call_(trouble),
          slower_(trouble.slower), done_(done), slots_(static_cast<std::size_t>(slots)), size_(size_of(shared.system.dtype)) {}

    ~StreamLane() {
        for (Slot& slot : slots_) release(slot);
        if (base_) runtime_.release_mark(part_.number, base_);
    }

    bool run() {
        if (!prepare()) return false;
        for (std::size_t next = 0;; next = (next + 1) % slots_.size()) {
            Slot& slot = slots_[next];
            if (slot.chunk && !collect(slot)) return false;
            Chunk* chunk = nullptr;
            const bool empty = std::none_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.chunk; });
            const Board::Taken taken = shared_.board.take(lane_, empty, chunk);
            if (taken == Board::Taken::chunk) {
                slot.chunk = chunk;
                if (!enqueue(slot)) return false;
            } else if (empty) {
                return true;
            }
        }
    }

    /// After a call has failed: nothing that was enqueued may still write when the chunks go to others.
    void abandon() {
        Failure ignored;
        for (void* stream : {kit_.to, kit_.run, kit_.from}) runtime_.synchronize(part_.number, stream, ignored);
        shared_.board.retire(lane_);
        for (Slot& slot : slots_)
            if (slot.chunk) shared_.board.give_back(*slot.chunk), slot.chunk = nullptr;
    }

    const Failure& failure() const { return failure_; }

private:
    struct Slot {
        Chunk* chunk = nullptr;
        char *array[5] = {}, *pinned[5] = {};   // pinned: null where the user's memory serves
        void *outcome = nullptr, *scratch = nullptr, *outcome_here = nullptr;
        void* mark[marks] = {};
        double began = 0, staged = 0;
    };

    bool device(const auto& what) { return call_(failure_, what); }
    bool copy(void* stream, void* to, const void* from, std::size_t bytes) {
        return bytes == 0 || device([&] { return runtime_.copy(part_.number, stream, to, from, bytes, failure_); });
    }
    bool mark(Slot& slot, Mark which, void* stream) {
        if (slot.mark[which]) runtime_.release_mark(part_.number, slot.mark[which]), slot.mark[which] = nullptr;
        return device([&] { return runtime_.mark(part_.number, stream, &slot.mark[which], failure_); });
    }
    bool wait_for(Slot& slot, Mark which, void* stream) {
        return !runtime_.wait_for || !stream || device([&] { return runtime_.wait_for(part_.number, stream, slot.mark[which], failure_); });
    }
    bool at(void* event, double& seconds) {
        const bool good = device([&] { return runtime_.seconds(part_.number, base_, event, &seconds, failure_); });
        seconds += base_s_;
        return good;
    }
    void release(Slot& slot) {
        for (void*& event : slot.mark)
            if (event) runtime_.release_mark(part_.number, event), event = nullptr;
    }

    bool prepare() {
        const Operands operands(shared_.system);
        const std::size_t array = align(static_cast<std::size_t>(rows_) * size_), each = slot_bytes(shared_.system, *part_.ops, rows_);
        bool staged[5] = {};
        std::size_t pinned = align(part_.ops->outcome_bytes);
        for (int k = 0; k < 5; ++k) {
            if (!operands.array(k)) continue;
            const bool pageable = runtime_.where(part_.number, operands.of[k]->data).kind == MemoryKind::host && runtime_.allocate_pinned;
            staged[k] = pageable || (k == 4 && shared_.system.in_place);
            if (staged[k]) pinned += array;
        }
        if (!device([&] { return kit_.prepare(slots_.size() * each, slots_.size() * pinned, failure_); })) return false;
        char *there = kit_.device_memory(), *here = kit_.host_memory();
        scratch_bytes_ = part_.ops->workspace(shaped(shared_.system, rows_), Algorithm::automatic, 1);
        for (Slot& slot : slots_) {
            slot.outcome = there, there += align(part_.ops->outcome_bytes);
            slot.outcome_here = here, here += align(part_.ops->outcome_bytes);
            slot.scratch = there, there += align(scratch_bytes_);
            for (int k = 0; k < 5; ++k) {
                if (operands.array(k)) slot.array[k] = there, there += array;
                if (staged[k]) slot.pinned[k] = here, here += array;
            }
        }
        if (!device([&] { return runtime_.synchronize(part_.number, kit_.to, failure_); })) return false;
        base_s_ = shared_.seconds();
        return device([&] { return runtime_.mark(part_.number, kit_.to, &base_, failure_); });
    }

    bool enqueue(Slot& slot) {
        const Chunk& chunk = *slot.chunk;
        const System here = slice(shared_.system, chunk.first, chunk.rows);
        const Operands operands(here);
        const std::size_t bytes = static_cast<std::size_t>(chunk.rows) * size_;
        slot.began = shared_.seconds();
        // lower of row 0 and upper of the last row may not be there, and are not read.
        std::size_t skip[5] = {}, drop[5] = {};
        if (chunk.first == 0) skip[0] = size_;
        if (chunk.first + chunk.rows == shared_.system.rows) drop[2] = size_;

        double moved = 0;
        for (int k = 0; k < 4; ++k) {
            if (!slot.array[k]) continue;
            moved += static_cast<double>(bytes);
            if (slot.pinned[k]) copy_on_host(slot.pinned[k] + skip[k], static_cast<const char*>(operands.of[k]->data) + skip[k], bytes - skip[k] - drop[k], copiers_);
        }
        slot.staged = shared_.seconds();
        if (slot.pinned[0] || slot.pinned[1] || slot.pinned[2] || slot.pinned[3]) done_.add(lane_, number(slot), "stage", chunk, slot.began, slot.staged, moved);

        if (!mark(slot, arriving, kit_.to)) return false;
        for (int k = 0; k < 4; ++k) {
            if (!slot.array[k]) continue;
            const char* const from = slot.pinned[k] ? slot.pinned[k] : static_cast<const char*>(operands.of[k]->data);
            if (!copy(kit_.to, slot.array[k] + skip[k], from + skip[k], bytes - skip[k] - drop[k])) return false;
        }
        if (!mark(slot, arrived, kit_.to) || !wait_for(slot, arrived, kit_.run)) return false;
        done_.share.bytes_to += moved;

        System there = here;
        there.in_place = false;
        Operand* const on[] = {&there.lower, &there.diag, &there.upper, &there.rhs, &there.x};
        for (int k = 0; k < 5; ++k)
            if (slot.array[k]) on[k]->data = slot.array[k], on[k]->row_stride = 1;
        Launch launch;
        launch.scratch = slot.scratch, launch.scratch_bytes = scratch_bytes_;
        launch.tolerance = shared_.tolerance;
        launch.stream = kit_.run;
        launch.device = part_.number;
        launch.failure = &failure_;
        if (!device([&] { return part_.ops->enqueue(part_.number, there, Algorithm::automatic, launch, slot.outcome, failure_); })) return false;
        if (!copy(kit_.run, slot.outcome_here, slot.outcome, part_.ops->outcome_bytes)) return false;
        if (!mark(slot, solved, kit_.run) || !wait_for(slot, solved, kit_.from) || !mark(slot, leaving, kit_.from)) return false;
        if (!copy(kit_.from, slot.pinned[4] ? slot.pinned[4] : static_cast<char*>(here.x.data), slot.array[4], bytes)) return false;
        return mark(slot, left, kit_.from);
    }

    // Waits for it, and stores what has come back.
    bool collect(Slot& slot) {
        Chunk& chunk = *slot.chunk;
        if (!runtime_.wait_for && !device([&] { return runtime_.synchronize(part_.number, kit_.from, failure_); })) return false;
        double time[marks];
        for (int m = marks - 1; m >= 0; --m)
            if (!at(slot.mark[m], time[m])) return false;
        Outcome outcome;
        part_.ops->read_outcome(slot.outcome_here, outcome);
        outcome.device = part_.ops->device;
        const double bytes = static_cast<double>(chunk.rows) * static_cast<double>(size_);
        done_.add(lane_, number(slot), "to device", chunk, time[arriving], time[arrived], needed_bytes(shared_.system, chunk.rows) - bytes);
        done_.add(lane_, number(slot), "kernel", chunk, std::max(time[arrived], last_solved_), time[solved], needed_bytes(shared_.system, chunk.rows));
        done_.add(lane_, number(slot), "from device", chunk, time[leaving], time[left], bytes);
        last_solved_ = time[solved];
        done_.share.bytes_from += bytes;
        if (!outcome.ok()) {
            outcome.row = outcome.row >= 0 ? outcome.row + chunk.first : -1;
            shared_.board.stop(outcome);
            return abandon(), true;
        }
        if (slower_ > 1) std::this_thread::sleep_for(std::chrono::duration<double>((slower_ - 1) * std::max(0.0, shared_.seconds() - std::max(slot.began, idle_since_))));
        if (slot.pinned[4]) {
            const double begin = shared_.seconds();
            copy_on_host(slice(shared_.system, chunk.first, chunk.rows).x.data, slot.pinned[4], static_cast<std::size_t>(bytes), copiers_);
            done_.add(lane_, number(slot), "store", chunk, begin, shared_.seconds(), bytes);
        }
        // Chunks overlap: what counts is the time since the one before was done.
        const double now = shared_.seconds(), seconds = now - std::max(slot.began, idle_since_);
        idle_since_ = now;
        done_.share.busy_s += seconds;
        done_.share.rows += chunk.rows, done_.share.chunks += 1;
        slot.chunk = nullptr;
        shared_.board.finish(chunk, outcome, seconds);
        return true;
    }

    int number(const Slot& slot) const { return static_cast<int>(&slot - slots_.data()); }

    Shared& shared_;
    const int lane_;
    const Part& part_;
    const devices::Runtime& runtime_;
    const std::int64_t rows_;
    const int copiers_;
    devices::StreamKit& kit_;
    Calls call_;
    const double slower_;
    Done& done_;
    std::vector<Slot> slots_;
    const std::size_t size_;
    std::size_t scratch_bytes_ = 0;
    void* base_ = nullptr;
    double base_s_ = 0, last_solved_ = 0, idle_since_ = 0;
    Failure failure_;
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

void run_stream_lane(Shared& shared, int lane, const Part& part, int slots, std::int64_t rows, int copiers, devices::StreamKits& kits, const Trouble& trouble,
                     Done& done) {
    auto kit = kits.take(*part.runtime, part.number);
    bool good;
    {
        StreamLane stream(shared, lane, part, slots, rows, copiers, *kit, trouble, done);
        good = stream.run();
        if (!good) {
            done.retired = stream.failure().message;
            stream.abandon();
        }
    }
    if (good) kits.give_back(std::move(kit));
}

}  // namespace trifold::tridiagonal::split
