// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/single_ceiling.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <limits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "backends/cpu/tridiagonal/cell.hpp"
#include "backends/cpu/tridiagonal/pivoted_job.hpp"
#include "bench/harness/word.hpp"
#include "devices/prefetch_level.hpp"
#include "families/tridiagonal/certified.hpp"
#include "trifold/dtype.hpp"

namespace trifold::bench {
namespace {

/// A whole line, past the caches where the machine can.
void stream_line(unsigned char* p, std::uint64_t word) {
#if defined(__SSE2__)
    const __m128i both = _mm_set1_epi64x(static_cast<long long>(word));
    for (int k = 0; k < 4; ++k) _mm_stream_si128(reinterpret_cast<__m128i*>(p) + k, both);
#else
    for (int k = 0; k < 8; ++k) put(p + 8 * k, word);
#endif
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

SingleCeiling::SingleCeiling(Pass pass, const devices::StreamArrays& arrays, const tridiagonal::System& system, int threads)
    : pass_(pass), arrays_(arrays), system_(system), threads_(threads) {
    const auto size = static_cast<std::int64_t>(size_of(system.dtype)), per_line = line / size;
    second_level_ = devices::asks_second_level();
    if (pass == Pass::certified) {
        const tridiagonal::Stretches cut = tridiagonal::plan_stretches(system, 4 * per_line, 0);
        lanes_ = cut.lanes, groups_ = cut.groups, first_ = cut.first * size, lines_ = cut.length / per_line, last_lines_ = cut.last_length / per_line;
        block_lines_ = cut.block / per_line, stream_ = cut.stream, ask_lines_ = second_level_ ? 12 : size == 4 ? 3 : 4;
        ring_bytes_ = 2 * (2 * block_lines_ + 4) * per_line * line;
    } else {
        const std::int64_t off = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(system.x.data)) / size % per_line;
        const cpu::PivotedCut cut(system.rows, per_line, off, cpu::PivotedCut::shortest, per_line);
        // The last group is cut in the same way and ends beyond the system: what is there of it is left out.
        lanes_ = cut.lanes, lines_ = last_lines_ = cut.length() / per_line, first_ = (cut.lanes * cut.length() - cut.pad) * size;
        groups_ = std::max<std::int64_t>(cut.groups - 2, 1), block_lines_ = cut.block / per_line;
        stream_ = !system.in_place, ask_lines_ = second_level_ ? 12 : 4;
        ring_bytes_ = 3 * 3 * cut.block * line;
        if (system.in_place) logs_ = AlignedBuffer(static_cast<std::size_t>(groups_ * lanes_ * lines_ * line));
    }
    rings_ = AlignedBuffer(static_cast<std::size_t>(threads * ring_bytes_));

    // A matrix of numbers that forgets at once; what is computed does not depend on the numbers.
    tridiagonal::Operand* const operands[] = {&system_.lower, &system_.diag, &system_.upper, &system_.rhs};
    const double numbers[] = {-1, 4, -1, 1};
    for (int k = 0; k < 4; ++k) *operands[k] = {}, operands[k]->value = numbers[k];
    system_.in_place = false;
    const auto& ops = cpu::cpu_ops();
    scratch_ = AlignedBuffer(pass == Pass::certified ? tridiagonal::certified_workspace(ops, system_, threads) : ops.sweep_pivoted_scratch(system_, threads));

    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 3; ++round)
        for (const Order order : {Order{}, Order{true, 0}, Order{true, 4}, Order{true, 8}, Order{true, 12}})
            if (const double s = this->pass(order); s < best) best = s, order_ = order;
}

double SingleCeiling::computing() {
    tridiagonal::Launch launch;
    launch.threads = threads_, launch.scratch = scratch_.data(), launch.scratch_bytes = scratch_.bytes();
    launch.tolerance = unit_roundoff(system_.dtype);
    Outcome outcome;
    const auto start = std::chrono::steady_clock::now();
    const bool solved = pass_ == Pass::certified ? tridiagonal::solve_certified(cpu::cpu_ops(), system_, launch, outcome)
                                                 : cpu::cpu_ops().sweep_pivoted(system_, launch);
    return solved ? seconds_since(start) : std::numeric_limits<double>::quiet_NaN();
}

double SingleCeiling::pass(Order order) {
    const auto start = std::chrono::steady_clock::now();
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
    for (std::int64_t g = 0; g < groups_; ++g)
        group(g, static_cast<unsigned char*>(rings_.data()) + omp_get_thread_num() * ring_bytes_,
              logs_.bytes() ? static_cast<unsigned char*>(logs_.data()) + g * lanes_ * lines_ * line : nullptr, order);
    // Rows that the cut leaves out count as if they had been moved as fast.
    const double moved = static_cast<double>(((groups_ - 1) * lines_ + last_lines_) * lanes_ * line);
    return seconds_since(start) * static_cast<double>(system_.rows) * static_cast<double>(size_of(system_.dtype)) / moved;
}

void SingleCeiling::group(std::int64_t number, unsigned char* ring, unsigned char* log, Order order) const {
    const std::int64_t lines = number + 1 < groups_ ? lines_ : last_lines_, step = lines * line, start = first_ + number * lanes_ * lines_ * line;
    const std::int64_t per_row = pass_ == Pass::certified ? 2 : 3, behind = (pass_ == Pass::certified ? 1 : 2) * block_lines_;
    std::uint64_t seen = 0, waited = 1;
    std::int64_t slot = 0, back = ring_bytes_ - per_row * line;
    const auto read = [&](int k, std::int64_t lane, std::int64_t t) {
        const unsigned char* const p = arrays_.read[k] + start + lane * step + t * line;
        if (second_level_) __builtin_prefetch(p + ask_lines_ * line, 0, 2);
        else __builtin_prefetch(p + ask_lines_ * line, 0, 3);
        seen += word_at(p);
    };
    for (std::int64_t t = 0; t < lines + behind; ++t) {
        // x of a block is stored from its last line to its first, so many lines behind.
        const std::int64_t stored = t - behind, block = stored / block_lines_ * block_lines_, down_to = block + std::min(block_lines_, lines - block) - 1 - (stored - block);
        if (t < lines && !order.by_lane)
            for (int k = 0; k < 4; ++k)
                for (std::int64_t lane = 0; lane < lanes_; ++lane) read(k, lane, t);
        for (std::int64_t lane = 0; lane < lanes_; ++lane) {
            waited = wait_for(waited, order.pause);
            if (t < lines && order.by_lane)
                for (int k = 0; k < 4; ++k) read(k, lane, t);
            if (log && t < lines) stream_line(log, seen), log += line;
            // The certified pass writes where it has just read.
            unsigned char* const to = ring + (pass_ == Pass::certified ? back : slot);
            for (std::int64_t l = 0; l < per_row; ++l) {
                seen += word_at(ring + back + l * line);
                put(to + l * line, seen | waited >> 63);
            }
            if ((slot += per_row * line) + per_row * line > ring_bytes_) slot = 0;
            if ((back -= per_row * line) < 0) back = ring_bytes_ - per_row * line;
            if (stored < 0) continue;
            unsigned char* const x = arrays_.write + start + lane * step + down_to * line;
            if (stream_) stream_line(x, seen);
            else put(x, seen);
        }
    }
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace trifold::bench
