// SPDX-License-Identifier: BSD-3-Clause
// A folder that is gone when the test is, and what a test wants of files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "trifold/error.hpp"

namespace trifold::test {

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string path = (std::filesystem::temp_directory_path() / "trifold-XXXXXX").string();
        if (!mkdtemp(path.data())) throw std::runtime_error("no temporary folder");
        path_ = path;
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
    }

private:
    std::filesystem::path path_;
};

inline void write_text(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs `body`, which must throw an Error of this code whose text has all of `parts`.
template <class Body>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, Body body) {
    try {
        body();
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
        for (const std::string& part : parts)
            EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << "\nlacks: " << part;
    }
}

}  // namespace trifold::test
