// SPDX-License-Identifier: BSD-3-Clause
// Kept factors of the cpu stay within the memory that they ask for, whatever the matrix needs.
#include <algorithm>
#include <cstddef>

#include "backends/cpu/tridiagonal/cell.hpp"
#include "support/random.hpp"
#include "unit/two_pass.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Launch;
using tridiagonal::System;

// `bytes` aligned to 64, and a page behind them that nobody may write.
class Fenced {
public:
    explicit Fenced(std::size_t bytes) : bytes_(bytes), all_(bytes + 4096), memory_(static_cast<std::byte*>(all_.data)) { std::fill_n(memory_ + bytes_, 4096, mark); }
    std::byte* data() const { return memory_; }
    std::size_t bytes() const { return bytes_; }
    bool whole() const {
        return std::all_of(memory_ + bytes_, memory_ + bytes_ + 4096, [](std::byte b) { return b == mark; });
    }

private:
    static constexpr std::byte mark{0xa5};
    std::size_t bytes_;
    Scratch64 all_;
    std::byte* memory_;
};

template <class T>
void stays_within(std::int64_t rows, std::int64_t right_hand_sides, bool pivots, int threads) {
    Random random(static_cast<std::uint64_t>(rows));
    Bands<T> s(rows);
    for (std::int64_t i = 0; i < rows; ++i) {
        s.lower[i] = static_cast<T>(random.uniform(0.5, 1)), s.upper[i] = static_cast<T>(random.uniform(-1, -0.5));
        s.diag[i] = static_cast<T>(pivots ? random.uniform(0.01, 0.02) : random.uniform(2.5, 3));
    }
    std::vector<T> rhs(static_cast<std::size_t>(rows * right_hand_sides), T{1}), x(rhs.size(), T{77});
    tridiagonal::Problem problem = problem_of(s, x);
    problem.rhs = View<const T>::contiguous(rhs.data(), right_hand_sides, rows);
    problem.x = View<T>::contiguous(x.data(), right_hand_sides, rows);
    const System matrix = tridiagonal::normalise(problem.matrix, rows, {}, dtype_of<T>), system = tridiagonal::normalise(problem);
    const tridiagonal::Ops& ops = cpu::cpu_ops();
    const Fenced factors(ops.factor_bytes(matrix)), first(ops.factor_scratch(matrix, threads)), second(ops.factor_scratch(system, threads));
    Outcome outcome;
    Launch launch;
    launch.threads = threads, launch.tolerance = unit_roundoff(dtype_of<T>);
    launch.scratch = first.data(), launch.scratch_bytes = first.bytes();
    ops.factor(matrix, launch, factors.data(), outcome);
    ASSERT_TRUE(outcome.ok());
    ASSERT_TRUE(first.whole() && factors.whole());
    launch.scratch = second.data(), launch.scratch_bytes = second.bytes();
    outcome = Outcome{};
    ops.solve_factored(system, false, 1, factors.data(), launch, outcome);
    ASSERT_TRUE(outcome.ok());
    ASSERT_TRUE(second.whole() && factors.whole());
    s.rhs.assign(static_cast<std::size_t>(rows), T{1});
    for (std::int64_t k = 0; k < right_hand_sides; ++k)
        EXPECT_LE(backward_error(cast<double>(s), as_double(std::vector<T>(x.begin() + k * rows, x.begin() + (k + 1) * rows))), 20 * unit_roundoff(dtype_of<T>));
}

TEST(CpuFactored, StaysWithinItsMemory) {
    for (const std::int64_t rows : {1, 63, 64, 217, 1000, 4095, 4096, 20003, 700003})
        for (const std::int64_t right_hand_sides : {1, 3, 40})
            for (const bool pivots : {false, true})
                for (const int threads : {1, 2}) {
                    if (rows * right_hand_sides > 800000) continue;
                    SCOPED_TRACE(testing::Message() << rows << " rows, " << right_hand_sides << " right-hand sides, pivots " << pivots << ", " << threads << " threads");
                    stays_within<float>(rows, right_hand_sides, pivots, threads);
                    stays_within<double>(rows, right_hand_sides, pivots, threads);
                    if (testing::Test::HasFatalFailure()) return;
                }
}

}  // namespace
}  // namespace trifold::tests
