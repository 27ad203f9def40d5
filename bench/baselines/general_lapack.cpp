// SPDX-License-Identifier: BSD-3-Clause
#include "bench/baselines/general_lapack.hpp"

#include <lapacke.h>

#include <algorithm>

namespace trifold::bench {
namespace {

bool gtsv(std::int64_t n, int sides, double* lower, double* diag, double* upper, double* x) {
    return LAPACKE_dgtsv_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(n), sides, lower, diag, upper, x, static_cast<lapack_int>(n)) == 0;
}
bool gtsv(std::int64_t n, int sides, float* lower, float* diag, float* upper, float* x) {
    return LAPACKE_sgtsv_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(n), sides, lower, diag, upper, x, static_cast<lapack_int>(n)) == 0;
}

}  // namespace

template <class T>
GeneralLapack<T>::GeneralLapack(const T* lower, const T* diag, const T* upper, const T* rhs, const std::vector<std::int64_t>& offsets, bool ring)
    : from_lower_(lower), from_diag_(diag), from_upper_(upper), from_rhs_(rhs), offsets_(offsets), ring_(ring) {
    std::int64_t longest = 0;
    for (std::size_t k = 0; k + 1 < offsets.size(); ++k) longest = std::max(longest, offsets[k + 1] - offsets[k]);
    if (ring) sides_.resize(static_cast<std::size_t>(2 * longest));
}

template <class T>
void GeneralLapack<T>::restore() {
    const std::int64_t rows = offsets_.back();
    lower_.assign(from_lower_, from_lower_ + rows), diag_.assign(from_diag_, from_diag_ + rows), upper_.assign(from_upper_, from_upper_ + rows), x_.assign(from_rhs_, from_rhs_ + rows);
}

template <class T>
bool GeneralLapack<T>::solve() {
    bool good = true;
    for (std::size_t k = 0; k + 1 < offsets_.size(); ++k) {
        const std::int64_t first = offsets_[k], n = offsets_[k + 1] - first;
        good = (ring_ && n > 2 ? solve_ring(first, n) : gtsv(n, 1, lower_.data() + first + 1, diag_.data() + first, upper_.data() + first, x_.data() + first)) && good;
    }
    return good;
}

// All but the last row: T y = rhs and T z = the last column; the last row has what its unknown is then.
template <class T>
bool GeneralLapack<T>::solve_ring(std::int64_t first, std::int64_t rows) {
    T *const a = lower_.data() + first, *const b = diag_.data() + first, *const c = upper_.data() + first, *const x = x_.data() + first;
    const std::int64_t n = rows - 1;
    const T last_lower = a[n], last_diag = b[n], last_upper = c[n], last_rhs = x[n];
    T *const y = sides_.data(), *const z = y + n;
    std::copy_n(x, n, y);
    std::fill_n(z, n, T(0));
    z[0] = a[0], z[n - 1] += c[n - 1];
    if (!gtsv(n, 2, a + 1, b, c, y)) return false;
    const T last = (last_rhs - last_lower * y[n - 1] - last_upper * y[0]) / (last_diag - last_lower * z[n - 1] - last_upper * z[0]);
    for (std::int64_t i = 0; i < n; ++i) x[i] = y[i] - last * z[i];
    x[n] = last;
    return true;
}

template class GeneralLapack<double>;
template class GeneralLapack<float>;

}  // namespace trifold::bench
