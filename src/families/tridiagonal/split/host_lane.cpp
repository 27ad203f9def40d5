// SPDX-License-Identifier: BSD-3-Clause
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "base/aligned_buffer.hpp"
#include "families/tridiagonal/branch.hpp"
#include "families/tridiagonal/certified.hpp"
#include "families/tridiagonal/split/lane.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::tridiagonal::split {
namespace {

void hold(double seconds) {
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

double needed_bytes(const System& system, std::int64_t rows) {
    double words = 2;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper}) words += operand->kind == Operand::Kind::view;
    return words * static_cast<double>(rows) * static_cast<double>(size_of(system.dtype));
}

bool solve_chunk(const Ops& ops, const System& chunk, std::int64_t of_rows, int threads, double tolerance, devices::ScratchArena& scratch, Outcome& outcome, Failure& failure) {
    constexpr Algorithm chain[] = {Algorithm::certified, Algorithm::two_pass, Algorithm::lu};
    for (const Algorithm algorithm : chain) {
        if (branch_refuses(ops, chunk, algorithm)) continue;
        const bool one_pass = algorithm == Algorithm::certified && !ops.enqueue;
        const CertifiedPart part{of_rows, threads == 1};
        const devices::Scratch block = scratch.take(one_pass ? certified_workspace(ops, chunk, threads, part) : branch_workspace(ops, chunk, algorithm, threads));
        Launch launch;
        launch.threads = threads;
        launch.scratch = block.data(), launch.scratch_bytes = block.bytes();
        launch.tolerance = tolerance;
        launch.device = ops.number;
        launch.failure = &failure;
        outcome = Outcome{};
        const bool final = one_pass ? solve_certified(ops, chunk, launch, outcome, part) : run_branch(ops, chunk, algorithm, launch, outcome);
        if (failure.code) return false;
        if (final) return true;
    }
    return true;
}

namespace {

class HostLane {
public:
    HostLane(Shared& shared, int lane, const Part& part, bool own, devices::ScratchArena& scratch, Calls call, double slower, Done& done)
        : shared_(shared), lane_(lane), part_(part), beside_(!own), of_rows_(shared.system.rows), tolerance_(shared.tolerance), scratch_(scratch), call_(std::move(call)), slower_(slower), done_(done) {}

    /// Chunks by `threads` threads together; `slot` of `slots` that do so at the same time.
    void run(int threads, int slot, int slots) {
        AlignedBuffer aside;
        Chunk* chunk = nullptr;
        double rows = 0, busy = 0;  // of this one, what is longer ago counting less
        while (!over_ && shared_.board.take(lane_, true, chunk, busy > 0 ? rows / busy : 0) == Board::Taken::chunk) {
            const double begin = shared_.seconds();
            Failure failure;
            Outcome outcome;
            if (!solve(*chunk, threads, slot, aside, outcome, failure)) {
                over_ = true;
                const std::lock_guard lock(mutex_);
                done_.retired = failure.message;
                shared_.board.retire(lane_);
                shared_.board.give_back(*chunk);
                return;
            }
            const double seconds = shared_.seconds() - begin;
            if (!outcome.ok()) {
                outcome.row = outcome.row >= 0 ? outcome.row + chunk->first : -1;
                shared_.board.give_back(*chunk);
                shared_.board.stop(outcome);
                return;
            }
            {
                const std::lock_guard lock(mutex_);
                done_.share.busy_s += seconds / slots;
                done_.share.rows += chunk->rows, done_.share.chunks += 1;
            }
            rows = rows / 2 + static_cast<double>(chunk->rows), busy = busy / 2 + seconds;
            shared_.board.finish(*chunk, outcome, seconds);
        }
    }

private:
    bool solve(const Chunk& chunk, int threads, int slot, AlignedBuffer& aside, Outcome& outcome, Failure& failure) {
        const double begin = shared_.seconds();
        System own = slice(shared_.system, chunk.first, chunk.rows);
        const std::size_t bytes = static_cast<std::size_t>(chunk.rows) * size_of(own.dtype);
        try {
            if (beside_) {
                if (aside.bytes() < bytes) aside = AlignedBuffer(), aside = AlignedBuffer(bytes);
                own.x.data = aside.data(), own.in_place = false;
            }
            if (!call_.begin(failure, shared_.board, lane_)) return false;
            if (!call_(failure, [&] { return solve_chunk(*part_.ops, own, of_rows_, threads, tolerance_, scratch_, outcome, failure); })) return false;
            hold((slower_ - 1) * (shared_.seconds() - begin));
            note(slot, "kernel", chunk, begin, needed_bytes(own, own.rows));
            if (beside_ && outcome.ok()) {
                const double store = shared_.seconds();
                copy_on_host(slice(shared_.system, chunk.first, chunk.rows).x.data, aside.data(), bytes, threads);
                note(slot, "store", chunk, store, static_cast<double>(bytes));
            }
        } catch (const std::exception& error) {
            failure.say(ErrorCode::bad_input, error.what());
            return false;
        }
        return true;
    }

    void note(int slot, const char* phase, const Chunk& chunk, double begin, double bytes) {
        const std::lock_guard lock(mutex_);
        done_.add(lane_, slot, phase, chunk, begin, shared_.seconds(), bytes);
    }

    Shared& shared_;
    const int lane_;
    const Part part_;  // stays with this thread, as what follows, which is looked at inside calls
    const bool beside_;
    const std::int64_t of_rows_;
    const double tolerance_;
    devices::ScratchArena& scratch_;
    Calls call_;
    const double slower_;
    Done& done_;
    std::mutex mutex_;
    std::atomic<bool> over_{false};
};

}  // namespace

void run_host_lane(Shared& shared, int lane, const Part& part, int threads, bool own, devices::ScratchArena& scratch, Calls call, double slower, Done& done) {
    HostLane(shared, lane, part, own, scratch, std::move(call), slower, done).run(threads, 0, 1);
}

void run_host_threads(Shared& shared, int lane, const Part& part, int threads, devices::ScratchArena& scratch, Calls call, double slower, Done& done) {
    HostLane host(shared, lane, part, true, scratch, std::move(call), slower, done);
#pragma omp parallel num_threads(threads)
    host.run(1, omp_get_thread_num(), omp_get_num_threads());
}

}  // namespace trifold::tridiagonal::split
