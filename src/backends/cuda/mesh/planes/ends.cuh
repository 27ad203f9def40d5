// SPDX-License-Identifier: BSD-3-Clause
// Between two passes of planes.cuh: from the ends of segments along z their first and last unknowns; and, once, what a failure leaves.
//
//   gamma[s] = inverse (y[last of s] - coupling z[s + 1]) - lower gamma[s - 1],  x[last of s] = gamma[s] - upper x[last of s + 1],  x[first of s] = z[s] - alpha x[last of s - 1] - beta x[last of s]
//
// Who does what: a thread has `each` lines side by side, so that all threads ask for all they want at once.
// Words per point: (2 read + 2 written) / H.
#pragma once

#include "backends/cuda/mesh/planes/planes.cuh"

namespace trifold::cuda::planes {

/// C as planes.cuh has it, and each. `up`: lines have been eliminated from the first plane on. a.sweep is the step's.
template <class C>
__device__ __forceinline__ void ends_pass(const MeshArguments<typename C::real>& a, const Pass<typename C::real>& pass, typename C::real* solved) {
    using T = typename C::real;
    constexpr int S = C::nz / C::H, each = C::each;
    constexpr std::int64_t plane = C::nx * C::ny;
    using Lines = Values<T, each>;
    constexpr Layout<T> layout{C::nx, C::ny, C::S, C::R, C::R_y, C::H, S, C::K};
    constexpr int joins_at = layout.tables() - layout.joins_z();
    __shared__ T factors[6 * S];
    streaming::let_next_begin();
    for (int i = static_cast<int>(threadIdx.x); i < 6 * S; i += static_cast<int>(blockDim.x)) factors[i] = pass.tables[joins_at + i];
    __syncthreads();
    streaming::await_previous();
    const std::int64_t at = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * each;
    if (at >= plane * a.meshes) return;
    const std::int64_t mesh = a.first_mesh + at / plane;
    const auto in_plane = static_cast<int>(at % plane);
    const auto place = [&](int s, int last) { return ((mesh * S + (pass.up ? s : S - 1 - s)) * 2 + (pass.up ? last : 1 - last)) * plane + in_plane; };
    Lines y[S], z[S];
#pragma unroll
    for (int s = 0; s < S; ++s) y[s] = *reinterpret_cast<const Lines*>(pass.ends + place(s, 1)), z[s] = *reinterpret_cast<const Lines*>(pass.ends + place(s, 0));
    if (!runs(a.state, a.sweep)) return;
    bool bad[each] = {};
#pragma unroll
    for (int k = 0; k < each; ++k) {
        bad[k] = !streaming::join_in_registers<S>(factors, [&](int s) -> T& { return y[s].at[k]; }, [&](int s) { return s + 1 < S ? z[s + 1 < S ? s + 1 : 0].at[k] : T(0); });
#pragma unroll
        for (int s = 0; s < S; ++s) z[s].at[k] = multiply_add(-factors[4 * S + 2 * s + 1], y[s].at[k], multiply_add(-factors[4 * S + 2 * s], s ? y[s ? s - 1 : 0].at[k] : T(0), z[s].at[k]));
    }
#pragma unroll
    for (int s = 0; s < S; ++s) *reinterpret_cast<Lines*>(solved + place(s, 1)) = y[s], *reinterpret_cast<Lines*>(solved + place(s, 0)) = z[s];
    auto& failed = *reinterpret_cast<volatile unsigned char*>(&pass.failed[mesh]);
    constexpr auto own = static_cast<unsigned char>(C::line_z + 1);
    for (int k = 0; k < each; ++k)
        if (bad[k] && (failed == 0 || failed == own)) {  // and not in lines along x
            failed = own;
            report_line(a.state, a.sweep, MeshState::key(C::line_z, mesh * (plane * C::nz) + in_plane + k, false, C::not_finite));
        }
}

/// Once a line has failed, targets are those of its step, and of meshes with such a line those before it: where these lie beside the caller's field they are copied. `passes`: steps of the run,
/// the first of which is `first`; behind an odd number of them the field lies in `beside`, behind the last one never. failed: of even and of odd steps.
template <class C>
__device__ __forceinline__ void settle_pass(const MeshArguments<typename C::real>& a, const typename C::real* beside, const unsigned char* failed, std::int64_t first, std::int64_t passes) {
    using T = typename C::real;
    const unsigned long long at = a.state->failed_at;
    if (at == MeshState::none) return;
    constexpr std::int64_t points = std::int64_t{C::nx} * C::ny * C::nz;
    for (std::int64_t mesh = blockIdx.x; mesh < a.extent[3]; mesh += gridDim.x) {
        const std::int64_t done = static_cast<std::int64_t>(at) - first + (failed[static_cast<std::int64_t>(at & 1) * a.extent[3] + mesh] ? 0 : 1);
        if (done % 2 == 0 || done >= passes) continue;
        T* const to = a.field[C::target].data + mesh * C::stride(C::target, 3);
        for (std::int64_t i = threadIdx.x; i < points; i += blockDim.x) to[i] = beside[mesh * points + i];
    }
}

}  // namespace trifold::cuda::planes
