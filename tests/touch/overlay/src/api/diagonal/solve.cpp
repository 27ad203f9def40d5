// SPDX-License-Identifier: BSD-3-Clause
#include "trifold/diagonal.hpp"

#include "backends/registry.hpp"
#include "families/diagonal/ops.hpp"
#include "trifold/error.hpp"

namespace trifold::diagonal {

Outcome solve(Queue& queue, std::span<const double> diag, std::span<const double> rhs, std::span<double> x) {
    if (diag.size() != rhs.size() || diag.size() != x.size()) throw Error(ErrorCode::usage, "diagonal::solve", "lengths differ");
    const Cell& cell = find_cell(device_at(queue.device_index()), "diagonal");
    if (cell.kind != CellKind::native) throw Error(ErrorCode::device_unavailable, queue.device(), cell.note, "use another device");
    Outcome outcome;
    static_cast<const Ops*>(cell.ops)->solve(diag.data(), rhs.data(), x.data(), static_cast<std::int64_t>(x.size()), outcome);
    return outcome;
}

}  // namespace trifold::diagonal
