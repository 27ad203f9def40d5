// SPDX-License-Identifier: BSD-3-Clause
// Chunks to a device with memory of its own and back: copies in both directions beside its kernels, in three queues where it has them.
#pragma once

#include <algorithm>
#include <cstring>

#include "families/tridiagonal/split/lane.hpp"

namespace trifold::tridiagonal::split {

constexpr std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// In the order lower, diag, upper, rhs, x.
struct Operands {
    const Operand* of[5];
    explicit Operands(const System& s) : of{&s.lower, &s.diag, &s.upper, &s.rhs, &s.x} {}
    bool array(int k) const { return of[k]->kind == Operand::Kind::view; }
};

/// A chunk of so many rows as the device has it.
inline System shaped(const System& system, std::int64_t rows) {
    System s = system;
    s.rows = rows;
    s.in_place = false;
    return s;
}

/// Scratch that is enough for any chunk of so many rows or fewer: a device that solves shorter ones in another way may ask for more there. Between sizes that are asked for it is
/// thought to grow in proportion.
inline std::size_t scratch_up_to(const System& system, const Ops& ops, std::int64_t rows) {
    constexpr double apart = 0.8;
    std::size_t most = 0;
    for (auto n = static_cast<double>(rows); n >= 1024; n *= apart) most = std::max(most, ops.workspace(shaped(system, static_cast<std::int64_t>(n)), Algorithm::automatic, 1));
    return static_cast<std::size_t>(static_cast<double>(most) / apart) + 4096;
}

/// Marks in the queues of one slot.
enum Mark { arriving, arrived, solved, leaving, left, marks };

/// The memory of one chunk under way.
struct Slot {
    Chunk* chunk = nullptr;
    char *array[5] = {}, *pinned[5] = {};  ///< pinned: null where the user's memory serves
    void* mark[marks] = {};
    double began = 0;
    int number = 0;
};

class StreamLink {
public:
    StreamLink(Shared& shared, int lane, const Part& part, int copiers, devices::StreamKit& kit, Calls call, double slower, Done& done)
        : shared(shared), lane(lane), part(part), runtime(*part.runtime), size(size_of(shared.system.dtype)), kit(kit), done(done), slower(slower),
          copiers_(copiers), call_(std::move(call)) {}
    ~StreamLink() { close(); }
    StreamLink(const StreamLink&) = delete;
    StreamLink& operator=(const StreamLink&) = delete;

    /// Which operands go through memory of the lane's own, pinned where there is such. In place x does: what another device may still need is not overwritten before
    /// all of a chunk has arrived; and where nothing can be pinned, so that what a driver stores late goes there.
    bool staged(int k) const;

    /// Takes memory, and begins the clock of the marks.
    bool prepare(std::size_t device_bytes, std::size_t host_bytes);

    bool begin() { return call_.begin(failure, shared.board, lane); }
    bool may_be_late() const noexcept { return call_.may_be_late(); }

    /// What is counted, and made to fail by tests.
    template <class Call>
    bool device(Call call) {
        return call_(failure, call);
    }
    bool copy(void* stream, void* to, const void* from, std::size_t bytes);
    bool mark(Slot& slot, Mark which, void* stream);
    bool wait_for(const Slot& slot, Mark which, void* stream);

    /// Enqueues the chunk's operands; the kernel queue waits for them.
    bool send(Slot& slot);

    /// The chunk with its arrays on the device; x, apart from rhs, at `x`.
    System there(const Slot& slot, char* x) const;

    /// Enqueues a solve of `chunk`, and the copy of its outcome to the host.
    bool solve(const System& chunk, void* scratch, std::size_t scratch_bytes, void* outcome, void* outcome_here, void* stream);

    /// Where x of a chunk is copied to.
    char* x_here(const Slot& slot) const;

    /// Marks the end of the kernels and enqueues the copy of x at `from`.
    bool fetch(Slot& slot, const char* from);

    /// Waits for what send, the kernels and fetch have enqueued, and notes when it ran.
    bool wait(Slot& slot, bool sent, bool fetched);

    /// Pinned memory to x.
    void store(const Slot& slot);

    void release(Slot& slot);

    /// What gives back and waits: watched, not counted, on the lane's thread.
    template <class Call>
    void watched(Call call) {
        call_.watched(call);
    }

    /// After a call has failed: returns when nothing that was enqueued still writes.
    void quiet();

    /// The same, and not watched.
    void drain();

    /// Gives back what prepare has taken beside the kit's. Not watched.
    void close();

    Shared& shared;
    const int lane;
    const Part part;
    const devices::Runtime& runtime;
    const std::size_t size;
    devices::StreamKit& kit;
    Done& done;
    const double slower;
    Failure failure;

private:
    bool at(void* event, double& seconds);

    const int copiers_;
    Calls call_;
    void* base_ = nullptr;
    double base_s_ = 0, last_solved_ = 0;
};

}  // namespace trifold::tridiagonal::split
