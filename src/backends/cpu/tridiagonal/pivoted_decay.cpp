// SPDX-License-Identifier: BSD-3-Clause
// How fast elimination with partial pivoting forgets, seen from a few places, in both directions.
#include <algorithm>
#include <cmath>

#include "backends/cpu/tridiagonal/pivoted.hpp"
#include "backends/cpu/tridiagonal/pivoted_call.hpp"

namespace trifold::cpu {
namespace {

using namespace tridiagonal;

// The pending row (x0, x1) of x[i], x[i+1] and what is left in it of the unknown before the first row.
struct Fading {
    double before, x0, x1;

    void join(double a, double b, double c) {
        if (std::abs(a) > std::abs(x0)) {
            const double m = x0 / a;
            x0 = x1 - m * b, x1 = -m * c;
        } else {
            const double m = a / x0;
            before *= -m, x0 = b - m * x1, x1 = c;
        }
    }
    bool gone(double close) const { return std::abs(before) <= close * std::max(std::abs(x0), std::abs(x1)); }
};

template <class T>
std::int64_t slowest(const System& system, double close, std::int64_t limit) {
    const auto at = [](const Operand& operand, std::int64_t i) -> double {
        return operand.kind == Operand::Kind::view ? static_cast<const T*>(operand.data)[i] : static_cast<T>(operand.value);
    };
    std::int64_t places = 4;
    while (places < 32 && places * 262144 < system.rows) places *= 2;
    std::int64_t most = 0, seen = 0;
    // All over the system from the start: where it takes long, not all places are looked at.
    for (std::int64_t k = 0; k < places && (k < 4 || seen < system.rows / 1024); ++k) {
        const std::int64_t place = 5 * k % places;
        for (const int way : {1, -1}) {
            const Operand& before = way > 0 ? system.lower : system.upper;
            const Operand& behind = way > 0 ? system.upper : system.lower;
            std::int64_t i = system.rows * (2 * place + 1) / (2 * places);
            Fading row{at(before, i), at(system.diag, i), at(behind, i)};
            std::int64_t count = 1;
            for (; !row.gone(close); ++count) {
                i += way;
                if (count > limit || i <= 0 || i >= system.rows - 1) return limit + 1;
                row.join(at(before, i), at(system.diag, i), at(behind, i));
            }
            most = std::max(most, count), seen += count;
        }
    }
    return most;
}

}  // namespace

std::int64_t pivoted_decay(const System& system, double close, std::int64_t limit) {
    return system.dtype == DType::f32 ? slowest<float>(system, close, limit) : slowest<double>(system, close, limit);
}

bool forgets_nothing(const System& system) {
    // Too short for one pass: whether the first unknowns are hardly less of a row 64 rows on. Those of a random matrix are in ten.
    constexpr std::int64_t looked_at = 64;
    if (system.rows < 8 * looked_at) return false;
    if (system.rows < PivotedCall<float>::fewest_rows) return pivoted_decay(system, 1.0 / 64, looked_at) > looked_at;
    return (system.dtype == DType::f32 ? PivotedCall<float>::block_for(system) : PivotedCall<double>::block_for(system)) == 0;
}

}  // namespace trifold::cpu
