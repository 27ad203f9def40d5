// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/pivoted_lanes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/tridiagonal/batch_kernel.hpp"
#include "backends/cpu/tridiagonal/group_kernel.hpp"
#include "base/round_up.hpp"
#include "trifold/dtype.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Operand;

// Accepted residual of rings, in units of roundoff, against max|A| max|x|: what solves T leaves 2 to 10.
constexpr double accepted_roundoffs = 16;

template <class T>
inline constexpr int W = group_lanes<T>;

template <class T>
BatchJob<T> open_job(std::int64_t rows, int lanes) {
    BatchJob<T> job;
    job.rows = rows, job.lanes = lanes;
    job.method = BatchMethod::pivoted;
    job.block_lines = 1;
    job.segment_rows = std::max<std::int64_t>(job.rows, 1);
    return job;
}

template <class T>
BatchOperand<T> in_lanes(T* data) {
    BatchOperand<T> to;
    to.kind = Operand::Kind::view, to.data = data, to.row_stride = W<T>, to.lane_stride = 1;
    return to;
}

/// Element (row i, lane j) of an operand, where it lies or in lanes of scratch.
template <class T>
struct Even {
    const T* data = nullptr;
    T value = 0;
    std::int64_t row = 0, lane = 0;

    /// False: its lanes are not evenly apart, or it is generated.
    bool set(const LaneOperand<T>& from, int count) {
        using How = typename LaneOperand<T>::How;
        value = from.value;
        if (from.how == How::constant) return true;
        if (from.how == How::generated) return false;
        data = from.data + from.offset[0], row = from.row_step, lane = count > 1 ? from.offset[1] - from.offset[0] : 1;
        for (int j = 0; j < count; ++j)
            if (from.offset[j] != from.offset[0] + j * lane) return false;
        return true;
    }
    T operator()(std::int64_t i, int j) const { return data ? data[i * row + j * lane] : value; }

    /// Lanes that lie side by side, or a number.
    bool beside() const { return !data || lane == 1; }
    LaneLines<T> lines() const { return {data, value, row}; }

    BatchOperand<T> of_batch() const {
        BatchOperand<T> to;
        to.value = value;
        if (data) to.kind = Operand::Kind::view, to.data = const_cast<T*>(data), to.row_stride = row, to.lane_stride = lane;
        return to;
    }
};

void refused(void* sink, std::int64_t, std::int64_t lane, BatchEvent event) {
    if (event != BatchEvent::pivoted) *static_cast<std::uint32_t*>(sink) |= 1u << lane;
}

template <class T>
std::size_t vector_elements(std::int64_t rows) {
    return static_cast<std::size_t>(rows * W<T>);
}

/// The group as the kernels take it: systems of `rows`, of a ring its T.
template <class T>
struct Lanes {
    std::int64_t rows;
    int count;
    std::int64_t own[W<T>] = {};  ///< rows of each
    Even<T> a, b, c, d;
    T *y, *kernel;

    void copy(const LaneGroup<T>& group, bool ring, T* to) {
        const auto copied = [&](const LaneOperand<T>& from, std::int64_t low, std::int64_t cut, T outside) {
            gather_lanes(group, from, rows, low, cut, outside, to);
            Even<T> here;
            here.data = to, here.row = W<T>, here.lane = 1;
            to += rows * W<T>;
            return here;
        };
        a = copied(group.lower, 1, ring, T(0)), b = copied(group.diag, 0, ring, T(1)), c = copied(group.upper, 0, ring + 1, T(0)), d = copied(group.rhs, 0, ring, T(0));
    }

    /// Returns the lanes that were refused.
    std::uint32_t solve(const BatchOperand<T>& rhs, T* x) const {
        std::uint32_t bad = 0;
        BatchJob<T> job = open_job<T>(rows, count);
        job.lower = a.of_batch(), job.diag = b.of_batch(), job.upper = c.of_batch();
        job.event = refused;
        job.rhs = rhs, job.x = in_lanes(x), job.in_place = rhs.data == x;
        solve_blocks(job, 0, job.blocks(), kernel, &bad);
        return bad;
    }

    std::uint32_t not_finite() const {
        T sum[W<T>] = {};
        for (std::int64_t i = 0; i < rows; ++i)
            for (int j = 0; j < count; ++j) sum[j] += y[i * W<T> + j] * T(0);
        std::uint32_t bad = 0;
        for (int j = 0; j < count; ++j) bad |= static_cast<std::uint32_t>(!(sum[j] == T(0))) << j;
        return bad;
    }
};

/// What is not in T.
template <class T>
struct Border {
    T right[W<T>] = {}, above[W<T>] = {};                                  ///< last column: in the first row, in the last but one
    T left[W<T>] = {}, beside[W<T>] = {}, corner[W<T>] = {}, rhs[W<T>] = {};  ///< last row

    Border(const LaneGroup<T>& group, const Lanes<T>& lanes) {
        for (int j = 0; j < lanes.count; ++j) {
            const std::int64_t m = lanes.own[j];
            if (m < 2) continue;
            right[j] = group.top_right.at(0, j), above[j] = group.upper.at(m - 1, j);
            left[j] = group.bottom_left.at(0, j), beside[j] = group.lower.at(m, j), corner[j] = group.diag.at(m, j), rhs[j] = group.rhs.at(m, j);
        }
    }

    void column(const Lanes<T>& lanes, T* z) const {
        std::fill_n(z, lanes.rows * W<T>, T(0));
        for (int j = 0; j < lanes.count; ++j)
            if (const std::int64_t m = lanes.own[j]; m >= 2) z[j] = -right[j], z[(m - 1) * W<T> + j] -= above[j];
    }

    /// y, with room for a row more, becomes x; lanes whose rows do not all hold.
    std::uint32_t join(const Lanes<T>& lanes, const T* z) const {
        T* const y = lanes.y;
        T last[W<T>] = {}, residual[W<T>] = {}, matrix[W<T>] = {}, largest[W<T>] = {};
        std::uint32_t bad = 0;
        for (int j = 0; j < lanes.count; ++j) {
            const std::int64_t m = lanes.own[j];
            if (m < 2) {
                bad |= 1u << j;
                continue;
            }
            last[j] = (rhs[j] - left[j] * y[j] - beside[j] * y[(m - 1) * W<T> + j]) / (corner[j] + left[j] * z[j] + beside[j] * z[(m - 1) * W<T> + j]);
        }
        T own[W<T>] = {};
        for (int j = 0; j < lanes.count; ++j) own[j] = static_cast<T>(lanes.own[j]);
        close_rings(RingLines<T>{lanes.a.lines(), lanes.b.lines(), lanes.c.lines(), lanes.d.lines(), z, y, lanes.rows, last, own, residual, matrix, largest});
        const auto row_of = [&](int j, T below, T before, T diag, T x, T above_it, T after, T d) {
            const T off = std::abs(d - below * before - diag * x - above_it * after);
            residual[j] = off <= residual[j] || !(residual[j] == residual[j]) ? residual[j] : off;  // what is no number stays
            matrix[j] = std::max(matrix[j], std::abs(below) + std::abs(diag) + std::abs(above_it));
            largest[j] = std::max(largest[j], std::abs(x));
        };
        for (int j = 0; j < lanes.count; ++j) {
            const std::int64_t m = lanes.own[j];
            if (m < 2) continue;
            const auto x = [&](std::int64_t i) { return y[i * W<T> + j]; };
            row_of(j, right[j], last[j], lanes.b(0, j), x(0), lanes.c(0, j), x(1), lanes.d(0, j));
            row_of(j, lanes.a(m - 1, j), x(m - 2), lanes.b(m - 1, j), x(m - 1), above[j], last[j], lanes.d(m - 1, j));
            row_of(j, beside[j], x(m - 1), corner[j], last[j], left[j], x(0), rhs[j]);
            y[m * W<T> + j] = last[j];
        }
        for (int j = 0; j < lanes.count; ++j) {
            const T allowed = static_cast<T>(accepted_roundoffs * unit_roundoff(dtype_of<T>)) * matrix[j] * largest[j];
            const bool holds = residual[j] <= allowed && allowed <= std::numeric_limits<T>::max();  // an infinite x allows anything
            bad |= static_cast<std::uint32_t>(!holds) << j;
        }
        return bad;
    }
};

}  // namespace

// x and the last column, a row more of each, and copies of four operands.
template <class T>
std::size_t pivoted_lanes_bytes(std::int64_t rows) {
    return (2 * vector_elements<T>(rows + 1) + 4 * vector_elements<T>(rows)) * sizeof(T) + whole_lines(static_cast<std::size_t>(open_job<T>(rows, W<T>).scratch_elements()) * sizeof(T));
}

template <class T>
std::uint32_t solve_pivoted_lanes(const LaneGroup<T>& group, bool ring, int count, std::uint32_t wanted, bool accumulate, void* scratch) {
    const std::int64_t longest = group.longest;
    if (ring && longest < 3) return wanted;
    Lanes<T> lanes;
    lanes.rows = ring ? longest - 1 : longest, lanes.count = count;
    for (int j = 0; j < count; ++j) lanes.own[j] = !ring ? group.rows[j] : group.rows[j] < 3 ? 0 : group.rows[j] - 1;
    lanes.y = static_cast<T*>(scratch);
    T* const z = lanes.y + vector_elements<T>(longest + 1);
    T* const copies = z + vector_elements<T>(longest + 1);
    lanes.kernel = copies + 4 * vector_elements<T>(longest);
    const bool even = std::all_of(group.rows, group.rows + count, [&](std::int64_t rows) { return rows == longest; });
    bool as_they_lie = even && lanes.a.set(group.lower, count) && lanes.b.set(group.diag, count) && lanes.c.set(group.upper, count) && lanes.d.set(group.rhs, count);
    // Of rings they are read three times, the last time by lines.
    if (ring) as_they_lie = as_they_lie && count == W<T> && lanes.a.beside() && lanes.b.beside() && lanes.c.beside() && lanes.d.beside();
    if (!as_they_lie) lanes.copy(group, ring, copies);
    std::uint32_t bad = lanes.solve(lanes.d.of_batch(), lanes.y);
    if (ring) {
        const Border<T> border(group, lanes);
        border.column(lanes, z);
        bad |= lanes.solve(in_lanes(z), z);
        bad |= border.join(lanes, z);
    } else {
        bad |= lanes.not_finite();
    }
    scatter_lanes(group, lanes.y, ~(wanted & ~bad), accumulate);
    return wanted & bad;
}

template std::size_t pivoted_lanes_bytes<float>(std::int64_t);
template std::size_t pivoted_lanes_bytes<double>(std::int64_t);
template std::uint32_t solve_pivoted_lanes<float>(const LaneGroup<float>&, bool, int, std::uint32_t, bool, void*);
template std::uint32_t solve_pivoted_lanes<double>(const LaneGroup<double>&, bool, int, std::uint32_t, bool, void*);

}  // namespace trifold::cpu
