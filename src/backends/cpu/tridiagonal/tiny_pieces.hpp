// SPDX-License-Identifier: BSD-3-Clause
// Ragged systems of so few rows that what a group of lanes is set up with takes longer than its rows: copied side by side, those of about the same length together, and solved there with pivots (tiny_kernel.hpp).
//
//   Words     4 read, 1 written, and 1 read where x is added to; 5 more in the first-level cache
//   Numerics  nothing is stored of a system before all its x are known to be finite
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/tridiagonal/tiny_kernel.hpp"
#include "problems/tridiagonal/system.hpp"

namespace trifold::cpu {

inline constexpr std::int64_t tiny_window = 128, tiny_room = tiny_window * tiny_rows;  ///< systems among which those of one length are looked for; their rows at most

/// Rows of a window's systems.
template <class T>
struct TinyRows {
    struct Array {
        const T* data = nullptr;
        std::int64_t stride = 0;
        T operator[](std::int64_t row) const { return data[row * stride]; }
    };
    std::int64_t begin = 0;  ///< row of the first system
    Array lower, diag, upper, rhs;

    /// Rows first … first + n - 1 into lane j, the rest up to `rows` as the identity's. What couples the ends of a system to others is not looked at.
    void load(TinyGroup<T>& to, int j, std::int64_t first, std::int64_t n, std::int64_t rows) const {
        first -= begin;
        to.row[0].lower[j] = 0;
        for (std::int64_t i = 1; i < n; ++i) to.row[i].lower[j] = lower[first + i];
        for (std::int64_t i = 0; i < n; ++i) to.row[i].diag[j] = diag[first + i];
        for (std::int64_t i = 0; i + 1 < n; ++i) to.row[i].upper[j] = upper[first + i];
        to.row[n - 1].upper[j] = 0;
        for (std::int64_t i = 0; i < n; ++i) to.row[i].rhs[j] = rhs[first + i];
        for (std::int64_t i = n; i < rows; ++i) to.row[i].lower[j] = to.row[i].upper[j] = to.row[i].rhs[j] = 0, to.row[i].diag[j] = 1;
    }
};

/// Rows of all systems.
template <class T>
class TinyArrays {
public:
    explicit TinyArrays(const tridiagonal::System& system)
        : lower_(system.lower), diag_(system.diag), upper_(system.upper), rhs_(system.rhs), x_(static_cast<T*>(system.x.data)), x_stride_(system.x.row_stride), adds_(system.accumulate) {}
    TinyArrays(const TinyArrays&) = delete;
    TinyArrays& operator=(const TinyArrays&) = delete;

    /// Whether these are what `system` has: generators are not.
    static bool take(const tridiagonal::System& system) {
        for (const tridiagonal::Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs})
            if (operand->kind == tridiagonal::Operand::Kind::generator) return false;
        return !system.periodic;
    }

    /// As they are, or, where systems are visited by length (not in_order) and rows lie side by side, as copies of rows [first, end) in `room`, four times tiny_room: memory would be waited for at each system, since it is not gone through in
    /// order. (Asking for it before does not help; one thread, 2·10⁶ rows of 1 to 8 rows each: 10 ns a row, copied 7.)
    TinyRows<T> rows(std::int64_t first, std::int64_t end, bool in_order, T* room) const {
        TinyRows<T> to;
        to.begin = first;
        const std::int64_t count = end - first;
        const auto copied = [&](const Array& from, int which, std::int64_t begin, std::int64_t behind) -> typename TinyRows<T>::Array {
            if (in_order || from.stride != 1 || count > tiny_room) return {from.data + first * from.stride, from.stride};
            T* const copy = room + which * tiny_room;
            std::copy(from.data + first + begin, from.data + first + behind, copy + begin);
            return {copy, 1};
        };
        to.lower = copied(lower_, 0, 1, count), to.diag = copied(diag_, 1, 0, count), to.upper = copied(upper_, 2, 0, count - 1), to.rhs = copied(rhs_, 3, 0, count);  // the first of lower and the last of upper may not exist
        return to;
    }
    void store(const TinyGroup<T>& from, int j, std::int64_t first, std::int64_t n) const {
        for (std::int64_t i = 0; i < n; ++i) {
            T& to = x_[(first + i) * x_stride_];
            to = adds_ ? to + from.row[i].rhs[j] : from.row[i].rhs[j];
        }
    }

private:
    /// A number is an array of itself.
    struct Array {
        T value;
        const T* data;
        std::int64_t stride;

        explicit Array(const tridiagonal::Operand& from)
            : value(static_cast<T>(from.value)), data(from.kind == tridiagonal::Operand::Kind::scalar ? &value : static_cast<const T*>(from.data)), stride(from.kind == tridiagonal::Operand::Kind::scalar ? 0 : from.row_stride) {}
        T operator[](std::int64_t row) const { return data[row * stride]; }
    };
    Array lower_, diag_, upper_, rhs_;
    T* x_;
    std::int64_t x_stride_;
    bool adds_;
};

/// Those of systems [begin, end), at most tiny_window of them, that have 1 to tiny_rows rows. refused(k): system k was not solved, and is as it was.
template <class T, class Refused>
void solve_tiny_pieces(const TinyArrays<T>& arrays, const std::int64_t* offsets, std::int64_t begin, std::int64_t end, Refused refused) {
    constexpr int W = tiny_lanes<T>;
    std::uint16_t order[tiny_window];
    int first[tiny_rows + 2] = {};  // of a length among those that are no longer; tiny_rows + 1: the others
    const auto length = [&](std::int64_t k) { return offsets[k + 1] - offsets[k]; };
    const auto bucket = [&](std::int64_t k) { return static_cast<std::size_t>(std::min(length(k), tiny_rows + 1)); };
    for (std::int64_t k = begin; k < end; ++k)
        if (bucket(k) <= tiny_rows) ++first[bucket(k) + 1];
    const int empty = first[1];
    for (std::size_t n = 1; n <= tiny_rows + 1; ++n) first[n] += first[n - 1];
    const int count = first[tiny_rows + 1];
    for (std::int64_t k = begin; k < end; ++k)
        if (bucket(k) <= tiny_rows) order[first[bucket(k)]++] = static_cast<std::uint16_t>(k - begin);
    if (empty == count) return;
    T room[4 * tiny_room];
    const bool in_order = length(begin + order[empty]) == length(begin + order[count - 1]);
    const TinyRows<T> all = arrays.rows(offsets[begin], offsets[end], in_order, room);
    TinyGroup<T> group;
    for (int at = empty; at < count; at += W) {
        const int lanes = std::min(W, count - at);
        const std::int64_t rows = length(begin + order[at + lanes - 1]);
        for (int j = 0; j < W; ++j) {
            const std::int64_t k = begin + order[at + std::min(j, lanes - 1)];
            all.load(group, j, offsets[k], length(k), rows);
        }
        const std::uint64_t bad = solve_tiny_group(group, rows);
        for (int j = 0; j < lanes; ++j) {
            const std::int64_t k = begin + order[at + j];
            if (bad >> j & 1) refused(k);
            else arrays.store(group, j, offsets[k], length(k));
        }
    }
}

}  // namespace trifold::cpu
