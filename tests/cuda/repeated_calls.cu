// SPDX-License-Identifier: BSD-3-Clause
// A solve's first kernel resets the outcome itself, and what a solve enqueues is remembered: so calls must not see what calls before them left, whatever that was, in
// any order, in graphs and side by side.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "cuda/gpu.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::PendingOutcome;

struct Shape {
    const char* name;
    std::int64_t rows, systems;  ///< rows: even, so that a matrix without a diagonal has an inverse
    bool interleaved = false, one_matrix = false;

    std::int64_t count() const { return rows * systems; }
    std::size_t at(std::int64_t i, std::int64_t k) const { return static_cast<std::size_t>(interleaved ? i * systems + k : k * rows + i); }
};

constexpr Shape shapes[] = {
    {"short", 6, 40000}, {"rows", 200, 3000}, {"one per warp", 700, 900}, {"parts", 2000, 400}, {"clusters", 20000, 60}, {"few", 200, 5},
    {"one", 4096, 1}, {"columns", 64, 3000, true}, {"dominant columns", 300, 3000, true}, {"columns of clusters", 1000, 600, true}, {"few columns", 64, 5, true},
    {"one matrix", 200, 3000, false, true}, {"one matrix, columns", 200, 3000, true, true},
};

enum class Kind { good, marked, failed };  ///< one system needs pivots; one cannot be solved

/// A batch with the solution i + 1 in every system, but for what is the matter with system `which`.
template <class T>
struct Batch {
    Shape shape;
    Kind kind;
    std::int64_t which, rescued = 0;
    std::unique_ptr<Owned<T>> lower, diag, upper, rhs, x;

    Batch(const Shape& shape, Kind kind) : shape(shape), kind(kind), which(shape.one_matrix ? 0 : shape.systems * 2 / 3) {
        const auto all = static_cast<std::size_t>(shape.count());
        const std::int64_t matrices = shape.one_matrix ? 1 : shape.systems;
        std::vector<T> l(static_cast<std::size_t>(shape.rows * matrices)), d(l.size()), u(l.size()), f(all);
        for (std::int64_t k = 0; k < shape.systems; ++k)
            for (std::int64_t i = 0; i < shape.rows; ++i) {
                const bool is = kind != Kind::good && (k == which || shape.one_matrix), empty = is && kind == Kind::failed;
                const double b = is ? 0 : 4 + static_cast<double>(shape.one_matrix ? 0 : k % 17), c = empty ? 0 : -1;
                const std::size_t at = shape.one_matrix ? static_cast<std::size_t>(i) : shape.at(i, k);
                l[at] = T(i > 0 ? c : 0), d[at] = T(b), u[at] = T(i + 1 < shape.rows ? c : 0);
                f[shape.at(i, k)] = T(b * static_cast<double>(i + 1) + (i > 0 ? c * static_cast<double>(i) : 0) + (i + 1 < shape.rows ? c * static_cast<double>(i + 2) : 0));
            }
        lower = std::make_unique<Owned<T>>(l), diag = std::make_unique<Owned<T>>(d), upper = std::make_unique<Owned<T>>(u), rhs = std::make_unique<Owned<T>>(f);
        x = std::make_unique<Owned<T>>(std::vector<T>(all, T(0)));
    }

    tridiagonal::Problem problem() const {
        const auto view = [&]<class U>(U* data) { return shape.interleaved ? View<U>::interleaved(data, shape.rows, shape.systems) : View<U>::contiguous(data, shape.systems, shape.rows); };
        const auto band = [&](const Owned<T>& of) {
            const T* const data = of.data;
            return shape.one_matrix ? View<const T>::rows({data, static_cast<std::size_t>(shape.rows)}) : view(data);
        };
        tridiagonal::Problem p;
        p.matrix.lower = band(*lower), p.matrix.diag = band(*diag), p.matrix.upper = band(*upper);
        p.rhs = view(static_cast<const T*>(rhs->data)), p.x = view(x->data);
        return p;
    }

    void expect(const Outcome& outcome, const std::string& where) {
        if (kind == Kind::failed) {
            EXPECT_EQ(outcome.reason, Reason::singular) << where;
            EXPECT_EQ(outcome.system, which) << where;
            EXPECT_EQ(outcome.row, 0) << where;
            EXPECT_EQ(outcome.failures, shape.one_matrix ? shape.systems : 1) << where;
        } else {
            EXPECT_TRUE(outcome.ok()) << where;
            EXPECT_EQ(outcome.failures, 0) << where;
            // Systems that share a lane with one that is not finite may need pivots too: the same ones every time.
            if (kind == Kind::marked && rescued == 0) rescued = outcome.rescued;
            EXPECT_EQ(outcome.rescued, rescued) << where;
            if (kind == Kind::marked && std::string_view(outcome.branch) != "lu") { EXPECT_GE(outcome.rescued, shape.one_matrix ? shape.systems : 1) << where; }
        }
    }

    /// What is stored is the solution, and x of a system that failed is not touched.
    void expect_x(const std::string& where) const {
        const std::vector<T> found = x->get();
        double worst = 0;
        for (std::int64_t k = 0; k < shape.systems; ++k) {
            if (kind == Kind::failed && (k == which || shape.one_matrix)) continue;
            for (std::int64_t i = 0; i < shape.rows; ++i) worst = std::max(worst, std::abs(static_cast<double>(found[shape.at(i, k)]) - static_cast<double>(i + 1)) / static_cast<double>(shape.rows));
        }
        EXPECT_LE(worst, sizeof(T) == 8 ? 1e-10 : 1e-2) << where;
    }
};

template <class T>
class RepeatedCalls : public testing::Test {
protected:
    Context context{{.threads = 1, .profile_path = "none", .log = {}}};

    void SetUp() override {
        if (const std::string why = no_gpu(context); !why.empty()) GTEST_SKIP() << why;
    }

    /// All three of a shape, one workspace and one outcome for them.
    struct Set {
        Batch<T> batches[3];
        Queue queue;
        Owned<char> scratch;
        PendingOutcome pending;

        Set(Context& context, const Shape& shape, cudaStream_t stream)
            : batches{Batch<T>(shape, Kind::good), Batch<T>(shape, Kind::marked), Batch<T>(shape, Kind::failed)}, queue(context, "cuda:0", stream),
              scratch(std::vector<char>(tridiagonal::workspace(queue, batches[0].problem())[0].bytes + 1, char(0x5a))), pending(queue) {}

        void solve(int which) {
            tridiagonal::Options options;
            options.workspace = {scratch.data, scratch.size - 1};
            tridiagonal::solve_async(queue, batches[which].problem(), options, pending);
        }
    };
};

using Types = testing::Types<double, float>;
TYPED_TEST_SUITE(RepeatedCalls, Types);

struct Stream {
    cudaStream_t stream = nullptr;
    Stream() { cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }
    ~Stream() { cudaStreamDestroy(stream); }
};

TYPED_TEST(RepeatedCalls, EachFindsOutAnew) {
    Stream own;
    for (const Shape& shape : shapes) {
        { const Owned<char> left(std::vector<char>(512, char(0xa5))); }  // memory that the outcome may get
        typename RepeatedCalls<TypeParam>::Set set(this->context, shape, own.stream);
        for (int call = 0; call < 30; ++call) {
            const int which = call * 7 % 11 % 3;
            set.solve(which);
            set.batches[which].expect(set.pending.read(), std::string(shape.name) + ", call " + std::to_string(call));
        }
        for (const Batch<TypeParam>& batch : set.batches) batch.expect_x(shape.name);
    }
}

TYPED_TEST(RepeatedCalls, NobodyReadsBetween) {
    Stream own;
    for (const Shape& shape : shapes) {
        typename RepeatedCalls<TypeParam>::Set set(this->context, shape, own.stream);
        for (int last = 0; last < 3; ++last) {
            for (int call = 0; call < 40; ++call) set.solve(call * 5 % 7 % 3);
            set.solve(last);
            set.batches[last].expect(set.pending.read(), shape.name);
        }
        for (const Batch<TypeParam>& batch : set.batches) batch.expect_x(shape.name);
    }
}

TYPED_TEST(RepeatedCalls, BitsRepeat) {
    Stream own;
    for (const Shape& shape : shapes) {
        typename RepeatedCalls<TypeParam>::Set set(this->context, shape, own.stream);
        for (int which = 0; which < 2; ++which) {
            std::vector<TypeParam> first;
            for (int call = 0; call < 5; ++call) {
                cudaMemset(set.batches[which].x->data, 0xff, set.batches[which].x->size * sizeof(TypeParam));
                cudaDeviceSynchronize();
                set.solve(which);
                EXPECT_TRUE(set.pending.read().ok()) << shape.name;
                const std::vector<TypeParam> found = set.batches[which].x->get();
                if (call == 0) first = found;
                EXPECT_EQ(std::memcmp(first.data(), found.data(), found.size() * sizeof(TypeParam)), 0) << shape.name;
            }
        }
    }
}

TYPED_TEST(RepeatedCalls, AGraphIsReplayed) {
    Stream own;
    for (const Shape& shape : shapes) {
        typename RepeatedCalls<TypeParam>::Set set(this->context, shape, own.stream);
        cudaGraphExec_t ready[3] = {};
        for (int which = 0; which < 3; ++which) {  // the one before is in the graph as well
            cudaGraph_t graph = nullptr;
            TRIFOLD_CUDA(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeGlobal));
            set.solve((which + 2) % 3);
            set.solve(which);
            TRIFOLD_CUDA(cudaStreamEndCapture(own.stream, &graph));
            TRIFOLD_CUDA(cudaGraphInstantiate(&ready[which], graph, 0));
            cudaGraphDestroy(graph);
        }
        for (int launch = 0; launch < 100; ++launch) {
            const int which = launch * 7 % 11 % 3;
            TRIFOLD_CUDA(cudaGraphLaunch(ready[which], own.stream));
            if (launch % 5 == 4) set.batches[which].expect(set.pending.read(), std::string(shape.name) + ", launch " + std::to_string(launch));
            if (launch % 20 == 10) set.solve(launch % 3);  // and one that is not in a graph
        }
        TRIFOLD_CUDA(cudaStreamSynchronize(own.stream));
        for (const Batch<TypeParam>& batch : set.batches) batch.expect_x(shape.name);
        for (const cudaGraphExec_t graph : ready) cudaGraphExecDestroy(graph);
    }
}

TYPED_TEST(RepeatedCalls, TwoQueuesSideBySide) {
    Stream one, other;
    for (const Shape& shape : shapes) {
        typename RepeatedCalls<TypeParam>::Set here(this->context, shape, one.stream), there(this->context, shape, other.stream);
        for (int call = 0; call < 60; ++call) {
            const int which = call * 7 % 11 % 3, opposite = 2 - which;
            here.solve(which), there.solve(opposite);
            if (call % 6 != 5) continue;
            here.batches[which].expect(here.pending.read(), shape.name);
            there.batches[opposite].expect(there.pending.read(), shape.name);
        }
        for (const Batch<TypeParam>& batch : here.batches) batch.expect_x(shape.name);
        for (const Batch<TypeParam>& batch : there.batches) batch.expect_x(shape.name);
    }
}

}  // namespace
}  // namespace trifold::tests
