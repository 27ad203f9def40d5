// SPDX-License-Identifier: BSD-3-Clause
// How a solve in two passes is judged, and what follows where it does not hold (kernels/verdict.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/opencl/tridiagonal/call.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::opencl {

struct Judging {
    bool locally;          ///< every chunk's residual has to be small beside what that chunk has; else it may be smaller still beside the largest of them, LAPACK's measure
    cl_uint next;          ///< opens what asks for this where x does not hold
    Reason reason;         ///< told where it does
    cl_int trusted = NEVER;  ///< whether what does not hold is counted, too (trusted.hpp): NEVER, ALWAYS, WHERE_LAST, IN_TURN + k
    tridiagonal::Algorithm branch = tridiagonal::Algorithm::two_pass;
};

/// A kernel that ends with VERDICT_ARGUMENTS. accept: infinity where all that is finite is to be stored and another kernel judges.
template <class... More>
void enqueue_judged(Call& call, const KernelName& name, std::string_view defines, std::size_t items, std::size_t group, double accept, const Judging& by, const More&... more) {
    const double whole = by.locally ? 0 : 4 * unit_roundoff(call.system.dtype);
    const auto as = [&]<class T>(T) {
        call.enqueue_as(name, defines, items, group, more..., static_cast<T>(accept), static_cast<T>(whole), by.next, by.trusted, static_cast<cl_int>(by.reason),
                        call.telling(by.branch), call.outcome_buffer());
    };
    if (call.system.dtype == DType::f32) as(cl_float{});
    else as(cl_double{});
}

template <class... More>
void enqueue_judged(Call& call, const KernelName& name, std::string_view defines, std::size_t items, std::size_t group, const Judging& by, const More&... more) {
    enqueue_judged(call, name, defines, items, group, tridiagonal::two_pass_accept(call.system.dtype), by, more...);
}

}  // namespace trifold::opencl
