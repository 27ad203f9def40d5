// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cctype>

#include "backends/cuda/jit/compiler.hpp"
#include "backends/cuda/mesh/functions.hpp"
#include "backends/cuda/mesh/fused/prepare.hpp"

namespace trifold::cuda::fused {

using mesh::Checked;
using mesh::CheckedSweep;

std::size_t parameter_count(const Checked& checked) { return std::max<std::size_t>(checked.problem->parameters.size(), 1); }

std::string name_of_pass(std::size_t sweep, std::size_t line) { return "pass_" + std::to_string(sweep) + "_" + std::to_string(line); }
std::string name_of_check(std::size_t sweep, std::size_t line) { return "check_" + std::to_string(sweep) + "_" + std::to_string(line); }
std::string name_of_keep(std::size_t sweep, std::size_t line) { return "keep_" + std::to_string(sweep) + "_" + std::to_string(line); }
std::string name_of_rhs(std::size_t sweep) { return "rhs_" + std::to_string(sweep); }
std::string name_of_rows(std::size_t sweep) { return "rows_" + std::to_string(sweep); }
std::string name_of_keep_rhs(std::size_t sweep) { return "keep_rhs_" + std::to_string(sweep); }

namespace {

std::string text_of(std::int64_t value) { return std::to_string(value); }
const char* flag(bool value) { return value ? "true" : "false"; }

/// [field][…] of strides, and of the kinds of sides.
template <class Of>
std::string of_fields(const Checked& checked, Of of) {
    std::string text;
    for (const AnyField& field : checked.problem->fields) text.append(text.empty() ? "{" : ", {").append(of(field)) += "}";
    return text;
}

std::string common(const Checked& checked) {
    const MeshShape& shape = checked.problem->shape;
    const std::string strides = of_fields(checked, [](const AnyField& field) {
        std::string text;
        for (const std::int64_t stride : field.stride) text.append(text.empty() ? "" : ", ").append(text_of(stride));
        return text;
    });
    const std::string edges = of_fields(checked, [](const AnyField& field) {
        std::string text;
        for (const Sides& axis : field.sides) text.append(text.empty() ? "{" : ", {").append(text_of(static_cast<int>(axis.low.edge))).append(", ").append(text_of(static_cast<int>(axis.high.edge))) += "}";
        return text;
    });
    return "struct Common {\n    using real = ::real;\n    struct Parameters {\n        real at[" + std::to_string(parameter_count(checked)) +
           "];\n        __device__ real operator[](int k) const { return at[k]; }\n    };\n    static constexpr int fields = " + std::to_string(checked.problem->fields.size()) + ", nx = " + text_of(shape.x) +
           ", ny = " + text_of(shape.y) + ", nz = " + text_of(shape.z) + ", not_finite = " + text_of(-static_cast<int>(Reason::not_finite)) +
           ";\n    static __device__ constexpr long stride(int field, int axis) {\n        constexpr long all[][4] = {" + strides +
           "};\n        return all[field][axis];\n    }\n    static __device__ constexpr int edge(int field, int axis, int side) {\n        constexpr int all[][3][2] = {" + edges +
           "};\n        return all[field][axis][side];\n    }\n};\n";
}

/// What a function reads, as near.cuh wants it.
std::string reads(const std::string& name, const mesh::Access& access, int fields) {
    std::string list;
    int count = 0;
    for (int f = 0; f < std::min(access.fields, fields); ++f)
        for (int row = 0; row < rows_across * rows_across; ++row) {
            const mesh::FieldAccess& field = access.field[static_cast<std::size_t>(f)];
            if (!(field.rows >> row & 1)) continue;
            const int along = field.along_x[static_cast<std::size_t>(row)];
            for (int dx = -along; dx <= along; ++dx, ++count)
                list.append(list.empty() ? "{" : ", {").append(text_of(f)).append(", ").append(text_of(dx)).append(", ").append(text_of(row % rows_across - max_reach)).append(", ").append(text_of(row / rows_across - max_reach)) += "}";
        }
    return "    struct " + name + " {\n        static constexpr int count = " + std::to_string(count) + ";\n        static __device__ constexpr int at(int k, int what) {\n            constexpr int all[][4] = {" + (count ? list : "{0, 0, 0, 0}") +
           "};\n            return all[k][what];\n        }\n    };\n";
}

class Writer {
public:
    Writer(const Checked& checked, const Plan& plan) : checked_(checked), plan_(plan) {}

    std::string text() {
        std::string kernels;
        bool keeps = false;
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s) {
            const bool has_rows = static_cast<bool>(plan_.sweeps[s].rows);
            if (has_rows) kernels += rows(s);
            else if (plan_.sweeps[s].apart) kernels += right_hand_side(s);
            for (std::size_t k = has_rows; k < plan_.sweeps[s].passes.size(); ++k) kernels += pass(s, k);
            keeps = keeps || plan_.sweeps[s].apart;
            for (const Pass& one : plan_.sweeps[s].passes) keeps = keeps || one.kept;
        }
        if (plan_.exchanged >= 0)
            kernels += "extern \"C\" __global__ void bring_back(const MeshState* state, real* target, const real* other, std::int64_t points, unsigned long long from, unsigned long long to, unsigned exchanging, unsigned each) "
                       "{ fused::bring_back(state, target, other, points, from, to, exchanging, each); }\n";
        return (keeps ? jit::rough_division : "") + functions_.text() + (keeps ? "#include \"backends/cuda/mesh/fused/kept.cuh\"\n#include \"backends/cuda/mesh/fused/right_hand_side.cuh\"\n#include \"backends/cuda/mesh/fused/rows.cuh\"\n#include \"backends/cuda/mesh/fused/held.cuh\"\n#include \"backends/cuda/mesh/fused/columns.cuh\"\n" : "#include \"backends/cuda/mesh/fused/pass.cuh\"\n") + "using namespace trifold::cuda;\nusing real = " + (checked_.dtype == DType::f32 ? "float" : "double") + ";\n" + common(checked_) + kernels;
    }

private:
    std::string function(const char* name, const PointFunction& called) { return called ? function(name, called.name, called.source) : std::string{}; }

    std::string function(const char* name, std::string_view title, std::string_view source) {
        return std::string("    template <class Near>\n    static __device__ __forceinline__ void ") + name +
               "(const Near& near, const Parameters& p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) { " + functions_.name_of(title, source) +
               "<real>(near, p, out, x, y, z, mesh, step); }\n";
    }

    /// The same in doubles whose divisions are rough (rough.cuh), where the text has nothing but what those have.
    std::string rough_function(const char* name, std::string_view title, std::string_view source, int results) {
        if (checked_.dtype == DType::f32 || !divides(source) || !plain(source)) return function(name, title, source);
        const std::string count = text_of(results);
        return std::string("    template <class Near>\n    static __device__ __forceinline__ void ") + name +
               "(const Near& near, const Parameters& p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) {\n        fused::Rough own[" + count + "];\n        for (int k = 0; k < " + count +
               "; ++k) own[k] = out[k];\n        " + functions_.name_of(title, source) + "<fused::Rough>(fused::RoughNear<Near>{near}, fused::RoughNumbers<Parameters>{p}, own, x, y, z, mesh, step);\n        for (int k = 0; k < " + count +
               "; ++k) out[k] = own[k].value;\n    }\n";
    }

    static bool divides(std::string_view source) { return source.find('/') != std::string_view::npos; }
    /// No types but `real`, no loops, and no functions that those doubles lack.
    static bool plain(std::string_view source) {
        static constexpr std::string_view all[] = {"real", "at", "out", "p", "mad", "fabs", "sqrt", "exp", "fmin", "fmax", "if"};
        static constexpr std::string_view none[] = {"int", "long", "short", "char", "unsigned", "double", "float", "auto", "bool", "for", "while", "do", "switch", "struct", "std"};
        for (std::size_t i = 0; i < source.size();) {
            const auto in_name = [&](std::size_t k) { return k < source.size() && (std::isalnum(static_cast<unsigned char>(source[k])) || source[k] == '_'); };
            std::size_t end = i + 1;
            while (in_name(i) && in_name(end)) ++end;
            const std::string_view word = source.substr(i, end - i);
            while (end < source.size() && source[end] == ' ') ++end;
            const bool is_name = std::isalpha(static_cast<unsigned char>(word[0])) || word[0] == '_';
            if (is_name && std::find(std::begin(none), std::end(none), word) != std::end(none)) return false;
            if (is_name && end < source.size() && source[end] == '(' && std::find(std::begin(all), std::end(all), word) == std::end(all)) return false;
            i = end;
        }
        return true;
    }

    static std::string reaches(const std::array<int, 3>& reach) { return "reach_x = " + text_of(reach[0]) + ", reach_y = " + text_of(reach[1]) + ", reach_z = " + text_of(reach[2]); }

    static std::string arguments() { return "(const __grid_constant__ MeshArguments<real> a, const __grid_constant__ Common::Parameters p"; }

    std::string right_hand_side(std::size_t s) {
        const CheckedSweep& one = checked_.sweeps[s];
        const std::string name = name_of_rhs(s), type = "C_" + name;
        const SweepPlan& own = plan_.sweeps[s];
        const PointFunction& rhs = one.sweep->rhs;
        std::string places;
        for (const KeptValues::Value& value : own.kept.values) places.append(places.empty() ? "{" : ", {").append(text_of(value.at)).append(", ").append(text_of(value.axis)).append(", ").append(text_of(value.beyond)) += "}";
        std::string text = "struct " + type + " : Common {\n    static constexpr int P = " + text_of(own.rhs_points) + ", groups = " + text_of(own.rhs_groups) + ", kept = " + text_of(own.kept.count()) + ", " + reaches(reach_of(one.rhs)) +
                           ";\n    static constexpr bool held = " + flag(own.kept.held) + ";\n    static constexpr long kept_words = " + text_of(own.kept.meshes > 1 ? own.kept.words : 0) + ";\n    static __device__ constexpr long place(int value, int what) {\n        constexpr long all[][3] = {" + (places.empty() ? "{0, 0, 0}" : places) +
                           "};\n        return all[value][what];\n    }\n" + reads("rhs_reads", one.rhs, checked_.solution_field()) + (own.kept.count() > 0 ? function("rhs", rhs.name, own.kept.split.rest) + rough_function("keep", rhs.name, own.kept.split.once, own.kept.split.kept) : function("rhs", rhs)) + "};\n";
        const std::string more = ", const __grid_constant__ fused::PassArguments<real> pass, const __grid_constant__ fused::KeptArguments<real> kept) { fused::";
        text += "extern \"C\" __global__ void __launch_bounds__(256, " + text_of(own.rhs_blocks) + ") " + name + arguments() + more + "right_hand_sides<" + type + ">(a, p, kept.memory, static_cast<unsigned>(pass.tasks)); }\n";
        if (own.kept) text += "extern \"C\" __global__ void " + name_of_keep_rhs(s) + arguments() + more + "keep_values<" + type + ">(a, p, kept.memory, " + text_of(own.kept.meshes) + "); }\n";
        return text;
    }

    /// Rows of fields as rows.cuh wants them.
    static std::string window(const mesh::Access& rhs, const mesh::Access& coefficients, int fields) {
        std::string list;
        int count = 0;
        for (int f = 0; f < fields; ++f)
            for (std::size_t row = 0; row < static_cast<std::size_t>(rows_across * rows_across); ++row) {
                bool read = false;
                int along = 0;
                for (const mesh::Access* one : {&rhs, &coefficients}) {
                    const mesh::FieldAccess& field = one->field[static_cast<std::size_t>(f)];
                    if (f >= one->fields || !(field.rows >> row & 1)) continue;
                    read = true, along = std::max<int>(along, field.along_x[row]);
                }
                if (!read) continue;
                const int at = static_cast<int>(row);
                list.append(list.empty() ? "{" : ", {").append(text_of(f)).append(", ").append(text_of(along)).append(", ").append(text_of(at % rows_across - max_reach)).append(", ").append(text_of(at / rows_across - max_reach)) += "}";
                ++count;
            }
        return "    struct window {\n        static constexpr int count = " + text_of(count) + ";\n        static __device__ constexpr int at(int k, int what) {\n            constexpr int all[][4] = {" + (count ? list : "{0, 0, 0, 0}") + "};\n            return all[k][what];\n        }\n    };\n";
    }

    std::string rows(std::size_t s) {
        const CheckedSweep& one = checked_.sweeps[s];
        const Sweep& sweep = *one.sweep;
        const SweepPlan& own = plan_.sweeps[s];
        const RowsPlan& rows = own.rows;
        const MeshShape& shape = checked_.problem->shape;
        const std::string name = name_of_rows(s), type = "C_" + name;
        const int along = shape.z > 1 ? 2 : 1;
        const Sides& sides = sweep.solution[0];
        std::string shared, aligned;
        const std::vector<resident::Place> places = resident::places_of(own.kept.split);
        for (std::size_t v = 0; v < places.size(); ++v) {
            int axis = -1, other = 0;
            for (std::size_t k = 0; k < places.size(); ++k)
                if (places[v].axis < 0 && places[k].array == places[v].array && (places[k].axis == along || (places[k].axis == 0 && axis < 0))) axis = places[k].axis, other = static_cast<int>(k);
            shared.append(shared.empty() ? "{" : ", {").append(text_of(axis)).append(", ").append(text_of(other)) += "}";
        }
        for (const AnyField& field : checked_.problem->fields) {
            const std::int64_t piece = 16 / static_cast<std::int64_t>(size_of(checked_.dtype));
            bool fits = field.stride[0] == 1 && reinterpret_cast<std::uintptr_t>(field.data) % 16 == 0;
            for (std::size_t axis = 1; axis < 4; ++axis) fits = fits && field.stride[axis] % piece == 0;
            aligned.append(aligned.empty() ? "" : ", ") += flag(fits);
        }
        const bool keeps = own.kept.split.kept > 0, ring = sides.low.edge == Edge::periodic;
        const LineSolve& line = sweep.lines.front();
        std::string text = "struct " + type + " : Common {\n    static constexpr int axis = 0, n = nx, R = " + text_of(rows.rows) + ", warps = " + text_of(rows.warps) + ", deep = " + text_of(rows.deep) + ", beside = " + text_of(rows.beside) + ", stages = " + text_of(rows.stages) + ", line = 0, kept = " + text_of(own.kept.split.kept) + ", " +
                           reaches(reach_of(one.rhs)) + ";\n    static constexpr unsigned tiled = " + text_of(rows.tiled) + ";\n    static constexpr bool ring = " + flag(ring) + ", held = true, has_coefficients = " + flag(static_cast<bool>(line.coefficients)) + ";\n    static __device__ constexpr int end(int side) { return side == 0 ? " +
                           text_of(static_cast<int>(sides.low.edge)) + " : " + text_of(static_cast<int>(sides.high.edge)) + "; }\n    static __device__ constexpr int shared(int value, int what) {\n        constexpr int all[][2] = {" + (shared.empty() ? "{-1, 0}" : shared) +
                           "};\n        return all[value][what];\n    }\n    static __device__ constexpr bool aligned(int field) {\n        constexpr bool all[] = {" + aligned + "};\n        return all[field];\n    }\n" +
                           (rows.beside ? reads("rhs_reads", one.rhs, checked_.solution_field()) + reads("coefficients_reads", one.coefficients.front(), checked_.solution_field()) : window(one.rhs, one.coefficients.front(), checked_.solution_field()));
        text += keeps ? function("rhs", sweep.rhs.name, own.kept.split.rest) + rough_function("keep", sweep.rhs.name, own.kept.split.once, own.kept.split.kept) : function("rhs", sweep.rhs);
        if (line.coefficients) text += rough_function("coefficients", line.coefficients.name, line.coefficients.source, 3);
        text += "};\nextern \"C\" __global__ void __launch_bounds__(" + text_of(32 * rows.warps) + ", " + text_of(rows.blocks) + ") " + name + arguments() + ", const __grid_constant__ fused::PassArguments<real> pass) { fused::" + (rows.beside ? "held_rows<" : "rows<") + type + ">(a, p, pass); }\n";
        if (rows.beside) text += "static_assert(fused::HeldRows<" + type + ">::in_memory * sizeof(real) == " + text_of(static_cast<std::int64_t>(rows.shared)) + ");\n";
        if (line.coefficients) text += "extern \"C\" __global__ void " + name_of_check(s, 0) + arguments() + ", std::int64_t points) { fused::check<" + type + ">(a, p, points); }\n";
        return text;
    }

    std::string pass(std::size_t s, std::size_t k) {
        const CheckedSweep& one = checked_.sweeps[s];
        const Sweep& sweep = *one.sweep;
        const LineSolve& line = sweep.lines[k];
        const Pass& own = plan_.sweeps[s].passes[k];
        const bool first = k == 0, last = k + 1 == plan_.sweeps[s].passes.size(), has_rhs = first && sweep.rhs && !plan_.sweeps[s].apart, updates = last && sweep.update;
        unsigned used = 0;
        for (int f = 0; updates && f < std::min(one.update.fields, checked_.solution_field()); ++f) used |= one.update.field[static_cast<std::size_t>(f)].rows ? 1u << f : 0u;
        const std::array<int, 3> reach = has_rhs ? reach_of(one.rhs) : std::array<int, 3>{};
        const Sides& sides = sweep.solution[static_cast<std::size_t>(line.axis)];
        const std::string name = name_of_pass(s, k), type = "C_" + name;
        std::string text = "struct " + type + " : Common {\n    static constexpr int axis = " + text_of(line.axis) + ", n = " + text_of(checked_.problem->shape.along(line.axis)) + ", R = " + text_of(own.cut.rows) + ", S = " +
                           text_of(own.cut.segments) + ", W = " + text_of(own.cut.columns) + ", line = " + std::to_string(k) + ", target = " + text_of(sweep.target) + ", " + reaches(reach) + ";\n    static constexpr unsigned used = " + std::to_string(used) + ";\n    static constexpr bool ring = " + flag(own.ring) + ", has_coefficients = " + flag(own.made) + ", alike = " +
                           flag(own.alike) + ", one = " + flag(own.one) + ", from_fields = " + flag(first && !plan_.sweeps[s].apart) + ", has_rhs = " + flag(has_rhs) + ", last = " + flag(last) + ", has_update = " + flag(updates) + ", exchanges = " +
                           flag(plan_.sweeps[s].exchanges) + ";\n    static __device__ constexpr int end(int side) { return side == 0 ? " + text_of(static_cast<int>(sides.low.edge)) + " : " + text_of(static_cast<int>(sides.high.edge)) + "; }\n" +
                           reads("rhs_reads", has_rhs ? one.rhs : mesh::Access{}, checked_.solution_field()) + reads("coefficients_reads", one.coefficients[k], checked_.solution_field()) + reads("update_reads", updates ? one.update : mesh::Access{}, checked_.solution_field()) + function("rhs", has_rhs ? sweep.rhs : PointFunction{}) + (own.in_registers ? rough_function("coefficients", line.coefficients.name, line.coefficients.source, 3) : function("coefficients", line.coefficients)) + function("update", updates ? sweep.update : PointFunction{}) + "};\nextern \"C\" __global__ void __launch_bounds__(" +
                           text_of(own.cut.threads) + ", " + text_of(own.cut.blocks) + ") " + name + arguments() + ", const __grid_constant__ fused::PassArguments<real> pass";
        if (own.kept) {
            const std::string kept = ", const __grid_constant__ fused::PassArguments<real> pass, const __grid_constant__ fused::KeptArguments<real> kept) { fused::";
            return text + ", const __grid_constant__ fused::KeptArguments<real> kept) { fused::kept_pass<" + type + ">(a, p, pass, kept); }\nextern \"C\" __global__ void __launch_bounds__(" + text_of(own.cut.threads) + ") " +
                   name_of_keep(s, k) + arguments() + kept + "keep<" + type + ">(a, p, pass, kept); }\nstatic_assert(fused::KeptLines<" + type + ">::words == " + text_of(own.kept_words) + ");\n";
        }
        text += std::string(") { fused::") + (own.in_registers ? "made_pass<" : "pass<") + type + ">(a, p, pass); }\n";
        if (own.made) text += "extern \"C\" __global__ void " + name_of_check(s, k) + arguments() + ", std::int64_t points) { fused::check<" + type + ">(a, p, points); }\n";
        return text;
    }

    const Checked& checked_;
    const Plan& plan_;
    FunctionTexts functions_;
};

}  // namespace

std::string program(const Checked& checked, const Plan& plan) { return Writer(checked, plan).text(); }

}  // namespace trifold::cuda::fused
