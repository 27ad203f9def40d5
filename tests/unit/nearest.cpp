// SPDX-License-Identifier: BSD-3-Clause
#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include "trifold/tridiagonal.hpp"

namespace trifold {
namespace {

constexpr std::string_view known[] = {"cpu", "reference", "cuda:0"};

TEST(Nearest, FindsTheMistypedName) {
    EXPECT_EQ(nearest("CPU", known), "cpu");
    EXPECT_EQ(nearest("refernce", known), "reference");
    EXPECT_EQ(nearest("cuda", known), "cuda:0");
    EXPECT_EQ(nearest("fpga:u280-board", known), "");
    EXPECT_EQ(nearest("", known), "");
    EXPECT_EQ(nearest(std::string(100000, 'c'), known), "");
    EXPECT_EQ(nearest("cpu", {}), "");
}

TEST(Nearest, HintNamesWhatIsKnown) {
    EXPECT_EQ(nearest_hint("cpi", known), "did you mean 'cpu'? known: cpu, reference, cuda:0");
    EXPECT_EQ(nearest_hint("zzzz", known), "known: cpu, reference, cuda:0");
}

TEST(Algorithms, NamesGoBothWays) {
    for (int i = 0; i < tridiagonal::algorithm_count; ++i) {
        const auto algorithm = static_cast<tridiagonal::Algorithm>(i);
        EXPECT_EQ(tridiagonal::algorithm_from(tridiagonal::name_of(algorithm)), algorithm);
    }
    try {
        tridiagonal::algorithm_from("tomas");
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("thomas"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace trifold
