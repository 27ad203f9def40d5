// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "devices/context_state.hpp"
#include "families/tridiagonal/branch.hpp"
#include "planner/calibrate.hpp"
#include "planner/candidates.hpp"
#include "planner/decision.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "trifold/error.hpp"

namespace trifold::tridiagonal {
namespace {

ContextOptions quiet(int threads = 2) {
    ContextOptions options;
    options.threads = threads;
    options.profile_path = "none";
    return options;
}

/// Addresses only: a plan reads no values.
struct Shape {
    std::vector<double> room = std::vector<double>(64);
    System single(std::int64_t rows, DType dtype = DType::f64) {
        System out;
        out.dtype = dtype;
        out.rows = rows;
        for (Operand* operand : {&out.lower, &out.diag, &out.upper, &out.rhs, &out.x}) {
            operand->kind = Operand::Kind::view;
            operand->data = room.data();
            operand->row_stride = 1;
        }
        return out;
    }
    System batch(std::int64_t systems, std::int64_t rows, bool interleaved = false, DType dtype = DType::f64) {
        System out = single(rows, dtype);
        out.levels = 1;
        out.extent[0] = systems;
        out.number_stride[0] = 1;
        for (Operand* operand : {&out.lower, &out.diag, &out.upper, &out.rhs, &out.x}) {
            operand->row_stride = interleaved ? systems : 1;
            operand->level_stride[0] = interleaved ? 1 : rows;
        }
        return out;
    }
};

/// A device that takes what the test says.
struct Fake {
    static inline const char* refusal[algorithm_count];
    static const char* refuses(const System&, Algorithm algorithm) { return refusal[static_cast<int>(algorithm)]; }
    Ops ops;
    Fake() {
        std::fill(std::begin(refusal), std::end(refusal), nullptr);
        ops.device = "fake";
        ops.refuses = refuses;
        // Present, never called: a plan computes nothing.
        ops.reduce = [](const System&, const Partition&, const Launch&, InterfaceRow*, std::int64_t*) { FAIL(); };
        ops.finish = [](const System&, const Partition&, const Launch&, const double*, double, ChunkResidual*) { FAIL(); };
    }
    void refuse(Algorithm algorithm, const char* why) { refusal[static_cast<int>(algorithm)] = why; }
};

const Ops& ops_of_cpu() {
    return *static_cast<const Ops*>(find_cell(device_at(find_device("cpu")), "tridiagonal").ops);
}

TEST(Features, OfSinglesAndBatches) {
    Shape shape;
    const Features one = features_of(shape.single(1000));
    EXPECT_EQ(one.bytes, 40000);
    EXPECT_EQ(one.output_bytes, 8000);
    EXPECT_EQ(one.footprint, 40000U);
    EXPECT_FALSE(one.batch);
    System in_place = shape.single(1000, DType::f32);
    in_place.in_place = true;
    EXPECT_EQ(features_of(in_place).bytes, 20000);
    EXPECT_EQ(features_of(in_place).footprint, 16000U);
    const Features many = features_of(shape.batch(10, 100, true));
    EXPECT_TRUE(many.batch);
    EXPECT_FALSE(many.contiguous);
    EXPECT_EQ(many.rows, 1000);
    const Features line = one_line(many);
    EXPECT_EQ(line.rows, 100);
    EXPECT_EQ(line.bytes, 4000);
    EXPECT_FALSE(line.batch);
    System ragged = shape.single(60);
    const std::int64_t offsets[] = {0, 60, 60, 100};
    ragged.offsets = offsets, ragged.ragged_systems = 3;
    EXPECT_EQ(features_of(ragged).rows, 100);
    EXPECT_TRUE(features_of(ragged).batch);
}

TEST(Cost, GrowsWithRowsAndNeverVanishes) {
    Shape shape;
    Fake fake;
    const devices::Profile profile = devices::default_profile();
    for (const Algorithm algorithm : {Algorithm::certified, Algorithm::two_pass, Algorithm::lu, Algorithm::thomas})
        for (const int threads : {1, 2, 64}) {
            double last = 0;
            for (std::int64_t rows = 1; rows <= 1'000'000'000; rows *= 10) {
                const Prediction p = predict(features_of(shape.single(rows)), fake.ops, algorithm, profile, threads);
                EXPECT_GT(p.seconds, last);
                EXPECT_GE(p.threads, 1);
                EXPECT_LE(p.threads, threads);
                last = p.seconds;
            }
        }
}

TEST(Cost, FewRowsOneThread) {
    Shape shape;
    Fake fake;
    devices::Profile profile = devices::default_profile();
    profile.timings["fake.two_pass.f64"] = {{1, 1e3, 2e-6}, {1, 1e9, 2}, {8, 1e5, 6e-5}, {8, 1e9, 0.4}};
    EXPECT_EQ(predict(features_of(shape.single(2000)), fake.ops, Algorithm::two_pass, profile, 8).threads, 1);
    EXPECT_EQ(predict(features_of(shape.single(100'000'000)), fake.ops, Algorithm::two_pass, profile, 8).threads, 8);
    EXPECT_EQ(predict(features_of(shape.single(100'000'000)), fake.ops, Algorithm::lu, profile, 8).threads, 1) << "sequential";
    EXPECT_EQ(predict(features_of(shape.batch(4, 1'000'000)), fake.ops, Algorithm::automatic, profile, 8).threads, 1)
        << "four systems fill one vector";
}

TEST(Cost, BatchesFillVectors) {
    Shape shape;
    Fake fake;
    const devices::Profile profile = devices::default_profile();
    auto seconds = [&](std::int64_t systems) {
        return predict(features_of(shape.batch(systems, 100)), fake.ops, Algorithm::automatic, profile, 1).seconds;
    };
    EXPECT_GT(seconds(5), seconds(8)) << "a vector that is not full goes a slower way";
    EXPECT_GT(seconds(13), seconds(16));
    EXPECT_LT(seconds(101), 1.2 * seconds(104)) << "which does not matter among many";
    EXPECT_GT(seconds(16), 1.3 * seconds(8));
}

TEST(Cost, MemoryOrArithmeticWhicheverIsSlowerUntilItIsMeasured) {
    Shape shape;
    Fake fake;
    devices::Profile profile;
    profile.bandwidth = {{std::size_t{1} << 20, 1, devices::Store::past_cache, 1e9}};
    const Features f = features_of(shape.single(1'000'000));
    auto seconds = [&](Algorithm algorithm) { return predict(f, fake.ops, algorithm, profile, 1).seconds; };
    EXPECT_NEAR(seconds(Algorithm::certified), 40e6 / 1e9, 0.05 * 40e6 / 1e9);
    EXPECT_NEAR(seconds(Algorithm::two_pass), 72e6 / 1e9, 0.05 * 72e6 / 1e9) << "9 words";
    profile.bandwidth[0].bytes_per_s = 1e15;
    EXPECT_NEAR(seconds(Algorithm::two_pass), 1e6 / 2e8, 1e-4);
    profile.timings["fake.two_pass.f64"] = {{1, 1e6, 0.5}};
    EXPECT_NEAR(seconds(Algorithm::two_pass), 0.5, 1e-4) << "what was measured counts";
    EXPECT_LT(seconds(Algorithm::certified), 0.01) << "of another algorithm nothing was";
}

TEST(Cost, TimeOfABatchByTheLengthOfItsSystems) {
    Shape shape;
    Fake fake;
    devices::Profile profile;
    profile.bandwidth = {{std::size_t{1} << 20, 1, devices::Store::past_cache, 1e15}};
    auto measured = [&](std::int64_t length, double seconds_per_row) {
        profile.timings[timing_key(fake.ops, Algorithm::automatic, DType::f64, true, length).text] = {{1, 1e6, 1e6 * seconds_per_row}};
    };
    measured(32, 1e-9), measured(128, 2e-9), measured(1000, 8e-9);
    constexpr double call = 1e-6;
    auto per_row = [&](std::int64_t systems, std::int64_t rows) {
        const Features f = features_of(shape.batch(systems, rows));
        return (predict(f, fake.ops, Algorithm::automatic, profile, 1).seconds - call) / f.rows;
    };
    EXPECT_NEAR(per_row(80000, 16), 1e-9, 1e-15);
    EXPECT_NEAR(per_row(80000, 32), 1e-9, 1e-15);
    EXPECT_NEAR(per_row(80000, 64), std::sqrt(2.0) * 1e-9, 1e-15) << "half way on the logarithm";
    EXPECT_NEAR(per_row(8000, 128), 2e-9, 1e-15);
    EXPECT_NEAR(per_row(800, 1000), 8e-9, 1e-15);
    EXPECT_NEAR(per_row(8, 1'000'000), 8e-9, 1e-15) << "longer than any";
    EXPECT_GT(per_row(4, 1000), 1.5 * per_row(8, 1000)) << "half a vector";
    EXPECT_GT(predict(features_of(shape.batch(8, 100, true)), fake.ops, Algorithm::automatic, profile, 1).seconds, 0) << "not measured";
}

TEST(Cost, FewerWordsAreFasterButNotThanInCache) {
    Shape shape;
    Fake fake;
    devices::Profile profile;
    profile.bandwidth = {{std::size_t{1} << 20, 1, devices::Store::past_cache, 40e9}};
    profile.timings["fake.two_pass.f64"] = {{1, 1e4, 4e-6}, {1, 1e6, 1e-3}};
    System system = shape.single(1'000'000);
    const double five = predict(features_of(system), fake.ops, Algorithm::two_pass, profile, 1).seconds;
    EXPECT_NEAR(five, 1e-3, 2e-6);
    system.lower.kind = Operand::Kind::scalar;
    const double four = predict(features_of(system), fake.ops, Algorithm::two_pass, profile, 1).seconds;
    EXPECT_NEAR(four, 0.8e-3, 2e-6);
    system.diag.kind = system.upper.kind = Operand::Kind::scalar;
    EXPECT_NEAR(predict(features_of(system), fake.ops, Algorithm::two_pass, profile, 1).seconds, 0.4e-3, 2e-6) << "1e4 rows took 0.4 ns each";
}

TEST(Cost, NothingIsFasterThanMemory) {
    Shape shape;
    Fake fake;
    devices::Profile profile;
    profile.bandwidth = {{std::size_t{1} << 20, 1, devices::Store::past_cache, 40e9}};
    profile.timings["fake.two_pass.f64"] = {{1, 1e4, 4e-6}};
    EXPECT_NEAR(predict(features_of(shape.single(10'000)), fake.ops, Algorithm::two_pass, profile, 1).seconds, 5e-6, 1e-7);
    EXPECT_NEAR(predict(features_of(shape.single(10'000'000)), fake.ops, Algorithm::two_pass, profile, 1).seconds, 1e-2, 1e-5);
}

TEST(Cost, WhatCameByIsNotInCache) {
    Shape shape;
    Fake fake;
    devices::Profile profile;
    profile.timings["fake.two_pass.f64"] = {{1, 1e4, 4e-6}, {1, 1e7, 1e-2}};
    const Features many = features_of(shape.batch(1000, 10'000));
    EXPECT_NEAR(predict(one_line(many), fake.ops, Algorithm::two_pass, profile, 1).seconds, 1e-2 / 1000 + 1e-6, 1e-7);
    EXPECT_NEAR(predict(features_of(shape.single(10'000)), fake.ops, Algorithm::two_pass, profile, 1).seconds, 5e-6, 1e-7);
}

TEST(Options, RefusedOnesCarryTheReason) {
    Shape shape;
    Fake fake;
    fake.ops.sweep = ops_of_cpu().sweep;
    fake.refuse(Algorithm::certified, "the moon is full");
    const devices::Profile profile = devices::default_profile();
    const System system = shape.single(1'000'000);
    const OptionList options = options_on(fake.ops, system, features_of(system), profile, 2);
    ASSERT_EQ(options.count, 3);
    EXPECT_STREQ(options.option[0].refused, "the moon is full");
    EXPECT_FALSE(options.option[1].refused);
    EXPECT_GT(options.option[1].prediction.seconds, 0);
    const System batch = shape.batch(3, 1'000'000);
    const OptionList of_batch = options_on(fake.ops, batch, features_of(batch), profile, 2);
    ASSERT_EQ(of_batch.count, 4);
    EXPECT_EQ(of_batch.option[0].algorithm, Algorithm::automatic);
    EXPECT_FALSE(of_batch.option[0].one_by_one);
    EXPECT_TRUE(of_batch.option[2].one_by_one);
}

class Decide : public testing::TestWithParam<std::string> {};

TEST_P(Decide, EveryShapeHasAWayThatPivots) {
    Context context(quiet());
    Queue queue(context, GetParam());
    Shape shape;
    const std::int64_t offsets[] = {0, 5000, 5000, 60000};
    for (const DType dtype : {DType::f64, DType::f32}) {
        System ragged = shape.single(55000, dtype), periodic = shape.single(100000, dtype), accumulate = shape.single(100000, dtype);
        ragged.offsets = offsets, ragged.ragged_systems = 3;
        periodic.periodic = true;
        accumulate.accumulate = true;
        for (const System& system : {shape.single(1, dtype), shape.single(300, dtype), shape.single(100'000'000, dtype),
                                     shape.batch(100000, 3, false, dtype), shape.batch(2, 10'000'000, false, dtype),
                                     shape.batch(512 * 512, 512, true, dtype), ragged, periodic, accumulate}) {
            const Decision decision = decide(queue, system, Algorithm::automatic);
            ASSERT_GE(decision.branches, 1);
            ASSERT_TRUE(decision.ops);
            EXPECT_GT(decision.predicted_s, 0);
            EXPECT_GE(decision.threads, 1);
            EXPECT_LE(decision.threads, 2);
            EXPECT_STRNE(decision.why, "");
            const Algorithm last = decision.branch[decision.branches - 1];
            EXPECT_TRUE(last == Algorithm::lu || last == Algorithm::automatic || last == Algorithm::two_pass);
            const System line = decision.one_by_one ? typical_line(system) : system;
            for (int k = 0; k < decision.branches; ++k) EXPECT_FALSE(branch_refuses(*decision.ops, line, decision.branch[k]));
            const Plan plan = explain(queue, system, Algorithm::automatic);
            EXPECT_EQ(plan.predicted_s, decision.predicted_s);
            EXPECT_EQ(std::count_if(plan.candidates.begin(), plan.candidates.end(), [](const Candidate& c) { return c.taken; }), 1);
            for (const Candidate& candidate : plan.candidates) {
                EXPECT_FALSE(candidate.why.empty());
                EXPECT_EQ(std::isnan(candidate.predicted_s), candidate.why.starts_with("refused"));
            }
        }
    }
}

TEST(DecideOnCpu, ABoundIsWorthATenth) {
    Context context(quiet());
    Queue queue(context, "cpu");
    Shape shape;
    const System system = shape.single(10'000'000);
    devices::Profile profile = devices::default_profile();
    profile.date = "2025-01-31";
    for (const auto& [seconds, first] : {std::pair{0.0104, Algorithm::certified}, {0.0125, Algorithm::two_pass}}) {
        profile.timings["cpu.certified.f64"] = {{1, 1e7, seconds}};
        profile.timings["cpu.two_pass.f64"] = {{1, 1e7, 0.01}};
        profile.timings["cpu.lu.f64"] = {{1, 1e7, 0.1}};
        context.state().adopt_profile(profile);
        EXPECT_EQ(decide(queue, system, Algorithm::automatic).branch[0], first) << seconds;
    }
}

TEST(Cost, InPlaceAsItWasTimedInPlace) {
    Shape shape;
    devices::Profile profile = devices::default_profile();
    profile.timings["cpu.two_pass.f64"] = {{1, 1e5, 1e-4}, {1, 1e7, 0.01}};
    profile.timings["cpu.two_pass.f64.in_place"] = {{1, 1e6, 0.003}, {1, 1e7, 0.03}};
    const Ops& ops = *static_cast<const Ops*>(find_cell(device_at(find_device("cpu")), "tridiagonal").ops);
    System system = shape.single(10'000'000);
    const auto seconds = [&] { return predict(features_of(system), ops, Algorithm::two_pass, profile, 1).seconds; };
    EXPECT_NEAR(seconds(), 0.01, 1e-4);
    system.in_place = true;
    EXPECT_NEAR(seconds(), 0.03, 3e-4);
    // Fewer rows than were timed: as beside each other, and no slower for the word less.
    system = shape.single(100'000);
    const double beside = seconds();
    system.in_place = true;
    EXPECT_LE(seconds(), beside * 1.01);
}

TEST_P(Decide, AskedForByName) {
    Context context(quiet());
    Queue queue(context, GetParam());
    Shape shape;
    const System system = shape.single(100000);
    for (int k = 1; k < algorithm_count; ++k) {
        const auto algorithm = static_cast<Algorithm>(k);
        try {
            const Decision decision = decide(queue, system, algorithm);
            EXPECT_EQ(decision.branches, 1);
            EXPECT_EQ(decision.branch[0], algorithm);
            EXPECT_FALSE(branch_refuses(*decision.ops, system, algorithm));
            EXPECT_EQ(decision.delegated_because == nullptr, decision.ops == &ops_of(queue));
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::usage);
            EXPECT_NE(std::string(error.what()).find(name_of(algorithm)), std::string::npos);
        }
    }
}

TEST_P(Decide, WorkspaceCoversEveryChain) {
    Context context(quiet());
    Queue queue(context, GetParam());
    Shape shape;
    System in_place = shape.single(3'000'000);
    in_place.rhs = in_place.x, in_place.in_place = true;
    for (const System& system : {shape.single(3000), shape.single(3'000'000), in_place, shape.batch(3, 100000), shape.batch(5000, 100, true)}) {
        const std::size_t bound = workspace_bound(queue, system, Algorithm::automatic);
        devices::Profile profile = devices::default_profile();
        // Whatever a profile says, the chain that follows from it fits.
        for (const double pace : {1e3, 1e12}) {
            for (const char* name : {"certified", "two_pass", "lu"})
                profile.timings[std::string(ops_of(queue).device) + "." + name + ".f64"] = {{1, 1e6, 1e6 / pace}};
            profile.date = "2025-01-31";
            context.state().adopt_profile(profile);
            const Decision decision = decide(queue, system, Algorithm::automatic);
            const System line = decision.one_by_one ? typical_line(system) : system;
            for (int k = 0; k < decision.branches; ++k)
                EXPECT_LE(branch_workspace(*decision.ops, line, decision.branch[k], decision.threads), bound);
        }
    }
}

std::vector<std::string> device_names() {
    std::vector<std::string> names;
    for (const Device* device : registered_devices())
        if (!why_unavailable(*device)) names.push_back(device->name);
    return names;
}
INSTANTIATE_TEST_SUITE_P(Devices, Decide, testing::ValuesIn(device_names()), [](const auto& each) {
    std::string name = each.param;
    std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    return name;
});

TEST(Calibrate, FillsTimingsAndIsAdopted) {
    Context context(quiet());
    Queue queue(context);
    devices::Profile profile = devices::default_profile();
    calibrate(ops_of(queue), context.state().scratch, 2, std::size_t{1} << 22, 1, profile);
    ASSERT_FALSE(profile.timings.empty());
    for (const auto& [key, timings] : profile.timings) {
        EXPECT_TRUE(key.starts_with("cpu.")) << key;
        ASSERT_FALSE(timings.empty()) << key;
        for (const devices::Timing& t : timings) {
            EXPECT_TRUE(t.threads == 1 || t.threads == 2) << key;
            EXPECT_GT(t.rows / t.seconds, 1e5) << key;
            EXPECT_LT(t.rows / t.seconds, 1e12) << key;
            EXPECT_LE(t.rows * 5 * (key.find("f32") == std::string::npos ? 8 : 4), 1 << 22) << key;
        }
    }
    profile.date = "2025-01-31";
    context.state().adopt_profile(profile);
    EXPECT_EQ(&ensure_profile(context), &context.state().profile_at_hand()) << "not measured twice";
    Shape shape;
    EXPECT_EQ(explain(queue, shape.single(100000), Algorithm::automatic).profile, "profile 2025-01-31");
}

}  // namespace
}  // namespace trifold::tridiagonal
