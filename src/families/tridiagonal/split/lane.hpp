// SPDX-License-Identifier: BSD-3-Clause
// Who solves chunks in a split solve: one lane per device, each on a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "devices/scratch.hpp"
#include "devices/stream_kit.hpp"
#include "families/tridiagonal/split/board.hpp"
#include "families/tridiagonal/split/part.hpp"
#include "trifold/report.hpp"

namespace trifold::tridiagonal::split {

using Clock = std::chrono::steady_clock;

/// What all lanes share.
struct Shared {
    const System& system;
    Board& board;
    double tolerance;
    Clock::time_point start;
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
};

/// What a lane did.
struct Done {
    DeviceShare share;
    std::vector<TraceEvent> trace;
    std::string retired;  ///< why it gave up; empty: it did not

    void add(int lane, int slot, const char* phase, const Chunk& chunk, double begin, double end, double bytes) {
        trace.push_back({lane, slot, phase, chunk.first, chunk.rows, begin, end, bytes});
    }
};

/// By up to so many threads.
void copy_on_host(void* to, const void* from, std::size_t bytes, int threads);

/// Bytes that a chunk's kernel needs: each input read once, each output written once.
double needed_bytes(const System& system, std::int64_t rows);

/// A device that works in the host's memory, on `threads` threads of its own making. `own`: the host's own, which is not watched and leaves what it fails to solve in
/// place as it was; any other solves into memory of its own first, since it may fail in the middle, or store when it was left behind.
void run_host_lane(Shared& shared, int lane, const Part& part, int threads, bool own, devices::ScratchArena& scratch, Calls call, double slower, Done& done);

/// The host's own device likewise, but each of its threads takes chunks for itself: none waits for another where a chunk ends, and what a thread has lost to somebody
/// else's work the others make good.
void run_host_threads(Shared& shared, int lane, const Part& part, int threads, devices::ScratchArena& scratch, Calls call, double slower, Done& done);

/// One chunk, of a system of so many rows, on such a device: by the certified pass, else by two passes, as it solves any long system.
bool solve_chunk(const Ops& ops, const System& chunk, std::int64_t of_rows, int threads, double tolerance, devices::ScratchArena& scratch, Outcome& outcome, Failure& failure);

/// Rows that a chunk may have on a device with memory of its own, `slots` of them there at a time; 0 where not even small ones fit.
std::int64_t slot_rows(const System& system, const Part& part, int slots, std::int64_t most);

/// A device with memory of its own: chunks go there, are solved and come back, `slots` of them at a time. `copiers`: threads that copy
/// between pageable and pinned memory.
void run_stream_lane(Shared& shared, int lane, const Part& part, int slots, std::int64_t rows, int copiers, devices::StreamKits& kits, Calls call, double slower,
                     Done& done);

}  // namespace trifold::tridiagonal::split
