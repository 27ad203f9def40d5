// SPDX-License-Identifier: BSD-3-Clause
#include <omp.h>

#include <cmath>
#include <cstring>

#include "io/generators/generator.hpp"
#include "io_temporary.hpp"

namespace trifold::io {
namespace {

using test::expect_error;

TridiagonalData make(const std::string& text, LoadOptions options = {}) {
    return load_tridiagonal(text, options);
}

bool same(const Array& a, const Array& b) {
    return a.shape().bytes() == b.shape().bytes() &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.shape().bytes())) == 0;
}

bool same(const TridiagonalData& a, const TridiagonalData& b) {
    return same(a.lower, b.lower) && same(a.diag, b.diag) && same(a.upper, b.upper) && same(a.rhs, b.rhs);
}

// The formula, row by row, with conductivities taken back from the faces inside the layers.
TEST(Diffusion, IsTheImplicitStepThatItSays) {
    const std::int64_t n = 1003;
    const double number = 10, contrast = 1e4;
    const TridiagonalData data = make("gen:diffusion?rows=1003&number=10&contrast=1e4&seed=3");
    const double *lower = data.lower.as<double>(), *diag = data.diag.as<double>(), *upper = data.upper.as<double>();
    std::vector<double> k(n);
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t first = i / 8 * 8;
        k[i] = -upper[first] / number;  // a face inside the layer: harmonic mean of equals
    }
    double logs = 0, least = 1e300, most = 0;
    const auto face = [&](std::int64_t i) { return number * 2 * k[i] * k[i + 1] / (k[i] + k[i + 1]); };
    for (std::int64_t i = 0; i < n; ++i) {
        const double up = i > 0 ? face(i - 1) : 2 * number * k[0], down = i + 1 < n ? face(i) : 2 * number * k[n - 1];
        EXPECT_NEAR(lower[i], i > 0 ? -up : 0, 1e-14 * up) << i;
        EXPECT_NEAR(upper[i], i + 1 < n ? -down : 0, 1e-14 * down) << i;
        EXPECT_NEAR(diag[i], 1 + up + down, 1e-14 * (1 + up + down)) << i;
        EXPECT_GE(data.rhs.as<double>()[i], 0);
        EXPECT_LT(data.rhs.as<double>()[i], 1);
        logs += std::log(k[i]), least = std::min(least, k[i]), most = std::max(most, k[i]);
    }
    EXPECT_GE(least, 1 / std::sqrt(contrast) * (1 - 1e-12));
    EXPECT_LE(most, std::sqrt(contrast) * (1 + 1e-12));
    EXPECT_GT(most / least, contrast / 4);
    // Uniform over ±ln(contrast)/2 has deviation ln(contrast)/√12; 126 layers.
    EXPECT_LT(std::fabs(logs / static_cast<double>(n)), 4 * std::log(contrast) / std::sqrt(12.0 * 126));
}

TEST(Generators, EveryOneIsFiniteSymmetricInThreadsAndClosed) {
    for (const GeneratorKind* kind : generator_kinds()) {
        const std::string text = "gen:" + std::string(kind->name) + "?rows=5000";
        omp_set_num_threads(1);
        const TridiagonalData one = make(text);
        omp_set_num_threads(3);
        const TridiagonalData three = make(text);
        EXPECT_TRUE(same(one, three)) << text;
        EXPECT_EQ(one.first_not_finite(), "") << text;
        EXPECT_EQ(one.lower.as<double>()[0], 0) << text;
        EXPECT_EQ(one.upper.as<double>()[4999], 0) << text;
        EXPECT_FALSE(kind->doc.empty());
        for (const std::int64_t rows : {1, 2, 3})
            EXPECT_EQ(make("gen:" + std::string(kind->name) + "?rows=" + std::to_string(rows)).first_not_finite(), "")
                << text;
    }
}

TEST(Generators, AnyRowsCanBeMadeAlone) {
    for (const GeneratorKind* kind : generator_kinds()) {
        GeneratorSpec spec = parse_generator("gen:" + std::string(kind->name));
        const std::int64_t n = 333;
        std::vector<double> whole[4], part[4];
        for (auto* arrays : {&whole, &part})
            for (auto& array : *arrays) array.assign(n, 0);
        const StreamKey key{42};
        const auto tile = [&](std::vector<double>* a, std::int64_t first, std::int64_t count) {
            const Tile t{n, first, count, key, &a[0][first], &a[1][first], &a[2][first], &a[3][first]};
            kind->fill(spec.values, t);
        };
        tile(whole, 0, n);
        for (std::int64_t first = 0, step = 1; first < n; first += step, step = step % 13 + 1)
            tile(part, first, std::min(step, n - first));
        for (int k = 0; k < 3; ++k) EXPECT_EQ(whole[k], part[k]) << kind->name << " " << k;
    }
}

TEST(Generators, LayoutDoesNotChangeAValue) {
    for (const char* name : {"gen:diffusion", "gen:random", "gen:dominant"}) {
        const std::string start = std::string(name) + "?seed=5&shape=";
        const TridiagonalData along = make(start + "3x70x45&axis=-1"), middle = make(start + "3x45x70&axis=1"),
                              front = make(start + "45x3x70&axis=0");
        for (std::int64_t a = 0; a < 3; ++a)
            for (std::int64_t b = 0; b < 70; ++b)
                for (std::int64_t i = 0; i < 45; ++i)
                    for (const auto array : {&TridiagonalData::lower, &TridiagonalData::diag, &TridiagonalData::upper,
                                             &TridiagonalData::rhs}) {
                        const double value = (along.*array).as<double>()[(a * 70 + b) * 45 + i];
                        ASSERT_EQ(value, (middle.*array).as<double>()[(a * 45 + i) * 70 + b]) << name;
                        ASSERT_EQ(value, (front.*array).as<double>()[(i * 3 + a) * 70 + b]) << name;
                    }
    }
}

TEST(Generators, DominantRowsHaveTheirRatioAndScale) {
    const TridiagonalData data = make("gen:dominant?rows=1000&ratio=1.5&least=0.5");
    const double *lower = data.lower.as<double>(), *diag = data.diag.as<double>(), *upper = data.upper.as<double>();
    int negative = 0;
    for (int i = 1; i < 999; ++i) {
        EXPECT_GE(std::min(std::fabs(lower[i]), std::fabs(upper[i])), 0.5);
        EXPECT_LE(std::max(std::fabs(lower[i]), std::fabs(upper[i])), 1);
        EXPECT_EQ(diag[i], 1.5 * (std::fabs(lower[i]) + std::fabs(upper[i])));
        negative += lower[i] < 0;
    }
    EXPECT_NEAR(negative, 500, 80);
}

TEST(Generators, SystemsDifferAndSeedsDo) {
    const TridiagonalData two = make("gen:random?rows=10&systems=2");
    EXPECT_NE(two.diag.as<double>()[0], two.diag.as<double>()[10]);
    EXPECT_FALSE(same(make("gen:random?seed=1"), make("gen:random?seed=2")));
}

TEST(Generators, SharedAndScalarMatrices) {
    const TridiagonalData own = make("gen:dominant?rows=9&systems=4"),
                          shared = make("gen:dominant?rows=9&systems=4&matrix=shared");
    EXPECT_EQ(shared.diag.dims(), 1);
    EXPECT_EQ(std::memcmp(shared.diag.data(), own.diag.data(), 72), 0);
    EXPECT_EQ(shared.rhs.shape().text(), "f64[4, 9]");
    const TridiagonalData scalar = make("gen:toeplitz?rows=9&lower=-3&diag=7&upper=2&matrix=scalar");
    EXPECT_EQ(*scalar.lower.as<double>(), -3);
    EXPECT_EQ(*scalar.upper.as<double>(), 2);
    expect_error(ErrorCode::usage, {"scalar"}, [] { make("gen:random?matrix=scalar"); });
}

TEST(Generators, ShapesWithoutValuesTakeNoMemory) {
    const TridiagonalData data = make("gen:poisson?rows=1e12", {.values = false});
    EXPECT_EQ(data.rows(), 1000000000000);
    expect_error(ErrorCode::bad_input, {"gen:poisson", "TiB", "available"}, [] { make("gen:poisson?rows=1e12"); });
    expect_error(ErrorCode::bad_input, {"PiB", "address"}, [] { make("gen:poisson?rows=9e15", {.values = false}); });
}

TEST(Generators, Zoo) {
    EXPECT_TRUE(same(make("gen:zoo?number=3"), make("gen:lesp")));
    EXPECT_TRUE(same(make("gen:zoo?number=14"), make("gen:random?diag=1e-8")));
    EXPECT_TRUE(same(make("gen:zoo?number=18"), make("gen:toeplitz")));
    expect_error(ErrorCode::usage, {"8 to 11"}, [] { make("gen:zoo?number=9"); });
}

TEST(Generators, F32IsTheRoundedF64) {
    const TridiagonalData wide = make("gen:random?rows=100"),
                          narrow = make("gen:random?rows=100", {.precision = DType::f32});
    for (int i = 0; i < 100; ++i) EXPECT_EQ(static_cast<float>(wide.diag.as<double>()[i]), narrow.diag.as<float>()[i]);
    expect_error(ErrorCode::usage, {"gen:graded", "f32", "--precision f64"},
                 [] { make("gen:graded", {.precision = DType::f32}); });
}

TEST(GeneratorText, WhatIsWrongIsNamed) {
    const std::pair<const char*, std::vector<std::string>> cases[] = {
        {"gen:", {"no generator"}},
        {"gen:difusion", {"did you mean 'diffusion'"}},
        {"gen:diffusion?numbr=1", {"'numbr'", "did you mean 'number'"}},
        {"gen:diffusion?number", {"key=value"}},
        {"gen:diffusion?number=ten", {"number = 'ten'", "not a number"}},
        {"gen:diffusion?number=1x", {"not a number"}},
        {"gen:diffusion?number=", {"not a number"}},
        {"gen:diffusion?number=nan", {"out of range"}},
        {"gen:diffusion?number=-1", {"out of range"}},
        {"gen:diffusion?number=1e999", {"out of range"}},
        {"gen:diffusion?rows=1.5", {"not an integer"}},
        {"gen:diffusion?rows=0", {"out of range", "from 1"}},
        {"gen:diffusion?rows=99999999999999999999", {"out of range"}},
        {"gen:diffusion?rows=5&rows=6", {"'rows' is given twice"}},
        {"gen:diffusion?rows=9e15&systems=9e15", {"63 bits"}},
        {"gen:diffusion?shape=", {"list of extents"}},
        {"gen:diffusion?shape=2xx2", {"list of extents"}},
        {"gen:diffusion?shape=2x2x2x2x2x2", {"list of extents"}},
        {"gen:diffusion?shape=2x2&axis=2", {"axis 2"}},
        {"gen:diffusion?axis=0", {"without shape"}},
        {"gen:diffusion?shape=2x2&rows=4", {"both shape"}},
        {"gen:toeplitz?matrix=scaler", {"did you mean 'scalar'"}},
    };
    for (const auto& [text, parts] : cases)
        expect_error(ErrorCode::usage, parts, [text = text] { parse_generator(text); });
    expect_error(ErrorCode::usage, {"contradicts"}, [] { make("gen:random?shape=2x3&axis=0", {.axis = 1}); });
    EXPECT_EQ(make("gen:random?shape=2x3", {.axis = 0}).rows(), 2);
}

}  // namespace
}  // namespace trifold::io
