// SPDX-License-Identifier: BSD-3-Clause
// How kept matrices lie in the memory that `factor` fills: found again from the number of rows and systems alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/tridiagonal/factored_ends.hpp"
#include "backends/cpu/tridiagonal/factored_long.hpp"
#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

/// One matrix, or one group of a batch: its factors, or the matrix itself.
enum class Kept : std::uint8_t { factors, matrix };

template <class T>
struct FactorMemory {
    static constexpr int W = group_lanes<T>;

    std::int64_t rows, systems;
    bool ring;
    char* data;

    std::int64_t words() const { return kept_words(ring); }
    /// A few long systems: one after the other, as if each were the only one.
    bool one_by_one() const { return systems > 1 && systems < 2 * W && rows >= least_long_rows && !ring; }
    bool shared() const { return systems == 1; }
    bool in_stretches() const { return shared() && !ring && rows >= least_long_rows; }
    /// A few short ones are kept from both ends too, for a few right-hand sides: one after the other they take less time than vectors that are not full.
    bool has_ends() const { return systems <= few && !ring && rows < least_long_rows; }
    static constexpr std::int64_t few = W / 2;
    std::int64_t groups() const { return shared() ? 1 : (systems + W - 1) / W; }

    FactorMemory single(std::int64_t k) const {
        FactorMemory one{rows, 1, ring, data};
        one.data = data + static_cast<std::size_t>(k) * one.bytes();
        return one;
    }

    std::size_t bytes() const {
        if (one_by_one()) return static_cast<std::size_t>(systems) * single(0).bytes();
        return marks_bytes() + static_cast<std::size_t>(groups()) * group_bytes() + (in_stretches() ? long_factor_bytes<T>(rows) : has_ends() ? 64 + static_cast<std::size_t>(systems * ends_words(rows)) * sizeof(T) : 0);
    }

    Kept& mark(std::int64_t group) const { return reinterpret_cast<Kept*>(data)[group]; }
    /// Lines of lanes; shared: numbers.
    T* group(std::int64_t k) const { return reinterpret_cast<T*>(data + marks_bytes() + static_cast<std::size_t>(k) * group_bytes()); }
    void* stretches() const { return data + marks_bytes() + group_bytes(); }

private:
    std::size_t marks_bytes() const { return (static_cast<std::size_t>(groups()) + 63) / 64 * 64; }
    std::size_t group_bytes() const {
        return (static_cast<std::size_t>(rows * words() * (shared() ? 1 : W)) * sizeof(T) + 63) / 64 * 64;
    }
};

}  // namespace trifold::cpu
