// SPDX-License-Identifier: BSD-3-Clause
// What stands before CUDA's driver in tests (cuda/failing_driver.cpp), before one that is played: whatever the arguments are, they arrive, and the call that is meant fails, no other.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "cuda/driver.hpp"

namespace trifold::tests {
namespace {

using Find2 = int (*)(const char*, void**, int, unsigned long long, int*);
using Find1 = int (*)(const char*, void**, int, unsigned long long);

struct FailingCuda : testing::Test {
    static const FailingDriver& driver() {
        static const FailingDriver loaded = stand_before_driver();
        return loaded;
    }
    /// As CUDA's runtime does.
    static Find2 find2() { return reinterpret_cast<Find2>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2")); }

    template <class Function>
    static Function* function(const char* name, int version = 13000) {
        void* found = nullptr;
        int status = -1;
        EXPECT_EQ(find2()(name, &found, version, 0, &status), 0) << name;
        EXPECT_EQ(status, 0) << name;
        return reinterpret_cast<Function*>(found);
    }

    void SetUp() override {
        ASSERT_EQ(driver().why_not, "");
        driver().fail(-1, 0, 999), driver().sleep(-1, 0), driver().slow(0);
    }
};

struct Large {
    long values[5];
};

TEST_F(FailingCuda, ArgumentsArrive) {
    const auto integers = function<int(long, long, long, long, long, long, long, long, long, long*)>("cuTenIntegers");
    const auto mixed = function<int(float, int, double, long, double, double, float, double, double, double, double, char, short, unsigned, long, long, double*)>("cuMixed");
    const auto varying = function<int(double*, int, ...)>("cuVarying");
    const auto by_value = function<int(Large, long*)>("cuByValue");
    for (int round = 0; round < 3; ++round) {
        long sum = 0;
        EXPECT_EQ(integers(1, 20, 300, 4000, 50000, 600000, 7000000, 80000000, 900000000, &sum), 0);
        EXPECT_EQ(sum, 1 + 40 + 900 + 16000 + 250000 + 3600000 + 49000000L + 640000000L + 8100000000L);
        double real = 0;
        EXPECT_EQ(mixed(0.5f, -3, 1e3, 1L << 33, 1e-3, 7, 0.25f, 9, 10, 11, 12, 'a', -5, 4000000000u, -6, 7, &real), 0);
        EXPECT_EQ(real, 0.5 + 2.0 * -3 + 3 * 1e3 + 4.0 * static_cast<double>(1L << 33) + 5 * 1e-3 + 6 * 7.0 + 7 * 0.25 + 8 * 9.0 + 9 * 10.0 + 10 * 11.0 + 11 * 12.0 + 12.0 * 'a' + 13.0 * -5 + 14.0 * 4000000000u + 15.0 * -6 + 16.0 * 7);
        EXPECT_EQ(varying(&real, 3, 1.0, 2.0, 3.0), 0);
        EXPECT_EQ(real, 123);
        EXPECT_EQ(by_value({{1, 2, 3, 4, 5}}, &sum), 0);
        EXPECT_EQ(sum, 12345);
    }
    EXPECT_EQ(driver().calls(), 12);
    EXPECT_EQ(driver().failed(), 0);
}

TEST_F(FailingCuda, TheCallThatIsMeantFails) {
    const auto integers = function<int(long, long, long, long, long, long, long, long, long, long*)>("cuTenIntegers");
    const auto versions = function<int(long*)>("cuVersions");
    for (const int lasting : {0, 1})
        for (long k = 0; k < 6; ++k) {
            driver().fail(k, lasting, 719);
            for (long call = 0; call < 6; ++call) {
                long result = -1;
                const bool fails = call == k || (lasting && call > k);
                EXPECT_EQ(call % 2 ? versions(&result) : integers(1, 0, 0, 0, 0, 0, 0, 0, 0, &result), fails ? 719 : 0) << call << " of " << k;
                EXPECT_EQ(result, fails ? -1 : call % 2 ? 2 : 1) << "a call that fails is not made";
            }
            EXPECT_EQ(driver().failed(), lasting ? 6 - k : 1);
            EXPECT_STREQ(driver().failed_function(), k % 2 ? "cuVersions" : "cuTenIntegers");
        }
}

TEST_F(FailingCuda, ResultsOfTheDriverPass) {
    EXPECT_EQ(function<int()>("cuRefuses")(), 201);
    void* found = &found;
    int status = -1;
    EXPECT_EQ(find2()("cuNowhere", &found, 13000, 0, &status), 500);
    EXPECT_EQ(found, nullptr);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(find2()("", &found, 0, 0, &status), 500);
    EXPECT_EQ(find2()(nullptr, &found, 0, 0, &status), 500);
}

TEST_F(FailingCuda, WhatIsAskedAndGivenBackIsLeftAlone) {
    driver().fail(0, 1, 999);
    long freed = 0;
    int version = 0;
    const void* table = nullptr;
    EXPECT_EQ(function<int(unsigned)>("cuInit")(0), 0);
    EXPECT_EQ(function<int(int*)>("cuDriverGetVersion")(&version), 0);
    EXPECT_EQ(function<int(const void**, const void*)>("cuGetExportTable")(&table, &version), 0);
    EXPECT_EQ(function<int(long*)>("cuMemFree")(&freed), 0);
    EXPECT_EQ(version, 13000);
    EXPECT_EQ(table, &version);
    EXPECT_EQ(freed, 1);
    EXPECT_EQ(driver().calls(), 0);
    long which = 0;
    EXPECT_EQ(function<int(long*)>("cuVersions")(&which), 999);
}

// Whoever looks for the function that finds functions has ours, in the version that is asked for; and every version of a function is one of its own.
TEST_F(FailingCuda, AllWaysLeadThroughIt) {
    const auto newer = function<std::remove_pointer_t<Find2>>("cuGetProcAddress", 12000);
    const auto older = function<std::remove_pointer_t<Find1>>("cuGetProcAddress", 11030);
    std::set<void*> seen;
    for (const int version : {11030, 13000}) {
        void *one = nullptr, *other = nullptr;
        EXPECT_EQ(newer("cuVersions", &one, version, 0, nullptr), 0);
        EXPECT_EQ(older("cuVersions", &other, version, 0), 0);
        EXPECT_EQ(one, other);
        long which = 0;
        driver().fail(1, 0, 999);
        EXPECT_EQ(reinterpret_cast<int (*)(long*)>(one)(&which), 0);
        EXPECT_EQ(which, version < 12000 ? 1 : 2);
        EXPECT_EQ(reinterpret_cast<int (*)(long*)>(one)(&which), 999);
        seen.insert(one);
    }
    EXPECT_EQ(seen.size(), 2u);
}

TEST_F(FailingCuda, OneOfManyThreadsFails) {
    const auto integers = function<int(long, long, long, long, long, long, long, long, long, long*)>("cuTenIntegers");
    driver().fail(12345, 0, 999);
    std::atomic<int> failures{0}, wrong{0};
    std::vector<std::thread> threads;
    for (long thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            for (long k = 0; k < 10000; ++k) {
                long sum = -1;
                if (integers(k, 0, 0, 0, 0, 0, 0, thread, k, &sum) != 0) ++failures;
                else wrong += sum != k + 8 * thread + 9 * k;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(driver().calls(), 40000);
}

TEST_F(FailingCuda, CallsMayTakeTheirTime) {
    const auto versions = function<int(long*)>("cuVersions");
    const auto seconds = [&] {
        long which = 0;
        const auto start = std::chrono::steady_clock::now();
        EXPECT_EQ(versions(&which), 0);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    driver().sleep(1, 60);
    seconds();
    EXPECT_GE(seconds(), 0.06);
    EXPECT_LT(seconds(), 0.06);
    driver().slow(50);
    EXPECT_GE(seconds(), 0.05);
}

}  // namespace
}  // namespace trifold::tests
