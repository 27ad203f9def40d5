// SPDX-License-Identifier: BSD-3-Clause
// A kernel of the user's has failed before: that is what is said, not that a solve has. In a process of its own, since no GPU
// call of it works afterwards.
#include "cuda/gpu.hpp"

namespace trifold::tests {
namespace {

__global__ void write_nowhere(int* nowhere) { nowhere[threadIdx.x] = 1; }

TEST(StickyError, OfTheUsersEarlierLaunchIsReportedAsTheirs) {
    Context context({.threads = 1, .profile_path = "none", .log = {}});
    if (const std::string why = no_gpu(context); !why.empty()) GTEST_SKIP() << why;
    Queue queue(context, "cuda:0");
    std::vector<double> diag(100, 2.0), rhs(100, 4.0), x(100, 0.0);
    tridiagonal::Problem problem;
    problem.matrix.diag = View<const double>::rows(diag);
    problem.rhs = View<const double>::rows(rhs);
    problem.x = View<double>::rows(x);
    ASSERT_TRUE(tridiagonal::solve(queue, problem).ok());
    EXPECT_EQ(x, std::vector<double>(100, 2.0));

    write_nowhere<<<1, 32>>>(reinterpret_cast<int*>(64));
    std::string said;
    try {
        tridiagonal::solve(queue, problem);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
        said = error.what();
    }
    EXPECT_NE(said.find("before this call"), std::string::npos) << said;
    EXPECT_NE(said.find("illegal"), std::string::npos) << said;
    EXPECT_EQ(x, std::vector<double>(100, 2.0));
}

}  // namespace
}  // namespace trifold::tests
