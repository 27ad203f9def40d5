// SPDX-License-Identifier: BSD-3-Clause
// One system on several devices: the parts that tests give it, a solve, and what has to be true of it.
#pragma once

#include "unit/split.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

namespace trifold::tests {

struct Split : testing::Test {
    devices::ScratchArena scratch;
    devices::StreamKits kits;
    std::int64_t slot_rows = 8192;
    std::map<std::string, std::int64_t> rows_of;  // of each part in all attempts

    split::Part cpu() const { return {"cpu", &ops_of("cpu"), nullptr, 0}; }
    split::Part fake(const char* name = "fake:0") const { return {name, &FakeDevice::ops(), &FakeDevice::runtime(), 0}; }

    /// Empty where there is no OpenCL, or no device of it in the host's memory.
    std::vector<split::Part> opencl_parts() const {
        std::vector<split::Part> out;
        try {
            for (const char* name : {"opencl:0.0/0/2", "opencl:0.0/1/2"}) {
                const Device& device = device_at(find_device(name));
                if (device.runtime) return {};
                out.push_back({device.name, &ops_of(name), device.runtime, device.number});
            }
        } catch (const Error&) {
            out.clear();
        }
        return out;
    }

    /// Empty where it is none, or works in the host's memory: TRIFOLD_OPENCL_AS=gpu.
    std::vector<split::Part> opencl_with_memory() const {
        try {
            const Device& device = device_at(find_device("opencl:0.0"));
            if (device.runtime && device.runtime->open_stream) return {{device.name, &ops_of(device.name), device.runtime, device.number}};
        } catch (const Error&) {
        }
        return {};
    }

    split::Result solve(const System& system, const std::vector<split::Part>& parts, const std::vector<split::Trouble>& trouble = {},
                        const std::vector<double>& rates = {}, double patience_s = 30) {
        split::Setting setting;
        setting.patience_s = patience_s;
        setting.parts = parts;
        setting.host = &ops_of("cpu");
        setting.threads = 2;
        setting.tolerance = unit_roundoff(system.dtype);
        setting.reach = split::look(system, *setting.host, setting.tolerance, 2);
        setting.rows_per_s = rates;
        setting.trouble = trouble;
        setting.least_rows = 2048;
        setting.slot_rows = slot_rows;
        setting.scratch = &scratch;
        setting.kits = &kits;
        return split::solve(system, setting);
    }

    /// Call `fail_at` fails, or all from there on.
    static split::Trouble fails(std::int64_t fail_at, bool lasting = false) { return {.fail_at = fail_at, .lasting = lasting, .failed = std::make_shared<std::atomic<int>>(0)}; }

    /// attempt(k) for every call k, and some after the last one: a lane has as many as it takes chunks, and that is never the same.
    template <class Attempt>
    static int at_every_call(Attempt attempt) {
        int reached = 0;
        for (std::int64_t call = 1, beyond = 0; beyond < 8 && call < 100000; ++call) {
            const bool failed = attempt(call);
            reached += failed, beyond = failed ? 0 : beyond + 1;
        }
        return reached;
    }

    /// Right, or given up since coupled chunks did not meet (near a zero of x): all of it is somebody else's then, and in place the right-hand side is there. Returns whether it was given up.
    static bool is_right_or_given_up(const split::Result& result, SplitCase<double>& c, const std::string& what) {
        EXPECT_LE(result.solved ? c.residual() : 0, 48) << what;
        double off = 0;
        for (std::size_t i = 0; !result.solved && c.in_place && i < c.rhs.size(); ++i) off = std::max(off, std::abs(c.rhs[i] - c.given[i]));
        EXPECT_LE(off, 1e-6) << what << ", " << result.why;
        return !result.solved;
    }

    /// Whether it came to that; then the report says so, and else nothing.
    static bool is_reported(const split::Result& result, std::size_t part, const split::Trouble& trouble) {
        const bool failed = *trouble.failed > 0;
        EXPECT_EQ(result.devices[part].state, failed ? "retired: a call that was made to fail" : "") << result.devices[part].name << ", call " << trouble.fail_at << (trouble.lasting ? " and all after it" : "");
        return failed;
    }

    template <class T>
    void attempt(Matrix kind, std::int64_t rows, bool in_place, const std::vector<split::Part>& parts) {
        SplitCase<T> c(kind, rows, in_place, static_cast<std::uint64_t>(rows));
        const split::Result result = solve(c.system(), parts);
        ASSERT_TRUE(result.solved) << result.why << ", " << name_of(result.outcome.reason) << " row " << result.outcome.row << ", " << rows << " rows, f" << 8 * sizeof(T) << (in_place ? ", in place" : "");
        EXPECT_TRUE(result.outcome.ok());
        // Coupled chunks are held to 32 by blocks of their own; in a block that lies otherwise x may be half as large.
        EXPECT_LE(c.residual(), result.coupled ? 64 : 32) << rows << " rows, f" << 8 * sizeof(T) << (in_place ? ", in place" : "");
        std::int64_t solved = 0;
        for (const DeviceShare& share : result.devices) {
            solved += share.rows, rows_of[share.name] += share.rows;
            EXPECT_EQ(share.state, "") << share.name;
        }
        EXPECT_EQ(solved, rows);
    }

    void attempt_all(const std::vector<split::Part>& parts) {
        for (const Matrix kind : {Matrix::dominant, Matrix::diffusion, Matrix::random})
            for (const std::int64_t rows : {65536, 100003, 262144})
                for (const bool in_place : {false, true}) {
                    attempt<float>(kind, rows, in_place, parts);
                    attempt<double>(kind, rows, in_place, parts);
                }
    }
};

}  // namespace trifold::tests
