// SPDX-License-Identifier: BSD-3-Clause
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/nearest.hpp"
#include "io/npz.hpp"
#include "io/pipe_copy.hpp"
#include "trifold/error.hpp"

namespace trifold::io {

struct NpzReader::State {
    std::string path;
    zip_t* archive = nullptr;
    std::vector<std::string> names;
    std::vector<zip_uint64_t> entries;

    ~State() {
        if (archive) zip_discard(archive);
    }

    [[noreturn]] void damaged(const std::string& where, const std::string& what) const {
        throw Error(ErrorCode::bad_input, where, what, "copy or write the file anew, for example with numpy.savez");
    }

    void open(zip_source_t* source, zip_error_t& error) {
        archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
        if (!archive) {
            const std::string text = zip_error_strerror(&error);
            zip_stat_t size{};
            const bool empty = source && zip_source_stat(source, &size) == 0 && (size.valid & ZIP_STAT_SIZE) && size.size == 0;
            zip_source_free(source);
            zip_error_fini(&error);
            if (empty) damaged(path, "is empty");
            damaged(path, "not a .npz archive, or truncated: " + text);
        }
        zip_error_fini(&error);
        const zip_int64_t count = zip_get_num_entries(archive, 0);
        for (zip_int64_t k = 0; k < count; ++k) {
            const char* name = zip_get_name(archive, static_cast<zip_uint64_t>(k), 0);
            if (!name) continue;
            std::string_view key(name);
            if (key.ends_with(".npy")) key.remove_suffix(4);
            names.emplace_back(key);
            entries.push_back(static_cast<zip_uint64_t>(k));
        }
    }
};

NpzReader::NpzReader(const std::string& path) : state_(std::make_unique<State>()) {
    state_->path = path;
    const auto unreadable = [&](int code) {
        throw Error(ErrorCode::bad_input, path, std::string("cannot be read: ") + std::strerror(code),
                    code == ENOENT ? "check the name and the folder" : "");
    };
    const std::string held = readable_again(path);
    struct stat file {};
    if (stat(held.c_str(), &file) != 0) unreadable(errno);
    if (S_ISDIR(file.st_mode)) unreadable(EISDIR);
    if (!S_ISREG(file.st_mode))
        throw Error(ErrorCode::bad_input, path, "is not a regular file, and an archive is read from its end", "copy it into a file first");
    if (access(held.c_str(), R_OK) != 0) unreadable(errno);
    zip_error_t error;
    zip_error_init(&error);
    state_->open(zip_source_file_create(held.c_str(), 0, 0, &error), error);
}

NpzReader::NpzReader(std::span<const std::byte> bytes, std::string name) : state_(std::make_unique<State>()) {
    state_->path = std::move(name);
    zip_error_t error;
    zip_error_init(&error);
    state_->open(zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error), error);
}

NpzReader::~NpzReader() = default;
NpzReader::NpzReader(NpzReader&&) noexcept = default;

const std::vector<std::string>& NpzReader::names() const {
    return state_->names;
}

Array NpzReader::read(std::string_view name, bool values, const Progress& progress) const {
    const State& state = *state_;
    const std::string where = state.path + ", array '" + std::string(name) + "'";
    std::size_t index = 0;
    while (index < state.names.size() && state.names[index] != name) ++index;
    if (std::count(state.names.begin(), state.names.end(), name) > 1) state.damaged(where, "is there more than once, and which one counts is not said");
    if (index == state.names.size()) {
        std::string there;
        for (std::size_t k = 0; k < std::min<std::size_t>(state.names.size(), 16); ++k) there += (k ? ", " : "") + state.names[k];
        const std::vector<std::string_view> known(state.names.begin(), state.names.end());
        const std::string meant = nearest(name, std::span(known).first(std::min<std::size_t>(known.size(), 16)));
        throw Error(ErrorCode::bad_input, where, "is missing", there.empty() ? "the archive is empty" : (meant.empty() ? "" : "did you mean '" + meant + "'? ") + "the file has: " + there);
    }
    const zip_uint64_t entry = state.entries[index];
    zip_stat_t stat;
    if (zip_stat_index(state.archive, entry, 0, &stat) != 0) state.damaged(where, zip_strerror(state.archive));
    const zip_uint64_t known = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((stat.valid & known) != known) state.damaged(where, "the archive does not say how long it is");
    if (stat.encryption_method != ZIP_EM_NONE)
        throw Error(ErrorCode::bad_input, where, "is encrypted", "write the archive without a password");
    // Deflate cannot do better than 1032 : 1; a larger claim would make us allocate for nothing.
    if (stat.size > static_cast<zip_uint64_t>(INT64_MAX) || stat.size / 1040 > stat.comp_size + 1)
        state.damaged(where, "claims " + std::to_string(stat.size) + " bytes from " + std::to_string(stat.comp_size) +
                                 " compressed ones");

    zip_file_t* file = zip_fopen_index(state.archive, entry, 0);
    if (!file) state.damaged(where, zip_strerror(state.archive));
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> closing(file, zip_fclose);
    const ReadBytes read = [&](void* to, std::size_t bytes) {
        std::size_t done = 0;
        while (done < bytes) {
            const zip_int64_t got = zip_fread(file, static_cast<char*>(to) + done, bytes - done);
            if (got < 0) state.damaged(where, std::string("damaged: ") + zip_file_strerror(file));
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    };
    Array array = read_npy(read, static_cast<std::int64_t>(stat.size), where, values, progress);
    // The checksum is looked at when the end is reached.
    char beyond = 0;
    if (values && read(&beyond, 1) != 0) state.damaged(where, "longer than the archive says");
    return array;
}

}  // namespace trifold::io
