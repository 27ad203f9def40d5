// SPDX-License-Identifier: BSD-3-Clause
#include "support/lapack.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>

extern "C" __attribute__((weak)) void openblas_set_num_threads(int);  // other libraries of LAPACK have none

namespace trifold::tests {

template <class T>
Gtsv<T> gtsv(const Bands<T>& s) {
    const auto n = static_cast<lapack_int>(s.rows());
    std::vector<T> lower(s.lower.begin() + (n > 0), s.lower.end()), diag = s.diag, upper = s.upper;
    Gtsv<T> result{0, s.rhs};
    if constexpr (std::is_same_v<T, float>)
        result.info = LAPACKE_sgtsv_work(LAPACK_COL_MAJOR, n, 1, lower.data(), diag.data(), upper.data(), result.x.data(), n);
    else
        result.info = LAPACKE_dgtsv_work(LAPACK_COL_MAJOR, n, 1, lower.data(), diag.data(), upper.data(), result.x.data(), n);
    return result;
}

template Gtsv<float> gtsv(const Bands<float>&);
template Gtsv<double> gtsv(const Bands<double>&);

double condition(const Bands<double>& s) {
    const auto n = static_cast<lapack_int>(s.rows());
    std::vector<double> lower(s.lower.begin() + 1, s.lower.end()), diag = s.diag, upper = s.upper, upper2(n);
    std::vector<lapack_int> pivots(n), integers(n);
    std::vector<double> work(2 * n);
    double norm = 0;
    for (lapack_int j = 0; j < n; ++j)
        norm = std::max(norm, std::abs(s.diag[j]) + (j > 0 ? std::abs(s.upper[j - 1]) : 0) + (j < n - 1 ? std::abs(s.lower[j + 1]) : 0));
    if (LAPACKE_dgttrf_work(n, lower.data(), diag.data(), upper.data(), upper2.data(), pivots.data()) != 0)
        return std::numeric_limits<double>::infinity();
    double reciprocal = 0;
    LAPACKE_dgtcon_work('1', n, lower.data(), diag.data(), upper.data(), upper2.data(), pivots.data(), norm, &reciprocal, work.data(),
                        integers.data());
    return reciprocal > 0 ? 1 / reciprocal : std::numeric_limits<double>::infinity();
}

Bands<double> with_singular_values(const std::vector<double>& values, unsigned seed) {
    // The same numbers wherever there are more cores; and its threads would spin while they wait for each other.
    if (openblas_set_num_threads) openblas_set_num_threads(1);
    const auto n = static_cast<lapack_int>(values.size());
    std::vector<double> full(values.size() * values.size()), work(2 * values.size());
    lapack_int state[4] = {static_cast<lapack_int>(seed % 4096), static_cast<lapack_int>(seed / 4096 % 4096), 1234, 2027};
    const lapack_int width = n > 1;
    LAPACKE_dlagge_work(LAPACK_COL_MAJOR, n, n, width, width, values.data(), full.data(), n, state, work.data());
    Bands<double> s(n);
    const auto at = [&](std::int64_t i, std::int64_t j) { return full[static_cast<std::size_t>(j * n + i)]; };
    for (std::int64_t i = 0; i < n; ++i) {
        s.diag[i] = at(i, i);
        if (i > 0) s.lower[i] = at(i, i - 1);
        if (i < n - 1) s.upper[i] = at(i, i + 1);
    }
    return s;
}

}  // namespace trifold::tests
