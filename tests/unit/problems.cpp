// SPDX-License-Identifier: BSD-3-Clause
// Problem → System: packing, transposition, merging of levels, aliasing and what misuse is answered with.
#include "problems/tridiagonal/normalise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "problems/tridiagonal/overlap.hpp"

namespace trifold::tridiagonal {
namespace {

using Doubles = std::vector<double>;

Doubles counted(std::size_t n, double first) {
    Doubles values(n);
    std::iota(values.begin(), values.end(), first);
    return values;
}

double at(const Operand& operand, std::int64_t row) { return static_cast<const double*>(operand.data)[row * operand.row_stride]; }

std::string misuse(const Problem& problem) {
    try {
        normalise(problem);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        return error.what();
    }
    return "";
}

struct Single {
    Doubles lower = counted(5, 10), diag = counted(5, 20), upper = counted(5, 30), rhs = counted(5, 40), x = Doubles(5);
    Problem problem;
    Single() {
        problem.matrix.lower = View<const double>::rows(lower);
        problem.matrix.diag = View<const double>::rows(diag);
        problem.matrix.upper = View<const double>::rows(upper);
        problem.rhs = View<const double>::rows(rhs);
        problem.x = View<double>::rows(x);
    }
};

TEST(Normalise, OneSystemHasNoLevels) {
    Single s;
    const System system = normalise(s.problem);
    EXPECT_EQ(system.rows, 5);
    EXPECT_EQ(system.levels, 0);
    EXPECT_EQ(system.systems(), 1);
    EXPECT_FALSE(system.in_place);
    EXPECT_EQ(at(system.lower, 1), 11);
    EXPECT_EQ(at(system.upper, 3), 33);
    EXPECT_STREQ(layout_name(system), "contiguous");
    EXPECT_EQ(needed_bytes(system), 5 * 5 * 8);
}

TEST(Normalise, PackedDiagonalsReadTheSameEntries) {
    Single s;
    s.problem.matrix.lower = View<const double>::rows(std::span<const double>(s.lower).subspan(1));
    s.problem.matrix.upper = View<const double>::rows(std::span<const double>(s.upper).first(4));
    const System system = normalise(s.problem);
    for (int i = 1; i < 5; ++i) EXPECT_EQ(at(system.lower, i), s.lower[i]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(at(system.upper, i), s.upper[i]);
}

TEST(Normalise, TransposedSwapsAndShifts) {
    Single s;
    s.problem.matrix.transposed = true;
    System system = normalise(s.problem);
    for (int i = 1; i < 5; ++i) EXPECT_EQ(at(system.lower, i), s.upper[i - 1]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(at(system.upper, i), s.lower[i + 1]);
    s.problem.matrix.periodic = true;
    system = normalise(s.problem);
    EXPECT_EQ(at(system.top_right, 0), s.upper[4]);   // A[n-1][0] of the plain matrix
    EXPECT_EQ(at(system.bottom_left, 0), s.lower[0]); // A[0][n-1]
    s.problem.matrix.transposed = false;
    system = normalise(s.problem);
    EXPECT_EQ(at(system.top_right, 0), s.lower[0]);
    EXPECT_EQ(at(system.bottom_left, 0), s.upper[4]);
}

TEST(Normalise, TransposedPackedStillFindsItsRows) {
    Single s;
    s.problem.matrix.transposed = true;
    s.problem.matrix.lower = View<const double>::rows(std::span<const double>(s.lower).subspan(1));
    s.problem.matrix.upper = View<const double>::rows(std::span<const double>(s.upper).first(4));
    const System system = normalise(s.problem);
    for (int i = 1; i < 5; ++i) EXPECT_EQ(at(system.lower, i), s.upper[i - 1]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(at(system.upper, i), s.lower[i + 1]);
}

Problem grid(Doubles& storage, std::span<const std::int64_t> shape, int axis) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    storage.assign(static_cast<std::size_t>(5 * count), 1.0);
    Problem problem;
    problem.matrix.lower = View<const double>::along_axis(storage.data(), shape, axis);
    problem.matrix.diag = View<const double>::along_axis(storage.data() + count, shape, axis);
    problem.matrix.upper = View<const double>::along_axis(storage.data() + 2 * count, shape, axis);
    problem.rhs = View<const double>::along_axis(storage.data() + 3 * count, shape, axis);
    problem.x = View<double>::along_axis(storage.data() + 4 * count, shape, axis);
    return problem;
}

TEST(Normalise, LevelsMergeWhereEveryOperandAllowsIt) {
    Doubles storage;
    const std::int64_t shape[] = {2, 3, 4, 5};
    System system = normalise(grid(storage, shape, 3));  // contiguous: one level of 24
    EXPECT_EQ(system.levels, 1);
    EXPECT_EQ(system.extent[0], 24);
    EXPECT_EQ(system.rhs.level_stride[0], 5);
    system = normalise(grid(storage, shape, 0));  // interleaved: one level of 60 with stride 1
    EXPECT_EQ(system.levels, 1);
    EXPECT_EQ(system.extent[0], 60);
    EXPECT_STREQ(layout_name(system), "interleaved");
    system = normalise(grid(storage, shape, 1));  // outer 2, inner 20
    EXPECT_EQ(system.levels, 2);
    EXPECT_EQ(system.extent[0], 2);
    EXPECT_EQ(system.extent[1], 20);
    Problem shared = grid(storage, shape, 1);
    shared.matrix.diag = View<const double>::strided(storage.data(), {3, 20}, std::vector<Dim>{{2, 0}, {4, 0}, {5, 1}});
    system = normalise(shared);  // 4 × 5 no longer merge: diag is shared over the 4
    EXPECT_EQ(system.levels, 3);
    EXPECT_EQ(system.diag.level_stride[0], 0);
    EXPECT_EQ(system.diag.level_stride[1], 0);
    EXPECT_EQ(system.diag.level_stride[2], 1);
}

TEST(Normalise, EverySystemKeepsItsNumberAndItsElements) {
    std::mt19937_64 random(7);
    for (int draw = 0; draw < 200; ++draw) {
        Doubles storage;
        std::vector<std::int64_t> shape(1 + random() % 5);
        for (auto& extent : shape) extent = 1 + static_cast<std::int64_t>(random() % 4);
        const int axis = static_cast<int>(random() % shape.size());
        Problem problem = grid(storage, shape, axis);
        if (random() % 2 && problem.rhs.batch_dims > 1) {  // another order of the dimensions
            for (AnyView* view : {&problem.rhs, &problem.x, &std::get<AnyView>(problem.matrix.lower), &std::get<AnyView>(problem.matrix.diag),
                                  &std::get<AnyView>(problem.matrix.upper)})
                std::swap(view->batch[0], view->batch[1]);
        }
        const System system = normalise(problem);
        const std::int64_t systems = problem.rhs.systems();
        ASSERT_EQ(system.systems(), systems);
        std::set<std::int64_t> numbers;
        for (std::int64_t k = 0; k < systems; ++k) {
            const System line = system_at(system, k);
            numbers.insert(line.number);
            std::int64_t rest = line.number, offset = 0;  // the user's own arithmetic
            for (int d = problem.rhs.batch_dims - 1; d >= 0; --d) {
                offset += rest % problem.rhs.batch[d].extent * problem.rhs.batch[d].stride;
                rest /= problem.rhs.batch[d].extent;
            }
            EXPECT_EQ(line.rhs.data, static_cast<double*>(problem.rhs.data) + offset);
            EXPECT_EQ(line.x.data, static_cast<double*>(problem.x.data) + offset);
            EXPECT_EQ(line.levels, 0);
        }
        EXPECT_EQ(static_cast<std::int64_t>(numbers.size()), systems);
        ASSERT_EQ(*numbers.rbegin(), systems - 1);
    }
}

TEST(Normalise, InPlaceIsSeen) {
    Single s;
    s.problem.x = View<double>::rows(s.rhs);
    EXPECT_TRUE(normalise(s.problem).in_place);
    s.problem.accumulate = true;
    EXPECT_NE(misuse(s.problem).find("adds to x"), std::string::npos);
}

TEST(Normalise, AFactorHasNoRightHandSide) {
    Single s;
    try {
        normalise(s.problem.matrix, 7, {}, DType::f64);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).rfind("lower: 5 rows where the factor has 7 (give n rows", 0), 0u) << error.what();
    }
}

TEST(Normalise, MisuseNamesTheArray) {
    const auto says = [](auto change, const char* array, const char* words) {
        Single s;
        change(s);
        const std::string text = misuse(s.problem);
        EXPECT_EQ(text.rfind(array, 0), 0u) << text;
        EXPECT_NE(text.find(words), std::string::npos) << text;
    };
    says([](Single& s) { s.problem.matrix.diag = View<const double>::rows(std::span<const double>(s.diag).first(3)); }, "diag", "3 rows where rhs has 5");
    says([](Single& s) { s.problem.matrix.lower = View<const double>::rows(std::span<const double>(s.lower).first(3)); }, "lower", "n-1");
    says([](Single& s) { s.problem.x = View<double>::rows(std::span<double>(s.x).first(4)); }, "x", "shape");
    says([](Single& s) { s.problem.x = View<const double>::rows(s.x); }, "x", "read-only");
    says([](Single& s) { s.problem.x = {}; }, "x", "no view was given");
    says([](Single& s) { s.problem.rhs.data = nullptr; }, "rhs", "null");
    says([](Single& s) { s.problem.rhs.axis.extent = -5; }, "rhs", "negative");
    says([](Single& s) { s.problem.x.axis.stride = 0; }, "x", "same memory");
    says([](Single& s) { s.problem.x.data = s.rhs.data() + 1, s.problem.x.axis.extent = s.problem.rhs.axis.extent = 4,
         s.problem.matrix = {1.0, 2.0, 1.0}; }, "x", "overlaps rhs");
    says([](Single& s) { s.problem.x = View<double>::rows(s.upper); }, "x", "overlaps upper");
    says([](Single& s) { s.problem.rhs.memory = {MemoryKind::device, 0}; }, "rhs", "memory of device 0 where host memory is due");
    says([](Single& s) { s.problem.matrix.upper = Generator{}; }, "upper", "no function for f64");
    says([](Single& s) { s.problem.matrix.periodic = true,
         s.problem.matrix.lower = View<const double>::rows(std::span<const double>(s.lower).first(4)); }, "lower", "periodic");
    // Of one row too: its corners are entries of the arrays.
    says([](Single& s) { s.problem.matrix = {View<const double>::rows({}), 4.0, 1.0, true}; s.problem.rhs.axis.extent = s.problem.x.axis.extent = 1; }, "lower", "periodic");
    says([](Single& s) { s.problem.rhs.axis.extent = s.problem.x.axis.extent = std::int64_t{1} << 62; s.problem.rhs.batch_dims = s.problem.x.batch_dims = 1;
         s.problem.rhs.batch[0] = s.problem.x.batch[0] = {4, 1}; }, "rhs", "2^53");
    static const std::int64_t backwards[] = {0, 3, 2, 5}, outside[] = {0, 9};
    says([](Single& s) { s.problem.offsets = backwards; }, "offsets[2]", "predecessor");
    says([](Single& s) { s.problem.offsets = outside; }, "offsets[1]", "outside");
    std::vector<float> narrow(5);
    says([&](Single& s) { s.problem.matrix.diag = View<const float>::rows(narrow); }, "diag", "f32");
}

TEST(Normalise, XMayLieOverCouplingsThatAreNotRead) {
    Single s;
    s.lower.resize(9), s.upper.resize(9);
    const auto over = [&](double* x, const double* lower, const double* upper) {
        Single t = s;
        t.problem.matrix.lower = View<const double>::rows({lower, 5}), t.problem.matrix.upper = View<const double>::rows({upper, 5});
        t.problem.x = View<double>::rows({x, 5});
        return t;
    };
    Single behind_upper = over(s.upper.data() + 4, s.lower.data(), s.upper.data()), before_lower = over(s.lower.data(), s.lower.data() + 4, s.upper.data());
    for (Single* t : {&behind_upper, &before_lower})
        for (const bool transposed : {false, true}) {
            t->problem.matrix.transposed = transposed, t->problem.matrix.periodic = false;
            EXPECT_EQ(misuse(t->problem), "");
            t->problem.matrix.periodic = true;
            EXPECT_NE(misuse(t->problem).find(t == &before_lower ? "x: overlaps lower" : "x: overlaps upper"), std::string::npos) << misuse(t->problem);
        }
    EXPECT_NE(misuse(over(s.upper.data() + 3, s.lower.data(), s.upper.data()).problem).find("x: overlaps upper"), std::string::npos);
    EXPECT_NE(misuse(over(s.lower.data() + 4, s.lower.data() + 7, s.lower.data()).problem).find("x: overlaps lower"), std::string::npos);
}

// Against a search by hand over all entries that equations have.
TEST(Normalise, WhatIsReadMayNotBeWritten) {
    std::random_device device;
    const auto seed = device();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t bound) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound)); };
    Doubles storage(400), elsewhere(400);
    int refused = 0, taken = 0, only_beyond = 0;
    for (int draw = 0; draw < 40000; ++draw) {
        const std::int64_t n = below(6), dims = below(3), extent[] = {1 + below(3), 1 + below(3)};
        const bool ragged = dims == 0 && below(2) == 0, periodic = below(4) == 0;
        const auto make = [&](Doubles& in, std::int64_t rows) {
            View<double> view;
            view.data = in.data() + 100 + below(100);
            view.axis = {rows, below(11) - 4};
            view.batch_dims = static_cast<int>(dims);
            for (int d = 0; d < dims; ++d) view.batch[d] = {extent[d], below(21) - 8};
            return view;
        };
        std::vector<std::int64_t> offsets;
        if (ragged) {
            for (std::int64_t k = below(4); k >= 0; --k) offsets.push_back(below(n + 1));
            std::sort(offsets.begin(), offsets.end());
        }
        Problem p;
        p.rhs = make(elsewhere, n), p.x = make(storage, n);
        if (overlaps_itself(p.x)) continue;
        const bool packed = !periodic && n > 0 && below(3) == 0, of_lower = below(2) == 0;
        const View<double> coupling = make(storage, packed ? n - 1 : n);
        p.matrix = {1.0, 4.0, 1.0};
        (of_lower ? p.matrix.lower : p.matrix.upper) = coupling;
        p.matrix.periodic = periodic, p.matrix.transposed = !ragged && below(2) == 0;
        if (ragged) p.offsets = offsets;

        std::set<const double*> written, read, all;
        const auto each = [&](const AnyView& view, std::int64_t row, std::set<const double*>& to) {
            for (std::int64_t j = 0; j < (dims > 0 ? extent[0] : 1); ++j)
                for (std::int64_t k = 0; k < (dims > 1 ? extent[1] : 1); ++k)
                    to.insert(static_cast<double*>(view.data) + row * view.axis.stride + j * view.batch[0].stride + k * view.batch[1].stride);
        };
        std::vector<std::int64_t> starts = ragged ? offsets : std::vector<std::int64_t>{0, n};
        for (std::size_t s = 0; s + 1 < starts.size(); ++s)
            for (std::int64_t i = starts[s]; i < starts[s + 1]; ++i) {
                each(p.x, i, written);
                if (!packed) each(coupling, i, all);
                if (periodic || i != (of_lower ? starts[s] : starts[s + 1] - 1)) each(coupling, i - (packed && of_lower), read);
            }
        const auto met = [&](const std::set<const double*>& those) { return std::any_of(those.begin(), those.end(), [&](const double* one) { return written.count(one) > 0; }); };
        const std::string said = misuse(p);
        ASSERT_EQ(said != "", met(read)) << "draw " << draw << ": " << said;
        if (said != "") { ASSERT_EQ(said.rfind(of_lower ? "x: overlaps lower" : "x: overlaps upper", 0), 0u) << said; }
        ++(said != "" ? refused : taken), only_beyond += said == "" && met(all);
    }
    EXPECT_GT(refused, 1000);
    EXPECT_GT(taken, 1000);
    EXPECT_GT(only_beyond, 100);
}

TEST(Normalise, WhatNoAddressReachesIsRefused) {
    Single s;
    s.problem.matrix = {-1.0, 4.0, -1.0};
    for (const std::int64_t far : {INT64_MAX, INT64_MIN, INT64_MAX / 2, -(INT64_MAX / 4), std::int64_t{1} << 52}) {
        Single t = s;
        t.problem.rhs.axis.stride = far;
        EXPECT_NE(misuse(t.problem).find("rhs: elements " + std::to_string(far) + " apart"), std::string::npos) << misuse(t.problem);
        t = s;
        t.problem.rhs.axis.extent = t.problem.x.axis.extent = 1, t.problem.rhs.axis.stride = far;
        EXPECT_EQ(misuse(t.problem), "") << "one element has no distance";
    }
    for (const std::int64_t many : {INT64_MAX, INT64_MAX / 16, (std::int64_t{1} << 53) + 1}) {
        Single t = s;
        t.problem.rhs.axis.extent = t.problem.x.axis.extent = many;
        EXPECT_NE(misuse(t.problem).find("rhs: more than 2^53 elements"), std::string::npos) << misuse(t.problem);
        EXPECT_THROW(normalise(Matrix{}, many, {}, DType::f64), Error);
        const std::int64_t batch[] = {many};
        EXPECT_THROW(normalise(Matrix{}, 3, batch, DType::f64), Error);
    }
}

TEST(Normalise, AWorkspaceLiesOverNoArray) {
    Single s;
    const auto refused = [&](void* data, std::size_t bytes) -> std::string {
        try {
            check_workspace(s.problem, {data, bytes});
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(refused(nullptr, 100), "");
    Doubles own(100);
    EXPECT_EQ(refused(own.data(), 800), "");
    EXPECT_NE(refused(s.x.data(), 8).find("Options::workspace: lies over x"), std::string::npos);
    EXPECT_NE(refused(s.x.data() + 4, 8).find("over x"), std::string::npos);
    EXPECT_EQ(refused(s.x.data() + 5, 8), "");
    EXPECT_NE(refused(s.rhs.data() + 1, 8).find("over rhs"), std::string::npos);
    EXPECT_NE(refused(s.upper.data() + 2, 24).find("over upper"), std::string::npos);
    EXPECT_EQ(refused(s.upper.data() + 4, 8), "") << "no row has that coupling";
}

TEST(Normalise, PiecesOfARaggedBatch) {
    Single s;
    const std::int64_t offsets[] = {0, 2, 2, 5};
    s.problem.offsets = offsets;
    const System system = normalise(s.problem);
    EXPECT_EQ(system.systems(), 3);
    EXPECT_EQ(system.rows, 3);
    const System last = system_at(system, 2);
    EXPECT_EQ(last.rows, 3);
    EXPECT_EQ(last.number, 2);
    EXPECT_EQ(at(last.diag, 0), 22);
    EXPECT_EQ(system_at(system, 1).rows, 0);
}

// Two views of one small array against a search by hand over all their elements.
TEST(Overlap, AgreesWithEnumeration) {
    std::random_device device;
    const auto seed = device();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Doubles storage(400);
    for (int draw = 0; draw < 20000; ++draw) {
        const auto make = [&] {
            View<double> view;
            view.data = storage.data() + 100 + random() % 100;
            const auto dim = [&] { return Dim{static_cast<std::int64_t>(random() % 4), static_cast<std::int64_t>(random() % 21) - 8}; };
            view.axis = dim();
            view.batch_dims = static_cast<int>(random() % 3);
            for (int d = 0; d < view.batch_dims; ++d) view.batch[d] = dim();
            return view;
        };
        const auto elements = [](const AnyView& view, bool& twice) {
            std::set<const double*> found;
            twice = false;
            const std::int64_t p = view.batch_dims > 0 ? view.batch[0].extent : 1, q = view.batch_dims > 1 ? view.batch[1].extent : 1;
            for (std::int64_t i = 0; i < view.axis.extent; ++i)
                for (std::int64_t j = 0; j < p; ++j)
                    for (std::int64_t k = 0; k < q; ++k)
                        twice |= !found.insert(static_cast<double*>(view.data) + i * view.axis.stride + j * view.batch[0].stride + k * view.batch[1].stride).second;
            return found;
        };
        View<double> a = make(), b = make();
        if (random() % 2) {  // sub-blocks of one array
            b.axis.stride = a.axis.stride;
            b.batch_dims = a.batch_dims;
            for (int d = 0; d < 2; ++d) b.batch[d].stride = a.batch[d].stride;
        }
        bool twice_a = false, twice_b = false, common = false;
        const auto in_a = elements(a, twice_a), in_b = elements(b, twice_b);
        for (const double* p : in_b) common = common || in_a.count(p);
        ASSERT_EQ(overlap(a, b), common) << "draw " << draw;
        ASSERT_EQ(overlaps_itself(a), twice_a) << "draw " << draw;
    }
}

TEST(Overlap, LargeSubBlocksAreQuick) {
    const auto at = [](std::uintptr_t element) { return reinterpret_cast<double*>(std::uintptr_t{1} << 40) + element; };  // never read
    const Dim wide[] = {{1000000, 4000000}, {1000, 2000}};
    const View<double> left = View<double>::strided(at(0), {1000, 1}, wide);
    const View<double> right = View<double>::strided(at(1000), {1000, 1}, wide);
    EXPECT_FALSE(overlap(left, right));
    EXPECT_TRUE(overlap(left, View<double>::strided(at(999), {1000, 1}, wide)));
    EXPECT_FALSE(overlaps_itself(left));
}

}  // namespace
}  // namespace trifold::tridiagonal
