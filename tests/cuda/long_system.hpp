// SPDX-License-Identifier: BSD-3-Clause
// Long systems on the GPU for tests: their solution in twice the precision, and what a good one is.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <type_traits>

#include "cuda/gpu.hpp"

namespace trifold::tests {

using tridiagonal::Algorithm;

/// LU with partial pivoting in twice the precision: what x would be.
template <class T>
struct System {
    using Twice = std::conditional_t<sizeof(T) == 4, double, long double>;
    std::vector<T> lower, diag, upper, rhs;

    explicit System(std::size_t n) : lower(n), diag(n), upper(n), rhs(n) {}
    std::size_t size() const { return diag.size(); }

    std::vector<Twice> exact() const { return eliminated<Twice>(); }

    template <class U>
    std::vector<U> eliminated() const {
        const std::size_t n = size();
        std::vector<U> p(n), u(n), w(n), y(n);
        U d = diag[0], s = n > 1 ? upper[0] : 0, f = rhs[0];
        for (std::size_t i = 0; i + 1 < n; ++i) {
            const U a = lower[i + 1], b = diag[i + 1], c = i + 2 < n ? upper[i + 1] : 0, g = rhs[i + 1];
            if (std::abs(a) > std::abs(d)) {
                const U m = d / a;
                p[i] = a, u[i] = b, w[i] = c, y[i] = g;
                d = s - m * b, s = -m * c, f = f - m * g;
            } else {
                const U m = a / d;
                p[i] = d, u[i] = s, w[i] = 0, y[i] = f;
                d = b - m * s, s = c, f = g - m * f;
            }
        }
        std::vector<U> x(n + 2, 0);
        x[n - 1] = f / d;
        for (std::size_t i = n - 1; i-- > 0;) x[i] = (y[i] - u[i] * x[i + 1] - w[i] * x[i + 2]) / p[i];
        x.resize(n);
        return x;
    }

    tridiagonal::Problem problem(std::vector<T>& x) const {
        tridiagonal::Problem p;
        p.matrix.lower = View<const T>::rows(lower), p.matrix.diag = View<const T>::rows(diag),
        p.matrix.upper = View<const T>::rows(upper);
        p.rhs = View<const T>::rows(rhs), p.x = View<T>::rows(x);
        return p;
    }
};

class LongSystem : public OnGpu {
protected:
    template <class T>
    Outcome solve(System<T>& system, std::vector<T>& x, Algorithm algorithm) {
        tridiagonal::Options options;
        options.algorithm = algorithm;
        x.assign(system.size(), std::numeric_limits<T>::quiet_NaN());
        return tridiagonal::solve(*queue, system.problem(x), options);
    }

    /// On the device, each array `off` elements into its memory, `step` elements from row to row.
    template <class T>
    Outcome solve_there(const System<T>& system, std::vector<T>& x, std::int64_t off = 0, bool in_place = false, Algorithm algorithm = Algorithm::automatic, std::int64_t step = 1) {
        std::vector<DeviceArray<T>> arrays;
        const auto place = [&](std::size_t i) { return static_cast<std::size_t>(off) + i * static_cast<std::size_t>(step); };
        std::vector<T> padded(place(system.size()));
        for (const std::vector<T>* const from : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.rhs}) {
            for (std::size_t i = 0; i < from->size(); ++i) padded[place(i)] = (*from)[i];
            arrays.emplace_back(*queue, std::span<const T>(padded));
        }
        const auto at = [&](int k) { return View<T>::strided(arrays[static_cast<std::size_t>(k)].data() + off, {static_cast<std::int64_t>(system.size()), step}, {}, Memory{}); };
        tridiagonal::Problem problem;
        problem.matrix.lower = at(0), problem.matrix.diag = at(1), problem.matrix.upper = at(2);
        problem.rhs = at(in_place ? 4 : 3), problem.x = at(4);
        tridiagonal::Options options;
        options.algorithm = algorithm;
        const Outcome outcome = tridiagonal::solve(*queue, problem, options);
        arrays[4].download(std::span<T>(padded));
        x.resize(system.size());
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = padded[place(i)];
        return outcome;
    }

    /// Where there is a certificate it bounds the true error; the residual of every row is small in any case.
    template <class T>
    void expect_good(const System<T>& system, const std::vector<T>& x, const Outcome& outcome) {
        ASSERT_TRUE(outcome.ok()) << name_of(outcome.reason);
        using Twice = typename System<T>::Twice;
        const std::vector<Twice> truth = system.exact();
        Twice error = 0, largest = 0;
        const std::size_t n = system.size();
        for (std::size_t i = 0; i < n; ++i) {
            error = std::max(error, std::abs(static_cast<Twice>(x[i]) - truth[i])),
            largest = std::max(largest, std::abs(truth[i]));
            ASSERT_TRUE(std::isfinite(x[i]));
        }
        if (std::isfinite(outcome.certificate)) EXPECT_LE(error, outcome.certificate * largest * (1 + 1e-3));
        expect_small_residual(system, x, largest);
    }

    /// Beside the largest |x|.
    template <class T>
    void expect_small_residual(const System<T>& system, const std::vector<T>& x, typename System<T>::Twice largest) {
        using Twice = typename System<T>::Twice;
        const std::size_t n = system.size();
        Twice worst = 0, size = 0;
        for (std::size_t i = 0; i < n; ++i) {
            Twice r = system.rhs[i], m = std::abs(static_cast<Twice>(system.diag[i]));
            r -= static_cast<Twice>(system.diag[i]) * x[i];
            if (i > 0)
                r -= static_cast<Twice>(system.lower[i]) * x[i - 1],
                    m += std::abs(static_cast<Twice>(system.lower[i]));
            if (i + 1 < n)
                r -= static_cast<Twice>(system.upper[i]) * x[i + 1],
                    m += std::abs(static_cast<Twice>(system.upper[i]));
            worst = std::max(worst, std::abs(r)), size = std::max(size, m);
        }
        EXPECT_LE(worst, 40 * unit_roundoff(sizeof(T) == 8 ? DType::f64 : DType::f32) * size * largest);
    }
};

template <class T>
System<T> random_system(std::size_t n, double dominance, std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(-1, 1), scale(-2, 2);
    System<T> s(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double size = std::exp(scale(random));
        s.lower[i] = static_cast<T>(size * any(random)), s.upper[i] = static_cast<T>(size * any(random)),
        s.rhs[i] = static_cast<T>(any(random));
        const double sum = std::abs(s.lower[i]) + std::abs(s.upper[i]);
        s.diag[i] = static_cast<T>((any(random) < 0 ? -1 : 1) * (dominance * sum + 1e-3 * size));
    }
    return s;
}

}  // namespace trifold::tests
