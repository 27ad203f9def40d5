// SPDX-License-Identifier: BSD-3-Clause
// Batches beside the reference: blocks that are not whole, rows with gaps between systems, x past the caches, systems that need pivots among others, in place.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "opencl/loaded.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {
namespace {

struct Shape {
    std::int64_t rows, systems, pitch;  ///< pitch: from system to system, or from row to row where they lie side by side
    bool beside;
};

struct OpenclBatches : testing::Test {
    void SetUp() override {
        device = opencl_device_name();
        if (device.empty()) GTEST_SKIP() << no_device;
    }

    /// Every `bad`-th system has a diagonal of 1e-9; 0: none has.
    template <class T>
    void attempt(Context& context, const Shape& shape, bool in_place, std::int64_t bad, std::int64_t offset) {
        const std::int64_t outer = shape.beside ? shape.rows : shape.systems, size = outer * shape.pitch;
        AlignedBuffer memory[5];
        T* at[5];
        for (int k = 0; k < 5; ++k) memory[k] = AlignedBuffer(static_cast<std::size_t>(size + 64) * sizeof(T)), at[k] = reinterpret_cast<T*>(memory[k].data()) + offset;
        const auto place = [&](std::int64_t row, std::int64_t system) { return shape.beside ? row * shape.pitch + system : system * shape.pitch + row; };
        std::mt19937 random(static_cast<unsigned>(shape.rows * 131 + shape.systems));
        for (std::int64_t i = 0; i < size; ++i)
            for (int k = 0; k < 5; ++k) at[k][i] = k == 1 ? T(3) + T(random() % 1024) / 1024 : k == 4 ? T(-7) : T(random() % 2048) / 1024 - 1;
        for (std::int64_t s = bad / 2; bad && s < shape.systems; s += bad)
            for (std::int64_t r = 0; r < shape.rows; r += 2) at[1][place(r, s)] = T(1e-9);
        const std::vector<T> rhs(at[3], at[3] + size), before(at[4], at[4] + size);
        const auto view = [&](int k) { return shape.beside ? View<const T>::interleaved(at[k], shape.rows, shape.systems, shape.pitch) : View<const T>::contiguous(at[k], shape.systems, shape.rows, shape.pitch); };
        T* const x = in_place ? at[3] : at[4];
        tridiagonal::Problem problem;
        problem.matrix = {view(0), view(1), view(2)}, problem.rhs = view(3);
        problem.x = shape.beside ? View<T>::interleaved(x, shape.rows, shape.systems, shape.pitch) : View<T>::contiguous(x, shape.systems, shape.rows, shape.pitch);
        Queue queue(context, device);
        const Outcome outcome = tridiagonal::solve(queue, problem, {});
        const std::string what = std::to_string(shape.rows) + " x " + std::to_string(shape.systems) + ", pitch " + std::to_string(shape.pitch) + (shape.beside ? ", systems side by side" : "") + (in_place ? ", in place" : "") +
                                 (bad ? ", some pivoted" : "") + ", f" + std::to_string(8 * sizeof(T)) + ", offset " + std::to_string(offset);
        ASSERT_TRUE(outcome.ok()) << what;
        // A GPU's kernels look at residuals, and these may be small without pivots.
        if (bad && shape.rows > 1 && shape.systems > bad && queue.memory().kind == MemoryKind::host) {
            EXPECT_GT(outcome.rescued, 0) << what;
        }
        std::vector<bool> ours(static_cast<std::size_t>(size));
        for (std::int64_t s = 0; s < shape.systems; ++s) {
            double most = 0, off = 0, given = 0;
            for (std::int64_t r = 0; r < shape.rows; ++r) {
                const auto here = [&](int k) { return static_cast<double>(at[k][place(r, s)]); };
                const auto of = [&](std::int64_t row) { return row >= 0 && row < shape.rows ? static_cast<double>(x[place(row, s)]) : 0.0; };
                const double b = static_cast<double>(rhs[static_cast<std::size_t>(place(r, s))]);
                most = std::max(most, std::abs(of(r))), given = std::max(given, std::abs(b));
                off = std::max(off, std::abs(b - here(1) * of(r) - (r > 0 ? here(0) * of(r - 1) : 0) - (r + 1 < shape.rows ? here(2) * of(r + 1) : 0)));
                ours[static_cast<std::size_t>(place(r, s))] = true;
            }
            ASSERT_LE(off, 32 * (sizeof(T) == 8 ? 0x1p-53 : 0x1p-24) * (6 * most + given)) << what << ", system " << s;
        }
        // What lies between systems is nobody's.
        for (std::int64_t i = 0; i < size; ++i)
            if (!ours[static_cast<std::size_t>(i)]) {
                ASSERT_EQ(x[i], in_place ? rhs[static_cast<std::size_t>(i)] : before[static_cast<std::size_t>(i)]) << what << ", element " << i;
            }
    }

    void all(Context& context, const Shape& shape, bool in_place, std::int64_t bad, std::int64_t offset = 0) {
        attempt<double>(context, shape, in_place, bad, offset);
        attempt<float>(context, shape, in_place, bad, offset);
    }

    std::string device;
};

TEST_F(OpenclBatches, OfAnyWidth) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    for (const bool beside : {false, true})
        for (const std::int64_t rows : {1, 2, 9, 64, 70})
            for (const std::int64_t systems : {1, 7, 16, 17, 31, 33, 47, 65, 100, 129, 200}) {
                const std::int64_t tight = beside ? systems : rows;
                all(context, {rows, systems, tight, beside}, systems % 3 == 0, 0);
                all(context, {rows, systems, (tight + 15) / 16 * 16 + 16, beside}, systems % 2 == 0, systems > 20 ? 13 : 0, systems % 5);
            }
}

TEST_F(OpenclBatches, LongerThanIsAskedForAtOnce) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    for (const bool beside : {false, true})
        for (const std::int64_t rows : {511, 512, 513, 1700}) all(context, {rows, 150, beside ? 150 : rows, beside}, rows % 2 == 0, 40);
}

// Where several groups of a GPU have a column, and stay for the next ones.
TEST_F(OpenclBatches, OfColumnsThatGroupsShare) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    for (const std::int64_t rows : {129, 200, 256, 257, 300, 384, 511, 512})
        for (const std::int64_t systems : {5, 32, 61, 132}) all(context, {rows, systems, (systems + 3) / 4 * 4, true}, rows % 2 == 0 && systems != 132, systems == 61 ? 7 : 0, 0);
    for (const std::int64_t rows : {131, 258, 512}) all(context, {rows, 9000, 9008, true}, rows == 131, 101, 0);
}

/// The middle axis of three; every `bad`-th system needs pivots.
template <class T>
void along_the_middle(Context& context, const std::string& device, std::int64_t outer, std::int64_t rows, std::int64_t inner, std::int64_t bad) {
    const std::int64_t shape[] = {outer, rows, inner};
    const auto size = static_cast<std::size_t>(outer * rows * inner);
    std::vector<T> at[5];
    std::mt19937 random(static_cast<unsigned>(rows));
    for (int k = 0; k < 5; ++k) {
        at[k].resize(size);
        for (T& v : at[k]) v = k == 1 ? T(3) + T(random() % 1024) / 1024 : T(random() % 2048) / 1024 - 1;
    }
    const auto place = [&](std::int64_t o, std::int64_t r, std::int64_t i) { return static_cast<std::size_t>((o * rows + r) * inner + i); };
    for (std::int64_t s = bad / 2; bad && s < outer * inner; s += bad)
        for (std::int64_t r = 0; r < rows; r += 2) at[1][place(s / inner, r, s % inner)] = T(1e-9);
    tridiagonal::Problem problem;
    const auto view = [&](int k) { return View<const T>::along_axis(at[k].data(), shape, 1); };
    problem.matrix = {view(0), view(1), view(2)}, problem.rhs = view(3), problem.x = View<T>::along_axis(at[4].data(), shape, 1);
    Queue queue(context, device);
    ASSERT_TRUE(tridiagonal::solve(queue, problem, {}).ok());
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < inner; ++i) {
            double most = 0, off = 0;
            for (std::int64_t r = 0; r < rows; ++r) {
                const auto of = [&](std::int64_t row) { return row >= 0 && row < rows ? static_cast<double>(at[4][place(o, row, i)]) : 0.0; };
                const auto here = [&](int k) { return static_cast<double>(at[k][place(o, r, i)]); };
                most = std::max(most, std::abs(of(r)));
                off = std::max(off, std::abs(here(3) - here(1) * of(r) - here(0) * of(r - 1) - here(2) * of(r + 1)));
            }
            ASSERT_LE(off, 32 * (sizeof(T) == 8 ? 0x1p-53 : 0x1p-24) * (6 * most + 1)) << outer << " x " << rows << " x " << inner << ", f" << 8 * sizeof(T) << ", " << o << ", " << i;
        }
}

TEST_F(OpenclBatches, OfColumnsAlongTheMiddleAxis) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    for (const std::int64_t rows : {64, 130, 256, 300, 512}) {
        along_the_middle<float>(context, device, 7, rows, 100, rows == 300 ? 11 : 0), along_the_middle<double>(context, device, 7, rows, 100, rows == 300 ? 11 : 0);
        along_the_middle<float>(context, device, 41, rows, 160, 97), along_the_middle<double>(context, device, 3, rows, 31, 13);
    }
}

// More than 24 MiB: x is stored past the caches where its rows begin on lines.
TEST_F(OpenclBatches, ThatNoCacheHolds) {
    Context context({.threads = 2, .profile_path = "none", .log = {}});
    for (const bool beside : {false, true})
        for (const bool in_place : {false, true}) {
            attempt<float>(context, {96, 14000, beside ? 14016 : 96, beside}, in_place, 301, 0);
            all(context, {96, 7000, beside ? 7008 : 96, beside}, in_place, in_place ? 0 : 301);
            all(context, {99, 7000, beside ? 7001 : 112, beside}, in_place, in_place ? 301 : 0);
        }
}

}  // namespace
}  // namespace trifold::tests
