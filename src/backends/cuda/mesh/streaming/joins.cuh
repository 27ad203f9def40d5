// SPDX-License-Identifier: BSD-3-Clause
// Lines along y in segments of C::ahead rows, eliminated forwards by rows.cuh: the ends of segments become the solution of each segment's last row.
//
//   gamma[s] = inverse (y[last of s] - coupling z[s + 1]) - lower gamma[s - 1],  x[last of s] = gamma[s] - upper x[last of s + 1]
//
// Arrays: values (read), and behind them the ends, [mesh][segment][z][x]: z of every segment but the first, overwritten by x.
// Who does what: a thread has a line.
// Words per point: (2 read + 1 written) / C::ahead.
// Numerics: chip.cuh; safe or refused by the host (line_table.hpp). A line that is not finite is so in a last row, and reported here.
#pragma once

#include "backends/cuda/mesh/points.cuh"
#include "backends/cuda/mesh/streaming/chip.cuh"

namespace trifold::cuda::streaming {

/// C: real, nx, ny, nz, ahead, line (number in its sweep). `table`: by segment coupling, lower, inverse, upper.
template <class C>
__device__ __forceinline__ void joins_pass(const MeshArguments<typename C::real>& a, const typename C::real* table) {
    using T = typename C::real;
    constexpr int H = C::ahead, S = C::ny / H;
    constexpr std::int64_t plane = std::int64_t{C::nx} * C::nz, points = plane * C::ny;
    let_next_begin();
    await_previous();
    if (!runs(a.state, a.sweep)) return;
    const std::int64_t lines = plane * a.extent[3], at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at >= lines) return;
    const std::int64_t mesh = at / plane;
    const int in_plane = static_cast<int>(at % plane), z = in_plane / C::nx, x = in_plane % C::nx;
    const T* const last = a.values + mesh * points + std::int64_t{z} * (C::nx * C::ny) + (H - 1) * C::nx + x;
    T* const ends = a.values + a.extent[3] * points + mesh * (S * plane) + in_plane;
    T y[S], first[S];
#pragma unroll
    for (int s = 0; s < S; ++s) y[s] = last[s * std::int64_t{H * C::nx}], first[s] = s + 1 < S ? ends[(s + 1) * plane] : T(0);
    T gamma = 0, next = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) {
        const T* const j = table + 4 * s;
        y[s] = gamma = multiply_add(-j[1], gamma, multiply_add(-j[0], first[s], y[s]) * j[2]);
    }
    bool bad = false;
#pragma unroll
    for (int s = S - 1; s >= 0; --s) {
        next = multiply_add(-table[4 * s + 3], next, y[s]);
        ends[s * plane] = next;
        bad = bad || !finite(next, T(0));
    }
    auto& failed = *reinterpret_cast<volatile unsigned char*>(&a.failed[mesh]);
    constexpr auto own = static_cast<unsigned char>(C::line + 1);
    if (bad && (failed == 0 || failed == own)) {  // and not in lines along x
        failed = own;
        report_line(a.state, a.sweep, MeshState::key(C::line, mesh * points + std::int64_t{z} * (C::nx * C::ny) + x, false, C::not_finite));
    }
}

}  // namespace trifold::cuda::streaming
