// SPDX-License-Identifier: BSD-3-Clause
#include "backends/reference/tridiagonal/factored.hpp"

#include <cmath>

#include "backends/reference/tridiagonal/gather.hpp"
#include "backends/reference/tridiagonal/lu.hpp"
#include "backends/reference/tridiagonal/ring_lu.hpp"

namespace trifold::tridiagonal::reference {
namespace {

// A ring of one or two rows is a plain system (gather.hpp).
bool folds(bool periodic, std::int64_t rows) { return periodic && rows > 2; }

std::size_t bytes_of_one(std::int64_t rows, bool periodic, std::size_t scalar) {
    const auto n = static_cast<std::size_t>(rows);
    const std::size_t words = folds(periodic, rows) ? n * Banded<double>::width : 4 * n;
    const std::size_t bytes = words * scalar + (folds(periodic, rows) ? 0 : n);
    return (bytes + 63) / 64 * 64;
}

template <class T>
LU<T> lu_at(void* memory, std::int64_t rows) {
    const auto n = static_cast<std::size_t>(rows);
    T* const words = static_cast<T*>(memory);
    return {{words, n}, {words + n, n}, {words + 2 * n, n}, {words + 3 * n, n}, {reinterpret_cast<unsigned char*>(words + 4 * n), n}};
}

template <class T>
Banded<T> band_at(void* memory, std::int64_t rows) {
    return {{static_cast<T*>(memory), static_cast<std::size_t>(rows * Banded<T>::width)}};
}

template <class T>
Verdict factor_one(const System& system, void* memory, Scratch scratch) {
    const std::int64_t n = system.rows;
    const auto array = [&] { return scratch.take<T>(n); };
    Ring<T> ring{{array(), array(), array(), array()}};
    const std::span<const T> zero = ring.bands.x;
    System matrix = system;
    matrix.rhs = Operand{};
    const bool periodic = gather(matrix, ring);
    if (const std::int64_t row = first_not_finite(ring); row >= 0) return {Reason::not_finite, row};
    if (periodic) {
        const Banded<T> A = band_at<T>(memory, n);
        std::ranges::fill(A.entries, T{0});
        fold(ring, A);
        const std::int64_t column = factor(A);
        return column < 0 ? Verdict{} : Verdict{Reason::singular, fold_row(column, n)};
    }
    const LU<T> f = lu_at<T>(memory, n);
    std::ranges::copy(ring.bands.lower.subspan(1), f.multiplier.begin());
    std::ranges::copy(ring.bands.diag, f.diag.begin());
    std::ranges::copy(ring.bands.upper, f.upper.begin());
    std::ranges::copy(zero, f.upper2.begin());
    const std::int64_t row = factor(f);
    return row < 0 ? Verdict{} : Verdict{Reason::singular, row};
}

template <class T>
Verdict solve_one(const System& system, bool periodic, void* memory, Scratch scratch) {
    const std::int64_t n = system.rows;
    const std::span<T> x = scratch.take<T>(n);
    gather(system.rhs, system.number, 0, x);
    for (std::int64_t i = 0; i < n; ++i)
        if (!std::isfinite(x[i])) return {Reason::not_finite, i};
    if (folds(periodic, n)) solve_folded(band_at<T>(memory, n), x, scratch.take<T>(n));
    else solve(lu_at<T>(memory, n), x);
    for (std::int64_t i = 0; i < n; ++i)
        if (!std::isfinite(x[i])) return {Reason::not_finite, i};
    scatter(system, std::span<const T>(x));
    return {};
}

void count(const Verdict& verdict, std::int64_t number, const Launch& launch, Outcome& outcome) {
    if (launch.status) launch.status[number] = static_cast<std::int8_t>(verdict.reason);
    if (verdict.good()) {
        if (outcome.failures == 0) outcome.reason = verdict.reason;
        return;
    }
    if (outcome.failures++ == 0 || number < outcome.system) {
        outcome.reason = verdict.reason;
        outcome.system = number;
        outcome.row = verdict.row;
    }
}

}  // namespace

std::size_t factor_bytes(const System& system) {
    return static_cast<std::size_t>(system.systems()) * bytes_of_one(system.rows, system.periodic, size_of(system.dtype));
}

std::size_t factor_scratch(const System& system, int) { return 4 * Scratch::bytes_of<double>(system.rows); }

void factor_all(const System& batch, const Launch& launch, void* factors, Outcome& outcome) {
    const bool f32 = batch.dtype == DType::f32;
    const std::size_t bytes = bytes_of_one(batch.rows, batch.periodic, size_of(batch.dtype));
    const Scratch scratch(launch.scratch, launch.scratch_bytes);
    outcome.device = "reference";
    outcome.branch = "lu";
    for (std::int64_t k = 0; k < batch.systems() && batch.rows > 0; ++k) {
        const System system = system_at(batch, k);
        std::byte* const memory = static_cast<std::byte*>(factors) + static_cast<std::size_t>(system.number) * bytes;
        count(f32 ? factor_one<float>(system, memory, scratch) : factor_one<double>(system, memory, scratch), system.number, launch, outcome);
    }
}

void solve_factored(const System& batch, bool periodic, std::int64_t factored, const void* factors, const Launch& launch, Outcome& outcome) {
    const bool f32 = batch.dtype == DType::f32;
    const std::size_t bytes = bytes_of_one(batch.rows, periodic, size_of(batch.dtype));
    const Scratch scratch(launch.scratch, launch.scratch_bytes);
    outcome.device = "reference";
    outcome.branch = "lu";
    for (std::int64_t k = 0; k < batch.systems() && batch.rows > 0; ++k) {
        const System system = system_at(batch, k);
        // The factors are only read: `solve` takes views that could write.
        std::byte* const all = const_cast<std::byte*>(static_cast<const std::byte*>(factors));
        std::byte* const memory = all + static_cast<std::size_t>(system.number % factored) * bytes;
        count(f32 ? solve_one<float>(system, periodic, memory, scratch) : solve_one<double>(system, periodic, memory, scratch), system.number,
              launch, outcome);
    }
}

}  // namespace trifold::tridiagonal::reference
