// SPDX-License-Identifier: BSD-3-Clause
#include "planner/cost.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>

#include "backends/registry.hpp"
#include "problems/tridiagonal/normalise.hpp"

namespace trifold::tridiagonal {
namespace {

using devices::Profile;
using devices::Store;

/// Until it is measured: cautious, and in the order that holds on every machine.
struct Pace {
    double rows_per_s, call_s, team_s;
};
Pace default_pace(Algorithm algorithm, DType dtype, bool batch) noexcept {
    const double wide = dtype == DType::f32 ? 2 : 1;  // twice the lanes
    constexpr double call = 1e-6, team = 5e-6;
    if (batch) return {5e8 * wide, call, team};
    switch (algorithm) {
        case Algorithm::certified: return {5e8 * wide, 5 * call, team};
        case Algorithm::two_pass: return {2e8 * wide, 20 * call, team};  // short chunks where there are few rows, and what couples them
        case Algorithm::automatic: return {1e8 * wide, call, team};
        case Algorithm::thomas: return {1e8, call / 4, 0};
        case Algorithm::twisted: return {1.5e8, call / 4, 0};
        case Algorithm::cyclic_reduction: return {3e7, call, 0};
        case Algorithm::pcr: return {5e6, call, 0};
        default: return {4e7, call / 4, 0};
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

bool uses_threads(const Ops& ops, Algorithm algorithm, bool batch) noexcept {
    static const void* const scalar = find_cell(device_at(find_device("reference")), "tridiagonal").ops;
    if (&ops == scalar) return false;
    return batch || algorithm == Algorithm::certified || algorithm == Algorithm::two_pass || algorithm == Algorithm::automatic;
}

/// Systems are solved side by side in vectors of 64 bytes. A vector that is not full goes a slower way.
double lanes_used(const Features& f) noexcept {
    if (!f.batch) return 1;
    const double lanes = 64.0 / static_cast<double>(size_of(f.dtype)), full = std::floor(f.systems / lanes);
    const double part = f.systems <= full * lanes ? 0 : f.contiguous ? 2.5 : 1.7;
    return f.systems / ((full + part) * lanes);
}

/// A thread is started for some thousands of rows, and in a batch for a vector of systems.
double most_threads(const Features& f) noexcept {
    if (!f.batch) return std::max(1.0, f.rows / 2048);
    return std::max(1.0, std::min(std::ceil(f.systems * static_cast<double>(size_of(f.dtype)) / 64.0), f.rows / 16384));
}

/// Seconds to move `bytes`, with a store of this solve's kind.
double moving(double bytes, std::size_t footprint, bool in_place, const Profile& profile, int threads) noexcept {
    if (in_place) return bytes / profile.bandwidth_at(footprint, threads, Store::in_place);
    return bytes / std::max(profile.bandwidth_at(footprint, threads, Store::past_cache), profile.bandwidth_at(footprint, threads, Store::regular));
}

double guessed_seconds(const Features& f, Algorithm algorithm, const Profile& profile, int threads) noexcept {
    const Pace pace = default_pace(algorithm, f.dtype, f.batch);
    const Traffic extra = extra_traffic(algorithm, f.batch);
    const double bytes = f.bytes + extra.reads * (f.bytes - f.output_bytes) + extra.writes * f.output_bytes;
    const double working = f.rows / (pace.rows_per_s * threads * lanes_used(f));
    return pace.call_s + (threads > 1 ? pace.team_s : 0) + std::max(moving(bytes, f.footprint, f.in_place, profile, threads), working);
}

/// Timings of an algorithm on problems of this kind: for a batch those of the two lengths around it, `weight` for the longer.
struct Curves {
    const std::vector<devices::Timing>*low = nullptr, *high = nullptr;
    double weight = 0;
    bool in_place = false;  ///< timed so
};
Curves curves_for(const Features& f, const Ops& ops, Algorithm algorithm, const Profile& profile) noexcept {
    Curves out;
    if (profile.timings.empty()) return out;
    if (!f.batch) {
        out.low = profile.timings_of(timing_key(ops, algorithm, f.dtype).text);
        if (!f.in_place) return out;
        // Only what leaves the caches is timed in place too: there the solvers take other ways.
        const auto* here = profile.timings_of(timing_key(ops, algorithm, f.dtype, true).text);
        if (here && (!out.low || f.passing >= devices::least_rows(*here))) out.low = here, out.in_place = true;
        return out;
    }
    double shorter = 0, longer = 0;
    for (const std::int64_t length : batch_lengths) {
        const auto at = static_cast<double>(length);
        const auto* here = profile.timings_of(timing_key(ops, algorithm, f.dtype, f.contiguous, length).text);
        if (!here) continue;
        if (at <= f.longest || !out.low) out.low = here, shorter = at;
        out.high = here, longer = at;
        if (at >= f.longest) break;
    }
    if (longer > shorter && f.longest > shorter) out.weight = std::min(1.0, std::log(f.longest / shorter) / std::log(longer / shorter));
    return out;
}

/// What was measured for as many rows; in a batch, rows of vectors that are full. `least`: were they all in the nearest cache.
struct Measured {
    double seconds, least;
};
Measured measured(const std::vector<devices::Timing>& curve, const Features& f, int threads) noexcept {
    const double rows = f.rows / lanes_used(f), passing = f.passing / lanes_used(f);
    Measured out{devices::seconds_for(curve, rows, threads), rows * devices::least_per_row(curve, threads)};
    // What came by since the last time is no longer in cache, however few rows this system has.
    if (passing > rows) out.seconds = std::max(out.seconds, devices::seconds_for(curve, passing, threads) * (rows / passing));
    return out;
}

double seconds_on(const Features& f, Algorithm algorithm, const Curves& curves, const Profile& profile, int threads) noexcept {
    if (!curves.low) return guessed_seconds(f, algorithm, profile, threads);
    Measured there = measured(*curves.low, f, threads);
    if (curves.weight > 0) {
        const Measured longer = measured(*curves.high, f, threads);
        there = {there.seconds * std::pow(longer.seconds / there.seconds, curves.weight),
                 there.least * std::pow(longer.least / there.least, curves.weight)};
    }
    // Validating, planning and taking scratch are not part of what was timed.
    constexpr double call = 1e-6;
    // Measured were five arrays. What moves fewer words is faster, but not than in cache.
    const double five = 5 * static_cast<double>(size_of(f.dtype));
    const auto all = static_cast<std::size_t>(std::min(f.passing * five * (curves.in_place ? 0.8 : 1), 0x1p62));
    // Beyond what was measured a larger memory may be a slower one: nothing is faster than it.
    if (f.passing > devices::most_rows(*curves.low))
        there.seconds = std::max(there.seconds, moving(f.rows * five, all, curves.in_place, profile, threads));
    if (f.bytes >= f.rows * five && f.in_place == curves.in_place) return call + there.seconds;
    const double ratio = moving(f.bytes, f.footprint, f.in_place, profile, threads) / moving(f.rows * five, all, curves.in_place, profile, threads);
    return call + (ratio < 1 ? std::max(there.seconds * ratio, std::min(there.seconds, there.least)) : there.seconds);
}

}  // namespace

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
    f.passing = f.rows;
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
    f.batch = false;  // passing and footprint stay those of all: one line after another goes through the caches
    return f;
}

namespace {

// By hand: a plan is made for every call, and printf takes longer than the rest of it.
void append(TimingKey& key, std::size_t& at, std::string_view text) noexcept {
    const std::size_t count = std::min(text.size(), sizeof key.text - 1 - at);
    std::copy_n(text.data(), count, key.text + at);
    key.text[at += count] = '\0';
}

}  // namespace

TimingKey timing_key(const Ops& ops, Algorithm algorithm, DType dtype, bool in_place) noexcept {
    TimingKey key;
    std::size_t at = 0;
    for (const std::string_view part : {std::string_view(ops.device), std::string_view("."), std::string_view(name_of(algorithm)),
                                        std::string_view("."), std::string_view(trifold::name_of(dtype)),
                                        std::string_view(in_place ? ".in_place" : "")})
        append(key, at, part);
    return key;
}

TimingKey timing_key(const Ops& ops, Algorithm algorithm, DType dtype, bool contiguous, std::int64_t length) noexcept {
    TimingKey key = timing_key(ops, algorithm, dtype);
    std::size_t at = std::string_view(key.text).size();
    append(key, at, contiguous ? ".contiguous." : ".interleaved.");
    char digits[24];
    append(key, at, {digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, length).ptr - digits)});
    return key;
}

TimingKey small_timing_key(const Ops& ops, DType dtype) noexcept {
    TimingKey key;
    std::size_t at = 0;
    for (const std::string_view part : {std::string_view(ops.device), std::string_view(".small."), std::string_view(trifold::name_of(dtype))}) append(key, at, part);
    return key;
}

Prediction predict_small(const Features& f, const Ops& ops, const Profile& profile) noexcept {
    constexpr double call = 7e-8, rows_per_s = 2.3e8;
    if (const auto* curve = profile.timings_of(small_timing_key(ops, f.dtype).text)) return {call + devices::seconds_for(*curve, f.rows, 1), 1};
    return {call + f.rows / rows_per_s, 1};
}

Prediction predict(const Features& f, const Ops& ops, Algorithm algorithm, const Profile& profile, int max_threads) noexcept {
    if (ops.enqueue) {
        // Of launching, moving the words, and for LU the scattered words of its scratch (pivoted.cu).
        constexpr double launch = 1e-5, unknown = 5e11, twice = 2, scattered = 10;
        const double times = algorithm == Algorithm::lu ? scattered : algorithm == Algorithm::two_pass ? twice : 1;
        return {launch + f.bytes / (ops.bytes_per_s > 0 ? ops.bytes_per_s : unknown) * times, 1};
    }
    const Curves curves = curves_for(f, ops, algorithm, profile);
    Prediction best{seconds_on(f, algorithm, curves, profile, 1), 1};
    if (!uses_threads(ops, algorithm, f.batch)) return best;
    const int most = static_cast<int>(std::min<double>(max_threads, most_threads(f)));
    for (int threads = 2; threads <= most; threads = threads < most ? std::min(2 * threads, most) : most + 1) {
        const double seconds = seconds_on(f, algorithm, curves, profile, threads);
        if (seconds < best.seconds) best = {seconds, threads};
    }
    return best;
}

}  // namespace trifold::tridiagonal
