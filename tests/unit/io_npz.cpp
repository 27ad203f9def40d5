// SPDX-License-Identifier: BSD-3-Clause
#include "io/npz.hpp"

#include <cstring>
#include <numeric>

#include "io/tridiagonal_data.hpp"
#include "io_temporary.hpp"

namespace trifold::io {
namespace {

using test::expect_error;

Array filled(DType dtype, std::vector<std::int64_t> extents, double start = 1) {
    Array array(Shape{dtype, std::move(extents), false}, "array");
    for (std::int64_t i = 0; i < array.shape().elements(); ++i) {
        if (dtype == DType::f32)
            array.as<float>()[i] = static_cast<float>(start + static_cast<double>(i));
        else
            array.as<double>()[i] = start + static_cast<double>(i);
    }
    return array;
}

struct Problem {
    Array lower, diag, upper, rhs;
    std::string save(const test::TemporaryFolder& folder) const {
        const NamedArray arrays[] = {{"lower", &lower}, {"diag", &diag}, {"upper", &upper}, {"rhs", &rhs}};
        save_npz(folder / "p.npz", arrays);
        return folder / "p.npz";
    }
};

Problem plain(DType dtype = DType::f64, std::vector<std::int64_t> extents = {5}) {
    return {filled(dtype, extents), filled(dtype, extents, 9), filled(dtype, extents), filled(dtype, extents)};
}

TEST(Npz, RoundTrip) {
    const test::TemporaryFolder folder;
    const std::string path = plain(DType::f32, {3, 5}).save(folder);
    EXPECT_EQ(folder.files(), 1u);
    const NpzReader archive(path);
    EXPECT_EQ(archive.names(), (std::vector<std::string>{"lower", "diag", "upper", "rhs"}));
    const Array diag = archive.read("diag");
    EXPECT_EQ(diag.shape().text(), "f32[3, 5]");
    EXPECT_EQ(diag.as<float>()[14], 23);
    const TridiagonalData data = load_tridiagonal(path);
    EXPECT_EQ(data.rows(), 5);
    EXPECT_EQ(data.systems(), 3);
    EXPECT_TRUE(data.notes.empty());
}

TEST(Npz, EveryTruncationIsSeen) {
    const test::TemporaryFolder folder;
    const std::string bytes = test::read_text(plain().save(folder));
    for (std::size_t length = 0; length < bytes.size(); length += 7) {
        test::write_text(folder / "t.npz", bytes.substr(0, length));
        expect_error(ErrorCode::bad_input, {"t.npz"}, [&] { load_tridiagonal(folder / "t.npz"); });
    }
}

TEST(Npz, AFlippedBitInAValueIsSeen) {
    const test::TemporaryFolder folder;
    std::string bytes = test::read_text(plain().save(folder));
    const double nine = 9;
    const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&nine), 8));
    ASSERT_NE(at, std::string::npos);
    bytes[at + 6] = static_cast<char>(bytes[at + 6] ^ 1);
    test::write_text(folder / "t.npz", bytes);
    expect_error(ErrorCode::bad_input, {"t.npz", "'diag'", "CRC"}, [&] { load_tridiagonal(folder / "t.npz"); });
}

TEST(Npz, WhatIsMissingOrTooMuch) {
    const test::TemporaryFolder folder;
    const Problem p = plain();
    const NamedArray three[] = {{"lower", &p.lower}, {"diag", &p.diag}, {"uper", &p.upper}, {"rhs", &p.rhs}};
    save_npz(folder / "three.npz", three);
    expect_error(ErrorCode::bad_input, {"three.npz", "'upper'", "missing", "did you mean 'uper'"},
                 [&] { load_tridiagonal(folder / "three.npz"); });
    const NamedArray five[] = {
        {"lower", &p.lower}, {"diag", &p.diag}, {"upper", &p.upper}, {"rhs", &p.rhs}, {"time", &p.rhs}};
    save_npz(folder / "five.npz", five);
    const TridiagonalData data = load_tridiagonal(folder / "five.npz");
    ASSERT_EQ(data.notes.size(), 1u);
    EXPECT_NE(data.notes[0].find("time"), std::string::npos);
    test::write_text(folder / "x.npy", "");
    expect_error(ErrorCode::bad_input, {"x.npy", "numpy.savez"}, [&] { load_tridiagonal(folder / "x.npy"); });
    expect_error(ErrorCode::bad_input, {"none.npy", "No such file"}, [] { load_tridiagonal("none.npy"); });
    expect_error(ErrorCode::bad_input, {"none.npz", "No such file"}, [] { load_tridiagonal("none.npz"); });
}

TEST(Npz, ShapesThatFit) {
    const test::TemporaryFolder folder;
    Problem p = plain(DType::f64, {4, 5});
    p.lower = filled(DType::f64, {4, 4});    // packed
    p.diag = filled(DType::f64, {1, 5}, 9);  // repeated
    p.upper = filled(DType::f64, {5});       // shared
    const TridiagonalData data = load_tridiagonal(p.save(folder));
    const Array x(data.rhs.shape(), "x");
    const tridiagonal::Problem problem = data.problem(x);
    EXPECT_EQ(std::get<AnyView>(problem.matrix.lower).axis.extent, 4);
    EXPECT_EQ(std::get<AnyView>(problem.matrix.diag).batch[0], (Dim{4, 0}));
    EXPECT_EQ(std::get<AnyView>(problem.matrix.upper).batch_dims, 0);
    p.diag = filled(DType::f64, {}, 9);  // a number
    const TridiagonalData scalar = load_tridiagonal(p.save(folder), {.values = false});
    EXPECT_EQ(std::get<double>(scalar.problem(x).matrix.diag), 9);
}

TEST(Npz, ShapesThatDoNotFit) {
    const test::TemporaryFolder folder;
    Problem p = plain(DType::f64, {4, 5});
    p.diag = filled(DType::f64, {4});
    expect_error(ErrorCode::bad_input, {"'diag'", "f64[4]", "f64[4, 5]", "--axis 0"},
                 [&] { load_tridiagonal(p.save(folder)); });
    p.diag = filled(DType::f64, {5, 4});
    expect_error(ErrorCode::bad_input, {"'diag'", "f64[5, 4]"}, [&] { load_tridiagonal(p.save(folder)); });
    p.diag = filled(DType::f32, {4, 5});
    expect_error(ErrorCode::bad_input, {"'diag'", "f32", "--precision"}, [&] { load_tridiagonal(p.save(folder)); });
    const TridiagonalData data = load_tridiagonal(p.save(folder), {.precision = DType::f32});
    EXPECT_EQ(data.rhs.dtype(), DType::f32);
    EXPECT_EQ(data.notes.size(), 3u);
    expect_error(ErrorCode::usage, {"--axis 2"},
                 [&] { load_tridiagonal(p.save(folder), {.axis = 2, .precision = DType::f32}); });
    p.rhs = filled(DType::f64, {1, 1, 1, 1, 1, 1});
    expect_error(ErrorCode::bad_input, {"'rhs'", "6 dimensions"}, [&] { load_tridiagonal(p.save(folder)); });
}

TEST(Npz, NotFiniteIsNamed) {
    const test::TemporaryFolder folder;
    Problem p = plain(DType::f64, {4, 5});
    p.lower.as<double>()[10] = std::numeric_limits<double>::quiet_NaN();  // [2, 0]: never read
    EXPECT_EQ(load_tridiagonal(p.save(folder)).first_not_finite(), "");
    p.upper.as<double>()[13] = -std::numeric_limits<double>::infinity();
    EXPECT_EQ(load_tridiagonal(p.save(folder)).first_not_finite(), "array 'upper', element [2, 3] is -inf");
    p.diag.as<double>()[7] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(load_tridiagonal(p.save(folder)).first_not_finite(), "array 'diag', element [1, 2] is nan");
}

TEST(Npz, TooLargeForF32) {
    const test::TemporaryFolder folder;
    Problem p = plain();
    p.rhs.as<double>()[3] = 1e39;
    expect_error(ErrorCode::bad_input, {"'rhs'", "element 3", "f32"},
                 [&] { load_tridiagonal(p.save(folder), {.precision = DType::f32}); });
}

TEST(Npz, FailedWriteKeepsTheOldFile) {
    const test::TemporaryFolder folder;
    const std::string path = plain().save(folder);
    const std::string before = test::read_text(path);
    const Problem p = plain();
    const NamedArray arrays[] = {{"lower", &p.lower}};
    // Thrown from within the archive's writing.
    EXPECT_THROW(save_npz(path, arrays, [](std::int64_t, std::int64_t) { throw std::runtime_error("stop"); }),
                 std::runtime_error);
    EXPECT_EQ(test::read_text(path), before);
    EXPECT_EQ(folder.files(), 1u);
}

}  // namespace
}  // namespace trifold::io
