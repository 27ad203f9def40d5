// SPDX-License-Identifier: BSD-3-Clause
// The only symbol that libtrifold_cuda.so shows.
#include "backends/cuda/jit/compiler.hpp"
#include "backends/cuda/mesh/run.hpp"
#include "backends/cuda/runtime/discovery.hpp"
#include "backends/cuda/runtime/runtime.hpp"
#include "backends/cuda/table.hpp"
#include "backends/cuda/tridiagonal/cell.hpp"

extern "C" __attribute__((visibility("default"))) const trifold::cuda::Table* trifold_cuda_table() {
    static const trifold::cuda::Table table = [] {
        trifold::cuda::Table t;
        t.count = trifold::cuda::device_count;
        t.absent = trifold::cuda::absent;
        t.describe = trifold::cuda::describe;
        t.unusable = trifold::cuda::unusable;
        t.runtime = &trifold::cuda::runtime();
        t.tridiagonal = trifold::cuda::tridiagonal_ops;
        t.compiler_missing = trifold::cuda::jit::compiler_missing;
        t.mesh_compile = trifold::cuda::mesh_compile;
        t.mesh_moves = trifold::cuda::mesh_moves;
        return t;
    }();
    return &table;
}
