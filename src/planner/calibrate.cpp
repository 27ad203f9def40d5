// SPDX-License-Identifier: BSD-3-Clause
#include "planner/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
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
    bool in_place = false;
    bool batch() const { return length > 0; }
};

/// Systems that fill a vector.
std::int64_t lanes_of(DType dtype) { return 64 / static_cast<std::int64_t>(size_of(dtype)); }

/// Arrays for `rows` rows in all: dominant by a factor of two, right-hand side between 1 and 2. Plain: from malloc, as small arrays of users are, whose
/// pages are small too; a core reads dozens of streams from such pages at half the speed.
class Sample {
public:
    Sample(DType dtype, std::int64_t rows, bool plain) : dtype_(dtype), rows_(rows) {
        const std::size_t bytes = size_of(dtype) * 5 * pitch();
        if (plain) {
            plain_.resize(bytes + 64);
            data_ = plain_.data() + 64 - reinterpret_cast<std::uintptr_t>(plain_.data()) % 64;
        } else {
            large_ = AlignedBuffer(bytes);
            data_ = static_cast<std::byte*>(large_.data());
        }
        if (dtype == DType::f32) fill<float>();
        else fill<double>();
    }

    DType dtype() const { return dtype_; }

    System system(Shape shape, std::int64_t rows) {
        System out;
        out.dtype = dtype_;
        out.rows = shape.batch() ? shape.length : rows;
        if (shape.batch()) {
            out.levels = 1;
            out.extent[0] = rows / shape.length;
            // An odd number of lines from row to row: rows a power of two apart are the worst that a cache can meet.
            if (!shape.contiguous && out.extent[0] % (2 * lanes_of(dtype_)) == 0) out.extent[0] -= lanes_of(dtype_);
            out.number_stride[0] = 1;
        }
        Operand* operands[] = {&out.lower, &out.diag, &out.upper, &out.rhs, &out.x};
        for (int k = 0; k < 5; ++k) {
            Operand& operand = *operands[k];
            operand.kind = Operand::Kind::view;
            operand.data = data_ + size_of(dtype_) * pitch() * static_cast<std::size_t>(k);
            operand.row_stride = shape.contiguous ? 1 : out.extent[0];
            operand.level_stride[0] = shape.contiguous ? shape.length : 1;
        }
        if (shape.in_place) out.rhs = out.x, out.in_place = true;
        return out;
    }

    /// The right-hand side of a system that is solved in place.
    void load_rhs(const System& system) const {
        const std::size_t words = size_of(dtype_) * pitch();
        std::memcpy(system.x.data, data_ + 3 * words, size_of(dtype_) * static_cast<std::size_t>(system.rows));
    }

private:
    std::size_t pitch() const { return (static_cast<std::size_t>(rows_) + 511) / 512 * 512 + 160; }  // whole lines; arrays do not meet in one cache set

    template <class T>
    void fill() {
        T* at = reinterpret_cast<T*>(data_);
        std::uint32_t noise = 1;
        for (const double centre : {-1.0, 4.0, -1.0, 1.0, 0.0})
            for (std::size_t i = 0; i < pitch(); ++i) {
                noise = noise * 1664525u + 1013904223u;
                *at++ = static_cast<T>(centre * (1 + noise * 0x1p-34));
            }
    }

    DType dtype_;
    std::int64_t rows_;
    std::vector<std::byte> plain_;
    AlignedBuffer large_;
    std::byte* data_ = nullptr;
};

class Stopwatch {
public:
    Stopwatch(const Ops& ops, devices::ScratchArena& scratch) : ops_(ops), arena_(scratch) {}

    /// Adds seconds of single calls to `times`; whether the calls were good.
    bool operator()(const Sample& sample, const System& system, Algorithm algorithm, int threads, std::vector<double>& times) {
        const devices::Scratch scratch = arena_.take(branch_workspace(ops_, system, algorithm, threads));
        const Launch launch{threads, scratch.data(), scratch.bytes(), unit_roundoff(system.dtype), nullptr};
        bool good = true;
        auto calls = [&](int count) {
            if (system.in_place) sample.load_rhs(system), count = 1;
            const auto start = Clock::now();
            for (int k = 0; k < count; ++k) {
                Outcome outcome;
                good = run_branch(ops_, system, algorithm, launch, outcome) && outcome.ok() && good;
            }
            return seconds_since(start) / count;
        };
        const double first = calls(1), once = first > long_run ? first : std::min(first, calls(1));
        const int count = std::clamp(static_cast<int>(std::ceil(worth_timing / std::max(once, 1e-9))), 1, 1000);
        const std::size_t least = once > long_run ? 1 : 3, most = 9;
        const auto start = Clock::now();
        for (std::size_t k = 0; k < least || (k < most && seconds_since(start) < enough); ++k) times.push_back(calls(count));
        return good;
    }

private:
    static constexpr double worth_timing = 30e-6, enough = 1e-3, long_run = 5e-3;
    const Ops& ops_;
    devices::ScratchArena& arena_;
};

/// 1, all, and where these are far apart one in between.
std::vector<int> thread_counts(int threads) {
    std::vector<int> out{1};
    if (threads >= 8) out.push_back(static_cast<int>(std::lround(std::sqrt(threads))));
    if (threads > 1) out.push_back(threads);
    return out;
}

}  // namespace

void calibrate(const Ops& ops, devices::ScratchArena& scratch, int threads, std::size_t largest_bytes, double budget_s,
               devices::Profile& profile) {
    const auto start = Clock::now();
    Stopwatch watch(ops, scratch);
    const std::vector<int> counts = thread_counts(std::max(1, threads));
    struct Kind {
        Shape shape;
        Algorithm algorithm;
    };
    std::vector<Kind> kinds{{{}, Algorithm::certified}, {{}, Algorithm::two_pass}, {{}, Algorithm::lu}};
    for (const Algorithm algorithm : {Algorithm::certified, Algorithm::two_pass}) kinds.push_back({{0, true, true}, algorithm});
    for (const bool contiguous : {true, false})
        for (const std::int64_t length : batch_lengths) kinds.push_back({{length, contiguous}, Algorithm::automatic});

    struct Measured {
        std::vector<double> times;
        bool good = true;
    };
    std::map<std::tuple<std::string, int, std::int64_t>, Measured> measured;
    auto time = [&](Sample& sample, DType dtype, const Kind& kind, std::int64_t rows) {
        const System system = sample.system(kind.shape, rows);
        if (branch_refuses(ops, system, kind.algorithm)) return;
        const bool sequential = kind.algorithm == Algorithm::lu && !kind.shape.batch();
        const TimingKey key = solves_small(ops, system) && kind.algorithm == Algorithm::automatic ? small_timing_key(ops, dtype) : kind.shape.batch() ? timing_key(ops, kind.algorithm, dtype, kind.shape.contiguous, kind.shape.length)
                                                 : timing_key(ops, kind.algorithm, dtype, kind.shape.in_place);
        for (const int t : counts) {
            if (t > 1 && (sequential || rows < 2048 * t)) break;
            // A busy machine measures one at least.
            if (seconds_since(start) > budget_s && !measured.empty()) return;
            Measured& here = measured[{key.text, t, system.rows * system.systems()}];
            here.good = watch(sample, system, kind.algorithm, t, here.times) && here.good;
        }
    };
    // Small ones of every kind first, then the largest, then what lies between: a slow machine leaves out the last. Then all of them again, as
    // long as there is time: whatever disturbs a moment falls on one time of each.
    constexpr std::int64_t small = 1 << 18;
    constexpr int rounds = 3;
    const auto most_of = [&](DType dtype) { return std::max<std::int64_t>(static_cast<std::int64_t>(largest_bytes / (5 * size_of(dtype))), 16384); };
    Sample few[] = {{DType::f64, std::min(small, most_of(DType::f64)), true}, {DType::f32, std::min(small, most_of(DType::f32)), true}};
    Sample many[] = {{DType::f64, most_of(DType::f64), false}, {DType::f32, most_of(DType::f32), false}};
    for (int round = 0; round < rounds; ++round) {
        for (Sample& sample : few)
            for (const std::int64_t rows : {50, 500})
                if (rows <= ops.small_rows) time(sample, sample.dtype(), {{}, Algorithm::automatic}, rows);
        for (const int turn : {0, 1, 2})
            for (Sample& sample : turn == 0 ? few : many)
                for (const Kind& kind : kinds) {
                    const DType dtype = sample.dtype();
                    const bool sequential = kind.algorithm == Algorithm::lu;
                    const std::int64_t most = most_of(dtype), unit = kind.shape.batch() ? lanes_of(dtype) * kind.shape.length : 500;  // no power of two
                    const std::int64_t last = sequential ? std::min<std::int64_t>(128000, most / unit * unit) : most / unit * unit;
                    if (turn == 1 && last > small) time(sample, dtype, kind, last);
                    for (std::int64_t rows = unit; rows <= last; rows *= sequential ? 16 : 4)
                        if ((rows > small || !kind.shape.in_place) && turn == (rows <= small ? 0 : 2) && (rows <= small || 2 * rows < last))
                            time(sample, dtype, kind, rows);
                }
    }
    for (auto& [what, here] : measured) {
        if (!here.good || here.times.empty()) continue;
        const auto median = here.times.begin() + static_cast<std::ptrdiff_t>(here.times.size() / 2);
        std::nth_element(here.times.begin(), median, here.times.end());
        profile.timings[std::get<0>(what)].push_back({std::get<1>(what), static_cast<double>(std::get<2>(what)), *median});
    }
}

/// The caller holds State::measuring.
static const devices::Profile& measure(Context::State& state) {
    const devices::Topology& topology = state.topology();
    // A profile is the machine's, whatever this Context was given.
    const int threads = std::max(state.threads, devices::usable_cores());
    devices::Profile profile;
    devices::ScratchArena scratch;  // gone when all is measured
    profile.now = true;
    profile.date = utc_now("%Y-%m-%d");
    profile.machine = devices::fingerprint(topology);
    profile.bandwidth = devices::measure_bandwidth(topology, threads, 0.8);
    std::size_t largest = std::clamp(4 * topology.last_level(), std::size_t{1} << 24, std::size_t{1} << 28);
    largest = std::min(largest, static_cast<std::size_t>(std::max<std::int64_t>(available_memory() / 4, 1 << 20)));
    double budget_s = 5;
    for (const Device* device : host_devices()) {
        if (device->modelled || why_unavailable(*device)) continue;
        const Cell& cell = find_cell(*device, "tridiagonal");
        if (cell.kind != CellKind::native || !cell.ops) continue;
        calibrate(*static_cast<const Ops*>(cell.ops), scratch, threads, largest, budget_s, profile);
        // The first device is the default; the others are asked for by name, and for less.
        largest = std::size_t{1} << 20;
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
