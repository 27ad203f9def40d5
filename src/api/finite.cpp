// SPDX-License-Identifier: BSD-3-Clause
#include "api/finite.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace trifold::tridiagonal {
namespace {

constexpr std::int64_t block_rows = 4096;

// First row in [from, to) of one operand whose value in the system `number` is NaN or infinite, or -1.
template <class T>
std::int64_t first_bad(const Operand& operand, std::int64_t number, std::int64_t from, std::int64_t to) {
    if (from >= to) return -1;
    if (operand.kind == Operand::Kind::generator) {
        std::vector<T> made(static_cast<std::size_t>(to - from));
        const Generator& g = *operand.generator;
        if constexpr (std::is_same_v<T, float>) g.fill_f32(made.data(), from + operand.generator_shift, to - from, number, 1, g.parameters);
        else g.fill_f64(made.data(), from + operand.generator_shift, to - from, number, 1, g.parameters);
        const auto bad = std::ranges::find_if(made, [](T value) { return !std::isfinite(value); });
        return bad == made.end() ? -1 : from + (bad - made.begin());
    }
    if (operand.kind == Operand::Kind::scalar) return std::isfinite(static_cast<T>(operand.value)) ? -1 : from;
    const T* data = static_cast<const T*>(operand.data);
    const std::int64_t stride = operand.row_stride;
    T sum = 0;  // x - x is 0 for what is finite, NaN else: one test per block
    for (std::int64_t i = from; i < to; ++i) sum += data[i * stride] - data[i * stride];
    if (sum == 0) return -1;
    for (std::int64_t i = from; i < to; ++i)
        if (!std::isfinite(data[i * stride])) return i;
    return -1;
}

template <class T>
std::int64_t first_bad_row(const System& line, std::int64_t from, std::int64_t to) {
    const std::int64_t n = line.rows;
    std::int64_t bad = -1;
    auto note = [&bad](std::int64_t row) {
        if (row >= 0 && (bad < 0 || row < bad)) bad = row;
    };
    note(first_bad<T>(line.lower, line.number, std::max<std::int64_t>(from, 1), to));
    note(first_bad<T>(line.diag, line.number, from, to));
    note(first_bad<T>(line.upper, line.number, from, std::min(to, n - 1)));
    note(first_bad<T>(line.rhs, line.number, from, to));
    if (line.periodic && from == 0) note(first_bad<T>(line.top_right, line.number, 0, 1));
    if (line.periodic && to == n && first_bad<T>(line.bottom_left, line.number, 0, 1) == 0) note(n - 1);
    return bad;
}

}  // namespace

bool all_finite(const System& system, int threads, Outcome& outcome) {
    const std::int64_t systems = system.systems(), blocks = (system.rows + block_rows - 1) / block_rows;
    std::int64_t bad_system = -1, bad_row = -1;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t task = 0; task < systems * blocks; ++task) {
        const System line = system.levels == 0 && !system.offsets ? system : system_at(system, task / blocks);
        const std::int64_t from = task % blocks * block_rows, to = std::min(from + block_rows, line.rows);
        if (from >= to) continue;
        const std::int64_t row = line.dtype == DType::f32 ? first_bad_row<float>(line, from, to) : first_bad_row<double>(line, from, to);
        if (row < 0) continue;
#pragma omp critical(trifold_first_bad)
        if (bad_system < 0 || line.number < bad_system || (line.number == bad_system && row < bad_row)) bad_system = line.number, bad_row = row;
    }
    if (bad_system < 0) return true;
    outcome = Outcome{};
    outcome.reason = Reason::not_finite;
    outcome.system = bad_system;
    outcome.row = bad_row;
    outcome.failures = 1;
    return false;
}

}  // namespace trifold::tridiagonal
