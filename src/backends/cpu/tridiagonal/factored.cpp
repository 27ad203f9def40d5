// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/factored.hpp"

#include <omp.h>

#include <cmath>
#include <utility>

#include "backends/cpu/tridiagonal/batch.hpp"
#include "backends/cpu/tridiagonal/cell.hpp"
#include "backends/cpu/tridiagonal/factored_matrix.hpp"
#include "backends/cpu/tridiagonal/factored_memory.hpp"
#include "backends/cpu/tridiagonal/group_kernel.hpp"
#include "backends/cpu/tridiagonal/lane_order.hpp"
#include "backends/cpu/tridiagonal/pivot_check.hpp"
#include "backends/cpu/tridiagonal/seen.hpp"
#include "backends/cpu/tridiagonal/single.hpp"
#include "backends/cpu/useful_threads.hpp"
#include "base/round_up.hpp"
#include "devices/threads.hpp"
#include "families/tridiagonal/certified.hpp"
#include "families/tridiagonal/plain.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

template <class T>
FactorMemory<T> memory_of(std::int64_t rows, std::int64_t systems, bool periodic, const void* factors) {
    return {rows, systems, periodic, static_cast<char*>(const_cast<void*>(factors))};
}

constexpr std::int64_t rows_per_thread = 1 << 14;

// A batch with matrices of its own moves as many words with factors as without them, and from memory the batch kernels move them faster.
template <class T>
bool solves_anew(const System& system) {
    constexpr double beyond_caches = 24 << 20;
    const FactorMemory<T> memory = memory_of<T>(system.rows, system.systems(), system.periodic, nullptr);
    if (memory.shared() || memory.one_by_one() || tridiagonal::why_not_plain(system)) return false;
    return 5.0 * sizeof(T) * static_cast<double>(system.rows) * static_cast<double>(memory.systems) > beyond_caches;
}
template <class T>
std::size_t eliminated_bytes(const System& system) {
    return whole_lines(static_cast<std::size_t>(system.rows * kept_words(false) * group_lanes<T>) * sizeof(T));
}

/// Where a matrix is kept that has failed: rows side by side, or lines of lanes.
template <class T>
KeptBands<T> one_matrix(const FactorMemory<T>& memory, T* numbers) {
    return {numbers, 1, memory.rows};
}
template <class T>
KeptBands<T> bands_of(const FactorMemory<T>& memory, std::int64_t group) {
    if (memory.shared()) return one_matrix(memory, memory.group(group));
    return {memory.group(group), memory.words() * group_lanes<T>, group_lanes<T>, 1};
}

// ---- factor ----

template <class T>
void set_matrix(LaneGroup<T>& group, const System& system, const LaneOrder& order, std::int64_t place, int count) {
    order.set(group.lower, system.lower, place, count), order.set(group.diag, system.diag, place, count), order.set(group.upper, system.upper, place, count);
    order.set(group.top_right, system.top_right, place, count), order.set(group.bottom_left, system.bottom_left, place, count);
    for (int j = 0; j < group_lanes<T>; ++j) group.rows[j] = j < count ? system.rows : 0;
    group.measure();
}

// Numbers instead of lines: the same elimination, the same test. ends: where not null, from both ends too; its lower end is another chain of divisions, which runs beside this one.
template <class T>
bool factor_one(const LaneGroup<T>& group, bool ring, T* kept, BothEnds<T>* ends) {
    constexpr T growth = 4;
    const std::int64_t n = group.longest, m = n - ring, words = kept_words(ring);
    const T right = ring ? group.top_right.at(0, 0) : T(0), left = ring ? group.bottom_left.at(0, 0) : T(0);
    T last = ring ? group.diag.at(n - 1, 0) : T(0);
    if (ring && m == 0) last += right + left;
    const T before = ring && m > 0 ? group.lower.at(n - 1, 0) : T(0), most = growth * (std::abs(left) + std::abs(before) + std::abs(last));
    const OneLane<T> lower(group.lower), diag(group.diag), upper(group.upper);
    const std::int64_t from_top = ends ? ends->middle() : 0;
    T c = 0, e = 0, q = 0, sum = 0;
    for (std::int64_t i = 0; i < m; ++i, kept += words) {
        const T a = i > 0 ? lower[i] : T(0), b = diag[i], above = i + 1 < n ? upper[i] : T(0);
        const T allowed = growth * (std::abs(a) + std::abs(b)), back = a * c, p = b - back, s = 1 / p;
        bool good = std::abs(back) < allowed && std::isfinite(p) && std::isfinite(s) && std::isfinite(a * s);
        kept[0] = s, kept[1] = a * s;
        if (ring) {
            const T over = a * e;
            good = good && std::abs(over) < allowed;
            q = (i == 0 ? left : T(0)) + (i + 1 == m ? before : T(0)) - q * c;
            e = ((i == 0 ? right : T(0)) + (i + 1 == m ? above : T(0)) - over) * s;
            good = good && std::abs(q) <= most;
            sum += std::abs(q * e);
            last -= q * e;
            kept[3] = e, kept[4] = q;
        }
        kept[2] = c = i + 1 < m ? above * s : T(0);
        if (i < from_top) ends->take(i, kept[0], kept[1], c, lower, diag, upper);
        if (!good) return false;
    }
    if (!ring) return true;
    kept[1] = left, kept[2] = before, kept[3] = group.diag.at(n - 1, 0) + (m == 0 ? right + left : T(0));
    kept[0] = 1 / last;
    return std::isfinite(kept[0]) && kept[0] != 0 && (m == 0 || sum <= most);
}

template <class T>
void name_failures(const System& batch, const LaneOrder& order, std::int64_t place, int count, Seen& seen) {
    for (int j = 0; j < count; ++j) {
        const System line = system_at(batch, order.index(place + j));
        const PivotCheck found = check_pivots<T>(line);
        if (!ok(found.reason)) seen.failed(line.number, found.reason, found.row);
        else ++seen.rescued;
    }
}

// One long system: what its sweeps will be, and the numbers for them.
template <class T>
void factor_long(const LaneGroup<T>& group, const System& system, const FactorMemory<T>& memory, int threads) {
    constexpr std::int64_t beyond_caches = std::int64_t{24} << 20;
    constexpr int few_cores = 3;
    void* const to = memory.stretches();
    long_factor<T>(memory.rows, memory.group(0), to, threads);
    if (long_mode<T>(to) == LongMode::local) {
        if (5 * memory.rows * static_cast<std::int64_t>(sizeof(T)) <= beyond_caches) return;
        keep_matrix(group, false, memory.rows, one_matrix(memory, long_numbers<T>(to)), 1);
        set_long_mode(to, LongMode::matrix);
    } else if (memory.rows < 2 * rows_per_thread || devices::usable_cores() <= few_cores) {
        // Shorter ones are worth one thread, which takes less time from both ends. Not by the number of threads, which nothing that is computed depends on.
        const LongMode before = long_mode<T>(to);
        const bool good = factor_ends<T>(system, long_numbers<T>(to));
        if (good) set_long_mode(to, LongMode::ends);
        else if (before != LongMode::none) long_factor<T>(memory.rows, memory.group(0), to, threads);
    }
}

template <class T>
void factor_shared(const System& system, const FactorMemory<T>& memory, int threads, Seen& seen) {
    const LaneOrder order = LaneOrder::by_number(system);
    LaneGroup<T> group;
    set_matrix(group, system, order, 0, 1);
    T* const kept = memory.group(0);
    const bool from_both = memory.has_ends();
    BothEnds<T> ends;
    if (from_both) ends = BothEnds<T>(memory.rows, long_numbers<T>(memory.stretches()));
    const bool good = factor_one(group, memory.ring, kept, from_both ? &ends : nullptr);
    memory.mark(0) = good ? Kept::factors : Kept::matrix;
    if (from_both) set_long_mode(memory.stretches(), good && ends.close(OneLane<T>(group.lower), OneLane<T>(group.diag), OneLane<T>(group.upper)) ? LongMode::ends : LongMode::none);
    if (good) {
        if (memory.in_stretches()) factor_long(group, system, memory, threads);
        return;
    }
    name_failures<T>(system, order, 0, 1, seen);
    keep_matrix(group, memory.ring, memory.rows, one_matrix(memory, kept), 1);
}

// The systems of a group that is not full, from both ends.
template <class T>
bool factor_few_ends(const LaneGroup<T>& group, int count, T* kept) {
    bool good = true;
    for (int j = 0; good && j < count; ++j) {
        const OneLane<T> lower(group.lower, j), diag(group.diag, j), upper(group.upper, j);
        good = eliminate_from_ends(group.longest, lower, diag, upper, kept + j * ends_words(group.longest));
    }
    return good;
}

template <class T>
void factor_typed(const System& system, const Launch& launch, void* factors, Outcome& outcome) {
    const FactorMemory<T> memory = memory_of<T>(system.rows, system.systems(), system.periodic, factors);
    const bool single = memory.shared() || memory.one_by_one();
    Seen all{launch.status};
    if (single) {
        for (std::int64_t k = 0; k < memory.systems; ++k) {
            const System line = system_at(system, k);
            factor_shared<T>(line, memory.shared() ? memory : memory.single(line.number), launch.threads, all);
        }
    } else {
        const LaneOrder order = LaneOrder::by_number(system);
        const Seen nothing = all;
        const bool kept = factors != nullptr;  // else only looked at
#pragma omp parallel num_threads(useful_threads(system.rows * memory.systems, rows_per_thread, launch.threads))
        {
            Seen seen = nothing;
            T* const own = reinterpret_cast<T*>(static_cast<char*>(launch.scratch) + static_cast<std::size_t>(omp_get_thread_num()) * eliminated_bytes<T>(system));
#pragma omp for schedule(static)
            for (std::int64_t k = 0; k < memory.groups(); ++k) {
                LaneGroup<T> group;
                const std::int64_t place = k * group_lanes<T>;
                const int count = static_cast<int>(std::min<std::int64_t>(group_lanes<T>, memory.systems - place));
                set_matrix(group, system, order, place, count);
                const bool good = factor_group(group, memory.ring, kept ? memory.group(k) : own) == 0;
                if (kept) memory.mark(k) = good ? Kept::factors : Kept::matrix;
                if (kept && memory.has_ends()) set_long_mode(memory.stretches(), good && factor_few_ends(group, count, long_numbers<T>(memory.stretches())) ? LongMode::ends : LongMode::none);
                if (good) continue;
                name_failures<T>(system, order, place, count, seen);
                if (kept) keep_matrix(group, memory.ring, memory.rows, bands_of(memory, k), group_lanes<T>);
            }
#pragma omp critical(trifold_cpu_factor)
            all.merge(seen);
        }
    }
    all.fill(outcome);
    outcome.branch = all.rescued + all.failures > 0 ? "lu" : "thomas";
}

// ---- solve ----

// What a thread of solve_lanes uses: for lanes, behind that for one system; all of it for lanes that need pivots.
template <class T>
std::size_t lanes_bytes(const System& system, std::int64_t scratch_elements) {
    const std::size_t sweeps = whole_lines(static_cast<std::size_t>(scratch_elements) * sizeof(T)) + whole_lines(single_bytes(system));
    return std::max(sweeps, kept_lanes_bytes<T>(system));
}

template <class T>
std::int64_t first_not_finite(const Operand& rhs, std::int64_t rows) {
    const T* const p = static_cast<const T*>(rhs.data);
    for (std::int64_t i = 0; i < rows; ++i)
        if (!std::isfinite(p[i * rhs.row_stride])) return i;
    return 0;
}

// Groups of right-hand sides, as the kernel asks for them.
template <class T>
struct Solve {
    const System& system;
    const FactorMemory<T>& memory;
    const LaneOrder order;
    std::int64_t factored;
    bool by_memory;
    Seen* seen = nullptr;

    std::int64_t groups() const { return by_memory ? order.groups<T>() : memory.groups() * (system.systems() / factored); }
    std::pair<std::int64_t, int> place_of(std::int64_t k) const {
        if (by_memory) return {order.first<T>(k), order.count<T>(k)};
        const std::int64_t in = k % memory.groups() * group_lanes<T>;
        return {k / memory.groups() * factored + in, static_cast<int>(std::min<std::int64_t>(group_lanes<T>, factored - in))};
    }

    static void place(const void* of, std::int64_t k, LaneGroup<T>& group, const T*& kept, std::uint32_t& skip) {
        const Solve& self = *static_cast<const Solve*>(of);
        const auto [at, count] = self.place_of(k);
        self.order.set(group.rhs, self.system.rhs, at, count), self.order.set(group.x, self.system.x, at, count);
        for (int j = 0; j < group_lanes<T>; ++j) group.rows[j] = j < count ? self.system.rows : 0;
        group.measure();
        const std::int64_t g = self.by_memory ? 0 : k % self.memory.groups();
        kept = self.memory.group(g);
        if (self.memory.mark(g) == Kept::matrix) skip = (1u << group_lanes<T>) - 1;
    }

    static void failed(void* sink, std::int64_t k, int lane, bool) {
        Solve& self = *static_cast<Solve*>(sink);
        const System line = system_at(self.system, self.order.index(self.place_of(k).first + lane));
        if (self.memory.mark(self.by_memory ? 0 : k % self.memory.groups()) == Kept::factors)
            self.seen->failed(line.number, Reason::not_finite, first_not_finite<T>(line.rhs, line.rows));
    }
};

template <class T>
void solve_lanes(const System& system, const FactorMemory<T>& memory, std::int64_t factored, const Launch& launch, Seen& all) {
    const bool shared = memory.shared();
    const Solve<T> plan{system, memory, shared ? LaneOrder::by_memory(system) : LaneOrder::by_number(system), factored, shared};
    constexpr std::int64_t beyond_caches = std::int64_t{24} << 20;
    GroupSolve<T> job;
    job.ring = memory.ring, job.shared = shared, job.rows = system.rows;
    job.store.stream = !system.in_place && 2 * system.rows * system.systems() * static_cast<std::int64_t>(sizeof(T)) > beyond_caches;
    job.store.accumulate = job.store.late = system.accumulate;
    job.place = Solve<T>::place, job.failed = Solve<T>::failed;
    const std::int64_t groups = plan.groups();
    const std::size_t each = lanes_bytes<T>(system, job.scratch_elements());
    const int threads = static_cast<int>(std::min<std::int64_t>(useful_threads(system.rows * system.systems(), rows_per_thread, launch.threads), groups));
    const Seen nothing{.status = all.status};  // all may have seen systems before
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num(), of = omp_get_num_threads();
        Seen seen = nothing;
        Solve<T> own = plan;
        own.seen = &seen;
        GroupSolve<T> mine = job;
        mine.of = mine.sink = &own;
        char* const scratch = static_cast<char*>(launch.scratch) + static_cast<std::size_t>(me) * each;
        const std::int64_t first = groups * me / of, last = groups * (me + 1) / of;
        solve_groups(mine, first, last, reinterpret_cast<T*>(scratch));
        Launch alone = launch;
        alone.threads = 1, alone.scratch_bytes = single_bytes(system);
        alone.scratch = scratch + whole_lines(static_cast<std::size_t>(job.scratch_elements()) * sizeof(T));
        for (std::int64_t k = first; k < last; ++k) {
            const std::int64_t g = shared ? 0 : k % memory.groups();
            if (memory.mark(g) != Kept::matrix) continue;
            const auto [place, count] = own.place_of(k);
            const KeptBands<T> kept = bands_of(memory, g);
            const std::uint32_t left = solve_kept_lanes(system, own.order, place, count, memory.ring, kept, scratch);
            for (int j = 0; j < count; ++j)
                if (left >> j & 1) solve_kept_matrix(system_at(system, own.order.index(place + j)), memory.ring, kept.lane(j), alone, seen);
        }
#pragma omp critical(trifold_cpu_factor)
        all.merge(seen);
    }
}

// Each right-hand side of a long system is solved by all threads.
template <class T>
void solve_long(const System& system, const FactorMemory<T>& memory, const Launch& launch, Seen& all) {
    if (memory.mark(0) == Kept::matrix) return solve_kept_matrix(system, memory.ring, bands_of(memory, 0), launch, all);
    const LongMode mode = long_mode<T>(memory.stretches());
    if (mode == LongMode::matrix) return solve_kept_matrix(system, false, one_matrix(memory, long_numbers<T>(memory.stretches())), launch, all, true);
    if (mode == LongMode::ends) {
        const std::int64_t bad = solve_ends<T>(system, long_numbers<T>(memory.stretches()), launch.threads);
        if (bad >= 0) all.failed(system.number, Reason::not_finite, bad);
        return;
    }
    if (!long_solve<T>(system, memory.stretches(), useful_threads(system.rows, rows_per_thread, launch.threads), launch.scratch))
        all.failed(system.number, Reason::not_finite, first_not_finite<T>(system.rhs, system.rows));
}

template <class T>
void solve_typed(const System& system, bool periodic, std::int64_t factored, const void* factors, const Launch& launch, Outcome& outcome) {
    const FactorMemory<T> memory = memory_of<T>(system.rows, factored, periodic, factors);
    Seen seen{launch.status};
    const auto sides_fill_lanes = [&] { return system.systems() >= group_lanes<T> * launch.threads; };
    bool pivoted = false;
    for (std::int64_t k = 0; k < memory.groups() && !memory.one_by_one(); ++k) pivoted = pivoted || memory.mark(k) == Kept::matrix;
    const auto from_ends = [&] {
        return memory.has_ends() && memory.mark(0) == Kept::factors && system.systems() <= memory.few && long_mode<T>(memory.stretches()) == LongMode::ends;
    };
    if (from_ends()) {
        const auto one = [&](const System& line) {
            const T* const kept = long_numbers<T>(memory.stretches()) + line.number % factored * ends_words(line.rows);
            if (const std::int64_t bad = solve_ends<T>(line, kept, 1, static_cast<T*>(launch.scratch)); bad >= 0) seen.failed(line.number, Reason::not_finite, bad);
        };
        if (system.levels == 0) one(system);
        else
            for (std::int64_t k = 0; k < system.systems(); ++k) one(system_at(system, k));
    } else if (memory.one_by_one()) {
        for (std::int64_t k = 0; k < system.systems(); ++k) {
            const System line = system_at(system, k);
            const FactorMemory<T> one = memory.single(line.number % factored);
            pivoted = pivoted || one.mark(0) == Kept::matrix;
            if (one.mark(0) == Kept::matrix || long_mode<T>(one.stretches()) != LongMode::none) solve_long(line, one, launch, seen);
            else solve_lanes(line, one, 1, launch, seen);
        }
    } else if (memory.in_stretches() && !sides_fill_lanes() && (pivoted || long_mode<T>(memory.stretches()) != LongMode::none)) {
        for (std::int64_t k = 0; k < system.systems(); ++k) solve_long(system_at(system, k), memory, launch, seen);
    } else if (memory.shared() && !memory.ring && pivoted && system.levels > 0) {
        System batch = system;
        set_bands(batch, bands_of(memory, 0));
        solve_batch(batch, Algorithm::automatic, launch, outcome);
        outcome.rescued = 0, outcome.tried_other = false, outcome.branch = "lu";
        return;
    } else {
        solve_lanes(system, memory, factored, launch, seen);
    }
    seen.rescued = 0;
    seen.fill(outcome);
    outcome.branch = pivoted ? "lu" : "thomas";
}

}  // namespace

std::size_t factor_bytes(const System& system) {
    const auto bytes = [&]<class T>(T) -> std::size_t {
        if (solves_anew<T>(system)) return 0;
        return memory_of<T>(system.rows, system.systems(), system.periodic, nullptr).bytes();
    };
    return system.dtype == DType::f32 ? bytes(float()) : bytes(double());
}

std::size_t factor_scratch(const System& system, int threads) {
    const auto bytes = [&]<class T>(T) {
        GroupSolve<T> job;
        job.rows = system.rows;
        const auto team = static_cast<std::size_t>(useful_threads(system.rows * system.systems(), rows_per_thread, threads));
        std::size_t need = team * lanes_bytes<T>(system, job.scratch_elements());
        if (solves_anew<T>(system)) need = std::max(need, team * eliminated_bytes<T>(system));
        if (system.levels == 0 && system.rows < least_long_rows) return need;
        // What is kept as it is has its rows side by side.
        System batch = system, line = system;
        line.levels = 0;
        set_bands<T>(batch, {nullptr, 1, 0}), set_bands<T>(line, {nullptr, 1, 0});
        batch.periodic = line.periodic = false;
        if (system.levels > 0) need = std::max(need, batch_bytes(batch, Algorithm::automatic, threads));
        if (system.rows < least_long_rows) return need;
        need = std::max(need, long_scratch<T>(system.rows, threads));
        if (!certified_refuses(cpu_ops(), line)) need = std::max(need, tridiagonal::certified_workspace(cpu_ops(), line, threads));
        if (!two_pass_refuses(cpu_ops(), line)) need = std::max(need, tridiagonal::two_pass_workspace(cpu_ops(), line, threads));
        return need;
    };
    return system.dtype == DType::f32 ? bytes(float()) : bytes(double());
}

void factor(const System& system, const Launch& launch, void* factors, Outcome& outcome) {
    outcome.device = "cpu";
    if (system.rows == 0 || system.systems() == 0) return;
    if (system.dtype == DType::f32) factor_typed<float>(system, launch, factors, outcome);
    else factor_typed<double>(system, launch, factors, outcome);
}

void solve_factored(const System& system, bool periodic, std::int64_t factored, const void* factors, const Launch& launch, Outcome& outcome) {
    outcome.device = "cpu";
    if (system.rows == 0 || system.systems() == 0) return;
    if (system.dtype == DType::f32) solve_typed<float>(system, periodic, factored, factors, launch, outcome);
    else solve_typed<double>(system, periodic, factored, factors, launch, outcome);
}

}  // namespace trifold::cpu
