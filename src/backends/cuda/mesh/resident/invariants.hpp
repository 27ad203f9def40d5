// SPDX-License-Identifier: BSD-3-Clause
// A point function cut in two: what does not change from step to step, computed once, and the rest. The operations and their order are the function's own, but that
// divisions by what stays the same are multiplications by its reciprocal.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trifold::cuda::resident {

struct Split {
    std::string once;  ///< the body of a point function: out(k) = the k-th value to keep
    std::string rest;  ///< the body with trifold_kept(k) where those were
    int kept = 0;      ///< 0: the function is not cut, because nothing would be saved or because it is more than assignments of arithmetic
    std::vector<std::string> values{};  ///< what is kept, without names
};

/// costly: what has no divisions and functions of fields in it is computed anew.
enum class Keep { all, costly };

/// Where a kept value lies, if neighbours share: in an array of its own (axis -1), or in another value's as that of the next point along an axis.
struct Place {
    int array, axis;
};
std::vector<Place> places_of(const Split& split);

/// Whether a function of matrix rows might give symmetric matrices: out(0) and, one point back along the axis, out(2) are made of the same parts. A guess, which saves looking at others.
bool looks_symmetric(std::string_view source, int axis);

/// source: a body in the subset of trifold/point_function.hpp with one result. changes(f): field f is not the same in every step.
Split split_invariants(std::string_view source, const std::function<bool(int)>& changes, Keep keep = Keep::all);

}  // namespace trifold::cuda::resident
