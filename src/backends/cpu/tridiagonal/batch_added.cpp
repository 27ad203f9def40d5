// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/batch_added.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdlib>

#include "backends/cpu/tridiagonal/batch.hpp"
#include "backends/cpu/tridiagonal/batch_kernel.hpp"
#include "backends/cpu/tridiagonal/batch_plan.hpp"
#include "backends/cpu/tridiagonal/seen.hpp"
#include "backends/cpu/tridiagonal/single.hpp"
#include "backends/cpu/tridiagonal/values.hpp"
#include "backends/cpu/useful_threads.hpp"
#include "base/round_up.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr std::int64_t rows_per_thread = 1 << 14;  // fewer do not pay for a thread
constexpr std::int64_t kept_bytes = 512 << 10;     ///< of x, where one block has not more
constexpr std::int64_t most_rows = 1 << 17;        ///< of two lines: 16 MiB

/// How the batch is cut, and where x of a group of blocks lies in scratch: as it lies in the caller's, rows or lanes side by side.
template <class T>
struct Cut {
    BatchShape shape;
    BatchJob<T> job;
    BatchOperand<T> x;  ///< the caller's
    bool along_rows;
    std::int64_t group;  ///< blocks

    explicit Cut(const System& system) : shape(shape_of(system)) {
        System plain = system;
        plain.accumulate = plain.in_place = false;
        job = job_of<T>(plain, shape, Algorithm::automatic);
        x = job.x;
        along_rows = std::llabs(x.row_stride) < std::llabs(x.lane_stride);
        group = std::max<std::int64_t>(kept_bytes / (job.rows * widest_block() * static_cast<std::int64_t>(sizeof(T))), 1);
        job.x.row_stride = along_rows ? 1 : group * widest_block();
        // Not a power of two: lines of many lanes would meet in few sets.
        job.x.lane_stride = along_rows ? round_up(job.rows, job.line) + job.line : 1;
        std::fill_n(job.x.outer_stride, 3, 0);
    }

    std::int64_t widest_block() const {
        const std::int64_t last = job.lanes - job.first_lane(job.blocks_per_run() - 1), others = job.narrow() ? job.overlapped_lines : (job.lines() + job.blocks_per_run() - 1) / job.blocks_per_run();
        return round_up(std::max(last, others * job.line), job.line);
    }
    std::int64_t y_elements() const { return along_rows ? group * widest_block() * job.x.lane_stride : job.rows * job.x.row_stride; }
    std::size_t y_bytes() const { return whole_lines(static_cast<std::size_t>(y_elements()) * sizeof(T)); }
    std::size_t kernel_bytes() const { return whole_lines(static_cast<std::size_t>(job.scratch_elements()) * sizeof(T)); }
    std::size_t thread_bytes() const { return y_bytes() + kernel_bytes() + whole_lines(4 * sizeof(T) * static_cast<std::size_t>(job.rows)) + 64; }
};

/// One thread at work.
template <class T>
struct Adder {
    const System& system;
    const Cut<T>& cut;
    BatchJob<T> job;
    T* y;
    T* kernel_scratch;
    void* line_scratch;
    Seen seen;
    std::int64_t first = 0;              ///< lane of the group
    bool any_failed = false;
    std::int8_t* failed;                 ///< of the group's lanes

    void group(std::int64_t block, std::int64_t end) {
        const std::int64_t run = block / job.blocks_per_run(), in_run = block % job.blocks_per_run();
        first = job.first_lane(in_run);
        const std::int64_t lanes = job.first_lane(in_run + end - block) - first;
        job.x.data = y - first * job.x.lane_stride;
        any_failed = false;
        solve_blocks(job, block, end, kernel_scratch, this);
        add(run, lanes);
    }

    static void handed_back(void* sink, std::int64_t outer, std::int64_t lane, BatchEvent event) {
        Adder& self = *static_cast<Adder*>(sink);
        if (event == BatchEvent::pivoted) {
            ++self.seen.rescued;
            return;
        }
        System line = system_at(self.system, self.cut.shape.index(outer, lane));
        line.accumulate = line.in_place = false;
        line.x = {};
        line.x.kind = Operand::Kind::view, line.x.row_stride = self.job.x.row_stride;
        line.x.data = self.y + (lane - self.first) * self.job.x.lane_stride;
        const auto fails = [&](Reason why, std::int64_t row) {
            if (!self.any_failed) std::fill_n(self.failed, self.cut.group * self.cut.widest_block(), std::int8_t{0});
            self.any_failed = true, self.failed[lane - self.first] = 1;
            self.seen.failed(line.number, why, row);
        };
        if (const std::int64_t row = first_not_finite<T>(line); row >= 0) return fails(Reason::not_finite, row);
        Launch launch;
        launch.scratch = self.line_scratch, launch.threads = 1;
        Outcome outcome;
        solve_single(line, Algorithm::automatic, launch, outcome);
        if (!outcome.ok()) return fails(outcome.reason, outcome.row);
        ++self.seen.rescued;
    }

    void add(std::int64_t run, std::int64_t lanes) {
        T* to = cut.x.data + first * cut.x.lane_stride;
        for (int l = job.outer_levels - 1; l >= 0; --l) to += run % job.outer_extent[l] * cut.x.outer_stride[l], run /= job.outer_extent[l];
        const std::int64_t inner = cut.along_rows ? job.rows : lanes, outer = cut.along_rows ? lanes : job.rows;
        const std::int64_t to_inner = cut.along_rows ? cut.x.row_stride : cut.x.lane_stride, to_outer = cut.along_rows ? cut.x.lane_stride : cut.x.row_stride;
        const std::int64_t y_outer = cut.along_rows ? job.x.lane_stride : job.x.row_stride;
        for (std::int64_t o = 0; o < outer; ++o) {
            T* const x = to + o * to_outer;
            const T* const z = y + o * y_outer;
            if (any_failed) {
                for (std::int64_t i = 0; i < inner; ++i)
                    if (!failed[cut.along_rows ? o : i]) x[i * to_inner] += z[i];
            } else if (to_inner == 1) {
#pragma omp simd
                for (std::int64_t i = 0; i < inner; ++i) x[i] += z[i];
            } else {
                for (std::int64_t i = 0; i < inner; ++i) x[i * to_inner] += z[i];
            }
        }
    }
};

template <class T>
std::size_t each_bytes(const Cut<T>& cut) {
    return cut.thread_bytes() + whole_lines(static_cast<std::size_t>(cut.group * cut.widest_block()));
}

template <class T>
void solve_typed(const System& system, const Launch& launch, Seen& all) {
    const Cut<T> cut(system);
    const std::size_t each = each_bytes(cut);
    const std::int64_t blocks = cut.job.blocks(), in_run = cut.job.blocks_per_run();
    const int threads = static_cast<int>(std::min<std::int64_t>(useful_threads(system.rows * system.systems(), rows_per_thread, launch.threads), blocks));
    const Seen nothing = all;
#pragma omp parallel num_threads(threads)
    {
        const std::int64_t me = omp_get_thread_num(), of = omp_get_num_threads();
        char* const scratch = static_cast<char*>(launch.scratch) + static_cast<std::size_t>(me) * each;
        char *const kernel = scratch + cut.y_bytes(), *const line = kernel + cut.kernel_bytes();
        Adder<T> adder{system, cut, cut.job, reinterpret_cast<T*>(scratch), reinterpret_cast<T*>(kernel), line, nothing, 0, false, reinterpret_cast<std::int8_t*>(scratch) + cut.thread_bytes()};
        adder.job.event = Adder<T>::handed_back;
        const std::int64_t end = blocks * (me + 1) / of;
        for (std::int64_t block = blocks * me / of; block < end;) {
            const std::int64_t next = std::min({block + cut.group, (block / in_run + 1) * in_run, end});
            adder.group(block, next);
            block = next;
        }
#pragma omp critical(trifold_cpu_batch_added)
        all.merge(adder.seen);
    }
}

}  // namespace

bool batch_adds(const System& system) {
    if (system.periodic || system.offsets || system.levels == 0 || system.rows < 1 || system.rows > most_rows) return false;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs})
        if (operand->kind == Operand::Kind::generator) return false;
    return true;
}

std::size_t batch_added_bytes(const System& system, int threads) {
    const std::size_t each = system.dtype == DType::f32 ? each_bytes(Cut<float>(system)) : each_bytes(Cut<double>(system));
    return each * static_cast<std::size_t>(useful_threads(system.rows * system.systems(), rows_per_thread, threads));
}

void solve_batch_added(const System& system, const Launch& launch, Outcome& outcome) {
    outcome = Outcome{};
    outcome.device = "cpu";
    if (launch.status) mark_all_exact(system, launch.status);
    Seen seen{launch.status};
    if (system.dtype == DType::f32) solve_typed<float>(system, launch, seen);
    else solve_typed<double>(system, launch, seen);
    seen.fill(outcome);
    outcome.tried_other = seen.rescued + seen.failures > 0;
    outcome.branch = outcome.tried_other && seen.rescued + seen.failures == system.systems() ? "lu" : "thomas";
}

}  // namespace trifold::cpu
