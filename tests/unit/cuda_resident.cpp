// SPDX-License-Identifier: BSD-3-Clause
// The kernels that keep meshes on chip, run on the host thread by thread, against the reference: matrices that are the same for all lines.
#include "unit/cuda_resident_on_host.hpp"

namespace trifold::tests {
namespace {

PLAN(one_warp, increments, {8, 8, 1}, 1, 32, 8, Cuts{{{1, 8}, {1, 8}, {1, 1}}}, odd_sides, odd_sides, 8)
PLAN(segments, increments, {13, 9, 1}, 1, 64, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, even_sides, mixed, 8)
PLAN(segment_rings, increments, {13, 9, 1}, 1, 32, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, rings, rings, 8)
PLAN(whole_rings, halves, {13, 9, 1}, 1, 64, 9, Cuts{{{1, 13}, {1, 9}, {1, 1}}}, rings, rings, 8)
PLAN(slabs, increments, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8)
PLAN(slab_rings, increments, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, rings, rings, 8)
PLAN(slab_halves, halves, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8)
PLAN(floats, increments, {37, 32, 1}, 1, 96, 32, Cuts{{{2, 19}, {2, 16}, {1, 1}}}, mixed, even_sides, 4)
PLAN(box, increments, {9, 7, 11}, 2, 64, 6, Cuts{{{1, 9}, {2, 4}, {1, 6}}}, mixed, odd_sides, 8)
PLAN(box_of_three, three_sweeps, {9, 7, 11}, 3, 64, 4, Cuts{{{2, 5}, {2, 4}, {1, 4}}}, odd_sides, mixed, 8)
PLAN(box_rings, three_sweeps, {9, 7, 11}, 3, 32, 4, Cuts{{{2, 5}, {2, 4}, {2, 2}}}, rings, rings, 8)
PLAN(slab_turns, increments, {15, 23, 1}, 4, 32, 6, Cuts{{{8, 2}, {1, 6}, {1, 1}}}, even_sides, odd_sides, 8, 4)
PLAN(box_turns, increments, {8, 8, 11}, 2, 32, 6, Cuts{{{2, 4}, {2, 4}, {1, 6}}}, mixed, odd_sides, 4, 2)
PLAN(box_turns_of_three, three_sweeps, {8, 8, 11}, 2, 32, 6, Cuts{{{2, 4}, {2, 4}, {1, 6}}}, odd_sides, mixed, 8, 2)
PLAN(box_turns_rings, three_sweeps, {8, 8, 11}, 4, 32, 3, Cuts{{{2, 4}, {2, 4}, {1, 3}}}, rings, rings, 8, 2)
PLAN(box_alone, three_sweeps, {6, 5, 4}, 1, 32, 4, Cuts{{{2, 3}, {1, 5}, {1, 4}}}, even_sides, mixed, 8)

// The same segments on few blocks and on many.
PLAN(few_box, increments, {9, 8, 11}, 2, 64, 6, Cuts{{{1, 9}, {2, 4}, {1, 6}}}, mixed, odd_sides, 8)
PLAN(many_box, increments, {9, 8, 11}, 4, 64, 6, Cuts{{{1, 9}, {1, 4}, {1, 6}}}, mixed, odd_sides, 8, 0, 0, 0, 2)
PLAN(few_three, three_sweeps, {9, 8, 11}, 3, 64, 4, Cuts{{{2, 5}, {4, 2}, {2, 2}}}, odd_sides, mixed, 8)
PLAN(many_three, three_sweeps, {9, 8, 11}, 6, 32, 4, Cuts{{{2, 5}, {2, 2}, {2, 2}}}, odd_sides, mixed, 8, 0, 0, 0, 2)
PLAN(few_rings, three_sweeps, {9, 8, 12}, 2, 64, 6, Cuts{{{2, 5}, {4, 2}, {2, 3}}}, rings, rings, 8)
PLAN(many_rings, three_sweeps, {9, 8, 12}, 8, 32, 6, Cuts{{{2, 5}, {1, 2}, {2, 3}}}, rings, rings, 8, 0, 0, 0, 4)
PLAN(turns_of_few, increments, {8, 8, 11}, 2, 32, 6, Cuts{{{2, 4}, {2, 4}, {1, 6}}}, mixed, odd_sides, 4, 2)
PLAN(turns_of_many, increments, {8, 8, 11}, 4, 32, 6, Cuts{{{2, 4}, {1, 4}, {1, 6}}}, mixed, odd_sides, 4, 0, 0, 0, 2)
PLAN(few_flat, halves, {12, 23, 1}, 4, 32, 6, Cuts{{{2, 6}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8)
PLAN(many_flat, halves, {12, 23, 1}, 8, 32, 6, Cuts{{{1, 6}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8, 0, 0, 0, 2)

TEST(Resident, OneBlock) {
    agrees<Problem<double, one_warp>>(increments, 1e-14);
    agrees<Problem<double, segments>>(increments, 1e-14);
    agrees<Problem<double, segment_rings>>(increments, 1e-14);
    agrees<Problem<double, whole_rings>>(halves, 1e-14);
    agrees<Problem<double, box_alone>>(three_sweeps, 1e-14);
    agrees<Problem<float, floats>>(increments, 5e-6);
}

TEST(Resident, Clusters) {
    agrees<Problem<double, slabs>>(increments, 1e-14);
    agrees<Problem<double, slab_rings>>(increments, 1e-14);
    agrees<Problem<double, slab_halves>>(halves, 1e-14);
    agrees<Problem<double, box>>(increments, 1e-14);
    agrees<Problem<double, box_of_three>>(three_sweeps, 1e-14);
    agrees<Problem<double, box_rings>>(three_sweeps, 1e-14);
}

TEST(Resident, Turns) {
    agrees<Problem<double, slab_turns>>(increments, 1e-14);
    agrees<Problem<float, box_turns>>(increments, 5e-6);
    agrees<Problem<double, box_turns_of_three>>(three_sweeps, 1e-14);
    agrees<Problem<double, box_turns_rings>>(three_sweeps, 1e-14);
}

TEST(Resident, BitsAreTheSameOnFewBlocksAndOnMany) {
    same_bits<Problem<double, few_box>, Problem<double, many_box>>(increments, 1e-14);
    same_bits<Problem<double, few_three>, Problem<double, many_three>>(three_sweeps, 1e-14);
    same_bits<Problem<double, few_rings>, Problem<double, many_rings>>(three_sweeps, 1e-14);
    same_bits<Problem<float, turns_of_few>, Problem<float, turns_of_many>>(increments, 5e-6);
    same_bits<Problem<double, few_flat>, Problem<double, many_flat>>(halves, 1e-14);
}

TEST(Resident, ValuesThatAreNotFiniteGiveTheTargetsBack) {
    using P = Problem<double, slabs>;
    Random random(8);
    Fields<double> ours(P::plan, random);
    running = sweeps_of(increments, false, ours.sides, ours.plain);
    ours.u[400] = INFINITY;
    EXPECT_TRUE(gives_targets_back<P>(ours));
}

TEST(Resident, ALineThatIsNotFiniteIsSeenBehindAnUpdateThatHidesIt) {
    Random random(8);
    const auto run = [&]<class P>(P, Scheme scheme, double value) {
        Fields<double> ours(P::plan, random);
        running = sweeps_of(scheme, false, ours.sides, ours.plain);
        for (Sweep& sweep : running) sweep.update = clip;
        ours.u[30] = value;
        MeshState state;
        run_on_host<P>(ours, false, state);
        for (const double u : ours.u) EXPECT_TRUE(std::isfinite(u) || state.refused_at == 0);
        return state.refused_at == 0;
    };
    for (const double value : {double(INFINITY), double(NAN), 1.0}) {
        EXPECT_EQ(run(Problem<double, slabs>{}, increments, value), value != 1.0);
        EXPECT_EQ(run(Problem<double, slab_halves>{}, halves, value), value != 1.0);
        EXPECT_EQ(run(Problem<double, one_warp>{}, increments, value == 1.0 ? 1.0 : value), value != 1.0);
    }
}

}  // namespace
}  // namespace trifold::tests
