// SPDX-License-Identifier: BSD-3-Clause
#include "targets.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "io/generators/generator.hpp"
#include "io/npz.hpp"
#include "trifold/error.hpp"

namespace trifold::fuzz {
namespace {

void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

// The array must own the bytes that its shape says: a sanitizer sees it where that is not so.
void touch(const io::Array& array) {
    const auto bytes = static_cast<std::size_t>(array.shape().bytes());
    require(array.shape().countable(), "a shape that cannot be counted");
    if (bytes == 0) return;
    volatile char first = array.as<char>()[0], last = array.as<char>()[bytes - 1];
    (void)first, (void)last;
}

template <class Body>
void expect_only(ErrorCode allowed, Body body) {
    try {
        body();
    } catch (const Error& error) {
        require(error.code() == allowed, error.what());
        require(std::strlen(error.what()) < 2000, "a message longer than anybody reads");
    }
}

}  // namespace

void npy(const std::uint8_t* data, std::size_t size) {
    std::size_t at = 0;
    const io::ReadBytes read = [&](void* to, std::size_t bytes) {
        const std::size_t got = std::min(bytes, size - at);
        if (got) std::memcpy(to, data + at, got);
        at += got;
        return got;
    };
    expect_only(ErrorCode::bad_input, [&] {
        const io::Array array = io::read_npy(read, static_cast<std::int64_t>(size), "fuzz.npy");
        require(at == size, "bytes left over");
        touch(array);
        // What was read can be written and read again.
        const std::string header = io::format_npy_header(array.shape());
        std::size_t place = 0;
        const io::ReadBytes again = [&](void* to, std::size_t bytes) {
            const std::size_t got = std::min(bytes, header.size() - place);
            std::memcpy(to, header.data() + place, got);
            place += got;
            return got;
        };
        const io::NpyHeader back = io::read_npy_header(again, "again.npy");
        require(back.shape.extents == array.shape().extents && back.shape.dtype == array.dtype(),
                "a header that changes");
    });
}

void npz(const std::uint8_t* data, std::size_t size) {
    expect_only(ErrorCode::bad_input, [&] {
        const io::NpzReader archive({reinterpret_cast<const std::byte*>(data), size}, "fuzz.npz");
        std::size_t read = 0;
        for (const std::string& name : archive.names()) {
            if (++read > 8) break;
            expect_only(ErrorCode::bad_input, [&] { touch(archive.read(name)); });
            expect_only(ErrorCode::bad_input, [&] { (void)archive.read(name, false); });
        }
    });
}

void generator(const std::uint8_t* data, std::size_t size) {
    expect_only(ErrorCode::usage, [&] {
        const io::GeneratorSpec spec = io::parse_generator({reinterpret_cast<const char*>(data), size});
        const io::Shape shape{DType::f64, spec.extents, false};
        require(shape.countable() && shape.elements() > 0, "a shape that cannot be made");
        if (shape.elements() > 4096) return;
        for (const DType dtype : {DType::f64, DType::f32})
            expect_only(ErrorCode::usage, [&] {
                io::LoadOptions options;
                options.precision = dtype;
                const io::TridiagonalData made = io::generate_tridiagonal(spec, options);
                require(made.first_not_finite().empty(), "a generated value that is not finite");
                require(made.rows() * made.systems() == shape.elements(), "rows that do not add up");
            });
    });
}

}  // namespace trifold::fuzz
