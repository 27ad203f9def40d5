// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "bench/suites/suites.hpp"

namespace trifold::bench {
namespace {

using tridiagonal::Algorithm;

void run_case(Case& problem, const std::string& name, bool in_place, SingleCeiling::Pass pass, const Settings& settings, Record& record) {
    for (const int threads : settings.thread_counts()) {
        Group group(problem, threads, in_place);
        group.add_solver("two_pass", Algorithm::two_pass);
        group.add_single_ceiling(pass);
        if (threads == 1) {
            group.add_solver("lu", Algorithm::lu);
            group.add_peer(lapack_gtsv(), record);
        }
        group.run({.rounds = 15, .least = 3, .budget_s = 8 * settings.budget_scale}, name, record, threads == 1 ? "LAPACK gtsv" : "");
    }
}

}  // namespace

void run_pivoted(const Settings& settings, Record& record) {
    for (const DType dtype : {DType::f64, DType::f32}) {
        const std::int64_t rows = settings.quick ? 4000000 : 32000000;
        const std::string count = ", " + count_text(static_cast<double>(rows)) + " rows", last = "rows=" + std::to_string(rows);
        // A random matrix forgets within some hundreds of rows and is solved in one pass. Waves and Poisson's equation never do: two passes.
        Case random("random?" + last, dtype);
        run_case(random, "random" + count, false, SingleCeiling::Pass::pivoted, settings, record);
        run_case(random, "random" + count + ", in place", true, SingleCeiling::Pass::pivoted, settings, record);
        Case waves("random?lower=1&diag=0.5&upper=1&" + last, dtype);
        run_case(waves, "waves" + count, false, SingleCeiling::Pass::two_pass, settings, record);
        Case poisson("poisson?" + last, dtype);
        run_case(poisson, "Poisson" + count, false, SingleCeiling::Pass::dominant, settings, record);
    }
}

}  // namespace trifold::bench
