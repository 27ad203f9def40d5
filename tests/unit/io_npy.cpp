// SPDX-License-Identifier: BSD-3-Clause
#include "io/npy.hpp"

#include <cstring>
#include <numeric>

#include "io_temporary.hpp"

namespace trifold::io {
namespace {

using test::expect_error;

// A reader of bytes in memory.
ReadBytes reader_of(const std::string& bytes) {
    return [&bytes, at = std::size_t{0}](void* to, std::size_t count) mutable {
        const std::size_t got = std::min(count, bytes.size() - at);
        std::memcpy(to, bytes.data() + at, got);
        at += got;
        return got;
    };
}

std::string npy(const std::string& dict, const std::string& values = {}, int major = 1) {
    std::string bytes("\x93NUMPY");
    bytes += static_cast<char>(major);
    bytes += '\0';
    for (int k = 0; k < (major == 1 ? 2 : 4); ++k) bytes += static_cast<char>(dict.size() >> 8 * k & 0xff);
    return bytes + dict + values;
}

Array read(const std::string& bytes) {
    return read_npy(reader_of(bytes), static_cast<std::int64_t>(bytes.size()), "x.npy");
}

TEST(Npy, EveryVersion) {
    const double values[] = {1, 2, 3};
    const std::string raw(reinterpret_cast<const char*>(values), sizeof values);
    for (const int major : {1, 2, 3}) {
        const Array array = read(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", raw, major));
        EXPECT_EQ(array.shape().extents, std::vector<std::int64_t>{3});
        EXPECT_EQ(array.as<double>()[2], 3);
    }
}

TEST(Npy, KeysInAnyOrderAndBothQuotes) {
    const Array array = read(npy("{\"shape\":(),'descr':\"<f4\",'fortran_order':True}", std::string(4, '\0')));
    EXPECT_EQ(array.dims(), 0);
    EXPECT_EQ(array.dtype(), DType::f32);
}

TEST(Npy, FortranOrderIsAView) {
    std::vector<double> values(6);
    std::iota(values.begin(), values.end(), 0.0);
    const Array array = read(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }",
                                 std::string(reinterpret_cast<char*>(values.data()), 48)));
    const AnyView rows = array.view(0, false);
    EXPECT_EQ(rows.axis, (Dim{2, 1}));
    EXPECT_EQ(rows.batch[0], (Dim{3, 2}));
    const AnyView columns = array.view(-1, false);
    EXPECT_EQ(columns.axis, (Dim{3, 2}));
}

TEST(Npy, HeaderRoundTrip) {
    for (const Shape& shape :
         {Shape{DType::f64, {}, false}, Shape{DType::f32, {7}, false}, Shape{DType::f64, {5, 0, 3}, false},
          Shape{DType::f32, {std::int64_t{1} << 40, 2}, true}}) {
        const std::string text = format_npy_header(shape);
        EXPECT_EQ(text.size() % 64, 0u);
        const NpyHeader back = read_npy_header(reader_of(text), "x");
        EXPECT_EQ(back.shape.extents, shape.extents);
        EXPECT_EQ(back.shape.fortran, shape.fortran);
        EXPECT_EQ(back.shape.dtype, shape.dtype);
        EXPECT_EQ(back.bytes, static_cast<std::int64_t>(text.size()));
    }
}

TEST(Npy, FileRoundTripAndProgress) {
    const test::TemporaryFolder folder;
    Array array(Shape{DType::f32, {3, 4}, true}, "a");
    std::iota(array.as<float>(), array.as<float>() + 12, 0.0f);
    std::int64_t told = 0;
    save_npy(folder / "a.npy", array.shape(), array.data(), [&](std::int64_t done, std::int64_t) { told = done; });
    EXPECT_EQ(told, 48);
    const Array back = load_npy(folder / "a.npy");
    EXPECT_TRUE(back.shape().fortran);
    EXPECT_EQ(std::memcmp(back.data(), array.data(), 48), 0);
    EXPECT_EQ(folder.files(), 1u);
}

TEST(Npy, TypesThatCannotBeRead) {
    const std::pair<const char*, const char*> types[] = {
        {"'>f8'", "big-endian"},   {"'<c16'", "complex"},      {"'<i8'", "integer"},
        {"'|u1'", "integer"},      {"'|b1'", "boolean"},       {"'|S8'", "string"},
        {"'<U3'", "string"},       {"'|O'", "Python objects"}, {"[('a', '<f8')]", "structured"},
        {"'<f2'", "another size"}, {"'<M8[s]'", "a time"},     {"'|V8'", "structured"}};
    for (const auto& [type, kind] : types)
        expect_error(ErrorCode::bad_input, {"x.npy", kind, "astype"}, [&, type = type] {
            read(npy(std::string("{'descr': ") + type + ", 'fortran_order': False, 'shape': (1,), }",
                     std::string(8, '\0')));
        });
}

TEST(Npy, Damage) {
    const std::string good = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", std::string(24, 'x'));
    expect_error(ErrorCode::bad_input, {"empty"}, [] { read(""); });
    expect_error(ErrorCode::bad_input, {"not a .npy array"}, [] { read("lower,diag,upper"); });
    for (std::size_t length = 6; length < good.size(); ++length)
        expect_error(ErrorCode::bad_input, {"x.npy", "truncated"}, [&] { read(good.substr(0, length)); });
    expect_error(ErrorCode::bad_input, {"too long", "25 bytes"}, [&] { read(good + "y"); });
    expect_error(ErrorCode::bad_input, {"version 4"}, [] { read(npy("{}", "", 4)); });
    for (const char* dict : {"", "{", "{}", "{'descr': '<f8'}", "{'descr': '<f8', 'descr': '<f8'}",
                             "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (1"})
        expect_error(ErrorCode::bad_input, {"damaged"}, [&] { read(npy(dict, "12345678")); });
    expect_error(ErrorCode::bad_input, {"-1"},
                 [] { read(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }")); });
    expect_error(ErrorCode::bad_input, {"63 bits"},
                 [] { read(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }")); });
    expect_error(ErrorCode::bad_input, {"63 bits"},
                 [] { read(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }")); });
    expect_error(ErrorCode::bad_input, {"claims"}, [] { read(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12)); });
}

TEST(Npy, WhatIsNotThere) {
    expect_error(ErrorCode::bad_input, {"no/such.npy", "No such file"}, [] { load_npy("no/such.npy"); });
    expect_error(ErrorCode::bad_input, {"/tmp", "directory"}, [] { load_npy("/tmp"); });
    expect_error(ErrorCode::bad_input, {"/dev/zero", "regular file"}, [] { load_npy("/dev/zero"); });
}

TEST(Array, TooLargeIsSaidBeforeAllocating) {
    expect_error(ErrorCode::bad_input, {"huge", "PiB", "available"}, [] {
        Array(Shape{DType::f64, {std::int64_t{1} << 50}, false}, "huge");
    });
}

TEST(Array, BadAxis) {
    const Array array(Shape{DType::f64, {2, 3}, false}, "a");
    expect_error(ErrorCode::usage, {"axis 2", "-2 to 1"}, [&] { array.view(2, false); });
    const Array scalar(Shape{DType::f64, {}, false}, "a");
    expect_error(ErrorCode::usage, {"0 dimensions"}, [&] { scalar.view(0, false); });
}

}  // namespace
}  // namespace trifold::io
