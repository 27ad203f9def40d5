// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/program_text.hpp"

#include <algorithm>

namespace trifold::cuda::streaming {

using mesh::Checked;

std::size_t parameter_count(const Checked& checked) { return std::max<std::size_t>(checked.problem->parameters.size(), 1); }

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

}  // namespace

bool subtracts(const Checked& checked, std::size_t s, int line) {
    const Sides& sides = checked.sweeps[s].sweep->solution[static_cast<std::size_t>(checked.sweeps[s].sweep->lines[static_cast<std::size_t>(line)].axis)];
    return (sides.low.edge == Edge::odd && sides.low.value != 0) || (sides.high.edge == Edge::odd && sides.high.value != 0);
}

std::string function_text(FunctionTexts& functions, const char* name, const PointFunction& called) {
    const std::string head = std::string("    template <class Near>\n    static __device__ __forceinline__ void ") + name +
                             "(const Near& near, const Parameters& p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) { ";
    return head + (called ? functions.name_of(called) + "<real>(near, p, out, x, y, z, mesh, step); }\n" : std::string("}\n"));
}

std::string program_head(const Checked& checked, bool moves_alone, const std::string& functions, std::initializer_list<const char*> headers) {
    const MeshShape& shape = checked.problem->shape;
    const auto fields = checked.problem->fields.size();
    std::string text = functions;
    for (const char* const header : headers) text += "#include \"" + std::string(header) + "\"\n";
    return text + "using namespace trifold::cuda;\nusing real = " + (checked.dtype == DType::f32 ? "float" : "double") +
           ";\nstruct Common {\n    using real = ::real;\n    struct Parameters {\n        real at[" + text_of(static_cast<std::int64_t>(parameter_count(checked))) + "];\n        __device__ real operator[](int k) const { return at[k]; }\n    };\n    static constexpr int fields = " + text_of(static_cast<std::int64_t>(fields)) + ", nx = " + text_of(shape.x) + ", ny = " + text_of(shape.y) +
           ", nz = " + text_of(shape.z) + ", not_finite = " + text_of(-static_cast<int>(Reason::not_finite)) + ";\n    static constexpr bool moves_alone = " + (moves_alone ? "true" : "false") + ";\n    static __device__ constexpr long stride(int field, int axis) {\n        constexpr long all[][4] = {" +
           strides_of(checked) + "};\n        return all[field][axis];\n    }\n    static __device__ constexpr int edge(int field, int axis, int side) {\n        constexpr int all[][3][2] = {" +
           edges_of(checked) + "};\n        return all[field][axis][side];\n    }\n};\n";
}

}  // namespace trifold::cuda::streaming
