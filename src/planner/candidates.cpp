// SPDX-License-Identifier: BSD-3-Clause
#include "planner/candidates.hpp"

#include "families/tridiagonal/branch.hpp"

namespace trifold::tridiagonal {

Option named_option(const Ops& ops, const System& system, const Features& features, Algorithm algorithm,
                    const devices::Profile& profile, int max_threads) noexcept {
    Option out{&ops, algorithm, false, branch_refuses(ops, system, algorithm), {}};
    if (!out.refused) out.prediction = predict(features, ops, algorithm, profile, max_threads);
    return out;
}

System typical_line(const System& batch) noexcept {
    System line = system_at(batch, 0);
    line.rows = batch.rows;  // ragged: the first may be short or empty
    return line;
}

OptionList options_on(const Ops& ops, const System& system, const Features& features, const devices::Profile& profile,
                      int max_threads) noexcept {
    OptionList out;
    System line = system;
    Features per_line = features;
    const double times = features.systems;
    if (ops.enqueue) {
        // A device that finds out in its own kernels what it must pivot; the host does not loop over systems for it.
        for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::two_pass, Algorithm::lu})
            out.option[out.count++] = named_option(ops, system, features, algorithm, profile, max_threads);
        return out;
    }
    if (solves_small(ops, system)) {
        out.option[out.count++] = {&ops, Algorithm::automatic, false, nullptr, predict_small(features, ops, profile)};
    } else if (features.batch) {
        out.option[out.count++] = named_option(ops, system, features, Algorithm::automatic, profile, max_threads);
        line = typical_line(system);
        per_line = one_line(features);
    } else if (ops.refuses(system, Algorithm::lu)) {
        // Not for the algorithms below: periodic, or adding to x.
        out.option[out.count++] = named_option(ops, system, features, Algorithm::automatic, profile, max_threads);
    }
    if (features.batch && solves_small(ops, line)) {
        Prediction each = predict_small(per_line, ops, profile);
        each.seconds *= times;
        out.option[out.count++] = {&ops, Algorithm::automatic, true, nullptr, each};
        return out;
    }
    if (solves_from_ends(ops, line) && !solves_small(ops, line)) {
        Prediction each = predict_small(per_line, ops, profile);
        constexpr double call = 1e-6;
        each.seconds = (call + each.seconds) * times;
        out.option[out.count++] = {&ops, Algorithm::automatic, features.batch, nullptr, each};
    }
    for (const Algorithm algorithm : {Algorithm::certified, Algorithm::two_pass, Algorithm::lu}) {
        Option option = named_option(ops, line, per_line, algorithm, profile, max_threads);
        option.one_by_one = features.batch;
        option.prediction.seconds *= times;
        out.option[out.count++] = option;
    }
    return out;
}

}  // namespace trifold::tridiagonal
