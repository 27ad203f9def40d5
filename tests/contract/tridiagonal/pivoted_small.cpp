// SPDX-License-Identifier: BSD-3-Clause
// Systems of small entries of which one row needs an exchange.
#include <cmath>

#include "contract/tridiagonal/pivoted.hpp"

namespace trifold::tests {
namespace {

class PivotedSmall : public Pivoted {};

// Dominant but for the last two rows, which need an exchange; all entries small. What a device fills up its lanes with behind the last row must not count among them: rows with a 1 there made residuals of a tenth of
// the matrix acceptable.
class SmallWithAnExchangeAtTheEnd : public Entries {
public:
    SmallWithAnExchangeAtTheEnd(std::int64_t rows, double pivot, int exponent) : rows_(rows), pivot_(pivot), exponent_(exponent) {}
    double coefficient(int band, std::int64_t row, std::int64_t number) const override {
        const bool end = row >= rows_ - 2;
        const double value = end ? (band == 1 ? pivot_ * static_cast<double>(1 + number % 3) : band == 0 && row == rows_ - 2 ? 0 : 0.75) : band == 1 ? 3 : -1;
        return std::ldexp(value, exponent_);
    }
    double right(std::int64_t row, std::int64_t system) const override { return 1 + 0.25 * static_cast<double>((row + system) % 5); }

private:
    std::int64_t rows_;
    double pivot_;
    int exponent_;
};

TEST_P(PivotedSmall, SmallEntriesWithAnExchangeAtTheEnd) {
    for (const std::int64_t rows : {2, 3, 5, 10, 17, 31, 40, 64, 100, 129, 200, 255, 300, 400, 510, 600, 1000, 1023, 1500, 2000, 3000, 4100, 5000, 8191, 9000, 20000})
        for (const std::int64_t systems : {1, 3, 70})
            for (const Layout layout : layouts)
                for (const bool shared : {false, true}) {
                    if (rows * systems > 30000 || (systems == 1 && shared)) continue;
                    Recipe recipe = recipe_of(rows, systems, layout, rows % 2 == 0);
                    if (shared) recipe.lower = recipe.diag = recipe.upper = Source::shared;
                    recipe.entries = std::make_shared<SmallWithAnExchangeAtTheEnd>(rows, 1e-10, -36);
                    attempt<double>(recipe, {});
                    recipe.entries = std::make_shared<SmallWithAnExchangeAtTheEnd>(rows, 1e-5, -36);
                    attempt<float>(recipe, {});
                    if (HasFailure()) return;
                }
}

TRIFOLD_ON_EVERY_DEVICE(PivotedSmall);

}  // namespace
}  // namespace trifold::tests
