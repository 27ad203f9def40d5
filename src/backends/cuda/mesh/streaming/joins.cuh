// SPDX-License-Identifier: BSD-3-Clause
// Lines along y or z in segments of C::ahead rows, eliminated forwards by rows.cuh: the ends of segments become the solution of each segment's last row.
//
//   gamma[s] = inverse (y[last of s] - coupling z[s + 1]) - lower gamma[s - 1],  x[last of s] = gamma[s] - upper x[last of s + 1]
//
// Arrays: behind the values the ends, [mesh][segment][row across][x], rows in pieces as the values': z of every segment but the first (of rings, of all), overwritten by x; and behind these y of every last row, which the values lack: side by side, where rows of the mesh
//   lie far apart. Of rings s is stored in place of the first segment's last row, and stands before its first one (chip.cuh).
// Who does what: a thread has a line, or a few side by side where they have few segments, so that all threads ask for all they want at once.
// Words per point: (2 read + 1 written) / C::ahead.
// Numerics: chip.cuh; safe or refused by the host (line_table.hpp). A line that is not finite is so in a last row, and reported here.
#pragma once

#include "backends/cuda/mesh/points.cuh"
#include "backends/cuda/mesh/streaming/chip.cuh"
#include "backends/cuda/mesh/values.cuh"

namespace trifold::cuda::streaming {

/// C: real, nx, ny, nz, axis (of the lines: 1, 2), ahead, each (lines of a thread), piece, line (number in its sweep), ring. `table`: by segment coupling, lower, inverse, upper; then how rings are closed.
template <class C>
__device__ __forceinline__ void joins_pass(const MeshArguments<typename C::real>& a, const typename C::real* table) {
    using T = typename C::real;
    constexpr int H = C::ahead, S = (C::axis == 1 ? C::ny : C::nz) / H, each = C::each;
    using Lines = Values<T, each>;
    constexpr std::int64_t plane = std::int64_t{C::nx} * (C::axis == 1 ? C::nz : C::ny), points = std::int64_t{C::nx} * C::ny * C::nz;
    constexpr int in_table = (C::ring ? 4 + closing_words : 4) * S;
    __shared__ T factors[in_table];
    let_next_begin();
    for (int i = static_cast<int>(threadIdx.x); i < in_table; i += static_cast<int>(blockDim.x)) factors[i] = table[i];
    __syncthreads();
    await_previous();
    const std::int64_t lines = plane * a.meshes, at = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * each;
    if (at >= lines) return;
    const std::int64_t mesh = a.first_mesh + at / plane;
    const int in_plane = static_cast<int>(at % plane);
    T* const ends = a.values + a.extent[3] * points + mesh * (S * plane) + in_plane;
    T* const last = ends + a.extent[3] * (S * plane);
    Lines y[S], first[S], first_of_all;
    if constexpr (C::ring) first_of_all = *reinterpret_cast<const Lines*>(ends);
#pragma unroll
    for (int s = 0; s < S; ++s) {
        y[s] = *reinterpret_cast<const Lines*>(last + s * plane);
        if (s + 1 < S) first[s] = *reinterpret_cast<const Lines*>(ends + (s + 1) * plane);
        else first[s] = {};
    }
    if (!runs(a.state, a.sweep)) return;
    bool bad[each] = {};
#pragma unroll
    for (int k = 0; k < each; ++k) bad[k] = !join_in_registers<S>(factors, [&](int s) -> T& { return y[s].at[k]; }, [&](int s) { return first[s].at[k]; });
    if constexpr (C::ring) {
#pragma unroll
        for (int k = 0; k < each; ++k) {
            const T s = first_of_all.at[k] = close_ring<S, S>(factors + 4 * S, first_of_all.at[k], [&](int j) -> T& { return y[j].at[k]; });
#pragma unroll
            for (int j = 0; j < S; ++j) bad[k] = bad[k] || !finite(y[j].at[k], s);
        }
        *reinterpret_cast<Lines*>(last) = first_of_all;
    }
#pragma unroll
    for (int s = 0; s < S; ++s) *reinterpret_cast<Lines*>(ends + s * plane) = y[s];
    auto& failed = *reinterpret_cast<volatile unsigned char*>(&a.failed[mesh]);
    constexpr auto own = static_cast<unsigned char>(C::line + 1);
    for (int k = 0; k < each; ++k)
        if (bad[k] && (failed == 0 || failed == own)) {  // and not in lines along x
            failed = own;
            const int one = in_plane + k, of_piece = (C::axis == 1 ? C::nz : C::ny) * C::piece, across = one % of_piece / C::piece, x = one / of_piece * C::piece + one % C::piece;
            report_line(a.state, a.sweep, MeshState::key(C::line, mesh * points + across * (C::axis == 1 ? std::int64_t{C::nx} * C::ny : C::nx) + x, false, C::not_finite));
        }
}

}  // namespace trifold::cuda::streaming
