// SPDX-License-Identifier: BSD-3-Clause
#include "bench/baselines/heat_lapack.hpp"

#include <lapacke.h>

namespace trifold::bench {
namespace {

void factor(std::int64_t n, double* d, double* e) { LAPACKE_dpttrf_work(static_cast<lapack_int>(n), d, e); }
void factor(std::int64_t n, float* d, float* e) { LAPACKE_spttrf_work(static_cast<lapack_int>(n), d, e); }
void solve(std::int64_t n, std::int64_t count, const double* d, const double* e, double* b) {
    LAPACKE_dpttrs_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(n), static_cast<lapack_int>(count), d, e, b, static_cast<lapack_int>(n));
}
void solve(std::int64_t n, std::int64_t count, const float* d, const float* e, float* b) {
    LAPACKE_spttrs_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(n), static_cast<lapack_int>(count), d, e, b, static_cast<lapack_int>(n));
}

}  // namespace

template <class T>
HeatLapack<T>::HeatLapack(std::int64_t n, double number)
    : n_(n), number_(static_cast<T>(number)), diag_(static_cast<std::size_t>(n), static_cast<T>(1 + number)), off_(diag_.size() - 1, static_cast<T>(-number / 2)),
      increment_(diag_.size() * diag_.size() * diag_.size()), plane_(diag_.size() * diag_.size()) {
    diag_.front() += number_ / 2, diag_.back() += number_ / 2;  // mirrored about 0 in the sides
    factor(n, diag_.data(), off_.data());
}

template <class T>
void HeatLapack<T>::step(T* u) {
    const std::int64_t n = n_, plane = n * n;
    T* const d = increment_.data();
    for (std::int64_t z = 0; z < n; ++z)
        for (std::int64_t y = 0; y < n; ++y) {
            const T* const row = u + z * plane + y * n;
            T* const to = d + z * plane + y * n;
            for (std::int64_t x = 0; x < n; ++x) {
                const T own = row[x];
                T sum = (x > 0 ? row[x - 1] : -own) + (x + 1 < n ? row[x + 1] : -own);
                sum += (y > 0 ? row[x - n] : -own) + (y + 1 < n ? row[x + n] : -own);
                sum += (z > 0 ? row[x - plane] : -own) + (z + 1 < n ? row[x + plane] : -own);
                to[x] = number_ * (sum - 6 * own);
            }
        }
    solve(n, plane, diag_.data(), off_.data(), d);
    constexpr std::int64_t tile = 16;
    const auto turn = [&](const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride) {
        for (std::int64_t i = 0; i < n; i += tile)
            for (std::int64_t j = 0; j < n; j += tile)
                for (std::int64_t k = i; k < i + tile && k < n; ++k)
                    for (std::int64_t l = j; l < j + tile && l < n; ++l) to[l * to_stride + k] = from[k * from_stride + l];
    };
    for (std::int64_t z = 0; z < n; ++z) {
        turn(d + z * plane, n, plane_.data(), n);
        solve(n, n, diag_.data(), off_.data(), plane_.data());
        turn(plane_.data(), n, d + z * plane, n);
    }
    for (std::int64_t y = 0; y < n; ++y) {
        turn(d + y * n, plane, plane_.data(), n);
        solve(n, n, diag_.data(), off_.data(), plane_.data());
        turn(plane_.data(), n, d + y * n, plane);
    }
    for (std::int64_t i = 0; i < n * plane; ++i) u[i] += d[i];
}

template class HeatLapack<float>;
template class HeatLapack<double>;

}  // namespace trifold::bench
