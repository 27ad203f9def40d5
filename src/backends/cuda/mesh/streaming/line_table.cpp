// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/line_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cuda/mesh/rings.hpp"
#include "problems/mesh/line_ends.hpp"

namespace trifold::cuda::streaming {

using mesh::Checked;

namespace {

// As in tridiagonal/shared/segment.cuh.
constexpr int accepted_growth = 6;

template <class T>
constexpr T limit = sizeof(T) == 8 ? T(1e290) : T(1e30);

template <class T>
struct Ends {
    T e, p, c, alpha, beta, scale, last, first_growth;
};

}  // namespace

const char* unknown_matrix(const Checked& checked, int sweep, int line) {
    const mesh::CheckedSweep& one = checked.sweeps[static_cast<std::size_t>(sweep)];
    const LineSolve& solve = one.sweep->lines[static_cast<std::size_t>(line)];
    if (!solve.coefficients) return nullptr;
    if (!solve.same_on_every_line) return "matrices differ from line to line";
    if (one.coefficients[static_cast<std::size_t>(line)].fields > 0) return "a matrix is read from fields";
    if (mesh::mentions(solve.coefficients, "step")) return "a matrix changes from step to step";
    return nullptr;
}

template <class T>
void open(LineMatrix<T>& m) {
    OpenedRing<T> ring = open_ring(Bands<T>{m.lower, m.diag, m.upper});
    m.lower.front() = -m.diag.front(), m.upper.back() = 0;
    m.diag.front() = ring.first, m.diag.back() = ring.last;
    m.q = std::move(ring.q), m.weight = ring.weight, m.scale = ring.scale, m.opened = ring.safe;
}

namespace {

/// Per segment how it enters what closes a ring, and what it loses: last_row(s) is its last row. Of a line that is no ring, nothing.
template <class T, class LastRow>
std::vector<T> closing_of(const LineMatrix<T>& m, const std::vector<T>& begins, int segments, LastRow last_row) {
    std::vector<T> closing;
    for (int s = 0; !m.q.empty() && s < segments; ++s) {
        const bool first = s == 0, last = s == segments - 1;
        closing.insert(closing.end(), {first ? m.scale : T(0), first ? -m.scale * begins[1] : last ? m.scale * m.weight : T(0), m.q[static_cast<std::size_t>(last_row(s))], T(0)});
    }
    return closing;
}

}  // namespace

template <class T>
LineMatrix<T> matrix_of(const Checked& checked, int sweep, int line) {
    const Sweep& one = *checked.sweeps[static_cast<std::size_t>(sweep)].sweep;
    const LineSolve& solve = one.lines[static_cast<std::size_t>(line)];
    const std::int64_t n = checked.problem->shape.along(solve.axis);
    Bands<T> bands = bands_of<T>(solve, *checked.problem);
    LineMatrix<T> m;
    m.lower = std::move(bands.lower), m.diag = std::move(bands.diag), m.upper = std::move(bands.upper);
    const mesh::LineEnds<T> ends = mesh::fold_ends(one.solution[static_cast<std::size_t>(solve.axis)], n, m.lower.data(), m.diag.data(), m.upper.data());
    m.low = ends.low, m.high = ends.high;
    if (ends.ring) open(m);
    else m.lower.front() = m.upper.back() = 0;
    return m;
}

bool is_ring(const mesh::CheckedSweep& sweep, const MeshShape& shape, int axis) {
    return sweep.sweep->solution[static_cast<std::size_t>(axis)].low.edge == Edge::periodic && shape.along(axis) > 2;
}

template <class T>
bool same_rows(const LineMatrix<T>& m) {
    bool same = m.diag.size() > 2;
    for (std::size_t i = 2; i + 1 < m.diag.size(); ++i) same = same && m.lower[i] == m.lower[1] && m.diag[i] == m.diag[1] && m.upper[i] == m.upper[1];
    return same;
}

namespace {

/// Segments of R rows, eliminated: row(s, i) is row i of segment s; -1: there is none before the segment's first one; n and beyond: rows of the identity.
template <class T, class Row>
struct Eliminated {
    std::vector<T> factors, reach, joins, begins;
    bool safe = true;

    Eliminated(const LineMatrix<T>& m, int R, int S, Row row_of) : factors(static_cast<std::size_t>(4 * R * S)), reach(static_cast<std::size_t>(R * S)), joins(static_cast<std::size_t>(4 * S)) {
        const auto n = static_cast<int>(m.diag.size());
        const auto at = [&](const std::vector<T>& band, int i, T beyond) { return i < n ? band[static_cast<std::size_t>(i)] : beyond; };
        std::vector<Ends<T>> ends(static_cast<std::size_t>(S));
        for (int s = 0; s < S; ++s) {
            T* const f = factors.data() + 4 * R * s;
            T worst = 0, scale = 0, first = 0, reached = 1, alpha = 0, upper = 0, fill = -1, inverse = 0, u_before = 0, p = 0, e = 0, u = 0;
            const auto eliminate = [&](int row, T a) {
                const T b = at(m.diag, row, T(1)), c = at(m.upper, row, T(0));
                p = std::fma(-a, upper, b), e = -a * fill;
                u = std::fabs(p) + std::fabs(c) + std::fabs(e);
                const T q = std::fma(std::fabs(a * inverse), u_before, u);
                if (row < n) {
                    safe = safe && q <= limit<T>;
                    worst = std::max(worst, q), scale = std::max(scale, std::fabs(a) + std::fabs(b) + std::fabs(c));
                }
            };
            bool begun = false;
            for (int i = 0; i < R - 1; ++i) {
                const int row = row_of(s, i);
                if (row < 0) continue;  // all factors are zero
                const T a = at(m.lower, row, T(0)), c = at(m.upper, row, T(0));
                eliminate(row, a);
                inverse = 1 / p;
                const T growth = std::fabs(reached * inverse) * u;
                safe = safe && growth <= limit<T>;
                first = std::max(first, growth);
                upper = c * inverse, fill = e * inverse, u_before = u;
                alpha = std::fma(reached, fill, alpha);
                f[i] = inverse, f[R + i] = begun ? a * inverse : T(0), f[2 * R + i] = upper, f[3 * R + i] = fill;
                reach[static_cast<std::size_t>(s * R + i)] = reached;
                reached *= -upper, begun = true;
            }
            const int row = row_of(s, R - 1);
            const T a = at(m.lower, row, T(0)), c = at(m.upper, row, T(0));
            eliminate(row, a);
            f[R - 1] = 1, f[2 * R - 1] = begun ? a : T(0), f[3 * R - 1] = f[4 * R - 1] = 0;
            ends[static_cast<std::size_t>(s)] = {e, p, c, alpha, -reached, scale, u, first};
            begins.insert(begins.end(), {alpha, -reached});
            safe = safe && worst <= T(accepted_growth) * scale;
        }
        T upper_before = 0, inverse_before = 0, u_before = 0;
        for (int s = 0; s < S; ++s) {
            const Ends<T>& own = ends[static_cast<std::size_t>(s)];
            T p = own.p, upper = 0, coupling = 0, grown = own.last;
            if (s + 1 < S) {
                const Ends<T>& next = ends[static_cast<std::size_t>(s) + 1];
                coupling = own.c;
                p = std::fma(-coupling, next.alpha, p), upper = -coupling * next.beta;
                grown = std::max(grown, std::fabs(coupling) * next.first_growth);
            }
            const T lower = s ? own.e : T(0), pivot = std::fma(-lower, upper_before, p), u = std::fabs(pivot) + std::fabs(upper);
            const T q = std::max(std::fma(std::fabs(lower * inverse_before), u_before, u), grown);
            const bool padding = own.e == T(0) && own.p == T(1) && own.c == T(0);
            const T inverse = 1 / pivot;
            safe = safe && (padding || q <= T(accepted_growth) * own.scale) && q <= limit<T> && std::fabs(inverse) <= limit<T>;
            T* const j = joins.data() + 4 * s;
            j[0] = coupling, j[1] = lower * inverse, j[2] = inverse, j[3] = upper * inverse;
            upper_before = upper * inverse, inverse_before = inverse, u_before = u;
        }
    }
};

}  // namespace

template <class T>
LineTable<T>::LineTable(const LineMatrix<T>& matrix, int R, int S) {
    Eliminated eliminated(matrix, R, S, [&](int s, int i) { return s * R + i; });
    factors = std::move(eliminated.factors), joins = std::move(eliminated.joins), reach = std::move(eliminated.reach), begins = std::move(eliminated.begins);
    safe = eliminated.safe && matrix.opened;
    if (matrix.q.empty()) return;
    safe = safe && S > 1 && static_cast<std::size_t>(R * S) == matrix.q.size();
    if (safe) closing = closing_of(matrix, begins, S, [&](int s) { return s * R + R - 1; });
    else closing.assign(static_cast<std::size_t>(4 * S), T(0));
}

template <class T>
LaneTable<T>::LaneTable(const LineMatrix<T>& matrix, int R, int lanes, bool alike) {
    const int n = static_cast<int>(matrix.diag.size()), segments = (n + R - 1) / R;
    const Eliminated table(matrix, R, lanes, [&](int s, int i) { return s != segments - 1 ? s * R + i : n - R + i < s * R ? -1 : n - R + i; });
    safe = table.safe && matrix.opened && (matrix.q.empty() || segments > 1);
    const auto factor = [&](int s, int which, int i) { return table.factors[static_cast<std::size_t>((4 * s + which) * R + i)]; };
    std::vector<int> kept;
    if (alike) kept = {0, 1, segments - 1};
    else for (int s = 0; s < lanes; ++s) kept.push_back(s);
    values.reserve(static_cast<std::size_t>((5 * R + 4) * lanes));
    for (const int which : {0, 2})
        for (int i = 0; i < R; ++i)
            for (const int s : kept) values.push_back(factor(s, which, i)), values.push_back(factor(s, which + 1, i));
    for (int i = 0; i < R; ++i)
        for (const int s : kept) values.push_back(table.reach[static_cast<std::size_t>(s * R + i)]);
    while (values.size() * sizeof(T) % 16) values.push_back(0);
    values.insert(values.end(), table.joins.begin(), table.joins.end());
    std::vector<T> closing = closing_of(matrix, table.begins, segments, [&](int s) { return std::min(s * R + R, n) - 1; });
    if (!closing.empty()) closing.resize(static_cast<std::size_t>(4 * lanes));
    values.insert(values.end(), closing.begin(), closing.end());
    // Row sums of |M^-1| for the unit bidiagonal M of both recurrences; |M||M^-1| has at most twice as much.
    constexpr T accepted = 50;
    T up = 0, down = 0;
    for (int s = 0; s < lanes; ++s) {
        up = 1 + std::fabs(table.joins[static_cast<std::size_t>(4 * s + 1)]) * up;
        down = 1 + std::fabs(table.joins[static_cast<std::size_t>(4 * (lanes - 1 - s) + 3)]) * down;
        safe = safe && up <= accepted && down <= accepted;
    }
}

template bool same_rows(const LineMatrix<float>&);
template bool same_rows(const LineMatrix<double>&);
template void open(LineMatrix<float>&);
template void open(LineMatrix<double>&);
template LineMatrix<float> matrix_of<float>(const Checked&, int, int);
template LineMatrix<double> matrix_of<double>(const Checked&, int, int);
template struct LineTable<float>;
template struct LineTable<double>;
template struct LaneTable<float>;
template struct LaneTable<double>;

}  // namespace trifold::cuda::streaming
