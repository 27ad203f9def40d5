// SPDX-License-Identifier: BSD-3-Clause
// How fast a system forgets, seen from a few places: plain elimination from a row on, as a stretch would start.
#include <algorithm>
#include <cmath>

#include "backends/cpu/tridiagonal/sweep.hpp"

namespace trifold::cpu {
namespace {

using namespace tridiagonal;

template <class T>
std::int64_t slowest(const System& system, double close, double growth, std::int64_t limit) {
    const auto at = [](const Operand& operand, std::int64_t i) {
        return operand.kind == Operand::Kind::view ? static_cast<const T*>(operand.data)[i] : static_cast<T>(operand.value);
    };
    const std::int64_t places = std::clamp<std::int64_t>(system.rows / 16384, 8, 64);
    std::int64_t most = 0;
    for (std::int64_t place = 0; place < places; ++place) {
        const std::int64_t first = system.rows * (2 * place + 1) / (2 * places), last = std::min(first + limit, system.rows - 1);
        T c = 0;
        double forward = 1, backward = 1;
        std::int64_t i = first;
        for (; i < last && (forward > close || backward > close); ++i) {
            const T a = i == 0 ? T(0) : at(system.lower, i), inverse = 1 / (at(system.diag, i) - a * c);
            c = at(system.upper, i) * inverse;
            forward *= std::abs(static_cast<double>(a * inverse));
            backward *= std::abs(static_cast<double>(c));
            if (!(std::abs(c) <= growth)) return limit + 2;
        }
        if ((forward > close || backward > close) && i - first >= limit) return limit + 1;
        most = std::max(most, i - first);
    }
    return most;
}

}  // namespace

std::int64_t decay(const System& system, const Launch&, double close, double growth, std::int64_t limit) {
    return system.dtype == DType::f32 ? slowest<float>(system, close, growth, limit) : slowest<double>(system, close, growth, limit);
}

}  // namespace trifold::cpu
