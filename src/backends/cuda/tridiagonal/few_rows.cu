// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/few_rows.hpp"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/runtime/shared_memory.hpp"
#include "backends/cuda/tridiagonal/few_marked.cuh"
#include "backends/cuda/tridiagonal/few_rows.cuh"
#include "trifold/tridiagonal.hpp"

namespace trifold::cuda {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

// Rows of a system side by side, and those of the next one not far behind.
bool packed(const Operand& operand, std::int64_t rows, std::int64_t times) {
    return operand.kind == Operand::Kind::view && operand.row_stride == 1 && operand.level_stride[0] >= rows && operand.level_stride[0] <= times * rows;
}

/// All operands are, with gaps of at most so many times the rows.
bool all_packed(const System& system, std::int64_t times) {
    if (system.levels != 1 || system.rows < 2) return false;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x})
        if (!packed(*operand, system.rows, times)) return false;
    return true;
}

/// Neighbouring systems lie side by side, in pieces of a kilobyte and more that begin with whole vectors.
bool lies_in_columns(const System& system) {
    if (system.levels < 1) return false;
    const int last = system.levels - 1;
    const auto size = static_cast<std::int64_t>(size_of(system.dtype));
    if (system.extent[last] * size < 1024) return false;
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x})
        if (operand->kind == Operand::Kind::view && operand->level_stride[last] != 0 && (operand->level_stride[last] != 1 || operand->row_stride * size % 16 != 0)) return false;
    return true;
}

/// A system's own rows lie closer to each other than those of its neighbour.
bool along_rows(const System& system) { return system.levels < 1 || std::llabs(system.rhs.row_stride) <= std::llabs(system.rhs.level_stride[system.levels - 1]); }

/// A part of the matrix that all systems have, or a number: others do not move it again.
bool shares_something(const System& system) {
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper}) {
        if (operand->kind != Operand::Kind::view) return true;
        for (int l = 0; l < system.levels; ++l)
            if (system.extent[l] > 1 && operand->level_stride[l] == 0) return true;
    }
    return false;
}

template <class T, int N, bool Exact, bool Along>
void launch(const System& system, const BatchLaunch& to) {
    // Every block says that it knows of the reset. Where they are many a launch for that is little.
    constexpr std::int64_t most_entering = 2048, each = few_rows_threads * (Along ? 1 : few_rows_each(N));
    constexpr int shared_of_row = 4 * few_rows_threads * static_cast<int>(sizeof(T)), branch = static_cast<int>(tridiagonal::Algorithm::lu);
    FewRowsJob<T> job(system, to);
    const std::int64_t blocks = (system.systems() + each - 1) / each;
    auto* const kernel = few_rows_kernel<T, N, Exact, Along>;
    const auto shared = static_cast<std::size_t>(Along ? shared_of_row * few_rows_pitch(job.rows) : 0);
    if constexpr (Along && shared_of_row * few_rows_pitch(N) > 48 * 1024) {
        static PerDevice prepared;
        prepared.once([&] { allow_shared_memory(kernel, shared_of_row * few_rows_pitch(N)); });
    }
    if (blocks > most_entering) {
        reset_outcome(to.outcome, system.rows, system.systems(), branch, to.stream);
        return launch_after(kernel, dim3(static_cast<unsigned>(blocks)), few_rows_threads, shared, to.stream, job);
    }
    job.opening = {to.outcome, system.rows, system.systems(), branch};
    enqueue_kernel(kernel, dim3(static_cast<unsigned>(blocks)), few_rows_threads, shared, to.stream, job);
}

template <class T, int N, bool Exact = true>
void launch_either(const System& system, const BatchLaunch& to) {
    if constexpr (N > 1)
        if (all_packed(system, 2)) return launch<T, N, Exact, true>(system, to);
    launch<T, N, Exact, false>(system, to);
}

template <class T>
void launch_of(const System& system, const BatchLaunch& to) {
    switch (system.rows) {
        case 1: return launch_either<T, 1>(system, to);
        case 2: return launch_either<T, 2>(system, to);
        case 3: return launch_either<T, 3>(system, to);
        case 4: return launch_either<T, 4>(system, to);
        case 5: return launch_either<T, 5>(system, to);
        case 6: return launch_either<T, 6>(system, to);
        case 7: return launch_either<T, 7>(system, to);
        case 8: return launch_either<T, 8>(system, to);
        case 16:
            if (!all_packed(system, 2)) return launch<T, 16, true, false>(system, to);
            [[fallthrough]];
        default: return system.rows <= 12 ? launch_either<T, 12, false>(system, to) : launch_either<T, 16, false>(system, to);
    }
}

// Of compute capability 8.0 and more.
bool copies_without_registers() {
    static OfDevice known;
    return known([](int device) {
        int major = 0;
        return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 8;
    }) != 0;
}

template <class T, int N>
void launch_marked(const System& system, const BatchLaunch& to, const Marks& marks, const unsigned long long* marked) {
    const std::int64_t blocks = std::min<std::int64_t>((system.systems() + few_rows_threads - 1) / few_rows_threads, 16 * multiprocessors_of_current());
    launch_after(few_marked_kernel<T, N>, dim3(static_cast<unsigned>(blocks)), few_rows_threads, 0, to.stream, FewMarkedJob<T>{FewRowsJob<T>(system, to), marks, marked});
}

template <class T>
void launch_marked(const System& system, const BatchLaunch& to, const Marks& marks, const unsigned long long* marked) {
    if (system.rows <= 4) launch_marked<T, 4>(system, to, marks, marked);
    else if (system.rows <= 8) launch_marked<T, 8>(system, to, marks, marked);
    else launch_marked<T, 16>(system, to, marks, marked);
}

}  // namespace

bool fits_few_rows(const System& system) {
    constexpr std::int64_t most_systems = std::int64_t{1} << 36;
    return system.rows >= 1 && system.rows <= most_few_rows && system.systems() >= 1 && system.systems() < most_systems && system.rhs.kind == Operand::Kind::view && copies_without_registers();
}

bool takes_few_rows(const System& system) {
    constexpr std::int64_t small = std::int64_t{1} << 18, middling = std::int64_t{1} << 21, large = std::int64_t{1} << 25;
    if (!fits_few_rows(system)) return false;
    const std::int64_t all = system.rows * system.systems();
    if (system.rows == 1 || all < small) return true;
    // Large batches that the kernels for them take faster, or as fast (measured): rows without gaps, wide columns of about as many rows as a lane of theirs has, and, where that saves words, longer ones of one matrix.
    const bool wide = system.dtype == DType::f64, to_lanes = !wide && system.rows > 12 && all >= large && lies_in_columns(system);
    if (!shares_something(system)) return all_packed(system, 1) ? all < middling : !to_lanes;
    return along_rows(system) ? system.rows <= (wide ? 6 : 8) : wide ? system.rows <= 8 || all < middling : !to_lanes;
}

void solve_few_rows(const System& system, const BatchLaunch& to) {
    if (system.dtype == DType::f32) launch_of<float>(system, to);
    else launch_of<double>(system, to);
}

void solve_few_marked(const System& system, const BatchLaunch& to, const Marks& marks, const unsigned long long* marked) {
    if (system.dtype == DType::f32) launch_marked<float>(system, to, marks, marked);
    else launch_marked<double>(system, to, marks, marked);
}

}  // namespace trifold::cuda
