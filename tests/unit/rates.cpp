// SPDX-License-Identifier: BSD-3-Clause
// What was learnt of devices, as it is kept between processes.
#include "devices/rates.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace trifold::tests {
namespace {

using devices::Rates;

struct KeptRates : testing::Test {
    const std::string file = testing::TempDir() + "/trifold-rates-" + testing::UnitTest::GetInstance()->current_test_info()->name() + "/rates.json";
    KeptRates() { std::filesystem::remove_all(std::filesystem::path(file).parent_path()); }
    ~KeptRates() override { std::filesystem::remove_all(std::filesystem::path(file).parent_path()); }

    void save(Rates& rates) const {
        std::string why;
        ASSERT_TRUE(rates.save(file, "here", why)) << why;
    }
    std::string text() const {
        std::ifstream stream(file);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    void write(const std::string& what) const { std::ofstream(file, std::ios::trunc) << what; }
};

TEST_F(KeptRates, ComeBack) {
    Rates first;
    EXPECT_EQ(first.load(file, "here"), "");
    EXPECT_FALSE(first.changed());
    first.set("pace cpu of cpu,cuda:0 f32 13", 5e9);
    EXPECT_TRUE(first.changed());
    save(first);
    EXPECT_FALSE(first.changed());
    EXPECT_NE(text().find("\"date\""), std::string::npos);
    Rates second;
    EXPECT_EQ(second.load(file, "here"), "");
    EXPECT_EQ(second.of("pace cpu of cpu,cuda:0 f32 13"), 5e9);
    EXPECT_FALSE(second.changed());
}

// Whatever is in the file, it is read or ignored with a reason.
TEST_F(KeptRates, IgnoredWithAReason) {
    Rates good;
    good.set("a", 1);
    save(good);
    const std::string whole = text();
    const auto reason = [&](const std::string& what) {
        write(what);
        Rates rates;
        const std::string why = rates.load(file, "here");
        EXPECT_EQ(rates.of("a"), why.empty() ? 1 : 0);
        return why;
    };
    EXPECT_EQ(reason(whole), "");
    for (std::size_t length = 0; length + 2 < whole.size(); length += 7) EXPECT_NE(reason(whole.substr(0, length)).find("corrupt"), std::string::npos) << length;
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = whole;
        changed.replace(changed.find(from), from.size(), to);
        return changed;
    };
    EXPECT_NE(reason(with("1.0", "-1.0")).find("no number that can be"), std::string::npos);
    EXPECT_NE(reason(with("1.0", "1e999")).find("corrupt"), std::string::npos);
    EXPECT_NE(reason(with("1.0", "\"fast\"")).find("corrupt"), std::string::npos);
    EXPECT_NE(reason(with("\"here\"", "\"there\"")).find("another machine"), std::string::npos);
    EXPECT_NE(reason(with("trifold.rates/2", "trifold.rates/1")).find("another schema"), std::string::npos);
    EXPECT_NE(reason(with("\"version\": \"", "\"version\": \"9")).find("version"), std::string::npos);
    EXPECT_NE(reason(std::string(5 << 20, ' ')).find("too large"), std::string::npos);
}

// Another process has learnt other things meanwhile: both are kept, and what was changed here counts.
TEST_F(KeptRates, TwoProcesses) {
    Rates first, second;
    first.set("a", 1), first.set("b", 2);
    save(first);
    EXPECT_EQ(second.load(file, "here"), "");
    second.set("b", 3), second.set("c", 4);
    save(second);
    first.set("a", 5);
    save(first);
    Rates third;
    EXPECT_EQ(third.load(file, "here"), "");
    EXPECT_EQ(third.of("a"), 5);
    EXPECT_EQ(third.of("b"), 3);
    EXPECT_EQ(third.of("c"), 4);

    // At the same time: a whole file at any moment.
    std::vector<std::thread> writers;
    for (int w = 0; w < 4; ++w)
        writers.emplace_back([&, w] {
            Rates own;
            for (int k = 0; k < 50; ++k) {
                EXPECT_EQ(own.load(file, "here"), "");
                own.set("of " + std::to_string(w), k + 1);
                std::string why;
                EXPECT_TRUE(own.save(file, "here", why)) << why;
            }
        });
    for (std::thread& one : writers) one.join();
    Rates last;
    EXPECT_EQ(last.load(file, "here"), "");
    EXPECT_EQ(last.of("c"), 4);
}

// A new board, or a new driver, under an old name.
TEST_F(KeptRates, AnotherBoardUnderTheName) {
    Rates first;
    EXPECT_EQ(first.identify("cuda:0", "H200, driver 13.0"), "");
    EXPECT_EQ(first.identify("cuda:1", "H200, driver 13.0"), "");
    first.set("pace cuda:0 of cpu,cuda:0 f32 13", 1), first.set("took cuda:1 f32 13 #0", 2), first.set("took cpu f32 13 #0", 3), first.set("share cpu of cpu,cuda:0,cuda:1 f32 13", 4);
    save(first);
    Rates second;
    EXPECT_EQ(second.load(file, "here"), "");
    EXPECT_EQ(second.identify("cuda:1", "H200, driver 13.0"), "");
    EXPECT_EQ(second.identify("cuda:0", "H200, driver 13.1"), "H200, driver 13.0");
    EXPECT_EQ(second.of("pace cuda:0 of cpu,cuda:0 f32 13"), 0);
    EXPECT_EQ(second.of("share cpu of cpu,cuda:0,cuda:1 f32 13"), 0);
    EXPECT_EQ(second.of("took cuda:1 f32 13 #0"), 2);
    EXPECT_EQ(second.of("took cpu f32 13 #0"), 3);
    second.set("took cpu f32 13 #1", 5);
    save(second);
    Rates third;
    EXPECT_EQ(third.load(file, "here"), "");
    EXPECT_EQ(third.of("pace cuda:0 of cpu,cuda:0 f32 13"), 0);
    EXPECT_EQ(third.of("took cpu f32 13 #0"), 3);
    EXPECT_EQ(third.identify("cuda:0", "H200, driver 13.1"), "");
}

// The memory that PoCL shows depends on what is free.
TEST(Rates, IdentityIsNotTheHostsMemory) {
    const std::string before = "pthread-EPYC, cpu, 1 compute unit, 5.6 GiB shared with the host, no FP64, PoCL (driver 3.1)", after = "pthread-EPYC, cpu, 1 compute unit, 6.1 GiB shared with the host, no FP64, PoCL (driver 3.1)";
    EXPECT_EQ(devices::identity_of(before), devices::identity_of(after));
    EXPECT_EQ(devices::identity_of(before), "pthread-EPYC, cpu, 1 compute unit, no FP64, PoCL (driver 3.1)");
    EXPECT_EQ(devices::identity_of("NVIDIA H200, 139.8 GiB, CUDA driver 13.0"), "NVIDIA H200, 139.8 GiB, CUDA driver 13.0");
}

}  // namespace
}  // namespace trifold::tests
