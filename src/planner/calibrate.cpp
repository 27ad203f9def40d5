// SPDX-License-Identifier: BSD-3-Clause
#include "planner/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "backends/registry.hpp"
#include "base/aligned_buffer.hpp"
#include "base/available_memory.hpp"
#include "base/utc.hpp"
#include "devices/context_state.hpp"
#include "devices/threads.hpp"
#include "families/tridiagonal/branch.hpp"
#include "planner/cost.hpp"

namespace trifold::tridiagonal {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// One system, or a batch of systems of `length` rows that grows by systems.
struct Shape {
    std::int64_t length = 0;
    bool contiguous = true;
    bool batch() const { return length > 0; }
};

/// Systems that fill eight vectors: enough to keep a core busy, few enough for long ones to stay in the shared cache.
std::int64_t batch_vectors(DType dtype) { return 8 * 64 / static_cast<std::int64_t>(size_of(dtype)); }

/// Arrays for `rows` rows in all: dominant by a factor of two, right-hand side between 1 and 2.
class Sample {
public:
    Sample(DType dtype, std::int64_t rows) : dtype_(dtype), rows_(rows), data_(size_of(dtype) * 5 * pitch()) {
        if (dtype == DType::f32) fill<float>();
        else fill<double>();
    }

    System system(Shape shape, std::int64_t rows) {
        System out;
        out.dtype = dtype_;
        out.rows = shape.batch() ? shape.length : rows;
        if (shape.batch()) {
            out.levels = 1;
            out.extent[0] = rows / shape.length;
            out.number_stride[0] = 1;
        }
        Operand* operands[] = {&out.lower, &out.diag, &out.upper, &out.rhs, &out.x};
        for (int k = 0; k < 5; ++k) {
            Operand& operand = *operands[k];
            operand.kind = Operand::Kind::view;
            operand.data = static_cast<char*>(data_.data()) + size_of(dtype_) * pitch() * static_cast<std::size_t>(k);
            operand.row_stride = shape.contiguous ? 1 : out.extent[0];
            operand.level_stride[0] = shape.contiguous ? shape.length : 1;
        }
        return out;
    }

private:
    std::size_t pitch() const { return static_cast<std::size_t>(rows_) + 160; }  // arrays do not meet in one cache set

    template <class T>
    void fill() {
        T* at = static_cast<T*>(data_.data());
        std::uint32_t noise = 1;
        for (const double centre : {-1.0, 4.0, -1.0, 1.0, 0.0})
            for (std::size_t i = 0; i < pitch(); ++i) {
                noise = noise * 1664525u + 1013904223u;
                *at++ = static_cast<T>(centre * (1 + noise * 0x1p-34));
            }
    }

    DType dtype_;
    std::int64_t rows_;
    AlignedBuffer data_;
};

class Stopwatch {
public:
    Stopwatch(const Ops& ops, devices::ScratchArena& scratch) : ops_(ops), arena_(scratch) {}

    /// Seconds of one call, NaN where it fails.
    double operator()(const System& system, Algorithm algorithm, int threads) {
        const devices::Scratch scratch = arena_.take(branch_workspace(ops_, system, algorithm, threads));
        const Launch launch{threads, scratch.data(), scratch.bytes(), unit_roundoff(system.dtype), nullptr};
        bool good = true;
        auto calls = [&](int count) {
            const auto start = Clock::now();
            for (int k = 0; k < count; ++k) {
                Outcome outcome;
                good = run_branch(ops_, system, algorithm, launch, outcome) && outcome.ok() && good;
            }
            return seconds_since(start) / count;
        };
        const double first = calls(1);
        if (first > long_run) return good ? std::min(calls(1), calls(1)) : std::nan("");
        const int count = std::clamp(static_cast<int>(std::ceil(worth_timing / std::max(calls(1), 1e-9))), 1, 1000);
        std::vector<double> times;
        for (const auto start = Clock::now(); times.size() < 5 || (times.size() < 25 && seconds_since(start) < enough);)
            times.push_back(calls(count));
        // The lower quartile: what disturbs this minute should not stay in the profile for months.
        const auto quartile = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
        std::nth_element(times.begin(), quartile, times.end());
        return good ? *quartile : std::nan("");
    }

private:
    static constexpr double worth_timing = 30e-6, enough = 4e-3, long_run = 2e-3;
    const Ops& ops_;
    devices::ScratchArena& arena_;
};

/// A line through two sizes on one thread, and through two larger ones on all.
devices::CellRate fit(Stopwatch& watch, Sample& sample, const Shape& shape, Algorithm algorithm, std::int64_t few, std::int64_t many,
                      int threads, std::int64_t many_per_thread) {
    const double short_s = watch(sample.system(shape, few), algorithm, 1), long_s = watch(sample.system(shape, many), algorithm, 1);
    devices::CellRate out;
    if (!(short_s > 0) || !(long_s > 0)) return out;
    // Where noise makes the long run the cheaper one per row beyond reason, the whole time is counted as pace.
    const double slope = std::max((long_s - short_s) / static_cast<double>(many - few), 0.5 * long_s / static_cast<double>(many));
    out.rows_per_s = 1 / slope;
    out.overhead_s = std::max(0.0, std::min(short_s - slope * static_cast<double>(few), long_s - slope * static_cast<double>(many)));
    if (threads == 1) return out;
    const std::int64_t less = many_per_thread * threads, more = 4 * less;
    const double less_s = watch(sample.system(shape, less), algorithm, threads), more_s = watch(sample.system(shape, more), algorithm, threads);
    if (!(less_s > 0) || !(more_s > 0)) return out;
    const double team_slope = (more_s - less_s) / static_cast<double>(more - less);
    out.serial = std::clamp((team_slope * threads / slope - 1) / (threads - 1), 0.0, 1.0);
    const double expected = out.overhead_s + slope * (out.serial + (1 - out.serial) / threads) * static_cast<double>(less);
    out.team_s = std::max(0.0, less_s - expected);
    return out;
}

}  // namespace

void calibrate(const Ops& ops, devices::ScratchArena& scratch, int threads, const SampleSizes& sizes, double budget_s,
               devices::Profile& profile) {
    const auto start = Clock::now();
    Stopwatch watch(ops, scratch);
    threads = std::max(1, threads);
    for (const DType dtype : {DType::f64, DType::f32}) {
        auto rows_in = [&](std::size_t bytes) { return std::max<std::int64_t>(static_cast<std::int64_t>(bytes / (5 * size_of(dtype))) / 4096, 2) * 4096; };
        const std::int64_t many = rows_in(sizes.cache), most = sizes.memory ? rows_in(sizes.memory) : 0;
        const std::int64_t per_thread = std::max<std::int64_t>(many, 32768);
        Sample sample(dtype, std::max({batch_vectors(dtype) * batch_lengths[2], 8 * many, 4 * per_thread * threads, most}));
        double batch_overlap[2] = {4, 4};  // of interleaved and contiguous ones: measured with the short systems, kept for the long
        auto measure = [&](const Shape& shape, Algorithm algorithm) {
            const bool sequential = algorithm == Algorithm::lu && !shape.batch(), all_threads = !sequential && shape.length <= batch_lengths[0];
            // What cuts a system into parts shows its pace on long ones only; what runs through it keeps to a core's cache.
            const std::int64_t rows = shape.batch() ? std::max(many, batch_vectors(dtype) * shape.length) : sequential ? many : 8 * many;
            const bool late = seconds_since(start) > budget_s && !profile.rates.empty();  // a busy machine measures one at least
            if (late || branch_refuses(ops, sample.system(shape, rows), algorithm)) return;
            std::int64_t few = shape.batch() ? rows / 4 : sequential ? 1024 : 4096;
            while (few < rows / 2 && branch_refuses(ops, sample.system(shape, few), algorithm)) few *= 2;
            devices::CellRate rate = fit(watch, sample, shape, algorithm, few, rows, all_threads ? threads : 1, per_thread);
            if (rate.rows_per_s <= 0) return;
            if (most > 0 && all_threads && seconds_since(start) < budget_s) {
                const System large = sample.system(shape, most);
                const double seconds = watch(large, algorithm, threads) - rate.overhead_s - (threads > 1 ? rate.team_s : 0);
                if (seconds > 0) rate.overlap = overlap_of(shares_of(features_of(large), algorithm, rate, profile, threads), seconds);
            }
            if (shape.batch()) {
                double& kept = batch_overlap[shape.contiguous];
                if (all_threads) kept = rate.overlap;
                else rate.overlap = kept;
            }
            const RateKey key = shape.batch() ? rate_key(ops, algorithm, dtype, shape.contiguous, shape.length) : rate_key(ops, algorithm, dtype);
            profile.rates[key.text] = rate;
        };
        for (const Algorithm algorithm : {Algorithm::certified, Algorithm::two_pass, Algorithm::lu}) measure({}, algorithm);
        for (const bool contiguous : {true, false})
            for (const std::int64_t length : batch_lengths) measure({length, contiguous}, Algorithm::automatic);
    }
}

/// The caller holds State::measuring.
static const devices::Profile& measure(Context::State& state) {
    const devices::Topology& topology = state.topology();
    // A profile is the machine's, whatever this Context was given.
    const int threads = std::max(state.threads, devices::usable_cores());
    devices::Profile profile;
    profile.now = true;
    profile.date = utc_now("%Y-%m-%d");
    profile.machine = devices::fingerprint(topology);
    profile.bandwidth = devices::measure_bandwidth(topology, threads, 0.8);
    SampleSizes sizes;
    sizes.cache = std::max<std::size_t>(topology.l2 / 2, std::size_t{1} << 18);
    sizes.memory = std::min(4 * topology.last_level(), std::size_t{1} << 29);
    if (available_memory() / 4 < static_cast<std::int64_t>(sizes.memory)) sizes.memory = 0;
    double budget_s = 0.9;
    for (const Device* device : host_devices()) {
        if (device->modelled || why_unavailable(*device)) continue;
        const Cell& cell = find_cell(*device, "tridiagonal");
        if (cell.kind != CellKind::native || !cell.ops) continue;
        calibrate(*static_cast<const Ops*>(cell.ops), state.scratch, threads, sizes, budget_s, profile);
        // The first device is the default; the others are asked for by name, and for less.
        sizes.memory = 0;
        budget_s = 0.15;
    }
    return state.adopt_profile(std::move(profile));
}

const devices::Profile& measure_profile(Context& context) {
    const std::lock_guard lock(context.state().measuring);
    return measure(context.state());
}

const devices::Profile& ensure_profile(Context& context) {
    Context::State& state = context.state();
    if (const devices::Profile& known = state.profile(); known.measured()) return known;
    const std::lock_guard lock(state.measuring);
    const devices::Profile& known = state.profile_at_hand();
    return known.measured() ? known : measure(state);
}

}  // namespace trifold::tridiagonal
