// SPDX-License-Identifier: BSD-3-Clause
// Every call of CUDA's driver fails once, and all from it on (failing_driver.cpp), in solves on cuda:0 alone: such a solve says so or is right, and the next one is right.
// By hand, where there is a GPU: bin/cuda_failures, beside it lib/libtrifold_cuda.so and lib/tests/failing_cuda/libcuda.so.1; nothing has to be set (TRIFOLD_REAL_CUDA: the driver's path where it
// is not found; TRIFOLD_TEST_EVERY_CALL=1: no steps where there are many calls). Another program has it before the driver with TRIFOLD_REAL_CUDA=… LD_LIBRARY_PATH=lib/tests/failing_cuda.
#include "cuda/failures.hpp"

#include <optional>
#include <vector>

namespace trifold::tests {
namespace {

struct Case {
    const char* name;
    Matrix matrix;
    std::int64_t rows, systems = 1;
    bool interleaved = false, on_device = false, in_place = false;
    bool anew = false;  ///< a Context for every solve, which has nothing yet
};

/// Systems one after the other are one whose couplings between them are 0.
class Systems {
public:
    Systems(const Case& c, Queue& queue) : c_(c), queue_(queue), one_(c.matrix, c.rows * c.systems, c.in_place, 5) {
        for (std::int64_t first = c.rows; first < c.rows * c.systems; first += c.rows) one_.lower[static_cast<std::size_t>(first)] = one_.upper[static_cast<std::size_t>(first) - 1] = 0;
        if (c.interleaved) lower_ = laid_out(one_.lower), diag_ = laid_out(one_.diag), upper_ = laid_out(one_.upper);
        else lower_ = one_.lower, diag_ = one_.diag, upper_ = one_.upper;
        rhs_ = given_ = c.interleaved ? laid_out(one_.given) : one_.given;
        x_.resize(rhs_.size());
        if (!c.on_device) return;
        const auto there = [&](const std::vector<double>& values) { return DeviceArray<double>(queue_, std::span<const double>(values)); };
        d_lower_ = there(lower_), d_diag_ = there(diag_), d_upper_ = there(upper_), d_rhs_ = there(rhs_), d_x_ = there(x_);
    }

    void renew() {
        rhs_ = given_;
        std::fill(x_.begin(), x_.end(), std::numeric_limits<double>::quiet_NaN());
        if (c_.on_device) d_rhs_.upload(rhs_), d_x_.upload(x_);
    }

    tridiagonal::Problem problem() {
        tridiagonal::Problem out;
        const auto view = [&]<class T>(T* data, Memory memory) {
            if (c_.systems == 1) return AnyView(View<T>::rows(std::span<T>(data, static_cast<std::size_t>(c_.rows)), memory));
            return AnyView(c_.interleaved ? View<T>::interleaved(data, c_.rows, c_.systems, c_.systems, memory) : View<T>::contiguous(data, c_.systems, c_.rows, c_.rows, memory));
        };
        const auto read = [&](const std::vector<double>& here, const DeviceArray<double>& there) { return view(c_.on_device ? static_cast<const double*>(there.data()) : here.data(), there.memory()); };
        const auto written = [&](std::vector<double>& here, const DeviceArray<double>& there) { return view(c_.on_device ? there.data() : here.data(), there.memory()); };
        out.matrix.lower = read(lower_, d_lower_), out.matrix.diag = read(diag_, d_diag_), out.matrix.upper = read(upper_, d_upper_);
        out.rhs = read(rhs_, d_rhs_);
        out.x = c_.in_place ? written(rhs_, d_rhs_) : written(x_, d_x_);
        return out;
    }

    double residual() {
        std::vector<double>& x = c_.in_place ? rhs_ : x_;
        if (c_.on_device) (c_.in_place ? d_rhs_ : d_x_).download(x);
        std::vector<double>& to = c_.in_place ? one_.rhs : one_.x;
        to = x;
        for (std::int64_t system = 0; c_.interleaved && system < c_.systems; ++system)
            for (std::int64_t row = 0; row < c_.rows; ++row) to[static_cast<std::size_t>(system * c_.rows + row)] = x[static_cast<std::size_t>(row * c_.systems + system)];
        return one_.residual(c_.matrix == Matrix::poisson ? 1 << 14 : 1024);
    }

private:
    std::vector<double> laid_out(const std::vector<double>& values) const {
        std::vector<double> out(values.size());
        for (std::int64_t system = 0; system < c_.systems; ++system)
            for (std::int64_t row = 0; row < c_.rows; ++row) out[static_cast<std::size_t>(row * c_.systems + system)] = values[static_cast<std::size_t>(system * c_.rows + row)];
        return out;
    }

    const Case& c_;
    Queue& queue_;
    SplitCase<double> one_;
    std::vector<double> lower_, diag_, upper_, rhs_, given_, x_;
    DeviceArray<double> d_lower_, d_diag_, d_upper_, d_rhs_, d_x_;
};

class CudaFailures : public testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        if (const std::string why = no_failing_gpu(); !why.empty()) GTEST_SKIP() << why;
        context_.emplace(two_threads), queue_.emplace(*context_, "cuda:0");
    }
    void TearDown() override {
        if (failing_driver().fail) failing_driver().fail(-1, 0, unknown_error);
        alarm(0);
    }

    /// With call `fail_at` failing; empty where it says that it went wrong, which is `said` then.
    std::optional<Outcome> solve(Systems& systems, long fail_at, bool lasting, Report& report) {
        const FailingDriver& driver = failing_driver();
        systems.renew();
        said_.reset();
        std::optional<Outcome> out;
        tridiagonal::Options options;
        options.report = &report;
        driver.fail(fail_at, lasting, lasting ? launch_failed : unknown_error);
        try {
            if (GetParam().anew) {
                Context context(two_threads);
                Queue queue(context, "cuda:0");
                out = tridiagonal::solve(queue, systems.problem(), options);
            } else {
                out = tridiagonal::solve(*queue_, systems.problem(), options);
            }
        } catch (const Error& error) {
            said_ = error;
        }
        calls_ = driver.calls(), failed_ = driver.failed(), function_ = driver.failed_function();
        driver.fail(-1, 0, unknown_error);
        return out;
    }

    std::optional<Context> context_;
    std::optional<Queue> queue_;
    std::optional<Error> said_;
    long calls_ = 0;
    int failed_ = 0;
    std::string function_;
};

TEST_P(CudaFailures, AreSaidAndPass) {
    const Case& c = GetParam();
    Systems systems(c, *queue_);
    Report report;
    long calls = 0;
    double seconds = 0;
    const auto right = [&](const std::string& what) {
        const std::optional<Outcome> outcome = solve(systems, -1, false, report);
        ASSERT_TRUE(outcome) << said_->what() << ", " << what;
        EXPECT_TRUE(outcome->ok()) << what;
        EXPECT_LE(systems.residual(), 64) << what;
        calls = std::max(calls, calls_);
    };
    // Kernels are loaded, and it is learnt who takes part.
    must_end(c.name);
    for (int k = 0; k < 3; ++k) ASSERT_NO_FATAL_FAILURE(right("before"));
    calls = 0;
    seconds = seconds_of([&] { right("before"); });
    ASSERT_GT(calls, 0);
    const long most = calls, tried_again = seconds < 0.02 ? 1 : 4, step = step_of(most, (2 + 2.0 / static_cast<double>(tried_again)) * seconds, 5);
    int said = 0, passed = 0, retired = 0;
    for (const bool lasting : {false, true})
        for (long k = lasting ? step / 2 : 0; k < most; k += step) {
            std::string what = "call " + std::to_string(k) + " of " + std::to_string(most) + (lasting ? " and all after it" : "");
            must_end(c.name + (", " + what));
            const std::optional<Outcome> outcome = solve(systems, k, lasting, report);
            what += " (" + function_ + ")";
            if (outcome) {
                EXPECT_TRUE(outcome->ok()) << what;
                EXPECT_LE(systems.residual(), 64) << "a wrong answer: " << what;
                passed += failed_ > 0;
                for (const DeviceShare& share : report.devices) retired += share.state.starts_with("retired: ");
            } else {
                ++said;
                EXPECT_GT(failed_, 0) << said_->what();
                EXPECT_EQ(said_->code(), ErrorCode::device_unavailable) << said_->what() << ", " << what;
                EXPECT_NE(std::string(said_->what()).find("cuda:0"), std::string::npos) << said_->what() << ", " << what;
            }
            if (k / step % tried_again == 0) right("after " + what);
            if (HasFatalFailure()) return;
        }
    std::printf("%s: %ld calls, every %ld; %d errors, %d right although one failed, %d reported as retired\n", c.name, most, step, said, passed, retired);
    EXPECT_GT(said + retired, 0);
}

constexpr std::int64_t streamed = std::int64_t{7} << 20;
INSTANTIATE_TEST_SUITE_P(
    Solves, CudaFailures,
    testing::Values(Case{.name = "contiguous", .matrix = Matrix::dominant, .rows = 100, .systems = 300, .on_device = true},
                    Case{.name = "interleaved", .matrix = Matrix::dominant, .rows = 100, .systems = 300, .interleaved = true, .on_device = true, .in_place = true},
                    Case{.name = "pivoted", .matrix = Matrix::random, .rows = 64, .systems = 50, .on_device = true, .anew = true},
                    Case{.name = "long_columns", .matrix = Matrix::poisson, .rows = 5000, .systems = 40, .interleaved = true, .on_device = true},
                    Case{.name = "short_single", .matrix = Matrix::dominant, .rows = 3000, .on_device = true},
                    Case{.name = "single", .matrix = Matrix::dominant, .rows = 400000, .on_device = true},
                    Case{.name = "single_in_place", .matrix = Matrix::dominant, .rows = 400000, .on_device = true, .in_place = true, .anew = true},
                    Case{.name = "coupled", .matrix = Matrix::poisson, .rows = 300007, .on_device = true},
                    Case{.name = "coupled_in_place", .matrix = Matrix::poisson, .rows = 3000017, .on_device = true, .in_place = true, .anew = true},
                    Case{.name = "batch_of_the_host", .matrix = Matrix::dominant, .rows = 100, .systems = 300},
                    Case{.name = "of_the_host", .matrix = Matrix::dominant, .rows = 300000, .in_place = true, .anew = true},
                    Case{.name = "streamed", .matrix = Matrix::dominant, .rows = streamed},
                    Case{.name = "streamed_in_place", .matrix = Matrix::dominant, .rows = streamed, .in_place = true, .anew = true},
                    Case{.name = "copied_whole", .matrix = Matrix::poisson, .rows = streamed}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace trifold::tests
