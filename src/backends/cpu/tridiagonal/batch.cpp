// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/batch.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/tridiagonal/batch_kernel.hpp"
#include "backends/cpu/tridiagonal/batch_plan.hpp"
#include "backends/cpu/tridiagonal/single.hpp"
#include "backends/cpu/tridiagonal/values.hpp"
#include "backends/cpu/useful_threads.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::System;

// Below this many rows per thread the threads cost more than they bring.
constexpr std::int64_t rows_per_thread = 1 << 14;

// What one thread saw; sums and minima, so that the order does not matter.
struct Seen {
    const System* system = nullptr;
    const BatchShape* shape = nullptr;
    Algorithm algorithm = Algorithm::automatic;
    Launch launch;           // scratch: for one line
    std::int64_t failures = 0, rescued = 0, first_failed = -1, row = -1;
    Reason reason = Reason::none;

    void failed(const System& line, Reason why, std::int64_t where) {
        ++failures;
        if (launch.status) launch.status[line.number] = static_cast<std::int8_t>(why);
        if (first_failed >= 0 && first_failed < line.number) return;
        first_failed = line.number, reason = why, row = where;
    }

    void merge(const Seen& other) {
        failures += other.failures, rescued += other.rescued;
        if (other.first_failed < 0 || (first_failed >= 0 && first_failed < other.first_failed)) return;
        first_failed = other.first_failed, reason = other.reason, row = other.row;
    }
};

template <class T>
void handed_back(void* sink, std::int64_t outer, std::int64_t lane, BatchEvent event) {
    Seen& seen = *static_cast<Seen*>(sink);
    if (event == BatchEvent::pivoted) {
        seen.rescued += seen.algorithm == Algorithm::automatic;
        return;
    }
    const System line = system_at(*seen.system, seen.shape->index(outer, lane));
    if (event == BatchEvent::overflow && line.in_place) return seen.failed(line, Reason::not_finite, 0);
    if (const std::int64_t row = first_not_finite<T>(line); row >= 0) return seen.failed(line, Reason::not_finite, row);
    Launch launch = seen.launch;
    launch.status = nullptr;
    Outcome outcome;
    solve_single(line, seen.algorithm, launch, outcome);
    if (!outcome.ok()) return seen.failed(line, outcome.reason, outcome.row);
    if (seen.algorithm == Algorithm::automatic) ++seen.rescued;
}

template <class T>
std::size_t thread_bytes(const BatchJob<T>& job) {
    const std::size_t kernel = static_cast<std::size_t>(job.scratch_elements()) * sizeof(T), line = 4 * sizeof(T) * static_cast<std::size_t>(job.rows);
    return (kernel + line + 127) / 64 * 64;
}

template <class T>
void solve_typed(const System& system, Algorithm algorithm, const Launch& launch, Seen& all) {
    const BatchShape shape = shape_of(system);
    BatchJob<T> job = job_of<T>(system, shape, algorithm);
    job.event = handed_back<T>;
    const std::size_t bytes = thread_bytes(job);
    const std::int64_t blocks = job.blocks();
    const int threads = static_cast<int>(std::min<std::int64_t>(useful_threads(system.rows * system.systems(), rows_per_thread, launch.threads), blocks));
    const Seen nothing = all;  // a thread may begin when another one has already merged what it saw
    const auto work = [&](int k, int of) {
        char* const scratch = static_cast<char*>(launch.scratch) + static_cast<std::size_t>(k) * bytes;
        Seen seen = nothing;
        seen.shape = &shape;
        seen.launch.scratch = scratch + (static_cast<std::size_t>(job.scratch_elements()) * sizeof(T) + 63) / 64 * 64;
        solve_blocks(job, blocks * k / of, blocks * (k + 1) / of, reinterpret_cast<T*>(scratch), &seen);
        return seen;
    };
    if (threads == 1) {
        all = work(0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        const Seen seen = work(omp_get_thread_num(), omp_get_num_threads());
#pragma omp critical(trifold_cpu_batch)
        all.merge(seen);
    }
}

}  // namespace

void mark_all_exact(const System& system, std::int8_t* status) {
    const std::int64_t* e = system.extent;
    const std::int64_t* s = system.number_stride;
    for (std::int64_t i = 0; i < e[0]; ++i)
        for (std::int64_t j = 0; j < e[1]; ++j)
            for (std::int64_t k = 0; k < e[2]; ++k)
                for (std::int64_t l = 0; l < e[3]; ++l)
                    status[system.number + i * s[0] + j * s[1] + k * s[2] + l * s[3]] = static_cast<std::int8_t>(Reason::exact);
}

std::size_t batch_bytes(const System& system, Algorithm algorithm, int threads) {
    const BatchShape shape = shape_of(system);
    const std::size_t one = system.dtype == DType::f32 ? thread_bytes(job_of<float>(system, shape, algorithm))
                                                       : thread_bytes(job_of<double>(system, shape, algorithm));
    return one * static_cast<std::size_t>(useful_threads(system.rows * system.systems(), rows_per_thread, threads));
}

void solve_batch(const System& system, Algorithm algorithm, const Launch& launch, Outcome& outcome) {
    outcome = Outcome{};
    outcome.device = "cpu";
    if (launch.status) mark_all_exact(system, launch.status);
    Seen all;
    all.system = &system;
    all.algorithm = algorithm;
    all.launch = launch;
    if (system.dtype == DType::f32) solve_typed<float>(system, algorithm, launch, all);
    else solve_typed<double>(system, algorithm, launch, all);
    const bool all_pivoted = algorithm == Algorithm::lu || (all.rescued > 0 && all.rescued + all.failures == system.systems());
    outcome.branch = all_pivoted ? "lu" : "thomas";
    outcome.reason = all.failures > 0 ? all.reason : Reason::exact;
    outcome.system = all.first_failed;
    outcome.row = all.row;
    outcome.failures = all.failures;
    outcome.rescued = all.rescued;
    outcome.tried_other = algorithm == Algorithm::automatic && all.rescued + all.failures > 0;
}

}  // namespace trifold::cpu
