// SPDX-License-Identifier: BSD-3-Clause
// The five arrays of the largest system that a suite solves on many devices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::bench {

/// Diagonal 2.5 times its neighbours or more; -1, 2, -1, which does not forget; uniform in -1 … 1, which needs pivots and forgets.
enum class Matrix { dominant, poisson, random };
inline constexpr const char* matrix_names[] = {"dominant", "poisson", "random"};

/// Five arrays for the largest system; smaller ones and other types are their beginnings.
class Arrays {
public:
    explicit Arrays(std::size_t bytes) {
        for (AlignedBuffer& buffer : buffers_) buffer = AlignedBuffer(bytes);
    }

    template <class T>
    void fill(Matrix kind, std::int64_t rows) {
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::uint64_t z = mixed(i);
            const double a = static_cast<double>(z >> 44) * 0x1p-20, b = static_cast<double>(z >> 24 & 0xfffff) * 0x1p-20, c = static_cast<double>(z >> 4 & 0xfffff) * 0x1p-20;
            const bool dominant = kind == Matrix::dominant, poisson = kind == Matrix::poisson;
            at<T>(0)[i] = static_cast<T>(dominant ? -0.5 - 0.5 * a : poisson ? -1 : 2 * a - 1);
            at<T>(1)[i] = static_cast<T>(dominant ? 5 + b : poisson ? 2 : 2 * b - 1);
            at<T>(2)[i] = static_cast<T>(dominant ? -0.5 - 0.5 * c : poisson ? -1 : 2 * c - 1);
            at<T>(3)[i] = right_side<T>(i), at<T>(4)[i] = 0;
        }
    }

    /// After a solve in place.
    template <class T>
    void refill_rhs(std::int64_t rows) {
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < rows; ++i) at<T>(3)[i] = right_side<T>(i);
    }

    template <class T>
    T* at(int k) const {
        return static_cast<T*>(buffers_[k].data());
    }
    const AlignedBuffer& buffer(int k) const { return buffers_[k]; }

    template <class T>
    tridiagonal::Problem problem(std::int64_t rows, bool in_place) const {
        const auto view = [&](int k) { return View<const T>::rows(std::span<const T>(at<T>(k), static_cast<std::size_t>(rows))); };
        tridiagonal::Problem p;
        p.matrix = {view(0), view(1), view(2)}, p.rhs = view(3);
        p.x = View<T>::rows(std::span<T>(at<T>(in_place ? 3 : 4), static_cast<std::size_t>(rows)));
        return p;
    }

    /// max |rhs - A x| / (max row sum of |A| × max |x|), in double precision.
    template <class T>
    double backward_error(std::int64_t rows, bool in_place) const {
        double off = 0, most_x = 0, most_a = 0;
        const T* const x = at<T>(in_place ? 3 : 4);
#pragma omp parallel for schedule(static) reduction(max : off, most_x, most_a)
        for (std::int64_t i = 0; i < rows; ++i) {
            const double l = i > 0 ? at<T>(0)[i] : T(0), d = at<T>(1)[i], u = i + 1 < rows ? at<T>(2)[i] : T(0);
            const double b = in_place ? right_side<T>(i) : at<T>(3)[i];
            const double r = b - (i > 0 ? l * x[i - 1] : 0) - d * x[i] - (i + 1 < rows ? u * x[i + 1] : 0);
            off = std::max(off, std::isfinite(r) ? std::abs(r) : INFINITY);
            most_x = std::max(most_x, std::abs(static_cast<double>(x[i]))), most_a = std::max(most_a, std::abs(l) + std::abs(d) + std::abs(u));
        }
        return off / (most_a * most_x);
    }

private:
    static std::uint64_t mixed(std::int64_t row) { return static_cast<std::uint64_t>(row + 1) * 0x9e3779b97f4a7c15u; }
    template <class T>
    static T right_side(std::int64_t row) {
        return static_cast<T>(static_cast<double>(mixed(row) >> 4 & 0xfffff) * 0x1p-20 - 0.5);
    }

    AlignedBuffer buffers_[5];
};

}  // namespace trifold::bench
