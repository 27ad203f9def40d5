// SPDX-License-Identifier: BSD-3-Clause
#include "planner/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <vector>

#include "backends/registry.hpp"
#include "base/aligned_buffer.hpp"
#include "base/available_memory.hpp"
#include "devices/context_state.hpp"
#include "families/tridiagonal/branch.hpp"
#include "planner/cost.hpp"

namespace trifold::tridiagonal {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr std::int64_t batch_rows = 128;  // of one system; a batch grows by systems

enum class Shape { single, contiguous, interleaved };

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
        out.rows = shape == Shape::single ? rows : batch_rows;
        if (shape != Shape::single) {
            out.levels = 1;
            out.extent[0] = rows / batch_rows;
            out.number_stride[0] = 1;
        }
        Operand* operands[] = {&out.lower, &out.diag, &out.upper, &out.rhs, &out.x};
        for (int k = 0; k < 5; ++k) {
            Operand& operand = *operands[k];
            operand.kind = Operand::Kind::view;
            operand.data = static_cast<char*>(data_.data()) + size_of(dtype_) * pitch() * static_cast<std::size_t>(k);
            operand.row_stride = shape == Shape::interleaved ? out.extent[0] : 1;
            operand.level_stride[0] = shape == Shape::interleaved ? 1 : batch_rows;
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

    /// Median seconds of one call, NaN where it fails.
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
        std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
        return good ? times[times.size() / 2] : std::nan("");
    }

private:
    static constexpr double worth_timing = 30e-6, enough = 4e-3, long_run = 2e-3;
    const Ops& ops_;
    devices::ScratchArena& arena_;
};

/// overhead + rows / rate through two sizes on one thread; what the team adds from a third.
devices::CellRate fit(Stopwatch& watch, Sample& sample, Shape shape, Algorithm algorithm, std::int64_t few, std::int64_t many,
                      int threads) {
    const double short_s = watch(sample.system(shape, few), algorithm, 1), long_s = watch(sample.system(shape, many), algorithm, 1);
    devices::CellRate out;
    if (!(short_s > 0) || !(long_s > 0)) return out;
    // Where noise makes the long run the cheaper one per row beyond reason, the whole time is counted as pace.
    const double slope = std::max((long_s - short_s) / static_cast<double>(many - few), 0.5 * long_s / static_cast<double>(many));
    out.rows_per_s = 1 / slope;
    out.overhead_s = std::max(0.0, std::min(short_s - slope * static_cast<double>(few), long_s - slope * static_cast<double>(many)));
    if (threads > 1) {
        const double team_s = watch(sample.system(shape, many * threads), algorithm, threads);
        out.team_s = std::max(0.0, team_s - out.overhead_s - slope * static_cast<double>(many));
        if (!std::isfinite(out.team_s)) out.team_s = 0;
    }
    return out;
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    gmtime_r(&now, &date);
    char text[16];
    std::strftime(text, sizeof text, "%Y-%m-%d", &date);
    return text;
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
        Sample sample(dtype, std::max(many * threads, most));
        auto measure = [&](Shape shape, Algorithm algorithm) {
            const bool batch = shape != Shape::single, sequential = algorithm == Algorithm::lu && !batch;
            if (seconds_since(start) > budget_s || ops.refuses(sample.system(shape, many), algorithm)) return;
            devices::CellRate rate = fit(watch, sample, shape, algorithm, batch ? many / 4 : 1024, many, sequential ? 1 : threads);
            if (rate.rows_per_s <= 0) return;
            if (most > 0 && !sequential && seconds_since(start) < budget_s) {
                const System large = sample.system(shape, most);
                const double seconds = watch(large, algorithm, threads) - rate.overhead_s - rate.team_s;
                if (seconds > 0) rate.overlap = overlap_of(shares_of(features_of(large), algorithm, rate, profile, threads), seconds);
            }
            profile.rates[rate_key(ops, algorithm, dtype, batch, shape == Shape::contiguous).text] = rate;
        };
        for (const Algorithm algorithm : {Algorithm::certified, Algorithm::two_pass, Algorithm::lu}) measure(Shape::single, algorithm);
        for (const Shape shape : {Shape::contiguous, Shape::interleaved}) measure(shape, Algorithm::automatic);
    }
}

/// The caller holds State::measuring.
static const devices::Profile& measure(Context::State& state) {
    const devices::Topology& topology = state.topology();
    devices::Profile profile;
    profile.now = true;
    profile.date = today();
    profile.machine = devices::fingerprint(topology);
    profile.bandwidth = devices::measure_bandwidth(topology, state.threads, 1.0);
    SampleSizes sizes;
    sizes.cache = std::max<std::size_t>(topology.l2 / 2, std::size_t{1} << 18);
    sizes.memory = std::min(4 * topology.last_level(), std::size_t{1} << 29);
    if (available_memory() / 4 < static_cast<std::int64_t>(sizes.memory)) sizes.memory = 0;
    for (const Device* device : registered_devices()) {
        if (device->modelled || (device->unavailable && device->unavailable())) continue;
        const Cell& cell = find_cell(*device, "tridiagonal");
        if (cell.kind != CellKind::native || !cell.ops) continue;
        calibrate(*static_cast<const Ops*>(cell.ops), state.scratch, state.threads, sizes, 0.6, profile);
        sizes.memory = 0;  // only the default device is asked for work that large without being named
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
