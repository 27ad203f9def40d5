// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/jit/cache.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/cuda/jit/hash.hpp"

namespace trifold::cuda::jit {
namespace {

constexpr std::string_view magic = "trifold cubin 1\n";

std::string folder() {
    if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/trifold/kernels/";
    if (const char* const home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/trifold/kernels/";
    return "";
}

std::string checksum(const std::string& cubin) {
    Hash hash;
    hash.add(cubin);
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

std::string load_cubin(const std::string& key) {
    if (folder().empty()) return "";
    std::ifstream in(folder() + key + ".cubin", std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    if (!in) return "";
    const std::string content = all.str();
    const std::size_t head = magic.size() + 32;
    if (content.size() <= head || content.compare(0, magic.size(), magic) != 0) return "";
    const std::string cubin = content.substr(head);
    return content.compare(magic.size(), 32, checksum(cubin)) == 0 ? cubin : "";
}

void store_cubin(const std::string& key, const std::string& cubin) {
    if (!folder().empty()) write(folder() + key + ".cubin", std::string(magic) + checksum(cubin) + cubin);
}

std::string keep_failure(const std::string& key, const std::string& text, const std::string& log) {
    const std::string path = folder() + key + ".cu";
    return !folder().empty() && write(path, text + "\n/*\n" + log + "*/\n") ? path : "";
}

}  // namespace trifold::cuda::jit
