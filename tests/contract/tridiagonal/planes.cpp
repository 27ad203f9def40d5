// SPDX-License-Identifier: BSD-3-Clause
// Planes of one grid after another, solved along an axis, with a matrix that is the same for all planes, or in each of them for all lines: right-hand sides of many scenarios, bands of one.
#include <string>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/bands.hpp"
#include "support/measure.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

class Planes : public OnDevice {
protected:
    enum class Same { planes, diagonal_of_planes, lines };
    enum class Dominant { none, all, all_but_one };  ///< planes, where lines are the same

    /// rhs and x lie as [planes][rows][columns], or, turned, as [planes][columns][rows].
    template <class T>
    void solve(std::int64_t planes, std::int64_t rows, std::int64_t columns, bool turned, Same which, Dominant dominant, bool in_place) {
        SCOPED_TRACE(testing::Message() << planes << " planes of " << rows << " rows and " << columns << " columns, turned " << turned << ", the same for " << static_cast<int>(which) << ", dominant " << static_cast<int>(dominant)
                                        << ", in place " << in_place << ", " << trifold::name_of(dtype_of<T>));
        const std::int64_t row = turned ? 1 : columns, column = turned ? rows : 1, plane = rows * columns;
        Random random(static_cast<std::uint64_t>(planes + rows + columns));
        std::vector<T> lower(static_cast<std::size_t>(planes * plane)), diag(lower.size()), upper(lower.size()), rhs(lower.size());
        for (T& value : lower) value = static_cast<T>(random.uniform(-1, 1));
        for (T& value : upper) value = static_cast<T>(random.uniform(-1, 1));
        for (T& value : rhs) value = static_cast<T>(random.uniform(-1, 1));
        for (T& value : diag) value = static_cast<T>(dominant != Dominant::none ? 3 + random.uniform(0, 1) : random.uniform(-1, 1));
        if (dominant == Dominant::all_but_one)
            for (std::int64_t i = 0; i < rows; ++i) diag[static_cast<std::size_t>(rows + i)] = static_cast<T>(random.uniform(-1, 1));
        const auto view = [&](std::vector<T>& of, std::int64_t row_stride, std::int64_t plane_stride, std::int64_t column_stride) {
            const Dim batch[] = {{planes, plane_stride}, {columns, column_stride}};
            return View<T>::strided(of.data(), {rows, row_stride}, batch);
        };
        struct Strides {
            std::int64_t row, plane, column;
        };
        const Strides one{row, 0, column}, line{1, rows, 0}, own{row, plane, column}, band = which == Same::lines ? line : one, coupling = which == Same::diagonal_of_planes ? own : band;
        const auto of = [&](std::vector<T>& values, const Strides& s) { return view(values, s.row, s.plane, s.column); };
        std::vector<T> x(in_place ? 0 : rhs.size()), before = rhs;
        tridiagonal::Problem problem;
        problem.matrix = {of(lower, coupling), of(diag, band), of(upper, coupling), false, false};
        problem.rhs = of(rhs, own), problem.x = in_place ? problem.rhs : AnyView(of(x, own));
        const Outcome outcome = tridiagonal::solve(queue, problem);
        ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason);
        const std::vector<T>& found = in_place ? rhs : x;
        for (std::int64_t p = 0; p < planes; ++p)
            for (std::int64_t c = 0; c < columns; ++c) {
                Bands<double> system(rows);
                std::vector<double> of_line(static_cast<std::size_t>(rows));
                const auto at = [&](const Strides& s, std::int64_t i) { return static_cast<std::size_t>(i * s.row + p * s.plane + c * s.column); };
                for (std::int64_t i = 0; i < rows; ++i) {
                    const auto k = static_cast<std::size_t>(i);
                    system.lower[k] = i > 0 ? static_cast<double>(lower[at(coupling, i)]) : 0, system.diag[k] = static_cast<double>(diag[at(band, i)]);
                    system.upper[k] = i + 1 < rows ? static_cast<double>(upper[at(coupling, i)]) : 0, system.rhs[k] = static_cast<double>(before[at(own, i)]), of_line[k] = static_cast<double>(found[at(own, i)]);
                }
                ASSERT_LE(backward_error(system, of_line), 20 * unit_roundoff(dtype_of<T>)) << "plane " << p << ", column " << c;
            }
    }
};

TEST_P(Planes, HaveOneMatrix) {
    for (const std::int64_t rows : {2, 7, 16, 33, 100, 257, 513, 1000, 1030, 4100})
        for (const std::int64_t columns : {1, 13, 32, 64})
            for (const bool turned : {false, true})
                for (const Same which : {Same::planes, Same::diagonal_of_planes, Same::lines}) {
                    if (rows * columns > 70000) continue;
                    const Dominant dominant = rows % 4 != 0 ? Dominant::all : Dominant::none;
                    solve<double>(3, rows, columns, turned, which, dominant, columns == 32);
                    solve<float>(3, rows, columns, turned, which, dominant, columns == 32);
                    if (HasFailure()) return;
                }
}

TEST_P(Planes, OneOfThemNeedsExchanges) {
    for (const std::int64_t rows : {34, 64, 120, 255, 640, 1025, 2050})
        for (const std::int64_t columns : {12, 31, 64, 100}) {
            if (rows * columns > 70000) continue;
            const bool wide = (rows + columns) % 2 == 0;
            if (wide) solve<double>(4, rows, columns, false, Same::lines, Dominant::all_but_one, columns == 64);
            else solve<float>(4, rows, columns, false, Same::lines, Dominant::all_but_one, columns == 12);
            if (HasFailure()) return;
        }
}

TRIFOLD_ON_EVERY_DEVICE(Planes);

}  // namespace
}  // namespace trifold::tests
