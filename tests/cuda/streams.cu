// SPDX-License-Identifier: BSD-3-Clause
// The user's stream and graph: solve_async is ordered among the user's own work, is recorded, and recomputes what its arrays hold
// at each launch.
#include "cuda/gpu.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::PendingOutcome;

__global__ void scale(double* values, std::int64_t count, double factor) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) values[i] *= factor;
}

/// Keeps some of the multiprocessors for a while.
__global__ void keep_busy(long long clocks) {
    const long long begin = clock64();
    while (clock64() - begin < clocks) {}
}

// Systems that are all the same matrix but for their diagonal: 4 + system, and a known solution i + 1.
struct Streams : testing::Test {
    static constexpr std::int64_t rows = 200, systems = 1000, count = rows * systems;
    Context context{{.threads = 1, .profile_path = "none", .log = {}}};
    std::vector<double> lower, diag, upper, rhs, x;
    cudaStream_t stream = nullptr;

    void SetUp() override {
        if (const std::string why = no_gpu(context); !why.empty()) GTEST_SKIP() << why;
        TRIFOLD_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (std::int64_t k = 0; k < systems; ++k)
            for (std::int64_t i = 0; i < rows; ++i) {
                const double d = 4 + static_cast<double>(k % 17);
                lower.push_back(i > 0 ? -1 : 0), diag.push_back(d), upper.push_back(i + 1 < rows ? -1 : 0), x.push_back(static_cast<double>(i + 1));
                rhs.push_back(d * static_cast<double>(i + 1) - (i > 0 ? static_cast<double>(i) : 0) - (i + 1 < rows ? static_cast<double>(i + 2) : 0));
            }
    }
    void TearDown() override {
        if (stream) cudaStreamDestroy(stream);
    }

    tridiagonal::Problem problem(const Owned<double>& l, const Owned<double>& d, const Owned<double>& u, const Owned<double>& f, const Owned<double>& to) {
        tridiagonal::Problem p;
        p.matrix.lower = View<const double>::contiguous(l.data, systems, rows);
        p.matrix.diag = View<const double>::contiguous(d.data, systems, rows);
        p.matrix.upper = View<const double>::contiguous(u.data, systems, rows);
        p.rhs = View<const double>::contiguous(f.data, systems, rows);
        p.x = View<double>::contiguous(to.data, systems, rows);
        return p;
    }

    void expect_x(const std::vector<double>& found, double factor) {
        double worst = 0;
        for (std::size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(found[i] / (factor * x[i]) - 1));
        EXPECT_LE(worst, 1e-13);
    }
};

TEST_F(Streams, AGraphSolvesWhatItsArraysHoldAtEachLaunch) {
    Owned<double> l(lower), d(diag), u(upper), f(rhs), to(std::vector<double>(count, 0));
    Queue queue(context, "cuda:0", stream);
    const auto p = problem(l, d, u, f, to);
    const std::size_t bytes = tridiagonal::workspace(queue, p)[0].bytes;
    Owned<char> scratch(std::vector<char>(bytes + 1));
    Owned<std::int8_t> status(std::vector<std::int8_t>(systems, 0));
    tridiagonal::Options options;
    options.workspace = {scratch.data, bytes};
    options.status = status.data;
    PendingOutcome pending(queue);

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    TRIFOLD_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    scale<<<(count + 255) / 256, 256, 0, stream>>>(f.data, count, 2.0);
    tridiagonal::solve_async(queue, p, options, pending);
    scale<<<(count + 255) / 256, 256, 0, stream>>>(to.data, count, 3.0);
    TRIFOLD_CUDA(cudaStreamEndCapture(stream, &graph));
    TRIFOLD_CUDA(cudaGraphInstantiate(&ready, graph, 0));
    std::size_t nodes = 0;
    TRIFOLD_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_GE(nodes, 4u);
    EXPECT_EQ(to.get(), std::vector<double>(count, 0));  // recorded, not run

    for (int launch = 1; launch <= 3; ++launch) {
        TRIFOLD_CUDA(cudaGraphLaunch(ready, stream));
        const Outcome outcome = pending.read();
        EXPECT_TRUE(outcome.ok());
        EXPECT_EQ(outcome.failures, 0);
        EXPECT_STREQ(outcome.device, "cuda:0");
        expect_x(to.get(), 3 * std::pow(2.0, launch));
        EXPECT_EQ(status.get(), std::vector<std::int8_t>(systems, static_cast<std::int8_t>(Reason::exact)));
    }
    // The same graph, another matrix: one system that cannot be solved is named, and then solved again.
    std::vector<double> broken = diag;
    for (std::int64_t i = 0; i < rows; ++i) broken[static_cast<std::size_t>(77 * rows + i)] = 0;
    std::vector<double> uncoupled = lower, above = upper;
    for (std::int64_t i = 0; i < rows; ++i) uncoupled[static_cast<std::size_t>(77 * rows + i)] = above[static_cast<std::size_t>(77 * rows + i)] = 0;
    d.set(broken), l.set(uncoupled), u.set(above);
    TRIFOLD_CUDA(cudaGraphLaunch(ready, stream));
    Outcome outcome = pending.read();
    EXPECT_EQ(outcome.reason, Reason::singular);
    EXPECT_EQ(outcome.system, 77);
    EXPECT_EQ(outcome.row, 0);
    EXPECT_EQ(outcome.failures, 1);
    EXPECT_EQ(status.get()[77], static_cast<std::int8_t>(Reason::singular));
    d.set(diag), l.set(lower), u.set(upper);
    TRIFOLD_CUDA(cudaGraphLaunch(ready, stream));
    outcome = pending.read();
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.failures, 0);
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
}

TEST_F(Streams, AGraphEliminatesASharedMatrixAnewAtEachLaunch) {
    for (const bool interleaved : {false, true})
        for (const bool with_status : {false, true}) {
            std::vector<double> l(rows, -1), d(rows, 3), u(rows, -1), f(count);
            const auto at = [&](std::int64_t i, std::int64_t k) { return static_cast<std::size_t>(interleaved ? i * systems + k : k * rows + i); };
            const auto fill = [&](double diagonal) {  // the solution of system k is k + 1 + i
                for (std::int64_t k = 0; k < systems; ++k)
                    for (std::int64_t i = 0; i < rows; ++i) {
                        const double own = static_cast<double>(k + 1 + i);
                        f[at(i, k)] = diagonal * own - (i > 0 ? own - 1 : 0) - (i + 1 < rows ? own + 1 : 0);
                    }
            };
            fill(3);
            Owned<double> lower(l), diag(d), upper(u), b(f), to(std::vector<double>(count, 0));
            Queue queue(context, "cuda:0", stream);
            tridiagonal::Problem p;
            p.matrix.lower = View<const double>::rows({lower.data, rows}), p.matrix.diag = View<const double>::rows({diag.data, rows});
            p.matrix.upper = View<const double>::rows({upper.data, rows});
            p.rhs = interleaved ? View<const double>::interleaved(b.data, rows, systems) : View<const double>::contiguous(b.data, systems, rows);
            p.x = interleaved ? View<double>::interleaved(to.data, rows, systems) : View<double>::contiguous(to.data, systems, rows);
            const std::size_t bytes = tridiagonal::workspace(queue, p)[0].bytes;
            Owned<char> scratch(std::vector<char>(bytes + 1));
            tridiagonal::Options options;
            options.workspace = {scratch.data, bytes};
            Owned<std::int8_t> status(std::vector<std::int8_t>(systems, 0));
            if (with_status) options.status = status.data;
            PendingOutcome pending(queue);
            cudaGraph_t graph = nullptr;
            cudaGraphExec_t ready = nullptr;
            TRIFOLD_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
            tridiagonal::solve_async(queue, p, options, pending);
            TRIFOLD_CUDA(cudaStreamEndCapture(stream, &graph));
            TRIFOLD_CUDA(cudaGraphInstantiate(&ready, graph, 0));
            for (const double diagonal : {3.0, 5.0, 0.0, 4.0}) {  // 0: needs pivots
                diag.set(std::vector<double>(rows, diagonal));
                fill(diagonal);
                b.set(f);
                TRIFOLD_CUDA(cudaDeviceSynchronize());  // short copies from the host may return before they have arrived
                TRIFOLD_CUDA(cudaGraphLaunch(ready, stream));
                const Outcome outcome = pending.read();
                EXPECT_TRUE(outcome.ok()) << diagonal;
                EXPECT_EQ(outcome.rescued, diagonal == 0 ? systems : 0);
                const std::vector<double> found = to.get();
                double worst = 0;
                for (std::int64_t k = 0; k < systems; ++k)
                    for (std::int64_t i = 0; i < rows; ++i) worst = std::max(worst, std::abs(found[at(i, k)] / static_cast<double>(k + 1 + i) - 1));
                EXPECT_LE(worst, 1e-10) << diagonal;
                if (with_status) { EXPECT_EQ(status.get(), std::vector<std::int8_t>(systems, static_cast<std::int8_t>(Reason::exact))); }
            }
            cudaGraphExecDestroy(ready);
            cudaGraphDestroy(graph);
        }
}

TEST_F(Streams, AGraphSolvesSystemsSideBySide) {
    const auto turned = [](const std::vector<double>& from) {
        std::vector<double> to(from.size());
        for (std::int64_t k = 0; k < systems; ++k)
            for (std::int64_t i = 0; i < rows; ++i) to[static_cast<std::size_t>(i * systems + k)] = from[static_cast<std::size_t>(k * rows + i)];
        return to;
    };
    Owned<double> l(turned(lower)), d(turned(diag)), u(turned(upper)), f(turned(rhs)), to(std::vector<double>(count, 0));
    Queue queue(context, "cuda:0", stream);
    tridiagonal::Problem p;
    p.matrix.lower = View<const double>::interleaved(l.data, rows, systems);
    p.matrix.diag = View<const double>::interleaved(d.data, rows, systems);
    p.matrix.upper = View<const double>::interleaved(u.data, rows, systems);
    p.rhs = View<const double>::interleaved(f.data, rows, systems);
    p.x = View<double>::interleaved(to.data, rows, systems);
    const std::size_t bytes = tridiagonal::workspace(queue, p)[0].bytes;
    Owned<char> scratch(std::vector<char>(bytes + 1));
    tridiagonal::Options options;
    options.workspace = {scratch.data, bytes};
    PendingOutcome pending(queue);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    TRIFOLD_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    tridiagonal::solve_async(queue, p, options, pending);
    TRIFOLD_CUDA(cudaStreamEndCapture(stream, &graph));
    TRIFOLD_CUDA(cudaGraphInstantiate(&ready, graph, 0));
    for (int launch = 0; launch < 2; ++launch) {
        to.set(std::vector<double>(count, 0));
        TRIFOLD_CUDA(cudaGraphLaunch(ready, stream));
        EXPECT_TRUE(pending.read().ok());
        const std::vector<double> found = to.get(), expected = turned(x);
        double worst = 0;
        for (std::size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(found[i] / expected[i] - 1));
        EXPECT_LE(worst, 1e-13);
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
}

// On chip, with a matrix each and one for all; and long ones, which forget at one launch and not at the next.
TEST_F(Streams, AGraphClosesRings) {
    for (const auto& [n, rings] : {std::pair<std::int64_t, std::int64_t>{200, 1000}, {9000, 70}})
        for (const bool shared : {false, true})
            for (const bool interleaved : {false, true}) {
                const auto all = static_cast<std::size_t>(n * rings), matrix = shared ? static_cast<std::size_t>(n) : all;
                Owned<double> couplings(std::vector<double>(matrix, -1)), diag(std::vector<double>(matrix, 4)), b(std::vector<double>(all, 2)), to(std::vector<double>(all, 0));
                const auto view = [&]<class T>(T* data) { return interleaved ? View<T>::interleaved(data, n, rings) : View<T>::contiguous(data, rings, n); };
                const auto of_matrix = [&](const double* data) { return shared ? View<const double>::rows({data, static_cast<std::size_t>(n)}) : view(data); };
                Queue queue(context, "cuda:0", stream);
                tridiagonal::Problem p;
                p.matrix = {of_matrix(couplings.data), of_matrix(diag.data), of_matrix(couplings.data), true, false};
                p.rhs = view(static_cast<const double*>(b.data)), p.x = view(to.data);
                const std::size_t bytes = tridiagonal::workspace(queue, p)[0].bytes;
                Owned<char> scratch(std::vector<char>(bytes + 1));
                tridiagonal::Options options;
                options.workspace = {scratch.data, bytes};
                PendingOutcome pending(queue);
                cudaGraph_t graph = nullptr;
                cudaGraphExec_t ready = nullptr;
                TRIFOLD_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
                tridiagonal::solve_async(queue, p, options, pending);
                TRIFOLD_CUDA(cudaStreamEndCapture(stream, &graph));
                TRIFOLD_CUDA(cudaGraphInstantiate(&ready, graph, 0));
                for (const double diagonal : {4.0, 2.001, 5.0}) {
                    diag.set(std::vector<double>(matrix, diagonal)), b.set(std::vector<double>(all, diagonal - 2)), to.set(std::vector<double>(all, 0));
                    TRIFOLD_CUDA(cudaDeviceSynchronize());
                    TRIFOLD_CUDA(cudaGraphLaunch(ready, stream));
                    EXPECT_TRUE(pending.read().ok()) << diagonal;
                    double worst = 0;
                    for (const double found : to.get()) worst = std::max(worst, std::abs(found - 1));
                    EXPECT_LE(worst, 1e-10) << n << " rows, " << diagonal << ", shared " << shared << ", interleaved " << interleaved;
                }
                cudaGraphExecDestroy(ready);
                cudaGraphDestroy(graph);
            }
}

TEST_F(Streams, WhileAGraphIsRecordedNothingWaits) {
    Owned<double> l(lower), d(diag), u(upper), f(rhs), to(std::vector<double>(count, 0));
    Queue queue(context, "cuda:0", stream);
    const auto p = problem(l, d, u, f, to);
    TRIFOLD_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    std::string said;
    try {
        tridiagonal::solve(queue, p);
    } catch (const Error& error) {
        said = error.what();
        EXPECT_EQ(error.code(), ErrorCode::usage);
    }
    cudaGraph_t graph = nullptr;
    TRIFOLD_CUDA(cudaStreamEndCapture(stream, &graph));  // the refusal has not spoilt the recording
    cudaGraphDestroy(graph);
    EXPECT_NE(said.find("solve_async"), std::string::npos) << said;
}

// Blocks of columns in bands wait for each other before they mark a system. Two such solves of right-hand sides that all fail begin beside a third kernel.
TEST_F(Streams, TwoSolvesThatFailDoNotWaitForEachOther) {
    constexpr std::int64_t long_rows = 1000, pitch = 8001, size = long_rows * pitch;
    Owned<double> couplings(std::vector<double>(long_rows, -1)), diagonal(std::vector<double>(long_rows, 4));
    const Owned<double> bad(std::vector<double>(size, NAN));
    cudaStream_t busy = nullptr, second = nullptr;
    TRIFOLD_CUDA(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
    TRIFOLD_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    {
        Owned<double> x[2] = {Owned<double>(std::vector<double>(size, 0)), Owned<double>(std::vector<double>(size, 0))};
        Queue queues[2] = {Queue(context, "cuda:0", stream), Queue(context, "cuda:0", second)};
        PendingOutcome pending[2] = {PendingOutcome(queues[0]), PendingOutcome(queues[1])};
        std::vector<std::unique_ptr<Owned<char>>> scratch;
        tridiagonal::Problem problems[2];
        tridiagonal::Options options[2];
        for (int k = 0; k < 2; ++k) {
            tridiagonal::Problem& p = problems[k];
            p.matrix.lower = p.matrix.upper = View<const double>::rows({couplings.data, long_rows});
            p.matrix.diag = View<const double>::rows({diagonal.data, long_rows});
            p.rhs = View<const double>::interleaved(bad.data, long_rows, pitch);
            p.x = View<double>::interleaved(x[k].data, long_rows, pitch);
            const std::size_t bytes = tridiagonal::workspace(queues[k], p)[0].bytes;
            scratch.push_back(std::make_unique<Owned<char>>(std::vector<char>(bytes + 1)));
            options[k].workspace = {scratch.back()->data, bytes};
        }
        for (int turn = 0; turn < 20; ++turn) {
            keep_busy<<<100, 1024, 0, busy>>>(200000 + 10000 * turn);
            for (int k = 0; k < 2; ++k) tridiagonal::solve_async(queues[k], problems[k], options[k], pending[k]);
            for (PendingOutcome& each : pending) {
                const Outcome outcome = each.read();
                EXPECT_EQ(outcome.failures, pitch);
                EXPECT_FALSE(outcome.ok());
            }
        }
    }
    cudaStreamDestroy(busy);
    cudaStreamDestroy(second);
}

TEST_F(Streams, WorkIsOrderedWithTheUsers) {
    Owned<double> l(lower), d(diag), u(upper), f(rhs), to(std::vector<double>(count, 0));
    Queue queue(context, "cuda:0", stream);
    const auto p = problem(l, d, u, f, to);
    const std::size_t bytes = tridiagonal::workspace(queue, p)[0].bytes;
    Owned<char> scratch(std::vector<char>(bytes + 1));
    tridiagonal::Options options;
    options.workspace = {scratch.data, bytes};
    PendingOutcome pending(queue);
    for (int k = 0; k < 20; ++k) scale<<<(count + 255) / 256, 256, 0, stream>>>(f.data, count, k % 2 ? 0.5 : 4.0);
    tridiagonal::solve_async(queue, p, options, pending);
    scale<<<(count + 255) / 256, 256, 0, stream>>>(to.data, count, 0x1p-10);
    EXPECT_TRUE(pending.read().ok());
    expect_x(to.get(), 1);
}

TEST_F(Streams, KnowsWhereAnAddressLies) {
    Owned<double> l(lower), d(diag), u(upper), f(rhs), to(std::vector<double>(count, 0));
    Queue queue(context, "cuda:0", stream);
    queue.synchronize();
    EXPECT_EQ(memory_of(queue, f.data), (Memory{MemoryKind::device, 0}));
    EXPECT_EQ(memory_of(queue, rhs.data()).kind, MemoryKind::host);
    double* pinned = nullptr;
    TRIFOLD_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned), 4096));
    EXPECT_EQ(memory_of(queue, pinned).kind, MemoryKind::registered);
    cudaFreeHost(pinned);
    double* managed = nullptr;
    TRIFOLD_CUDA(cudaMallocManaged(reinterpret_cast<void**>(&managed), 4096));
    EXPECT_EQ(memory_of(queue, managed), (Memory{MemoryKind::device, 0}));
    cudaFree(managed);
}

}  // namespace
}  // namespace trifold::tests
