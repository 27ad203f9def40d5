// SPDX-License-Identifier: BSD-3-Clause
#include "backends/reference/tridiagonal/line.hpp"

#include "backends/reference/tridiagonal/bordering.hpp"
#include "backends/reference/tridiagonal/cyclic_reduction.hpp"
#include "backends/reference/tridiagonal/error_bound.hpp"
#include "backends/reference/tridiagonal/gather.hpp"
#include "backends/reference/tridiagonal/pcr.hpp"
#include "backends/reference/tridiagonal/spike.hpp"
#include "backends/reference/tridiagonal/thomas.hpp"
#include "backends/reference/tridiagonal/truncated_spike.hpp"
#include "backends/reference/tridiagonal/twisted.hpp"

namespace trifold::tridiagonal::reference {
namespace {

template <class T>
Verdict run(Ring<T> ring, bool periodic, Algorithm algorithm, double tolerance, Scratch scratch) {
    const auto plain = [&](Verdict (*f)(Bands<T>, Scratch)) { return periodic ? bordered(ring, f, scratch) : f(ring.bands, scratch); };
    switch (algorithm) {
        case Algorithm::thomas: return plain(thomas<T>);
        case Algorithm::twisted: return plain(twisted<T>);
        case Algorithm::cyclic_reduction: return plain(cyclic_reduction<T>);
        case Algorithm::pcr: return plain(pcr<T>);
        case Algorithm::spike: return plain(spike<T>);
        case Algorithm::truncated_spike: return truncated_spike(ring, periodic, tolerance, scratch);
        default: return periodic ? ring_lu(ring, scratch) : lu(ring.bands, scratch);
    }
}

bool pivots(Algorithm algorithm) { return algorithm == Algorithm::automatic || algorithm == Algorithm::lu; }

}  // namespace

template <class T>
LineResult solve_line(const System& system, Algorithm algorithm, double tolerance, Scratch scratch) {
    const std::int64_t n = system.rows;
    const auto array = [&] { return scratch.take<T>(n); };
    Ring<T> ring{{array(), array(), array(), array()}};
    const std::span<T> x = array();
    const bool periodic = gather(system, ring);
    if (const std::int64_t row = first_not_finite(ring); row >= 0) return {{Reason::not_finite, row}};

    LineResult result{run(ring, periodic, algorithm, tolerance, scratch)};
    Verdict& verdict = result.verdict;
    if (!verdict.good()) return result;
    for (std::int64_t i = 0; i < n; ++i)
        if (!std::isfinite(ring.bands.x[i])) return {{pivots(algorithm) ? Reason::not_finite : Reason::unstable, i}};
    std::ranges::copy(ring.bands.x, x.begin());

    gather(system, ring);  // the algorithm has overwritten it
    Residual residual = residual_of(ring, std::span<const T>(x));
    const double u = unit_roundoff(dtype_of<T>);
    if (!pivots(algorithm) && algorithm != Algorithm::truncated_spike && residual.value > exact_residual * u && residual.value <= accepted_residual * u) {
        for (std::int64_t i = 0; i < n; ++i) ring.bands.x[i] = static_cast<T>(row_residual(ring, std::span<const T>(x), i).value);
        if (!run(ring, periodic, algorithm, tolerance, scratch).good()) return {{Reason::unstable, residual.row}, residual.value};
        for (std::int64_t i = 0; i < n; ++i) x[i] += ring.bands.x[i];
        gather(system, ring);
        residual = residual_of(ring, std::span<const T>(x));
        if (!(residual.value <= exact_residual * u)) return {{Reason::unstable, residual.row}, residual.value};
        verdict = {Reason::refined};
    }
    result.residual = residual.value;
    if (!pivots(algorithm) && !(residual.value <= accepted_residual * u)) {
        verdict = {Reason::unstable, residual.row};
        return result;
    }
    if (algorithm == Algorithm::truncated_spike && system.periodic && !periodic) {
        // A ring of one or two rows: nothing was truncated, and no bound knows what adding the corners to other entries has rounded.
        verdict = {Reason::exact};
    } else if (algorithm == Algorithm::truncated_spike) {
        verdict.certificate = error_bound(ring, std::span<const T>(x), periodic, scratch);
        if (!std::isfinite(verdict.certificate)) {
            verdict = {Reason::not_certified};
            return result;
        }
    }
    scatter(system, std::span<const T>(x));
    return result;
}

template LineResult solve_line<float>(const System&, Algorithm, double, Scratch);
template LineResult solve_line<double>(const System&, Algorithm, double, Scratch);

std::size_t line_bytes(const System& system, Algorithm algorithm) {
    const std::int64_t n = system.rows + 1, blocks = n / spike_rows + 1;
    const std::size_t size = size_of(system.dtype);
    const auto words = [&](std::int64_t arrays) { return static_cast<std::size_t>(arrays) * ((static_cast<std::size_t>(n) * size + 63) / 64 * 64); };
    const std::size_t factors = words(1) + Scratch::bytes_of<unsigned char>(n);
    std::size_t bytes = words(5);
    switch (algorithm) {
        case Algorithm::thomas:
        case Algorithm::twisted:
        case Algorithm::cyclic_reduction: break;
        case Algorithm::pcr: bytes += words(4); break;
        case Algorithm::spike: bytes += words(2) + factors + Scratch::bytes_of<double>(2 * blocks * 8) + 64; break;
        case Algorithm::truncated_spike: {
            const std::size_t solving = words(2) + factors + Scratch::bytes_of<Pair<double>>(blocks + 1);
            // error_bound: five arrays of doubles and a pivoted factorisation, of a ring at most.
            bytes += std::max(solving, 5 * Scratch::bytes_of<double>(n) + Scratch::bytes_of<double>(n * Banded<double>::width) + 3 * Scratch::bytes_of<double>(n));
            break;
        }
        default: bytes += system.periodic ? words(Banded<double>::width + 3) : factors; break;
    }
    if (system.periodic && !pivots(algorithm) && algorithm != Algorithm::truncated_spike) bytes += words(4);
    return bytes;
}

}  // namespace trifold::tridiagonal::reference
