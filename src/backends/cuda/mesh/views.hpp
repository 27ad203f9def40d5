// SPDX-License-Identifier: BSD-3-Clause
// Fields in the device's memory and the parts of a sweep, as kernels get them.
#pragma once

#include "backends/cuda/mesh/divisor.hpp"
#include "backends/cuda/mesh/state.hpp"

namespace trifold::cuda {

/// As trifold::Edge.
inline constexpr unsigned char edge_even = 0, edge_odd = 1, edge_periodic = 2;

template <class T>
struct FieldView {
    T* data;
    std::int64_t stride[4];      ///< x, y, z, mesh
    T twice[3][2];               ///< per axis, low and high: 2 × the value on an odd side
    unsigned char edge[3][2];
};

inline constexpr int most_fields = 8;

/// What every kernel of a run knows.
template <class T>
struct MeshArguments {
    std::int64_t extent[4];      ///< x, y, z, meshes
    FieldView<T> field[most_fields];
    const T* parameters;
    T* values;                   ///< [mesh][z][y][x]: right-hand side, then solution
    unsigned char* failed;       ///< per mesh: 1 + the line solve of this sweep in which a line failed, or 0
    MeshState* state;
    unsigned long long sweep;    ///< number of the sweep
    std::int64_t step;           ///< what functions see
    std::int64_t first_mesh, meshes;  ///< those that a launch has; extent[3] are all of the batch
    bool backwards;              ///< tasks from the last to the first: what the pass before it wrote last is still in the second-level cache
};

/// The matrices of a line solve.
template <class T>
struct LineArguments {
    T *lower, *diag, *upper;
    T* ends;             ///< shared: what the first and the last right-hand side of every line lose
    std::int64_t rows;   ///< of a line
    std::int64_t lines;
    int axis, number;    ///< of the line solve in its sweep
    unsigned char edge[2];
    T twice[2];          ///< of odd sides
    T constant[3];
    T opened[2];         ///< of a ring that is solved as a line and closed afterwards: its first and last diagonal
    bool shared, has_function, opens;
};

/// How a ring that was solved as a line is closed (rings.cuh).
template <class T>
struct Closing {
    const T* q;          ///< per row
    T* sums;             ///< per line
    T weight, scale;     ///< of the last row in v; 1 / (1 + v . q)
    Divisor apart, rows;
};

/// What the kernels for batches found: parts of a DeviceOutcome (runtime/outcome.hpp).
struct LinesFound {
    const signed char* status;  ///< per line
    const unsigned long long *failures, *rescued, *first;
};

}  // namespace trifold::cuda
