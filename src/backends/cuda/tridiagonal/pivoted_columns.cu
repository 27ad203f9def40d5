// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/pivoted_columns.hpp"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/block/residency.hpp"
#include "backends/cuda/tridiagonal/pivoted_columns.cuh"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

// As many blocks as registers allow in single precision, half as many in double; in place all rows of U have to be there. (Measured.)
template <class T>
constexpr int usual_bytes = sizeof(T) == 8 ? 112 * 1024 : 55 * 1024;

constexpr std::int64_t short_rows = 64;  // fewer are asked for at a time (measured)

template <class T, int Width, int ring>
bool fits(const System& system, int bytes) {
    PivotedColumns<T> cut{PivotedJob<T>(system, {}, {}, nullptr, 1)};
    return cut_pivoted_columns<Width, ring>(cut, system.in_place, bytes - PivotedQueue<T, Width>::shared_bytes);
}

// Long columns, whose halves have so many parts that what these begin with takes as much room as a part, have a multiprocessor alone.
template <class T>
int bytes_for(const System& system) {
    return system.in_place || !fits<T, 32, 16>(system, usual_bytes<T>) ? most_shared_bytes : usual_bytes<T>;
}

template <class T, int Width, int ring, int blocks>
void launch_columns(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, std::int64_t slots) {
    PivotedColumns<T> cut{PivotedJob<T>(system, launch, marks, marked, slots)};
    if (!cut_pivoted_columns<Width, ring>(cut, system.in_place, bytes_for<T>(system))) return;
    auto* const kernel = pivoted_columns_kernel<T, Width, ring, blocks>;
    static PerDevice prepared;
    prepared.once([&] { allow_shared_memory(kernel); });
    static Residency residency;
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(Width);
    config.dynamicSmemBytes = static_cast<std::size_t>(cut.shared_bytes);
    const auto most = static_cast<std::int64_t>(residency(kernel, config, 1)), all = system.systems();
    // Every block should have something to do; what is found in a window is solved together.
    cut.window = static_cast<int>(std::clamp<std::int64_t>((all / most + 31) / 32 * 32, 32, PivotedQueue<T, Width>::most_window));
    cut.least_marked = marks ? least_marked_by_columns(system) : 1;
    const std::int64_t each = marks ? cut.window : Width / 2;
    const dim3 grid(static_cast<unsigned>(std::min({(all + each - 1) / each, most, slots})));
    launch_after(kernel, grid, Width, static_cast<std::size_t>(cut.shared_bytes), launch.stream, cut);
}

template <class T>
void launch_columns(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, std::int64_t slots) {
    if (system.rows <= short_rows) launch_columns<T, 64, 8, sizeof(T) == 8 ? 4 : 6>(system, launch, marks, marked, slots);
    else if (fits<T, 64, 16>(system, bytes_for<T>(system))) launch_columns<T, 64, 16, 4>(system, launch, marks, marked, slots);
    else launch_columns<T, 32, 16, 8>(system, launch, marks, marked, slots);
}

// Devices of compute capability 9.0 and more have it.
bool has_room() {
    static OfDevice known;
    return known([](int device) {
        int most = 0;
        return cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess && most >= most_shared_bytes;
    }) != 0;
}

constexpr std::int64_t least_rows = 4, most_rows = 8192, once = 128, held = 2048;

// A lane takes some 600 cycles for a row of its half, there, there again and back, whatever its neighbours do (by the time of 10 000 rows), so that long columns have to be many: a cluster's blocks share them otherwise.
// (Limits: measured.)
std::int64_t least_systems_of(const System& system) {
    constexpr std::int64_t least = 1 << 10, of_few_rows = 1 << 11, of_long = 3 << 10;
    return system.rows <= once ? of_few_rows : system.rows <= held ? least : of_long;
}

// The last level is that of lanes: other levels' systems may lie side by side too, but are not looked for.
bool takes(const System& system) {
    if (system.rows < least_rows || system.rows > most_rows || system.systems() < least_systems_of(system)) return false;
    const std::int64_t apart = std::llabs(system.rhs.level_stride[system.levels - 1]);
    if (apart == 0 || apart >= std::llabs(system.rhs.row_stride)) return false;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x})
        if (operand->kind != Operand::Kind::view) return false;
    if (!has_room()) return false;
    return system.dtype == DType::f32 ? fits<float, 32, 16>(system, most_shared_bytes) : fits<double, 32, 16>(system, most_shared_bytes);
}

}  // namespace

unsigned long long least_marked_by_columns(const System& system) {
    // Few that are scattered: each is read in pieces of 32 bytes, more than once where they are long. A launch more is little beside large batches only.
    constexpr std::int64_t large = std::int64_t{1} << 22, least = 512;
    if (!takes(system)) return 0;
    // Of one matrix all are marked, or only those whose right-hand sides are not finite: no launch for few.
    if (system.rows <= once || (system.rows <= held && have_one_matrix(system))) return 1;
    return system.rows * system.systems() >= large ? static_cast<unsigned long long>(std::max(system.systems() / 4, least)) : 0;
}

bool solve_pivoted_columns(const System& system, const BatchLaunch& launch, const Marks& marks, const unsigned long long* marked, std::int64_t slots) {
    if (slots < 1 || !takes(system)) return false;
    if (system.dtype == DType::f32) launch_columns<float>(system, launch, marks, marked, slots);
    else launch_columns<double>(system, launch, marks, marked, slots);
    return true;
}

}  // namespace trifold::cuda
