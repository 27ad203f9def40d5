// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/ring_lanes.hpp"

#include <algorithm>
#include <cmath>

#include "backends/cpu/tridiagonal/batch_kernel.hpp"
#include "base/round_up.hpp"
#include "trifold/dtype.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Operand;

// Accepted residual, in units of roundoff, against max|A| max|x|: what solves T leaves 2 to 10.
constexpr double accepted_roundoffs = 16;

template <class T>
inline constexpr int W = group_lanes<T>;

template <class T>
BatchJob<T> open_job(std::int64_t rows, int lanes) {
    BatchJob<T> job;
    job.rows = rows - 1, job.lanes = lanes;
    job.method = BatchMethod::pivoted;
    job.block_lines = 1;
    job.segment_rows = std::max<std::int64_t>(job.rows, 1);
    return job;
}

/// Element (row i, lane j) of an operand.
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

    BatchOperand<T> of_batch() const {
        BatchOperand<T> to;
        to.value = value;
        if (data) to.kind = Operand::Kind::view, to.data = const_cast<T*>(data), to.row_stride = row, to.lane_stride = lane;
        return to;
    }
};

template <class T>
BatchOperand<T> in_lanes(T* data) {
    BatchOperand<T> to;
    to.kind = Operand::Kind::view, to.data = data, to.row_stride = W<T>, to.lane_stride = 1;
    return to;
}

template <class T>
struct Rings {
    std::int64_t n;
    int count;
    Even<T> a, b, c, right, left, d;
    T *y, *z;

    /// y becomes x; lanes whose rows do not all hold.
    std::uint32_t join() const {
        const std::int64_t m = n - 1;
        T last[W<T>] = {}, residual[W<T>] = {}, matrix[W<T>] = {}, largest[W<T>] = {};
        for (int j = 0; j < count; ++j)
            last[j] = (d(m, j) - left(0, j) * y[j] - a(m, j) * y[(m - 1) * W<T> + j]) / (b(m, j) + left(0, j) * z[j] + a(m, j) * z[(m - 1) * W<T> + j]);
        for (std::int64_t i = 0; i < m; ++i)
            for (int j = 0; j < W<T>; ++j) y[i * W<T> + j] += z[i * W<T> + j] * last[j];
        std::copy_n(last, W<T>, y + m * W<T>);
        for (std::int64_t i = 0; i < n; ++i) {
            const T *const own = y + i * W<T>, *const before = i > 0 ? own - W<T> : y + m * W<T>, *const after = i < m ? own + W<T> : y;
            for (int j = 0; j < count; ++j) {
                const T below = i > 0 ? a(i, j) : right(0, j), above = i < m ? c(i, j) : left(0, j), diag = b(i, j);
                const T off = std::abs(d(i, j) - below * before[j] - diag * own[j] - above * after[j]);
                residual[j] = off <= residual[j] ? residual[j] : off;  // what is no number stays
                matrix[j] = std::max(matrix[j], std::abs(below) + std::abs(diag) + std::abs(above));
                largest[j] = std::max(largest[j], std::abs(own[j]));
            }
        }
        std::uint32_t bad = 0;
        for (int j = 0; j < count; ++j) bad |= static_cast<std::uint32_t>(!(residual[j] <= static_cast<T>(accepted_roundoffs * unit_roundoff(dtype_of<T>)) * matrix[j] * largest[j])) << j;
        return bad;
    }
};

void refused(void* sink, std::int64_t, std::int64_t lane, BatchEvent event) {
    if (event != BatchEvent::pivoted) *static_cast<std::uint32_t*>(sink) |= 1u << lane;
}

template <class T>
std::size_t vector_bytes(std::int64_t rows) {
    return static_cast<std::size_t>(rows * W<T>) * sizeof(T);
}

}  // namespace

template <class T>
std::size_t ring_lanes_bytes(std::int64_t rows) {
    return 2 * vector_bytes<T>(rows) + whole_lines(static_cast<std::size_t>(open_job<T>(rows, W<T>).scratch_elements()) * sizeof(T));
}

template <class T>
std::uint32_t solve_ring_lanes(const LaneGroup<T>& group, int count, std::uint32_t wanted, bool accumulate, void* scratch) {
    Rings<T> rings;
    rings.n = group.longest, rings.count = count;
    rings.y = static_cast<T*>(scratch), rings.z = rings.y + rings.n * W<T>;
    T* const kernel = rings.z + rings.n * W<T>;
    Even<T> x;
    if (!rings.a.set(group.lower, count) || !rings.b.set(group.diag, count) || !rings.c.set(group.upper, count) || !rings.right.set(group.top_right, count) || !rings.left.set(group.bottom_left, count) ||
        !rings.d.set(group.rhs, count) || !x.set(group.x, count))
        return wanted;
    const std::int64_t m = rings.n - 1;
    std::uint32_t bad = 0;
    BatchJob<T> job = open_job<T>(rings.n, count);
    job.lower = rings.a.of_batch(), job.diag = rings.b.of_batch(), job.upper = rings.c.of_batch();
    job.event = refused;
    job.rhs = rings.d.of_batch(), job.x = in_lanes(rings.y);
    solve_blocks(job, 0, job.blocks(), kernel, &bad);
    std::fill_n(rings.z, rings.n * W<T>, T(0));
    for (int j = 0; j < count; ++j) rings.z[j] = -rings.right(0, j), rings.z[(m - 1) * W<T> + j] -= rings.c(m - 1, j);
    job.rhs = job.x = in_lanes(rings.z), job.in_place = true;
    solve_blocks(job, 0, job.blocks(), kernel, &bad);
    bad |= rings.join();
    for (int j = 0; j < count; ++j) {
        if (!(wanted & ~bad & 1u << j)) continue;
        T* const to = const_cast<T*>(x.data) + j * x.lane;
        for (std::int64_t i = 0; i < rings.n; ++i) to[i * x.row] = accumulate ? to[i * x.row] + rings.y[i * W<T> + j] : rings.y[i * W<T> + j];
    }
    return wanted & bad;
}

template std::size_t ring_lanes_bytes<float>(std::int64_t);
template std::size_t ring_lanes_bytes<double>(std::int64_t);
template std::uint32_t solve_ring_lanes<float>(const LaneGroup<float>&, int, std::uint32_t, bool, void*);
template std::uint32_t solve_ring_lanes<double>(const LaneGroup<double>&, int, std::uint32_t, bool, void*);

}  // namespace trifold::cpu
