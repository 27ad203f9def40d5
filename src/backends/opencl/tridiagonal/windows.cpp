// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/windows.hpp"

#include <algorithm>
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
constexpr std::size_t seam_numbers = 8, verdict_numbers = 64;
struct Verdict {
    std::uint32_t given_up, largest, excess, spare;
};

// Accepted residual of a row in units of roundoff, against (|a| + |b| + |c|) max|x| nearby; what may be left beyond a halo is this much less than the tolerance.
constexpr double accepted_roundoffs = 16, halo_margin = 16;

/// Numbers of verdict and seams, before x where that is stored apart first.
std::size_t windows_numbers(const System& system) { return verdict_numbers + seam_numbers * static_cast<std::size_t>(windows_of(system)); }

}  // namespace

std::size_t windows_scratch(const System& system) {
    if (system.rhs.kind != Operand::Kind::view || system.x.row_stride == 0 || (system.in_place && system.x.row_stride != 1)) return 0;
    return ScratchParts(system).work + (windows_numbers(system) + (system.in_place ? static_cast<std::size_t>(system.rows) : 0)) * size_of(system.dtype);
}

bool solve_in_windows(Call& call, Outcome& outcome) {
    const System& system = call.system;
    const bool wide_type = system.dtype == DType::f64;
    const double unit = wide_type ? 0x1p-53 : 0x1p-24, tolerance = std::max(call.launch.tolerance, unit), accept = std::max(accepted_roundoffs * unit, tolerance);
    const std::string shape = "-DR=" + std::to_string(rows_of_lane) + " -DHALO=" + std::to_string(halo(system.dtype));
    const auto windows = static_cast<std::size_t>(windows_of(system));
    const Place work = call.work();
    cl::Kernel& forget = call.device.kernel({"windows", "forget"}, system.dtype, shape);
    forget.setArg(0, work.buffer);
    forget.setArg(1, static_cast<cl_long>(work.offset));
    call.run(forget, 1, 1);
    // Windows read rows of rhs that others keep: in place x is stored apart, and copied when it is known to be the answer.
    const cl::Buffer rhs_buffer = call.buffers[4];
    const Source rhs_place = call.job.x;
    const std::size_t apart = work.offset + windows_numbers(system) * size_of(system.dtype);
    if (system.in_place) call.buffers[4] = work.buffer, call.job.x.offset = static_cast<word>(apart / size_of(system.dtype));
    const auto rest = static_cast<cl_float>(tolerance / halo_margin);
    if (wide_type) call.enqueue_as({"windows", "windows"}, shape, windows * lanes, lanes, accept, rest);
    else call.enqueue_as({"windows", "windows"}, shape, windows * lanes, lanes, static_cast<cl_float>(accept), rest);
    call.enqueue_as({"windows", "judge"}, shape, std::min<std::size_t>(windows, 1 << 16), 64, static_cast<cl_long>(windows - 1));
    Verdict verdict{};
    call.device.queue.enqueueReadBuffer(work.buffer, CL_TRUE, work.offset, sizeof verdict, &verdict);
    const double largest = std::bit_cast<float>(verdict.largest), excess = std::bit_cast<float>(verdict.excess);
    call.buffers[4] = rhs_buffer, call.job.x = rhs_place;
    if (verdict.given_up || !(excess <= std::ldexp(accept * largest, -40))) return false;
    if (system.in_place)
        call.device.queue.enqueueCopyBuffer(work.buffer, rhs_buffer, apart, static_cast<std::size_t>(rhs_place.offset) * size_of(system.dtype),
                                            static_cast<std::size_t>(system.rows) * size_of(system.dtype));
    outcome = Outcome{};
    outcome.reason = Reason::exact;
    outcome.branch = name_of(tridiagonal::Algorithm::certified);
    return true;
}

}  // namespace trifold::opencl
