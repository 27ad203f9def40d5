// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "devices/context_state.hpp"
#include "devices/profile.hpp"
#include "devices/profile_file.hpp"
#include "devices/roof.hpp"

namespace trifold::devices {
namespace {

namespace fs = std::filesystem;

TEST(Stream, CopiesBitForBitAtAnyOffset) {
    constexpr std::size_t room = 3000;
    alignas(64) static unsigned char data[5][room];
    for (const Store store : {Store::regular, Store::past_cache, Store::in_place, Store::none})
        for (int reads = 1; reads <= 4; ++reads)
            for (const std::size_t offset : {0U, 8U, 40U, 64U})
                for (const std::size_t bytes : {0U, 8U, 200U, 1000U, 2560U})
                    for (const StreamShape shape : {StreamShape{}, StreamShape{512}, StreamShape{1024, StreamShape::Into::second}, StreamShape{1024, StreamShape::Into::once}}) {
                        for (int a = 0; a < 5; ++a)
                            for (std::size_t i = 0; i < room; ++i) data[a][i] = static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(a) * 31);
                        unsigned char before[room];
                        std::memcpy(before, data[reads - 1], room);
                        unsigned char untouched[room];
                        std::memcpy(untouched, data[4], room);
                        StreamArrays arrays;
                        arrays.reads = reads;
                        for (int r = 0; r < reads; ++r) arrays.read[r] = data[r] + offset;
                        arrays.write = store == Store::none ? nullptr : store == Store::in_place ? data[reads - 1] + offset : data[4] + offset;
                        stream_pass(arrays, store, shape, 0, bytes);
                        ASSERT_EQ(std::memcmp(data[reads - 1], before, room), 0) << "inputs keep their bits";
                        if (store == Store::regular || store == Store::past_cache) {
                            ASSERT_EQ(std::memcmp(data[4] + offset, before + offset, bytes), 0);
                            ASSERT_EQ(std::memcmp(data[4] + offset + bytes, untouched + offset + bytes, room - offset - bytes), 0);
                            ASSERT_EQ(std::memcmp(data[4], untouched, offset), 0);
                        } else {
                            ASSERT_EQ(std::memcmp(data[4], untouched, room), 0);
                        }
                    }
}

TEST(Roof, CountsWhatItMoves) {
    for (const Store store : {Store::past_cache, Store::in_place, Store::none}) {
        RoofProbe probe({4, store}, std::size_t{1} << 20, 2);
        const RoofMeasurement m = probe.measure(0.01);
        EXPECT_LE(m.footprint, std::size_t{1} << 20);
        EXPECT_GT(m.footprint, std::size_t{1} << 19);
        EXPECT_GT(m.bytes_per_s, 1e6) << "a busy machine takes its time";
        EXPECT_LT(m.bytes_per_s, 1e13);
        EXPECT_GE(m.samples, 3);
        EXPECT_NEAR(probe.bytes_per_pass() / static_cast<double>(m.footprint), store == Store::in_place ? 1.25 : 1.0, 1e-9);
    }
}

TEST(Roof, OnTheCallersArrays) {
    std::vector<double> lower(5000), diag(5000), upper(5000), rhs(5000), x(5000);
    for (std::size_t i = 0; i < rhs.size(); ++i) rhs[i] = i % 3 ? 0.1 * static_cast<double>(i) : std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> before = rhs;
    StreamArrays arrays;
    int r = 0;
    for (auto* a : {&lower, &diag, &upper, &rhs}) arrays.read[r++] = reinterpret_cast<const unsigned char*>(a->data());
    arrays.reads = 4;
    arrays.write = reinterpret_cast<unsigned char*>(rhs.data());
    RoofProbe in_place(arrays, rhs.size() * 8, Store::in_place, 2);
    EXPECT_GT(in_place.measure(0.002).bytes_per_s, 0);
    EXPECT_EQ(std::memcmp(rhs.data(), before.data(), rhs.size() * 8), 0) << "not even the bits of a NaN change";
    arrays.write = reinterpret_cast<unsigned char*>(x.data());
    RoofProbe apart(arrays, rhs.size() * 8, Store::past_cache, 2);
    EXPECT_GT(apart.measure(0.002).bytes_per_s, 0);
    EXPECT_EQ(std::memcmp(x.data(), before.data(), x.size() * 8), 0);
}

Profile sample() {
    Profile p;
    p.date = "2025-01-31";
    p.machine = "test machine";
    p.bandwidth = {{1 << 20, 1, Store::past_cache, 100e9}, {1 << 28, 1, Store::past_cache, 20e9},
                   {1 << 20, 4, Store::past_cache, 400e9}, {1 << 28, 4, Store::past_cache, 50e9}};
    p.timings["cpu.two_pass.f64"] = {{1, 1e4, 1e-5}, {1, 1e6, 4e-3}, {4, 1e6, 1e-3}};
    return p;
}

TEST(Profile, Interpolates) {
    const Profile p = sample();
    EXPECT_DOUBLE_EQ(p.bandwidth_at(1 << 20, 1, Store::past_cache), 100e9);
    EXPECT_DOUBLE_EQ(p.bandwidth_at(1 << 10, 1, Store::past_cache), 100e9) << "below the smallest footprint";
    EXPECT_DOUBLE_EQ(p.bandwidth_at(std::size_t{1} << 36, 4, Store::past_cache), 50e9);
    EXPECT_NEAR(p.bandwidth_at(1 << 24, 1, Store::past_cache), 1 / (0.5 / 100e9 + 0.5 / 20e9), 1e3) << "half way on the logarithm";
    EXPECT_NEAR(p.bandwidth_at(1 << 28, 2, Store::past_cache), 30e9, 1e3);
    EXPECT_DOUBLE_EQ(p.bandwidth_at(1 << 28, 64, Store::past_cache), 50e9) << "no more than was seen";
    EXPECT_GT(p.bandwidth_at(1 << 28, 1, Store::in_place), 0) << "another store where this one was not measured";
    EXPECT_GT(Profile().bandwidth_at(0, 1, Store::none), 0);
    double last = 1e300;
    for (int shift = 10; shift < 40; ++shift) {
        const double now = p.bandwidth_at(std::size_t{1} << shift, 3, Store::past_cache);
        EXPECT_LE(now, last * (1 + 1e-12));
        last = now;
    }
}

TEST(Profile, TimesBetweenWhatWasMeasured) {
    const Profile p = sample();
    EXPECT_EQ(p.timings_of("cpu.two_pass.f32"), nullptr);
    ASSERT_NE(p.timings_of("cpu.two_pass.f64"), nullptr);
    const std::vector<Timing>& known = *p.timings_of("cpu.two_pass.f64");
    EXPECT_DOUBLE_EQ(seconds_for(known, 1e4, 1), 1e-5);
    EXPECT_DOUBLE_EQ(seconds_for(known, 1e6, 1), 4e-3);
    EXPECT_NEAR(seconds_for(known, 1e5, 1), 2e-4, 1e-10) << "a power law between neighbours";
    EXPECT_NEAR(seconds_for(known, 1e8, 1), 0.4, 1e-9) << "in proportion beyond the most";
    EXPECT_NEAR(seconds_for(known, 1e6, 2), 2e-3, 1e-9) << "half way from 1 to 4 threads";
    EXPECT_DOUBLE_EQ(seconds_for(known, 1e6, 64), 1e-3) << "no more threads than were seen";
    EXPECT_DOUBLE_EQ(least_per_row(known, 1), 1e-9);
    EXPECT_DOUBLE_EQ(least_per_row(known, 3), 1e-9) << "those of one thread";
    EXPECT_DOUBLE_EQ(least_per_row(known, 4), 1e-9);
    double last = 0;
    for (double rows = 1; rows < 1e10; rows *= 3) {
        EXPECT_GE(seconds_for(known, rows, 1), last);
        EXPECT_GT(seconds_for(known, rows, 1), 0);
        last = seconds_for(known, rows, 1);
    }
}

TEST(Profile, MeasuredPointsCoverCachesAndMemory) {
    Topology small = read_topology();
    small.l2 = 1 << 18, small.l3 = 1 << 20, small.l3_instances = 1;  // a small last level keeps the test short
    std::vector<Bandwidth> points;
    for (double budget_s = 1; budget_s <= 64 && points.size() < 3; budget_s *= 4) points = measure_bandwidth(small, 2, budget_s);  // a busy machine measures fewer
    ASSERT_GE(points.size(), 3U);
    for (const Bandwidth& p : points) {
        EXPECT_GT(p.bytes_per_s, 1e6);
        EXPECT_TRUE(p.threads == 1 || p.threads == 2);
    }
}

class ProfileFile : public testing::Test {
protected:
    ProfileFile() : folder(fs::temp_directory_path() / ("trifold-profile-" + std::to_string(getpid()))), file(folder / "sub/p.json") {
        fs::remove_all(folder);
    }
    ~ProfileFile() override { fs::remove_all(folder); }
    void write(const std::string& text) {
        fs::create_directories(folder / "sub");
        std::ofstream(file) << text;
    }
    std::string read() {
        std::ifstream stream(file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    fs::path folder, file;
    std::string why;
};

TEST_F(ProfileFile, RoundTrip) {
    EXPECT_FALSE(load_profile(file, "test machine", why));
    EXPECT_TRUE(why.empty()) << "no file is nothing to warn of";
    ASSERT_TRUE(save_profile(sample(), file, why)) << why;
    const auto back = load_profile(file, "test machine", why);
    ASSERT_TRUE(back) << why;
    EXPECT_EQ(back->date, sample().date);
    ASSERT_EQ(back->bandwidth.size(), 4U);
    EXPECT_EQ(back->bandwidth[3].bytes_per_s, 50e9);
    ASSERT_TRUE(back->timings_of("cpu.two_pass.f64"));
    ASSERT_EQ(back->timings_of("cpu.two_pass.f64")->size(), 3U);
    EXPECT_EQ(back->timings_of("cpu.two_pass.f64")->at(2).threads, 4);
    EXPECT_EQ(back->timings_of("cpu.two_pass.f64")->at(2).rows, 1e6);
    EXPECT_EQ(back->timings_of("cpu.two_pass.f64")->at(2).seconds, 1e-3);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "sub"), {}), 1) << "no temporary is left";
}

TEST_F(ProfileFile, RefusedWithAReason) {
    ASSERT_TRUE(save_profile(sample(), file, why));
    EXPECT_FALSE(load_profile(file, "another machine", why));
    EXPECT_NE(why.find("machine"), std::string::npos);
    const std::string good = read();
    auto replaced = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        text.replace(text.find(from), from.size(), to);
        return text;
    };
    const std::string bad[] = {"", "{", "[]", "null", "\xff\xfe", good.substr(0, good.size() / 2), replaced("0.1.0", "0.0.9"),
                               replaced("50000000000.0", "-1"), replaced("50000000000.0", "\"fast\""), replaced("50000000000.0", "1e999"), replaced("1000000.0", "-5"), replaced("0.004", "0"), replaced("\"threads\": 4,\n    \"rows\"", "\"threads\": 0.5,\n    \"rows\""),
                               replaced("non-temporal stores", "magic"), replaced("2025-01-31", ""), std::string(2 << 20, ' ')};
    for (const std::string& text : bad) {
        write(text);
        EXPECT_FALSE(load_profile(file, "test machine", why)) << text.substr(0, 200);
        EXPECT_FALSE(why.empty());
    }
}

TEST_F(ProfileFile, UnwritableFolderLeavesTheOldFile) {
    EXPECT_FALSE(save_profile(sample(), "/proc/nowhere/p.json", why));
    EXPECT_FALSE(why.empty());
    ASSERT_TRUE(save_profile(sample(), file, why));
    fs::create_directory(folder / "sub/directory.json");
    EXPECT_FALSE(save_profile(sample(), folder / "sub/directory.json", why));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "sub"), {}), 2) << "no temporary is left";
}

TEST_F(ProfileFile, ContextWarnsAndGoesOn) {
    ContextOptions options;
    options.profile_path = folder;
    std::string logged;
    options.log = [&](std::string_view line) { logged += line; };
    const std::string machine = fingerprint(read_topology());
    {
        Context::State state(options);
        Profile mine = sample();
        mine.machine = machine;
        const Profile& adopted = state.adopt_profile(mine);
        EXPECT_EQ(&state.profile(), &adopted);
    }
    Context::State again(options);
    EXPECT_FALSE(again.profile_at_hand().measured());
    EXPECT_EQ(again.profile().date, "2025-01-31");
    std::ofstream(profile_file(folder, machine)) << "garbage";
    logged.clear();
    Context::State third(options);
    EXPECT_FALSE(third.profile().measured());
    EXPECT_NE(logged.find("ignored: corrupt"), std::string::npos) << logged;
    options.profile_path = "none";
    logged.clear();
    Context::State off(options);
    EXPECT_FALSE(off.profile().measured());
    EXPECT_TRUE(logged.empty());
}

TEST_F(ProfileFile, OfADeviceUntilItIsAnotherOne) {
    ContextOptions options;
    options.profile_path = folder;
    std::string logged;
    options.log = [&](std::string_view line) { logged += line; };
    Profile mine;
    mine.date = "2025-02-03", mine.now = true;
    mine.bandwidth = {{std::size_t{5} << 29, 1, Store::past_cache, 3e12}, {std::size_t{4} << 29, 1, Store::in_place, 4e12}};
    {
        Context::State state(options);
        EXPECT_FALSE(state.device_profile("opencl:0.0", "board, driver 1"));
        EXPECT_EQ(logged, "") << "no file is nothing to warn of";
        state.keep_device_profile("opencl:0.0", "board, driver 1", mine);
        EXPECT_NE(logged.find("kept in"), std::string::npos) << logged;
    }
    logged.clear();
    Context::State again(options);
    const auto kept = again.device_profile("opencl:0.0", "board, driver 1");
    ASSERT_TRUE(kept) << logged;
    EXPECT_EQ(kept->source(), "profile 2025-02-03");
    ASSERT_EQ(kept->bandwidth.size(), 2U);
    EXPECT_EQ(kept->bandwidth[0].bytes_per_s, 3e12);
    EXPECT_EQ(kept->bandwidth[1].store, Store::in_place);
    EXPECT_FALSE(again.profile().measured()) << "the machine's is a file of its own";
    EXPECT_EQ(logged, "");

    // Of one device each.
    EXPECT_FALSE(again.device_profile("opencl:0.1", "board, driver 1"));
    EXPECT_EQ(logged, "");
    again.keep_device_profile("opencl:0.1", "board, driver 1", mine);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2) << "no temporary is left";
    logged.clear();
    for (const char* other : {"board, driver 2", "another board, driver 1", ""}) {
        EXPECT_FALSE(again.device_profile("opencl:0.0", other));
        EXPECT_NE(logged.find("'opencl:0.0'"), std::string::npos) << logged;
        EXPECT_NE(logged.find("ignored: measured on another board or driver (trifold devices --measure"), std::string::npos) << logged;
        logged.clear();
    }
    for (const auto& entry : fs::directory_iterator(folder)) std::ofstream(entry.path()) << "garbage";
    EXPECT_FALSE(again.device_profile("opencl:0.0", "board, driver 1"));
    EXPECT_NE(logged.find("ignored: corrupt"), std::string::npos) << logged;
    logged.clear();
    again.keep_device_profile("opencl:0.0", "board, driver 1", mine);
    EXPECT_TRUE(again.device_profile("opencl:0.0", "board, driver 1"));

    options.profile_path = "none";
    Context::State off(options);
    logged.clear();
    off.keep_device_profile("opencl:0.0", "board, driver 1", mine);
    EXPECT_FALSE(off.device_profile("opencl:0.0", "board, driver 1"));
    EXPECT_EQ(logged, "");
    options.profile_path = "/proc/nowhere";
    Context::State unwritable(options);
    unwritable.keep_device_profile("opencl:0.0", "board, driver 1", mine);
    EXPECT_NE(logged.find("cannot be written"), std::string::npos) << logged;
}

TEST(ProfileFolder, Rules) {
    const char* old = std::getenv("XDG_CACHE_HOME");
    const std::string kept = old ? old : "";
    EXPECT_EQ(profile_folder("none"), "");
    EXPECT_EQ(profile_folder("/there"), "/there");
    setenv("XDG_CACHE_HOME", "/cache", 1);
    EXPECT_EQ(profile_folder(""), "/cache/trifold");
    setenv("XDG_CACHE_HOME", "relative", 1);
    if (const char* home = std::getenv("HOME"); home && *home == '/') {
        EXPECT_EQ(profile_folder(""), std::string(home) + "/.cache/trifold");
    }
    if (old) setenv("XDG_CACHE_HOME", kept.c_str(), 1);
    else unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace trifold::devices
