// SPDX-License-Identifier: BSD-3-Clause
#include "bench/suites/suites.hpp"

namespace trifold::bench {

using tridiagonal::Algorithm;

void run_single(const Settings& settings, Record& record) {
    for (const DType dtype : {DType::f64, DType::f32})
        for (const bool cached : {false, true}) {
            const double wanted = settings.quick ? 1e7 : 1e8;
            const std::int64_t rows = cached ? rows_in_cache(dtype) : rows_that_fit(wanted, dtype, 11);
            if (!cached && static_cast<double>(rows) < wanted) record.notes.push_back("fewer rows than asked for: memory");
            Case problem("dominant?ratio=2&rows=" + std::to_string(rows), dtype);
            for (const int threads : settings.thread_counts()) {
                Group group(problem, threads, false);
                group.add_solver("automatic");
                if (!cached) group.add_single_ceiling(SingleCeiling::Pass::certified);
                if (threads == 1) {
                    group.add_peer(lapack_gtsv(), record);
                    group.add_peer(lapack_ptsv(), record);
                    group.add_peer(thomas_loop(), record);
                    group.add_peer(mkl_dtsvb(), record);
                }
                group.run({.rounds = cached ? 101 : 15, .least = 3, .warm = cached, .budget_s = (cached ? 3 : 9) * settings.budget_scale},
                          std::string(cached ? "cache, " : "memory, ") + count_text(static_cast<double>(rows)) + " rows", record,
                          threads == 1 ? "LAPACK gtsv" : "");
            }
        }
}

}  // namespace trifold::bench
