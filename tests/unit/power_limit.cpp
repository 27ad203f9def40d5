// SPDX-License-Identifier: BSD-3-Clause
// The processors' power limit, from a tree as powercap has it; boards that NVML does not know.
#include "devices/power_limit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "devices/nvml.hpp"
#include "devices/rapl.hpp"

namespace trifold::devices {
namespace {

class Limits : public testing::Test {
protected:
    Limits() : root(std::filesystem::temp_directory_path() / ("trifold-limits-" + std::to_string(getpid()))) {}
    ~Limits() override { std::filesystem::remove_all(root); }
    void zone(const std::string& folder, const std::string& name) {
        std::filesystem::create_directories(root / folder);
        write(folder, "name", name);
    }
    void write(const std::string& folder, const std::string& file, const std::string& text) { std::ofstream(root / folder / file) << text << "\n"; }
    void constraint(const std::string& folder, int k, const std::string& name, const std::string& limit, const std::string& most = "") {
        const std::string prefix = "constraint_" + std::to_string(k);
        write(folder, prefix + "_name", name), write(folder, prefix + "_power_limit_uw", limit);
        if (!most.empty()) write(folder, prefix + "_max_power_uw", most);
    }
    double watts() const { return host_power_limit(root).watts; }
    std::filesystem::path root;
};

TEST_F(Limits, PackagesAreSummedByTheirLongTermLimits) {
    zone("intel-rapl:0", "package-0"), zone("intel-rapl:1", "package-1");
    constraint("intel-rapl:0", 0, "long_term", "225000000", "225000000");
    constraint("intel-rapl:0", 1, "short_term", "270000000", "0");
    constraint("intel-rapl:1", 0, "peak_power", "500000000"), constraint("intel-rapl:1", 1, "long_term", "125000000");
    // Neither parts, nor the whole platform, nor memory.
    for (const auto& [folder, name] : {std::pair{"intel-rapl:0:0", "core"}, {"intel-rapl:0:1", "dram"}, {"intel-rapl:2", "psys"}, {"intel-rapl-mmio:0", "package-0"}})
        zone(folder, name), constraint(folder, 0, "long_term", "90000000");
    const PowerLimit limit = host_power_limit(root);
    EXPECT_EQ(limit.watts, 350);
    EXPECT_EQ(limit.source, "power limit by powercap of package-0, package-1");
    EXPECT_TRUE(limit.host);
}

TEST_F(Limits, EnergyThatOnlyRootMayReadDoesNotMatter) {
    zone("intel-rapl:0", "package-0");
    constraint("intel-rapl:0", 0, "long_term", "65000000");
    std::filesystem::create_directory(root / "intel-rapl:0/energy_uj");  // root reads every file, and no folder
    EXPECT_NE(Rapl(root).why_not(), "");
    EXPECT_EQ(watts(), 65);
}

TEST_F(Limits, TheLessOfWhatIsSetAndWhatItIsBuiltFor) {
    zone("intel-rapl:0", "package-0");
    constraint("intel-rapl:0", 0, "long_term", "45000000", "65000000");
    EXPECT_EQ(watts(), 45);
    constraint("intel-rapl:0", 0, "long_term", "4095875000", "125000000");  // the board wants no limit
    EXPECT_EQ(watts(), 125);
    constraint("intel-rapl:0", 0, "long_term", "4095875000", "0");
    EXPECT_EQ(watts(), 0);
}

TEST_F(Limits, NoneWhereAPackageTellsNone) {
    EXPECT_EQ(watts(), 0) << "no folder";
    EXPECT_TRUE(host_power_limit(root).host);
    zone("intel-rapl:0", "package-0");
    EXPECT_EQ(watts(), 0) << "no constraint, as of AMD's";
    for (const char* text : {"", "0", "-15000000", "garbage", "nan", "inf", "1e999", "\xff\xfe"}) {
        constraint("intel-rapl:0", 0, "long_term", text);
        EXPECT_EQ(watts(), 0) << text;
    }
    constraint("intel-rapl:0", 0, "short_term", "80000000");
    EXPECT_EQ(watts(), 0) << "not for long";
    zone("intel-rapl:1", "package-1");
    constraint("intel-rapl:1", 0, "long_term", "225000000");
    EXPECT_EQ(watts(), 0) << "a part of the sum is not the whole";
    EXPECT_EQ(host_power_limit(root).source, "");
    constraint("intel-rapl:0", 0, "long_term", "225000000");
    EXPECT_EQ(watts(), 450);
}

TEST_F(Limits, TheRootIsTheEnvironments) {
    const char* const own = std::getenv("TRIFOLD_POWERCAP");
    const std::string before = own ? own : "";
    setenv("TRIFOLD_POWERCAP", "/elsewhere", 1);
    EXPECT_EQ(powercap_root(), "/elsewhere");
    setenv("TRIFOLD_POWERCAP", "", 1);
    EXPECT_EQ(powercap_root(), "/sys/class/powercap");
    if (own) setenv("TRIFOLD_POWERCAP", before.c_str(), 1);
    else unsetenv("TRIFOLD_POWERCAP");
}

TEST(Nvml, SaysWhyItTellsNothing) {
    for (auto* question : {nvml::joules, nvml::default_power_limit}) {
        Failure failure;
        double answer = -1;
        EXPECT_FALSE(question("ffff:ff:1f.7", &answer, failure));  // no board, on most machines no library
        EXPECT_NE(std::string(failure.message), "");
        EXPECT_EQ(answer, -1);
    }
}

}  // namespace
}  // namespace trifold::devices
