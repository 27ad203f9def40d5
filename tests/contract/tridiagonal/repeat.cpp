// SPDX-License-Identifier: BSD-3-Clause
// The same bits every time, with any number of threads, in place or not, with the caller's scratch or the Context's.
#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

class Repeat : public OnDevice {
protected:
    template <class T>
    std::vector<std::vector<T>> bits(Queue& on, const Recipe& recipe, Workspace scratch = {}) {
        Trial<T> trial(recipe);
        tridiagonal::Options options;
        options.workspace = scratch;
        EXPECT_TRUE(tridiagonal::solve(on, trial.problem(), options).ok()) << recipe.text();
        std::vector<std::vector<T>> all;
        for (std::int64_t k = 0; k < trial.systems(); ++k) all.push_back(trial.stored(k));
        return all;
    }

    std::vector<Recipe> recipes() {
        std::vector<Recipe> list;
        for (const bool dominant : {true, false})
            for (const auto& [rows, systems, layout] : {std::tuple{200003, 0, Layout::contiguous}, {100003, 3, Layout::contiguous}, {129, 203, Layout::contiguous},
                                                        {129, 203, Layout::interleaved}, {65, 100, Layout::scattered}}) {
                Recipe recipe;
                recipe.rows = rows;
                if (systems) recipe.batch = {systems};
                recipe.layout = layout;
                recipe.dominant = dominant;
                list.push_back(recipe);
            }
        return list;
    }
};

TEST_P(Repeat, DoesNotDependOnThreads) {
    for (const Recipe& recipe : recipes()) {
        const auto expected = bits<double>(queue, recipe);
        const auto single = bits<float>(queue, recipe);
        for (const int threads : {1, 2, 3}) {
            Context other({.threads = threads, .profile_path = "none", .log = {}});
            Queue on(other, GetParam());
            EXPECT_EQ(bits<double>(on, recipe), expected) << recipe.text() << ", " << threads << " threads";
            EXPECT_EQ(bits<float>(on, recipe), single) << recipe.text() << ", " << threads << " threads";
        }
    }
}

TEST_P(Repeat, GivesTheSameBitsAgain) {
    for (const Recipe& recipe : recipes()) EXPECT_EQ(bits<double>(queue, recipe), bits<double>(queue, recipe)) << recipe.text();
}

TEST_P(Repeat, TakesTheCallersScratch) {
    std::vector<Recipe> all = recipes();
    for (Recipe recipe : recipes())
        if (!recipe.batch.empty()) recipe.diag = Source::generator, all.push_back(recipe);  // a table in the Context's scratch, and another's kernels
    for (const Recipe& recipe : all) {
        Trial<double> trial(recipe);
        const auto needs = tridiagonal::workspace(queue, trial.problem());
        ASSERT_EQ(needs.size(), 1u);
        // One word in, so that the alignment is no luck.
        const std::vector<double> nothing(needs[0].bytes / sizeof(double) + needs[0].alignment / sizeof(double) + 1, NAN);
        Queue home(context(), needs[0].memory.kind == MemoryKind::device ? GetParam() : "cpu");
        const DeviceArray<double> memory(home, nothing);
        void* aligned = memory.data() + 1;
        std::size_t room = nothing.size() * sizeof(double) - sizeof(double);
        ASSERT_TRUE(std::align(needs[0].alignment, needs[0].bytes, aligned, room));
        EXPECT_EQ(bits<double>(queue, recipe, {aligned, needs[0].bytes}), bits<double>(queue, recipe)) << recipe.text();
    }
}

// Nothing decays and pivots are needed, so that some are corrected once more, which must not depend on who is first. The second call finds launches remembered.
template <class T>
void waves_repeat(Queue& queue, std::int64_t rows, double diag) {
    SCOPED_TRACE(testing::Message() << rows << " rows, " << diag << ", " << trifold::name_of(dtype_of<T>));
    Random random(static_cast<std::uint64_t>(rows));
    std::vector<T> off(static_cast<std::size_t>(rows), T(-1)), on(off.size(), static_cast<T>(diag)), rhs(off.size());
    for (T& value : rhs) value = static_cast<T>(random.uniform(-1, 1));
    const auto view = [&](const std::vector<T>& values) { return View<const T>::rows(values); };
    std::vector<T> first;
    Outcome expected;
    for (int call = 0; call < 6; ++call) {
        std::vector<T> x(rhs.size(), T(77));
        tridiagonal::Problem problem;
        problem.matrix = {view(off), view(on), view(off)};
        problem.rhs = view(rhs), problem.x = View<T>::rows(x);
        const Outcome outcome = tridiagonal::solve(queue, problem);
        ASSERT_TRUE(outcome.ok());
        if (call == 0) first = x, expected = outcome;
        ASSERT_EQ(outcome.reason, expected.reason) << "call " << call;
        ASSERT_STREQ(outcome.branch, expected.branch) << "call " << call;
        ASSERT_EQ(x, first) << "call " << call;
    }
}

TEST_P(Repeat, WavesThatAreCorrected) {
    for (const std::int64_t rows : {4700, 7263, 20000, 43008, 100003})
        for (const double diag : {0.05, 0.5, 1.3, 1.9}) waves_repeat<double>(queue, rows, diag), waves_repeat<float>(queue, rows, diag);
}

TRIFOLD_ON_EVERY_DEVICE(Repeat);

}  // namespace
}  // namespace trifold::tests
