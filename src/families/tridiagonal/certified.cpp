// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/certified.hpp"

#include <algorithm>
#include <cmath>

#include "base/round_up.hpp"
#include "families/tridiagonal/certified_bound.hpp"
#include "families/tridiagonal/lane_spread.hpp"

namespace trifold::tridiagonal {
namespace {

// Halos longer than this leave the caches of a core, and nine words are fewer.
constexpr std::int64_t longest_halo = 8192;

// Strict: what lies beyond a halo may be 2^40 times larger than the block before it. Weak: as large, which is checked.
constexpr double strict = 0x1p-42, weak = 0x1p-4;

std::int64_t lanes_of(const System& system) { return 64 / static_cast<std::int64_t>(size_of(system.dtype)); }

/// Halos come in sizes of 2^k and 3 2^(k-1) tiles, so that the workspace can be known beforehand.
std::int64_t next_halo(std::int64_t rows, std::int64_t lanes) {
    std::int64_t halo = 2 * lanes;
    while (halo < rows) halo = halo % (3 * lanes) == 0 ? halo / 3 * 4 : halo / 2 * 3;
    return halo;
}

std::size_t bytes_for(const Ops& ops, const System& system, const Stretches& stretches, int threads) {
    return round_up(static_cast<std::int64_t>(stretches.stretches() * sizeof(StretchBound)), 64) +
           ops.sweep_scratch(system, stretches, threads);
}

// Stretches of each but the last group and of that one, for so many groups wanted.
struct GroupLengths {
    std::int64_t each = -1, wanted = -1, groups = 0, length = 0, last_length = 0;

    /// Of lengths up to a fifth above what is wanted, the first whose lanes lie as far apart as can be, in the last group too.
    void choose(std::int64_t rows, std::int64_t wanted_groups, std::int64_t lanes) {
        if (rows == each && wanted_groups == wanted) return;
        each = rows, wanted = wanted_groups;
        const std::int64_t shortest = (each / wanted + lanes - 1) / lanes;
        std::int64_t best = -1;
        for (std::int64_t lines = shortest; lines <= shortest + std::min<std::int64_t>(shortest / 5, 256); ++lines) {
            const std::int64_t count = std::max<std::int64_t>(each / lanes / lines, 1), last = each / lanes - (count - 1) * lines;
            const std::int64_t apart_here = count > 1 ? lane_spread(lines, lanes, best) : 1024;
            const std::int64_t apart = apart_here <= best ? apart_here : std::min(apart_here, lane_spread(last, lanes, best));
            if (apart <= best) continue;
            best = apart, groups = count, length = lines * lanes, last_length = last * lanes;
            if (apart == 768 / lanes) break;
        }
    }
};

// Whether stretches are long enough for their halos and blocks.
struct Room {
    std::int64_t first, each, right, block;
    bool enough;

    Room(const System& system, std::int64_t halo) {
        const std::int64_t lanes = lanes_of(system), size = static_cast<std::int64_t>(size_of(system.dtype));
        const std::int64_t misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(system.x.data) % 64) / size;
        first = lanes - misaligned;  // so that every stretch of x begins with a cache line
        each = (system.rows - first - 1) / lanes;
        right = halo / 2 * 3 / lanes * lanes;
        // What is done once per block is spread over many rows, and c', d' of two blocks stay in the second-level cache.
        const std::int64_t wanted_block = size == 4 ? std::clamp<std::int64_t>(each / 8 / lanes * lanes, 128, 512) : 256;
        block = std::max<std::int64_t>(wanted_block, right + lanes);
        enough = each >= std::max(2 * block, 8 * halo);
    }
};

Stretches plan(const System& system, std::int64_t halo, double close, const CertifiedPart& part, GroupLengths& lengths) {
    const Room room(system, halo);
    Stretches s;
    s.rows = system.rows, s.first = room.first;
    s.lanes = static_cast<int>(lanes_of(system));
    s.close = close;
    s.left = halo, s.right = room.right, s.block = room.block;
    s.groups = 0;
    if (!room.enough) return s;
    // A group begins with lines that nobody has asked for, from two places per lane and array: long ones, where there are enough for any
    // number of threads.
    const std::int64_t least = std::max<std::int64_t>({4 * s.block, 32 * halo, 4096});
    lengths.choose(room.each, std::clamp<std::int64_t>(std::min(room.each / least, part.one_thread ? 3 : std::max<std::int64_t>(64, room.each / 16384)), 1, 256), s.lanes);
    s.groups = lengths.groups, s.length = lengths.length, s.last_length = lengths.last_length;
    s.stream = !system.in_place && std::max(system.rows, part.of_rows) * 5 * static_cast<std::int64_t>(size_of(system.dtype)) > (std::int64_t{24} << 20);
    return s;
}

void give_up(Outcome& outcome, Reason reason, std::int64_t row) {
    outcome.reason = reason;
    outcome.system = 0;
    outcome.row = row;
    outcome.failures = 1;
}

}  // namespace

Stretches plan_stretches(const System& system, std::int64_t halo, double close, const CertifiedPart& part) {
    GroupLengths lengths;
    return plan(system, halo, close, part, lengths);
}

const char* certified_refuses(const Ops& ops, const System& system) {
    if (!ops.sweep) return "this device has no one-pass sweep";
    if (const char* why = ops.refuses(system, Algorithm::certified)) return why;
    return !Room(system, 2 * lanes_of(system)).enough ? "there are too few rows to cut" : nullptr;
}

std::size_t certified_workspace(const Ops& ops, const System& system, int threads, const CertifiedPart& part) {
    std::size_t most = 0;
    const std::int64_t lanes = lanes_of(system);
    GroupLengths lengths;  // few of them for many halos
    for (std::int64_t halo = 2 * lanes; halo <= longest_halo; halo = next_halo(halo + 1, lanes)) {
        const Stretches stretches = plan(system, halo, 0, part, lengths);
        if (stretches.groups == 0) break;
        most = std::max(most, bytes_for(ops, system, stretches, threads));
    }
    return most;
}

CertifiedCut cut_certified(const Ops& ops, const System& system, const Launch& launch, const CertifiedPart& part) {
    const std::int64_t lanes = lanes_of(system);
    // The longest decay whose halo, a quarter longer, still fits.
    std::int64_t limit = 0;
    for (std::int64_t halo = 2 * lanes; halo <= longest_halo && Room(system, halo).enough; halo = next_halo(halo + 1, lanes))
        limit = (halo - lanes) * 4 / 5;
    CertifiedCut none;
    for (const double margin : {strict, weak}) {
        const double close = launch.tolerance * margin;
        const std::int64_t decay = ops.decay(system, launch, close, Stretches{}.growth, limit);
        if (decay <= limit) return {plan_stretches(system, next_halo(decay * 5 / 4 + lanes, lanes), close, part), decay};
        none.unfit = none.unfit || decay == limit + 2;
    }
    none.stretches.groups = 0;
    return none;
}

bool solve_certified(const Ops& ops, const System& system, const Launch& launch, Outcome& outcome, const CertifiedPart& part) {
    const CertifiedCut cut = cut_certified(ops, system, launch, part);
    if (cut.stretches.groups > 0) return solve_certified(ops, system, launch, cut.stretches, outcome);
    outcome = {};
    outcome.branch = name_of(Algorithm::certified);
    outcome.device = ops.device;
    outcome.certified_share = 0;
    give_up(outcome, cut.unfit ? Reason::unstable : Reason::not_certified, -1);
    return false;
}

bool solve_certified(const Ops& ops, const System& system, const Launch& launch, const Stretches& stretches, Outcome& outcome) {
    outcome = {};
    outcome.branch = name_of(Algorithm::certified);
    outcome.device = ops.device;
    outcome.certified_share = 0;

    StretchBound* const bounds = static_cast<StretchBound*>(launch.scratch);
    const std::int64_t offset = round_up(static_cast<std::int64_t>(stretches.stretches() * sizeof(StretchBound)), 64);
    Launch inner = launch;
    inner.scratch = static_cast<char*>(launch.scratch) + offset;
    inner.scratch_bytes = launch.scratch_bytes - offset;

    const SweepResult swept = ops.sweep(system, stretches, inner, bounds);
    if (swept.stop != SweepStop::none) {
        give_up(outcome, swept.stop == SweepStop::growth       ? Reason::unstable
                         : swept.stop == SweepStop::not_finite ? Reason::not_finite
                                                               : Reason::not_certified, swept.row);
        return false;
    }
    const CertifiedBound bound = combine(stretches, bounds, swept, launch.tolerance, unit_roundoff(system.dtype));
    if (!bound.holds && bound.stable) {
        outcome.reason = Reason::exact;
        return true;
    }
    if (!bound.holds) {
        if (system.in_place) ops.unsweep(system, stretches, inner);
        give_up(outcome, Reason::not_certified, bound.row);
        return false;
    }
    outcome.reason = Reason::certified;
    outcome.certificate = bound.certificate;
    outcome.certified_share = 1;
    return true;
}

}  // namespace trifold::tridiagonal
