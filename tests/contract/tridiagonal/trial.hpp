// SPDX-License-Identifier: BSD-3-Clause
// One problem of the public interface together with what it means, written down independently: the plain matrix of every
// system, expanded from the coefficients' definition.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/tridiagonal/strided_array.hpp"
#include "support/bands.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {

enum class Source {
    full,       ///< a view with the batch dimensions of rhs
    packed,     ///< the same, n-1 rows (lower and upper)
    shared,     ///< a view without batch dimensions
    broadcast,  ///< zero stride along a part of the batch dimensions
    flat,       ///< zero stride along the rows
    scalar,
    generator
};
inline constexpr Source sources[] = {Source::full, Source::packed, Source::shared, Source::broadcast, Source::flat, Source::scalar, Source::generator};
const char* name_of(Source source);

/// Entries by their place, in place of those that a recipe draws. Pure: a generator asks more than once, from any thread.
class Entries {
public:
    virtual ~Entries() = default;
    /// Of lower, diag or upper (0, 1, 2); `number` counts the matrices of that band's array.
    virtual double coefficient(int band, std::int64_t row, std::int64_t number) const = 0;
    virtual double right(std::int64_t row, std::int64_t system) const = 0;
};

struct Recipe {
    std::int64_t rows = 0;
    std::vector<std::int64_t> batch;
    std::vector<std::int64_t> lengths;  ///< ragged where not empty: rows is their sum and what lies before and behind, batch is empty
    std::int64_t before_systems = 0, behind_systems = 0;  ///< ragged: rows of the arrays that belong to no system
    Layout layout = Layout::contiguous;
    Source lower = Source::full, diag = Source::full, upper = Source::full;
    bool periodic = false, transposed = false, accumulate = false, in_place = false;
    bool one_rhs = false;               ///< one right-hand side for all systems, by zero strides; not in place
    bool dominant = true;               ///< else diag is as small as the couplings: pivoting is needed
    Around around = Around::nan;
    bool mixed = false;                 ///< every array has a layout of its own, and begins up to 15 elements further on
    std::size_t front = 0;              ///< leading batch dimensions along which no coefficient varies (not with generators)
    std::shared_ptr<const Entries> entries;
    std::uint64_t seed = 1;

    std::string text() const;
};

template <class T>
class Trial {
public:
    explicit Trial(const Recipe& recipe);
    ~Trial();

    const Recipe& recipe() const { return recipe_; }
    const tridiagonal::Problem& problem() const { return problem_; }
    std::int64_t systems() const { return static_cast<std::int64_t>(rows_of_.size()); }

    /// The matrix and right-hand side of a system, after transposition, as the problem's definition has them.
    Bands<double> system(std::int64_t k) const;

    /// What a solve has made of it: x, less what was there before where it is added to.
    std::vector<double> solution(std::int64_t k) const;

    /// x as it is, to compare bits, and as it was, where it is added to.
    std::vector<T> stored(std::int64_t k) const;
    std::vector<double> stored_before(std::int64_t k) const;

    T& rhs(std::int64_t i, std::int64_t k);
    /// Writable entries of views that are `full` or `shared`.
    T& coefficient(int band, std::int64_t i, std::int64_t k);

    /// The memory of every array, to be copied elsewhere and back.
    std::vector<std::span<T>> memory();

    /// The matrix as a Factor takes it that is used for the leading dimensions as well.
    tridiagonal::Matrix matrix_behind_front() const;

    /// What lies around all arrays is still there, and what must only be read has not changed.
    bool surroundings_untouched() const;

    /// Every system was solved with an error like that of a backward stable method; reports failures to GoogleTest.
    void expect_solved(const Outcome& outcome, const std::vector<std::int8_t>* status = nullptr) const;

private:
    struct Band;
    /// The entries of a band in system k; a generator's are written into `made`.
    Rows<const T> values(int band, std::int64_t k, std::vector<T>& made) const;
    /// The rows of system k in an array that has the shape of x.
    template <class Array>
    auto rows(Array& array, std::int64_t k) const {
        return offsets_.empty() ? array.rows(k) : array.rows(0).from(offsets_[k]);
    }

    Recipe recipe_;
    std::vector<std::int64_t> offsets_, rows_of_;
    std::vector<std::unique_ptr<Band>> bands_;
    std::optional<StridedArray<T>> rhs_, x_, rhs_before_, x_before_;
    tridiagonal::Problem problem_;
};

/// A trial of its own, solved with the status of each system asked for.
template <class T>
void expect_solved(Queue& queue, const Recipe& recipe) {
    const Trial<T> trial(recipe);
    std::vector<std::int8_t> status(static_cast<std::size_t>(trial.systems()), 77);
    tridiagonal::Options options;
    options.status = status.data();
    trial.expect_solved(tridiagonal::solve(queue, trial.problem(), options), &status);
}

/// Any legal combination of options, from a seed; few and long systems, or up to some hundred short ones.
Recipe random_recipe(std::uint64_t seed, bool few_and_long = false);

}  // namespace trifold::tests
