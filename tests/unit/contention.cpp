// SPDX-License-Identifier: BSD-3-Clause
// Devices side by side: what the model predicts follows from what they share, and the best subset from the objective.
#include "devices/contention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "trifold/error.hpp"

namespace trifold::tests {
namespace {

using devices::Combination;
using devices::Machine;
using devices::SideBySide;

SideBySide cores(double rows_per_s, double watts = 0) {
    SideBySide device;
    device.name = "cpu", device.rows_per_s = rows_per_s, device.host_bytes = 20, device.watts = watts;
    return device;
}

SideBySide card(double rows_per_s, double link, double watts = 0) {
    SideBySide device;
    device.name = "card", device.rows_per_s = rows_per_s, device.to_bytes_per_s = device.from_bytes_per_s = link, device.bytes_to = 16, device.bytes_from = 4;
    device.host_bytes = 20, device.watts = watts;
    return device;
}

TEST(Contention, AloneIsTheSlowestOfKernelsLinkAndMemory) {
    EXPECT_DOUBLE_EQ(cores(3e9).alone(100e9), 3e9);
    EXPECT_DOUBLE_EQ(cores(3e9).alone(40e9), 2e9);
    EXPECT_DOUBLE_EQ(card(9e9, 16e9).alone(100e9), 1e9);
    EXPECT_DOUBLE_EQ(card(0.5e9, 16e9).alone(100e9), 0.5e9);
    SideBySide one_way = card(9e9, 20e9);
    one_way.both_ways = false;
    EXPECT_DOUBLE_EQ(one_way.alone(100e9), 1e9);
    SideBySide uneven = card(9e9, 16e9);
    uneven.from_bytes_per_s = 2e9;
    EXPECT_DOUBLE_EQ(uneven.alone(100e9), 0.5e9);
}

TEST(Contention, WhereMemorySufficesRatesAdd) {
    const Machine machine{200e9, 0, {cores(3e9), card(9e9, 16e9)}};
    const Combination both = together(machine, 0b11, 8e9);
    EXPECT_DOUBLE_EQ(both.total_rows_per_s, 4e9);
    EXPECT_DOUBLE_EQ(both.seconds, 2);
    EXPECT_DOUBLE_EQ(both.rows[0], 6e9);
    EXPECT_DOUBLE_EQ(both.rows[1], 2e9);
}

TEST(Contention, ShortMemoryIsSharedInProportionOrInTurn) {
    Machine machine{60e9, 0, {cores(3e9), card(9e9, 16e9)}};  // wanted: 60 and 20 GB/s
    const Combination equal = together(machine, 0b11, 1e9);
    EXPECT_DOUBLE_EQ(equal.rows_per_s[0], 2.25e9);
    EXPECT_DOUBLE_EQ(equal.rows_per_s[1], 0.75e9);
    machine.devices[0].turn = 1;
    const Combination card_first = together(machine, 0b11, 1e9);
    EXPECT_DOUBLE_EQ(card_first.rows_per_s[0], 2e9);
    EXPECT_DOUBLE_EQ(card_first.rows_per_s[1], 1e9);
    machine.devices[0].turn = 0, machine.devices[1].turn = 1;
    const Combination cores_first = together(machine, 0b11, 1e9);
    EXPECT_DOUBLE_EQ(cores_first.rows_per_s[0], 3e9);
    EXPECT_DOUBLE_EQ(cores_first.rows_per_s[1], 0);
}

// No device faster than alone, no more bytes than memory gives, all rows done; more memory is never slower.
TEST(Contention, HoldsOnRandomMachines) {
    std::mt19937 random(3);
    const auto between = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
    for (int trial = 0; trial < 2000; ++trial) {
        Machine machine{between(5e9, 300e9), 0, {}};
        const int count = 1 + static_cast<int>(random() % 5);
        for (int k = 0; k < count; ++k) {
            SideBySide device = random() % 2 ? cores(between(1e8, 5e9)) : card(between(1e8, 5e10), between(1e9, 1e11));
            device.turn = static_cast<int>(random() % 3), device.start_s = between(0, 0.1), device.host_bytes = between(1, 100);
            machine.devices.push_back(device);
        }
        const auto members = static_cast<std::uint32_t>(1 + random() % ((1u << count) - 1));
        const Combination found = together(machine, members, 1e9);
        double bytes = 0;
        for (int k = 0; k < count; ++k) {
            EXPECT_LE(found.rows_per_s[k], machine.devices[k].alone(machine.host_bytes_per_s) * (1 + 1e-12));
            EXPECT_TRUE((members >> k & 1) || found.rows_per_s[k] == 0);
            bytes += found.rows_per_s[k] * machine.devices[k].host_bytes;
        }
        EXPECT_LE(bytes, machine.host_bytes_per_s * (1 + 1e-12));
        EXPECT_NEAR(std::accumulate(found.rows.begin(), found.rows.end(), 0.0), 1e9, 1);
        machine.host_bytes_per_s *= 1.5;
        EXPECT_LE(together(machine, members, 1e9).seconds, found.seconds * (1 + 1e-12));
    }
}

TEST(Contention, DeviceThatDoesNotHelpIsLeftOut) {
    // Memory is used up by the card; cores served first would only take from it, at more bytes per row.
    Machine machine{42e9, 0, {cores(0.3e9), card(9e9, 30e9)}};
    machine.devices[0].host_bytes = 130;
    EXPECT_EQ(best(machine, 1e9, Objective::time).members, 0b10u);
    machine.host_bytes_per_s = 420e9;
    EXPECT_EQ(best(machine, 1e9, Objective::time).members, 0b11u);
    // Half a per cent is not worth a device.
    machine.devices[0].rows_per_s = 0.008e9;
    EXPECT_EQ(best(machine, 1e9, Objective::time).members, 0b10u);
    // Few rows are done before the card has begun.
    machine.devices[0].rows_per_s = 0.3e9, machine.devices[1].start_s = 1e-3;
    EXPECT_EQ(best(machine, 1e5, Objective::time).members, 0b01u);
}

TEST(Contention, BestSubsetDependsOnTheObjective) {
    // Fast and hungry, middling, slow and frugal: 200, 60 and 10 W at 4, 2 and 0.5 Grows/s.
    const Machine machine{1000e9, 0, {cores(4e9, 200), cores(2e9, 60), cores(0.5e9, 10)}};
    EXPECT_EQ(best(machine, 1e9, Objective::time).members, 0b111u);
    EXPECT_EQ(best(machine, 1e9, Objective::energy).members, 0b100u);
    EXPECT_EQ(best(machine, 1e9, Objective::edp).members, 0b111u);
    // A machine that draws 300 W whatever it does had better be done soon.
    Machine hungry = machine;
    hungry.base_watts = 300;
    EXPECT_EQ(best(hungry, 1e9, Objective::energy).members, 0b111u);
    // A device that takes ten times the power for a quarter of the rate costs more time × energy than it saves.
    const Machine two{1000e9, 0, {cores(4e9, 40), cores(1e9, 400)}};
    EXPECT_EQ(best(two, 1e9, Objective::time).members, 0b11u);
    EXPECT_EQ(best(two, 1e9, Objective::edp).members, 0b01u);
}

TEST(Contention, LinkedDeviceRestsWhileItWaits) {
    Machine machine{1000e9, 50, {card(10e9, 16e9, 100)}};
    machine.devices[0].idle_watts = 20;
    // 2 s for 2e9 rows, 0.2 s of kernels: 50 W × 2 s + 100 W × 0.2 s + 20 W × 1.8 s.
    EXPECT_DOUBLE_EQ(together(machine, 1, 2e9).joules, 156);
}

TEST(Contention, RefusesWhatMakesNoSense) {
    EXPECT_THROW(devices::together({0, 0, {cores(1e9)}}, 1, 1e9), Error);
    EXPECT_THROW(devices::together({1e9, 0, {}}, 1, 1e9), Error);
    EXPECT_THROW(devices::together({1e9, 0, {cores(0)}}, 1, 1e9), Error);
    EXPECT_THROW(devices::together({1e9, 0, {cores(1e9)}}, 2, 1e9), Error);
    EXPECT_THROW(devices::together({1e9, 0, {cores(1e9)}}, 0, 1e9), Error);
    EXPECT_THROW(devices::together({1e9, 0, std::vector<SideBySide>(17, cores(1e9))}, 1, 1e9), Error);
    EXPECT_THROW(objective_from("power"), Error);
    for (const Objective objective : {Objective::time, Objective::energy, Objective::edp}) EXPECT_EQ(objective_from(name_of(objective)), objective);
}

}  // namespace
}  // namespace trifold::tests
