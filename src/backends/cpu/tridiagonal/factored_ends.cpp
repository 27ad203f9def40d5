// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/factored_ends.hpp"

#include <algorithm>
#include <cmath>

#include "backends/cpu/tridiagonal/ends_kernel.hpp"
#include "backends/cpu/tridiagonal/lane_group.hpp"
#include "backends/cpu/tridiagonal/lane_order.hpp"

namespace trifold::cpu {

using tridiagonal::System;

template <class T>
bool factor_ends(const System& system, T* kept) {
    const LaneOrder order = LaneOrder::by_number(system);
    LaneOperand<T> lower, diag, upper;
    order.set(lower, system.lower, 0, 1), order.set(diag, system.diag, 0, 1), order.set(upper, system.upper, 0, 1);
    return eliminate_from_ends(system.rows, OneLane<T>(lower), OneLane<T>(diag), OneLane<T>(upper), kept);
}

template <class T>
std::int64_t solve_ends(const System& system, const T* kept, int threads, T* w) {
    const std::int64_t n = system.rows, m = n / 2;
    T* const x = static_cast<T*>(system.x.data);
    const std::int64_t x_step = system.x.row_stride;
    EndsSweep<T> job{.rows = n, .kept = kept, .rhs = static_cast<const T*>(system.rhs.data), .rhs_step = system.rhs.row_stride, .w = w ? w : x, .w_step = w ? 1 : x_step};
    const T right = job.rhs[m * job.rhs_step];
    const auto at = [&](std::int64_t i) -> T& { return job.w[i * job.w_step]; };
    std::int64_t bad_down = -1, bad_up = -1;
    const auto sweep = [&](auto&& both) {
        if (threads < 2 || w) return both(Ends::both);
#pragma omp parallel for num_threads(2) schedule(static, 1)
        for (int end = 0; end < 2; ++end) both(end == 0 ? Ends::down : Ends::up);
    };
    sweep([&](Ends ends) { (ends == Ends::up ? bad_up : bad_down) = sweep_inward(job, ends); });
    const std::int64_t bad = bad_down >= 0 && bad_down < m ? bad_down : !std::isfinite(right) ? m : std::max({bad_down, bad_up, std::int64_t{0}});
    T middle = right * kept[2 * m];
    if (m > 0) middle -= kept[2 * m + 1] * at(m - 1);
    if (m + 1 < n) middle -= kept[2 * n + m] * at(m + 1);
    // What is not finite stays so on the way in, and on the way out.
    if (!std::isfinite(middle)) return bad;
    at(m) = middle;
    sweep([&](Ends ends) { sweep_outward(job, ends); });
    if (!std::isfinite(at(0)) || !std::isfinite(at(n - 1))) return bad;
    for (std::int64_t i = 0; w && i < n; ++i) x[i * x_step] = w[i];
    return -1;
}

template bool factor_ends<float>(const System&, float*);
template bool factor_ends<double>(const System&, double*);
template std::int64_t solve_ends<float>(const System&, const float*, int, float*);
template std::int64_t solve_ends<double>(const System&, const double*, int, double*);

}  // namespace trifold::cpu
