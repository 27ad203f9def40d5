// SPDX-License-Identifier: BSD-3-Clause
#include "devices/roof.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/available_memory.hpp"
#include "trifold/error.hpp"

namespace trifold::devices {
namespace {

using Clock = std::chrono::steady_clock;

using Into = StreamShape::Into;
constexpr StreamShape shapes[] = {{0, Into::first},     {512, Into::first},   {1024, Into::first}, {4096, Into::first},
                                  {1024, Into::second}, {4096, Into::second}, {1024, Into::once}};

/// Parts begin on pages, so that no two threads write one line.
struct Part {
    std::size_t first, last;
};
Part part(std::size_t bytes, int thread, int threads) {
    constexpr std::size_t page = 4096;
    const std::size_t pages = (bytes + page - 1) / page, t = static_cast<std::size_t>(thread), n = static_cast<std::size_t>(threads);
    return {std::min(bytes, pages * t / n * page), std::min(bytes, pages * (t + 1) / n * page)};
}

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

RoofProbe::RoofProbe(RoofMix mix, std::size_t footprint, int threads) : mix_(mix), threads_(std::max(1, threads)) {
    // Arrays that start at one offset within a page map to the same cache sets and delay each other's loads and stores.
    constexpr std::size_t page = 4096, stagger = page + 5 * 64;
    const auto count = static_cast<std::size_t>(mix.arrays());
    bytes_ = std::max(page, footprint / count / page * page);
    const std::size_t pitch = bytes_ + stagger, total = count * pitch;
    require_memory("roof", static_cast<double>(total), "measure a smaller footprint");
    own_ = AlignedBuffer(total);
    auto* base = static_cast<unsigned char*>(own_.data());
    arrays_.reads = mix.reads;
    for (int r = 0; r < mix.reads; ++r) arrays_.read[r] = base + static_cast<std::size_t>(r) * pitch;
    arrays_.write = mix.store == Store::in_place ? base + static_cast<std::size_t>(mix.reads - 1) * pitch
                    : mix.store == Store::none   ? nullptr
                                                 : base + static_cast<std::size_t>(mix.reads) * pitch;
#pragma omp parallel num_threads(threads_)
    {
        const Part mine = part(bytes_, omp_get_thread_num(), omp_get_num_threads());
        for (std::size_t k = 0; k < count; ++k) std::memset(base + k * pitch + mine.first, 1, mine.last - mine.first);
    }
}

RoofProbe::RoofProbe(const StreamArrays& arrays, std::size_t bytes, Store store, int threads)
    : arrays_(arrays), bytes_(bytes), mix_{arrays.reads, store}, threads_(std::max(1, threads)) {}

double RoofProbe::timed_passes(StreamShape shape, int passes) {
    // Each thread keeps its own time between two barriers of ours: the team's start and end are not part of a pass.
    std::atomic<int> ready{0};
    std::vector<double> start(static_cast<std::size_t>(threads_)), end(start);
    const auto zero = Clock::now();
    std::uint64_t seen = 0;
    int team = 1;
#pragma omp parallel num_threads(threads_) reduction(^ : seen)
    {
        const int t = omp_get_thread_num(), n = omp_get_num_threads();
        const Part mine = part(bytes_, t, n);
        if (t == 0) team = n;
        ready.fetch_add(1);
        for (int spins = 0; ready.load(std::memory_order_acquire) < n; ++spins)
            if (spins > 10000) std::this_thread::yield();
        start[static_cast<std::size_t>(t)] = seconds(Clock::now() - zero);
        for (int pass = 0; pass < passes; ++pass) seen ^= stream_pass(arrays_, mix_.store, shape, mine.first, mine.last);
        end[static_cast<std::size_t>(t)] = seconds(Clock::now() - zero);
    }
    static std::atomic<std::uint64_t> sink;
    sink.store(seen, std::memory_order_relaxed);
    const double took = *std::max_element(end.begin(), end.begin() + team) - *std::min_element(start.begin(), start.begin() + team);
    return std::max(took, 1e-9) / passes;
}

double RoofProbe::sample(StreamShape shape) {
    constexpr double worth_timing = 50e-6;
    if (passes_ == 0) {
        timed_passes(shape, 1);  // page faults, frequency
        passes_ = std::clamp(static_cast<int>(std::ceil(worth_timing / timed_passes(shape, 1))), 1, 10000);
    }
    return timed_passes(shape, passes_);
}

RoofMeasurement RoofProbe::measure(double budget_s) {
    struct Trial {
        StreamShape shape;
        std::vector<double> times;
        double median() {
            std::sort(times.begin(), times.end());
            return times[times.size() / 2];
        }
    };
    const auto begin = Clock::now();
    std::vector<Trial> trials;
    for (const StreamShape shape : shapes) trials.push_back({shape, {sample(shape)}});
    // All shapes for the first third of the time, the better two for the second, the best one for the rest.
    for (;;) {
        std::sort(trials.begin(), trials.end(), [](Trial& a, Trial& b) { return a.median() < b.median(); });
        const double used = seconds(Clock::now() - begin);
        const std::size_t keep = used * 3 < budget_s ? trials.size() : used * 3 < 2 * budget_s ? 2 : 1;
        trials.resize(std::min(trials.size(), keep));
        if (used > budget_s && trials.front().times.size() >= 3) break;
        for (Trial& trial : trials) trial.times.push_back(sample(trial.shape));
    }
    Trial* best = &trials.front();
    best_ = best->shape;
    RoofMeasurement out;
    out.bytes_per_s = bytes_per_pass() / best->median();
    out.footprint = bytes_ * static_cast<std::size_t>(mix_.arrays());
    out.threads = threads_;
    out.mix = mix_;
    out.shape = best_;
    out.samples = static_cast<int>(best->times.size());
    return out;
}

}  // namespace trifold::devices
