// SPDX-License-Identifier: BSD-3-Clause
#include "planner/cost.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "problems/tridiagonal/normalise.hpp"

namespace trifold::tridiagonal {
namespace {

using devices::CellRate;
using devices::Profile;
using devices::Store;

/// Until it is measured: cautious, and in the order that holds on every machine.
CellRate default_rate(Algorithm algorithm, DType dtype, bool batch) noexcept {
    const double wide = dtype == DType::f32 ? 2 : 1;  // twice the lanes
    constexpr double call = 1e-6, team = 5e-6;
    if (batch) return {3e8 * wide, call, team, 0, 4};
    switch (algorithm) {
        case Algorithm::certified: return {5e8 * wide, call, team, 0, 4};
        case Algorithm::two_pass: return {2e8 * wide, call, team, 0, 1};
        case Algorithm::thomas: return {1e8, call / 4, 0, 0, 4};
        case Algorithm::twisted: return {1.5e8, call / 4, 0, 0, 4};
        case Algorithm::cyclic_reduction: return {3e7, call, 0, 0, 4};
        case Algorithm::pcr: return {5e6, call, 0, 0, 4};
        default: return {4e7, call / 4, 0, 0, 4};
    }
}

/// Words of every input that are read once more, and of the output written once more, than is needed.
struct Traffic {
    double reads, writes;
};
Traffic extra_traffic(Algorithm algorithm, bool batch) noexcept {
    if (batch) return {0, 0};  // what a tile keeps stays in cache
    switch (algorithm) {
        case Algorithm::certified: return {0.03, 0};  // halo rows
        case Algorithm::two_pass: return {1, 0};      // recomputed instead of stored
        default: return {1, 3};                       // factors stored, read back and overwritten
    }
}

bool uses_threads(Algorithm algorithm, bool batch) noexcept {
    return batch || algorithm == Algorithm::certified || algorithm == Algorithm::two_pass;
}

/// Systems are solved side by side in vectors of 64 bytes. A vector that is not full goes a slower way.
double lanes_used(const Features& f) noexcept {
    if (!f.batch) return 1;
    const double lanes = 64.0 / static_cast<double>(size_of(f.dtype)), full = std::floor(f.systems / lanes);
    const double part = f.systems > full * lanes ? 2.5 : 0;
    return f.systems / ((full + part) * lanes);
}

/// A thread is started for some thousands of rows, and in a batch for a vector of systems.
double most_threads(const Features& f) noexcept {
    if (!f.batch) return std::max(1.0, f.rows / 2048);
    return std::max(1.0, std::min(std::ceil(f.systems * static_cast<double>(size_of(f.dtype)) / 64.0), f.rows / 16384));
}

/// Between two paces, by the logarithm of the length: seconds per row and overheads, linearly.
CellRate between(const CellRate& low, const CellRate& high, double x) noexcept {
    auto mix = [x](double a, double b) { return a + x * (b - a); };
    return {1 / mix(1 / low.rows_per_s, 1 / high.rows_per_s), mix(low.overhead_s, high.overhead_s), mix(low.team_s, high.team_s),
            mix(low.serial, high.serial), mix(low.overlap, high.overlap)};
}

double seconds_on(const Features& f, Algorithm algorithm, const CellRate& rate, const Profile& profile, int threads) noexcept {
    const Shares shares = shares_of(f, algorithm, rate, profile, threads);
    return rate.overhead_s + (threads > 1 ? rate.team_s : 0) + together(shares, rate.overlap);
}

}  // namespace

Shares shares_of(const Features& f, Algorithm algorithm, const CellRate& rate, const Profile& profile, int threads) noexcept {
    const Traffic extra = extra_traffic(algorithm, f.batch);
    const double bytes = f.bytes + extra.reads * (f.bytes - f.output_bytes) + extra.writes * f.output_bytes;
    const double bandwidth =
        f.in_place ? profile.bandwidth_at(f.footprint, threads, Store::in_place)
                   : std::max(profile.bandwidth_at(f.footprint, threads, Store::past_cache),
                              profile.bandwidth_at(f.footprint, threads, Store::regular));
    return {bytes / bandwidth, f.rows * (rate.serial + (1 - rate.serial) / threads) / (rate.rows_per_s * lanes_used(f))};
}

double together(const Shares& shares, double overlap) noexcept {
    const double longer = std::max(shares.moving, shares.working), shorter = std::min(shares.moving, shares.working);
    return longer > 0 ? longer * std::pow(1 + std::pow(shorter / longer, overlap), 1 / overlap) : 0;
}

double overlap_of(const Shares& shares, double seconds) noexcept {
    double low = 0.5, high = 8;  // together() falls with overlap
    for (int step = 0; step < 40; ++step) {
        const double middle = 0.5 * (low + high);
        (together(shares, middle) > seconds ? low : high) = middle;
    }
    return low;
}

Features features_of(const System& system) noexcept {
    Features f;
    f.systems = static_cast<double>(system.systems());
    f.longest = static_cast<double>(system.rows);
    f.rows = f.longest * f.systems;
    if (system.offsets) f.rows = static_cast<double>(system.offsets[system.ragged_systems] - system.offsets[0]);
    f.bytes = needed_bytes(system);
    f.output_bytes = f.rows * static_cast<double>(size_of(system.dtype));
    f.in_place = system.in_place;
    f.footprint = static_cast<std::size_t>(f.bytes - (system.in_place || system.accumulate ? f.output_bytes : 0));
    f.batch = system.levels > 0 || system.offsets;
    f.contiguous = system.x.row_stride == 1 || system.x.row_stride == -1;
    f.dtype = system.dtype;
    return f;
}

Features one_line(const Features& batch) noexcept {
    Features f = batch;
    const double share = batch.rows > 0 ? 1 / std::max(1.0, batch.systems) : 1;
    f.systems = 1;
    f.rows *= share;
    f.bytes *= share;
    f.output_bytes *= share;
    f.batch = false;  // the footprint stays that of all: one line after another goes through the caches
    return f;
}

RateKey rate_key(const Ops& ops, Algorithm algorithm, DType dtype) noexcept {
    RateKey key;
    std::snprintf(key.text, sizeof key.text, "%s.%s.%s", ops.device, name_of(algorithm), trifold::name_of(dtype));
    return key;
}

RateKey rate_key(const Ops& ops, Algorithm algorithm, DType dtype, bool contiguous, std::int64_t length) noexcept {
    RateKey key;
    std::snprintf(key.text, sizeof key.text, "%s.%s.%s.%s.%lld", ops.device, name_of(algorithm), trifold::name_of(dtype),
                  contiguous ? "contiguous" : "interleaved", static_cast<long long>(length));
    return key;
}

CellRate rate_for(const Features& f, const Ops& ops, Algorithm algorithm, const Profile& profile) noexcept {
    if (profile.rates.empty()) return default_rate(algorithm, f.dtype, f.batch);
    if (!f.batch) {
        const CellRate* rate = profile.rate(rate_key(ops, algorithm, f.dtype).text);
        return rate ? *rate : default_rate(algorithm, f.dtype, false);
    }
    const CellRate *below = nullptr, *above = nullptr;
    double shorter = 0, longer = 0;
    for (const std::int64_t length : batch_lengths) {
        const CellRate* rate = profile.rate(rate_key(ops, algorithm, f.dtype, f.contiguous, length).text);
        if (!rate) continue;
        const auto at = static_cast<double>(length);
        if (at <= f.longest || !below) below = rate, shorter = at;
        above = rate, longer = at;
        if (at >= f.longest) break;
    }
    if (!below) return default_rate(algorithm, f.dtype, true);
    if (longer <= shorter || f.longest <= shorter) return *below;
    return between(*below, *above, std::min(1.0, std::log(f.longest / shorter) / std::log(longer / shorter)));
}

Prediction predict(const Features& f, const Ops& ops, Algorithm algorithm, const Profile& profile, int max_threads) noexcept {
    if (ops.enqueue) {
        // Of launching, moving the words, and for LU the scattered words of its scratch (pivoted.cu).
        constexpr double launch = 1e-5, unknown = 5e11, scattered = 10;
        return {launch + f.bytes / (ops.bytes_per_s > 0 ? ops.bytes_per_s : unknown) * (algorithm == Algorithm::lu ? scattered : 1), 1};
    }
    const CellRate rate = rate_for(f, ops, algorithm, profile);
    Prediction best{seconds_on(f, algorithm, rate, profile, 1), 1};
    if (!uses_threads(algorithm, f.batch)) return best;
    const int most = static_cast<int>(std::min<double>(max_threads, most_threads(f)));
    for (int threads = 2; threads <= most; threads = threads < most ? std::min(2 * threads, most) : most + 1) {
        const double seconds = seconds_on(f, algorithm, rate, profile, threads);
        if (seconds < best.seconds) best = {seconds, threads};
    }
    return best;
}

}  // namespace trifold::tridiagonal
