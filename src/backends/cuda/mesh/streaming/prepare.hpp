// SPDX-License-Identifier: BSD-3-Clause
// From a checked problem to passes, their factors, and the text of their program.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/mesh/streaming/cut.hpp"
#include "backends/cuda/mesh/streaming/line_table.hpp"

namespace trifold::cuda::streaming {

/// Rows first, then columns. Lines along y or z may be solved in parts: forwards by rows that go along them, then the ends of their segments (joins.cuh), and backwards by the columns
/// along the other axis.
enum class PassKind { rows, columns, joins };

/// One pass of a sweep, with one of its line solves.
struct Pass {
    PassKind kind = PassKind::rows;
    int line = 0;             ///< of the sweep
    RowsCut rows;             ///< of its kind
    ColumnsCut columns;
    int parts_axis = 1;       ///< of lines that passes have a part of, and their number in the sweep
    int segment = 0;          ///< rows of a segment of these; 0: none
    int piece = 0;            ///< points of a row that lie side by side in values and ends (rows.cuh)
    int each = 1;             ///< lines of a thread of joins
    bool by_reach = false;    ///< columns that have the roundings of those parts
    bool alternates = false;  ///< columns that are eliminated from their last row to the first in odd steps, for the roundings of planes (planes/segments.hpp)
    Reach reach;
    unsigned staged = 0;

    int threads() const noexcept { return kind == PassKind::rows ? rows.threads : kind == PassKind::columns ? columns.threads : 256; }
    std::size_t shared() const noexcept { return kind == PassKind::rows ? rows.shared : kind == PassKind::columns ? columns.shared : 0; }
};

struct SweepPlan {
    std::vector<Pass> passes;
};

struct Plan {
    std::vector<SweepPlan> sweeps;
    int groups = 1;                ///< of a batch's meshes, on a stream each (beside.hpp)
    int whole_threads = 0;         ///< of the one kernel that has all passes and steps (whole.cuh); 0: each pass has its own
    std::size_t whole_shared = 0;
    bool moves_alone = false;      ///< mesh/run.hpp
    const char* refuses = nullptr;
};

Plan plan_of(const mesh::Checked& checked, const Chip& chip);

/// Elements behind the values of a run for ends of segments.
std::int64_t ends_of_segments(const mesh::Checked& checked, const Plan& plan);

/// The factors of a pass as its kernel reads them, appended; false: they are not safe. `parted`: the matrix of lines that the pass has a part of.
template <class T>
bool append_factors(const LineMatrix<T>& matrix, const LineMatrix<T>& parted, const Pass& pass, std::vector<T>& values);

/// How many they are at most.
std::size_t factor_values(const Pass& pass, const MeshShape& shape);

/// Rows of the field can be copied whole, 16 bytes at a time.
bool rows_in_vectors(const AnyField& field, const MeshShape& shape, std::size_t value_bytes);

/// The same of all fields that a right-hand side reads.
bool staged_in_vectors(const mesh::Checked& checked, unsigned staged);

std::string name_of_pass(std::size_t sweep, std::size_t pass);

std::string program(const mesh::Checked& checked, const Plan& plan);

}  // namespace trifold::cuda::streaming
