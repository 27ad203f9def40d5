// SPDX-License-Identifier: BSD-3-Clause
#include "property/random_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "support/random.hpp"

namespace trifold::tests {
namespace {

template <class Values>
auto any_of(Random& random, const Values& values) {
    return values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(std::size(values))))];
}

// Small ones, and those on both sides of where a device goes from one kernel, or one way to cut a system, to the next.
std::int64_t extent(Random& random, std::int64_t most) {
    constexpr std::int64_t borders[] = {4,   8,   16,  24,  32,  48,  64,   96,   100,  127,  128,  192,  252,  256,  266,  272,  320,  352,  384,  400,  416,  448,  512, 544,
                                        576, 640, 672, 768, 800, 896, 1000, 1024, 1056, 1088, 1280, 1344, 1376, 1536, 1568, 2048, 2112, 2176, 4096, 4352, 4608, 6528, 8192,
                                        9216, 11968, 16384, 17408, 20480, 32768, 65536};
    std::int64_t value = 1;
    switch (random.below(4)) {
        case 0: value = 1 + random.below(8); break;
        case 1: value = std::int64_t{1} << random.below(17); value += random.below(value + 1); break;
        default: value = any_of(random, borders) + random.below(3) - 1;
    }
    while (value > most) value = value / 2 + random.below(2);
    return std::max<std::int64_t>(value, 1);
}

void draw_shape(Random& random, Recipe& r, std::int64_t most, bool long_first) {
    const std::int64_t dims = random.below(5);
    const std::int64_t budget = random.chance(0.6) ? std::min<std::int64_t>(most, 5000) : most;
    const auto systems = [&](std::int64_t room) {
        r.batch.assign(static_cast<std::size_t>(dims), 1);
        for (std::int64_t d = 0; d < dims; ++d) {
            auto& e = r.batch[static_cast<std::size_t>(random.below(dims))];
            if (e > 1) continue;
            e = extent(random, std::max<std::int64_t>(room, 1));
            room /= e;
        }
        std::int64_t all = 1;
        for (const std::int64_t e : r.batch) all *= e;
        return all;
    };
    if (long_first) {
        r.rows = extent(random, budget);
        systems(budget / r.rows);
    } else {
        r.rows = extent(random, std::max<std::int64_t>(budget / systems(budget), 1));
    }
}

void draw_sources(Random& random, Recipe& r) {
    const int mix = static_cast<int>(random.below(6));
    for (Source* const source : {&r.lower, &r.diag, &r.upper}) *source = mix < 2 ? Source::full : mix == 2 ? Source::shared : any_of(random, sources);
    if (mix == 3) r.lower = r.upper = Source::scalar;
    if (r.diag == Source::packed) r.diag = Source::full;
    for (Source* const source : {&r.lower, &r.upper})
        if (*source == Source::packed && (r.periodic || !r.lengths.empty())) *source = Source::full;
    if (r.front > 0)
        for (Source* const source : {&r.lower, &r.diag, &r.upper})
            if (*source == Source::generator) *source = Source::full;
}

void draw_entries(Random& random, Case& c) {
    DrawnEntries& e = c.entries;
    const Recipe& r = c.recipe;
    e.seed = random.bits();
    e.kind.clear();
    for (std::int64_t k = random.chance(0.6) ? 0 : random.below(4); k >= 0; --k) e.kind.push_back(static_cast<Kind>(random.below(kinds)));
    if (random.chance(0.3)) e.kind = {Kind::dominant};
    e.rhs = random.chance(0.5) ? Right::normal : static_cast<Right>(random.below(rights));
    if (random.chance(0.15)) e.exponent = static_cast<int>(random.below(81)) - 40;
    else if (random.chance(0.03)) e.exponent = static_cast<int>(c.dtype == DType::f32 ? random.below(240) - 120 : random.below(1900) - 950);
    if (!random.chance(0.2)) return;
    std::int64_t systems = 1;
    for (const std::int64_t extent : r.batch) systems *= extent;
    constexpr double values[] = {NAN, INFINITY, -INFINITY, 0.0, 1e-30, 1e30, -0.0};
    for (std::int64_t k = 1 + random.below(3); k > 0; --k) {
        const int array = static_cast<int>(random.below(4));
        e.planted.push_back({array, random.below(std::max<std::int64_t>(r.rows, 1)), random.chance(0.3) ? 0 : random.below(std::max<std::int64_t>(systems, 1)), any_of(random, values)});
    }
}

}  // namespace

std::string Case::text() const {
    constexpr const char* ways[] = {"solve", "solve_async", "Factor", "Factor, refactored"};
    constexpr const char* wrongs[] = {"", "x meets rhs", "x meets the matrix", "x on itself", "read-only x", "no memory", "other type", "odd address", "other rows", "other batch", "tolerance"};
    static_assert(std::size(wrongs) == misuses);
    const bool kept = way == Way::factor || way == Way::refactor;
    std::ostringstream out;
    out << ways[static_cast<int>(way)] << ", " << name_of(dtype) << ", " << recipe.text() << "; " << entries.text();
    if (misuse != Misuse::none) out << "; misuse: " << wrongs[static_cast<int>(misuse)];
    if (in_device_memory) out << "; in device memory";
    if (algorithm != tridiagonal::Algorithm::automatic) out << "; algorithm " << tridiagonal::name_of(algorithm);
    if (tolerance > 0) out << "; tolerance " << tolerance;
    for (const auto& [name, on] : {std::pair{"check_finite", check_finite}, {"no status", !status}, {"report", report}, {"own workspace", own_workspace}, {"other threads", other_threads}, {kept ? "enqueued" : "called twice", twice}})
        if (on) out << "; " << name;
    if (simd) out << "; " << simd << " instruction sets below the best";
    return out.str();
}

Case draw(std::uint64_t seed, std::int64_t most) {
    Random random(seed);
    random.bits();
    Case c;
    c.seed = seed;
    c.dtype = random.chance(0.5) ? DType::f64 : DType::f32;
    c.way = random.chance(0.7) ? Way::solve : any_of(random, std::array{Way::async, Way::factor, Way::refactor});
    const bool kept = c.way == Way::factor || c.way == Way::refactor;
    Recipe& r = c.recipe;
    r.seed = random.bits();
    r.around = random.chance(0.5) ? Around::nan : Around::numbers;
    r.layout = any_of(random, layouts);
    r.mixed = random.chance(0.4);
    r.periodic = random.chance(0.15), r.transposed = random.chance(0.15);
    const auto form = random.below(5);
    r.accumulate = form == 0 && !kept, r.in_place = form == 1 || form == 2;
    if (!kept && random.chance(0.1)) {
        if (r.periodic) r.transposed = false;
        for (std::int64_t k = random.below(30); k >= 0; --k) r.lengths.push_back(random.chance(0.2) ? random.below(2) : extent(random, most / 30));
        Random beside(seed + 1);
        if (beside.chance(0.5)) r.before_systems = beside.below(40), r.behind_systems = beside.below(40);
        r.rows = r.before_systems + r.behind_systems;
        for (const std::int64_t length : r.lengths) r.rows += length;
    } else {
        draw_shape(random, r, most, random.chance(0.6));
        if (kept && !r.batch.empty() && random.chance(0.5)) r.front = static_cast<std::size_t>(1 + random.below(static_cast<std::int64_t>(r.batch.size())));
        r.one_rhs = !r.in_place && random.chance(0.05);
    }
    draw_sources(random, r);
    draw_entries(random, c);
    c.entries.rows = r.rows, c.entries.periodic = r.periodic;
    if (!kept && random.chance(0.03)) c.misuse = static_cast<Misuse>(1 + random.below(misuses - 1));
    c.in_device_memory = !kept && (c.way == Way::async || random.chance(0.4));
    Random sets(~seed);
    if (sets.chance(0.3)) c.simd = static_cast<int>(1 + sets.below(4));
    if (kept) {
        c.in_device_memory = sets.chance(0.5), c.twice = c.in_device_memory && sets.chance(0.4);
        return c;
    }
    if (random.chance(0.1)) c.algorithm = static_cast<tridiagonal::Algorithm>(random.below(tridiagonal::algorithm_count));
    if (random.chance(0.1)) c.tolerance = std::pow(10.0, -static_cast<double>(3 + random.below(10)));
    c.check_finite = random.chance(0.1) && c.way == Way::solve;
    c.status = random.chance(0.8), c.report = random.chance(0.2) && c.way == Way::solve;
    c.own_workspace = c.way == Way::async || random.chance(0.3);
    c.other_threads = random.chance(0.3);
    c.twice = sets.chance(0.3);
    return c;
}

}  // namespace trifold::tests
