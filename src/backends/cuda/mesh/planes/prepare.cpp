// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/planes/prepare.hpp"

#include <algorithm>
#include <tuple>

#include "backends/cuda/mesh/functions.hpp"
#include "backends/cuda/mesh/streaming/line_table.hpp"
#include "backends/cuda/mesh/streaming/program_text.hpp"

namespace trifold::cuda::planes {

using mesh::Checked;

namespace {

/// Timed, of a block's part of a plane: a large one may be two blocks' where these have a multiprocessor each. Where all blocks have one, small ones are fastest one kernel behind the other, beginning early,
/// large ones in two groups.
constexpr std::size_t large_part = 32 * 1024;

/// A cluster of more waits longer for its slowest block than a smaller part of a plane saves.
constexpr int most_blocks = 2;

/// Timed: where fewer of 20 multiprocessors have a part of a segment, three passes of the streaming kernels are faster.
constexpr std::int64_t least_of_blocks = 9, least_of_clusters = 12;

/// Planes lie side by side, and are copied whole; meshes one behind the other, as tensors have them.
bool packed(const AnyField& field, const MeshShape& shape, std::size_t value_bytes) {
    if (shape.meshes > 1 && field.stride[3] < shape.x * shape.y * shape.z) return false;
    return field.stride[0] == 1 && field.stride[1] == shape.x && field.stride[2] == shape.x * shape.y && field.stride[3] % (16 / static_cast<std::int64_t>(value_bytes)) == 0 &&
           reinterpret_cast<std::uintptr_t>(field.data) % 16 == 0;
}

/// Of one axis, by segments.
template <class T>
bool append_lines(const Checked& checked, int axis, const Segments& segments, const Layout<T>& layout, std::vector<T>& tables) {
    const streaming::LineMatrix<T> matrix = streaming::matrix_of<T>(checked, 0, axis);
    const int rows = axis == 0 ? segments.rows : segments.rows_y;
    const streaming::LineTable<T> table(matrix, rows, segments.count);
    for (int s = 0; s < segments.count; ++s) {
        std::vector<T> one(static_cast<std::size_t>(layout.apart(rows)));
        const auto place = [&](int which) { return one.begin() + which * layout.padded(rows); };
        const T* const factors = table.factors.data() + 4 * rows * s;
        for (const auto& [to, from] : {std::pair{0, 0}, {1, 1}, {3, 2}, {4, 3}}) std::copy_n(factors + from * rows, rows, place(to));
        std::copy_n(table.reach.data() + rows * s, rows, place(2));
        tables.insert(tables.end(), one.begin(), one.end());
    }
    tables.insert(tables.end(), table.joins.begin(), table.joins.end());
    return axis == 0 ? table.safe && streaming::LaneTable<T>(matrix, rows, segments.count).safe : table.safe;
}

/// The fewest blocks on whose multiprocessors a plane fits; 0: none. Two warps of each have something of their own to do.
template <class T>
int blocks_of(const Checked& checked, const Plan& plan, const Chip& chip) {
    Plan with = plan;
    for (with.blocks = 1; with.blocks <= most_blocks; with.blocks *= 2) {
        const Layout<T> layout = layout_of<T>(checked, with);
        if (layout.column_threads() % 32 == 0 && layout.row_threads() % 32 == 0 && layout.threads() >= 64 && static_cast<std::size_t>(layout.shared_bytes()) <= chip.shared_per_block) return with.blocks;
    }
    return 0;
}

template <class T>
const char* why_not(const Checked& checked, const Plan& plan, const Chip& chip) {
    const std::int64_t values = checked.problem->shape.points() + scratch_values(checked, plan.segments);
    if (static_cast<double>(values + checked.problem->shape.points()) * sizeof(T) > 0.9 * static_cast<double>(chip.memory)) return "a second field and ends of segments do not fit in memory";
    std::vector<T> tables;
    return tables_of(checked, plan, tables) ? nullptr : "a matrix needs pivots";
}

std::string text_of(std::int64_t value) { return std::to_string(value); }

}  // namespace

template <class T>
bool tables_of(const Checked& checked, const Plan& plan, std::vector<T>& tables) {
    const Segments& segments = plan.segments;
    const Layout<T> layout = layout_of<T>(checked, plan);
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

template bool tables_of<float>(const Checked&, const Plan&, std::vector<float>&);
template bool tables_of<double>(const Checked&, const Plan&, std::vector<double>&);

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
    plan.blocks = checked.dtype == DType::f32 ? blocks_of<float>(checked, plan, chip) : blocks_of<double>(checked, plan, chip);
    if (plan.blocks == 0) return refuse("planes do not fit on a cluster of multiprocessors");
    const std::int64_t segments_z = shape.z / plan.segments.rows_z;
    const auto tasks = [&] { return shape.meshes * segments_z * plan.blocks; };
    const auto part = [&] { return static_cast<std::size_t>(shape.x * shape.y / plan.blocks) * size_of(checked.dtype); };
    if (plan.blocks == 1 && part() >= large_part && 2 * tasks() <= chip.multiprocessors) plan.blocks = 2;
    if (20 * tasks() < (plan.blocks > 1 ? least_of_clusters : least_of_blocks) * chip.multiprocessors) return refuse("there are too few meshes");
    if (shape.points() >= std::int64_t{1} << 34) return refuse("a batch is too large");
    if (!packed(checked.problem->fields[static_cast<std::size_t>(checked.sweeps[0].sweep->target)], shape, size_of(checked.dtype))) return refuse("planes do not lie side by side");
    if (const char* const why = checked.dtype == DType::f32 ? why_not<float>(checked, plan, chip) : why_not<double>(checked, plan, chip)) return refuse(why);
    // Where all blocks have a multiprocessor, nobody has a tail to fill. Timed: nor do three groups gain where half of them nearly fill all multiprocessors.
    const bool alone = tasks() <= chip.multiprocessors;
    plan.early = alone && part() < large_part;
    const bool halves = 10 * tasks() >= 14 * chip.multiprocessors && 10 * tasks() < 19 * chip.multiprocessors;
    plan.groups = static_cast<int>(std::min<std::int64_t>(plan.early ? 1 : alone || halves ? 2 : 3, shape.meshes));
    for (int each = static_cast<int>(16 / size_of(checked.dtype)); plan.each == 1 && each > 1; each /= 2)
        if (each * segments_z * static_cast<std::int64_t>(size_of(checked.dtype)) <= 128) plan.each = each;
    return plan;
}

std::string program(const Checked& checked, const Plan& plan) {
    FunctionTexts functions;
    const Sweep& sweep = *checked.sweeps[0].sweep;
    const Segments& own = plan.segments;
    const std::string rhs = streaming::function_text(functions, "rhs", sweep.rhs);
    const auto with = [&](const auto& layout) { return std::tuple{layout.threads(), layout.swizzled(), 228 * 1024 / (layout.shared_bytes() + 1024)}; };
    const auto [threads, swizzled, at_once] = checked.dtype == DType::f32 ? with(layout_of<float>(checked, plan)) : with(layout_of<double>(checked, plan));
    const std::string head = "extern \"C\" __global__ void __launch_bounds__(", common = "const __grid_constant__ MeshArguments<real> a, ";
    std::string text = streaming::program_head(checked, plan.moves_alone, functions.text(), {"backends/cuda/mesh/planes/ends.cuh"}) + "struct C : Common {\n    static constexpr int H = " + text_of(own.rows_z) + ", S = " +
                       text_of(own.count) + ", R = " + text_of(own.rows) + ", R_y = " + text_of(own.rows_y) + ", K = " + text_of(plan.blocks) + ", each = " + text_of(plan.each) + ", target = " + text_of(sweep.target) + ", line_x = 0, line_y = 1, line_z = 2;\n    static constexpr bool swizzled = " + (swizzled ? "true" : "false") + ";\n" + rhs + "};\n";
    for (const auto& [name, what] : {std::pair{"first", "false, true"}, {"step", "true, true"}, {"last", "true, false"}})
        text += head + text_of(threads) + ", " + text_of(at_once) + ") " + name + "(" + common + "const __grid_constant__ Common::Parameters p, const __grid_constant__ planes::Pass<real> pass) { planes::planes_pass<C, " + what + ">(a, p, pass); }\n";
    return text + head + "256) ends(" + common + "const __grid_constant__ planes::Pass<real> pass, real* solved) { planes::ends_pass<C>(a, pass, solved); }\n" + head + "1024) settle(" + common +
           "const real* beside, const unsigned char* failed, std::int64_t first, std::int64_t passes) { planes::settle_pass<C>(a, beside, failed, first, passes); }\n";
}

}  // namespace trifold::cuda::planes
