// SPDX-License-Identifier: BSD-3-Clause
// From a checked problem to passes, their factors, and the text of their program.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/mesh/streaming/cut.hpp"
#include "backends/cuda/mesh/streaming/line_table.hpp"

namespace trifold::cuda::streaming {

/// One pass of a sweep, with one of its line solves: rows first, then columns.
struct Pass {
    int line = 0;             ///< of the sweep
    RowsCut rows;             ///< where they fit: a pass of rows
    ColumnsCut columns;
    Reach reach;
    unsigned staged = 0;

    int threads() const noexcept { return rows.fits() ? rows.threads : columns.threads; }
    std::size_t shared() const noexcept { return rows.fits() ? rows.shared : columns.shared; }
};

struct SweepPlan {
    std::vector<Pass> passes;
};

struct Plan {
    std::vector<SweepPlan> sweeps;
    int whole_threads = 0;         ///< of the one kernel that has all passes and steps (whole.cuh); 0: each pass has its own
    std::size_t whole_shared = 0;
    const char* refuses = nullptr;
};

Plan plan_of(const mesh::Checked& checked, const Chip& chip);

/// The factors of a pass as its kernel reads them, appended; false: they are not safe.
template <class T>
bool append_factors(const LineMatrix<T>& matrix, const Pass& pass, std::vector<T>& values);

std::size_t factor_values(const Pass& pass);

/// Rows of the field can be copied whole, 16 bytes at a time.
bool rows_in_vectors(const AnyField& field, const MeshShape& shape, std::size_t value_bytes);

std::string name_of_pass(std::size_t sweep, std::size_t pass);

/// Kernels have as many parameters as arguments; one, where there are none.
std::size_t parameter_count(const mesh::Checked& checked);

std::string program(const mesh::Checked& checked, const Plan& plan);

}  // namespace trifold::cuda::streaming
