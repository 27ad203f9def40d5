// SPDX-License-Identifier: BSD-3-Clause
// Every form of operator new and malloc's family counted: small solves do not allocate.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>

#include "support/random_system.hpp"
#include "support/run.hpp"
#include "trifold/trifold.hpp"

namespace {
std::atomic<long> allocations{0};
}

// Sanitizers have these functions themselves.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRIFOLD_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRIFOLD_SANITIZED
#endif

#ifndef TRIFOLD_SANITIZED
// glibc's own entry points, so that what C code takes is seen as well.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) { return ++allocations, __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) { return ++allocations, __libc_calloc(count, bytes); }
void* realloc(void* old, std::size_t bytes) { return ++allocations, __libc_realloc(old, bytes); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return ++allocations, __libc_memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
    ++allocations;
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}
}
#endif

namespace trifold::tests {
namespace {

template <class T>
long allocations_of(Queue& queue, const Bands<T>& s, bool in_place, const tridiagonal::Options& options, Outcome& outcome) {
    std::vector<T> x = s.rhs;
    tridiagonal::Problem problem = problem_of(s, x);
    if (in_place) problem.rhs = problem.x;
    outcome = tridiagonal::solve(queue, problem, options);  // what a Context keeps for later is taken by now
    x = s.rhs;
    const long before = allocations;
    outcome = tridiagonal::solve(queue, problem, options);
    return allocations - before;
}

class NoAllocation : public testing::Test {
protected:
    void SetUp() override {
#ifdef TRIFOLD_SANITIZED
        GTEST_SKIP() << "a sanitizer has taken malloc";
#endif
    }
};

TEST_F(NoAllocation, TheHookCounts) {
    const long before = allocations;
    ::operator delete(::operator new(4));  // called by name: a new-expression may be optimised away
    ::operator delete(::operator new(100, std::align_val_t{64}), std::align_val_t{64});
    EXPECT_EQ(allocations - before, 2);
}

TEST_F(NoAllocation, InSmallSystems) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    for (const std::string device : {"reference", "cpu"}) {  // drivers of others allocate as they like
        Queue queue(context, device);
        for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 51, 128, 129, 256, 500, 1024})
            for (const double dominance : {0.0, 1.5})
                for (const bool periodic : {false, true})
                    for (const bool in_place : {false, true}) {
                        const Bands<double> s = random_system(rows, dominance, 7, periodic);
                        std::int8_t status = 0;
                        tridiagonal::Options options;
                        options.status = &status;
                        Outcome outcome;
                        EXPECT_EQ(allocations_of(queue, s, in_place, options, outcome), 0) << rows << " rows on " << device << ", periodic " << periodic;
                        EXPECT_TRUE(outcome.ok());
                        EXPECT_GT(status, 0);
                        EXPECT_EQ(allocations_of(queue, cast<float>(s), in_place, options, outcome), 0) << rows << " rows on " << device;
                    }
    }
}

TEST_F(NoAllocation, InLongGeneralSystemsAfterTheFirst) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    Queue queue(context);
    const Bands<double> s = random_system(600000, 0, 8);
    tridiagonal::Options options;
    options.algorithm = tridiagonal::Algorithm::two_pass;
    for (const bool in_place : {false, true}) {
        Outcome outcome;
        EXPECT_EQ(allocations_of(queue, s, in_place, options, outcome), 0) << in_place;
        EXPECT_TRUE(outcome.ok());
        EXPECT_NE(outcome.residual, outcome.residual) << "one pass computes none";
    }
}

TEST_F(NoAllocation, InASingularSystem) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    for (const std::string device : {"reference", "cpu"}) {  // drivers of others allocate as they like
        Queue queue(context, device);
        Bands<double> s = random_system(100, 2, 7);
        s.diag[50] = s.upper[49] = s.lower[51] = 0;
        Outcome outcome;
        EXPECT_EQ(allocations_of(queue, s, false, {}, outcome), 0) << device;
        EXPECT_EQ(outcome.reason, Reason::singular);
        EXPECT_EQ(outcome.row, 50);
    }
}

}  // namespace
}  // namespace trifold::tests
