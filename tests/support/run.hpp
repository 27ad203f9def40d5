// SPDX-License-Identifier: BSD-3-Clause
// One system of ordinary arrays through a device's table, without the library's interface around it.
#pragma once

#include <memory>
#include <vector>

#include "families/tridiagonal/ops.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "support/bands.hpp"

namespace trifold::tests {

/// Views of `s`; x is where the caller says. Both must outlive the problem.
template <class T>
tridiagonal::Problem problem_of(const Bands<T>& s, std::vector<T>& x) {
    tridiagonal::Problem problem;
    problem.matrix.lower = View<const T>::rows(s.lower);
    problem.matrix.diag = View<const T>::rows(s.diag);
    problem.matrix.upper = View<const T>::rows(s.upper);
    problem.matrix.periodic = s.periodic;
    problem.rhs = View<const T>::rows(s.rhs);
    problem.x = View<T>::rows(x);
    return problem;
}

template <class T>
struct Solved {
    Outcome outcome;
    std::vector<T> x;
};

template <class T>
Solved<T> run(const tridiagonal::Ops& ops, const Bands<T>& s, tridiagonal::Algorithm algorithm, double tolerance = 0) {
    Solved<T> result{{}, std::vector<T>(s.rhs.size(), T{77})};
    const tridiagonal::System system = tridiagonal::normalise(problem_of(s, result.x));
    std::vector<std::byte> scratch(ops.workspace(system, algorithm, 1) + 64);
    void* aligned = scratch.data();
    std::size_t room = scratch.size();
    std::align(64, room - 64, aligned, room);
    tridiagonal::Launch launch;
    launch.scratch = aligned;
    launch.scratch_bytes = scratch.size() - 64;
    launch.tolerance = tolerance > 0 ? tolerance : unit_roundoff(dtype_of<T>);
    ops.solve(system, algorithm, launch, result.outcome);
    return result;
}

}  // namespace trifold::tests
