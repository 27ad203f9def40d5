// SPDX-License-Identifier: BSD-3-Clause
#include "support/zoo.hpp"

#include <cmath>

#include "support/double_double.hpp"
#include "support/lapack.hpp"

namespace trifold::tests {
namespace {

using System = Bands<double>;

void fill(System& s, auto&& lower, auto&& diag, auto&& upper) {
    for (std::int64_t i = 0; i < s.rows(); ++i) s.lower[i] = lower(i), s.diag[i] = diag(i), s.upper[i] = upper(i);
}

auto uniform(Random& random) {
    return [&random](std::int64_t) { return random.uniform(-1, 1); };
}

auto constant(double value) {
    return [value](std::int64_t) { return value; };
}

void uniform_bands(System& s, Random& random) { fill(s, uniform(random), uniform(random), uniform(random)); }

template <int Exponent>
void big_diagonal(System& s, Random& random) { fill(s, uniform(random), constant(std::pow(10.0, Exponent)), uniform(random)); }

void diagonal_64(System& s, Random& random) { fill(s, uniform(random), constant(64), uniform(random)); }

void lesp(System& s, Random&) {
    fill(s, [](std::int64_t i) { return 1.0 / double(i + 1); }, [](std::int64_t i) { return -(2.0 * double(i + 1) + 3); },
         [](std::int64_t i) { return double(i + 2); });
}

void one_tiny_lower(System& s, Random& random) {
    uniform_bands(s, random);
    s.lower[s.rows() / 2] *= 1e-50;
}

void half_zeros(System& s, Random& random) {
    uniform_bands(s, random);
    for (std::int64_t i = 0; i < s.rows(); ++i) {
        if (random.chance(0.5)) s.lower[i] = 0;
        if (random.chance(0.5)) s.upper[i] = 0;
    }
}

void inverse_kms(System& s, Random&) {
    const std::int64_t n = s.rows();
    fill(s, constant(-2.0 / 3), [n](std::int64_t i) { return i == 0 || i == n - 1 ? 4.0 / 3 : 5.0 / 3; }, constant(-2.0 / 3));
}

// Singular values from 1 down to 1e-15, in the modes of gallery('randsvd').
template <int Mode>
void randsvd(System& s, Random& random) {
    const std::int64_t n = s.rows();
    constexpr double smallest = 1e-15;
    std::vector<double> values(n, 1.0);
    for (std::int64_t i = 0; i < n; ++i) {
        const double part = n > 1 ? double(i) / double(n - 1) : 0;
        if (Mode == 1 && i > 0) values[i] = smallest;
        if (Mode == 2 && i == n - 1) values[i] = smallest;
        if (Mode == 3) values[i] = std::pow(smallest, part);
        if (Mode == 4) values[i] = 1 - part * (1 - smallest);
    }
    const bool periodic = s.periodic;
    s = with_singular_values(values, static_cast<unsigned>(random.bits() >> 40));
    s.periodic = periodic;
}

void tiny_lower(System& s, Random& random) {
    uniform_bands(s, random);
    for (double& value : s.lower) value *= 1e-50;
}

void dorr(System& s, Random&) {
    const std::int64_t n = s.rows();
    const double h = 1.0 / double(n + 1), t = 1e-4 / (h * h);
    const std::int64_t m = (n + 1) / 2;
    for (std::int64_t k = 1; k <= n; ++k) {
        const double drift = (0.5 - double(k) * h) / h;
        s.lower[k - 1] = k <= m ? -t : -t + drift;
        s.upper[k - 1] = k <= m ? -t - drift : -t;
        s.diag[k - 1] = -(s.lower[k - 1] + s.upper[k - 1]);
    }
}

void zero_diagonal(System& s, Random& random) { fill(s, uniform(random), constant(0), uniform(random)); }

template <int Exponent>
void ones_beside(System& s, Random&) { fill(s, constant(1), constant(std::pow(10.0, Exponent)), constant(1)); }

void toeplitz_spd(System& s, Random&) { fill(s, constant(-1), constant(4), constant(-1)); }
void toeplitz_skew(System& s, Random&) { fill(s, constant(-1), constant(4), constant(1)); }
void toeplitz_random(System& s, Random& random) { fill(s, constant(-1), constant(4), uniform(random)); }

// Zero diagonal, i below and n - i above, scaled by n so that it does not overflow for many rows.
void clement(System& s, Random&) {
    const double n = double(s.rows());
    fill(s, [n](std::int64_t i) { return double(i) / n; }, constant(0), [n](std::int64_t i) { return (n - 1 - double(i)) / n; });
}

// Rows whose scale runs over 10^-Decades … 10^Decades.
template <int Decades>
void graded(System& s, Random& random) {
    const std::int64_t n = s.rows();
    fill(s, uniform(random), [&](std::int64_t) { return random.uniform(2.2, 4); }, uniform(random));
    for (std::int64_t i = 0; i < n; ++i) {
        const double scale = std::pow(10.0, Decades * (2.0 * double(i) / double(n) - 1));
        s.lower[i] *= scale, s.diag[i] *= scale, s.upper[i] *= scale;
    }
}

void poisson(System& s, Random&) { fill(s, constant(-1), constant(2), constant(-1)); }

// |diag| = Ratio / 100 × (|lower| + |upper|), signs at random.
template <int Ratio>
void dominance(System& s, Random& random) {
    fill(s, uniform(random), constant(0), uniform(random));
    for (std::int64_t i = 0; i < s.rows(); ++i)
        s.diag[i] = (random.chance(0.5) ? -1 : 1) * (Ratio / 100.0) * (std::abs(s.lower[i]) + std::abs(s.upper[i]));
}

// Couplings cut at random places: independent systems in one.
void decoupled(System& s, Random& random) {
    uniform_bands(s, random);
    for (std::int64_t i = 0; i + 1 < s.rows(); ++i)
        if (random.chance(0.1)) s.upper[i] = s.lower[i + 1] = 0;
}

// One implicit step of diffusion through layers of very different conductivity: harmonic means at faces.
void diffusion(System& s, Random& random) {
    const std::int64_t n = s.rows();
    std::vector<double> k(n + 2);
    for (std::int64_t i = 0; i < n + 2; ++i) k[i] = i % 8 ? k[i - 1] : std::pow(10.0, random.uniform(-2, 2));
    const auto face = [&](std::int64_t i) { return 2 * k[i] * k[i + 1] / (k[i] + k[i + 1]); };
    fill(s, [&](std::int64_t i) { return -10 * face(i); }, [&](std::int64_t i) { return 1 + 10 * (face(i) + face(i + 1)); },
         [&](std::int64_t i) { return -10 * face(i + 1); });
}

constexpr ZooEntry entries[] = {
    {"1: uniform", uniform_bands, false, false, true},
    {"2: diagonal 1e8", big_diagonal<8>},
    {"3: lesp", lesp},
    {"4: one tiny lower", one_tiny_lower, false, false, true},
    {"5: half zeros", half_zeros, false, false, true},
    {"6: diagonal 64", diagonal_64},
    {"7: inverse of kms(0.5)", inverse_kms},
    {"8: randsvd mode 2", randsvd<2>, true, false, true},
    {"9: randsvd mode 3", randsvd<3>, true, false, true},
    {"10: randsvd mode 1", randsvd<1>, true, false, true},
    {"11: randsvd mode 4", randsvd<4>, true, false, true},
    {"12: tiny lower", tiny_lower, false, false, true},
    {"13: dorr", dorr, false, false, true},
    {"14: diagonal 1e-8", big_diagonal<-8>, false, false, true},
    {"15: zero diagonal", zero_diagonal, false, true, true},
    {"16: diagonal 1e-8, ones beside", ones_beside<-8>, false, false, true},
    {"17: diagonal 1e8, ones beside", ones_beside<8>},
    {"18: -1, 4, -1", toeplitz_spd},
    {"19: -1, 4, 1", toeplitz_skew},
    {"20: -1, 4, uniform", toeplitz_random},
    {"21: clement", clement, false, true, true},
    {"graded over 300 decades", graded<150>},
    {"graded over 30 decades", graded<15>},
    {"poisson", poisson},
    {"dominance 1.00", dominance<100>, false, false, true},
    {"dominance 1.01", dominance<101>},
    {"dominance 1.10", dominance<110>},
    {"dominance 2.00", dominance<200>},
    {"dominance 2.80", dominance<280>},
    {"decoupled", decoupled, false, false, true},
    {"diffusion", diffusion},
};

}  // namespace

std::span<const ZooEntry> zoo() { return entries; }

TRIFOLD_ALSO_WITH_FMA void set_rhs(Bands<double>& s, Random& random) {
    const std::int64_t n = s.rows();
    std::vector<DoubleDouble> x(n);
    for (std::int64_t i = 0; i < n; ++i) x[i] = random.normal(3, 1);
    for (std::int64_t i = 0; i < n; ++i) s.rhs[i] = static_cast<double>(row_times(s, x, i));
}

Bands<double> make(const ZooEntry& entry, std::int64_t rows, std::uint64_t seed, bool periodic) {
    Random random(seed);
    Bands<double> s(rows, periodic);
    entry.fill(s, random);
    if (!periodic && rows > 0) s.lower[0] = s.upper[rows - 1] = 0;
    set_rhs(s, random);
    return s;
}

}  // namespace trifold::tests
