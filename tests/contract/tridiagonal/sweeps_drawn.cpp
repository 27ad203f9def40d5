// SPDX-License-Identifier: BSD-3-Clause
// What drawn sweeps (property/random_sweeps.cpp) have found, by name: on every device against the reference.
#include <array>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "support/largest_difference.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

// Fields: 0 = u, 1 = the solution.
TRIFOLD_POINT_FUNCTION(around, { out(0) = p(0) * (at(0, -1, 0, 0) + at(0, 0, 1, 0)) + p(1) * (at(0, 0, 0, -1) - at(0, 0, 0, 1)) - p(0) * at(0, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(1, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(moving, {
    out(0) = -p(0) * real(step % 3) / 8;
    out(2) = -p(1) / 4;
    out(1) = real(1.2) - out(0) - out(2);
})

class SweepsDrawn : public NotTheReference {
protected:
    template <class T>
    void compare(const MeshShape& shape, const std::array<Sides, 3>& sides, const std::vector<Sweep>& sweeps, double allowed) {
        SCOPED_TRACE(testing::Message() << shape.x << " x " << shape.y << " x " << shape.z << " x " << shape.meshes << ", " << trifold::name_of(dtype_of<T>));
        Queue reference(context(), "reference");
        Random random(41);
        std::vector<T> ours(static_cast<std::size_t>(shape.points()));
        for (T& value : ours) value = static_cast<T>(random.uniform(-1, 1));
        std::vector<T> expected = ours;
        const std::vector<double> parameters{0.4, 0.3};
        const auto run = [&](Queue& on, std::vector<T>& u) {
            const AnyField fields[] = {Field<T>::packed(u.data(), shape, sides)};
            return sweep(on, {shape, fields, sweeps, parameters}, 4, {.first_step = 1});
        };
        ASSERT_EQ(run(queue, ours).reason, Reason::exact);
        ASSERT_TRUE(run(reference, expected).ok());
        EXPECT_LE(largest_difference(ours, expected), allowed);
    }

    void both(const MeshShape& shape, const std::array<Sides, 3>& sides, const std::vector<Sweep>& sweeps) {
        compare<double>(shape, sides, sweeps, 1e-13), compare<float>(shape, sides, sweeps, 3e-5);
    }
};

const Sides even{}, odd{{Edge::odd}, {Edge::odd}}, ring{{Edge::periodic}, {Edge::periodic}};
const LineSolve x{0, {-0.3, 1.6, -0.3}}, y{1, {-0.2, 1.5, -0.3}}, z{2, {-0.1, 1.4, -0.2}};

TEST_P(SweepsDrawn, PlanesThatAreLookedBeyond) {
    for (const MeshShape& shape : {MeshShape{30, 20, 1, 3}, {361, 129, 1, 2}, {395, 477, 1, 2}})
        for (const Sides& along_z : {even, odd, ring}) both(shape, {even, odd, along_z}, {{around, {x, y}, add, 0, {even, odd, even}}});
}

TEST_P(SweepsDrawn, LinesOfOneRowAcrossPlanes) {
    for (const MeshShape& shape : {MeshShape{30, 20, 1, 3}, {241, 119, 1, 3}, {476, 54, 1, 4}})
        for (const Sides& along_z : {even, odd, ring}) {
            both(shape, {even, odd, along_z}, {{{}, {x, y, z}, {}, 0, {even, odd, along_z}}});
            both(shape, {even, odd, along_z}, {{{}, {z, y, x}, add, 0, {even, odd, along_z}}});
        }
}

TEST_P(SweepsDrawn, OneMatrixForAllLinesThatChangesWithTheStep) {
    for (const MeshShape& shape : {MeshShape{32, 40, 1, 5}, {406, 150, 1, 1}, {17, 20, 6, 3}, {56, 56, 20, 1}, {130, 64, 40, 1}})
        for (const Sides& sides : {even, odd, ring})
            for (int axis = 0; axis < (shape.z > 1 ? 3 : 2); ++axis) {
                std::vector<LineSolve> lines{x, y};
                if (shape.z > 1) lines.push_back(z);
                lines[static_cast<std::size_t>(axis)] = {axis, {}, moving, true};
                both(shape, {sides, sides, sides}, {{{}, lines, add, 0, {sides, sides, sides}}});
            }
}

TRIFOLD_ON_EVERY_DEVICE(SweepsDrawn);

}  // namespace
}  // namespace trifold::tests
