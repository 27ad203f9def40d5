// SPDX-License-Identifier: BSD-3-Clause
#include "devices/profile.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/available_memory.hpp"
#include "devices/roof.hpp"

namespace trifold::devices {
namespace {

/// 1/bandwidth at a footprint, linear in its logarithm between the neighbours with this store and these threads; 0 where
/// there is none.
double seconds_per_byte(const std::vector<Bandwidth>& points, double footprint, int threads, Store store) {
    const Bandwidth *below = nullptr, *above = nullptr;
    for (const Bandwidth& p : points) {
        if (p.threads != threads || p.store != store || p.bytes_per_s <= 0) continue;
        const auto at = static_cast<double>(p.footprint);
        if (at <= footprint && (!below || p.footprint > below->footprint)) below = &p;
        if (at >= footprint && (!above || p.footprint < above->footprint)) above = &p;
    }
    if (!below) below = above;
    if (!above) above = below;
    if (!below) return 0;
    const double low = 1 / below->bytes_per_s, high = 1 / above->bytes_per_s;
    if (below->footprint == above->footprint) return low;
    const double x = std::log(footprint / static_cast<double>(below->footprint)) /
                     std::log(static_cast<double>(above->footprint) / static_cast<double>(below->footprint));
    return low + x * (high - low);
}

double interpolated(const std::vector<Bandwidth>& points, double footprint, int threads, Store store) {
    int fewer = 0, more = 0;  // measured thread counts around `threads`
    for (const Bandwidth& p : points) {
        if (p.store != store) continue;
        if (p.threads <= threads) fewer = std::max(fewer, p.threads);
        if (p.threads >= threads) more = more ? std::min(more, p.threads) : p.threads;
    }
    const double low = fewer ? seconds_per_byte(points, footprint, fewer, store) : 0;
    const double high = more ? seconds_per_byte(points, footprint, more, store) : 0;
    if (low <= 0 && high <= 0) return 0;
    if (low <= 0) return threads / (more * high);
    if (high <= 0 || more == fewer) return 1 / low;
    return 1 / low + (1 / high - 1 / low) * (threads - fewer) / (more - fewer);
}

/// A power law through two points; all positive.
double between(double x, double x0, double low, double x1, double high) {
    return low * std::pow(high / low, std::log(x / x0) / std::log(x1 / x0));
}

/// Where `threads` is one of the counts measured.
double seconds_on(const std::vector<Timing>& points, double rows, int threads) {
    const Timing *below = nullptr, *above = nullptr, *next = nullptr;  // next: the second one above
    for (const Timing& t : points) {
        if (t.threads != threads) continue;
        if (t.rows <= rows && (!below || t.rows > below->rows)) below = &t;
        if (t.rows >= rows && (!above || t.rows < above->rows)) above = &t;
    }
    if (!above) return below->seconds * (rows / below->rows);
    if (below) return below == above ? below->seconds : between(rows, below->rows, below->seconds, above->rows, above->seconds);
    for (const Timing& t : points)
        if (t.threads == threads && t.rows > above->rows && (!next || t.rows < next->rows)) next = &t;
    if (!next) return above->seconds * (rows / above->rows);
    // Fewer rows than any: what a call costs, whatever its size, stays.
    const double slope = std::max(0.0, (next->seconds - above->seconds) / (next->rows - above->rows));
    return std::max(0.1 * above->seconds, above->seconds - slope * (above->rows - rows));
}

}  // namespace

double Profile::bandwidth_at(std::size_t footprint, int threads, Store store) const noexcept {
    const double bytes = std::max(1.0, static_cast<double>(footprint));
    for (const Store use : {store, Store::past_cache, Store::regular, Store::in_place})
        if (const double found = interpolated(bandwidth, bytes, threads, use); found > 0) return found;
    return 1e10;
}

const std::vector<Timing>* Profile::timings_of(std::string_view key) const noexcept {
    const auto found = timings.find(key);
    return found == timings.end() || found->second.empty() ? nullptr : &found->second;
}

double seconds_for(const std::vector<Timing>& timings, double rows, int threads) noexcept {
    int fewer = 0, more = 0;
    for (const Timing& t : timings) {
        if (t.threads <= threads) fewer = std::max(fewer, t.threads);
        if (t.threads >= threads) more = more ? std::min(more, t.threads) : t.threads;
    }
    if (!fewer) fewer = more;
    if (!more) more = fewer;
    const double low = seconds_on(timings, rows, fewer);
    return fewer == more ? low : between(threads, fewer, low, more, seconds_on(timings, rows, more));
}

double most_rows(const std::vector<Timing>& timings) noexcept {
    double most = 0;
    for (const Timing& t : timings) most = std::max(most, t.rows);
    return most;
}

double least_rows(const std::vector<Timing>& timings) noexcept {
    double least = timings.front().rows;
    for (const Timing& t : timings) least = std::min(least, t.rows);
    return least;
}

double least_per_row(const std::vector<Timing>& timings, int threads) noexcept {
    int fewer = 0;
    for (const Timing& t : timings)
        if (t.threads <= threads) fewer = std::max(fewer, t.threads);
    double least = 0;
    for (const Timing& t : timings)
        if (t.threads == fewer && (least == 0 || t.seconds / t.rows < least)) least = t.seconds / t.rows;
    return least;
}

Profile default_profile() {
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const std::size_t near = l2 > 0 ? static_cast<std::size_t>(l2) : std::size_t{1} << 20;
    const std::size_t far = l3 > 0 ? static_cast<std::size_t>(l3) : std::size_t{16} << 20;
    const int all = std::max(1, static_cast<int>(cpus));
    Profile out;
    for (const int threads : {1, all}) {
        for (const Store store : {Store::past_cache, Store::in_place, Store::regular}) {
            const double cost = store == Store::regular ? 1.2 : 1.0;
            // One core draws some 20 GB/s from memory; a socket's memory feeds about eight of them.
            out.bandwidth.push_back({near / 2 * static_cast<std::size_t>(threads), threads, store, 100e9 * threads / cost});
            out.bandwidth.push_back({far / 2, threads, store, 50e9 * threads / cost});
            out.bandwidth.push_back({far * 4, threads, store, 20e9 * std::min(threads, 8) / cost});
        }
        if (all == 1) break;
    }
    return out;
}

std::vector<Bandwidth> measure_bandwidth(const Topology& topology, int threads, double budget_s) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    auto used = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    constexpr std::size_t most = std::size_t{1} << 30;
    const std::size_t last_level = std::max(topology.last_level(), std::size_t{1} << 20);
    const std::size_t free = static_cast<std::size_t>(available_memory()) / 4;

    struct Size {
        std::size_t one, all;  // footprint on one thread, on all
        double share;          // of the budget, for one measurement
    };
    std::vector<Size> sizes{{4 * last_level, 4 * last_level, 0.03}, {last_level / 2, last_level / 2, 0.01}, {last_level, last_level, 0.01}};
    if (topology.l3 && topology.l2) sizes.push_back({topology.l2 / 2, topology.l2 / 2 * static_cast<std::size_t>(threads), 0.01});
    sizes.push_back({16 * last_level, 16 * last_level, 0.04});

    const std::vector<int> counts = threads > 1 ? std::vector{threads, 1} : std::vector{1};

    std::vector<Bandwidth> out;
    double touch_s_per_byte = 0;  // what fresh memory cost last time
    for (const Size& size : sizes)
        for (const int t : counts)
            for (const Store store : {Store::past_cache, Store::in_place, Store::regular}) {
                const std::size_t footprint = std::min({t == 1 ? size.one : size.all, most, free});
                const double left = budget_s - used();
                if (left < 0 || static_cast<double>(footprint) * touch_s_per_byte > left / 2) continue;
                const double before = used();
                RoofProbe probe({4, store}, footprint, t);
                touch_s_per_byte = (used() - before) / static_cast<double>(footprint);
                const RoofMeasurement m = probe.measure(budget_s * size.share);
                out.push_back({m.footprint, t, store, m.bytes_per_s});
            }
    return out;
}

}  // namespace trifold::devices
