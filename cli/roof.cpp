// SPDX-License-Identifier: BSD-3-Clause
#include "roof.hpp"

#include <algorithm>

#include "devices/context_state.hpp"

namespace trifold::cli {

ProblemRoof::ProblemRoof(const io::TridiagonalData& data, const io::Array& x, Context& context) {
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
    arrays.write = x.as<unsigned char>();
    // Stores past the cache are the faster ones where the arrays do not fit it; near it, both are tried.
    probes_.emplace_back(arrays, bytes, devices::Store::past_cache, context.threads());
    const bool far_outside =
        bytes * static_cast<std::size_t>(arrays.reads + 1) > 4 * context.state().topology().last_level();
    if (!far_outside) probes_.emplace_back(arrays, bytes, devices::Store::regular, context.threads());
}

void ProblemRoof::sample() {
    if (probes_.empty()) return;
    if (!samples_.empty()) {
        samples_.push_back(probes_[0].bytes_per_pass() / probes_[0].sample());
        return;
    }
    std::vector<double> found;
    for (devices::RoofProbe& probe : probes_) found.push_back(probe.measure(0.15).bytes_per_s);
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

}  // namespace trifold::cli
