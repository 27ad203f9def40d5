// SPDX-License-Identifier: BSD-3-Clause
#include "planner/decision.hpp"

#include <algorithm>
#include <string>

#include "devices/context_state.hpp"
#include "families/tridiagonal/branch.hpp"
#include "planner/candidates.hpp"
#include "trifold/error.hpp"

namespace trifold::tridiagonal {
namespace {

/// Work that takes longer than reading a profile from disk.
constexpr double worth_reading_bytes = 16e6;

const Ops& ops_on(const char* name) { return *static_cast<const Ops*>(find_cell(device_at(find_device(name)), "tridiagonal").ops); }

// Both take what lies in the host's memory.
const Ops& cpu() { return ops_on("cpu"); }
const Ops& reference() { return ops_on("reference"); }

/// Who comes when a matrix that was to decay does not, which is not known yet: the cheapest of the others, whose predictions hold for it.
const Option* next_after_certified(const OptionList& options, int certified) {
    const Option* next = nullptr;
    for (int k = 0; k < options.count; ++k) {
        const Option& option = options.option[k];
        if (k == certified || option.refused) continue;
        if (!next || option.prediction.seconds < next->prediction.seconds) next = &option;
    }
    return next;
}

void take(Decision& decision, const OptionList& options, int first) {
    const Option& best = options.option[first];
    decision.ops = best.ops;
    decision.one_by_one = best.one_by_one;
    decision.predicted_s = best.prediction.seconds;
    decision.threads = best.prediction.threads;
    decision.branch[decision.branches++] = best.algorithm;
    if (best.algorithm == Algorithm::automatic) return;  // a batch looks after its own systems
    const Option* const next = best.algorithm == Algorithm::certified ? next_after_certified(options, first) : nullptr;
    if (next && next->algorithm == Algorithm::automatic) {
        if (next->one_by_one == best.one_by_one) {
            decision.branch[decision.branches++] = Algorithm::automatic;
            return;
        }
        decision.at_once_instead = true;
        decision.at_once_threads = next->prediction.threads;
    }
    for (int k = first + 1; k < options.count; ++k)
        if (!options.option[k].refused) decision.branch[decision.branches++] = options.option[k].algorithm;
}

const char* reason(const Decision& decision, const System& system, bool batch) {
    if (decision.ops->enqueue) return "in the GPU's memory: unpivoted where the pass shows it to be safe, pivoted else";
    if (decision.one_by_one && decision.branch[0] == Algorithm::automatic) return "few and short systems: one after the other takes less time than vectors that are not full";
    if (decision.one_by_one) return "few and long systems: each is solved like a single one";
    if (batch) return "systems side by side in vectors: unpivoted where the pass shows it to be safe, pivoted else";
    if (!batch && decision.branch[0] == Algorithm::automatic && solves_from_ends(*decision.ops, system)) return "small: on the calling thread, unpivoted from both ends where the pass shows it to be safe, pivoted else";
    switch (decision.branch[0]) {
        case Algorithm::certified: return "one pass where the matrix decays, bounded; where it does not, pivoted";
        case Algorithm::automatic: return "periodic or adding to x: unpivoted where the pass shows it to be safe, pivoted else";
        case Algorithm::two_pass: return "pivoted over all threads: one pass where the matrix forgets, two where it does not";
        default: return "too short to be cut: sequential elimination with partial pivoting";
    }
}

/// The cheapest option, or -1 where all are refused. Of two that take about as long, the one whose answer comes with a bound: predictions
/// are no better than that.
int cheapest(const OptionList& options) {
    constexpr double worth_of_a_bound = 0.9;
    const auto cost = [](const Option& option) {
        return option.prediction.seconds * (option.algorithm == Algorithm::certified ? worth_of_a_bound : 1);
    };
    int best = -1;
    for (int k = 0; k < options.count; ++k) {
        if (options.option[k].refused) continue;
        if (best < 0 || cost(options.option[k]) < cost(options.option[best])) best = k;
    }
    return best;
}

Decision decide_automatic(const Ops& own, const System& system, const Features& features, const devices::Profile& profile, int threads) {
    Decision decision;
    OptionList options = options_on(own, system, features, profile, threads);
    int best = solves_small(own, system) ? 0 : solves_few_small(own, system) ? 1 : cheapest(options);
    if (best < 0) {
        decision.delegated_because = options.option[0].refused;
        const Ops& host = cpu();
        if (&host != &own) options = options_on(host, system, features, profile, threads), best = cheapest(options);
    }
    if (best < 0) {
        options = options_on(reference(), system, features, profile, threads);
        // The reference takes any batch in one call, and its LU takes any system.
        best = features.batch ? 0 : options.count - 1;
    }
    take(decision, options, best);
    decision.why = !decision.delegated_because          ? reason(decision, system, features.batch)
                   : decision.ops == &reference() ? "the reference computes what this device does not"
                                                        : "the cpu computes what this device does not";
    return decision;
}

Decision decide_named(const Ops& own, const System& system, const Features& features, Algorithm algorithm,
                      const devices::Profile& profile, int threads) {
    Decision decision;
    decision.why = "asked for by name";
    Option option = named_option(own, system, features, algorithm, profile, threads);
    if (option.refused && features.batch && !own.enqueue) {
        // What solves one system solves a batch system by system.
        const System line = typical_line(system);
        const Option each = named_option(own, line, one_line(features), algorithm, profile, threads);
        if (!each.refused) option = each, option.one_by_one = true, option.prediction.seconds *= features.systems;
    }
    if (option.refused) {
        decision.delegated_because = option.refused;
        option = named_option(reference(), system, features, algorithm, profile, threads);
        if (option.refused)
            throw Error(ErrorCode::usage, "algorithm", std::string("no device runs '") + name_of(algorithm) + "' on this problem: " + own.device + ": " +
                                                           decision.delegated_because + "; reference: " + option.refused,
                        "use automatic, which always finds a way");
    }
    decision.ops = option.ops;
    decision.branch[decision.branches++] = algorithm;
    decision.one_by_one = option.one_by_one;
    decision.predicted_s = option.prediction.seconds;
    decision.threads = option.prediction.threads;
    return decision;
}

}  // namespace

const Ops& ops_of(const Queue& queue) {
    const Device& device = device_at(queue.device_index());
    const Cell& cell = find_cell(device, "tridiagonal");
    if (!cell.ops)
        throw Error(ErrorCode::device_unavailable, std::string("device '") + device.name + "'",
                    std::string("has no tridiagonal solver: ") + cell.note, "use device 'cpu'");
    return *static_cast<const Ops*>(cell.ops);
}

Decision decide(const Queue& queue, const System& system, Algorithm requested) {
    Context::State& state = queue.context().state();
    const Features features = features_of(system);
    const devices::Profile& profile = features.bytes >= worth_reading_bytes ? state.profile() : state.profile_at_hand();
    const Ops& own = ops_of(queue);
    Decision decision = requested == Algorithm::automatic ? decide_automatic(own, system, features, profile, state.threads)
                                                          : decide_named(own, system, features, requested, profile, state.threads);
    static const Ops* const ours = &cpu();
    decision.team = decision.ops == ours ? decision.threads : 1;
    decision.at_once_team = decision.ops == ours ? decision.at_once_threads : 1;
    return decision;
}

std::size_t workspace_bound(const Queue& queue, const System& system, Algorithm requested) {
    Context::State& state = queue.context().state();
    const Features features = features_of(system);
    const Decision decision = decide(queue, system, requested);
    std::size_t bytes = 0;
    auto cover = [&](const Ops& ops, Algorithm algorithm, bool one_by_one) {
        bytes = std::max(bytes, (one_by_one ? lines_workspace : branch_workspace)(ops, system, algorithm, state.threads));
    };
    for (int k = 0; k < decision.branches; ++k) cover(*decision.ops, decision.branch[k], decision.one_by_one);
    if (requested != Algorithm::automatic || (decision.delegated_because && decision.ops == &reference())) return bytes;
    const OptionList options = options_on(*decision.ops, system, features, state.profile_at_hand(), state.threads);
    for (int k = 0; k < options.count; ++k)
        if (!options.option[k].refused) cover(*options.option[k].ops, options.option[k].algorithm, options.option[k].one_by_one);
    return bytes;
}

std::size_t certain_workspace(const Queue& queue, const System& system, Algorithm requested) {
    if (system.rows == 0 || system.systems() == 0) return 0;
    const Decision decision = decide(queue, system, requested);
    if (decision.ops->enqueue) return 0;
    return (decision.one_by_one ? least_lines_workspace : branch_least_workspace)(*decision.ops, system, decision.branch[0], decision.threads);
}

}  // namespace trifold::tridiagonal
