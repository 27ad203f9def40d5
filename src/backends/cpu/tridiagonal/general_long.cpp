// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/general_long.hpp"

#include <algorithm>
#include <cmath>

#include "backends/cpu/tridiagonal/cell.hpp"
#include "backends/cpu/tridiagonal/pivot_check.hpp"
#include "backends/cpu/tridiagonal/values.hpp"
#include "base/aligned_buffer.hpp"
#include "base/round_up.hpp"
#include "families/tridiagonal/branch.hpp"
#include "problems/tridiagonal/array_operand.hpp"
#include "trifold/dtype.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::array_operand;
using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

// Accepted residual of a ring, in units of roundoff, against max|A| max|x|: what solves T leaves 2 to 10.
constexpr double accepted_roundoffs = 32;

// The same matrix and right-hand side, x to another place.
System plain(const System& line, std::int64_t rows, const Operand& rhs, const Operand& x) {
    System system = line;
    system.rows = rows;
    system.rhs = rhs, system.x = x;
    system.in_place = rhs.data == x.data;
    system.periodic = system.accumulate = false;
    return system;
}

Outcome solve_plain(const System& system, const Launch& launch) {
    Outcome outcome;
    for (const Algorithm algorithm : {Algorithm::certified, Algorithm::two_pass}) {
        if (tridiagonal::branch_refuses(cpu_ops(), system, algorithm)) continue;
        outcome = Outcome{};
        if (tridiagonal::run_branch(cpu_ops(), system, algorithm, launch, outcome)) return outcome;
    }
    Launch last = launch;
    const AlignedBuffer scratch(tridiagonal::branch_workspace(cpu_ops(), system, Algorithm::lu, 1));
    last.scratch = scratch.data(), last.scratch_bytes = scratch.bytes();
    outcome = Outcome{};
    tridiagonal::run_branch(cpu_ops(), system, Algorithm::lu, last, outcome);
    return outcome;
}

// A ring is solved without its last row, which may be cut into more chunks than with it.
std::size_t plain_bytes(const System& line, int threads) {
    std::size_t bytes = 0;
    for (const std::int64_t rows : {line.rows, line.rows - (line.periodic ? 1 : 0)})
        for (const Algorithm algorithm : {Algorithm::certified, Algorithm::two_pass})
            for (const bool in_place : {false, true}) {
                System system = plain(line, rows, line.rhs, line.x);
                system.in_place = in_place;
                if (!tridiagonal::branch_refuses(cpu_ops(), system, algorithm)) bytes = std::max(bytes, tridiagonal::branch_workspace(cpu_ops(), system, algorithm, threads));
            }
    return whole_lines(bytes);
}

template <class T>
void store(const System& line, const T* x, int threads) {
    T* const to = static_cast<T*>(line.x.data);
    const std::int64_t n = line.rows, stride = line.x.row_stride;
    const bool adds = line.accumulate;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t i = 0; i < n; ++i) to[i * stride] = adds ? to[i * stride] + x[i] : x[i];
}

// x of the ring from y (over which it is written) and z; false where some row does not hold.
template <class T>
bool join(const System& line, T* y, const T* z, int threads) {
    const Values<T> a(line.lower), b(line.diag), c(line.upper), r(line.rhs), right(line.top_right), left(line.bottom_left);
    const std::int64_t n = line.rows, m = n - 1;
    const T last = (r[m] - left[0] * y[0] - a[m] * y[m - 1]) / (b[m] + left[0] * z[0] + a[m] * z[m - 1]);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t i = 0; i < m; ++i) y[i] += z[i] * last;
    y[m] = last;
    T residual = 0, matrix = 0, largest = 0;
    bool finite = true;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : residual, matrix, largest) reduction(&& : finite)
    for (std::int64_t i = 0; i < n; ++i) {
        const T below = i > 0 ? a[i] : right[0], above = i < m ? c[i] : left[0];
        const T off = std::abs(r[i] - below * y[i > 0 ? i - 1 : m] - b[i] * y[i] - above * y[i < m ? i + 1 : 0]);
        finite = finite && std::isfinite(off);
        residual = std::max(residual, off);
        matrix = std::max(matrix, std::abs(below) + std::abs(b[i]) + std::abs(above));
        largest = std::max(largest, std::abs(y[i]));
    }
    return finite && residual <= static_cast<T>(accepted_roundoffs * unit_roundoff(dtype_of<T>)) * matrix * largest;
}

template <class T>
Outcome solve_typed(const System& line, const Launch& launch) {
    const std::int64_t n = line.rows;
    const std::size_t vector = whole_lines(static_cast<std::size_t>(n) * sizeof(T));
    T *const y = static_cast<T*>(launch.scratch), *const z = reinterpret_cast<T*>(static_cast<char*>(launch.scratch) + vector);
    Launch rest = launch;
    rest.status = nullptr;
    if (!line.periodic) {
        if (!line.accumulate) return solve_plain(line, rest);
        rest.scratch = z, rest.scratch_bytes = launch.scratch_bytes - vector;
        const Outcome outcome = solve_plain(plain(line, n, line.rhs, array_operand(y)), rest);
        if (outcome.ok()) store(line, y, launch.threads);
        return outcome;
    }
    rest.scratch = static_cast<char*>(launch.scratch) + 2 * vector, rest.scratch_bytes = launch.scratch_bytes - 2 * vector;
    Outcome outcome = solve_plain(plain(line, n - 1, line.rhs, array_operand(y)), rest);
    if (outcome.ok()) {
        const Values<T> above(line.upper), right(line.top_right);
        std::fill_n(z, n - 1, T(0));
        z[0] = -right[0], z[n - 2] -= above[n - 2];
        // A column of zeros has no scale to be measured against.
        const bool open = z[0] == T(0) && z[n - 2] == T(0);
        if (open || solve_plain(plain(line, n - 1, array_operand(z), array_operand(z)), rest).ok()) {
            if (join(line, y, z, launch.threads)) {
                store(line, y, launch.threads);
                return outcome;
            }
        }
    }
    outcome = solve_pivoted<T>(line);
    outcome.tried_other = true;
    outcome.rescued = outcome.ok();
    return outcome;
}

}  // namespace

bool general_long_takes(const System& line) {
    if (line.rows <= least_general_long) return false;
    for (const Operand* operand : {&line.lower, &line.diag, &line.upper, &line.rhs, &line.x})
        if (operand->kind == Operand::Kind::generator || (operand->kind == Operand::Kind::view && operand->row_stride != 1)) return false;
    return true;
}

std::size_t general_long_bytes(const System& line, int threads) {
    const std::size_t vector = whole_lines(static_cast<std::size_t>(line.rows) * size_of(line.dtype));
    return plain_bytes(line, threads) + (line.periodic ? 2 : line.accumulate ? 1 : 0) * vector;
}

Outcome solve_general_long(const System& line, const Launch& launch) {
    for (const Operand* operand : {&line.lower, &line.diag, &line.upper})
        if (operand->kind == Operand::Kind::generator) return line.dtype == DType::f32 ? solve_pivoted<float>(line) : solve_pivoted<double>(line);
    return line.dtype == DType::f32 ? solve_typed<float>(line, launch) : solve_typed<double>(line, launch);
}

}  // namespace trifold::cpu
