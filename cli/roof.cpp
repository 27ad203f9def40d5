// SPDX-License-Identifier: BSD-3-Clause
#include "roof.hpp"

#include <algorithm>

#include "devices/context_state.hpp"
#include "devices/roof.hpp"

namespace trifold::cli {

double measure_roof(const io::TridiagonalData& data, const io::Array& x, Context& context) {
    const auto whole = static_cast<std::size_t>(x.shape().bytes());
    if (whole < 4096) return 0;
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
    const auto measure = [&](devices::Store store) {
        devices::RoofProbe probe(arrays, bytes, store, context.threads());
        return probe.measure(0.15).bytes_per_s;
    };
    // Stores past the cache are the faster ones where the arrays do not fit it; near it, both are tried.
    const double past = measure(devices::Store::past_cache);
    const bool far_outside = bytes * static_cast<std::size_t>(arrays.reads + 1) > 4 * context.state().topology().last_level();
    return far_outside ? past : std::max(past, measure(devices::Store::regular));
}

}  // namespace trifold::cli
