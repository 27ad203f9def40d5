// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/runs.hpp"

#include <string>
#include <vector>

#include "backends/opencl/tridiagonal/coupled.hpp"
#include "backends/opencl/tridiagonal/coupling.hpp"
#include "backends/opencl/tridiagonal/gpu_batch.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Operand;
using tridiagonal::System;

constexpr word lanes = 32, rows_of_lane = 17, run_rows = lanes * rows_of_lane;

/// Numbers in work: level after level, eight words a run; then x in place.
struct Layout {
    std::vector<word> at, count;
    std::size_t apart;

    explicit Layout(const System& system) {
        word words = 0;
        for (word n = (system.rows + run_rows - 1) / run_rows;; n = (n + lanes - 1) / lanes) {
            at.push_back(words), count.push_back(n);
            words += 8 * n;
            if (n <= lanes) break;
        }
        apart = (static_cast<std::size_t>(words) * size_of(system.dtype) + 255) / 256 * 256;
    }
};

}  // namespace

bool runs_fit(const FoundDevice& device, DType dtype) { return device.wide && lanes_fit(device, dtype, rows_of_lane); }

std::size_t runs_scratch(const System& system) {
    if (system.rows < least_cut_rows || system.rhs.kind != Operand::Kind::view || system.x.row_stride == 0 || (system.in_place && system.x.row_stride != 1)) return 0;
    return ScratchParts(system).work + Layout(system).apart + (system.in_place ? static_cast<std::size_t>(system.rows) * size_of(system.dtype) : 0);
}

void enqueue_runs(Call& call, cl_uint gate, bool trusted) {
    const Layout layout(call.system);
    const bool meets = call.device.info.groups_meet && layout.count[0] <= MEETINGS;
    const std::string shape = "-DR=" + std::to_string(rows_of_lane) + (meets ? " -DMEETS" : "");
    const std::size_t top = layout.at.size() - 1;
    call.use_state();
    const auto items = static_cast<std::size_t>(layout.count[0] * lanes);
    const cl_long at = layout.at[0], count = layout.count[0];
    const auto level = [&](const char* kernel, std::size_t l) {
        const cl_long above = l < top ? layout.at[l + 1] : 0, count_above = l < top ? layout.count[l + 1] : 0;
        call.enqueue_as({"runs", kernel}, shape, static_cast<std::size_t>((layout.count[l] + lanes - 1) / lanes * lanes), lanes, cl_long{layout.at[l]}, cl_long{layout.count[l]}, above, count_above, gate);
    };
    call.enqueue_as({"runs", "reduce"}, shape, items, lanes, at, count, gate);
    if (!meets) {
        for (std::size_t l = 0; l < top; ++l) level("gather", l);
        for (std::size_t l = top + 1; l-- > 0;) level("deal", l);
    }
    // A chunk of a longer system is large at its ends, which are cut off, and what is small beside that is not small beside the rest.
    const Judging by{true, PIVOT_CHUNKS, Reason::exact, trusted ? ALWAYS : NEVER};
    enqueue_judged(call, {"runs", "finish"}, shape, items, lanes, by, at, count, gate);
    if (!meets) enqueue_verdict(call, ChunkParts{}, layout.count[0], gate, by);
    call.told();
}

bool solve_in_runs(Call& call) {
    const System& system = call.system;
    const Place work = call.work();
    const cl::Buffer rhs_buffer = call.buffers[4];
    const Source rhs_place = call.job.x;
    const std::size_t apart = work.offset + Layout(system).apart;
    if (system.in_place) call.buffers[4] = work.buffer, call.job.x.offset = static_cast<word>(apart / size_of(system.dtype));
    enqueue_runs(call, 0);
    call.buffers[4] = rhs_buffer, call.job.x = rhs_place;
    if (Found found{}; call.read_outcome(found), found.failures) return false;
    if (system.in_place)
        call.on.queue.enqueueCopyBuffer(work.buffer, rhs_buffer, apart, static_cast<std::size_t>(rhs_place.offset) * size_of(system.dtype), static_cast<std::size_t>(system.rows) * size_of(system.dtype));
    return true;
}

}  // namespace trifold::opencl
