// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "devices/cgroup.hpp"
#include "devices/context_state.hpp"
#include "devices/scratch.hpp"
#include "devices/threads.hpp"
#include "devices/topology.hpp"
#include "trifold/error.hpp"

namespace trifold::devices {
namespace {

TEST(Threads, FromText) {
    EXPECT_EQ(threads_from_text("4"), 4);
    EXPECT_EQ(threads_from_text("4,2"), 4);
    EXPECT_EQ(threads_from_text(" 3 "), 3);
    for (const char* bad : {"", "0", "-2", "four", "4x", "99999999999999999999", "5000"}) EXPECT_EQ(threads_from_text(bad), 0) << bad;
    EXPECT_EQ(threads_from_text(nullptr), 0);
}

TEST(Threads, AskedBeatsEnvironmentBeatsCores) {
    std::string note;
    EXPECT_EQ(resolve_threads(3, "7", note), 3);
    EXPECT_EQ(resolve_threads(0, "7", note), 7);
    EXPECT_TRUE(note.empty());
    EXPECT_EQ(resolve_threads(0, "lots", note), usable_cores());
    EXPECT_NE(note.find("lots"), std::string::npos);
    EXPECT_GE(usable_cores(), 1);
    EXPECT_THROW(resolve_threads(-1, nullptr, note), Error);
    EXPECT_THROW(resolve_threads(1 << 20, nullptr, note), Error);
}

class Cgroup : public testing::Test {
protected:
    Cgroup() : root(std::filesystem::temp_directory_path() / ("trifold-cgroup-" + std::to_string(getpid()))) {}
    ~Cgroup() override { std::filesystem::remove_all(root); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((root / path).parent_path());
        std::ofstream(root / path) << text;
    }
    std::filesystem::path root;
};

TEST_F(Cgroup, TightestGroupCounts) {
    write("a/b/cpu.max", "max 100000\n");
    EXPECT_EQ(cgroup_quota_cores("0::/a/b\n", root), 0);
    write("a/cpu.max", "250000 100000\n");
    EXPECT_EQ(cgroup_quota_cores("0::/a/b\n", root), 3);
    write("cpu.max", "100000 100000\n");
    EXPECT_EQ(cgroup_quota_cores("0::/a/b\n", root), 1);
    EXPECT_EQ(cgroup_quota_cores("0::/elsewhere\n", root), 1) << "a container sees its own group as the root";
}

TEST_F(Cgroup, VersionOne) {
    write("cpu/cpu.cfs_quota_us", "-1\n");
    write("cpu/cpu.cfs_period_us", "100000\n");
    const std::string self = "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n";
    EXPECT_EQ(cgroup_quota_cores(self, root), 0);
    write("cpu/docker/cpu.cfs_quota_us", "150000\n");
    write("cpu/docker/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cgroup_quota_cores(self, root), 2);
}

TEST_F(Cgroup, GarbageIsNoLimit) {
    write("cpu.max", "garbage");
    for (const char* self : {"", "\n", "::", "0:", "0::relative/path\n", "0::/\n"}) EXPECT_EQ(cgroup_quota_cores(self, root), 0) << self;
}

TEST(Scratch, KeptForTheNextCall) {
    ScratchArena arena;
    void* first = nullptr;
    {
        const Scratch block = arena.take(10000);
        first = block.data();
        ASSERT_GE(block.bytes(), 10000U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
        std::memset(first, 1, block.bytes());
    }
    const Scratch again = arena.take(9000);
    EXPECT_EQ(again.data(), first);
    const std::size_t held = arena.held_bytes();
    const Scratch second = arena.take(9000);
    EXPECT_NE(second.data(), first) << "still on loan";
    EXPECT_GT(arena.held_bytes(), held);
    EXPECT_EQ(arena.take(0).data(), nullptr);
}

TEST(Scratch, GrowsInsteadOfPilingUp) {
    ScratchArena arena;
    for (std::size_t bytes = 4096; bytes <= (std::size_t{8} << 20); bytes *= 2) EXPECT_GE(arena.take(bytes).bytes(), bytes);
    EXPECT_EQ(arena.held_bytes(), std::size_t{8} << 20);
    EXPECT_EQ(arena.peak_bytes(), std::size_t{8} << 20);
}

TEST(Scratch, MoreThanTheMachineHas) {
    ScratchArena arena;
    try {
        arena.take(std::size_t{1} << 60);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
    }
    EXPECT_EQ(arena.held_bytes(), 0U);
    EXPECT_NO_THROW(arena.take(100));
}

TEST(Scratch, CallersWorkspace) {
    ScratchArena arena;
    alignas(64) std::byte own[512];
    EXPECT_EQ(arena.take(512, {own, 512}).data(), own);
    EXPECT_EQ(arena.take(400, {own + 8, 504}).data(), own + 64) << "aligned inside the caller's memory";
    EXPECT_EQ(arena.held_bytes(), 0U);
    for (const Workspace small : {Workspace{own, 511}, Workspace{own + 8, 504}}) try {
            arena.take(512, small);
            FAIL();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::usage);
            EXPECT_NE(std::string(error.what()).find("512"), std::string::npos);
        }
}

TEST(Scratch, LessWhereWhatIsWantedIsNotThere) {
    ScratchArena arena;
    EXPECT_GE(arena.take(5000, 100, {}).bytes(), 5000U);
    EXPECT_GE(arena.take(std::size_t{1} << 60, 100, {}).bytes(), 100U) << "half of the machine's memory at most";
    EXPECT_LT(arena.held_bytes(), std::size_t{1} << 20);
    alignas(64) std::byte own[512];
    EXPECT_EQ(arena.take(5000, 500, {own, 512}).data(), own) << "the caller's, if it suffices";
    EXPECT_THROW(arena.take(5000, 513, {own, 512}), Error);
}

TEST(Scratch, ConcurrentLoansAreApart) {
    ScratchArena arena;
    std::atomic<int> clashes{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int round = 0; round < 500; ++round) {
                const std::size_t bytes = static_cast<std::size_t>(64 + 977 * ((round + t) % 9));
                const Scratch block = arena.take(bytes);
                std::memset(block.data(), t, bytes);
                std::this_thread::yield();
                for (std::size_t i = 0; i < bytes; ++i) clashes += static_cast<const char*>(block.data())[i] != t;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(clashes, 0);
}

TEST(Topology, Plausible) {
    const Topology topology = read_topology();
    EXPECT_GE(topology.cores, 1);
    EXPECT_GE(topology.hardware_threads, 1);
    EXPECT_FALSE(topology.model.empty());
    EXPECT_GT(topology.memory, std::size_t{1} << 20);
    EXPECT_EQ(fingerprint(topology), fingerprint(read_topology()));
    Topology other = topology;
    other.l3 += 1;
    EXPECT_NE(fingerprint(topology), fingerprint(other));
}

TEST(ContextState, LogSinkMayThrow) {
    ContextOptions options;
    int lines = 0;
    options.log = [&](std::string_view) { ++lines; throw 1; };
    options.threads = 2;
    Context::State state(options);
    state.log("one");
    state.log("two");
    EXPECT_EQ(lines, 2);
    EXPECT_EQ(state.threads, 2);
}

}  // namespace
}  // namespace trifold::devices
