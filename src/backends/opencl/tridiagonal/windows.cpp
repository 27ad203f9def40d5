// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/windows.hpp"

#include "backends/opencl/tridiagonal/gpu_batch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace trifold::opencl {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

constexpr std::int64_t lanes = 32, rows_of_lane = 17;

/// Lanes on either side of a window that only lead to it: 51 rows in FP64, 34 in FP32.
std::int64_t halo(DType dtype) { return dtype == DType::f64 ? 3 : 2; }

std::int64_t windows_of(const System& system) {
    const std::int64_t kept = (lanes - 2 * halo(system.dtype)) * rows_of_lane;
    return (system.rows + kept - 1) / kept;
}

/// As in windows.cl.
constexpr std::size_t seam_numbers = 8;

// Accepted residual of a row in units of roundoff, against (|a| + |b| + |c|) max|x| nearby; what may be left beyond a halo is this much less than the tolerance.
constexpr double accepted_roundoffs = 16, halo_margin = 16;

/// Of so few a launch less is worth what it costs groups to meet.
constexpr std::size_t few_windows = 1024;
static_assert(few_windows <= MEETINGS);

/// Numbers of seams, before x where that is stored apart first.
std::size_t windows_numbers(const System& system) { return seam_numbers * static_cast<std::size_t>(windows_of(system)); }

/// Options of the compiler, each text made once.
const std::string& shape_of(DType dtype, bool meets, bool stays) {
    static const auto texts = [] {
        std::array<std::string, 8> all;
        for (std::size_t k = 0; k < all.size(); ++k)
            all[k] = "-DR=" + std::to_string(rows_of_lane) + " -DHALO=" + std::to_string(halo(k & 4 ? DType::f64 : DType::f32)) + (k & 2 ? " -DMEETS" : "") + (k & 1 ? " -DSTAYS" : "");
        return all;
    }();
    return texts[4 * (dtype == DType::f64) + 2 * meets + stays];
}

/// Where windows are in vain: as many groups as keep a device busy, since one that ends at once takes it nearly a nanosecond.
std::size_t groups_that_stay(const FoundDevice& device, std::int64_t count) {
    constexpr std::int64_t of_unit = 24, most_each = 8;
    const std::int64_t each = std::clamp<std::int64_t>(count / (of_unit * static_cast<std::int64_t>(device.units)), 1, most_each);
    return static_cast<std::size_t>((count + each - 1) / each);
}

}  // namespace

bool windows_fit(const FoundDevice& device, DType dtype) { return lanes_fit(device, dtype, rows_of_lane); }

std::size_t windows_scratch(const System& system) {
    if (system.rhs.kind != Operand::Kind::view || system.x.row_stride == 0 || (system.in_place && system.x.row_stride != 1)) return 0;
    return ScratchParts(system).work + (windows_numbers(system) + (system.in_place ? static_cast<std::size_t>(system.rows) : 0)) * size_of(system.dtype);
}

bool solve_in_windows(Call& call, Verdict verdict, bool doubted) {
    const System& system = call.system;
    const bool wide_type = system.dtype == DType::f64;
    const double unit = wide_type ? 0x1p-53 : 0x1p-24, tolerance = std::max(call.launch.tolerance, unit), accept = std::max(accepted_roundoffs * unit, tolerance);
    const auto windows = static_cast<std::size_t>(windows_of(system));
    const bool meets = call.device.info.groups_meet && windows <= few_windows, stays = doubted && !meets;
    const std::string& shape = shape_of(system.dtype, meets, stays);
    const std::size_t groups = stays ? groups_that_stay(call.device.info, windows_of(system)) : windows;
    const Place work = call.work();
    call.use_state();
    // Windows read rows of rhs that others keep: in place x is stored apart, and copied when it is known to be the answer.
    const cl::Buffer rhs_buffer = call.buffers[4];
    const Source rhs_place = call.job.x;
    const std::size_t apart = work.offset + windows_numbers(system) * size_of(system.dtype);
    if (system.in_place) call.buffers[4] = work.buffer, call.job.x.offset = static_cast<word>(apart / size_of(system.dtype));
    const auto rest = static_cast<cl_float>(tolerance / halo_margin);
    const auto both = [&](auto accepted) {
        const Telling telling = call.telling(tridiagonal::Algorithm::certified);
        const auto trusted = static_cast<cl_int>(verdict == Verdict::trusted), hands_on = static_cast<cl_int>(verdict == Verdict::hands_on);
        if (meets) return call.enqueue_as({"windows", "windows"}, shape, groups * lanes, lanes, accepted, rest, telling, call.outcome_buffer(), trusted, hands_on);
        call.enqueue_as({"windows", "windows"}, shape, groups * lanes, lanes, accepted, rest);
        call.enqueue_as({"windows", "judge"}, shape, std::min<std::size_t>(windows, 1 << 14), 64, accepted, static_cast<cl_long>(windows - 1), telling, call.outcome_buffer(), trusted, hands_on);
    };
    if (wide_type) both(accept);
    else both(static_cast<cl_float>(accept));
    call.told();
    call.buffers[4] = rhs_buffer, call.job.x = rhs_place;
    if (verdict != Verdict::waits) return true;
    if (Found found{}; call.read_outcome(found), found.failures) return false;
    if (system.in_place)
        call.on.queue.enqueueCopyBuffer(work.buffer, rhs_buffer, apart, static_cast<std::size_t>(rhs_place.offset) * size_of(system.dtype),
                                            static_cast<std::size_t>(system.rows) * size_of(system.dtype));
    return true;
}

}  // namespace trifold::opencl
