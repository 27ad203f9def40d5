// SPDX-License-Identifier: BSD-3-Clause
// Generated tridiagonal problems: "gen:NAME?key=value&key=value". A generator makes any rows of any system alone, so
// that the result depends neither on the number of threads nor on the order in which rows are made.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/generators/counter_random.hpp"
#include "io/tridiagonal_data.hpp"

namespace trifold::io {

inline constexpr int max_parameters = 8;
using Values = std::array<double, max_parameters>;  ///< in the order of GeneratorKind::parameters

struct Parameter {
    std::string_view name;
    double value;  ///< default
    double least, most;
    bool whole;  ///< an integer
    std::string_view doc;
};

/// Rows first … first+count-1 of one system of `rows` rows. The arrays hold `count` values each.
struct Tile {
    std::int64_t rows, first, count;
    StreamKey key;  ///< random numbers of this system's matrix
    double *lower, *diag, *upper, *rhs;
};

struct GeneratorKind {
    std::string_view name, doc;
    std::span<const Parameter> parameters;

    /// Fills lower, diag and upper (lower of row 0 and upper of row n-1 with 0).
    void (*fill)(const Values&, const Tile&);

    /// Fills rhs; nullptr = rhs is A x with x normal around 3 with variance 1.
    void (*fill_rhs)(const Values&, const Tile&);

    /// Whether all rows have the same coefficients, so that matrix=scalar is possible.
    bool constant;

    /// Why these values cannot be served, or nullptr.
    const char* (*refuses)(const Values&);
};

/// All of them, in the order of the documentation.
std::span<const GeneratorKind* const> generator_kinds();
const GeneratorKind* find_generator(std::string_view name);

/// Parameters that every generator takes, for documentation.
std::span<const Parameter> common_parameters();

enum class MatrixStorage { own, shared, scalar };  ///< per system, one of n rows for all, one number per diagonal

struct GeneratorSpec {
    const GeneratorKind* kind = nullptr;
    Values values{};
    std::vector<std::int64_t> extents;
    int axis = -1;  ///< as given; negative counts from the last
    bool axis_given = false;
    std::uint64_t seed = 1;
    MatrixStorage matrix = MatrixStorage::own;
    std::string text;
};

/// Throws Error(usage) that names the generator, the parameter, and what it takes.
GeneratorSpec parse_generator(std::string_view text);

/// Makes the arrays, in parallel.
TridiagonalData generate_tridiagonal(const GeneratorSpec& spec, const LoadOptions& options);

}  // namespace trifold::io
