// SPDX-License-Identifier: BSD-3-Clause
// The fine verbs of the reference: reduce, finish, refinement, restore.
#include <gtest/gtest.h>

#include "backends/reference/tridiagonal/ops.hpp"
#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/run.hpp"
#include "support/truth.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::ChunkResidual;
using tridiagonal::InterfaceRow;
using tridiagonal::Partition;
using tridiagonal::reference_ops;

// One system, its partition, and the calls.
struct Verbs {
    Bands<double> s;
    std::vector<double> x;
    tridiagonal::System system;
    Partition partition;
    std::vector<std::byte> memory;
    tridiagonal::Launch launch;

    Verbs(Bands<double> bands, std::int64_t chunk_rows, bool in_place = false) : s(std::move(bands)), x(in_place ? s.rhs : std::vector<double>(s.rhs.size(), 77.0)) {
        tridiagonal::Problem problem = problem_of(s, x);
        if (in_place) problem.rhs = problem.x;
        system = tridiagonal::normalise(problem);
        partition = {s.rows(), chunk_rows};
        memory.resize(reference_ops().workspace(system, Algorithm::two_pass, 1) + 64);
        void* aligned = memory.data();
        std::size_t room = memory.size();
        launch.scratch = std::align(64, memory.size() - 64, aligned, room);
        launch.scratch_bytes = memory.size() - 64;
        launch.tolerance = 0x1p-53;
    }

    std::vector<InterfaceRow> reduce(std::vector<std::int64_t>& zero_pivot) {
        std::vector<InterfaceRow> rows(2 * partition.chunks());
        zero_pivot.assign(partition.chunks(), 99);
        reference_ops().reduce(system, partition, launch, rows.data(), zero_pivot.data());
        return rows;
    }

    std::vector<ChunkResidual> finish(const std::vector<double>& boundary, double accept) {
        std::vector<ChunkResidual> residuals(partition.chunks());
        reference_ops().finish(system, partition, launch, boundary.data(), accept, residuals.data());
        return residuals;
    }

    std::vector<double> boundary_of(const std::vector<double>& values) const {
        std::vector<double> boundary;
        for (std::int64_t k = 0; k < partition.chunks(); ++k) {
            boundary.push_back(values[partition.first(k)]);
            boundary.push_back(values[partition.last(k)]);
        }
        return boundary;
    }
};

std::vector<double> rounded(const std::vector<DoubleDouble>& x) {
    std::vector<double> out;
    for (const DoubleDouble value : x) out.push_back(static_cast<double>(value));
    return out;
}

const std::int64_t shapes[][2] = {{2, 2}, {3, 2}, {5, 2}, {7, 3}, {64, 8}, {100, 7}, {300, 300}, {1000, 33}};

TEST(ReferenceVerbs, TheTruthSolvesTheInterfaceRows) {
    for (const auto& [n, chunk_rows] : shapes)
        for (const double dominance : {0.0, 1.5})
            for (const bool periodic : {false, true}) {
                SCOPED_TRACE(testing::Message() << n << " rows in chunks of " << chunk_rows << ", dominance " << dominance << ", periodic " << periodic);
                Verbs verbs(random_system(n, dominance, 21, periodic && n > 2), chunk_rows);
                const std::vector<double> truth = rounded(true_solution(verbs.s));
                std::vector<std::int64_t> zero_pivot;
                const auto rows = verbs.reduce(zero_pivot);
                for (std::int64_t k = 0; k < verbs.partition.chunks(); ++k) {
                    EXPECT_EQ(zero_pivot[k], -1);
                    const std::int64_t first = verbs.partition.first(k), last = verbs.partition.last(k);
                    for (int r = 0; r < 2; ++r) {
                        const InterfaceRow& row = rows[2 * k + r];
                        const double* c = row.coefficient;
                        const double left = truth[(first + n - 1) % n], right = truth[(last + 1) % n];
                        const double image = c[0] * left + c[1] * truth[first] + c[2] * truth[last] + c[3] * right;
                        const double scale = (std::abs(c[0]) + std::abs(c[1]) + std::abs(c[2]) + std::abs(c[3])) * largest(truth) + std::abs(row.rhs);
                        EXPECT_NEAR(image, row.rhs, 1e-14 * scale + 1e-14 * largest(truth));
                        if (!verbs.s.periodic && k == 0) { EXPECT_EQ(c[0], 0); }
                        if (!verbs.s.periodic && k + 1 == verbs.partition.chunks()) { EXPECT_EQ(c[3], 0); }
                    }
                }
            }
}

TEST(ReferenceVerbs, FinishRebuildsTheSolutionFromItsBoundary) {
    for (const auto& [n, chunk_rows] : shapes)
        for (const bool in_place : {false, true})
            for (const bool periodic : {false, true}) {
                SCOPED_TRACE(testing::Message() << n << " rows in chunks of " << chunk_rows << ", in place " << in_place);
                Verbs verbs(random_system(n, 1.2, 22, periodic && n > 2), chunk_rows, in_place);
                const std::vector<DoubleDouble> truth = true_solution(verbs.s);
                for (const ChunkResidual& r : verbs.finish(verbs.boundary_of(rounded(truth)), 1e-14)) {
                    EXPECT_LE(r.residual, 1e-15);
                    EXPECT_TRUE(r.stored);
                    EXPECT_GT(r.scale, 0);
                }
                EXPECT_LE(forward_error(verbs.x, truth), 1e-15);
            }
}

TEST(ReferenceVerbs, ASingularInteriorDoesNoHarm) {
    // Zeros on the diagonal: an interior of an odd number of rows is singular, the whole matrix is not.
    Bands<double> s(40);
    Random random(3);
    for (std::int64_t i = 0; i < 40; ++i) s.lower[i] = s.upper[i] = 1;
    set_rhs(s, random);
    for (std::int64_t chunk_rows : {4, 5, 7, 8}) {
        Verbs verbs(s, chunk_rows);
        std::vector<std::int64_t> zero_pivot;
        verbs.reduce(zero_pivot);
        for (const std::int64_t row : zero_pivot) EXPECT_EQ(row, -1);
        const std::vector<DoubleDouble> truth = true_solution(s);
        for (const ChunkResidual& r : verbs.finish(verbs.boundary_of(rounded(truth)), 1e-14)) EXPECT_TRUE(r.stored);
        EXPECT_LE(forward_error(verbs.x, truth), 1e-14);
    }
}

TEST(ReferenceVerbs, AnEmptyColumnIsNamed) {
    Bands<double> s = random_system(60, 2, 5);
    s.diag[33] = s.upper[32] = s.lower[34] = 0;
    Verbs verbs(s, 20);
    std::vector<std::int64_t> zero_pivot;
    verbs.reduce(zero_pivot);
    EXPECT_EQ(zero_pivot, (std::vector<std::int64_t>{-1, 33, -1}));
}

TEST(ReferenceVerbs, AWrongBoundaryIsNotStored) {
    Verbs verbs(random_system(60, 1.5, 6), 20);
    std::vector<double> boundary = verbs.boundary_of(rounded(true_solution(verbs.s)));
    boundary[2] *= 1.001;
    const auto residuals = verbs.finish(boundary, 1e-12);
    EXPECT_FALSE(residuals[1].stored);
    EXPECT_EQ(std::vector<double>(verbs.x.begin() + 20, verbs.x.begin() + 40), std::vector<double>(20, 77.0));
    EXPECT_TRUE(residuals[2].stored);
}

TEST(ReferenceVerbs, RefinementCorrectsWhatIsStored) {
    Verbs verbs(random_system(300, 1.3, 7), 30);
    const std::vector<DoubleDouble> truth = true_solution(verbs.s);
    std::vector<double> boundary = verbs.boundary_of(rounded(truth));
    Random random(1);
    for (double& value : boundary) value *= 1 + random.uniform(-1e-6, 1e-6);
    verbs.finish(boundary, 1);
    EXPECT_GT(forward_error(verbs.x, truth), 1e-8);
    std::vector<double> correction = verbs.boundary_of(rounded(truth));
    for (std::size_t i = 0; i < correction.size(); ++i) correction[i] -= boundary[i];
    verbs.partition.stored = boundary.data();
    std::vector<std::int64_t> zero_pivot;
    const auto rows = verbs.reduce(zero_pivot);
    for (std::int64_t k = 0; k < verbs.partition.chunks(); ++k)
        for (int r = 0; r < 2; ++r) {
            const InterfaceRow& row = rows[2 * k + r];
            const double left = k > 0 ? correction[2 * k - 1] : 0, right = 2 * k + 2 < std::int64_t(correction.size()) ? correction[2 * k + 2] : 0;
            const double* c = row.coefficient;
            EXPECT_NEAR(c[0] * left + c[1] * correction[2 * k] + c[2] * correction[2 * k + 1] + c[3] * right, row.rhs, 1e-13);
        }
    for (const ChunkResidual& r : verbs.finish(correction, 1e-14)) EXPECT_TRUE(r.stored);
    EXPECT_LE(forward_error(verbs.x, truth), 1e-15);
}

TEST(ReferenceVerbs, RestoreGivesBackARightHandSide) {
    Verbs verbs(random_system(90, 1.5, 8), 30, true);
    const std::vector<double> rhs = verbs.x, boundary = verbs.boundary_of(rounded(true_solution(verbs.s)));
    auto residuals = verbs.finish(boundary, 1e-12);
    std::copy(rhs.begin() + 30, rhs.begin() + 60, verbs.x.begin() + 30);  // as if chunk 1 had been refused
    residuals[1].stored = false;
    reference_ops().restore(verbs.system, verbs.partition, verbs.launch, boundary.data(), residuals.data());
    for (std::int64_t i = 0; i < 90; ++i) EXPECT_NEAR(verbs.x[i], rhs[i], 1e-14 * largest(rhs));
    const std::vector<double> before = verbs.x;
    reference_ops().restore(verbs.system, verbs.partition, verbs.launch, nullptr, residuals.data());
    EXPECT_EQ(verbs.x, before);
    for (const ChunkResidual& r : residuals) EXPECT_GT(r.scale, 0);
}

}  // namespace
}  // namespace trifold::tests
