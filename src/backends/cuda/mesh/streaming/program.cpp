// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/jit/compiler.hpp"
#include "backends/cuda/mesh/functions.hpp"
#include "backends/cuda/mesh/resident/invariants.hpp"
#include "backends/cuda/mesh/streaming/prepare.hpp"

#include <algorithm>
#include <bit>

namespace trifold::cuda::streaming {

using mesh::Checked;
using mesh::CheckedSweep;

std::size_t parameter_count(const Checked& checked) { return std::max<std::size_t>(checked.problem->parameters.size(), 1); }

std::string name_of_pass(std::size_t sweep, std::size_t pass) { return "pass_" + std::to_string(sweep) + "_" + std::to_string(pass); }

namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }

std::string strides_of(const Checked& checked) {
    std::string text;
    for (const AnyField& field : checked.problem->fields) {
        text += text.empty() ? "{" : ", {";
        for (std::size_t d = 0; d < 4; ++d) text += (d ? ", " : "") + text_of(field.stride[d]);
        text += "}";
    }
    return text;
}

std::string edges_of(const Checked& checked) {
    std::string text;
    for (const AnyField& field : checked.problem->fields) {
        text += text.empty() ? "{" : ", {";
        for (std::size_t axis = 0; axis < 3; ++axis)
            text += (axis ? ", {" : "{") + text_of(static_cast<int>(field.sides[axis].low.edge)) + ", " + text_of(static_cast<int>(field.sides[axis].high.edge)) + "}";
        text += "}";
    }
    return text;
}

class Writer {
public:
    Writer(const Checked& checked, const Plan& plan) : checked_(checked), plan_(plan) {}

    std::string text() {
        const MeshShape& shape = checked_.problem->shape;
        const auto fields = checked_.problem->fields.size();
        std::string common = "struct Common {\n    using real = ::real;\n    struct Parameters {\n        real at[" + text_of(static_cast<std::int64_t>(parameter_count(checked_))) + "];\n        __device__ real operator[](int k) const { return at[k]; }\n    };\n    static constexpr int fields = " + text_of(static_cast<std::int64_t>(fields)) + ", nx = " + text_of(shape.x) + ", ny = " + text_of(shape.y) +
                             ", nz = " + text_of(shape.z) + ", not_finite = " + text_of(-static_cast<int>(Reason::not_finite)) + ";\n    static constexpr bool moves_alone = " + flag(plan_.moves_alone) + ";\n    static __device__ constexpr long stride(int field, int axis) {\n        constexpr long all[][4] = {" +
                             strides_of(checked_) + "};\n        return all[field][axis];\n    }\n    static __device__ constexpr int edge(int field, int axis, int side) {\n        constexpr int all[][3][2] = {" +
                             edges_of(checked_) + "};\n        return all[field][axis][side];\n    }\n};\n";
        std::string kernels;
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s)
            for (std::size_t k = 0; k < plan_.sweeps[s].passes.size(); ++k) kernels += pass(s, k);
        if (plan_.whole_threads > 0) {
            kernels += "extern \"C\" __global__ void __launch_bounds__(" + text_of(plan_.whole_threads) +
                       ", 1) whole(const __grid_constant__ MeshArguments<real> a, const __grid_constant__ Common::Parameters p, const __grid_constant__ streaming::WholeRun<real> run) { streaming::whole_run<";
            for (std::size_t k = 0; k < plan_.sweeps[0].passes.size(); ++k) kernels += (k ? ", C_" : "C_") + name_of_pass(0, k);
            kernels += ">(a, p, run); }\n";
        }
        return (chooses_what_to_fuse() ? jit::no_contraction : "") + functions_.text() +
               "#include \"backends/cuda/mesh/streaming/rows.cuh\"\n#include \"backends/cuda/mesh/streaming/columns.cuh\"\n#include \"backends/cuda/mesh/streaming/joins.cuh\"\n#include \"backends/cuda/mesh/streaming/whole.cuh\"\nusing namespace trifold::cuda;\nusing real = " +
               (checked_.dtype == DType::f32 ? "float" : "double") + ";\n" + common + kernels;
    }

private:
    std::string function(const char* name, const PointFunction& called) {
        const std::string head = std::string("    template <class Near>\n    static __device__ __forceinline__ void ") + name +
                                 "(const Near& near, const Parameters& p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) { ";
        return head + (called ? functions_.name_of(called) + "<real>(near, p, out, x, y, z, mesh, step); }\n" : std::string("}\n"));
    }

    bool ends(std::size_t s, int line) const {
        const Sides& sides = checked_.sweeps[s].sweep->solution[static_cast<std::size_t>(checked_.sweeps[s].sweep->lines[static_cast<std::size_t>(line)].axis)];
        return (sides.low.edge == Edge::odd && sides.low.value != 0) || (sides.high.edge == Edge::odd && sides.high.value != 0);
    }

    /// Whether it might depend on which rows a thread has what a compiler fuses: a mesh alone and in a batch may have other kernels, and has the same bits.
    bool chooses_what_to_fuse() const {
        const auto shares = [](const PointFunction& function) { return function && resident::shares_products(function.source); };
        for (std::size_t s = 0; s < checked_.sweeps.size(); ++s) {
            const Sweep& sweep = *checked_.sweeps[s].sweep;
            if (shares(sweep.rhs) || shares(sweep.update)) return true;
            for (std::size_t line = 0; line < sweep.lines.size(); ++line)
                if (ends(s, static_cast<int>(line))) return true;
        }
        return false;
    }

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
               text_of(pass.line) + ", along = " + text_of(pass.segment ? pass.parts_axis : 2) + ", ahead = " + text_of(pass.segment) + ", piece = " + text_of(pass.segment ? pass.piece : checked_.problem->shape.x) + ";\n    static constexpr bool bringer = " + flag(cut.bringer) + ", alike = " + flag(cut.alike) + ", apart = " + flag(cut.apart) + ";\n    static constexpr unsigned staged = " + text_of(pass.staged) + ";\n    static constexpr int any_staged = " + text_of(std::countr_zero(pass.staged)) + ";\n    static constexpr bool bulk = " + flag(staged_in_vectors(checked_, pass.staged)) + ", vectors = " +
               flag(checked_.problem->shape.x % V == 0) + ", has_rhs = " + flag(static_cast<bool>(sweep.rhs)) + ", ends_x = " + flag(ends(s, pass.line)) + ", ends_y = " + flag(pass.segment && ends(s, pass.parts_axis)) + ";\n" + function("rhs", sweep.rhs) +
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
               text_of(used) + ";\n    static constexpr bool whole = " + flag(plan_.whole_threads > 0) + ", by_reach = " + flag(pass.by_reach) + ", vectors = " + flag((pass.segment ? shape.x : inner) % V == 0 && cut.columns % V == 0) + ", prefetch = " + flag(cut.prefetch && used) + ", planes = " + flag(cut.held_stages > 0) + ", has_update = " + flag(updates) + ", to_target = " +
               flag(last) + ", ends = " + flag(ends(s, pass.line)) + ";\n" + function("update", updates ? sweep.update : PointFunction{}) + "};\n" + kernel(name, cut.threads, cut.blocks, "columns_pass");
    }

    std::string joins(std::size_t s, std::size_t k) const {
        const Pass& pass = plan_.sweeps[s].passes[k];
        const std::string name = name_of_pass(s, k);
        return "struct C_" + name + " : Common {\n    static constexpr int ahead = " + text_of(pass.segment) + ", each = " + text_of(pass.each) + ", axis = " + text_of(pass.parts_axis) + ", piece = " + text_of(pass.piece) + ", line = " + text_of(pass.line) + ";\n};\nextern \"C\" __global__ void __launch_bounds__(" +
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
