// SPDX-License-Identifier: BSD-3-Clause
// Solves on a device with memory of its own, without one: its memory is the heap's, its addresses are known only to it, and the
// oracle computes. What is copied, packed and put back is tested here; kernels are tested by the contract suite on a real one.
#include <cstring>
#include <map>

#include "api/device_solve.hpp"
#include "backends/registry.hpp"
#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "problems/tridiagonal/normalise.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Ops;
using tridiagonal::System;

std::map<const char*, std::size_t> blocks;
std::size_t free_bytes = std::size_t{1} << 30;

bool is_theirs(const void* address) {
    for (const auto& [data, bytes] : blocks)
        if (address >= data && address < data + bytes) return true;
    return false;
}

const Ops& oracle() { return *static_cast<const Ops*>(find_cell(device_at(find_device("reference")), "tridiagonal").ops); }

const devices::Runtime& heap() {
    static const devices::Runtime table = [] {
        devices::Runtime r;
        r.allocate = [](int, std::size_t bytes, void** memory, Failure& failure) {
            if (bytes > free_bytes) return failure.say(ErrorCode::bad_input, "too much asked for");
            char* const data = static_cast<char*>(::operator new(bytes, std::align_val_t{256}));
            std::memset(data, 0xff, bytes);  // NaN
            blocks[data] = bytes;
            *memory = data;
            return true;
        };
        r.release = [](int, void* memory) {
            blocks.erase(static_cast<char*>(memory));
            ::operator delete(memory, std::align_val_t{256});
        };
        r.memory_info = [](int, std::size_t* free, std::size_t* total, Failure&) { return *free = free_bytes, *total = 2 * free_bytes, true; };
        r.where = [](int, const void* address) { return is_theirs(address) ? Memory{MemoryKind::device, 0} : Memory{}; };
        r.copy = [](int, void*, void* to, const void* from, std::size_t bytes, Failure&) { return std::memcpy(to, from, bytes), true; };
        r.synchronize = [](int, void*, Failure&) { return true; };
        r.enter = [](int, void*, bool, bool* capturing, Failure&) { return *capturing = false, true; };
        r.mark = [](int, void*, void**, Failure&) { return true; };
        r.seconds = [](int, void*, void*, double* seconds, Failure&) { return *seconds = 1, true; };
        r.release_mark = [](int, void*) {};
        return r;
    }();
    return table;
}

bool enqueue(int, const System& system, Algorithm, const Launch& launch, void* outcome, Failure& failure) {
    for (const tridiagonal::Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x})
        if (operand->kind == tridiagonal::Operand::Kind::view && !is_theirs(static_cast<char*>(operand->data) + (operand == &system.lower ? 8 : 0)))
            return failure.say(ErrorCode::internal, "an array of the host reached the device");
    if (launch.status && !is_theirs(launch.status)) return failure.say(ErrorCode::internal, "a status of the host reached the device");
    Outcome found;
    oracle().solve(system, Algorithm::lu, launch, found);
    std::memcpy(outcome, &found, sizeof found);
    return true;
}

const Ops& ops() {
    static const Ops table = [] {
        Ops t;
        t.device = "heap:0";
        t.refuses = [](const System&, Algorithm) -> const char* { return nullptr; };
        t.workspace = [](const System& system, Algorithm, int) { return oracle().workspace(system, Algorithm::lu, 1); };
        t.outcome_bytes = sizeof(Outcome);
        t.enqueue = enqueue;
        t.read_outcome = [](const void* copy, Outcome& outcome) { std::memcpy(&outcome, copy, sizeof outcome); };
        return t;
    }();
    return table;
}

Device heap_device() {
    Device device{"heap:0", nullptr, false, nullptr, {}, 0, &heap()};
    return device;
}

// A Context whose device memory goes before the test's map of it does.
struct DeviceSolve : testing::Test {
    Context own{{.threads = 2, .profile_path = "none", .log = {}}};
    Queue queue{own, "cpu"};

    template <class T>
    Outcome solve(const Trial<T>& trial, const tridiagonal::Options& options = {}) {
        const System system = tridiagonal::normalise(trial.problem());
        tridiagonal::DeviceTimes times;
        return tridiagonal::solve_on_device(queue, heap_device(), ops(), system, trial.problem().matrix.transposed, Algorithm::automatic, {}, options,
                                            true, times);
    }

    template <class T>
    void attempt(const Recipe& recipe) {
        Trial<T> trial(recipe);
        std::vector<std::int8_t> status(static_cast<std::size_t>(trial.systems()), 77);
        tridiagonal::Options options;
        options.status = status.data();
        trial.expect_solved(solve(trial, options), &status);
    }
};

TEST_F(DeviceSolve, CopiesEveryLayoutThereAndBack) {
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
        Recipe recipe = random_recipe(seed);
        recipe.periodic = recipe.accumulate = false;
        if (!recipe.lengths.empty() || recipe.rows == 0) continue;
        for (Source* source : {&recipe.lower, &recipe.diag, &recipe.upper})
            if (*source == Source::generator) *source = Source::full;
        if (Trial<float>(recipe).systems() == 0) continue;
        attempt<double>(recipe);
        attempt<float>(recipe);
        ASSERT_FALSE(HasFailure()) << "seed " << seed << ": " << recipe.text();
        ++tried;
    }
    EXPECT_GT(tried, 2000);
}

TEST_F(DeviceSolve, SaysWhatFitsBeforeItAllocates) {
    Recipe recipe;
    recipe.rows = 1000;
    recipe.batch = {100};
    Trial<double> trial(recipe);
    free_bytes = 1000 * 50 * 40;
    try {
        solve(trial);
        ADD_FAILURE() << "more than there is was allocated";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
        EXPECT_NE(std::string(error.what()).find("of the 1e+05 rows fit"), std::string::npos) << error.what();
    }
    free_bytes = std::size_t{1} << 30;
    EXPECT_TRUE(trial.surroundings_untouched());
}

TEST_F(DeviceSolve, NamesAWorkspaceThatIsNoneOfTheDevice) {
    Recipe recipe;
    recipe.rows = 100;
    Trial<double> trial(recipe);
    alignas(256) static std::byte host[1 << 16];
    tridiagonal::Options options;
    options.workspace = {host, sizeof host};
    EXPECT_THROW(
        {
            try {
                solve(trial, options);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::usage);
                EXPECT_EQ(error.where(), "Options::workspace");
                throw;
            }
        },
        Error);
}

}  // namespace
}  // namespace trifold::tests
