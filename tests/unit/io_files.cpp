// SPDX-License-Identifier: BSD-3-Clause
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "io/atomic_file.hpp"
#include "io_temporary.hpp"

namespace trifold::io {
namespace {

using test::expect_error;

TEST(AtomicFile, AppearsOnCommitOnly) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "x";
    std::string temporary;
    {
        AtomicFile file(path, [&](const char* name) { temporary = name ? name : ""; });
        file.write("new", 3);
        EXPECT_NE(access(path.c_str(), F_OK), 0);
        EXPECT_EQ(test::read_text(temporary), "new");
        file.commit();
        EXPECT_EQ(temporary, "");
    }
    EXPECT_EQ(test::read_text(path), "new");
    EXPECT_EQ(folder.files(), 1u);
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "x";
    test::write_text(path, "old");
    {
        AtomicFile file(path);
        file.write("half of the n", 13);
    }
    EXPECT_EQ(test::read_text(path), "old");
    EXPECT_EQ(folder.files(), 1u);
}

TEST(AtomicFile, KeepsModeAndFollowsLinks) {
    const test::TemporaryFolder folder;
    test::write_text(folder / "real", "old");
    chmod((folder / "real").c_str(), 0640);
    ASSERT_EQ(symlink("real", (folder / "link").c_str()), 0);
    AtomicFile file(folder / "link");
    file.write("new", 3);
    file.commit();
    EXPECT_EQ(test::read_text(folder / "real"), "new");
    struct stat state {};
    ASSERT_EQ(lstat((folder / "link").c_str(), &state), 0);
    EXPECT_TRUE(S_ISLNK(state.st_mode));
    ASSERT_EQ(stat((folder / "real").c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 07777, 0640u);
}

TEST(AtomicFile, FollowsLinksToWhatIsNotThereYet) {
    const test::TemporaryFolder folder;
    ASSERT_EQ(symlink("second", (folder / "first").c_str()), 0);
    ASSERT_EQ(symlink("real", (folder / "second").c_str()), 0);
    require_writable(folder / "first", 1);
    AtomicFile file(folder / "first");
    file.write("new", 3);
    file.commit();
    EXPECT_EQ(test::read_text(folder / "real"), "new");
    EXPECT_EQ(folder.files(), 3u);
    ASSERT_EQ(symlink("round", (folder / "round").c_str()), 0);
    expect_error(ErrorCode::bad_input, {"round", "symbolic links"}, [&] { AtomicFile(folder / "round"); });
}

// A reader takes the first writer that goes for the end.
TEST(AtomicFile, APipeIsOpenedOnce) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "pipe";
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::string got;
    std::thread reader([&] { got = test::read_text(path); });
    require_writable(path, 1 << 20);
    AtomicFile file(path);
    file.write("x", 1);
    file.commit();
    reader.join();
    EXPECT_EQ(got, "x");
}

TEST(AtomicFile, NamesOfOneFile) {
    const test::TemporaryFolder folder;
    test::write_text(folder / "real", "x");
    ASSERT_EQ(symlink("real", (folder / "link").c_str()), 0);
    ASSERT_EQ(symlink("later", (folder / "dangling").c_str()), 0);
    EXPECT_TRUE(same_file(folder / "real", folder / "link"));
    EXPECT_TRUE(same_file(folder / "real", folder / "./real"));
    EXPECT_TRUE(same_file(folder / "later", folder / "dangling"));
    EXPECT_FALSE(same_file(folder / "real", folder / "later"));
    EXPECT_FALSE(same_file("/dev/null", "/dev/null"));  // nothing is lost
}

TEST(AtomicFile, DevicesAreWrittenNotReplaced) {
    AtomicFile file("/dev/null");
    file.write("x", 1);
    file.commit();
    struct stat state {};
    ASSERT_EQ(stat("/dev/null", &state), 0);
    EXPECT_TRUE(S_ISCHR(state.st_mode));
    expect_error(ErrorCode::bad_input, {"/dev/full", "No space left"}, [] { AtomicFile("/dev/full").write("x", 1); });
}

TEST(AtomicFile, WhatCannotBeWritten) {
    const test::TemporaryFolder folder;
    expect_error(ErrorCode::bad_input, {"none/x", "No such file", "make the folder"},
                 [&] { AtomicFile(folder / "none/x"); });
    expect_error(ErrorCode::bad_input, {"it is a folder"}, [] { AtomicFile("/tmp"); });
    expect_error(ErrorCode::bad_input, {"needs", "of disk", "free"},
                 [&] { require_writable(folder / "x", std::int64_t{1} << 60); });
    require_writable(folder / "x", 1);
    EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace trifold::io
