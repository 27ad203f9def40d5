// SPDX-License-Identifier: BSD-3-Clause
#include "roof.hpp"

#include <algorithm>

#include "backends/registry.hpp"
#include "devices/context_state.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

// Threads that a stream over so many bytes is tried with. Near the caches one thread may do better than a team: a team waits for its last, and on a core that others use that one
// waits for its turn, thousands of times as long as a pass takes.
std::vector<int> teams(std::size_t bytes, int threads) {
    constexpr std::size_t near = std::size_t{64} << 20;
    return threads > 1 && bytes <= near ? std::vector<int>{threads, 1} : std::vector<int>{threads};
}

}  // namespace

ProblemRoof::ProblemRoof(const io::TridiagonalData& data, const io::Array& x, const Queue& queue) : queue_(queue) {
    const auto whole = static_cast<std::size_t>(x.shape().bytes());
    if (whole < 4096) return;
    devices::StreamArrays arrays;
    std::size_t bytes = whole;
    // Shared matrices and single numbers do not count: they stay in cache.
    for (const io::Array* array : {&data.lower, &data.diag, &data.upper, &data.rhs}) {
        const auto size = static_cast<std::size_t>(array->shape().bytes());
        if (size < whole / 2) continue;
        arrays.read[arrays.reads++] = array->as<unsigned char>();
        bytes = std::min(bytes, size);
    }
    if (queue.memory().kind == MemoryKind::device) {
        device_reads_ = std::max(arrays.reads, 1);
        device_bytes_ = bytes;
        return;
    }
    Context& context = queue.context();
    arrays.write = x.as<unsigned char>();
    // Stores past the cache are the faster ones where the arrays do not fit it; near it, both are tried.
    const std::size_t all = bytes * static_cast<std::size_t>(arrays.reads + 1);
    const bool far_outside = all > 4 * context.state().topology().last_level();
    for (const int threads : teams(all, context.threads())) {
        probes_.emplace_back(arrays, bytes, devices::Store::past_cache, threads);
        if (!far_outside) probes_.emplace_back(arrays, bytes, devices::Store::regular, threads);
    }
}

// What the device's own stream finds; where it has no memory left for that, there is no roof.
void ProblemRoof::sample_device() {
    const Device& device = device_at(queue_.device_index());
    Failure failure;
    double found = 0;
    if (device.runtime->bandwidth(device.number, queue_.stream(), device_reads_, false, device_bytes_, &found, failure) && found > 0)
        samples_.push_back(found);
}

void ProblemRoof::sample() {
    if (device_reads_ > 0) return sample_device();
    if (probes_.empty()) return;
    if (!samples_.empty()) {
        samples_.push_back(probes_[0].bytes_per_pass() / probes_[0].sample());
        return;
    }
    std::vector<double> found;
    const double several = probes_.size() > 2 ? 0.5 : 1;
    for (devices::RoofProbe& probe : probes_) found.push_back(probe.measure(several * std::clamp(8e-9 * probe.bytes_per_pass(), 0.02, 0.15)).bytes_per_s);  // some hundred passes
    const auto best = std::max_element(found.begin(), found.end());
    samples_.push_back(*best);
    std::swap(probes_[0], probes_[static_cast<std::size_t>(best - found.begin())]);
}

double ProblemRoof::bytes_per_s() const {
    if (samples_.empty()) return 0;
    std::vector<double> sorted = samples_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
}

double stream_bandwidth(const Queue& queue, std::size_t bytes, int reads) {
    constexpr std::size_t most = std::size_t{256} << 20;
    const Device& device = device_at(queue.device_index());
    if (device.runtime) {
        Failure failure;
        double found = 0;
        return device.runtime->bandwidth && device.runtime->bandwidth(device.number, queue.stream(), reads, false, most, &found, failure) ? found : 0;
    }
    double best = 0;
    const std::size_t all = (static_cast<std::size_t>(reads) + 1) * std::min(bytes, most);
    try {
        for (const int threads : teams(all, queue.context().threads()))
            for (const devices::Store store : {devices::Store::past_cache, devices::Store::regular}) {
                devices::RoofProbe probe({.reads = reads, .store = store}, all, threads);
                best = std::max(best, probe.measure(0.1).bytes_per_s);
            }
    } catch (const Error&) {
    }
    return best;
}

}  // namespace trifold::cli
