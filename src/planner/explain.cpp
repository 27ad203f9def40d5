// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <limits>

#include "devices/context_state.hpp"
#include "planner/candidates.hpp"
#include "planner/decision.hpp"

namespace trifold::tridiagonal {
namespace {

std::string seconds_text(double s) {
    static constexpr const char* unit[] = {"s", "ms", "µs", "ns"};
    int power = 0;
    while (s < 1 && power < 3) s *= 1000, ++power;
    char text[32];
    std::snprintf(text, sizeof text, "%.3g %s", s, unit[power]);
    return text;
}

std::string threads_text(int threads) { return std::to_string(threads) + (threads == 1 ? " thread" : " threads"); }

bool same(const Option& option, const Decision& decision, Algorithm branch) {
    return option.ops == decision.ops && option.algorithm == branch && option.one_by_one == decision.one_by_one;
}

Candidate candidate_of(const Option& option, const Decision& decision) {
    Candidate out;
    out.algorithm = name_of(option.algorithm);
    out.device = option.ops->device;
    if (option.refused) {
        out.predicted_s = std::numeric_limits<double>::quiet_NaN();
        out.why = std::string("refused: ") + option.refused;
        return out;
    }
    out.predicted_s = option.prediction.seconds;
    for (int k = 0; k < decision.branches && !out.taken && out.why.empty(); ++k)
        if (same(option, decision, decision.branch[k])) {
            if (k == 0) out.taken = true, out.why = option.ops->enqueue ? "tried first" : "tried first, on " + threads_text(option.prediction.threads);
            else out.why = std::string("where ") + name_of(decision.branch[k - 1]) + " hands over";
        }
    if (out.why.empty() && decision.at_once_instead && option.algorithm == Algorithm::automatic && !option.one_by_one)
        out.why = std::string("all at once where ") + name_of(decision.branch[0]) + " hands over the first system";
    if (out.why.empty())
        out.why = option.prediction.seconds >= decision.predicted_s
                      ? "predicted to take " + seconds_text(option.prediction.seconds) + ", not " + seconds_text(decision.predicted_s)
                      : "not looked at: another was asked for by name";
    if (option.one_by_one) out.why += ", one system after another";
    return out;
}

}  // namespace

Plan explain(const Queue& queue, const System& system, Algorithm requested) {
    Plan out;
    out.device = queue.device();
    if (system.rows == 0 || system.systems() == 0) {
        out.why = "nothing to solve";
        return out;
    }
    Context::State& state = queue.context().state();
    const Decision decision = decide(queue, system, requested);
    const Features features = features_of(system);
    const devices::Profile& profile = state.profile();
    for (int k = 0; k < decision.branches; ++k) out.branch.emplace_back(name_of(decision.branch[k]));
    out.device = decision.ops->device;
    out.predicted_s = decision.predicted_s;
    out.why = decision.why;
    if (decision.delegated_because) out.why += std::string(" (because ") + decision.delegated_because + ")";
    out.profile = profile.source();

    const Ops& own = ops_of(queue);
    const OptionList options = options_on(own, system, features, profile, state.threads);
    bool listed = false;
    for (int k = 0; k < options.count; ++k) {
        out.candidates.push_back(candidate_of(options.option[k], decision));
        listed = listed || out.candidates.back().taken;
    }
    if (requested != Algorithm::automatic && !listed) {
        const Option asked = named_option(own, system, features, requested, profile, state.threads);
        if (asked.refused || !decision.one_by_one) out.candidates.push_back(candidate_of(asked, decision));
    }
    if (decision.ops != &own) {
        Candidate delegated;
        delegated.algorithm = name_of(decision.branch[0]);
        delegated.device = decision.ops->device;
        delegated.predicted_s = decision.predicted_s;
        delegated.taken = true;
        delegated.why = std::string("because ") + decision.delegated_because;
        out.candidates.push_back(delegated);
    }
    return out;
}

}  // namespace trifold::tridiagonal
