// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/batch_order.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>

#include "backends/cpu/tridiagonal/batch_plan.hpp"
#include "bench/harness/word.hpp"

namespace trifold::bench {

BatchOrder::BatchOrder(const devices::StreamArrays& arrays, const tridiagonal::System& system, int threads) : arrays_(arrays), threads_(threads) {
    const auto element = static_cast<std::int64_t>(size_of(system.dtype));
    const auto take = [&](const auto& job) {
        rows_ = job.rows, row_step_ = job.rhs.row_stride * element, lane_step_ = job.rhs.lane_stride * element;
        columns_ = job.rhs.row_stride == 1;
        width_ = columns_ ? job.block_lines : std::max(job.overlapped_lines, 1);
        lanes_ = width_ * job.line, ahead_ = job.ahead_rows, again_ = element == 8 ? 32 * line : 0;
        run_ = std::max<std::int64_t>(job.lanes / lanes_, 1), blocks_ = run_ * job.outer();
        for (int l = 0; l < job.outer_levels; ++l) extent_[l] = job.outer_extent[l], outer_step_[l] = job.rhs.outer_stride[l] * element;
    };
    const cpu::BatchShape shape = cpu::shape_of(system);
    if (system.dtype == DType::f32) take(cpu::job_of<float>(system, shape, tridiagonal::Algorithm::automatic));
    else take(cpu::job_of<double>(system, shape, tridiagonal::Algorithm::automatic));
    for (int t = 0; t < threads; ++t) scratch_.emplace_back(static_cast<std::size_t>((rows_ * 2 * width_ + 1) * line / 8));
}

double BatchOrder::sample() {
    const auto start = std::chrono::steady_clock::now();
#pragma omp parallel num_threads(threads_)
    {
        const std::int64_t t = omp_get_thread_num(), of = omp_get_num_threads();
        char* const scratch = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(scratch_[static_cast<std::size_t>(t)].data()) + 63) / 64 * 64);
        if (columns_) columns(blocks_ * t / of, blocks_ * (t + 1) / of, scratch);
        else lines(blocks_ * t / of, blocks_ * (t + 1) / of, scratch);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::int64_t BatchOrder::offset(std::int64_t block) const {
    std::int64_t at = block % run_ * lanes_ * lane_step_, rest = block / run_;
    for (int l = 2; l >= 0; --l) {
        at += rest % extent_[l] * outer_step_[l];
        rest /= extent_[l];
    }
    return at;
}

void BatchOrder::columns(std::int64_t first, std::int64_t last, char* scratch) {
    // Of a line of rows. FP32 and systems whose last line of rows is not whole are solved one block after the other: the better order is taken for them, too.
    const std::int64_t bytes = rows_ * row_step_, whole = bytes / line * line, scratch_lines = 2 * width_ * line / row_step_;
    bool upwards = true;
    std::uint64_t seen = 0;
    for (std::int64_t block = first; block <= last; ++block, upwards = !upwards) {
        const bool eliminates = block < last, substitutes = block > first;
        const std::int64_t here = eliminates ? offset(block) : 0, next = block + 1 < last ? offset(block + 1) : here;
        unsigned char* const x = arrays_.write + (substitutes ? offset(block - 1) : 0);
        std::int64_t asked = next, lane = 0;
        for (std::int64_t at = 0; at < whole; at += line) {
            char* s = scratch + (upwards ? at : whole - line - at) / line * scratch_lines * line;
            for (std::int64_t j = 0; j < lanes_; ++j) {
                for (int k = 0; k < 4 && eliminates; ++k) {
                    __builtin_prefetch(arrays_.read[k] + asked, 0, 2);
                    if (again_) __builtin_prefetch(arrays_.read[k] + asked - again_, 0, 2);
                    __builtin_prefetch(arrays_.read[k] + here + j * lane_step_ + at + line, 0, 3);
                    seen |= word_at(arrays_.read[k] + here + j * lane_step_ + at);
                }
                asked += line;
                if (lane_step_ != bytes && (asked - next - lane * lane_step_) >= whole) asked = next + ++lane * lane_step_;
            }
            for (std::int64_t l = 0; l < scratch_lines; ++l, s += line) {
                seen |= word_at(s);
                put(s, seen);
            }
            for (std::int64_t j = 0; j < lanes_ && substitutes; ++j) put(x + j * lane_step_ + whole - line - at, seen);
        }
    }
}

void BatchOrder::lines(std::int64_t first, std::int64_t last, char* scratch) {
    bool upwards = true;
    std::uint64_t seen = 0;
    for (std::int64_t block = first; block <= last; ++block, upwards = !upwards) {
        const bool eliminates = block < last, substitutes = block > first;
        const std::int64_t here = eliminates ? offset(block) : 0, next = block + 1 < last ? offset(block + 1) : here;
        unsigned char* const x = arrays_.write + (substitutes ? offset(block - 1) : 0);
        for (std::int64_t i = 0; i < rows_; ++i) {
            const std::int64_t back = rows_ - 1 - i;
            char* const s = scratch + (upwards ? i : back) * 2 * width_ * line;
            const std::int64_t soon = i + ahead_ < rows_ ? here + (i + ahead_) * row_step_ : next + (i + ahead_ - rows_) * row_step_;
            for (std::int64_t l = 0; l < width_; ++l) {
                if (substitutes) seen |= word_at(s + 2 * l * line) | word_at(s + (2 * l + 1) * line);
                if (eliminates) {
#pragma GCC unroll 4
                    for (int k = 0; k < 4; ++k) {
                        __builtin_prefetch(arrays_.read[k] + soon + l * line, 0, 2);
                        __builtin_prefetch(arrays_.read[k] + here + std::min(i + ahead_ * 3 / 8, rows_ - 1) * row_step_ + l * line, 0, 2);
                        seen |= word_at(arrays_.read[k] + here + i * row_step_ + l * line);
                    }
                    put(s + 2 * l * line, seen), put(s + (2 * l + 1) * line, seen);
                }
                if (!substitutes) continue;
                put(x + back * row_step_ + l * line, seen);
            }
        }
    }
}

}  // namespace trifold::bench
