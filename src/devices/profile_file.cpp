// SPDX-License-Identifier: BSD-3-Clause
#include "devices/profile_file.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "trifold/version.hpp"

namespace trifold::devices {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;
constexpr const char* schema = "trifold.profile/2";
constexpr Store stores[] = {Store::none, Store::regular, Store::past_cache, Store::in_place};

double positive(const Json& object, const char* key) {
    const double value = object.at(key).get<double>();
    if (!std::isfinite(value) || value <= 0) throw std::invalid_argument(std::string(key) + " is not positive");
    return value;
}

int thread_count(const Json& object) {
    const double threads = positive(object, "threads");
    if (threads < 1 || threads > 1e6) throw std::invalid_argument("no number of threads");
    return static_cast<int>(threads);
}

Store store_from(const std::string& name) {
    for (const Store store : stores)
        if (name == name_of(store)) return store;
    throw std::invalid_argument("unknown store '" + name + "'");
}

Profile from_json(const Json& json) {
    Profile out;
    out.date = json.at("date").get<std::string>();
    out.machine = json.at("machine").get<std::string>();
    if (out.date.empty()) throw std::invalid_argument("no date");
    for (const Json& p : json.at("bandwidth")) {
        out.bandwidth.push_back({static_cast<std::size_t>(std::fmin(positive(p, "footprint"), 0x1p62)), thread_count(p),
                                 store_from(p.at("store").get<std::string>()), positive(p, "bytes_per_s")});
    }
    for (const auto& [key, timings] : json.at("timings").items())
        for (const Json& t : timings) out.timings[key].push_back({thread_count(t), positive(t, "rows"), positive(t, "seconds")});
    return out;
}

}  // namespace

std::string profile_folder(const std::string& asked) {
    if (asked == "none") return {};
    if (!asked.empty()) return asked;
    const char* cache = std::getenv("XDG_CACHE_HOME");
    // The specification has relative paths ignored.
    if (cache && *cache == '/') return std::string(cache) + "/trifold";
    const char* home = std::getenv("HOME");
    return home && *home == '/' ? std::string(home) + "/.cache/trifold" : std::string();
}

std::string profile_file(const std::string& folder, const std::string& machine, const char* what) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const char c : machine) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    char name[64];
    std::snprintf(name, sizeof name, "/%s-%016llx.json", what, static_cast<unsigned long long>(hash));
    return folder + name;
}

std::optional<Profile> load_profile(const std::string& file, const std::string& machine, std::string& why, const char* what) {
    why.clear();
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (error) return std::nullopt;
    if (size > 1 << 20) return why = "far too large for a profile", std::nullopt;
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    try {
        const Json json = Json::parse(text);
        if (json.at("schema").get<std::string>() != schema) throw std::invalid_argument("another schema");
        if (const auto version = json.at("version").get<std::string>(); version != TRIFOLD_VERSION)
            return why = "written by version " + version.substr(0, 32), std::nullopt;
        Profile profile = from_json(json);
        if (profile.machine != machine) return why = std::string("measured on another ") + what, std::nullopt;
        return profile;
    } catch (const std::exception& problem) {  // the parser's own and the checks above
        why = std::string("corrupt: ") + problem.what();
        return std::nullopt;
    }
}

bool save_profile(const Profile& profile, const std::string& file, std::string& why) {
    Json json;
    json["schema"] = schema;
    json["version"] = TRIFOLD_VERSION;
    json["date"] = profile.date;
    json["machine"] = profile.machine;
    json["bandwidth"] = Json::array();
    for (const Bandwidth& p : profile.bandwidth)
        json["bandwidth"].push_back({{"footprint", p.footprint},
                                     {"threads", p.threads},
                                     {"store", name_of(p.store)},
                                     {"bytes_per_s", p.bytes_per_s}});
    json["timings"] = Json::object();
    for (const auto& [key, timings] : profile.timings) {
        Json& to = json["timings"][key] = Json::array();
        for (const Timing& t : timings) to.push_back({{"threads", t.threads}, {"rows", t.rows}, {"seconds", t.seconds}});
    }

    return replace_file(file, json.dump(1) + '\n', why);
}

bool replace_file(const std::string& file, const std::string& text, std::string& why) {
    static std::atomic<unsigned> written{0};
    const std::string temporary = file + "." + std::to_string(getpid()) + "." + std::to_string(written++) + ".tmp";
    std::error_code error;
    fs::create_directories(fs::path(file).parent_path(), error);
    if (error) return why = error.message(), false;
    std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
    stream << text;
    stream.close();
    if (stream) fs::rename(temporary, file, error);
    else error = std::error_code(errno ? errno : EIO, std::generic_category());
    if (!error) return true;
    why = error.message();
    std::error_code ignored;
    fs::remove(temporary, ignored);
    return false;
}

}  // namespace trifold::devices
