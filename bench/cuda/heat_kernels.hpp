// SPDX-License-Identifier: BSD-3-Clause
// Kernels of the heat benchmark, compiled without a GPU for a machine that has one: they lie where runs look for them
// ($XDG_CACHE_HOME/trifold/kernels).
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/table.hpp"
#include "bench/cuda/heat_cases.hpp"
#include "heat/heat.hpp"
#include "problems/mesh/checked.hpp"
#include "trifold/error.hpp"

namespace trifold::bench {

/// A case's problem, and what it reads.
template <class T>
struct HeatProblem {
    std::vector<T> conductivity;
    heat::Problem<T> problem;

    /// Fixed sides, one of them hot, so that the field stays one whatever the number of steps: a flat one takes less energy to compute.
    explicit HeatProblem(const HeatCase& one) {
        problem.shape = one.shape, problem.step = 1;
        for (Sides& axis : problem.sides) axis = {{one.edge, 0}, {one.edge, 0}};
        if (one.edge == Edge::odd) problem.sides[0].low.value = 1;
        if (one.halves) problem.scheme = heat::Scheme::peaceman_rachford;
        const auto cells = static_cast<std::size_t>(one.shape.x * one.shape.y * one.shape.z);
        unsigned state = 1;
        const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
        if (one.varies)
            for (conductivity.resize(cells); T& k : conductivity) k = static_cast<T>(0.25 + 1.5 * next() / (1 << 24));
        problem.conductivities = one.varies ? conductivity.data() : nullptr;
    }
};

/// Whether what moves alone is timed beside a case.
inline bool has_moves(const HeatCase& one, std::string_view kind) { return (kind == "streaming" || kind == "planes") && one.shape.z > 1 && one.options().empty(); }

/// Of the kind that runs the case, for an H200's architecture.
template <class T>
void compile_kernels(const cuda::Table& table, Queue& host, const HeatCase& one) {
    // Addresses of a field that nobody reads or writes.
    const std::size_t bytes = static_cast<std::size_t>(one.shape.points()) * sizeof(T);
    void* const field = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (field == MAP_FAILED) throw Error(ErrorCode::bad_input, one.name(), "has no room in the address space");
    const HeatProblem<T> of_case(one);
    const heat::Heat<T> solver(host, of_case.problem, static_cast<T*>(field));
    const MeshProblem problem = solver.sweeps();
    const mesh::Checked checked = mesh::check(problem);
    for (int kind = 0;; ++kind) {
        const char *name = nullptr, *refuses = nullptr;
        Failure failure;
        const auto compiled = [&](bool moves_alone) { return table.mesh_compile(checked, 90, moves_alone, kind, &name, &refuses, failure); };
        if (!compiled(false)) failure.raise(one.name());
        if (!name) break;
        if (refuses) continue;
        if (has_moves(one, name) && !compiled(true)) failure.raise(one.name());
        std::printf("%-26s %s\n", one.name().c_str(), name), std::fflush(stdout);
        break;
    }
    munmap(field, bytes);
}

inline const cuda::Table& cuda_table() {
    void* const library = dlopen(cuda::Table::library_name, RTLD_NOW | RTLD_LOCAL);
    const auto function = library ? reinterpret_cast<const cuda::Table* (*)()>(dlsym(library, cuda::Table::table_symbol)) : nullptr;
    if (!function) throw Error(ErrorCode::device_unavailable, cuda::Table::library_name, "cannot be loaded", "put its folder on LD_LIBRARY_PATH");
    return *function();
}

/// The kind of kernels that takes a problem on an H200: "resident", "planes", "streaming", "fused" or "general".
inline std::string kind_of(const MeshProblem& problem) {
    const mesh::Checked checked = mesh::check(problem);
    const char *name = nullptr, *refuses = nullptr;
    Failure failure;
    int kind = 0;
    do
        if (!cuda_table().mesh_compile(checked, 90, false, kind++, &name, &refuses, failure)) failure.raise("kinds of kernels");
    while (refuses);
    return name ? name : "none";
}

inline void compile_kernels(Queue& host, const std::vector<HeatCase>& cases) {
    const cuda::Table& table = cuda_table();
    if (const char* const why = table.compiler_missing()) throw Error(ErrorCode::device_unavailable, "--compile", why);
    for (const HeatCase& one : cases)
        if (one.dtype == DType::f32) compile_kernels<float>(table, host, one);
        else compile_kernels<double>(table, host, one);
}

}  // namespace trifold::bench
