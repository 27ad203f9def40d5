// SPDX-License-Identifier: BSD-3-Clause
// The heat equation du/dt = div(k grad u) + s by alternating directions, on batches of meshes of one to three dimensions.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "trifold/device_memory.hpp"
#include "trifold/sweep.hpp"

namespace trifold::heat {

enum class Scheme {
    douglas_gunn,       ///< any dimension, in increments: second order in time, stable for every step (Douglas and Gunn 1964)
    peaceman_rachford,  ///< two dimensions, two half steps (Peaceman and Rachford 1955); the same values as Douglas and Gunn's there
};

/// Cells fill a box; u is the mean of a cell. Sides of an axis with one cell are even.
template <class T>
struct Problem {
    MeshShape shape{};
    std::array<double, 3> spacing{1, 1, 1};
    std::array<Sides, 3> sides{};     ///< odd: a fixed temperature on the side; even: insulated; periodic
    double step = 0;                  ///< of time
    double conductivity = 1;
    const T* conductivities = nullptr;  ///< [z][y][x], positive, for all meshes; in place of the constant
    const T* source = nullptr;          ///< [z][y][x], for all meshes; null: none
    Scheme scheme = Scheme::douglas_gunn;
};

/// step × largest conductivity / spacing² of the finest axis that has more than one cell: how far heat runs in one step, in cells,
/// squared. Beyond about 10 the shortest waves hardly decay, and the second order is lost for them.
template <class T>
double mesh_number(const Problem<T>& problem);

/// A run. Arrays must outlive it; u is [mesh][z][y][x], in the host's memory or in that of the queue's device, where steps need no copies of it.
/// Conductivities and source are the host's; a device with memory of its own gets its copies once.
template <class T>
class Heat {
public:
    /// Throws Error(bad_input) naming the cell of a conductivity that is not positive, Error(usage) for what does not fit.
    Heat(Queue& queue, const Problem<T>& problem, T* u);

    /// Where a step fails, u is of no use.
    SweepOutcome advance(std::int64_t steps);

    std::int64_t steps_done() const noexcept { return done_; }

    /// What it is as sweeps.
    MeshProblem sweeps() const noexcept { return {shape_, fields_, sweeps_, parameters_}; }

private:
    const T* on_device(const T* values, std::int64_t count);

    Queue& queue_;
    MeshShape shape_;
    std::vector<AnyField> fields_;
    std::vector<Sweep> sweeps_;
    std::vector<double> parameters_;
    std::vector<T> nothing_;  // a row of zeros: no source
    std::vector<DeviceArray<T>> copies_;
    std::int64_t done_ = 0;
};

extern template class Heat<float>;
extern template class Heat<double>;

}  // namespace trifold::heat
