// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/general/alike.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <utility>

#include "backends/cuda/runtime/strided_copy.hpp"
#include "backends/cuda/tridiagonal/device/segments.hpp"
#include "backends/cuda/tridiagonal/few_rows.hpp"
#include "backends/cuda/tridiagonal/path.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

enum { lower, diag, upper, rhs, x, operands };

// Dimension 0 are rows, then levels follow.
std::int64_t extent(const System& system, int d) { return d == 0 ? system.rows : system.extent[d - 1]; }
std::int64_t stride(const Operand& operand, int d) { return d == 0 ? operand.row_stride : operand.level_stride[d - 1]; }
const Operand& operand(const System& system, int k) { return *std::array{&system.lower, &system.diag, &system.upper, &system.rhs, &system.x}[static_cast<std::size_t>(k)]; }
Operand& operand(System& system, int k) { return const_cast<Operand&>(operand(std::as_const(system), k)); }

bool is_array(const Operand& operand) { return operand.kind == Operand::Kind::view; }

/// Along which its elements lie closest; -1: it has one.
int closest(const System& system, const Operand& operand) {
    int found = -1;
    for (int d = 0; d <= system.levels; ++d)
        if (extent(system, d) > 1 && stride(operand, d) != 0 && (found < 0 || std::llabs(stride(operand, d)) < std::llabs(stride(operand, found)))) found = d;
    return found;
}

/// Every row of every system is an element of its own.
bool is_whole(const System& system, const Operand& operand) {
    for (int d = 0; d <= system.levels; ++d)
        if (extent(system, d) > 1 && stride(operand, d) == 0) return false;
    return is_array(operand);
}

constexpr std::int64_t most_kept = 4096;

/// Lies otherwise than lanes along `d` want it, in pieces that are worth it. Nor does the copy engine go backwards, which only columns of many rows cannot do without.
bool is_unlike(const System& system, const Operand& operand, int d) {
    constexpr std::int64_t least_piece = 16;
    if (is_array(operand) && operand.row_stride < 0 && d > 0 && system.rows > most_kept) return true;
    if (!is_array(operand) || std::llabs(stride(operand, d)) <= 1 || extent(system, d) < least_piece) return false;
    const int own = closest(system, operand);
    return own != d && extent(system, own) >= least_piece;
}

/// By all systems.
bool is_shared(const System& system, const Operand& operand) {
    for (int d = 1; d <= system.levels; ++d)
        if (extent(system, d) > 1 && stride(operand, d) != 0) return false;
    return true;
}

/// The bands of columns side by side are those of one line, for each plane perhaps: kernels read them so (ColumnBands::line).
bool have_lines(const System& system, int d) {
    constexpr std::int64_t fewest_rows = 33, fewest_columns = 12;
    if (d == 0 || system.rows < fewest_rows || system.rows > most_kept || extent(system, d) < fewest_columns || !is_array(system.rhs) || stride(system.rhs, d) != 1) return false;
    for (const int k : {lower, diag, upper})
        if (is_array(operand(system, k)) && stride(operand(system, k), d) != 0) return false;
    return true;
}

/// The same for all columns side by side, where their kernels have no place for it: neither one matrix nor bands of all columns, which are kept on chip up to so many rows.
bool repeats(const System& system, int k, int d) {
    const Operand& of = operand(system, k);
    if (k < rhs && have_lines(system, d)) return false;
    return d > 0 && is_array(of) && stride(of, d) == 0 && of.row_stride != 0 && !have_one_matrix(system) && (system.rows > most_kept || k == rhs || !is_shared(system, of));
}

double us_of_word(const System& system) {
    constexpr double bytes_per_us = 4e6;
    return static_cast<double>(system.rows) * static_cast<double>(system.systems()) * static_cast<double>(size_of(system.dtype)) / bytes_per_us;
}

/// As arrays lie, lanes along `d`. Rows: a sector for every element, and one way of shared memory. Columns: a lane's rows share sectors, but all arrays take a way without the copy engine (measured, H200).
double direct_us(const System& system, int d) {
    const bool wide = system.dtype == DType::f64;
    const double unlike = d > 0 ? 3 : wide ? 8 : 16, by_lanes = system.rows > most_kept ? 40 : system.rows >= 512 ? 12.5 : !wide && system.rows < 128 ? 14 : 9;
    double words = 0, least = 0;
    for (int k = 0; k < operands; ++k) {
        const Operand& of = operand(system, k);
        if (is_unlike(system, of, d)) words += unlike, least = d > 0 ? by_lanes : 0;
        else if (repeats(system, k, d)) least = by_lanes;
        else words += is_array(of) && stride(of, d) != 0;
    }
    return std::max(words, least) * us_of_word(system);
}

/// With copies of `wanted`, for lanes along `d`. Without any it is no other way.
double copied_us(const System& system, int d, bool (&wanted)[operands]) {
    constexpr double of_launch = 3.5;
    double words = 0, launches = 0;
    for (int k = 0; k < operands; ++k) {
        const Operand& of = operand(system, k);
        const bool unlike = is_unlike(system, of, d), repeated = repeats(system, k, d);
        wanted[k] = unlike || repeated;
        words += (is_array(of) && (stride(of, d) != 0 || repeated) ? 1 : 0) + (unlike ? 2.2 : repeated ? 1.3 : 0);
        launches += wanted[k];
    }
    return launches > 0 ? words * us_of_word(system) + launches * of_launch : std::numeric_limits<double>::infinity();
}

/// What is copied, and how it lies then.
class Plan {
public:
    System system;  ///< that is solved
    bool copied[operands] = {};
    bool taken = false;
    bool by_segments = false;  ///< worth while only where these take what is left

    Plan(const System& from, void* memory) : system(from) {
        for (int d = 1; d <= 4; ++d) stride_[d] = 0;
        if (!choose(from)) return;
        lie_like(from);
        std::size_t at = statuses(from);
        for (int k = 0; k < operands; ++k) {
            if (!copied[k]) continue;
            Operand& to = operand(system, k);
            to = Operand{};
            to.kind = Operand::Kind::view, to.data = static_cast<char*>(memory) + at, to.row_stride = stride_[0];
            for (int d = 1; d <= from.levels; ++d) to.level_stride[d - 1] = stride_[d];
            at += up(static_cast<std::size_t>(elements_) * size_of(from.dtype));
        }
        if (copied[x]) system.in_place = false;
        bytes_ = at;
        in_order = system;
        order_levels(system);
    }

    System in_order;  ///< with the levels of what it is made from
    std::size_t bytes() const { return bytes_; }

    static std::size_t up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
    static std::size_t statuses(const System& from) { return up(static_cast<std::size_t>(from.systems())); }

private:
    /// Where copies cost less than what they save: for every array that could lie as it does, what is left is what others do not.
    bool choose(const System& from) {
        const int own = closest(from, from.x);
        if (own < 0) return false;
        double least = direct_us(from, own);
        for (const int k : {rhs, x, diag, lower, upper}) {
            if (!is_whole(from, operand(from, k))) continue;
            const int d = closest(from, operand(from, k));
            bool wanted[operands];
            const double us = copied_us(from, d, wanted);
            if (us >= least) continue;
            least = us, like_ = k, taken = true;
            std::copy(wanted, wanted + operands, copied);
            by_segments = false;
            for (int o = 0; o < operands; ++o) by_segments |= from.rows > most_kept && repeats(from, o, d);
        }
        return taken;
    }

    /// As array `like_` does where that has few gaps, else without any.
    void lie_like(const System& from) {
        const Operand& like = operand(from, like_);
        std::int64_t all = 1, reach = 1;
        bool forwards = true;
        for (int d = 0; d <= from.levels; ++d) {
            all *= extent(from, d), reach += (extent(from, d) - 1) * std::llabs(stride(like, d));
            forwards = forwards && (extent(from, d) == 1 || stride(like, d) > 0);
        }
        if (forwards && reach <= all + all / 4) {
            for (int d = 0; d <= from.levels; ++d) stride_[d] = stride(like, d);
            elements_ = reach;
            return;
        }
        bool placed[5] = {};
        elements_ = 1;
        for (int n = 0; n <= from.levels; ++n) {
            int next = -1;
            for (int d = 0; d <= from.levels; ++d)
                if (!placed[d] && (next < 0 || std::llabs(stride(like, d)) < std::llabs(stride(like, next)))) next = d;
            placed[next] = true;
            stride_[next] = elements_, elements_ *= extent(from, next);
        }
    }

    int like_ = x;
    std::int64_t stride_[5] = {1}, elements_ = 0;
    std::size_t bytes_ = 0;
};

/// Rows that are read: lower has none at row 0, upper none at the last one.
devices::StridedCopy copy_of(const System& system, int k, const Operand& from, const Operand& to) {
    devices::StridedCopy copy;
    copy.dtype = system.dtype;
    const std::int64_t skipped = k == lower ? 1 : 0, bytes = static_cast<std::int64_t>(size_of(system.dtype));
    copy.from = static_cast<const char*>(from.data) + skipped * from.row_stride * bytes;
    copy.to = static_cast<char*>(to.data) + skipped * to.row_stride * bytes;
    copy.dims = system.levels + 1;
    for (int d = 0; d < copy.dims; ++d) {
        copy.extent[d] = extent(system, d) - (d == 0 && (k == lower || k == upper) ? 1 : 0);
        copy.from_stride[d] = stride(from, d), copy.to_stride[d] = stride(to, d);
    }
    return copy;
}

}  // namespace

bool takes_alike(const System& system) {
    constexpr std::int64_t least = std::int64_t{1} << 18;  // fewer rows are read from caches, and launches count
    if (system.levels == 0 || system.rows * system.systems() < least || fits_few_rows(system)) return false;
    const Plan plan(system, nullptr);
    return plan.taken && (!plan.by_segments || takes_segments(plan.system));
}

std::size_t alike_scratch(const System& system) {
    const Plan plan(system, nullptr);
    return plan.bytes() + scratch_for(plan.system, Algorithm::automatic);
}

void solve_alike(const System& system, const BatchLaunch& launch) {
    const Plan plan(system, launch.scratch);
    BatchLaunch inner = launch;
    if (!inner.status) inner.status = static_cast<std::int8_t*>(launch.scratch) - system.number;
    inner.scratch = static_cast<char*>(launch.scratch) + plan.bytes(), inner.scratch_bytes = launch.scratch_bytes - plan.bytes();
    for (int k = 0; k < x; ++k)
        if (plan.copied[k]) enqueue_copy_strided(copy_of(system, k, operand(system, k), operand(plan.in_order, k)), launch.stream);
    enqueue_path(path_within(plan.system, Algorithm::automatic, inner.scratch_bytes), plan.system, inner);
    if (!plan.copied[x]) return;
    OfSolved solved{launch.outcome, inner.status + system.number};
    for (int d = 0; d < system.levels; ++d) solved.stride[d + 1] = system.number_stride[d];
    enqueue_copy_strided(copy_of(system, x, plan.in_order.x, system.x), launch.stream, solved);
}

}  // namespace trifold::cuda
