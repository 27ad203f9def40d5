// SPDX-License-Identifier: BSD-3-Clause
#include "support/truth.hpp"

#include <utility>

namespace trifold::tests {
namespace {

using Vector = std::vector<DoubleDouble>;

// Gaussian elimination with row exchanges on a moving pair of rows; U's three diagonals are kept.
TRIFOLD_ALSO_WITH_FMA Vector tridiagonal(const Bands<double>& s, const Vector& rhs) {
    const std::int64_t n = s.rows();
    Vector u0(n), u1(n), u2(n), x(n);
    DoubleDouble d = s.diag[0], u = n > 1 ? s.upper[0] : 0.0, r = rhs[0];
    for (std::int64_t i = 0; i < n; ++i) {
        if (i + 1 == n) {
            u0[i] = d, x[i] = r;
            break;
        }
        // Row i: d x[i] + u x[i+1]; row i+1: a x[i] + b x[i+1] + c x[i+2].
        DoubleDouble a = s.lower[i + 1], b = s.diag[i + 1], c = i + 2 < n ? s.upper[i + 1] : 0.0, q = rhs[i + 1], e = 0.0;
        if (abs(a).hi > abs(d).hi) std::swap(a, d), std::swap(b, u), std::swap(c, e), std::swap(q, r);
        if (is_zero(d)) return {};
        const DoubleDouble l = a / d;
        u0[i] = d, u1[i] = u, u2[i] = e, x[i] = r;
        d = b - l * u;
        u = c - l * e;
        r = q - l * x[i];
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
        if (is_zero(u0[i])) return {};
        if (i + 1 < n) x[i] = x[i] - u1[i] * x[i + 1];
        if (i + 2 < n) x[i] = x[i] - u2[i] * x[i + 2];
        x[i] = x[i] / u0[i];
    }
    return x;
}

TRIFOLD_ALSO_WITH_FMA Vector dense(const Bands<double>& s) {
    const std::int64_t n = s.rows();
    std::vector<Vector> A(n, Vector(n + 1));
    for (std::int64_t i = 0; i < n; ++i) {
        A[i][i] = A[i][i] + s.diag[i];
        if (i > 0 || s.periodic) A[i][(i + n - 1) % n] = A[i][(i + n - 1) % n] + s.lower[i];
        if (i < n - 1 || s.periodic) A[i][(i + 1) % n] = A[i][(i + 1) % n] + s.upper[i];
        A[i][n] = s.rhs[i];
    }
    for (std::int64_t k = 0; k < n; ++k) {
        std::int64_t pivot = k;
        for (std::int64_t i = k + 1; i < n; ++i)
            if (abs(A[i][k]).hi > abs(A[pivot][k]).hi) pivot = i;
        if (is_zero(A[pivot][k])) return {};
        std::swap(A[k], A[pivot]);
        for (std::int64_t i = k + 1; i < n; ++i) {
            if (is_zero(A[i][k])) continue;
            const DoubleDouble l = A[i][k] / A[k][k];
            for (std::int64_t j = k; j <= n; ++j)
                if (!is_zero(A[k][j])) A[i][j] = A[i][j] - l * A[k][j];
        }
    }
    Vector x(n);
    for (std::int64_t i = n - 1; i >= 0; --i) {
        x[i] = A[i][n];
        for (std::int64_t j = i + 1; j < n; ++j) x[i] = x[i] - A[i][j] * x[j];
        x[i] = x[i] / A[i][i];
    }
    return x;
}

Vector bordered(const Bands<double>& s, const Vector& rhs) {
    const std::int64_t last = s.rows() - 1;
    Bands<double> leading = s;
    leading.periodic = false;
    for (auto* band : {&leading.lower, &leading.diag, &leading.upper, &leading.rhs}) band->pop_back();
    Vector top(rhs.begin(), rhs.end() - 1), border(last);
    border[0] = -DoubleDouble(s.lower[0]);
    border[last - 1] = border[last - 1] - s.upper[last - 1];
    const Vector y = tridiagonal(leading, top), z = tridiagonal(leading, border);
    if (y.empty() || z.empty()) return {};
    const DoubleDouble below = s.lower[last], corner = s.upper[last];
    const DoubleDouble pivot = DoubleDouble(s.diag[last]) + corner * z[0] + below * z[last - 1];
    if (is_zero(pivot)) return {};
    Vector x = y;
    x.push_back((rhs[last] - corner * y[0] - below * y[last - 1]) / pivot);
    for (std::int64_t i = 0; i < last; ++i) x[i] = x[i] + z[i] * x[last];
    return x;
}

}  // namespace

TRIFOLD_ALSO_WITH_FMA Vector true_solution(const Bands<double>& s) {
    const std::int64_t n = s.rows();
    if (n == 0) return {};
    const Vector rhs(s.rhs.begin(), s.rhs.end());
    if (!s.periodic) return tridiagonal(s, rhs);
    if (n < 200) return dense(s);
    Vector x = bordered(s, rhs);
    for (int step = 0; step < 2 && !x.empty(); ++step) {
        Vector rest(n);
        for (std::int64_t i = 0; i < n; ++i) rest[i] = rhs[i] - row_times(s, x, i);
        const Vector correction = bordered(s, rest);
        for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] + correction[i];
    }
    return x;
}

}  // namespace trifold::tests
