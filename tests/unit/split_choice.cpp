// SPDX-License-Identifier: BSD-3-Clause
// Who takes part, learnt from solves of machines that the contention model plays.
#include "planner/split_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "devices/contention.hpp"
#include "unit/split_played.hpp"
#include "trifold/error.hpp"

namespace trifold::tests {
namespace {

// The first call is everybody's.
TEST(SplitChoice, EverybodyFirst) {
    Played played({155e9, 0, {cores("cpu", 5.1e9), card("cuda:0", 53e9), card("cuda:1", 53e9)}}, billion);
    const SplitChoice first = played.solve();
    EXPECT_EQ(first.members, 0b111u);
    EXPECT_TRUE(first.learning);
}

TEST(SplitChoice, BothWhereBothHelp) {
    Played played({155e9, 0, {cores("cpu", 5.1e9), card("cuda:0", 53e9)}}, billion);
    EXPECT_EQ(played.settle().members, 0b11u);
}

// oclspkt's machine: cores that starve the copies make both slower than the card alone.
TEST(SplitChoice, TheCardAloneWhereCoresStarveItsCopies) {
    devices::Machine machine{42e9, 0, {cores("cpu", 0.279e9), card("gpu", 8e9)}};
    machine.devices[0].host_bytes = 129, machine.devices[1].host_bytes = 60, machine.devices[1].turn = 1;
    Played played(machine, billion);
    EXPECT_LT(played.seconds(0b10), played.seconds(0b11));
    EXPECT_EQ(played.settle().members, 0b10u);
}

// Pageable memory on the H200 machine: the copies' staging costs the cores more than the link brings.
TEST(SplitChoice, TheCpuAloneWherePagesAreStaged) {
    devices::Machine machine{131e9, 0, {cores("cpu", 6.53e9), card("cuda:0", 19.4e9)}};
    machine.devices[1].host_bytes = 60;
    SplitProblem pageable = billion;
    pageable.pageable = true;
    Played played(machine, pageable);
    EXPECT_GT(played.seconds(0b11), played.seconds(0b01));
    EXPECT_EQ(played.settle().members, 0b01u);
    EXPECT_EQ(choose_members(played.rates, std::vector<SplitMember>{{"cpu"}, {"cuda:0", true}}, billion).members, 0b11u) << "registered memory is another kind";
}

// On any machine: once it is learnt, what is taken is never slower than the best single device, and near the best set of all.
TEST(SplitChoice, NeverSlowerThanTheBestSingleDevice) {
    std::mt19937 random(5);
    const auto between = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
    int pairs = 0, far = 0;
    for (int trial = 0; trial < 400; ++trial) {
        devices::Machine machine{between(20e9, 300e9), 0, {cores("cpu", between(0.3e9, 8e9))}};
        const int cards = 1 + static_cast<int>(random() % 3);
        for (int k = 0; k < cards; ++k) {
            machine.devices.push_back(card(("card" + std::to_string(k)).c_str(), between(4e9, 60e9)));
            machine.devices.back().host_bytes = between(20, 80);
        }
        Played played(machine, billion);
        const SplitChoice last = played.settle();
        pairs += std::popcount(last.members) > 1;
        EXPECT_LE(played.seconds(last.members), 1.0001 * played.best_single()) << trial << ' ' << last.members;
        const devices::Combination best = devices::best(machine, billion.rows, Objective::time);
        EXPECT_LE(played.seconds(last.members), 1.4 * best.seconds) << trial;
        far += played.seconds(last.members) > 1.1 * best.seconds;
    }
    EXPECT_GT(pairs, 100);
    EXPECT_LE(far, 20) << "of 400";
}

// The third solve, or the fourth where two devices did nearly half each, makes use of what was seen: it is not slower than everybody together or than who did most of it, and mostly as fast as any set.
TEST(SplitChoice, AfterTwoSolvesItKnows) {
    std::mt19937 random(11);
    const auto between = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
    int far = 0, fourth = 0;
    for (int trial = 0; trial < 400; ++trial) {
        devices::Machine machine{between(20e9, 300e9), 0, {cores("cpu", between(0.3e9, 8e9))}};
        const int cards = 1 + static_cast<int>(random() % 2);
        for (int k = 0; k < cards; ++k) {
            machine.devices.push_back(card(("card" + std::to_string(k)).c_str(), between(4e9, 60e9)));
            machine.devices.back().host_bytes = between(20, 80);
        }
        Played played(machine, billion);
        EXPECT_TRUE(played.solve().learning);
        const SplitChoice second = played.solve();
        EXPECT_TRUE(second.learning);
        EXPECT_EQ(std::popcount(second.members), 1);
        SplitChoice third = played.solve();
        if (third.learning) {
            EXPECT_EQ(std::popcount(third.members), 1) << trial;
            third = played.solve(), ++fourth;
        }
        EXPECT_FALSE(third.learning);
        const auto everybody = static_cast<std::uint32_t>((1u << machine.devices.size()) - 1);
        const double least = std::min(played.seconds(everybody), played.seconds(second.members));
        EXPECT_LE(played.seconds(third.members), least / 0.98 + 1e-9) << trial;
        far += played.seconds(third.members) > 1.1 * devices::best(machine, billion.rows, Objective::time).seconds;
    }
    EXPECT_LE(far, 60) << "of 400";
    EXPECT_LE(fourth, 80) << "of 400";
}

// What is tried beside what is taken costs some per cent of the time, from the third solve on.
TEST(SplitChoice, LookingAroundCostsLittle) {
    Played played({155e9, 0, {cores("cpu", 5.1e9), card("cuda:0", 53e9), card("cuda:1", 20e9)}}, billion);
    played.solve(), played.solve();
    double sum = 0;
    for (int k = 0; k < 300; ++k) sum += played.seconds(played.solve().members);
    EXPECT_LE(sum / 300, 1.06 * devices::best(played.machine(), billion.rows, Objective::time).seconds);
}

// A process that solves once has little but the first solve of a set, which makes buffers: its steady part counts, or else itself until there is better.
TEST(SplitChoice, FirstSolvesOfProcesses) {
    const std::vector<SplitMember> members{{"cpu"}, {"cuda:0", true}};
    const SplitProblem problem = billion;
    devices::Rates kept;
    const std::vector<SplitWork> both{{0.6e9, 0}, {0.4e9, 0.003}}, one{{1e9, 0}, {}};
    remember(kept, members, {0b11, true}, problem, {.seconds = 0.9, .first = true, .steady_s = 0.12}, both);
    EXPECT_NEAR(estimate_members(kept, members, problem, 0b11).seconds, 0.12, 1e-9);
    SplitChoice next = choose_members(kept, members, problem);
    EXPECT_EQ(next.members, 0b01u);
    remember(kept, members, next, problem, {.seconds = 0.15}, one);
    EXPECT_EQ(choose_members(kept, members, problem).members, 0b11u);

    // Nothing steady was seen: this process asks again, the next one makes do with it.
    const std::string file = testing::TempDir() + "/rates-first.json";
    std::string why;
    devices::Rates here;
    remember(here, members, {0b11, true}, problem, {.seconds = 0.9, .first = true}, both);
    EXPECT_EQ(choose_members(here, members, problem).members, 0b11u);
    EXPECT_TRUE(std::isnan(estimate_members(here, members, problem, 0b01).seconds));
    ASSERT_TRUE(here.save(file, "m", why)) << why;
    devices::Rates later;
    EXPECT_EQ(later.load(file, "m"), "");
    EXPECT_EQ(choose_members(later, members, problem).members, 0b01u);
    EXPECT_NEAR(estimate_members(later, members, problem, 0b11).seconds, 0.9, 1e-9);
    remember(later, members, {0b11, true}, problem, {.seconds = 0.12}, both);
    EXPECT_NEAR(estimate_members(later, members, problem, 0b11).seconds, 0.12, 1e-9) << "what is known better counts alone";
}

// A device that stands solves without a question; what its solves took is learnt at once, and what follows is as if each had been learnt by itself.
TEST(SplitChoice, SolvesThatStandAreLearntTogether) {
    devices::Machine machine{131e9, 0, {cores("cpu", 6.53e9), card("cuda:0", 19.4e9)}};
    machine.devices[1].host_bytes = 60;
    const std::vector<SplitMember> members{{"cpu"}, {"cuda:0", true}};
    Played one(machine, billion), together(machine, billion);
    SplitChoice choice{};
    int standing = 0;
    for (int k = 0; k < 300; ++k) {
        choice = one.solve();
        EXPECT_EQ(together.solve().members, choice.members);
        if (choice.stands == 0) continue;
        EXPECT_EQ(choice.members, 0b01u);
        std::vector<double> rates;
        for (int stands = choice.stands; stands > 0; --stands, ++standing, ++k) {
            const SplitChoice next = one.solve();
            EXPECT_EQ(next.members, choice.members);
            EXPECT_FALSE(next.learning);
            rates.push_back(1e9 / one.seconds(0b01));
            choice = next;
        }
        remember(together.rates, members, {0b01, false}, billion, {.seconds = one.seconds(0b01), .before = std::span(rates).first(rates.size() - 1)}, {});
    }
    EXPECT_GT(standing, 200);
    for (const std::uint32_t set : {0b01u, 0b10u, 0b11u}) {
        EXPECT_EQ(estimate_members(one.rates, members, billion, set).seen, estimate_members(together.rates, members, billion, set).seen);
        EXPECT_NEAR(estimate_members(one.rates, members, billion, set).seconds, estimate_members(together.rates, members, billion, set).seconds, 1e-9);
    }
}

TEST(SplitChoice, ObjectivesDiffer) {
    // 350 W of cores at 5 Grows/s; a card of 700 W whose kernels run a thirtieth of the time.
    const devices::Machine machine{155e9, 0, {cores("cpu", 5.1e9, 350), card("cuda:0", 53e9, 700)}};
    const auto last = [](devices::Machine on, Objective objective) {
        SplitProblem problem = billion;
        problem.objective = objective;
        return Played(std::move(on), problem).settle().members;
    };
    EXPECT_EQ(last(machine, Objective::time), 0b11u);
    EXPECT_EQ(last(machine, Objective::energy), 0b10u);
    EXPECT_EQ(last(machine, Objective::edp), 0b10u);
    devices::Machine frugal = machine;
    frugal.devices[0].watts = 30;
    EXPECT_EQ(last(frugal, Objective::edp), 0b11u);
    // As the model says of every objective, known from the beginning.
    for (const Objective objective : {Objective::time, Objective::energy, Objective::edp}) EXPECT_EQ(last(machine, objective), devices::best(machine, billion.rows, objective).members) << name_of(objective);
}

TEST(SplitChoice, EnergyNeedsWatts) {
    const std::vector<SplitMember> members{{"cpu", false, 100}, {"cuda:0", true, 0}};
    SplitProblem problem = billion;
    problem.objective = Objective::energy;
    try {
        choose_members({}, members, problem);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        EXPECT_NE(std::string(error.what()).find("watts of 'cuda:0'"), std::string::npos) << error.what();
    }
}

TEST(SplitChoice, KindsAreLearntApart) {
    std::vector<std::string> kinds;
    for (const double rows : {1e6, 1e9})
        for (const bool coupled : {false, true})
            for (const bool in_place : {false, true})
                for (const bool pageable : {false, true})
                    for (const DType dtype : {DType::f32, DType::f64}) kinds.push_back(SplitProblem{.rows = rows, .dtype = dtype, .coupled = coupled, .in_place = in_place, .pageable = pageable}.kind());
    std::sort(kinds.begin(), kinds.end());
    EXPECT_EQ(std::unique(kinds.begin(), kinds.end()), kinds.end());
}

TEST(SplitChoice, EstimatesSayWhereTheyComeFrom) {
    Played played({155e9, 0, {cores("cpu", 5.1e9), card("cuda:0", 53e9)}}, billion);
    const std::vector<SplitMember> members{{"cpu"}, {"cuda:0", true}};
    EXPECT_TRUE(std::isnan(estimate_members(played.rates, members, billion, 0b11).seconds));
    played.settle();
    const SplitEstimate both = estimate_members(played.rates, members, billion, 0b11);
    EXPECT_GT(both.seen, 0);
    EXPECT_NEAR(both.seconds, played.seconds(0b11), 1e-6);
    EXPECT_EQ(names_of(members, 0b11), "cpu,cuda:0");
}

}  // namespace
}  // namespace trifold::tests
