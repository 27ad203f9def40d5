// SPDX-License-Identifier: BSD-3-Clause
#include "bench/suites/suites.hpp"

namespace trifold::bench {

using tridiagonal::Algorithm;

void run_pivoted(const Settings& settings, Record& record) {
    for (const DType dtype : {DType::f64, DType::f32}) {
        const std::int64_t rows = settings.quick ? 4000000 : 32000000;
        Case problem("random?rows=" + std::to_string(rows), dtype);
        for (const int threads : settings.thread_counts()) {
            Group group(problem, threads, false);
            group.add_solver("two_pass", Algorithm::two_pass);
            if (threads == 1) {
                group.add_solver("lu", Algorithm::lu);
                group.add_peer(lapack_gtsv(), record);
            }
            group.run({.rounds = 15, .least = 3, .budget_s = 8 * settings.budget_scale},
                      "random, " + count_text(static_cast<double>(rows)) + " rows", record, threads == 1 ? "LAPACK gtsv" : "");
        }
    }
}

}  // namespace trifold::bench
