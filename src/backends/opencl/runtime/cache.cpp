// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/cache.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace trifold::opencl {
namespace {

constexpr std::string_view magic = "trifold opencl 1\n";

std::string folder() {
    if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/trifold/opencl/";
    if (const char* const home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/trifold/opencl/";
    return "";
}

bool write(const std::string& path, std::string_view content) {
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

// Two FNV-1a of 64 bits (Fowler, Noll, Vo): they tell texts from others by accident, not against intent.
std::string program_key(std::initializer_list<std::string_view> texts) {
    std::uint64_t a = 0xcbf29ce484222325u, b = 0x84222325cbf29ce4u;
    const auto step = [&](unsigned value) {
        a = (a ^ value) * 0x100000001b3u;
        b = (b ^ (value + 0x9e37u)) * 0x100000001b3u;
        b ^= b >> 29;
    };
    for (const std::string_view text : texts) {
        for (const char c : text) step(static_cast<unsigned char>(c));
        step(0x100);
    }
    char out[40];
    std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
    return out;
}

std::vector<unsigned char> load_program(const std::string& key) {
    if (folder().empty()) return {};
    std::ifstream in(folder() + key + ".bin", std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    if (!in) return {};
    const std::string content = all.str();
    const std::size_t head = magic.size() + 32;
    if (content.size() <= head || content.compare(0, magic.size(), magic) != 0) return {};
    const std::string_view binary = std::string_view(content).substr(head);
    if (program_key({binary}) != content.substr(magic.size(), 32)) return {};
    return {binary.begin(), binary.end()};
}

void store_program(const std::string& key, const std::vector<unsigned char>& binary) {
    const std::string_view bytes(reinterpret_cast<const char*>(binary.data()), binary.size());
    if (!folder().empty()) write(folder() + key + ".bin", std::string(magic) + program_key({bytes}) + std::string(bytes));
}

std::string keep_failure(const std::string& key, const std::string& text, const std::string& log) {
    const std::string path = folder() + key + ".cl";
    return !folder().empty() && write(path, text + "\n/*\n" + log + "*/\n") ? path : "";
}

}  // namespace trifold::opencl
