// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/planes/prepare.hpp"

#include <algorithm>

#include "backends/cuda/mesh/functions.hpp"
#include "backends/cuda/mesh/streaming/line_table.hpp"
#include "backends/cuda/mesh/streaming/program_text.hpp"

namespace trifold::cuda::planes {

using mesh::Checked;

namespace {

/// Timed: planes of 80 points a side are fastest one kernel behind the other, beginning early, of 96 in two groups.
constexpr std::int64_t two_groups_from = 96;

/// Planes lie side by side, and are copied whole.
bool packed(const AnyField& field, const MeshShape& shape, std::size_t value_bytes) {
    return field.stride[0] == 1 && field.stride[1] == shape.x && field.stride[2] == shape.x * shape.y && field.stride[3] % (16 / static_cast<std::int64_t>(value_bytes)) == 0 &&
           reinterpret_cast<std::uintptr_t>(field.data) % 16 == 0;
}

/// Of one axis, by segments.
template <class T>
bool append_lines(const Checked& checked, int axis, const Segments& segments, const Layout<T>& layout, std::vector<T>& tables) {
    const streaming::LineMatrix<T> matrix = streaming::matrix_of<T>(checked, 0, axis);
    const streaming::LineTable<T> table(matrix, segments.rows, segments.count);
    for (int s = 0; s < segments.count; ++s) {
        std::vector<T> one(static_cast<std::size_t>(layout.apart()));
        const auto place = [&](int which) { return one.begin() + which * layout.padded(); };
        const T* const factors = table.factors.data() + 4 * segments.rows * s;
        for (const auto& [to, from] : {std::pair{0, 0}, {1, 1}, {3, 2}, {4, 3}}) std::copy_n(factors + from * segments.rows, segments.rows, place(to));
        std::copy_n(table.reach.data() + segments.rows * s, segments.rows, place(2));
        tables.insert(tables.end(), one.begin(), one.end());
    }
    tables.insert(tables.end(), table.joins.begin(), table.joins.end());
    return axis == 0 ? table.safe && streaming::LaneTable<T>(matrix, segments.rows, segments.count).safe : table.safe;
}

template <class T>
const char* why_not(const Checked& checked, const Segments& segments, const Chip& chip) {
    const std::int64_t values = checked.problem->shape.points() + scratch_values(checked, segments);
    if (static_cast<double>(values + checked.problem->shape.points()) * sizeof(T) > 0.9 * static_cast<double>(chip.memory)) return "a second field and ends of segments do not fit in memory";
    if (static_cast<std::size_t>(layout_of<T>(checked, segments).shared_bytes()) > chip.shared_per_block) return "planes do not fit on a multiprocessor";
    std::vector<T> tables;
    return tables_of(checked, segments, tables) ? nullptr : "a matrix needs pivots";
}

std::string text_of(std::int64_t value) { return std::to_string(value); }

}  // namespace

template <class T>
bool tables_of(const Checked& checked, const Segments& segments, std::vector<T>& tables) {
    const Layout<T> layout = layout_of<T>(checked, segments);
    const bool safe = append_lines(checked, 0, segments, layout, tables) & append_lines(checked, 1, segments, layout, tables);
    const streaming::LineTable<T> z(streaming::matrix_of<T>(checked, 0, 2), segments.rows_z, layout.segments_z);
    const int H = segments.rows_z;
    for (int row = 0; row < H * layout.segments_z; ++row) {
        const auto factor = [&](int which) { return z.factors[static_cast<std::size_t>((4 * (row / H) + which) * H + row % H)]; };
        tables.insert(tables.end(), {factor(0), factor(1), z.reach[static_cast<std::size_t>(row)], factor(2), factor(3)});
    }
    tables.insert(tables.end(), z.joins.begin(), z.joins.end());
    tables.insert(tables.end(), z.begins.begin(), z.begins.end());
    return safe && z.safe;
}

template bool tables_of<float>(const Checked&, const Segments&, std::vector<float>&);
template bool tables_of<double>(const Checked&, const Segments&, std::vector<double>&);

std::int64_t scratch_values(const Checked& checked, const Segments& segments) {
    const std::int64_t points = checked.problem->shape.points();
    return points + 4 * (points / segments.rows_z);
}

Plan plan_of(const Checked& checked, const Chip& chip) {
    Plan plan;
    plan.moves_alone = chip.moves_alone;
    const auto refuse = [&](const char* why) {
        plan.refuses = why;
        return plan;
    };
    const MeshShape& shape = checked.problem->shape;
    if (!chip.has_clusters()) return refuse("they are made for compute capability 9.0");
    if (checked.problem->parameters.size() > 256) return refuse("there are more than 256 parameters");
    if (checked.sweeps.empty()) return refuse("there are no sweeps");
    plan.segments = segments_of(checked);
    if (!plan.segments) return refuse("a step of such boxes takes more than one pass");
    const std::int64_t segments_z = shape.z / plan.segments.rows_z;
    // Where less than 9 in 20 of the multiprocessors have a segment, three passes of the streaming kernels are faster.
    if (20 * shape.meshes * segments_z < 9 * chip.multiprocessors) return refuse("there are too few meshes");
    if (shape.points() >= std::int64_t{1} << 36) return refuse("a batch is too large");
    if (!packed(checked.problem->fields[static_cast<std::size_t>(checked.sweeps[0].sweep->target)], shape, size_of(checked.dtype))) return refuse("planes do not lie side by side");
    if (const char* const why = checked.dtype == DType::f32 ? why_not<float>(checked, plan.segments, chip) : why_not<double>(checked, plan.segments, chip)) return refuse(why);
    // Where all segments have a multiprocessor, nobody has a tail to fill.
    const bool alone = shape.meshes * segments_z <= chip.multiprocessors;
    plan.early = alone && shape.x < two_groups_from;
    plan.groups = plan.early ? 1 : alone ? 2 : 3;
    for (int each = static_cast<int>(16 / size_of(checked.dtype)); plan.each == 1 && each > 1; each /= 2)
        if (each * segments_z * static_cast<std::int64_t>(size_of(checked.dtype)) <= 128) plan.each = each;
    return plan;
}

std::string program(const Checked& checked, const Plan& plan) {
    FunctionTexts functions;
    const MeshShape& shape = checked.problem->shape;
    const Sweep& sweep = *checked.sweeps[0].sweep;
    const Segments& own = plan.segments;
    const std::string rhs = streaming::function_text(functions, "rhs", sweep.rhs);
    const int threads = checked.dtype == DType::f32 ? layout_of<float>(checked, own).threads() : layout_of<double>(checked, own).threads();
    const std::string head = "extern \"C\" __global__ void __launch_bounds__(", common = "const __grid_constant__ MeshArguments<real> a, ";
    std::string text = streaming::program_head(checked, plan.moves_alone, functions.text(), {"backends/cuda/mesh/planes/ends.cuh"}) + "struct C : Common {\n    static constexpr int n = " + text_of(shape.x) + ", H = " + text_of(own.rows_z) + ", S = " +
                       text_of(own.count) + ", R = " + text_of(own.rows) + ", each = " + text_of(plan.each) + ", target = " + text_of(sweep.target) + ", line_x = 0, line_y = 1, line_z = 2;\n" + rhs + "};\n";
    for (const auto& [name, what] : {std::pair{"first", "false, true"}, {"step", "true, true"}, {"last", "true, false"}})
        text += head + text_of(threads) + ", 1) " + name + "(" + common + "const __grid_constant__ Common::Parameters p, const __grid_constant__ planes::Pass<real> pass) { planes::planes_pass<C, " + what + ">(a, p, pass); }\n";
    return text + head + "256) ends(" + common + "const __grid_constant__ planes::Pass<real> pass, real* solved) { planes::ends_pass<C>(a, pass, solved); }\n" + head + "1024) settle(" + common +
           "const real* beside, const unsigned char* failed, std::int64_t first, std::int64_t passes) { planes::settle_pass<C>(a, beside, failed, first, passes); }\n";
}

}  // namespace trifold::cuda::planes
