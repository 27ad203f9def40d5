// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/functions.hpp"
#include "backends/cuda/mesh/streaming/prepare.hpp"
#include "backends/cuda/mesh/streaming/program_text.hpp"

#include <algorithm>
#include <bit>

namespace trifold::cuda::streaming {

using mesh::Checked;
using mesh::CheckedSweep;

std::string name_of_pass(std::size_t sweep, std::size_t pass) { return "pass_" + std::to_string(sweep) + "_" + std::to_string(pass); }

namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }

class Writer {
public:
    Writer(const Checked& checked, const Plan& plan) : checked_(checked), plan_(plan) {}

    std::string text() {
        std::string kernels;
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s)
            for (std::size_t k = 0; k < plan_.sweeps[s].passes.size(); ++k) kernels += pass(s, k);
        if (plan_.whole_threads > 0) {
            kernels += "extern \"C\" __global__ void __launch_bounds__(" + text_of(plan_.whole_threads) +
                       ", 1) whole(const __grid_constant__ MeshArguments<real> a, const __grid_constant__ Common::Parameters p, const __grid_constant__ streaming::WholeRun<real> run) { streaming::whole_run<";
            for (std::size_t k = 0; k < plan_.sweeps[0].passes.size(); ++k) kernels += (k ? ", C_" : "C_") + name_of_pass(0, k);
            kernels += ">(a, p, run); }\n";
        }
        return program_head(checked_, plan_.moves_alone, functions_.text(),
                            {"backends/cuda/mesh/streaming/rows.cuh", "backends/cuda/mesh/streaming/columns.cuh", "backends/cuda/mesh/streaming/joins.cuh", "backends/cuda/mesh/streaming/whole.cuh"}) +
               kernels;
    }

private:
    std::string function(const char* name, const PointFunction& called) { return function_text(functions_, name, called); }
    bool ends(std::size_t s, int line) const { return subtracts(checked_, s, line); }
    bool ring(std::size_t s, int axis) const { return is_ring(checked_.sweeps[s], checked_.problem->shape, axis); }

    static const char* flag(bool value) { return value ? "true" : "false"; }

    std::string pass(std::size_t s, std::size_t k) {
        switch (plan_.sweeps[s].passes[k].kind) {
            case PassKind::rows: return rows(s, k);
            case PassKind::columns: return columns(s, k);
            case PassKind::joins: return joins(s, k);
        }
        return {};
    }

    std::string rows(std::size_t s, std::size_t k) {
        const Sweep& sweep = *checked_.sweeps[s].sweep;
        const Pass& pass = plan_.sweeps[s].passes[k];
        const RowsCut& cut = pass.rows;
        const std::string name = name_of_pass(s, k);
        const std::int64_t V = 16 / static_cast<std::int64_t>(size_of(checked_.dtype));
        return "struct C_" + name + " : Common {\n    static constexpr int K = " + text_of(cut.rows) + ", R = " + text_of(cut.segment_rows) + ", lanes = " + text_of(cut.lanes) + ", warps = " +
               text_of(cut.warps) + ", pitch = " + text_of(cut.pitch) + ", depth = " + text_of(cut.depth) + ", chunk = " + text_of(cut.chunk) + ", staged_count = " + text_of(pass.reach.fields) +
               ", reach_x = " + text_of(pass.reach.x) + ", reach_y = " + text_of(pass.reach.y) + ", reach_z = " + text_of(pass.reach.z) + ", target = " + text_of(sweep.target) + ", line_x = " +
               text_of(pass.line) + ", along = " + text_of(pass.segment ? pass.parts_axis : 2) + ", ahead = " + text_of(pass.segment) + ", piece = " + text_of(pass.segment ? pass.piece : checked_.problem->shape.x) + ";\n    static constexpr bool bringer = " + flag(cut.bringer) + ", alike = " + flag(cut.alike) + ", apart = " + flag(cut.apart) + ", star = " + flag(cut.star) + ";\n    static constexpr unsigned staged = " + text_of(pass.staged) + ";\n    static constexpr int any_staged = " + text_of(std::countr_zero(pass.staged)) + ";\n    static constexpr bool bulk = " + flag(staged_in_vectors(checked_, pass.staged)) + ", vectors = " +
               flag(checked_.problem->shape.x % V == 0) + ", has_rhs = " + flag(static_cast<bool>(sweep.rhs)) + ", ends_x = " + flag(ends(s, pass.line)) + ", ring_x = " + flag(ring(s, 0)) + ", ends_y = " + flag(pass.segment && ends(s, pass.parts_axis)) + ", ring_y = " + flag(pass.segment && ring(s, pass.parts_axis)) + ";\n" + function("rhs", sweep.rhs) +
               "};\n" + kernel(name, cut.threads, cut.blocks, "rows_pass");
    }

    std::string columns(std::size_t s, std::size_t k) {
        const CheckedSweep& one = checked_.sweeps[s];
        const Sweep& sweep = *one.sweep;
        const Pass& pass = plan_.sweeps[s].passes[k];
        const ColumnsCut& cut = pass.columns;
        const std::string name = name_of_pass(s, k);
        const int axis = sweep.lines[static_cast<std::size_t>(pass.line)].axis;
        const bool last = k + 1 == plan_.sweeps[s].passes.size(), updates = last && sweep.update;
        const MeshShape& shape = checked_.problem->shape;
        const std::int64_t inner = axis == 1 ? shape.x : shape.x * shape.y, V = 16 / static_cast<std::int64_t>(size_of(checked_.dtype));
        unsigned used = 0;
        for (int f = 0; updates && f < std::min(one.update.fields, checked_.solution_field()); ++f) used |= one.update.field[static_cast<std::size_t>(f)].rows ? 1u << f : 0u;
        return "struct C_" + name + " : Common {\n    static constexpr int R = " + text_of(cut.segment_rows) + ", S = " + text_of(cut.segments) + ", W = " + text_of(cut.columns) + ", stages = " + text_of(cut.stages) + ", held_stages = " + text_of(cut.held_stages) + ", held = " + text_of(std::countr_zero(used | 256u)) + ", rows = " +
               text_of(shape.along(axis)) + ", axis = " + text_of(axis) + ", line = " + text_of(pass.line) + ", target = " + text_of(sweep.target) + ", behind = " + text_of(pass.segment) + ", piece = " + text_of(pass.piece) + ";\n    static constexpr unsigned used = " +
               text_of(used) + ";\n    static constexpr bool whole = " + flag(plan_.whole_threads > 0) + ", by_reach = " + flag(pass.by_reach) + ", alternates = " + flag(pass.alternates) + ", vectors = " + flag((pass.segment ? shape.x : inner) % V == 0 && cut.columns % V == 0) + ", prefetch = " + flag(cut.prefetch && used) + ", planes = " + flag(cut.held_stages > 0) + ", has_update = " + flag(updates) + ", to_target = " +
               flag(last) + ", ends = " + flag(ends(s, pass.line)) + ", ring = " + flag(ring(s, axis)) + ", ring_across = " + flag(pass.segment && ring(s, pass.parts_axis)) + ";\n" + function("update", updates ? sweep.update : PointFunction{}) + "};\n" + kernel(name, cut.threads, cut.blocks, "columns_pass");
    }

    std::string joins(std::size_t s, std::size_t k) const {
        const Pass& pass = plan_.sweeps[s].passes[k];
        const std::string name = name_of_pass(s, k);
        return "struct C_" + name + " : Common {\n    static constexpr int ahead = " + text_of(pass.segment) + ", each = " + text_of(pass.each) + ", axis = " + text_of(pass.parts_axis) + ", piece = " + text_of(pass.piece) + ", line = " + text_of(pass.line) + ";\n    static constexpr bool ring = " + flag(ring(s, pass.parts_axis)) + ";\n};\nextern \"C\" __global__ void __launch_bounds__(" +
               text_of(pass.threads()) + ") " + name +
               "(const __grid_constant__ MeshArguments<real> a, const __grid_constant__ Common::Parameters, const real* table, real, real) { streaming::joins_pass<C_" + name + ">(a, table); }\n";
    }

    std::string kernel(const std::string& name, int threads, int blocks, const char* pass) const {
        if (plan_.whole_threads > 0) return {};
        return "extern \"C\" __global__ void __launch_bounds__(" + text_of(threads) + ", " + text_of(blocks) + ") " + name +
               "(const __grid_constant__ MeshArguments<real> a, const __grid_constant__ Common::Parameters p, const real* table, real low, real high) { streaming::" + pass + "<C_" + name +
               ">(a, p, table, low, high); }\n";
    }

    const Checked& checked_;
    const Plan& plan_;
    FunctionTexts functions_;
};

}  // namespace

std::string program(const Checked& checked, const Plan& plan) { return Writer(checked, plan).text(); }

}  // namespace trifold::cuda::streaming
