// SPDX-License-Identifier: BSD-3-Clause
// Lanes = systems. A group of them is eliminated into scratch, as if it were to be kept (group_tiles-inl.h), and solved from there; rings carry the
// column and the row of their last unknown along. Ragged systems are sorted by length in windows, so that lanes of a group end together; tiny ones are copied side by side (tiny_pieces.hpp).
//
//   Words     4 read, 1 written, and 1 read where x is added to; what is eliminated, 4 or 6 lines per row, stays in the second-level cache up to 2000 rows
//   Numerics  the test of group_tiles-inl.h; a system that fails it, or whose x is not finite, is solved by the reference's LU with partial
//             pivoting, in lanes where several of a group do (pivoted_lanes.hpp). Nothing is stored of a system before all its x are known
//
// A long system, where there are not enough of them for lanes, is solved by what solves plain ones: general_long.hpp.
#include "backends/cpu/tridiagonal/general.hpp"

#include <omp.h>

#include <algorithm>
#include <bit>

#include "backends/cpu/tridiagonal/batch_added.hpp"
#include "backends/cpu/tridiagonal/copied_groups.hpp"
#include "backends/cpu/tridiagonal/general_long.hpp"
#include "backends/cpu/tridiagonal/group_kernel.hpp"
#include "backends/cpu/tridiagonal/lane_order.hpp"
#include "backends/cpu/tridiagonal/pivot_check.hpp"
#include "backends/cpu/tridiagonal/pivoted_lanes.hpp"
#include "backends/cpu/tridiagonal/seen.hpp"
#include "backends/cpu/tridiagonal/tiny_pieces.hpp"
#include "backends/cpu/useful_threads.hpp"
#include "base/round_up.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

int useful_threads(const System& system, int threads) {
    constexpr std::int64_t rows_per_thread = 1 << 13;
    const std::int64_t rows = system.offsets ? system.offsets[system.ragged_systems] - system.offsets[0] : system.rows * system.systems();
    return cpu::useful_threads(rows, rows_per_thread, threads);
}

// The rows that a group of lanes may have: longer ragged systems are solved one by one, and so are few long ones.
std::int64_t lane_rows(const System& system) { return system.offsets ? std::min(system.rows, least_general_long) : system.rows; }
bool one_by_one(const System& system) {
    const int lanes = system.dtype == DType::f32 ? group_lanes<float> : group_lanes<double>;
    constexpr std::int64_t beyond_caches = 1 << 17;
    return !system.offsets && (system.systems() < lanes || system.rows > beyond_caches) && general_long_takes(system_at(system, 0));
}

/// What needs pivots: not so long that what lanes keep of it leaves all caches.
bool pivots_in_lanes(const System& system) {
    constexpr std::int64_t most_rows = 1 << 15;
    return lane_rows(system) <= most_rows;
}

/// What the kernels of one thread use; behind that lies what the LU of one system does, and groups that are copied.
template <class T>
std::size_t kernel_bytes(const System& system) {
    GroupSolve<T> job;
    job.rows = lane_rows(system);
    const std::size_t kept = static_cast<std::size_t>(kept_words(system.periodic) * group_lanes<T> * job.rows) * sizeof(T);
    const std::size_t group = whole_lines(kept) + whole_lines(static_cast<std::size_t>(job.scratch_elements()) * sizeof(T));
    return pivots_in_lanes(system) ? std::max(group, pivoted_lanes_bytes<T>(job.rows)) : group;
}

template <class T>
std::size_t thread_bytes(const System& system) {
    System line = system;
    line.rows = lane_rows(system);
    return kernel_bytes<T>(system) + pivoted_bytes(line) + CopiedGroups<T>::bytes(system);
}

/// The rows of pieces that are copied side by side: at most so many. Not where most are longer: few tiny ones do not keep lanes waiting.
template <class T>
std::int64_t most_tiny_rows(const System& system) {
    if (!system.offsets || !TinyArrays<T>::take(system)) return 0;
    const std::int64_t rows = system.offsets[system.ragged_systems] - system.offsets[0];
    return system.rows <= tiny_rows || rows <= tiny_rows / 2 * system.ragged_systems ? tiny_rows : 0;
}

/// The pieces of a ragged batch that lanes have, those of about the same length next to each other: neither tiny nor long.
class Pieces {
public:
    static constexpr std::int64_t window = 512;

    Pieces(const System& system, std::int64_t tiny, std::int64_t* order) : system_(system), order_(order) {
        if (system.rows <= tiny) return;
        for (std::int64_t k = 0; k < system.ragged_systems; ++k)
            if (const std::int64_t n = rows(k); n > tiny && n <= least_general_long) order_[count_++] = k;
    }

    std::int64_t windows() const { return (count_ + window - 1) / window; }

    /// Before the pieces of window w are asked for. By length, those of one length by number: counted, seven bits at a time, since tiny pieces take less time than comparing them does.
    void sort(std::int64_t w) {
        constexpr int digit = 7, buckets = 1 << digit, place = 16;
        static_assert(least_general_long < 1 << (2 * digit) && window <= 1 << place);
        std::int64_t* const first = order_ + w * window;
        const auto count = static_cast<std::uint32_t>(std::min(window, count_ - w * window));
        std::uint32_t keys[2][window];
        std::int64_t numbers[window];
        std::uint32_t longest = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            numbers[i] = first[i];
            const auto length = static_cast<std::uint32_t>(rows(first[i]));
            keys[0][i] = length << place | i, longest = std::max(longest, length);
        }
        int from = 0;
        for (int shift = 0; longest >> shift > 0; shift += digit, from ^= 1) {
            std::uint32_t begin[buckets + 1] = {};
            const auto bucket = [&](std::uint32_t key) { return key >> (place + shift) & (buckets - 1); };
            for (std::uint32_t i = 0; i < count; ++i) ++begin[bucket(keys[from][i]) + 1];
            for (int k = 0; k < buckets; ++k) begin[k + 1] += begin[k];
            for (std::uint32_t i = 0; i < count; ++i) keys[from ^ 1][begin[bucket(keys[from][i])]++] = keys[from][i];
        }
        for (std::uint32_t i = 0; i < count; ++i) first[i] = numbers[keys[from][i] & ((1u << place) - 1)];
    }

    std::int64_t count() const { return count_; }
    std::int64_t rows(std::int64_t k) const { return system_.offsets[k + 1] - system_.offsets[k]; }
    std::int64_t operator[](std::int64_t at) const { return order_[at]; }

private:
    const System& system_;
    std::int64_t* order_;
    std::int64_t count_ = 0;
};

template <class T>
void set_piece(LaneOperand<T>& to, const Operand& from, int j, std::int64_t row, std::int64_t number) {
    using How = typename LaneOperand<T>::How;
    to.how = from.kind == Operand::Kind::scalar ? How::constant : from.kind == Operand::Kind::generator ? How::generated : How::gathered;
    to.value = static_cast<T>(from.value), to.generator = from.generator;
    to.data = static_cast<T*>(from.data), to.row_step = from.row_stride;
    to.offset[j] = row * from.row_stride;
    to.shift[j] = from.generator_shift + row, to.number[j] = number;
}

template <class T>
LaneGroup<T> group_of_pieces(const System& s, const Pieces& pieces, std::int64_t at, int count) {
    LaneGroup<T> group;
    for (int j = 0; j < group_lanes<T>; ++j) {
        const std::int64_t k = pieces[at + std::min(j, count - 1)], first = s.offsets[k], n = pieces.rows(k);
        group.rows[j] = j < count ? n : 0;
        set_piece(group.lower, s.lower, j, first, k), set_piece(group.diag, s.diag, j, first, k), set_piece(group.upper, s.upper, j, first, k);
        set_piece(group.top_right, s.top_right, j, first, k), set_piece(group.bottom_left, s.bottom_left, j, first + n - 1, k);
        set_piece(group.rhs, s.rhs, j, first, k), set_piece(group.x, s.x, j, first, k);
    }
    group.measure();
    return group;
}

template <class T>
LaneGroup<T> group_of(const System& s, const LaneOrder& order, std::int64_t at, int count) {
    LaneGroup<T> group;
    order.set(group.lower, s.lower, at, count), order.set(group.diag, s.diag, at, count), order.set(group.upper, s.upper, at, count);
    if (s.periodic) order.set(group.top_right, s.top_right, at, count), order.set(group.bottom_left, s.bottom_left, at, count);
    order.set(group.rhs, s.rhs, at, count), order.set(group.x, s.x, at, count);
    for (int j = 0; j < group_lanes<T>; ++j) group.rows[j] = j < count ? s.rows : 0;
    group.measure();
    return group;
}

// One group from its operands to its x.
template <class T>
struct OneGroup {
    LaneGroup<T> group;
    T* kept;
    std::uint32_t refused = 0;

    static void place(const void* of, std::int64_t, LaneGroup<T>& group, const T*& kept, std::uint32_t& skip) {
        const OneGroup& self = *static_cast<const OneGroup*>(of);
        group = self.group, kept = self.kept, skip = self.refused;
    }
    static void failed(void* sink, std::int64_t, int lane, bool) { static_cast<OneGroup*>(sink)->refused |= 1u << lane; }

    /// Returns the lanes that are left to be solved.
    std::uint32_t solve(bool ring, bool accumulate, bool gives_up, T* scratch) {
        refused = factor_group(group, ring, kept, gives_up);
        if (refused == ~0u) return refused;
        GroupSolve<T> job;
        job.ring = ring, job.rows = group.longest;
        job.store.accumulate = accumulate, job.store.late = true;
        job.place = place, job.of = this, job.failed = failed, job.sink = this;
        solve_groups(job, 0, 1, scratch);
        return refused;
    }
};

/// Groups that are solved first: where most of their lanes need pivots, the others are pivoted at once. Of the batch alone, so that bits do not depend on threads.
struct Probes {
    std::int64_t groups;
    int count;

    explicit Probes(std::int64_t of) : groups(of), count(of >= 256 ? 8 : 0) {}  // where waiting for them is little beside the others
    std::int64_t at(int probe) const { return (2 * probe + 1) * groups / (2 * count); }
    bool has(std::int64_t group) const { return count > 0 && at(static_cast<int>(group * count / groups)) == group; }
};

template <class T>
void solve_groups_of(const System& system, const Launch& launch, Seen& all) {
    const std::size_t each = thread_bytes<T>(system), own = kernel_bytes<T>(system);
    const int threads = useful_threads(system, launch.threads);
    const LaneOrder order = LaneOrder::by_memory(system);
    const std::int64_t tiny = most_tiny_rows<T>(system), tiny_windows = tiny > 0 ? (system.ragged_systems + tiny_window - 1) / tiny_window : 0;
    const TinyArrays<T> arrays(system);
    Pieces pieces(system, tiny, system.offsets ? reinterpret_cast<std::int64_t*>(static_cast<char*>(launch.scratch) + each * static_cast<std::size_t>(threads)) : nullptr);
    constexpr int W = group_lanes<T>;
    const std::int64_t groups = system.offsets ? (pieces.count() + W - 1) / W : order.groups<T>();
    const Probes probes(pivots_in_lanes(system) ? groups : 0);
    const auto together = std::clamp<std::int64_t>(groups / (2 * threads), 1, CopiedGroups<T>::most_of(system));
    std::int64_t need_pivots = 0;
    const Seen nothing = all;
#pragma omp parallel num_threads(threads)
    {
        char* const scratch = static_cast<char*>(launch.scratch) + each * static_cast<std::size_t>(omp_get_thread_num());
        GroupSolve<T> sizes;
        sizes.rows = lane_rows(system);
        T* const w = reinterpret_cast<T*>(scratch);
        OneGroup<T> one;
        one.kept = w + whole_lines(static_cast<std::size_t>(sizes.scratch_elements()) * sizeof(T)) / sizeof(T);
        Seen seen = nothing;
        const auto solve_alone = [&](const System& line) {
            const Outcome outcome = solve_pivoted<T>(line, scratch + own);
            if (outcome.ok()) ++seen.rescued;
            else seen.failed(line.number, outcome.reason, outcome.row);
        };
#pragma omp for schedule(static) nowait
        for (std::int64_t w = 0; w < tiny_windows; ++w) {
            const std::int64_t begin = w * tiny_window, end = std::min(begin + tiny_window, system.ragged_systems);
            if (launch.status)
                for (std::int64_t k = begin; k < end; ++k) launch.status[k] = static_cast<std::int8_t>(Reason::exact);
            solve_tiny_pieces(arrays, system.offsets, begin, end, [&](std::int64_t k) { solve_alone(system_at(system, k)); });
        }
#pragma omp for schedule(static)
        for (std::int64_t w = 0; w < pieces.windows(); ++w) pieces.sort(w);
        const auto place = [&](std::int64_t k) { return system.offsets ? k * W : order.first<T>(k); };
        const auto lanes_of = [&](std::int64_t k) { return system.offsets ? static_cast<int>(std::min<std::int64_t>(W, pieces.count() - place(k))) : order.count<T>(k); };
        const auto group_at = [&](std::int64_t k) { return system.offsets ? group_of_pieces<T>(system, pieces, place(k), lanes_of(k)) : group_of<T>(system, order, place(k), lanes_of(k)); };
        // Group k, which is one.group. Returns how many lanes need pivots, as far as it finds out. alone: lanes that were solved, or have failed, by themselves.
        const auto solve_group = [&](std::int64_t k, bool pivots_first, bool accumulate, std::uint32_t& alone) {
            const std::int64_t at = place(k);
            const int count = lanes_of(k);
            const std::uint32_t all_lanes = (1u << count) - 1;
            const bool without = !pivots_first || (system.periodic && *std::min_element(one.group.rows, one.group.rows + count) < 3);
            const std::uint32_t refused = without ? one.solve(system.periodic, accumulate, pivots_in_lanes(system), w) & all_lanes : all_lanes;
            std::uint32_t left = refused;
            // One alone is as fast without.
            if (left & (left - 1) && pivots_in_lanes(system)) {
                left = solve_pivoted_lanes(one.group, system.periodic, count, refused, accumulate, scratch);
                seen.rescued += std::popcount(refused & ~left);
            }
            for (int j = 0; j < count; ++j) {
                const bool solved = (left >> j & 1) == 0;
                if (launch.status) launch.status[system.offsets ? pieces[at + j] : order.number(at + j)] = static_cast<std::int8_t>(Reason::exact);
                if (solved) continue;
                solve_alone(system_at(system, system.offsets ? pieces[at + j] : order.index(at + j)));
            }
            alone = left;
            return std::popcount(refused);
        };
        const auto solve_as_it_lies = [&](std::int64_t k, bool pivots_first) {
            std::uint32_t alone;
            one.group = group_at(k);
            return solve_group(k, pivots_first, system.accumulate, alone);
        };
        CopiedGroups<T> copies(scratch + each - CopiedGroups<T>::bytes(system), system.rows);
        // Some groups from the k-th one on.
        const auto solve_together = [&](std::int64_t k, int count, bool pivots_first) {
            LaneGroup<T> groups[CopiedGroups<T>::most];
            for (int q = 0; q < count; ++q) groups[q] = group_at(k + q);
            const bool copied = count > 1 && copies.bring(groups, count);
            std::uint32_t skip[CopiedGroups<T>::most] = {};
            for (int q = 0; q < count; ++q) {
                if (probes.has(k + q)) skip[q] = ~0u;
                else if (one.group = groups[q]; copied) solve_group(k + q, pivots_first, false, skip[q]);
                else solve_group(k + q, pivots_first, system.accumulate, skip[q]);
            }
            if (copied) copies.take_back(skip, system.accumulate);
        };
        std::int64_t refused = 0;
#pragma omp for schedule(static) nowait
        for (int probe = 0; probe < probes.count; ++probe) refused += solve_as_it_lies(probes.at(probe), false);
#pragma omp atomic
        need_pivots += refused;
#pragma omp barrier
        const bool pivots_first = 2 * need_pivots > static_cast<std::int64_t>(probes.count) * W;
#pragma omp for schedule(static)
        for (std::int64_t k = 0; k < (groups + together - 1) / together; ++k) solve_together(k * together, static_cast<int>(std::min<std::int64_t>(together, groups - k * together)), pivots_first);
#pragma omp critical(trifold_cpu_general)
        all.merge(seen);
    }
}

void solve_long(const System& line, const Launch& launch, Seen& seen) {
    const Outcome outcome = solve_general_long(line, launch);
    if (launch.status) launch.status[line.number] = static_cast<std::int8_t>(outcome.reason);
    if (!outcome.ok()) seen.failed(line.number, outcome.reason, outcome.row);
    else seen.rescued += outcome.rescued;
}

}  // namespace

const char* general_refuses(const System& system) {
    constexpr std::int64_t most_lane_rows = 1 << 20;
    const bool fits = system.offsets || system.rows <= most_lane_rows || one_by_one(system);
    return fits ? nullptr : "what the cpu's lanes would keep of so long systems, periodic or adding to x, with rows apart, does not fit";
}

std::size_t general_bytes(const System& system, int threads) {
    if (one_by_one(system)) return general_long_bytes(system_at(system, 0), threads);
    if (batch_adds(system)) return batch_added_bytes(system, threads);
    const std::size_t each = system.dtype == DType::f32 ? thread_bytes<float>(system) : thread_bytes<double>(system);
    std::size_t bytes = each * static_cast<std::size_t>(useful_threads(system, threads)) + static_cast<std::size_t>(system.ragged_systems) * sizeof(std::int64_t);
    if (!system.offsets || system.rows <= least_general_long) return bytes;
    for (std::int64_t k = 0; k < system.ragged_systems; ++k)
        if (system.offsets[k + 1] - system.offsets[k] > least_general_long) bytes = std::max(bytes, general_long_bytes(system_at(system, k), threads));
    return bytes;
}

void solve_general(const System& system, const Launch& launch, Outcome& outcome) {
    outcome = Outcome{};
    outcome.device = "cpu";
    if (!one_by_one(system) && batch_adds(system)) return solve_batch_added(system, launch, outcome);
    Seen seen{launch.status};
    if (one_by_one(system)) {
        for (std::int64_t k = 0; k < system.systems(); ++k) solve_long(system_at(system, k), launch, seen);
    } else {
        if (system.dtype == DType::f32) solve_groups_of<float>(system, launch, seen);
        else solve_groups_of<double>(system, launch, seen);
        for (std::int64_t k = 0; system.offsets && k < system.ragged_systems; ++k) {
            const std::int64_t n = system.offsets[k + 1] - system.offsets[k];
            if (n > least_general_long) solve_long(system_at(system, k), launch, seen);
            else if (n == 0 && launch.status) launch.status[k] = static_cast<std::int8_t>(Reason::none);
        }
    }
    seen.fill(outcome);
    outcome.tried_other = seen.rescued + seen.failures > 0;
    const bool all_tiny = system.rows <= (system.dtype == DType::f32 ? most_tiny_rows<float>(system) : most_tiny_rows<double>(system));
    outcome.branch = all_tiny || (outcome.tried_other && seen.rescued + seen.failures == system.systems()) ? "lu" : "thomas";
}

}  // namespace trifold::cpu
