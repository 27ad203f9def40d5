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
    double colder = 1;               ///< so many solves halve what the first one takes more
    std::uint32_t becomes_slow = 0;  ///< in the middle of all solves these devices become three times as slow, and the pair half as slow again
};

struct Ended {
    double lost = 0, first_lost = 0;  ///< over all solves, and the first hundred, of what the best single device in a row would have taken
    double settled = 0;               ///< of those that are no trials, in the second half
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
    double all = 0, single = 0, settled = 0, settled_single = 0;
    bool slow = false;
    std::uint32_t before = 0;
    int row = 0;
    for (int k = 0; k < solves; ++k) {
        const SplitChoice choice = choose_members(rates, members, problem);
        const std::uint32_t set = choice.members;
        if (played.spell > 0 && uniform(random) < 1.0 / played.spell) slow = !slow;
        row = set == before ? row + 1 : 0, before = set;
        const auto now = [&](std::uint32_t of) { return typical[of] * (slow && !(played.cpu_only && of == card) ? played.slow : 1) * (2 * k >= solves && (played.becomes_slow & of) ? of == pair ? 1.5 : 3 : 1); };
        const double expected = now(set) * (1 + cold[set] * std::exp2(-row / played.colder));
        const double seconds = 2e-3 * expected * std::exp(played.noise * normal(random)) * (uniform(random) < played.disturbed ? 3 : 1);
        all += expected, single += std::min(now(cpu), now(card));
        ended.share += set == pair;
        if (k == 99) ended.first_lost = all / single - 1;
        if (!choice.learning) ended.taken = set;
        if (!choice.learning && 2 * k >= solves) settled += expected, settled_single += std::min(now(cpu), now(card));
        const double rows = problem.rows, cpus = set == pair ? rows * played.card_s / (played.cpu_s + played.card_s) : set == cpu ? rows : 0;
        remember(rates, members, choice, problem, {.seconds = seconds}, std::vector<SplitWork>{{cpus, 0}, {rows - cpus, 1e-4}});
    }
    ended.lost = all / single - 1, ended.settled = settled / settled_single - 1, ended.share /= solves;
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
    {.name = "the card is, and the cpu takes twice as long after it", .cpu_s = 1.1, .card_s = 1, .noise = 0.03, .cold_cpu = 1.2},
    {.name = "the card is nearly as fast as the cpu, which is slower after it", .card_s = 1.15, .cold_cpu = 0.3},
};

// Whatever the machine does: over 100 and over 300 solves choosing loses no more than 5 % beside who knows the best single device and takes it always; once it has learnt, what is taken is not slower than that; and what
// gains a lot is taken.
TEST(SplitTrials, LoseLittleAndEndWell) {
    constexpr int seeds = 16;
    for (const Played& machine : machines)
        for (const double pair_s : {0.8, 0.9, 0.97, 1.03, 1.06, 1.1, 1.3, 2.0}) {
            double lost = 0, first = 0, settled = 0, share = 0;
            int wrong = 0;
            for (unsigned seed = 0; seed < seeds; ++seed) {
                const Ended ended = play(machine, pair_s, seed);
                lost += ended.lost / seeds, first += ended.first_lost / seeds, settled += ended.settled / seeds, share += ended.share / seeds;
                const double single = std::min(machine.cpu_s, machine.card_s);
                wrong += (ended.taken == pair ? pair_s : (ended.taken == cpu ? machine.cpu_s : machine.card_s) / single) > 1.05;
            }
            EXPECT_LE(first, 0.05) << machine.name << ' ' << pair_s;
            EXPECT_LE(lost, 0.035) << machine.name << ' ' << pair_s;
            EXPECT_LE(settled, 0.015) << machine.name << ' ' << pair_s;
            EXPECT_LE(wrong, 2) << machine.name << ' ' << pair_s << ", of " << seeds;
            if (pair_s > 0.85) continue;
            EXPECT_LE(lost, -0.12) << machine.name;
            EXPECT_GE(share, 0.65) << machine.name;
        }
}

// Cores that need a dozen solves to be as fast again as they were: each trial of another set costs more than one of them.
TEST(SplitTrials, CoresThatWakeSlowly) {
    const Played machine{.name = "", .cold_cpu = 0.35, .colder = 2};
    for (const double pair_s : {0.8, 1.03, 1.1, 1.3, 2.0}) {
        double first = 0, lost = 0;
        for (unsigned seed = 0; seed < 24; ++seed) first += play(machine, pair_s, seed).first_lost / 24, lost += play(machine, pair_s, seed, 600).lost / 24;
        EXPECT_LE(first, pair_s < 1 ? -0.07 : 0.06) << pair_s;
        EXPECT_LE(lost, pair_s < 1 ? -0.14 : 0.025) << pair_s;
    }
}

// One device becomes slow, and the pair with it: what is the best then is what is taken some dozens of solves later.
TEST(SplitTrials, ADeviceThatBecomesSlow) {
    for (const double noise : {0.01, 0.04, 0.08})
        for (const std::uint32_t who : {cpu, card})
            for (const double pair_s : {0.8, 0.9, 1.03, 1.1}) {
                const Played machine{.name = "", .noise = noise, .becomes_slow = who | pair};
                const double single = who == cpu ? machine.card_s : 1, best = std::min(single, 1.5 * pair_s);
                double settled = 0;
                for (unsigned seed = 0; seed < 24; ++seed) settled += play(machine, pair_s, seed, 400).settled / 24;
                // Of 200 solves, while it is found out too.
                EXPECT_LE(settled, best / single - 1 + 0.12) << noise << ' ' << who << ' ' << pair_s;
            }
}

}  // namespace
}  // namespace trifold::tests
