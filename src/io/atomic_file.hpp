// SPDX-License-Identifier: BSD-3-Clause
// A file that appears whole or not at all: written beside its final name, synced, then renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace trifold::io {

/// Told the path of a temporary file when it exists, and nullptr when it no longer does; called with all signals
/// blocked, so that a handler that removes it has no gap.
using TemporaryWatch = std::function<void(const char* path)>;

class AtomicFile {
public:
    /// Creates the temporary. A symbolic link is followed; a device, pipe or socket is written directly ("-" = stdout).
    /// Throws Error(bad_input) where that cannot be done. Without commit() the old file stays.
    explicit AtomicFile(const std::string& path, TemporaryWatch watch = {});
    /// Over a file that is open, and stays the caller's; `path` is for messages. Nothing is renamed.
    AtomicFile(int file, std::string path) : path_(std::move(path)), file_(file) {}
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(const void* bytes, std::size_t count);
    void write_at(std::int64_t offset, const void* bytes, std::size_t count);
    std::size_t read_at(std::int64_t offset, void* bytes, std::size_t count);
    void truncate(std::int64_t size);

    /// Syncs and renames; afterwards nothing more can be written.
    void commit();

    const std::string& path() const { return path_; }

private:
    [[noreturn]] void fail(const char* what, int error) const;
    void discard() noexcept;

    std::string path_, target_, temporary_;
    TemporaryWatch watch_;
    int file_ = -1;
    bool owned_ = false;
};

/// Whether both name one regular file, be it there or not yet.
bool same_file(const std::string& a, const std::string& b);

/// Throws Error(bad_input) where `path` could not be written now: folder, permission, or less than `bytes` free.
/// Leaves nothing behind.
void require_writable(const std::string& path, std::int64_t bytes, const TemporaryWatch& watch = {});

}  // namespace trifold::io
