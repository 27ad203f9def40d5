// SPDX-License-Identifier: BSD-3-Clause
// What choosing costs, and what it ends with, on two devices whose solves a clock of our own times: noise, solves that are disturbed, first solves after another set's that are slower, machines with fast and slow spells.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "planner/split_choice.hpp"

namespace trifold::tests {
namespace {

using namespace tridiagonal;

constexpr std::uint32_t cpu = 0b01, card = 0b10, pair = 0b11;

struct Played {
    const char* name = "";
    double cpu_s = 1, card_s = 2.5;  ///< in a row
    double noise = 0.05;             ///< of every solve, log-normal
    double cold_cpu = 0, cold_pair = 0;  ///< the first solve after another set's takes so much more, the next one half as much more, …
    double disturbed = 0;            ///< so many solves take three times as long
    double slow = 1;                 ///< a slow spell's factor
    int spell = 0;                   ///< solves of a spell, on average
    bool cpu_only = false;           ///< sets without the cpu have none
};

struct Ended {
    double lost = 0;  ///< over all solves, of what the best single device in a row would have taken
    std::uint32_t taken = 0;
    double share = 0;  ///< of the pair
};

/// pair_s: of the best single device's time.
Ended play(const Played& played, double pair_s, unsigned seed, int solves = 300) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const std::vector<SplitMember> members{{"cpu"}, {"cuda:0", true}};
    const SplitProblem problem{.rows = 16e6, .dtype = DType::f32};
    const double typical[] = {0, played.cpu_s, played.card_s, pair_s * std::min(played.cpu_s, played.card_s)}, cold[] = {0, played.cold_cpu, 0, played.cold_pair};
    devices::Rates rates;
    Ended ended;
    double all = 0, single = 0;
    bool slow = false;
    std::uint32_t before = 0;
    int row = 0;
    for (int k = 0; k < solves; ++k) {
        const SplitChoice choice = choose_members(rates, members, problem);
        const std::uint32_t set = choice.members;
        if (played.spell > 0 && uniform(random) < 1.0 / played.spell) slow = !slow;
        row = set == before ? row + 1 : 0, before = set;
        const auto now = [&](std::uint32_t of) { return typical[of] * (slow && !(played.cpu_only && of == card) ? played.slow : 1); };
        const double expected = now(set) * (1 + cold[set] * std::ldexp(1.0, -row));
        const double seconds = 2e-3 * expected * std::exp(played.noise * normal(random)) * (uniform(random) < played.disturbed ? 3 : 1);
        all += expected, single += std::min(now(cpu), now(card));
        ended.share += set == pair;
        if (!choice.learning) ended.taken = set;
        const double rows = problem.rows, cpus = set == pair ? 0.65 * rows : set == cpu ? rows : 0;
        remember(rates, members, choice, problem, {.seconds = seconds}, std::vector<SplitWork>{{cpus, 0}, {rows - cpus, 1e-4}});
    }
    ended.lost = all / single - 1, ended.share /= solves;
    return ended;
}

const Played machines[] = {
    {.name = "quiet", .noise = 0.01},
    {.name = "noise", .noise = 0.08},
    {.name = "a cpu that is slower after others' solves", .cold_cpu = 0.35},
    {.name = "a pair that is", .cold_pair = 0.3},
    {.name = "one solve in twenty is disturbed", .disturbed = 0.05},
    {.name = "long slow spells", .slow = 1.25, .spell = 80},
    {.name = "short slow spells", .slow = 1.4, .spell = 12},
    {.name = "slow spells of the cpu", .slow = 1.15, .spell = 60, .cpu_only = true},
    {.name = "the card is the best single device", .cpu_s = 1.22, .card_s = 1, .noise = 0.03, .cold_cpu = 0.3},
};

// Whatever the machine does: over 300 solves choosing loses little beside who knows the best single device, what is taken in the end is not slower than that by more than two per cent, and what gains a lot is taken.
TEST(SplitTrials, LoseLittleAndEndWell) {
    constexpr int seeds = 24;
    for (const Played& machine : machines)
        for (const double pair_s : {0.8, 0.9, 0.97, 1.03, 1.06, 1.1}) {
            double lost = 0, share = 0;
            int wrong = 0;
            for (unsigned seed = 0; seed < seeds; ++seed) {
                const Ended ended = play(machine, pair_s, seed);
                lost += ended.lost / seeds, share += ended.share / seeds;
                const double single = std::min(machine.cpu_s, machine.card_s);
                wrong += (ended.taken == pair ? pair_s : (ended.taken == cpu ? machine.cpu_s : machine.card_s) / single) > 1.02;
            }
            EXPECT_LE(lost, pair_s < 1 ? 0.03 : 0.05) << machine.name << ' ' << pair_s;
            EXPECT_LE(wrong, 1) << machine.name << ' ' << pair_s << ", of " << seeds;
            if (pair_s > 0.85) continue;
            EXPECT_LE(lost, -0.1) << machine.name;
            EXPECT_GE(share, 0.8) << machine.name;
        }
}

}  // namespace
}  // namespace trifold::tests
