// SPDX-License-Identifier: BSD-3-Clause
#include "bench/baselines/factored_lapack.hpp"

#include <lapacke.h>

namespace trifold::bench {
namespace {

int gttrf(int n, double* l, double* d, double* u, double* v, int* p) { return LAPACKE_dgttrf_work(n, l, d, u, v, p); }
int gttrf(int n, float* l, float* d, float* u, float* v, int* p) { return LAPACKE_sgttrf_work(n, l, d, u, v, p); }
int gttrs(int n, int count, const double* l, const double* d, const double* u, const double* v, const int* p, double* x) {
    return LAPACKE_dgttrs_work(LAPACK_COL_MAJOR, 'N', n, count, l, d, u, v, p, x, n);
}
int gttrs(int n, int count, const float* l, const float* d, const float* u, const float* v, const int* p, float* x) {
    return LAPACKE_sgttrs_work(LAPACK_COL_MAJOR, 'N', n, count, l, d, u, v, p, x, n);
}
int pttrf(int n, double* d, double* e) { return LAPACKE_dpttrf_work(n, d, e); }
int pttrf(int n, float* d, float* e) { return LAPACKE_spttrf_work(n, d, e); }
int pttrs(int n, int count, const double* d, const double* e, double* x) { return LAPACKE_dpttrs_work(LAPACK_COL_MAJOR, n, count, d, e, x, n); }
int pttrs(int n, int count, const float* d, const float* e, float* x) { return LAPACKE_spttrs_work(LAPACK_COL_MAJOR, n, count, d, e, x, n); }

}  // namespace

template <class T>
bool FactoredLapack<T>::factor(const T* lower, const T* diag, const T* upper) {
    const std::int64_t all = rows_ * matrices_;
    diag_.assign(diag, diag + all), upper_.assign(upper, upper + all);
    if (!positive_) lower_.assign(lower, lower + all), second_.resize(static_cast<std::size_t>(all)), pivot_.resize(static_cast<std::size_t>(all));
    const int n = static_cast<int>(rows_);
    int bad = 0;
    for (std::int64_t at = 0; at < all; at += rows_)
        bad |= positive_ ? pttrf(n, diag_.data() + at, upper_.data() + at)
                         : gttrf(n, lower_.data() + at + 1, diag_.data() + at, upper_.data() + at, second_.data() + at, pivot_.data() + at);
    return bad == 0;
}

template <class T>
bool FactoredLapack<T>::solve(T* x, std::int64_t systems) {
    const int n = static_cast<int>(rows_), count = static_cast<int>(matrices_ == 1 ? systems : 1);
    int bad = 0;
    for (std::int64_t at = 0; at < rows_ * matrices_; at += rows_)
        bad |= positive_ ? pttrs(n, count, diag_.data() + at, upper_.data() + at, x + at)
                         : gttrs(n, count, lower_.data() + at + 1, diag_.data() + at, upper_.data() + at, second_.data() + at, pivot_.data() + at, x + at);
    return bad == 0;
}

template class FactoredLapack<float>;
template class FactoredLapack<double>;

}  // namespace trifold::bench
