// SPDX-License-Identifier: BSD-3-Clause
// Sequential elimination and LAPACK's, which oclspkt's figure 7 has too, on the system of the suite; one thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "bench/baselines/baseline.hpp"
#include "bench/harness/record.hpp"
#include "bench/suites/hetero_arrays.hpp"

namespace trifold::bench {

template <class T>
void peers(const Arrays& from, std::int64_t rows, Record& record) {
    io::TridiagonalData data;
    io::Array* const to[] = {&data.lower, &data.diag, &data.upper, &data.rhs};
    for (int k = 0; k < 4; ++k) {
        *to[k] = io::Array({.dtype = dtype_of<T>, .extents = {rows}}, "peers");
        std::copy_n(from.at<T>(k), rows, to[k]->as<T>());
    }
    data.axis = 0;
    for (const auto& peer : {thomas_loop(), lapack_gtsv(), mkl_dtsvb()}) {
        if (const std::string why = peer->absent(); !why.empty()) {
            record.note(peer->name() + ": " + why);
            continue;
        }
        if (const std::string why = peer->load(data); !why.empty()) {
            record.note(peer->name() + ": " + why);
            continue;
        }
        std::vector<double> times;
        for (int round = 0; round < 2; ++round) {
            peer->restore();
            const auto start = std::chrono::steady_clock::now();
            if (!peer->solve()) record.note(peer->name() + ": failed");
            times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        }
        const double seconds = *std::min_element(times.begin(), times.end());
        Row row;
        row.set("kind", "peer").set("devices", peer->name()).set("dtype", name_of(dtype_of<T>)).set("rows", static_cast<double>(rows)).set("threads", 1.0);
        row.set("seconds", seconds).set("rows_per_s", static_cast<double>(rows) / seconds);
        record.rows.push_back(std::move(row));
    }
}

}  // namespace trifold::bench
