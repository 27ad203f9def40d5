// SPDX-License-Identifier: BSD-3-Clause
// One system of the host's memory through one device, and its link's bandwidth in the same rounds: how much of the copies there, four words a row, a solve is.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "bench/harness/link.hpp"
#include "bench/harness/record.hpp"
#include "bench/suites/hetero_arrays.hpp"
#include "bench/suites/hetero_series.hpp"

namespace trifold::bench {

/// wanted: rows that were asked for; `rows` are fewer where memory is. seconds: that the link is measured for in a round.
template <class T>
void streamed(Context& context, const std::string& name, const Arrays& arrays, double wanted, std::int64_t rows, int rounds, double seconds, Record& record) {
    const devices::Runtime* const runtime = device_at(find_device(name)).runtime;
    if (!runtime || !runtime->open_stream) return;
    try {
        Queue queue(context, name);
        const tridiagonal::Problem problem = arrays.problem<T>(rows, false);
        const Link link(device_at(find_device(name)), {arrays.at<T>(0), arrays.at<T>(1), arrays.at<T>(2), arrays.at<T>(3)}, arrays.at<T>(4), static_cast<std::size_t>(rows) * sizeof(T));
        const double n = static_cast<double>(rows), row_in = 4 * sizeof(T);
        std::vector<double> times, to, of_the_link;
        Outcome outcome;
        double error = 0;
        for (int round = -1; round < rounds; ++round) {
            const auto start = std::chrono::steady_clock::now();
            outcome = tridiagonal::solve(queue, problem);
            const double its = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            if (round < 0) {  // makes buffers
                error = arrays.backward_error<T>(rows, false);
                continue;
            }
            times.push_back(its), to.push_back(link.alone(Direction::to, seconds).to), of_the_link.push_back(n * row_in / its / to.back());
        }
        Row row;
        row.set("kind", "streamed").set("matrix", "dominant").set("devices", name).set("dtype", name_of(dtype_of<T>)).set("rows", n).set("wanted_rows", wanted).set("rounds", static_cast<double>(rounds));
        row.set("seconds", median(times)).set("rows_per_s", n / median(times)).set("to_bytes_per_s", median(to)).set("of_the_link", median(of_the_link));
        row.set("least_of_the_link", *std::min_element(of_the_link.begin(), of_the_link.end())).set("branch", outcome.branch).set("reason", name_of(outcome.reason)).set("ok", outcome.ok()).set("backward_error", error);
        std::fprintf(stderr, "  %s, %.4g rows %s streamed: %.0f Mrows/s, %.0f %% of its link\n", name.c_str(), n, name_of(dtype_of<T>), 1e-6 * n / median(times), 100 * median(of_the_link));
        record.rows.push_back(std::move(row));
    } catch (const Error& failure) {
        record.note(name + ", streamed: " + failure.what());
    }
}

}  // namespace trifold::bench
