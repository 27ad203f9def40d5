// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/short.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace trifold::opencl {
namespace {

constexpr std::int64_t lanes = 32, least_parts = 4, most_parts = 16;

/// Of a lane: what registers of 512 items hold, an odd number.
std::int64_t rows_of_lane(DType dtype) { return dtype == DType::f64 ? 9 : 17; }

/// Of 32 lanes each; 0: there is no room. Powers of two, since each number is a program.
std::int64_t parts_of(const FoundDevice& device, const tridiagonal::System& system) {
    const std::int64_t rows = lanes * rows_of_lane(system.dtype);
    std::int64_t parts = least_parts;
    while (parts < most_parts && parts * rows < system.rows) parts *= 2;
    constexpr std::int64_t said = 21;
    const std::int64_t numbers = parts * (rows + said + 1) + 2;
    const bool fits = parts * rows >= system.rows && static_cast<std::size_t>(parts * lanes) <= device.group &&
                      static_cast<std::size_t>(numbers) * size_of(system.dtype) + static_cast<std::size_t>(4 * parts + 5) * sizeof(cl_int) <= device.local_memory;
    return fits ? parts : 0;
}

/// Row follows row in every array, and there are no numbers.
bool is_dense(const tridiagonal::System& system) {
    const tridiagonal::Operand* const operands[] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    return std::ranges::all_of(operands, [](const auto* o) { return o->kind == tridiagonal::Operand::Kind::view && o->row_stride == 1; });
}

/// Options of the compiler, each text made once.
const std::string& shape_of(const tridiagonal::System& system, std::int64_t parts) {
    static const auto texts = [] {
        std::array<std::string, 2 * 2 * (most_parts + 1)> all;
        for (const DType dtype : {DType::f32, DType::f64})
            for (std::int64_t p = least_parts; p <= most_parts; p *= 2)
                for (const int dense : {0, 1})
                    all[static_cast<std::size_t>(4 * p + 2 * (dtype == DType::f64) + dense)] = "-DR=" + std::to_string(rows_of_lane(dtype)) + " -DP=" + std::to_string(p) + " -DDENSE=" + std::to_string(dense);
        return all;
    }();
    return texts[static_cast<std::size_t>(4 * parts + 2 * (system.dtype == DType::f64) + is_dense(system))];
}

}  // namespace

bool is_short(const FoundDevice& device, const tridiagonal::System& system) { return device.wide && system.levels == 0 && system.x.row_stride != 0 && parts_of(device, system) > 0; }

void enqueue_short(Call& call, cl_int trusted) {
    const std::int64_t parts = parts_of(call.device.info, call.system);
    const auto items = static_cast<std::size_t>(parts * lanes);
    call.use_state();
    enqueue_judged(call, {"short", "solve"}, shape_of(call.system, parts), items, items, {true, PIVOT_CHUNKS, Reason::exact, trusted, tridiagonal::Algorithm::thomas});
    call.told();
}

}  // namespace trifold::opencl
