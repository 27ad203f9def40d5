// SPDX-License-Identifier: BSD-3-Clause
// As cuda_resident.cpp: a matrix for every line.
#include "unit/cuda_resident_on_host.hpp"

namespace trifold::tests {
namespace {

PLAN(varying_one, varying, {13, 9, 1}, 1, 64, 9, Cuts{{{1, 13}, {1, 9}, {1, 1}}}, even_sides, mixed, 8)
PLAN(varying_segments, varying, {13, 9, 1}, 1, 64, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, even_sides, mixed, 8)
PLAN(varying_held, varying, {13, 9, 1}, 1, 32, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, odd_sides, mixed, 8, 0, 3)
PLAN(varying_rings, varying, {14, 9, 1}, 1, 32, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, rings, rings, 8, 0, 2)
PLAN(varying_slabs, varying, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8, 0, 1)
PLAN(varying_slab_rings, varying, {14, 24, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, rings, rings, 8)
PLAN(varying_slab_halves, varying_halves, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, mixed, odd_sides, 8, 0, 2)
PLAN(varying_floats, varying, {37, 32, 1}, 1, 96, 32, Cuts{{{2, 19}, {2, 16}, {1, 1}}}, mixed, even_sides, 4, 0, 1)
PLAN(varying_kept, varying, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8, 0, 1, 2)
PLAN(varying_kept_halves, varying_halves, {13, 9, 1}, 1, 32, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, odd_sides, mixed, 8, 0, 2, 2)
PLAN(varying_kept_box, varying, {9, 7, 11}, 2, 64, 6, Cuts{{{1, 9}, {2, 4}, {1, 6}}}, mixed, odd_sides, 8, 0, 1, 2)
PLAN(faces_alone, faces, {13, 9, 1}, 1, 32, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, odd_sides, mixed, 8, 0, 2, 4)
PLAN(faces_in_slabs, faces, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8, 0, 1, 4)
PLAN(faces_in_rings, faces, {14, 24, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, rings, rings, 8, 0, 0, 4)
PLAN(faces_in_a_box, faces, {9, 7, 11}, 2, 64, 6, Cuts{{{1, 9}, {2, 4}, {1, 6}}}, mixed, odd_sides, 8, 0, 1, 4)
PLAN(mirrored_apart, mirrored, {13, 9, 1}, 1, 64, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, even_sides, mixed, 8)
PLAN(apart_by_three, mirrored_by_three, {13, 9, 1}, 1, 64, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, even_sides, mixed, 8)
PLAN(mirrored_held, mirrored, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8, 0, 3)
PLAN(held_by_three, mirrored_by_three, {13, 23, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, even_sides, odd_sides, 8, 0, 3)
PLAN(mirrored_rings, mirrored, {14, 24, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, rings, rings, 8, 0, 1)
PLAN(rings_by_three, mirrored_by_three, {14, 24, 1}, 4, 32, 6, Cuts{{{2, 7}, {2, 3}, {1, 1}}}, rings, rings, 8, 0, 1)
PLAN(not_mirrored, mirrored, {13, 9, 1}, 1, 64, 9, Cuts{{{2, 7}, {3, 3}, {1, 1}}}, even_sides, mixed, 8)
PLAN(varying_box, varying, {9, 7, 11}, 2, 64, 6, Cuts{{{1, 9}, {2, 4}, {1, 6}}}, mixed, odd_sides, 8, 0, 1)

TEST(Resident, MatricesThatVary) {
    agrees<Problem<double, varying_one>>(varying, 1e-14);
    agrees<Problem<double, varying_segments>>(varying, 1e-14);
    agrees<Problem<double, varying_held>>(varying, 1e-14);
    agrees<Problem<double, varying_rings>>(varying, 1e-14);
    agrees<Problem<double, varying_slabs>>(varying, 1e-14);
    agrees<Problem<double, varying_slab_rings>>(varying, 1e-14);
    agrees<Problem<double, varying_slab_halves>>(varying_halves, 1e-14);
    agrees<Problem<float, varying_floats>>(varying, 5e-6);
    agrees<Problem<double, varying_box>>(varying, 1e-14);
}

TEST(Resident, ValuesThatAreTheSameInEveryStepAreKept) {
    agrees<Problem<double, varying_kept>>(varying, 1e-14);
    agrees<Problem<double, varying_kept_halves>>(varying_halves, 1e-14);
    agrees<Problem<double, varying_kept_box>>(varying, 1e-14);
}

TEST(Resident, NeighboursShareValuesThatAreKept) {
    agrees<Problem<double, faces_alone>>(faces, 1e-14);
    agrees<Problem<double, faces_in_slabs>>(faces, 1e-14);
    agrees<Problem<double, faces_in_rings>>(faces, 1e-14);
    agrees<Problem<double, faces_in_a_box>>(faces, 1e-14);
}

TEST(Resident, AMatrixThatIsNotDominatedGivesTheTargetsBack) {
    using P = Problem<double, varying_slabs>;
    Random random(8);
    Fields<double> ours(P::plan, random);
    running = sweeps_of(varying, false, ours.sides, ours.plain);
    const std::vector<double> before = ours.u;
    MeshState good;
    run_on_host<P>(ours, false, good);
    EXPECT_EQ(good.refused_at, MeshState::none);
    EXPECT_NE(ours.u, before);
    running[0].lines[1].coefficients = weak;
    ours.u = before;
    EXPECT_TRUE(gives_targets_back<P>(ours));
}

TEST(Resident, SymmetricMatricesHaveTheBitsOfOthers) {
    same_bits<Problem<double, mirrored_apart>, Problem<double, apart_by_three>>(mirrored, 1e-14);
    same_bits<Problem<double, mirrored_held>, Problem<double, held_by_three>>(mirrored, 1e-14);
    same_bits<Problem<double, mirrored_rings>, Problem<double, rings_by_three>>(mirrored, 1e-14);
}

TEST(Resident, AMatrixThatOnlyLooksSymmetricGivesTheTargetsBack) {
    Random random(8);
    Fields<double> ours(not_mirrored(), random);
    running = sweeps_of(varying, false, ours.sides, ours.plain);
    EXPECT_TRUE((gives_targets_back<Problem<double, not_mirrored>>(ours)));
}

}  // namespace
}  // namespace trifold::tests
