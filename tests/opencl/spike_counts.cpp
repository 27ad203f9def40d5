// SPDX-License-Identifier: BSD-3-Clause
// Operations and words of the paper's kernels for one work item, counted as they run, beside its table 1: bench/published/oclspkt.json has both, and
// `trifold plan --machine` prints them.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "backends/opencl/runtime/cl.hpp"

#include "backends/opencl/kernels/job.h"

namespace trifold::tests {

const char* kernel_text(std::string_view file);

namespace {

using opencl::SpikeSystem;

struct Counts {
    cl_ulong add = 0, mul = 0, div = 0, words = 0;
};

std::string with_includes(const std::string& file) {
    const std::string mark = "#include \"";
    std::string text = kernel_text(file);
    for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
        const std::size_t from = at + mark.size(), end = text.find('"', from);
        text.replace(at, end + 1 - at, with_includes(text.substr(from, end - from)));
    }
    return text;
}

/// What the published file has under `key` ("published", "counted") for p partitions of m rows.
cl_ulong listed(const char* key, const std::string& kernel, const std::string& operation, cl_ulong m, cl_ulong p) {
    static const nlohmann::json file = nlohmann::json::parse(std::ifstream(TRIFOLD_SOURCE "/bench/published/oclspkt.json"));
    for (const auto& one : file.at("operations"))
        if (one.at("kernel") == kernel && one.at("operation") == operation) return (one.at(key)[0].get<cl_ulong>() * m + one.at(key)[1].get<cl_ulong>()) * p;
    ADD_FAILURE() << kernel << " " << operation;
    return 0;
}

class SpikeCounts : public testing::Test {
protected:
    void SetUp() override {
        std::vector<cl::Platform> platforms;
        try {
            cl::Platform::get(&platforms);
            for (const cl::Platform& platform : platforms) {
                std::vector<cl::Device> there;
                platform.getDevices(CL_DEVICE_TYPE_CPU, &there);
                if (!there.empty()) {
                    device = there[0];
                    return;
                }
            }
        } catch (const cl::Error&) {
        }
        GTEST_SKIP() << "no OpenCL device on this machine";
    }

    /// Runs a kernel on n rows with blocks of m and checks x.
    Counts count(const char* name, std::int64_t n, int m, bool keeps) {
        const cl::Context context(device);
        cl::CommandQueue queue(context, device);
        cl::Program program(context, with_includes("spike_fpga.cl"));
        const std::string options = "-cl-std=CL1.2 -w -DREAL=float -DREAL_BYTES=4 -DLANES=1 -DCOUNTING -DM=" + std::to_string(m);
        program.build({device}, options.c_str());
        std::mt19937 random(7);
        std::uniform_real_distribution<float> unit(-1, 1);
        std::vector<float> l(n), d(n), u(n), y(n), x(n);
        for (std::int64_t i = 0; i < n; ++i) l[i] = unit(random), u[i] = unit(random), d[i] = 8 + unit(random), y[i] = unit(random);
        const auto buffer = [&](std::vector<float>& data) { return cl::Buffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, data.size() * 4, data.data()); };
        cl::Buffer arrays[5] = {buffer(l), buffer(d), buffer(u), buffer(y), buffer(x)};
        std::vector<float> kept(static_cast<std::size_t>(2 * (n + m)));
        Counts counts;
        const cl::Buffer work = buffer(kept), counter(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof counts, &counts);
        cl::Kernel kernel(program, name);
        for (cl_uint k = 0; k < 5; ++k) kernel.setArg(k, arrays[k]);
        kernel.setArg(5, SpikeSystem{n, 0, 0, 0, 0, 0});
        cl_uint next = 6;
        if (keeps) kernel.setArg(next++, work), kernel.setArg(next++, cl_long{0});
        kernel.setArg(next, counter);
        queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1), cl::NDRange(1));
        queue.enqueueReadBuffer(counter, CL_TRUE, 0, sizeof counts, &counts);
        queue.enqueueReadBuffer(arrays[4], CL_TRUE, 0, x.size() * 4, x.data());
        for (std::int64_t i = 0; i < n; ++i) {
            const double rest = y[i] - (i > 0 ? double(l[i]) * x[i - 1] : 0) - double(d[i]) * x[i] - (i + 1 < n ? double(u[i]) * x[i + 1] : 0);
            EXPECT_LT(std::abs(rest), 1e-6) << name << ", row " << i << " of " << n;
        }
        return counts;
    }

    cl::Device device;
};

TEST_F(SpikeCounts, Thomas) {
    for (const auto& [n, m] : {std::pair{320, 32}, {1024, 64}}) {
        const Counts c = count("tdma", n, m, true);
        const auto mu = static_cast<cl_ulong>(m), p = static_cast<cl_ulong>(n) / mu;
        EXPECT_EQ(c.add, listed("counted", "tdma", "add or subtract", mu, p));
        EXPECT_EQ(c.mul, listed("counted", "tdma", "multiply", mu, p));
        EXPECT_EQ(c.div, listed("counted", "tdma", "divide", mu, p));
        EXPECT_EQ(c.div + static_cast<cl_ulong>(n), listed("published", "tdma", "divide", mu, p));  // the paper divides once more per row
        EXPECT_EQ(c.words, listed("counted", "tdma", "words of memory", mu, p) - 3);                // L[0] is not read, U[n-1] twice
    }
    count("tdma", 1, 32, true), count("tdma", 77, 32, true);
}

TEST_F(SpikeCounts, TruncatedSpike) {
    for (const auto& [n, m] : {std::pair{320, 32}, {1024, 64}}) {
        const Counts c = count("spktrunc", n, m, false);
        const auto rows = static_cast<cl_ulong>(n), mu = static_cast<cl_ulong>(m), p = rows / mu + 1;
        EXPECT_EQ(c.add, listed("counted", "spktrunc", "add or subtract", mu, p));
        EXPECT_EQ(c.mul, listed("counted", "spktrunc", "multiply", mu, p));
        EXPECT_LE(c.mul, listed("published", "spktrunc", "multiply", mu, p));
        EXPECT_EQ(c.div, listed("counted", "spktrunc", "divide", mu, p));
        // The table has 5 m p: the last trip's rows are beyond the system, and are not read here.
        EXPECT_EQ(c.words, listed("counted", "spktrunc", "words of memory", mu, p - 1) - 2);
    }
    count("spktrunc", 1, 32, false), count("spktrunc", 33, 32, false), count("spktrunc", 95, 32, false);
}

// Where nothing else is said, the paper's table is what the kernels do.
TEST(Published, OnlyTwoLinesOfTheTableDiffer) {
    int differ = 0;
    for (const char* kernel : {"tdma", "spktrunc"})
        for (const char* operation : {"add or subtract", "multiply", "divide", "words of memory"})
            differ += listed("counted", kernel, operation, 32, 1) != listed("published", kernel, operation, 32, 1);
    EXPECT_EQ(differ, 2);
}

}  // namespace
}  // namespace trifold::tests
