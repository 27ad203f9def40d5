// SPDX-License-Identifier: BSD-3-Clause
// A Factor's matrix in the GPU's memory, and the user's streams and graphs around it.
#include "cuda/gpu.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Factor;
using tridiagonal::PendingOutcome;

__global__ void scale(double* values, std::int64_t count, double factor) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) values[i] *= factor;
}

// Systems of one stencil whose diagonal is d + system % 5, and a known solution i + 1.
struct KeptMatrix : testing::Test {
    static constexpr std::int64_t rows = 200, systems = 1000, count = rows * systems;
    static constexpr std::int64_t batch[] = {systems};
    Context context{{.threads = 1, .profile_path = "none", .log = {}}};
    cudaStream_t stream = nullptr;

    void SetUp() override {
        if (const std::string why = no_gpu(context); !why.empty()) GTEST_SKIP() << why;
        TRIFOLD_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    void TearDown() override {
        if (stream) cudaStreamDestroy(stream);
    }

    static double diagonal(double d, std::int64_t k) { return d + static_cast<double>(k % 5); }
    static std::vector<double> diag(double d) {
        std::vector<double> out(count);
        for (std::int64_t j = 0; j < count; ++j) out[static_cast<std::size_t>(j)] = diagonal(d, j / rows);
        return out;
    }
    static std::vector<double> rhs(double d) {
        std::vector<double> out(count);
        for (std::int64_t k = 0; k < systems; ++k)
            for (std::int64_t i = 0; i < rows; ++i) out[static_cast<std::size_t>(k * rows + i)] = diagonal(d, k) * static_cast<double>(i + 1) - static_cast<double>(i) - (i + 1 < rows ? static_cast<double>(i + 2) : 0);
        return out;
    }
    static View<double> view(const Owned<double>& array) { return View<double>::contiguous(array.data, systems, rows); }
    static void expect_x(const std::vector<double>& found, double factor) {
        double worst = 0;
        for (std::int64_t j = 0; j < count; ++j) worst = std::max(worst, std::abs(found[static_cast<std::size_t>(j)] / (factor * static_cast<double>(j % rows + 1)) - 1));
        EXPECT_LE(worst, 1e-12);
    }
};

TEST_F(KeptMatrix, AGraphSolvesWithWhatIsKept) {
    Owned<double> f(rhs(4)), to(std::vector<double>(count, 0));
    Queue queue(context, "cuda:0", stream);
    auto lower = std::make_unique<Owned<double>>(std::vector<double>(count, -1)), d = std::make_unique<Owned<double>>(diag(4));
    Factor factor(queue, {view(*lower), view(*d), -1.0}, rows, batch);
    ASSERT_TRUE(factor.outcome().ok());
    EXPECT_STREQ(factor.outcome().device, "cuda:0");
    d.reset(), lower.reset();
    const std::size_t bytes = factor.workspace(view(f), view(to))[0].bytes;
    Owned<char> scratch(std::vector<char>(bytes + 1));
    PendingOutcome pending(queue);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    TRIFOLD_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    factor.solve_async(queue, view(f), view(to), pending, {scratch.data, bytes});
    scale<<<(count + 255) / 256, 256, 0, stream>>>(to.data, count, 3.0);
    TRIFOLD_CUDA(cudaStreamEndCapture(stream, &graph));
    TRIFOLD_CUDA(cudaGraphInstantiate(&ready, graph, 0));
    EXPECT_EQ(to.get(), std::vector<double>(count, 0));  // recorded, not run
    for (const double value : {4.0, 4.0, 6.0, 5.0}) {
        if (value != 4) {
            const Owned<double> low(std::vector<double>(count, -1)), next(diag(value));
            ASSERT_TRUE(factor.refactor({view(low), view(next), -1.0}).ok());
            f.set(rhs(value));
        }
        to.set(std::vector<double>(count, 77));
        TRIFOLD_CUDA(cudaGraphLaunch(ready, stream));
        const Outcome outcome = pending.read();
        EXPECT_TRUE(outcome.ok());
        EXPECT_STREQ(outcome.device, "cuda:0");
        expect_x(to.get(), 3);
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
}

TEST_F(KeptMatrix, StreamsShareIt) {
    cudaStream_t second = nullptr;
    TRIFOLD_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    {
        Queue queues[] = {Queue(context, "cuda:0", stream), Queue(context, "cuda:0", second)};
        const Owned<double> d(diag(4));
        const Factor factor(queues[0], {-1.0, view(d), -1.0}, rows, batch);
        const Owned<double> f(rhs(4));
        const Owned<double> x[] = {Owned<double>(std::vector<double>(count, 0)), Owned<double>(std::vector<double>(count, 0))};
        const std::size_t bytes = factor.workspace(view(f), view(x[0]))[0].bytes;
        const Owned<char> scratch[] = {Owned<char>(std::vector<char>(bytes + 1)), Owned<char>(std::vector<char>(bytes + 1))};
        PendingOutcome pending[] = {PendingOutcome(queues[0]), PendingOutcome(queues[1])};
        for (int turn = 0; turn < 10; ++turn)
            for (int k = 0; k < 2; ++k) factor.solve_async(queues[k], view(f), view(x[k]), pending[k], {scratch[k].data, bytes});
        for (int k = 0; k < 2; ++k) {
            EXPECT_TRUE(pending[k].read().ok());
            expect_x(x[k].get(), 1);
        }
    }
    cudaStreamDestroy(second);
}

// What waits is refused while the stream is recorded, and the recording goes on.
TEST_F(KeptMatrix, WhatWaitsIsRefusedWhileAStreamIsRecorded) {
    const Owned<double> d(diag(4)), f(rhs(4)), to(std::vector<double>(count, 0));
    Queue queue(context, "cuda:0", stream);
    Factor factor(queue, {-1.0, view(d), -1.0}, rows, batch);
    const std::size_t bytes = factor.workspace(view(f), view(to))[0].bytes;
    const Owned<char> scratch(std::vector<char>(bytes + 1));
    PendingOutcome pending(queue);
    cudaGraph_t graph = nullptr;
    TRIFOLD_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    EXPECT_THROW(Factor(queue, {-1.0, view(d), -1.0}, rows, batch), Error);
    EXPECT_THROW((void)factor.solve(view(f), view(to)), Error);
    factor.solve_async(queue, view(f), view(to), pending, {scratch.data, bytes});
    TRIFOLD_CUDA(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t ready = nullptr;
    TRIFOLD_CUDA(cudaGraphInstantiate(&ready, graph, 0));
    TRIFOLD_CUDA(cudaGraphLaunch(ready, stream));
    EXPECT_TRUE(pending.read().ok());
    expect_x(to.get(), 1);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace trifold::tests
