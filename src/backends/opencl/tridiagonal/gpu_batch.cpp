// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/gpu_batch.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace trifold::opencl {
namespace {

using tridiagonal::System;

/// Strides of rhs, from row to row and from system to system of the last level.
struct Strides {
    std::int64_t row, system;
    explicit Strides(const System& s) : row(std::abs(s.rhs.row_stride)), system(s.levels > 0 ? std::abs(s.rhs.level_stride[s.levels - 1]) : 0) {}
};

std::int64_t lanes_of(const System& system) { return system.levels > 0 ? system.extent[system.levels - 1] : 1; }

/// Groups that have `each` systems of the last level, of all systems.
std::size_t groups_of(const System& system, std::int64_t each) {
    return static_cast<std::size_t>(system.systems() / lanes_of(system) * ((lanes_of(system) + each - 1) / each));
}

std::string define(const char* name, std::int64_t value) { return std::string("-D") + name + "=" + std::to_string(value) + " "; }

/// Any layout (kernels/tiles.cl).
constexpr std::int64_t tile_rows = 8;

std::int64_t tile_group(const FoundDevice& device, DType dtype) {
    std::int64_t items = 128;
    while (items > 1 && (items > static_cast<std::int64_t>(device.group) || items * ((tile_rows + 4) * static_cast<std::int64_t>(size_of(dtype)) + 4) > static_cast<std::int64_t>(device.local_memory)))
        items /= 2;
    return items;
}

void enqueue_tiles(Call& call) {
    const std::int64_t parts = (call.system.rows + tile_rows - 1) / tile_rows, items = tile_group(call.device.info, call.system.dtype);
    const auto group = static_cast<std::size_t>(items);
    call.enqueue_as({"tiles", "tiles"}, define("G", items), groups_of(call.system, items / parts) * group, group, static_cast<cl_long>(parts));
}

constexpr std::int64_t few_rows = 9, some_rows = 13, many_rows = 17;

/// Rows side by side (kernels/rows.cl): 32 lanes have a run of systems. Rows of a lane, odd; 0 where a system does not fit or does not lie so.
std::int64_t lane_rows(const FoundDevice& device, const System& system) {
    constexpr std::int64_t lanes = 32;
    const Strides strides(system);
    if (system.rows < 2 || (strides.system != 0 && strides.row > strides.system)) return 0;
    const std::int64_t rows = system.rows <= lanes * few_rows ? few_rows : system.rows <= lanes * many_rows ? many_rows : 0;
    if (rows == 0 || !lanes_fit(device, system.dtype, rows)) return 0;
    // Measured on an H200: a run that leaves fewer of its lanes idle is worth more than many runs.
    const auto filled = [&](std::int64_t r) { return static_cast<double>(lanes * r / system.rows * system.rows) / static_cast<double>(lanes * r); };
    const bool better = rows == few_rows && filled(few_rows) < 0.95 && filled(some_rows) > filled(few_rows) + 0.02;
    return better && system.dtype == DType::f32 && device.ptx >= 9 && lanes_fit(device, system.dtype, some_rows) ? some_rows : rows;
}

/// Rows and systems follow each other in every array, and there are no numbers.
bool is_dense(const System& system) {
    const tridiagonal::Operand* const operands[] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    return system.levels == 1 && std::ranges::all_of(operands, [&](const auto* o) {
               return o->kind == tridiagonal::Operand::Kind::view && o->row_stride == 1 && o->level_stride[0] == system.rows;
           });
}

void enqueue_rows(Call& call, std::int64_t rows, bool trusted) {
    constexpr std::int64_t lanes = 32;
    const System& system = call.system;
    const std::int64_t each = std::min(lanes_of(system), lanes * rows / system.rows);
    const auto inverse = static_cast<cl_uint>((std::uint64_t{1} << 32) / static_cast<std::uint64_t>(system.rows) + 1);
    // Measured: it shortens these and lengthens others.
    const std::string once = system.dtype == DType::f32 && rows == many_rows ? define("USED_ONCE", 1) : "";
    const bool is_long = system.rows >= rows;
    const std::string shape = define("R", rows) + define("DENSE", is_dense(system)) + define("LONG", is_long) + define("ALONE", is_long && each == 1);
    call.enqueue_as({"rows", "rows"}, shape + once, groups_of(system, each) * lanes, lanes, call.telling(tridiagonal::Algorithm::thomas), call.outcome_buffer(), static_cast<cl_int>(trusted),
                    static_cast<cl_uint>(each), inverse);
}

/// Systems side by side (kernels/beside.cl), up to 512 rows: rows of an item, and most items of a group.
std::int64_t beside_rows(const System& system) { return system.dtype == DType::f64 ? 16 : 32; }

std::int64_t beside_items(const FoundDevice& device, const System& system) {
    const std::int64_t wanted = system.dtype == DType::f32 ? 256 : 512, room = static_cast<std::int64_t>(device.local_memory) / (3 * static_cast<std::int64_t>(size_of(system.dtype)) + 4);
    return std::min({wanted, static_cast<std::int64_t>(device.group), room});
}

/// Of one column.
std::int64_t column_items(const System& system) {
    std::int64_t items = 1;
    while (items * beside_rows(system) < system.rows) items *= 2;
    return items;
}

bool side_by_side(const FoundDevice& device, const System& system) {
    const Strides strides(system);
    return system.levels > 0 && strides.system < strides.row && system.rows > 1 && system.rows <= 512 && column_items(system) <= beside_items(device, system);
}

/// One step from row to row for all arrays, and there are no numbers: saves registers (which FP64 uses worse then: 8 % longer at 256 rows).
bool is_alike(const System& system) {
    const tridiagonal::Operand* const operands[] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    const std::int64_t step = system.rhs.row_stride;
    return std::abs(step) < (std::int64_t{1} << 31) / system.rows &&
           std::ranges::all_of(operands, [&](const auto* o) { return o->kind == tridiagonal::Operand::Kind::view && o->row_stride == step; });
}

void enqueue_beside(Call& call, bool trusted) {
    const System& system = call.system;
    const bool wide_type = system.dtype == DType::f64;
    // As many items as have all registers of a multiprocessor; rows of memory as wide as that leaves, up to 256 bytes. FP32: half of them, though that leaves 64 bytes of 512 rows, so that
    // one group loads while another one joins.
    const std::int64_t rows = beside_rows(system), items = column_items(system), each = std::clamp<std::int64_t>(beside_items(call.device.info, system) / items, 1, wide_type ? 32 : 64);
    const auto group = static_cast<std::size_t>(each * items);
    call.enqueue_as({"beside", "beside"}, define("R", rows) + define("W", each) + define("P", items) + define("ALIKE", !wide_type && is_alike(system)), groups_of(system, each) * group, group,
                    call.telling(tridiagonal::Algorithm::thomas), call.outcome_buffer(), static_cast<cl_int>(trusted));
}

/// FP32 on NVIDIA's devices with more local memory than a group may have, 129 to 512 rows that begin at multiples of 16 bytes (kernels/ring.cl): groups of a column, else 0. A wave of two groups
/// on every compute unit, which stay, so that both of a column run side by side.
int ring_halves(const FoundDevice& device, const System& system) {
    constexpr std::int64_t most_rows = 256, least_rows = 129;
    if (device.ptx < 9 || system.dtype != DType::f32 || system.levels > 2 || system.rows < least_rows || !side_by_side(device, system) || !is_alike(system)) return 0;
    const tridiagonal::Operand* const operands[] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    const auto on_quad = [](std::int64_t elements) { return elements % 4 == 0; };
    const bool fits = on_quad(system.rhs.row_stride) && std::ranges::all_of(operands, [&](const auto* o) {
                          return o->level_stride[system.levels - 1] == 1 && (system.levels < 2 || on_quad(o->level_stride[0])) && reinterpret_cast<std::uintptr_t>(o->data) % 16 == 0;
                      });
    if (!fits || system.systems() >= (std::int64_t{1} << 30)) return 0;
    if (system.rows <= most_rows) return 1;
    return system.in_place ? 0 : 2;  // one half may store what the other one has to mark
}

void enqueue_ring(Call& call, int halves, bool trusted) {
    constexpr std::int64_t columns = 32, group = 4 * columns, letter_bytes = 16;
    const auto tiles = static_cast<std::int64_t>(groups_of(call.system, columns));
    const std::int64_t at_once = std::min<std::int64_t>(tiles, 2 * call.device.info.units / halves);
    DeviceQueue& on = call.on;
    const auto turns = static_cast<cl_uint>((tiles + at_once - 1) / at_once);
    if (!on.letters() || on.letters_sent > ~cl_uint{0} - turns - 1) {
        const std::size_t bytes = static_cast<std::size_t>(std::max(call.device.info.units, 1) * 2 * 2 * columns * letter_bytes);
        if (!on.letters()) on.letters = cl::Buffer(call.device.context, CL_MEM_READ_WRITE, bytes);
        on.queue.enqueueFillBuffer(on.letters, cl_uint{0}, 0, bytes);
        on.letters_sent = 0;
    }
    const std::string shape = "-DR=64 -DP=4 -DDEPTH=20 -DSTEP=2 -DBEHIND=8 " + define("HALVES", halves) + define("LEVELS", call.system.levels);
    call.enqueue_as({"ring", "ring"}, shape, static_cast<std::size_t>(at_once * halves * group), static_cast<std::size_t>(group), call.telling(tridiagonal::Algorithm::thomas), call.outcome_buffer(),
                    static_cast<cl_int>(trusted), on.letters, on.letters_sent + 1);
    on.letters_sent += turns;
}

}  // namespace

bool lanes_fit(const FoundDevice& device, DType dtype, std::int64_t rows) {
    constexpr std::size_t lanes = 32, rest = 64;
    const auto r = static_cast<std::size_t>(rows);
    return device.group >= lanes && ((4 * r + 3 + 4) * size_of(dtype) + r) * lanes + rest <= device.local_memory;
}

bool may_be_alone(const FoundDevice& device, const System& system) { return lane_rows(device, system) || side_by_side(device, system); }

bool marks_twice(const FoundDevice& device, const System& system) { return !lane_rows(device, system) && ring_halves(device, system) == 2; }

bool fits_on_chip(const FoundDevice& device, const System& system) { return may_be_alone(device, system) || system.rows <= tile_rows * tile_group(device, system.dtype); }

void enqueue_on_chip(Call& call, bool trusted) {
    if (const std::int64_t rows = lane_rows(call.device.info, call.system)) enqueue_rows(call, rows, trusted);
    else if (const int halves = ring_halves(call.device.info, call.system)) enqueue_ring(call, halves, trusted);
    else if (side_by_side(call.device.info, call.system)) enqueue_beside(call, trusted);
    else enqueue_tiles(call);
}

}  // namespace trifold::opencl
