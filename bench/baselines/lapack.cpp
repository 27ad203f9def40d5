// SPDX-License-Identifier: BSD-3-Clause
// LAPACK's tridiagonal solvers through LAPACKE's _work calls: the plain ones scan all arrays for NaN first.
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/baselines/baseline.hpp"

extern "C" __attribute__((weak)) void openblas_set_num_threads(int);  // as in harness/machine.cpp

namespace trifold::bench {

void set_blas_threads(int threads) {
    if (openblas_set_num_threads) openblas_set_num_threads(threads);
}

namespace {

bool gtsv(std::int64_t n, double* lower, double* diag, double* upper, double* x) {
    return LAPACKE_dgtsv_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(n), 1, lower, diag, upper, x, static_cast<lapack_int>(n)) == 0;
}
bool gtsv(std::int64_t n, float* lower, float* diag, float* upper, float* x) {
    return LAPACKE_sgtsv_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(n), 1, lower, diag, upper, x, static_cast<lapack_int>(n)) == 0;
}
bool ptsv(std::int64_t n, double* diag, double* off, double* x) {
    return LAPACKE_dptsv_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(n), 1, diag, off, x, static_cast<lapack_int>(n)) == 0;
}
bool ptsv(std::int64_t n, float* diag, float* off, float* x) {
    return LAPACKE_sptsv_work(LAPACK_COL_MAJOR, static_cast<lapack_int>(n), 1, diag, off, x, static_cast<lapack_int>(n)) == 0;
}

bool too_long(const Layout& layout) { return layout.rows > std::numeric_limits<lapack_int>::max(); }

class Gtsv : public OverwritingBaseline {
public:
    std::string name() const override { return "LAPACK gtsv"; }
    std::string load(const io::TridiagonalData& data) override {
        const std::string why = OverwritingBaseline::load(data);
        return why.empty() && too_long(layout_) ? "counts rows in 32 bits" : why;
    }
    bool solve() override { return data_->rhs.dtype() == DType::f32 ? run<float>() : run<double>(); }

private:
    template <class T>
    bool run() {
        bool good = true;
        for (std::int64_t s = 0; s < layout_.outer; ++s) {
            const std::int64_t at = s * layout_.rows;
            good = gtsv(layout_.rows, lower_.as<T>() + at + 1, diag_.as<T>() + at, upper_.as<T>() + at, rhs_.as<T>() + at) && good;
        }
        return good;
    }
};

/// Ours need not be symmetric: the matrix here has our upper off-diagonal on both sides and dominates it by two.
class Ptsv : public OverwritingBaseline {
public:
    std::string name() const override { return "LAPACK ptsv"; }
    std::string load(const io::TridiagonalData& data) override {
        const std::string why = OverwritingBaseline::load(data);
        return why.empty() && too_long(layout_) ? "counts rows in 32 bits" : why;
    }
    void restore() override {
        OverwritingBaseline::restore();
        if (data_->rhs.dtype() == DType::f32) dominate<float>();
        else dominate<double>();
    }
    bool solve() override { return data_->rhs.dtype() == DType::f32 ? run<float>() : run<double>(); }
    bool verifies() const override { return false; }

private:
    template <class T>
    void dominate() {
        T *diag = diag_.as<T>(), *off = upper_.as<T>();
        const std::int64_t n = layout_.rows, all = n * layout_.outer;
#pragma omp parallel for
        for (std::int64_t k = 0; k < all; ++k)
            diag[k] = 2 * ((k % n > 0 ? std::fabs(off[k - 1]) : T(0)) + std::fabs(off[k])) + std::numeric_limits<T>::min();
    }
    template <class T>
    bool run() {
        bool good = true;
        for (std::int64_t s = 0; s < layout_.outer; ++s) {
            const std::int64_t at = s * layout_.rows;
            good = ptsv(layout_.rows, diag_.as<T>() + at, upper_.as<T>() + at, rhs_.as<T>() + at) && good;
        }
        return good;
    }
};

}  // namespace

std::unique_ptr<Baseline> lapack_gtsv() { return std::make_unique<Gtsv>(); }
std::unique_ptr<Baseline> lapack_ptsv() { return std::make_unique<Ptsv>(); }

}  // namespace trifold::bench
