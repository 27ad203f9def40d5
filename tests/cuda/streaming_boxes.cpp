// SPDX-License-Identifier: BSD-3-Clause
// Boxes that are solved in one pass a step where there are many (mesh/planes), alone: passes of the streaming kernels with the same segments. Without a GPU.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "backends/cuda/mesh/planes/segments.hpp"
#include "backends/cuda/mesh/streaming/prepare.hpp"
#include "problems/mesh/checked.hpp"

namespace trifold::cuda::streaming {
namespace {

TRIFOLD_POINT_FUNCTION(spread, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * (at(0, -1, 0, 0) - u - (u - at(0, 1, 0, 0))) + p(1) * (at(0, 0, -1, 0) - u - (u - at(0, 0, 1, 0))) + p(2) * (at(0, 0, 0, -1) - u - (u - at(0, 0, 0, 1)));
})
TRIFOLD_POINT_FUNCTION(heated, { out(0) = at(0, 0, 0, -1) + at(0, 0, 0, 1) + at(1, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(across, { out(0) = at(0, 0, 1, -1) + at(0, 0, 0, 1); })
TRIFOLD_POINT_FUNCTION(constant, { out(0) = p(0); })
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(2, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(take, { out(0) = at(0, 0, 0, 0) - at(2, 0, 0, 0); })

/// A box of n³ points, or n² z, that has lines along x, y and z.
template <class T>
struct Box {
    std::vector<T> values;
    std::vector<AnyField> fields;
    std::vector<Sweep> sweeps;
    std::vector<double> parameters{0.3, 0.2, 0.1};
    MeshProblem problem;

    Box(int n, std::int64_t meshes, Sides along_z = {}, const PointFunction& rhs = spread, const PointFunction& update = add, int ny = 0) {
        const MeshShape shape{n, ny ? ny : n, n, meshes};
        values.resize(2 * static_cast<std::size_t>(shape.points()));
        fields = {Field<T>::packed(values.data(), shape), Field<const T>::packed(values.data() + shape.points(), shape)};
        sweeps = {{rhs, {{0, {-0.3, 1.6, -0.3}}, {1, {-0.2, 1.5, -0.3}}, {2, {-0.1, 1.2, -0.1}}}, update, 0, {Sides{{Edge::odd}, {Edge::even}}, Sides{}, along_z}}};
        problem = {shape, fields, sweeps, parameters};
    }
};

// A mesh alone takes passes, many are solved in one: the same segments, the order of lines and the way of eliminating.
TEST(BoxesOfPlanes, HavePassesWithTheirSegments) {
    const Chip chip;
    const Sides even{}, odd{{Edge::odd}, {Edge::odd}};
    for (const int n : {80, 96})
        for (const Sides& sides : {even, odd})
            for (const std::int64_t meshes : {1, 2, 5, 20}) {
                const Box<float> box(n, meshes, sides);
                const mesh::Checked checked = mesh::check(box.problem);
                const planes::Segments segments = planes::segments_of(checked);
                ASSERT_TRUE(segments) << n;
                ASSERT_EQ(segments.count * segments.rows, n);
                ASSERT_EQ(n % segments.rows_z, 0);
                const Plan plan = plan_of(checked, chip);
                ASSERT_EQ(plan.refuses, nullptr);
                ASSERT_EQ(plan.sweeps.size(), 1U);
                const std::vector<Pass>& passes = plan.sweeps[0].passes;
                ASSERT_EQ(passes.size(), 3U);
                const Pass &x = passes[0], &z = passes[1], &y = passes[2];
                EXPECT_EQ(std::tuple(x.kind, y.kind, z.kind), std::tuple(PassKind::rows, PassKind::columns, PassKind::columns));
                EXPECT_EQ(std::tuple(x.line, z.line, y.line), std::tuple(0, 2, 1));
                EXPECT_EQ(std::tuple(x.segment, z.segment, y.segment), std::tuple(0, 0, 0)) << "never in parts";
                EXPECT_EQ(std::tuple(x.rows.lanes, x.rows.segment_rows), std::tuple(segments.count, segments.rows));
                EXPECT_EQ(std::tuple(z.columns.segments, z.columns.segment_rows), std::tuple(n / segments.rows_z, segments.rows_z));
                EXPECT_EQ(std::tuple(y.columns.segments, y.columns.segment_rows), std::tuple(segments.count, segments.rows));
                EXPECT_TRUE(z.by_reach && y.by_reach);
                EXPECT_TRUE(z.alternates && !y.alternates && !x.alternates);
                EXPECT_EQ(plan.whole_threads > 0, n == 80 && meshes == 1);
                for (const Pass& pass : passes) EXPECT_LE(plan.whole_threads ? plan.whole_shared : pass.shared(), chip.shared_per_block);
                for (const Pass& pass : {z, y}) EXPECT_EQ(pass.columns.threads % 32, 0);
            }
}

// Whatever their height: a batch would be solved with other segments than a mesh alone if passes did not take them.
template <class T>
int taken_by_passes(int n, int ny) {
    const Chip chip;
    int taken = 0;
    for (int z = 24; z <= 768; z += 2)
        for (const std::int64_t meshes : {1, 3}) {
            Box<T> box(3, 1);
            const MeshShape shape{n, ny, z, meshes};  // nobody reads its field
            box.fields = {Field<T>::packed(box.values.data(), shape), Field<const T>::packed(box.values.data(), shape)};
            box.problem.shape = shape, box.problem.fields = box.fields;
            const mesh::Checked checked = mesh::check(box.problem);
            const planes::Segments segments = planes::segments_of(checked);
            if (!segments) continue;
            ++taken;
            const Plan plan = plan_of(checked, chip);
            EXPECT_EQ(plan.refuses, nullptr) << n << " " << ny << " " << z << ": " << plan.refuses;
            if (plan.refuses) continue;
            EXPECT_EQ(std::tuple(plan.sweeps[0].passes[1].columns.segment_rows, plan.sweeps[0].passes[1].columns.segments), std::tuple(segments.rows_z, z / segments.rows_z)) << n << " " << z;
            EXPECT_EQ(std::tuple(plan.sweeps[0].passes[0].rows.segment_rows, plan.sweeps[0].passes[0].rows.lanes), std::tuple(segments.rows, segments.count)) << n << " " << z;
            EXPECT_EQ(std::tuple(plan.sweeps[0].passes[2].columns.segment_rows, plan.sweeps[0].passes[2].columns.segments), std::tuple(segments.rows_y, segments.count)) << n << " " << ny << " " << z;
        }
    return taken;
}

TEST(BoxesOfPlanes, AreTakenByPassesAtEveryHeight) {
    int floats = 0, doubles = 0;
    for (int n = 48; n <= 144; n += 16)
        for (int ny = 48; ny <= 144; ny += 16) floats += taken_by_passes<float>(n, ny) >= 40, doubles += taken_by_passes<double>(n, ny) >= 40;
    EXPECT_EQ(floats, 25);
    EXPECT_EQ(doubles, 9);
}

// The target alone, which is there even where a right-hand side reads nothing.
TEST(BoxesOfPlanes, TakeRowsAsVectors) {
    const Chip chip;
    const auto star = [&](const auto& box) {
        const mesh::Checked checked = mesh::check(box.problem);
        EXPECT_TRUE(planes::segments_of(checked));
        const Plan plan = plan_of(checked, chip);
        EXPECT_EQ(plan.refuses, nullptr);
        EXPECT_EQ(plan.sweeps[0].passes[0].staged, 1U);
        return plan.refuses == nullptr && plan.sweeps[0].passes[0].rows.star;
    };
    EXPECT_TRUE(star(Box<float>(96, 2)));
    EXPECT_TRUE(star(Box<double>(80, 2)));
    EXPECT_FALSE(star(Box<float>(80, 2))) << "rows of ten floats are no vectors";
    EXPECT_TRUE(star(Box<float>(96, 2, {}, constant)));
}

// All others are cut as they were.
TEST(BoxesOfPlanes, AreNoOthers) {
    const Chip chip;
    const auto check = [&](const auto& box, const char* what) {
        const mesh::Checked checked = mesh::check(box.problem);
        EXPECT_FALSE(planes::segments_of(checked)) << what;
        const Plan plan = plan_of(checked, chip);
        for (const SweepPlan& sweep : plan.sweeps)
            for (const Pass& pass : sweep.passes) EXPECT_FALSE(pass.alternates) << what;
    };
    const Sides mixed{{Edge::odd}, {Edge::even}}, values{{Edge::odd, 0.5}, {Edge::odd, 0.5}};
    check(Box<double>(96, 2), "doubles");
    check(Box<float>(72, 2), "another shape"), check(Box<float>(80, 2, {}, spread, add, 72), "the same"), check(Box<double>(64, 2, {}, spread, add, 128), "doubles");
    check(Box<float>(80, 2, mixed), "along z not its own mirror image");
    check(Box<float>(80, 2, values), "values on the solution's sides");
    check(Box<float>(80, 2, {}, heated), "another field is read");
    check(Box<float>(80, 2, {}, across), "a neighbour across two axes is read");
    check(Box<float>(80, 2, {}, spread, take), "an update that does not add");
    Box<float> uneven(96, 2);
    uneven.sweeps[0].lines[2].constant = {-0.1, 1.2, -0.2};
    check(uneven, "a matrix that is not symmetric");
    Box<float> rings(96, 2);
    rings.fields[0].sides[1] = {{Edge::periodic}, {Edge::periodic}}, rings.sweeps[0].solution[1] = rings.fields[0].sides[1];
    check(rings, "rings");
}

}  // namespace
}  // namespace trifold::cuda::streaming
