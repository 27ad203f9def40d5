// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <exception>
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

bool solve_chunk(const Ops& ops, const System& chunk, int threads, double tolerance, devices::ScratchArena& scratch, Outcome& outcome, Failure& failure) {
    constexpr Algorithm chain[] = {Algorithm::certified, Algorithm::two_pass, Algorithm::lu};
    for (const Algorithm algorithm : chain) {
        if (branch_refuses(ops, chunk, algorithm)) continue;
        const devices::Scratch block = scratch.take(branch_workspace(ops, chunk, algorithm, threads));
        Launch launch;
        launch.threads = threads;
        launch.scratch = block.data(), launch.scratch_bytes = block.bytes();
        launch.tolerance = tolerance;
        launch.device = ops.number;
        launch.failure = &failure;
        outcome = Outcome{};
        const bool final = run_branch(ops, chunk, algorithm, launch, outcome);
        if (failure.code) return false;
        if (final) return true;
    }
    return true;
}

void run_host_lane(Shared& shared, int lane, const Part& given, int threads, bool own_device, devices::ScratchArena& scratch, Calls call, double slower, Done& done) {
    const Part part = given;  // stays with this thread
    const double tolerance = shared.tolerance;
    const auto size = size_of(shared.system.dtype);
    AlignedBuffer aside;
    Chunk* chunk = nullptr;
    Failure failure;
    while (shared.board.take(lane, true, chunk) == Board::Taken::chunk) {
        const double begin = shared.seconds();
        System own = slice(shared.system, chunk->first, chunk->rows);
        Outcome outcome;
        bool solved = false;
        const bool beside = !own_device;
        try {
            const std::size_t bytes = static_cast<std::size_t>(chunk->rows) * size;
            if (beside) {
                if (aside.bytes() < bytes) aside = AlignedBuffer(), aside = AlignedBuffer(bytes);
                own.x.data = aside.data(), own.in_place = false;
            }
            solved = call(failure, [&] { return solve_chunk(*part.ops, own, threads, tolerance, scratch, outcome, failure); });
            const double end = shared.seconds();
            hold((slower - 1) * (end - begin));
            done.add(lane, 0, "kernel", *chunk, begin, shared.seconds(), needed_bytes(own, own.rows));
            if (solved && beside && outcome.ok()) {
                const double store = shared.seconds();
                copy_on_host(slice(shared.system, chunk->first, chunk->rows).x.data, aside.data(), bytes, threads);
                done.add(lane, 0, "store", *chunk, store, shared.seconds(), static_cast<double>(bytes));
            }
        } catch (const std::exception& error) {
            failure.say(ErrorCode::bad_input, error.what());
        }
        if (!solved) {
            done.retired = failure.message;
            shared.board.retire(lane);
            shared.board.give_back(*chunk);
            break;
        }
        const double seconds = shared.seconds() - begin;
        done.share.busy_s += seconds;
        if (!outcome.ok()) {
            outcome.row = outcome.row >= 0 ? outcome.row + chunk->first : -1;
            shared.board.give_back(*chunk);
            shared.board.stop(outcome);
            break;
        }
        done.share.rows += chunk->rows, done.share.chunks += 1;
        shared.board.finish(*chunk, outcome, seconds);
    }
}

}  // namespace trifold::tridiagonal::split
