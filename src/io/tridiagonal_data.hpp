// SPDX-License-Identifier: BSD-3-Clause
// A tridiagonal problem that owns its arrays, from a file or a generator.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/array.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::io {

/// rhs decides the shape and, with `axis`, the rows. lower, diag and upper are each: of rhs's dimensions (an extent of
/// 1 repeats), or one-dimensional with n rows (all systems share it), or one number. lower and upper may have n-1 rows.
struct TridiagonalData {
    Array lower, diag, upper, rhs;
    int axis = -1;
    bool periodic = false;           ///< lower[0] and upper[n-1] couple the ends
    std::string name;                ///< the file, or the generator's whole text
    std::string description;         ///< what it is, in words
    std::vector<std::string> notes;  ///< what was ignored or converted

    std::int64_t rows() const { return rhs.shape().extents[axis]; }
    std::int64_t systems() const { return rows() ? rhs.shape().elements() / rows() : 0; }
    std::int64_t bytes() const;  ///< of the four arrays

    /// Views over these arrays and over `x`, which has rhs's shape. A single number becomes a scalar coefficient.
    tridiagonal::Problem problem(const Array& x) const;

    /// The first NaN or infinity that a solve would read: "array 'diag', element [3, 17] is nan". Empty where all are
    /// finite.
    std::string first_not_finite() const;
};

struct LoadOptions {
    std::optional<int>
        axis{};  ///< negative counts from the last dimension; empty = the last, or what the generator says
    std::optional<DType> precision{};  ///< empty = as the file has it, f64 for generators
    bool values = true;                ///< false: shapes only, for planning; nothing large is allocated
    Progress progress{};
    bool periodic = false;  ///< of what is loaded
};

/// `input` is "gen:NAME?key=value&…" or an .npz file with the arrays lower, diag, upper and rhs. Throws Error(usage)
/// for a generator's text, Error(bad_input) for a file, both naming what is wrong where and what to do.
TridiagonalData load_tridiagonal(const std::string& input, const LoadOptions& options = {});

/// The four arrays as an .npz.
void save_tridiagonal(const std::string& path, const TridiagonalData& data, const Progress& progress = {},
                      std::function<void(const char*)> watch = {});

}  // namespace trifold::io
