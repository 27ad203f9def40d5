// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/mesh/lines.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/mesh/rings.hpp"
#include "backends/cpu/tridiagonal/batch.hpp"
#include "backends/reference/tridiagonal/line.hpp"
#include "problems/tridiagonal/array_operand.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::array_operand;
using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

// Accepted residual of a ring, in units of roundoff, against max|A| max|x| of its line: the batch kernels leave 2 to 5.
constexpr double accepted_roundoffs = 32;

// Two levels where there are two to speak of, since what is next to each other in memory decides how a batch is cut.
template <class T>
System system_of(const LineShape& shape, const LineMatrices<T>& m, T* values) {
    System system;
    system.dtype = dtype_of<T>;
    system.rows = shape.n;
    system.levels = 2;
    system.extent[0] = shape.outer, system.extent[1] = shape.inner;
    system.number_stride[0] = shape.inner, system.number_stride[1] = 1;
    system.lower = array_operand(m.lower, m.row_stride, m.outer_stride, m.inner_stride);
    system.diag = array_operand(m.diag, m.row_stride, m.outer_stride, m.inner_stride);
    system.upper = array_operand(m.upper, m.row_stride, m.outer_stride, m.inner_stride);
    system.rhs = system.x = array_operand(values, shape.row_stride, shape.outer_stride, shape.inner_stride);
    system.in_place = true;
    if (shape.outer > 1 && shape.inner > 1) return system;
    const int kept = shape.outer > 1 ? 0 : 1;
    system.levels = 1;
    system.extent[0] = system.extent[kept], system.extent[1] = 1;
    system.number_stride[0] = system.number_stride[kept], system.number_stride[1] = 0;
    for (Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x}) {
        operand->level_stride[0] = operand->level_stride[kept];
        operand->level_stride[1] = 0;
    }
    return system;
}

template <class T>
std::size_t factored_scratch(std::int64_t n) {
    return (static_cast<std::size_t>(line_buffer(n)) * sizeof(T) + 63) / 64 * 64;
}

template <class T>
std::size_t batch_scratch(const LineShape& shape, const LineMatrices<T>& m, int threads) {
    return (batch_bytes(system_of<T>(shape, m, nullptr), Algorithm::automatic, threads) + 63) / 64 * 64;
}

// Each thread takes a part of the lines.
template <class T>
LineFailure solve_factored(const LineShape& shape, const LineFactors<T>& factors, T* values, std::int8_t* status, const LineTeam& team) {
    const bool rows = shape.inner == 1 && shape.row_stride == 1;
    const std::int64_t split = rows || shape.outer >= team.threads ? shape.outer : shape.inner, parts = std::min<std::int64_t>(team.threads, split);
    const std::size_t each = factored_scratch<T>(shape.n);
    std::int64_t bad = 0;
    const auto part = [&](std::int64_t k) -> std::int64_t {
        T* const buffer = reinterpret_cast<T*>(static_cast<char*>(team.scratch) + static_cast<std::size_t>(k) * each);
        const std::int64_t from = split * k / parts, to = split * (k + 1) / parts;
        if (rows) return solve_rows(factors.for_all(), to - from, shape.outer_stride, values + from * shape.outer_stride, status ? status + from : nullptr, buffer);
        std::int64_t found = 0;
        const bool outer = split == shape.outer;
        const std::int64_t j0 = outer ? 0 : from, j1 = outer ? shape.inner : to;
        for (std::int64_t o = outer ? from : 0; o < (outer ? to : shape.outer); ++o)
            found += solve_columns(factors.for_all(), j1 - j0, shape.row_stride, values + o * shape.outer_stride + j0, status ? status + o * shape.inner + j0 : nullptr);
        return found;
    };
    if (parts == 1) bad = part(0);
    else {
#pragma omp parallel for schedule(static) num_threads(static_cast<int>(parts)) reduction(+ : bad)
        for (std::int64_t k = 0; k < parts; ++k) bad += part(k);
    }
    LineFailure failure;
    for (std::int64_t l = 0; l < shape.lines() && status; ++l) {
        if (status[l] && failure.first < 0) failure.first = l;
        status[l] = static_cast<std::int8_t>(status[l] ? Reason::not_finite : Reason::exact);
    }
    if (bad > 0) failure.failures = bad, failure.reason = Reason::not_finite;
    return failure;
}

template <class T>
LineFailure solve_plain(const LineShape& shape, const LineMatrices<T>& m, T* values, std::int8_t* status, const LineTeam& team) {
    if (m.factors) return solve_factored(shape, *m.factors, values, status, team);
    Outcome outcome;
    Launch launch{.threads = team.threads, .scratch = team.scratch, .scratch_bytes = team.bytes, .tolerance = unit_roundoff(dtype_of<T>), .status = status};
    solve_batch(system_of(shape, m, values), Algorithm::automatic, launch, outcome);
    LineFailure failure;
    failure.rescued = outcome.rescued;
    if (!outcome.ok()) failure.reason = outcome.reason, failure.failures = outcome.failures, failure.first = outcome.system, failure.row = outcome.row;
    return failure;
}

// The rings of a block, line after line: its own right-hand sides are kept until x has been checked.
template <class T>
class Rings {
public:
    Rings(const LineShape& shape, const LineMatrices<T>& m, T* values) : shape_(shape), m_(m), values_(values), kept_(static_cast<std::size_t>(shape.values())) {
        each([&](std::int64_t o, std::int64_t j, std::int64_t k) {
            for (std::int64_t i = 0; i < shape_.n; ++i) kept_[static_cast<std::size_t>(k * shape_.n + i)] = value(o, i, j);
        });
    }

    void finish(std::int8_t* status, LineFailure& failure) {
        each([&](std::int64_t o, std::int64_t j, std::int64_t k) {
            const bool failed_before = failure.failures > 0 && !ok(static_cast<Reason>(status[k]));
            join(o, j);
            if (holds(o, j, k)) return;
            const tridiagonal::reference::Verdict verdict = pivoted(o, j, k);
            status[k] = static_cast<std::int8_t>(verdict.reason);
            if (verdict.good()) {
                failure.failures -= failed_before, ++failure.rescued;
                return;
            }
            failure.failures += !failed_before;
            if (!failed_before || failure.first < 0) note(failure, k, verdict.reason, verdict.row);
        });
        if (failure.failures == 0) failure.reason = Reason::exact, failure.first = failure.row = -1;
    }

private:
    template <class Visit>
    void each(Visit visit) const {
        for (std::int64_t o = 0; o < shape_.outer; ++o)
            for (std::int64_t j = 0; j < shape_.inner; ++j) visit(o, j, o * shape_.inner + j);
    }

    static void note(LineFailure& failure, std::int64_t line, Reason reason, std::int64_t row) {
        if (failure.first >= 0 && failure.first <= line) return;
        failure.first = line, failure.reason = reason, failure.row = row;
    }

    T& value(std::int64_t o, std::int64_t i, std::int64_t j) const { return values_[o * shape_.outer_stride + i * shape_.row_stride + j * shape_.inner_stride]; }
    T gamma(std::int64_t o, std::int64_t j) const { return m_.gamma[m_.one_for_all() ? 0 : o * shape_.inner + j]; }

    void join(std::int64_t o, std::int64_t j) const {
        const std::int64_t last = shape_.n - 1;
        const T tail = m_.lower[m_.at(o, 0, j)] / gamma(o, j);
        const T share = (value(o, 0, j) + tail * value(o, last, j)) / (1 + m_.spike[m_.at(o, 0, j)] + tail * m_.spike[m_.at(o, last, j)]);
        for (std::int64_t i = 0; i <= last; ++i) value(o, i, j) -= share * m_.spike[m_.at(o, i, j)];
    }

    T diag(std::int64_t o, std::int64_t i, std::int64_t j) const {
        const T own = m_.diag[m_.at(o, i, j)];
        if (i == 0) return own + gamma(o, j);
        if (i == shape_.n - 1) return own + m_.lower[m_.at(o, 0, j)] * m_.upper[m_.at(o, i, j)] / gamma(o, j);
        return own;
    }

    bool holds(std::int64_t o, std::int64_t j, std::int64_t k) const {
        T residual = 0, matrix = 0, largest = 0;
        for (std::int64_t i = 0; i < shape_.n; ++i) {
            const T a = m_.lower[m_.at(o, i, j)], b = diag(o, i, j), c = m_.upper[m_.at(o, i, j)];
            const T before = value(o, i > 0 ? i - 1 : shape_.n - 1, j), after = value(o, i + 1 < shape_.n ? i + 1 : 0, j), own = value(o, i, j);
            const T off = std::abs(kept_[static_cast<std::size_t>(k * shape_.n + i)] - a * before - b * own - c * after);
            if (!(off <= residual)) residual = off;
            matrix = std::max(matrix, std::abs(a) + std::abs(b) + std::abs(c));
            largest = std::max(largest, std::abs(own));
        }
        const T allowed = static_cast<T>(accepted_roundoffs * unit_roundoff(dtype_of<T>)) * matrix * largest;
        return residual <= allowed && std::isfinite(allowed);
    }

    tridiagonal::reference::Verdict pivoted(std::int64_t o, std::int64_t j, std::int64_t k) const {
        const auto n = static_cast<std::size_t>(shape_.n);
        std::vector<T> lower(n), middle(n), upper(n), rhs(kept_.begin() + static_cast<std::ptrdiff_t>(k * shape_.n), kept_.begin() + static_cast<std::ptrdiff_t>((k + 1) * shape_.n));
        for (std::size_t i = 0; i < n; ++i) {
            const auto row = static_cast<std::int64_t>(i);
            lower[i] = m_.lower[m_.at(o, row, j)], middle[i] = diag(o, row, j), upper[i] = m_.upper[m_.at(o, row, j)];
        }
        System ring = system_of<T>({shape_.n}, {lower.data(), middle.data(), upper.data()}, rhs.data());
        ring.levels = 0;
        ring.periodic = true;
        ring.top_right = ring.lower, ring.bottom_left = array_operand(&upper.back(), 1, 0, 0);
        std::vector<std::byte> scratch(tridiagonal::reference::line_bytes(ring, Algorithm::lu) + 64);
        void* at = scratch.data();
        std::size_t bytes = scratch.size();
        std::align(64, bytes - 64, at, bytes);
        const auto result = tridiagonal::reference::solve_line<T>(ring, Algorithm::lu, unit_roundoff(dtype_of<T>), {at, bytes});
        if (result.verdict.good())
            for (std::int64_t i = 0; i < shape_.n; ++i) value(o, i, j) = rhs[static_cast<std::size_t>(i)];
        return result.verdict;
    }

    const LineShape& shape_;
    const LineMatrices<T>& m_;
    T* values_;
    std::vector<T> kept_;
};

}  // namespace

template <class T>
std::size_t line_scratch(const LineShape& shape, const LineMatrices<T>& matrices, int threads) {
    return matrices.factors ? factored_scratch<T>(shape.n) * static_cast<std::size_t>(threads) : batch_scratch(shape, matrices, threads);
}

template <class T>
void make_ring(LineMatrices<T>& m, const LineShape& lines, const LineTeam& team) {
    m.ring = true;
    m.dominated = rings_dominated(lines, m);
    open_rings(lines, m);
    // A spike that cannot be solved for leaves lines that do not hold, and these are pivoted.
    LineShape spikes = lines;
    spikes.row_stride = m.row_stride;
    if (lines.lines() > 1) spikes.outer_stride = m.outer_stride, spikes.inner_stride = m.inner_stride;
    solve_plain(spikes, m, m.spike, nullptr, team);
}

template <class T>
LineFailure solve_lines(const LineShape& shape, const LineMatrices<T>& matrices, T* values, std::int8_t* status, const LineTeam& team) {
    if (!matrices.ring) return solve_plain(shape, matrices, values, status, team);
    if (matrices.dominated) {
        LineFailure failure = solve_plain(shape, matrices, values, status, team);
        if (const std::int64_t lost = close_rings(shape, matrices, values, status); lost > 0) {
            failure.failures += lost, failure.reason = Reason::not_finite;
            std::int64_t first = 0;
            while (ok(static_cast<Reason>(status[first]))) ++first;
            if (first != failure.first) failure.first = first, failure.row = -1;
        }
        return failure;
    }
    Rings<T> rings(shape, matrices, values);
    LineFailure failure = solve_plain(shape, matrices, values, status, team);
    rings.finish(status, failure);
    return failure;
}

template std::size_t line_scratch<float>(const LineShape&, const LineMatrices<float>&, int);
template std::size_t line_scratch<double>(const LineShape&, const LineMatrices<double>&, int);
template void make_ring<float>(LineMatrices<float>&, const LineShape&, const LineTeam&);
template void make_ring<double>(LineMatrices<double>&, const LineShape&, const LineTeam&);
template LineFailure solve_lines<float>(const LineShape&, const LineMatrices<float>&, float*, std::int8_t*, const LineTeam&);
template LineFailure solve_lines<double>(const LineShape&, const LineMatrices<double>&, double*, std::int8_t*, const LineTeam&);

}  // namespace trifold::cpu
