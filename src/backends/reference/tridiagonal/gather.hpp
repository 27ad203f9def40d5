// SPDX-License-Identifier: BSD-3-Clause
// One operand of one system → a contiguous array, whatever it is: strided view, scalar or generator. And x back.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "backends/reference/tridiagonal/bands.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::tridiagonal::reference {

/// out[i] = the operand's row first + i in the system with the user's number `number`.
template <class T>
void gather(const Operand& from, std::int64_t number, std::int64_t first, std::span<T> out) {
    const std::int64_t count = static_cast<std::int64_t>(out.size());
    if (count == 0) return;
    switch (from.kind) {
        case Operand::Kind::scalar: std::ranges::fill(out, static_cast<T>(from.value)); return;
        case Operand::Kind::view:
            for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<const T*>(from.data)[(first + i) * from.row_stride];
            return;
        case Operand::Kind::generator:
            if constexpr (std::is_same_v<T, float>)
                from.generator->fill_f32(out.data(), first + from.generator_shift, count, number, 1, from.generator->parameters);
            else
                from.generator->fill_f64(out.data(), first + from.generator_shift, count, number, 1, from.generator->parameters);
    }
}

/// The whole of a system with levels == 0. A ring of one or two rows becomes a plain system, its corners added to the entries
/// that they stand upon; returns whether it still is a ring.
template <class T>
bool gather(const System& system, Ring<T>& ring) {
    const std::int64_t n = system.rows;
    const Bands<T>& s = ring.bands;
    s.lower[0] = s.upper[n - 1] = 0;
    gather(system.lower, system.number, 1, s.lower.subspan(1));
    gather(system.diag, system.number, 0, s.diag);
    gather(system.upper, system.number, 0, s.upper.first(n - 1));
    gather(system.rhs, system.number, 0, s.x);
    ring.top_right = ring.bottom_left = 0;
    if (!system.periodic) return false;
    gather(system.top_right, system.number, 0, std::span<T>(&ring.top_right, 1));
    gather(system.bottom_left, system.number, 0, std::span<T>(&ring.bottom_left, 1));
    if (n > 2) return true;
    if (n == 1) s.diag[0] += ring.top_right + ring.bottom_left;
    if (n == 2) s.upper[0] += ring.top_right, s.lower[1] += ring.bottom_left;
    ring.top_right = ring.bottom_left = 0;
    return false;
}

template <class T>
void scatter(const System& system, std::span<const T> x) {
    T* const to = static_cast<T*>(system.x.data);
    for (std::int64_t i = 0; i < system.rows; ++i) {
        T& place = to[i * system.x.row_stride];
        place = system.accumulate ? place + x[i] : x[i];
    }
}

/// The first row with a coefficient or right-hand side that is NaN or infinite, or -1.
template <class T>
std::int64_t first_not_finite(const Ring<T>& ring) {
    const Bands<T>& s = ring.bands;
    const std::int64_t n = s.rows();
    const auto bad = [](T value) { return !std::isfinite(value); };
    for (std::int64_t i = 0; i < n; ++i)
        if (bad(s.lower[i]) || bad(s.diag[i]) || bad(s.upper[i]) || bad(s.x[i]) || (i == 0 && bad(ring.top_right)) ||
            (i == n - 1 && bad(ring.bottom_left)))
            return i;
    return -1;
}

}  // namespace trifold::tridiagonal::reference
