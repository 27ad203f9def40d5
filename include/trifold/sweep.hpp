// SPDX-License-Identifier: BSD-3-Clause
// Sweeps over meshes, of which ADI and other split schemes consist: a right-hand side from stencils, tridiagonal solves along one or
// several axes, an update of a field; many steps of it in one call, so that a device may keep what fits on chip.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trifold/context.hpp"
#include "trifold/mesh.hpp"
#include "trifold/outcome.hpp"
#include "trifold/point_function.hpp"

namespace trifold {

/// Tridiagonal systems along all lines of one axis:  lower v[i-1] + diag v[i] + upper v[i+1] = what the line before has left.
struct LineSolve {
    int axis = 0;                                       ///< 0 = x, 1 = y, 2 = z
    std::array<double, 3> constant{0, 1, 0};            ///< lower, diag, upper of every row, where there is no function
    PointFunction coefficients{};                       ///< three results: lower, diag, upper of the point's row
    bool same_on_every_line = false;                    ///< the function depends on nothing but the place along the axis and the step
};

/// 1. r = rhs(fields) at every point; 2. the lines are solved one after the other, the solution of each being the right-hand side of the
/// next; 3. fields[target] = update(fields, solution) at every point, the solution being one more field after the last. Each is
/// done for the whole mesh before the next begins, as far as anyone can see, so that the target may be read by rhs.
struct Sweep {
    PointFunction rhs{};               ///< one result; none: the target itself
    std::vector<LineSolve> lines;
    PointFunction update{};            ///< one result; reads no neighbours; none: the solution
    int target = 0;

    /// The solution beyond the sides: in the first and last row of a line, v[-1] and v[n] are replaced by what these say, odd sides
    /// with a value changing the right-hand side too. For increments of a field that is fixed on a side: odd, value 0.
    std::array<Sides, 3> solution{};
};

struct MeshProblem {
    MeshShape shape{};
    std::span<const AnyField> fields{};       ///< one type for all; a target has all strides of its own axes different from 0
    std::span<const Sweep> sweeps{};          ///< one after the other, in every step
    std::span<const double> parameters{};
};

inline constexpr int max_fields = 8, max_lines = 64;  ///< of a problem; of a sweep

struct SweepOptions {
    /// What point functions see as `step` in the first one. A run in pieces that says so has the bits of one that is whole: in some boxes roundings of even and odd steps differ.
    std::int64_t first_step = 0;
};

struct SweepOutcome {
    Reason reason = Reason::none;   ///< exact, none (nothing to do), singular, not_finite
    std::int64_t failures = 0;      ///< lines that could not be solved
    std::int64_t rescued = 0;       ///< lines that needed pivots, and are good
    std::int64_t step = -1;         ///< of the first failure; -1 = none
    int sweep = -1, axis = -1;      ///< of the first failure
    std::int64_t mesh = -1, x = -1, y = -1, z = -1;  ///< a bad row of it, as far as known
    const char* device = "";        ///< that really computed

    bool ok() const noexcept { return trifold::ok(reason); }
};

/// Runs `steps` steps of the sweeps, and waits. Fields of a device with memory of its own are used where they are; those of the host are copied there, and
/// targets back. A device that compiles at run time does so in the first call with these functions, which may have no steps.
///
/// It stops after the sweep in which a line fails: the target then holds new values in the meshes
/// whose lines were all solved; in the others, new values in part and those from before in part.
/// Throws Error(usage) for shapes, types, sides, functions and memory that do not fit; Error(device_unavailable) where a device has
/// no kernel for it.
TRIFOLD_API SweepOutcome sweep(Queue& queue, const MeshProblem& problem, std::int64_t steps = 1, const SweepOptions& options = {});

}  // namespace trifold
