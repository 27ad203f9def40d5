// SPDX-License-Identifier: BSD-3-Clause
// Matrices and right-hand sides by kind, every entry a pure function of its place: systems of a batch may be of different kinds.
#pragma once

#include <string>
#include <vector>

#include "contract/tridiagonal/trial.hpp"

namespace trifold::tests {

enum class Kind {
    dominant, uniform, barely, slow, poisson, heat, waves, zero_diagonal, small_diagonal, few_pivots, lower_only, upper_only, diagonal, convection, growth, integers,
    half_zeros, zero_row, zero_column, nearly_singular, graded_rows, graded_columns, zoo
};
inline constexpr int kinds = static_cast<int>(Kind::zoo) + 1;
const char* name_of(Kind kind);

enum class Right { normal, zero, unit, constant, alternating, huge, tiny, graded, some_zero };
inline constexpr int rights = static_cast<int>(Right::some_zero) + 1;
const char* name_of(Right right);

/// One entry that is something else: of lower, diag, upper, rhs (0 … 3).
struct Planted {
    int array = 0;
    std::int64_t row = 0, number = 0;
    double value = 0;
};

class DrawnEntries final : public Entries {
public:
    std::uint64_t seed = 1;
    std::int64_t rows = 1;
    bool periodic = false;
    std::vector<Kind> kind{Kind::dominant};  ///< a matrix has one of them
    Right rhs = Right::normal;
    int exponent = 0;                        ///< of 2, for all of the matrix
    std::vector<Planted> planted;
    std::vector<Bands<double>> animals;      ///< of the zoo: see fetch_animals

    double coefficient(int band, std::int64_t row, std::int64_t number) const override;
    double right(std::int64_t row, std::int64_t system) const override;

    /// Makes what Kind::zoo takes its entries from.
    void fetch_animals();
    std::string text() const;

private:
    double noise(int array, std::int64_t row, std::int64_t number) const;  // in (-1, 1)
    std::uint64_t choice(std::uint64_t what, std::int64_t number) const;
    double value(int band, std::int64_t row, std::int64_t number) const;
};

}  // namespace trifold::tests
