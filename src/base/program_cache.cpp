// SPDX-License-Identifier: BSD-3-Clause
#include "base/program_cache.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text_hash.hpp"

namespace trifold {
namespace {

constexpr std::string_view magic = "trifold program 1\n";

std::string checksum(std::string_view program) {
    TextHash hash;
    hash.add(program);
    return hash.text();
}

bool write(const std::string& path, const std::string& content) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    static std::atomic<int> count{0};
    const std::string temporary = path + "." + std::to_string(getpid()) + "." + std::to_string(count++);
    bool good = false;
    {
        std::ofstream out(temporary, std::ios::binary);
        out.write(content.data(), static_cast<std::streamsize>(content.size()));
        out.close();
        good = out.good();
    }
    if (good) std::filesystem::rename(temporary, path, error), good = !error;
    if (!good) std::filesystem::remove(temporary, error);
    return good;
}

}  // namespace

// Empty: there is no place for it.
std::string ProgramCache::path(const std::string& key, std::string_view suffix) const {
    std::string root;
    if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/') root = cache;  // others are none (XDG base directories)
    else if (const char* const home = std::getenv("HOME"); home && *home) root = std::string(home) + "/.cache";
    return root.empty() ? root : root.append("/trifold/").append(folder_).append("/").append(key).append(suffix);
}

std::string ProgramCache::load(const std::string& key) const {
    std::ifstream in(path(key, compiled_), std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    if (!in) return "";
    const std::string content = all.str();
    const std::size_t head = magic.size() + 32;
    if (content.size() <= head || content.compare(0, magic.size(), magic) != 0) return "";
    const std::string program = content.substr(head);
    return content.compare(magic.size(), 32, checksum(program)) == 0 ? program : "";
}

void ProgramCache::store(const std::string& key, std::string_view program) const {
    if (const std::string to = path(key, compiled_); !to.empty()) write(to, std::string(magic).append(checksum(program)).append(program));
}

std::string ProgramCache::keep_failure(const std::string& key, std::string_view text, std::string_view log) const {
    const std::string to = path(key, text_);
    return !to.empty() && write(to, std::string(text).append("\n/*\n").append(log).append("*/\n")) ? to : "";
}

}  // namespace trifold
