// SPDX-License-Identifier: BSD-3-Clause
// Long systems in windows from the host: how they are cut, what is launched. Nothing waits; the device finds out what
// is needed.
#include "backends/cuda/tridiagonal/device/windows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/device/overlap.cuh"
#include "backends/cuda/tridiagonal/device/two_pass.hpp"
#include "backends/cuda/tridiagonal/device/windows_kernel.cuh"

namespace trifold::cuda {
namespace {

using namespace windows;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr int most_blocks = 170;
template <class T>
inline constexpr int warps_of = Shape<T>::warps + helpers + others;

// Accepted residual of a row in units of roundoff, against (|a| + |b| + |c|) max|x| nearby: elimination leaves 1 to 10.
constexpr double accepted_roundoffs = 16;
// What may be left of an unknown that is neglected, as log2: at least this much less than the tolerance.
constexpr double neglect_margin = 4;

/// Rows from which on windows with wide halos are worth their meetings.
template <class T>
inline constexpr std::int64_t least_wide = sizeof(T) == 8 ? 1 << 22 : 1 << 24;

std::size_t up(std::size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

bool fits_on_chip() {
    static OfDevice known;
    return known([](int device) {
        int major = 0, shared = 0, cooperative = 0;
        return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
               cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
               cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device) == cudaSuccess &&
               major >= 9 && shared >= most_shared_bytes && cooperative &&
               multiprocessors_of_current() > centre + 1;  // a window waits for no more than the next one of its own block
    }) != 0;
}

bool is_plain(const System& system) {
    const auto vectors = [&](const Operand& operand) {
        return operand.kind == Operand::Kind::view && operand.row_stride == 1;
    };
    return system.levels <= 1 && vectors(system.lower) && vectors(system.diag) && vectors(system.upper) &&
           vectors(system.rhs) && vectors(system.x);
}

bool is_even(const System& system) {
    const auto begins = [&](const Operand& operand) {
        return reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0 &&
               (system.levels == 0 ||
                operand.level_stride[0] * static_cast<std::int64_t>(size_of(system.dtype)) % 16 == 0);
    };
    return begins(system.lower) && begins(system.diag) && begins(system.upper) && begins(system.rhs);
}

template <class T>
std::int64_t windows_of_one(const System& system) {
    return (system.rows + SharedOf<T>::rows - 1) / SharedOf<T>::rows;
}

/// Windows of one system, of either kind.
template <class T>
std::size_t most_windows(const System& system) {
    return static_cast<std::size_t>(system.rows / std::min(WideMemory<T>::kept, SharedOf<T>::rows) + 1);
}

/// Scratch: what windows, systems, blocks and warps say of themselves; then that of two_pass, in which rhs that x has been stored over lies where passes that pivot keep x later.
template <class T>
struct Parts {
    std::size_t interfaces = 0, joined, ends, chain, groups, seams, stored, state, largest, maxima, rest, kept, all;

    explicit Parts(const System& system) {
        const auto systems = static_cast<std::size_t>(system.systems()),
                   windows = systems * static_cast<std::size_t>(windows_of_one<T>(system));
        joined = up(windows * sizeof(Interface<T>));
        ends = joined + up(windows * SharedOf<T>::parts_width * sizeof(Relation<T>));
        chain = ends + up(windows * sizeof(T));
        groups = chain + up(3 * windows * sizeof(T));
        seams = groups + up(most_blocks * warps_of<T> * sizeof(Interface<T>));
        stored = seams + up((system.levels == 0 ? most_windows<T>(system) : windows) * sizeof(Seam<T>));
        state = stored + up(windows);
        largest = state + up(systems * sizeof(unsigned));
        maxima = largest + up(systems * sizeof(unsigned));
        rest = maxima + up(most_blocks * sizeof(Maxima));
        all = rest + two_pass_scratch(system), kept = all;
        if (!system.in_place) return;
        kept = rest + two_pass_kept_at(system);
        all = std::max(all, kept + windows * SharedOf<T>::elements * sizeof(T));
    }
};

template <class T>
void solve(const System& system, const BatchLaunch& launch, const WindowsOptions& options) {
    using Shared = SharedOf<T>;
    constexpr std::size_t most_bytes = std::max(sizeof(Shared), sizeof(WideMemory<T>));
    static_assert(most_bytes <= most_shared_bytes && warps_of<T> >= WideShape<T>::warps + 3);
    static_assert(most_blocks * warps_of<T> <= 2 * lanes * lanes);  // solve_chain joins them twice
    const Parts<T> parts(system);
    if (launch.scratch_bytes < parts.all) return;
    auto* const scratch = static_cast<unsigned char*>(launch.scratch);
    const auto at = [&]<class U>(U*& pointer, std::size_t offset) { pointer = reinterpret_cast<U*>(scratch + offset); };

    const double u = std::numeric_limits<T>::epsilon() / 2, tolerance = std::max(launch.tolerance, u);
    Job<T> job{
        .levels = Levels(system),
        .input = {Source<T>(system.lower), Source<T>(system.diag), Source<T>(system.upper), Source<T>(system.rhs)},
        .x = Source<T>(system.x)};
    job.rows = system.rows;
    job.per_system = static_cast<int>(windows_of_one<T>(system)),
    job.windows = static_cast<int>(system.systems() * job.per_system);
    job.weak = static_cast<int>(log_unit * (std::log2(tolerance) - neglect_margin));
    job.accept = static_cast<T>(std::max(accepted_roundoffs * u, tolerance)), job.roundoff = static_cast<T>(u);
    job.in_place = system.in_place, job.second = options.fall_back, job.after_others = options.after_others, job.blocks_before = options.blocks_before;
    job.negligible = static_cast<T>(std::ldexp(tolerance, -static_cast<int>(neglect_margin)));
    job.plain = is_plain(system), job.even = job.plain && is_even(system);
    job.rows_of_half = options.rows_of_half;
    if (options.halos) job.halos = *static_cast<const certified::Verdict<T>*>(options.halos);
    at(job.interfaces, parts.interfaces), at(job.joined, parts.joined), at(job.ends, parts.ends);
    at(job.chain, parts.chain), at(job.groups, parts.groups);
    at(job.seams, parts.seams), at(job.stored, parts.stored), at(job.state, parts.state),
        at(job.largest, parts.largest), at(job.maxima, parts.maxima);
    if (system.in_place) at(job.kept, parts.kept);
    job.outcome = launch.outcome, job.status = launch.status;

    constexpr auto kernel_of = [](bool wide) { return wide ? window_kernel<T, Shape<T>::rows, Shape<T>::warps, true> : window_kernel<T, Shape<T>::rows, Shape<T>::warps, false>; };
    static PerDevice prepared;
    prepared.once([&] {
        for (const bool wide : {false, true}) allow_shared_memory(kernel_of(wide), static_cast<int>(wide ? most_bytes : sizeof(Shared)));
    });
    const bool wide =
        options.rows_of_half > 0 && job.even && system.levels == 0 && !system.in_place && system.rows >= least_wide<T> && reinterpret_cast<std::uintptr_t>(system.x.data) % 16 == 0;
    // Blocks wait for each other, so all have to be there.
    cudaLaunchConfig_t config = {};
    int blocks = std::min({job.windows, multiprocessors_of_current(), most_blocks});
    // More of them share what needs pivots.
    if (system.systems() == 1 && job.second) blocks = std::max(blocks, static_cast<int>(std::min({system.rows / two_pass::Spread::enough, std::int64_t{multiprocessors_of_current()}, std::int64_t{most_blocks}})));
    // Windows at the ends of systems are slower to bring: every block should have its share of them.
    if (job.windows > blocks && job.per_system > 1 && blocks % job.per_system == 0 && blocks - 1 > centre + 1) --blocks;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(lanes * warps_of<T>);
    config.dynamicSmemBytes = wide ? most_bytes : sizeof(Shared);
    config.stream = launch.stream;
    cudaLaunchAttribute attributes[2];
    config.attrs = attributes, config.numAttrs = together_after(attributes);
    BatchLaunch rest = launch;
    rest.scratch = scratch + parts.rest, rest.scratch_bytes = launch.scratch_bytes - parts.rest;
    enqueue_kernel(config, kernel_of(wide), job, left_to_pivots_of<T>(system, rest, job.state, blocks));
}

}  // namespace

const char* windows_refuse(const System& system) {
    if (system.rhs.kind != Operand::Kind::view || system.x.row_stride == 0)
        return "the right-hand side is not an array";
    for (int d = 0; d < system.levels; ++d)
        if (system.x.level_stride[d] == 0) return "systems share their solution";
    const std::int64_t windows =
        system.dtype == DType::f32 ? windows_of_one<float>(system) : windows_of_one<double>(system);
    if (windows > (std::int64_t{1} << 30) / system.systems()) return "there are too many rows";
    if (two_pass_refuses(system)) return two_pass_refuses(system);
    return fits_on_chip() ? nullptr
                          : "the kernels for long systems need compute capability 9.0, 227 KiB of shared memory and 17 "
                            "multiprocessors";
}

std::size_t windows_scratch(const System& system) { return system.dtype == DType::f32 ? Parts<float>(system).all : Parts<double>(system).all; }

std::size_t windows_kept_at(const System& system) { return system.dtype == DType::f32 ? Parts<float>(system).kept : Parts<double>(system).kept; }

void solve_windows(const System& system, const BatchLaunch& launch, const WindowsOptions& options) {
    if (system.dtype == DType::f32)
        solve<float>(system, launch, options);
    else
        solve<double>(system, launch, options);
}

}  // namespace trifold::cuda
