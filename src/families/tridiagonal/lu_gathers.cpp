// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/lu_gathers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace trifold::tridiagonal {
namespace {

// The pending row (x0, x1) of x[i], x[i+1].
struct Gathering {
    double x0, x1, squares = 1, most = 1;

    // Without a branch, which would be taken at random.
    void join(double a, double b, double c) {
        const bool stays = std::abs(x0) >= std::abs(a);
        const double m = (stays ? a : x0) / (stays ? x0 : a);
        x0 = stays ? b - m * x1 : x1 - m * b, x1 = stays ? c : -m * c;
        squares = (stays ? m * m : 1) * squares + 1;
        most = std::max(most, squares);
    }
};

template <class T>
double least(const System& system) {
    constexpr int places = 4;
    constexpr std::int64_t long_rows = std::int64_t{1} << 19;  // below, 8192 would take half as long as the solve
    const auto at = [](const Operand& operand, std::int64_t i) -> double {
        return operand.kind == Operand::Kind::view ? static_cast<const T*>(operand.data)[i * operand.row_stride] : static_cast<T>(operand.value);
    };
    const std::int64_t rows = std::min<std::int64_t>(system.rows / 8, system.rows < long_rows ? 512 : 8192);
    std::int64_t first[places];
    Gathering place[places];
    for (int k = 0; k < places; ++k) {
        first[k] = (2 * k + 1) * (system.rows - rows) / (2 * places);
        place[k] = {at(system.diag, first[k]), at(system.upper, first[k])};
    }
    // Side by side: one alone waits for its divisions.
    for (std::int64_t i = 1; i < rows; ++i)
        for (int k = 0; k < places; ++k) place[k].join(at(system.lower, first[k] + i), at(system.diag, first[k] + i), at(system.upper, first[k] + i));
    double least = place[0].most;
    for (const Gathering& other : place) least = std::min(least, other.most);
    // Where none of these rows has lost what those before it left, rows beyond them do not either.
    const double all = least >= 0.75 * static_cast<double>(rows) ? static_cast<double>(system.rows) / static_cast<double>(rows) : 1;
    return std::sqrt(least * all);
}

}  // namespace

double lu_gathers(const System& system) {
    if (system.rows < 16) return 1;
    return system.dtype == DType::f32 ? least<float>(system) : least<double>(system);
}

}  // namespace trifold::tridiagonal
