// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/tridiagonal/remembered.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace trifold::cuda {

using tridiagonal::Operand;
using tridiagonal::System;

namespace {

bool same(const Operand& a, const Operand& b) {
    return a.kind == b.kind && a.data == b.data && a.row_stride == b.row_stride && std::ranges::equal(a.level_stride, b.level_stride) &&
           std::bit_cast<std::uint64_t>(a.value) == std::bit_cast<std::uint64_t>(b.value) && a.generator == b.generator && a.generator_shift == b.generator_shift;
}

}  // namespace

bool same(const System& a, const System& b) {
    static_assert(sizeof(Operand) == 80 && sizeof(System) == 680, "a new member belongs into this comparison");
    return a.dtype == b.dtype && a.rows == b.rows && a.levels == b.levels && std::ranges::equal(a.extent, b.extent) && a.number == b.number &&
           std::ranges::equal(a.number_stride, b.number_stride) && same(a.lower, b.lower) && same(a.diag, b.diag) && same(a.upper, b.upper) && same(a.rhs, b.rhs) &&
           same(a.x, b.x) && same(a.top_right, b.top_right) && same(a.bottom_left, b.bottom_left) && a.periodic == b.periodic && a.accumulate == b.accumulate &&
           a.in_place == b.in_place && a.offsets == b.offsets && a.ragged_systems == b.ragged_systems;
}

bool Call::operator==(const Call& other) const {
    return outcome == other.outcome && scratch == other.scratch && scratch_bytes == other.scratch_bytes && status == other.status && tolerance == other.tolerance &&
           device == other.device && algorithm == other.algorithm && same(system, other.system);
}

Launches& launches_of(const Call& call) {
    struct Known {
        Call call;
        Launches launches;
    };
    static thread_local Known known[16];
    const auto address = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) / 16; };
    const std::uint64_t mixed = (address(call.system.x.data) + 3 * address(call.system.rhs.data) + 5 * address(call.system.diag.data) + 7 * address(call.outcome) +
                                 static_cast<std::uint64_t>(call.system.rows)) * 0x9e3779b97f4a7c15ull;
    Known& place = known[mixed >> 60];
    if (!place.launches.empty() && !(place.call == call)) place.launches.clear();
    if (place.launches.empty()) place.call = call;
    return place.launches;
}

}  // namespace trifold::cuda
