// SPDX-License-Identifier: BSD-3-Clause
// Operations and words of the paper's kernels for one work item, counted as they run, beside its table 1:
//
//             TDMA (paper)   truncated SPIKE (paper)     per partition of m rows
//   ADD/SUB      3 m              5 m + 3
//   MUL          3 m              6 m + 5
//   DIV          3 m              3 m + 3
//   words       10 m              5 m
#include <gtest/gtest.h>

#include <cmath>
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
        const auto mp = static_cast<cl_ulong>(n);
        EXPECT_EQ(c.add, 3 * mp);
        EXPECT_EQ(c.mul, 3 * mp);
        EXPECT_EQ(c.div, 2 * mp);  // the paper divides once more per row
        EXPECT_EQ(c.words, 10 * mp - 3);  // L[0] is not read, U[n-1] twice
    }
    count("tdma", 1, 32, true), count("tdma", 77, 32, true);
}

TEST_F(SpikeCounts, TruncatedSpike) {
    for (const auto& [n, m] : {std::pair{320, 32}, {1024, 64}}) {
        const Counts c = count("spktrunc", n, m, false);
        const auto rows = static_cast<cl_ulong>(n), mu = static_cast<cl_ulong>(m), p = rows / mu + 1;
        EXPECT_EQ(c.add, (5 * mu + 3) * p);
        EXPECT_EQ(c.mul, (5 * mu + 3) * p);
        EXPECT_LE(c.mul, (6 * mu + 5) * p);
        EXPECT_EQ(c.div, (3 * mu + 3) * p);
        // The table has 5 m p: the last trip's rows are beyond the system, and are not read here.
        EXPECT_EQ(c.words, 5 * rows - 2);
    }
    count("spktrunc", 1, 32, false), count("spktrunc", 33, 32, false), count("spktrunc", 95, 32, false);
}

}  // namespace
}  // namespace trifold::tests
