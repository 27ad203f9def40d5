// SPDX-License-Identifier: BSD-3-Clause
// Right-hand sides cut into what is computed once and the rest.
#include <gtest/gtest.h>

#include "backends/cuda/mesh/resident/invariants.hpp"
#include "heat/stencils.hpp"

namespace trifold::tests {
namespace {

using cuda::resident::Split;

// Field 0 and the solution, 3, change.
Split split(std::string_view source) {
    return cuda::resident::split_invariants(source, [](int field) { return field == 0 || field == 3; });
}

TEST(Invariants, AreKeptWhereTheyMeetWhatChanges) {
    const Split one = split("{ real k = at(1,0,0,0); real u = at(0, 0, 0, 0); out(0) = 2 * p(0) * k * (at(1, -1,0,0) / (k + at(1, -1, 0, 0)) * (at(0,-1,0,0) - u)) + p(3) * at(2,0,0,0); }");
    EXPECT_EQ(one.kept, 3);
    EXPECT_EQ(one.once, "{ real k = at(1,0,0,0); out(0) = (at(1,-1,0,0) / (k + at(1,-1,0,0))); out(1) = ((2 * p(0)) * k); out(2) = (p(3) * at(2,0,0,0));}");
    EXPECT_EQ(one.rest, "{ real u = at(0,0,0,0); out(0) = ((trifold_kept(1) * (trifold_kept(0) * (at(0,-1,0,0) - u))) + trifold_kept(2));}");
}

TEST(Invariants, OfHeat) {
    EXPECT_EQ(split(heat::heated_varying_increment_2d.source).kept, 5);
    EXPECT_EQ(split(heat::heated_varying_increment_3d.source).kept, 7);
    EXPECT_EQ(split(heat::varying_half_step_x.source).kept, 3);
    EXPECT_EQ(split(heat::increment_2d.source).kept, 0);
    EXPECT_EQ(split(heat::heated_increment_2d.source).kept, 0) << "one product is not worth a word";
}

TEST(Invariants, OperationsStayInOrder) {
    EXPECT_EQ(split("{ out(0) = at(0,0,0,0) - 1 / at(1,0,0,0) - -sqrt(at(2,0,0,0)) / x * y; }").rest, "{ out(0) = ((at(0,0,0,0) - trifold_kept(0)) - trifold_kept(1));}");
    EXPECT_EQ(split("{ out(0) = at(0,0,0,0) - 1 / at(1,0,0,0) - -sqrt(at(2,0,0,0)) / x * y; }").once, "{ out(0) = (1 / at(1,0,0,0)); out(1) = (((-sqrt(at(2,0,0,0))) / x) * y);}");
}

TEST(Invariants, DivisorsAreKeptAsReciprocals) {
    const Split one = split("{ real k = at(1,0,0,0); out(0) = (at(0,1,0,0) - at(0,0,0,0)) / (k * at(1,1,0,0)) - at(0,0,0,0) / 4; }");
    EXPECT_EQ(one.once, "{ real k = at(1,0,0,0); out(0) = (1 / (k * at(1,1,0,0)));}");
    EXPECT_EQ(one.rest, "{ out(0) = (((at(0,1,0,0) - at(0,0,0,0)) * trifold_kept(0)) - (at(0,0,0,0) / 4));}");
}

TEST(Invariants, TheSameValueIsKeptOnce) {
    EXPECT_EQ(split("{ real w = 1 / at(1,0,0,0); out(0) = w * at(0,1,0,0) + w * at(0,-1,0,0); }").kept, 1);
}

TEST(Invariants, WhatAStepIsPartOfIsNotKept) {
    const Split one = split("{ out(0) = at(0,0,0,0) + at(2,0,0,0) / at(1,0,0,0) * real(step); }");
    EXPECT_EQ(one.kept, 1);
    EXPECT_EQ(one.once, "{ out(0) = (at(2,0,0,0) / at(1,0,0,0));}");
    EXPECT_EQ(one.rest, "{ out(0) = (at(0,0,0,0) + (trifold_kept(0) * real(step)));}");
}

// Faces of a cell are shared with its neighbours; a source is read where it is.
TEST(Invariants, NeighboursShare) {
    const auto changes = [](int field) { return field == 0 || field == 3; };
    for (const PointFunction* const function : {&heat::heated_varying_increment_2d, &heat::heated_varying_increment_3d}) {
        const Split one = cuda::resident::split_invariants(function->source, changes, cuda::resident::Keep::costly);
        const std::vector<cuda::resident::Place> places = places_of(one);
        const int axes = function == &heat::heated_varying_increment_3d ? 3 : 2;
        ASSERT_EQ(one.kept, 2 * axes);
        for (int axis = 0; axis < axes; ++axis) {
            const auto &low = places[static_cast<std::size_t>(2 * axis)], &high = places[static_cast<std::size_t>(2 * axis + 1)];
            EXPECT_TRUE(low.array == axis && low.axis == -1 && high.array == axis && high.axis == axis) << axis;
        }
    }
    const Split placed = cuda::resident::split_invariants("{ out(0) = x / at(1,0,0,0) * at(0,0,0,0) + x / at(1,1,0,0) * at(0,1,0,0); }", changes);
    EXPECT_EQ(places_of(placed).back().axis, -1) << "what depends on the place is another value at the next point";
}

TEST(Invariants, InNamedMultiplyAdds) {
    const Split one = split("{ real k = at(1,0,0,0); real u = at(0,0,0,0); out(0) = mad(2 * p(0), mad(1 / k, at(0,1,0,0) - u, u), mad(p(3), at(2,0,0,0), k)); }");
    EXPECT_EQ(one.once, "{ real k = at(1,0,0,0); out(0) = (1 / k); out(1) = mad(p(3), at(2,0,0,0), k);}");
    EXPECT_EQ(one.rest, "{ real u = at(0,0,0,0); out(0) = mad((2 * p(0)), mad(trifold_kept(0), (at(0,1,0,0) - u), u), trifold_kept(1));}");
    EXPECT_EQ(split("{ out(0) = mad(1 / at(1,0,0,0), at(0,1,0,0), 2 / at(1,0,0,0) * at(0,0,0,0)); }").rest, "{ out(0) = mad(trifold_kept(0), at(0,1,0,0), (trifold_kept(1) * at(0,0,0,0)));}") << "in the order of the text";
    EXPECT_EQ(split("{ out(0) = at(0,0,0,0) + mad(1 / at(1,0,0,0), p(0), p(1)); }").rest, "{ out(0) = (at(0,0,0,0) + trifold_kept(0));}");
    EXPECT_EQ(split("{ out(0) = at(0,0,0,0) + mad(p(0), at(1,0,0,0), at(2,0,0,0)); }").kept, 0) << "one operation is not worth a word";
}

TEST(Invariants, AResultThatNeverChanges) { EXPECT_EQ(split("{ out(0) = 1 / at(1,0,0,0); }").rest, "{ out(0) = trifold_kept(0);}"); }

// More than assignments of arithmetic, or arithmetic of another type.
TEST(Invariants, OtherFunctionsStayWhole) {
    for (const char* const source : {"{ out(0) = at(0,0,0,0) > 0 ? 1 / at(1,0,0,0) : 0; }", "{ if (x > 3) out(0) = 1 / at(1,0,0,0); }", "{ real a = 1 / at(1,0,0,0); a = a + at(0,0,0,0); out(0) = a; }",
                                     "{ out(0) = at(0,0,0,0) / 2.5 + 1 / at(1,0,0,0); }", "{ out(0) = 1e-3 * at(0,0,0,0) / at(1,0,0,0); }", "{ out(0) = other(at(0,0,0,0)) / at(1,0,0,0); }", "{ double w = 1 / at(1,0,0,0); out(0) = w * at(0,0,0,0); }",
                                     "{ out(0) = 1 / at(1,0,0,0); out(0) = at(0,0,0,0); }", "{ out(0) += at(0,0,0,0) / at(1,0,0,0); }", "{ out(0) = at(0,0,0,0) / at(1,0,0,0)", "{ real a[2] = {1, 2}; out(0) = a[0] / at(1,0,0,0); }",
                                     "{ out(0) = (at(0,0,0,0) / at(1,0,0,0); }", "{ /* a word */ out(0) = at(0,0,0,0) / at(1,0,0,0); }", "{ out(0) = at(0,0,0,0) % 3 / at(1,0,0,0); }", "{ for (int i = 0; i < 3; ++i) out(0) = at(0,0,0,0) / at(1,0,0,0); }"})
        EXPECT_EQ(split(source).kept, 0) << source;
    EXPECT_EQ(split("{ out(0) = real(2.5) * at(0,0,0,0) / at(1,0,0,0); }").kept, 1);
}

// A guess by the parts of both ends; runs look at every row.
TEST(Invariants, MatricesThatLookSymmetric) {
    using cuda::resident::looks_symmetric;
    EXPECT_TRUE(looks_symmetric(heat::varying_x.source, 0));
    EXPECT_TRUE(looks_symmetric(heat::varying_y.source, 1));
    EXPECT_TRUE(looks_symmetric(heat::varying_z.source, 2));
    EXPECT_FALSE(looks_symmetric(heat::varying_x.source, 1));
    EXPECT_FALSE(looks_symmetric("{ out(0) = -p(0) * at(1, -1, 0, 0); out(2) = -p(0) * at(1, 1, 0, 0); out(1) = 1 - out(0) - out(2); }", 0));
    EXPECT_TRUE(looks_symmetric("{ out(0) = -p(0) * at(1, 0, 0, 0); out(2) = -p(0) * at(1, 1, 0, 0); out(1) = 2; }", 0));
    EXPECT_FALSE(looks_symmetric("{ real a = p(0), b = p(1); out(0) = -(a - b); out(2) = -(a + b); out(1) = 2; }", 0));
    EXPECT_FALSE(looks_symmetric("{ out(0) = -real(x); out(2) = -real(x); out(1) = 1 + 2 * real(x); }", 0));
    EXPECT_TRUE(looks_symmetric("{ out(0) = -real(x); out(2) = -real(x); out(1) = 1 + 2 * real(x); }", 1));
    EXPECT_FALSE(looks_symmetric("{ if (x > 2) out(0) = -1; }", 0));
    EXPECT_FALSE(looks_symmetric("", 0));
}

}  // namespace
}  // namespace trifold::tests
