// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "io/npz.hpp"
#include "io/pipe_copy.hpp"
#include "trifold/error.hpp"

namespace trifold::io {
namespace {

// What libzip writes goes to our own temporary file, so that one mechanism syncs, renames and cleans up.
struct Sink {
    AtomicFile& file;
    std::int64_t position = 0, size = 0;
    std::exception_ptr failure{};
    zip_error_t error{};

    template <class Body>
    zip_int64_t guarded(Body body) noexcept {
        try {
            return body();
        } catch (...) {
            failure = std::current_exception();
            zip_error_set(&error, ZIP_ER_WRITE, 0);
            return -1;
        }
    }
};

zip_int64_t command(void* state, void* data, zip_uint64_t length, zip_source_cmd_t cmd) {
    Sink& sink = *static_cast<Sink*>(state);
    switch (cmd) {
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_WRITABLE;
    case ZIP_SOURCE_STAT: {
        auto* stat = static_cast<zip_stat_t*>(data);
        zip_stat_init(stat);
        stat->size = static_cast<zip_uint64_t>(sink.size);
        stat->valid = ZIP_STAT_SIZE;
        return sizeof *stat;
    }
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&sink.error, data, length);
    case ZIP_SOURCE_WRITE:
        return sink.guarded([&] {
            sink.file.write_at(sink.position, data, length);
            sink.position += static_cast<std::int64_t>(length);
            sink.size = std::max(sink.size, sink.position);
            return static_cast<zip_int64_t>(length);
        });
    case ZIP_SOURCE_SEEK_WRITE: {
        const zip_int64_t to = zip_source_seek_compute_offset(
            static_cast<zip_uint64_t>(sink.position), static_cast<zip_uint64_t>(sink.size), data, length, &sink.error);
        if (to < 0) return -1;
        sink.position = to;
        return 0;
    }
    case ZIP_SOURCE_TELL_WRITE:
        return sink.position;
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_OPEN:
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        // Reading back: the archive is new, so there is nothing to read.
        zip_error_set(&sink.error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

void on_progress(zip_t*, double share, void* state) {
    const auto& [progress, total] = *static_cast<std::pair<const Progress&, std::int64_t>*>(state);
    progress(static_cast<std::int64_t>(share * static_cast<double>(total)), total);
}

std::int64_t write_archive(AtomicFile& file, std::span<const NamedArray> arrays, const Progress& progress) {
    Sink sink{file};
    const auto fail = [&](const std::string& what) {
        if (sink.failure) std::rethrow_exception(sink.failure);
        throw Error(ErrorCode::bad_input, file.path(), "cannot be written: " + what, "choose another place with -o");
    };
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* target = zip_source_function_create(command, &sink, &error);
    zip_t* archive = target ? zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error) : nullptr;
    if (!archive) {
        zip_source_free(target);
        fail(zip_error_strerror(&error));
    }
    std::unique_ptr<zip_t, void (*)(zip_t*)> discarding(archive, zip_discard);
    std::vector<std::string> headers;
    headers.reserve(arrays.size());  // libzip keeps pointers into them until it writes
    std::vector<zip_buffer_fragment_t> parts;
    parts.reserve(2 * arrays.size());
    std::int64_t total = 0;
    for (const auto& [name, array] : arrays) {
        headers.push_back(format_npy_header(array->shape()));
        parts.push_back({reinterpret_cast<zip_uint8_t*>(headers.back().data()), headers.back().size()});
        parts.push_back({array->as<zip_uint8_t>(), static_cast<zip_uint64_t>(array->shape().bytes())});
        total += array->shape().bytes();
        zip_source_t* source = zip_source_buffer_fragment(archive, &parts[parts.size() - 2], 2, 0);
        const zip_int64_t index =
            source ? zip_file_add(archive, (std::string(name) + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
        if (index < 0) {
            zip_source_free(source);
            fail(zip_strerror(archive));
        }
        if (zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0)
            fail(zip_strerror(archive));
    }
    std::pair<const Progress&, std::int64_t> telling(progress, total);
    if (progress) zip_register_progress_callback_with_state(archive, 0.01, on_progress, nullptr, &telling);
    if (zip_close(archive) != 0) fail(zip_strerror(archive));
    (void)discarding.release();
    return sink.size;
}

}  // namespace

void save_npz(const std::string& path, std::span<const NamedArray> arrays, const Progress& progress,
              TemporaryWatch watch) {
    if (path != "-") {
        AtomicFile file(path, std::move(watch));
        write_archive(file, arrays, progress);
        return file.commit();
    }
    // Headers are written once the sums of what follows them are known: a pipe cannot go back.
    const int held = nameless_file("stdout");
    AtomicFile archive(held, "a temporary file"), out("-");
    const std::int64_t size = write_archive(archive, arrays, progress);
    std::vector<char> buffer(1 << 20);
    for (std::int64_t done = 0; done < size;) {
        const std::size_t got = archive.read_at(done, buffer.data(), buffer.size());
        out.write(buffer.data(), got);
        done += static_cast<std::int64_t>(got);
    }
    close(held);
}

}  // namespace trifold::io
