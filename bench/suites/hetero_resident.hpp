// SPDX-License-Identifier: BSD-3-Clause
// Data where the device computes, without transfers: oclspkt's figure 6. By what a device does by itself, and on OpenCL devices by the published mappings: the one for GPUs where they have memory of their own; those for
// processors and FPGAs, and its TDMA, where they work on cores. There rows are as many as take some seconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "backends/opencl/kernel_times.hpp"
#include "backends/registry.hpp"
#include "bench/harness/record.hpp"
#include "bench/suites/hetero_arrays.hpp"
#include "bench/suites/hetero_series.hpp"
#include "trifold/device_memory.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::bench {

class Resident {
public:
    /// seconds: of one solve on cores by a published mapping, at most.
    Resident(Context& context, const Arrays& arrays, double seconds, Record& record) : context_(context), arrays_(arrays), seconds_(seconds), record_(record) {}

    /// names: devices of the suite. All of OpenCL's take part, though their boards are CUDA's and their cores the cpu's: they have the published mappings.
    template <class T>
    void run(std::vector<std::string> names, std::int64_t rows) {
        for (const Device* device : registered_devices())
            if (is_opencl(device->name) && !why_unavailable(*device) && !std::count(names.begin(), names.end(), device->name)) names.emplace_back(device->name);
        for (const std::string& name : names) {
            const bool own_memory = device_at(find_device(name)).runtime;
            if (!own_memory && !is_opencl(name)) continue;
            try {
                Queue queue(context_, name);
                if (!own_memory) {
                    const tridiagonal::Problem problem = arrays_.problem<T>(rows, false);
                    solves(queue, tridiagonal::Algorithm::automatic, "", problem, {.timed = 3});
                    for (const char* mapping : {"cpu", "fpga", "tdma"}) on_cores<T>(queue, mapping, rows);
                    continue;
                }
                DeviceArray<T> there[5];
                const tridiagonal::Problem problem = problem_there(queue, there, rows);
                solves(queue, tridiagonal::Algorithm::automatic, "", problem, {.timed = 3});
                if (is_opencl(name)) solves(queue, tridiagonal::Algorithm::truncated_spike, "gpu", problem, {.timed = 3, .apart = 3});
            } catch (const Error& error) {
                record_.note(name + ", data there: " + error.what());
            }
        }
    }

private:
    using Clock = std::chrono::steady_clock;

    /// How often; one solve before them is not counted.
    struct Rounds {
        int timed = 0, apart = 0;  ///< apart: kernel by kernel
        bool recorded = true;
    };

    static bool is_opencl(const std::string& name) { return name.starts_with("opencl:"); }

    template <class T>
    tridiagonal::Problem problem_there(Queue& queue, DeviceArray<T> (&there)[5], std::int64_t rows) {
        tridiagonal::Problem problem = arrays_.problem<T>(rows, false);
        if (queue.memory().kind != MemoryKind::device) return problem;
        for (int a = 0; a < 5; ++a) {
            there[a] = DeviceArray<T>(queue, rows);
            if (a < 4) there[a].upload(std::span<const T>(arrays_.at<T>(a), static_cast<std::size_t>(rows)));
        }
        const auto view = [&](int a) { return View<const T>::rows(std::span<const T>(there[a].data(), static_cast<std::size_t>(rows)), there[a].memory()); };
        problem.matrix = {view(0), view(1), view(2)}, problem.rhs = view(3);
        problem.x = View<T>::rows(std::span<T>(there[4].data(), static_cast<std::size_t>(rows)), there[4].memory());
        return problem;
    }

    template <class T>
    void on_cores(Queue& queue, const char* mapping, std::int64_t rows) {
        constexpr std::int64_t a_few = 4'000'000;
        const auto algorithm = std::string_view(mapping) == "tdma" ? tridiagonal::Algorithm::thomas : tridiagonal::Algorithm::truncated_spike;
        const std::int64_t first = std::min(rows, a_few);
        double of_few = 0;
        try {
            of_few = solves(queue, algorithm, mapping, arrays_.problem<T>(first, false), {.timed = 1, .recorded = false});
        } catch (const Error& error) {
            return record_.note(device_at(queue.device_index()).name + std::string(", ") + mapping + " mapping: " + error.what());
        }
        // A device may have too little memory for what is marshalled.
        for (std::int64_t some = std::min(rows, static_cast<std::int64_t>(static_cast<double>(first) * seconds_ / of_few) / 1'000'000 * 1'000'000); some >= 1'000'000; some /= 2) {
            try {
                return void(solves(queue, algorithm, mapping, arrays_.problem<T>(some, false), {.timed = 2, .apart = 2}));
            } catch (const Error& error) {
                record_.note(device_at(queue.device_index()).name + std::string(", ") + mapping + " mapping: " + error.what());
            }
        }
    }

    /// Seconds.
    double solves(Queue& queue, tridiagonal::Algorithm algorithm, const std::string& mapping, const tridiagonal::Problem& problem, Rounds rounds) {
        const Named named(mapping);
        tridiagonal::Options options;
        options.algorithm = algorithm;
        std::vector<double> times, marshalling, kernels;
        Outcome outcome;
        const Device& device = device_at(queue.device_index());
        for (int round = -1; round < rounds.timed + rounds.apart; ++round) {
            const bool apart = round >= rounds.timed;
            if (apart) opencl::kernel_times(device, true);
            const auto start = Clock::now();
            outcome = tridiagonal::solve(queue, problem, options);
            if (round >= 0 && !apart) times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
            if (!apart) continue;
            const opencl::KernelTimes its = opencl::kernel_times(device, false);
            marshalling.push_back(its.marshalling), kernels.push_back(its.solving);
        }
        if (!rounds.recorded) return median(times);
        Row row;
        const double rows = static_cast<double>(problem.rhs.rows());
        row.set("kind", "resident").set("devices", device.name).set("algorithm", tridiagonal::name_of(algorithm)).set("dtype", name_of(problem.rhs.dtype)).set("rows", rows);
        if (!mapping.empty()) row.set("mapping", mapping);
        row.set("seconds", median(times)).set("rows_per_s", rows / median(times)).set("branch", outcome.branch).set("reason", name_of(outcome.reason)).set("ok", outcome.ok());
        if (rounds.apart > 0) row.set("kernels_s", median(kernels)).set("marshalling_s", median(marshalling)).set("kernels_rows_per_s", rows / median(kernels)).set("marshalled_rows_per_s", rows / (median(kernels) + median(marshalling)));
        std::fprintf(stderr, "  %s, data there, %s %s: %.3g rows, %.1f ms", device.name, tridiagonal::name_of(algorithm), mapping.c_str(), rows, 1e3 * median(times));
        if (rounds.apart > 0) std::fprintf(stderr, ", kernels %.1f ms, marshalling %.1f ms", 1e3 * median(kernels), 1e3 * median(marshalling));
        std::fprintf(stderr, "\n");
        record_.rows.push_back(std::move(row));
        return median(times);
    }

    /// Names a mapping while it lives.
    struct Named {
        explicit Named(const std::string& mapping) {
            if (mapping == "cpu" || mapping == "gpu" || mapping == "fpga") setenv("TRIFOLD_OPENCL_MAPPING", mapping.c_str(), 1);
        }
        ~Named() { unsetenv("TRIFOLD_OPENCL_MAPPING"); }
        Named(const Named&) = delete;
        Named& operator=(const Named&) = delete;
    };

    Context& context_;
    const Arrays& arrays_;
    const double seconds_;
    Record& record_;
};

}  // namespace trifold::bench
