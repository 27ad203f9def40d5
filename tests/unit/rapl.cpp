// SPDX-License-Identifier: BSD-3-Clause
#include "devices/rapl.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace trifold::devices {
namespace {

class Counters : public testing::Test {
protected:
    Counters() : root(std::filesystem::temp_directory_path() / ("trifold-rapl-" + std::to_string(getpid()))) {}
    ~Counters() override { std::filesystem::remove_all(root); }
    void zone(const std::string& folder, const std::string& name, long long microjoules, long long range = 1000000000) {
        std::filesystem::create_directories(root / folder);
        std::ofstream(root / folder / "name") << name << "\n";
        std::ofstream(root / folder / "max_energy_range_uj") << range << "\n";
        std::ofstream(root / folder / "energy_uj") << microjoules << "\n";
    }
    std::filesystem::path root;
};

TEST_F(Counters, PackagesAndMemoryAreSummedPartsOfThemAreNot) {
    zone("intel-rapl:0", "package-0", 1000000);
    zone("intel-rapl:0:0", "core", 500000);
    zone("intel-rapl:0:1", "dram", 0);
    zone("intel-rapl:1", "psys", 9000000);
    Rapl rapl(root);
    EXPECT_EQ(rapl.why_not(), "");
    EXPECT_EQ(rapl.joules(), 0);
    zone("intel-rapl:0", "package-0", 3000000);
    zone("intel-rapl:0:0", "core", 1500000);
    zone("intel-rapl:0:1", "dram", 250000);
    zone("intel-rapl:1", "psys", 99000000);
    EXPECT_EQ(rapl.joules(), 2.25);
}

TEST_F(Counters, ACounterThatWrapsGoesOn) {
    zone("intel-rapl:0", "package-0", 90000000, 100000000);
    Rapl rapl(root);
    zone("intel-rapl:0", "package-0", 5000000, 100000000);
    EXPECT_EQ(rapl.joules(), 15);
    zone("intel-rapl:0", "package-0", 6000000, 100000000);
    EXPECT_EQ(rapl.joules(), 16);
}

TEST_F(Counters, NoneIsSaidAndACounterThatVanishesGivesNoNumber) {
    Rapl none(root);
    EXPECT_NE(none.why_not().find("no energy counters"), std::string::npos) << none.why_not();
    EXPECT_TRUE(std::isnan(none.joules()));
    zone("intel-rapl:0", "package-0", 1);
    Rapl rapl(root);
    std::filesystem::remove(root / "intel-rapl:0/energy_uj");
    EXPECT_TRUE(std::isnan(rapl.joules()));
}

TEST_F(Counters, OneThatMayNotBeReadIsNotLeftOut) {
    zone("intel-rapl:0", "package-0", 1);
    zone("intel-rapl:1", "package-1", 1);
    std::ofstream(root / "intel-rapl:1/energy_uj") << "";
    Rapl rapl(root);
    EXPECT_NE(rapl.why_not().find("root only"), std::string::npos) << rapl.why_not();
    EXPECT_TRUE(std::isnan(rapl.joules()));
}

}  // namespace
}  // namespace trifold::devices
