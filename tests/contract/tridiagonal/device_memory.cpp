// SPDX-License-Identifier: BSD-3-Clause
// Arrays that lie in the device's own memory: solved where they are, at once or enqueued, with the bits of a solve that copies
// them there; and what is refused, by name. On a host device the same calls work on host memory.
#include "contract/tridiagonal/devices.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Options;
using tridiagonal::PendingOutcome;
using tridiagonal::Problem;

struct Form {
    std::int64_t rows, systems, pad;
    bool interleaved, in_place, shared, dominant;
    bool periodic = false, accumulate = false;
};

// One problem twice: in host arrays, and in the device's.
template <class T>
struct Twice {
    Form form;
    std::int64_t size, matrix_size;
    std::vector<T> lower, diag, upper, rhs, x;
    DeviceArray<T> d_lower, d_diag, d_upper, d_rhs, d_x;

    Twice(const Queue& queue, const Form& f) : form(f) {
        Random random(static_cast<std::uint64_t>(f.rows * 131 + f.systems));
        size = f.interleaved ? f.rows * (f.systems + f.pad) : f.systems * (f.rows + f.pad);
        matrix_size = f.shared ? f.rows : size;
        const auto fill = [&](std::vector<T>& to, std::int64_t count, double offset) {
            to.resize(static_cast<std::size_t>(count));
            for (T& value : to) {
                const double v = random.uniform(-1, 1);
                value = static_cast<T>(offset > 0 ? std::copysign(offset + std::abs(v), v) : v);
            }
        };
        fill(lower, matrix_size, 0), fill(diag, matrix_size, f.dominant ? 2.2 : 0), fill(upper, matrix_size, 0), fill(rhs, size, 0);
        x.assign(static_cast<std::size_t>(size), T(77));
        d_lower = {queue, std::span<const T>(lower)}, d_diag = {queue, std::span<const T>(diag)}, d_upper = {queue, std::span<const T>(upper)};
        d_rhs = {queue, std::span<const T>(rhs)}, d_x = {queue, std::span<const T>(x)};
    }

    template <class U>
    View<U> all(U* data, Memory where) const {
        return form.interleaved ? View<U>::interleaved(data, form.rows, form.systems, form.systems + form.pad, where)
                                : View<U>::contiguous(data, form.systems, form.rows, form.rows + form.pad, where);
    }
    AnyView matrix(const T* data, Memory where) const {
        if (form.shared) return View<const T>::rows(std::span<const T>(data, static_cast<std::size_t>(form.rows)), where);
        return all<const T>(data, where);
    }

    Problem host() {
        Problem p;
        p.matrix.lower = matrix(lower.data(), {}), p.matrix.diag = matrix(diag.data(), {}), p.matrix.upper = matrix(upper.data(), {});
        p.rhs = all<const T>(rhs.data(), {});
        p.x = form.in_place ? all<T>(rhs.data(), {}) : all<T>(x.data(), {});
        p.matrix.periodic = form.periodic, p.accumulate = form.accumulate;
        return p;
    }
    Problem device() const {
        const Memory m = d_rhs.memory();
        Problem p;
        p.matrix.lower = matrix(d_lower.data(), m), p.matrix.diag = matrix(d_diag.data(), m), p.matrix.upper = matrix(d_upper.data(), m);
        p.rhs = all<const T>(d_rhs.data(), m);
        p.x = form.in_place ? all<T>(d_rhs.data(), m) : all<T>(d_x.data(), m);
        p.matrix.periodic = form.periodic, p.accumulate = form.accumulate;
        return p;
    }

    const std::vector<T>& host_x() const { return form.in_place ? rhs : x; }
    std::vector<T> device_x() const {
        std::vector<T> out(static_cast<std::size_t>(size));
        (form.in_place ? d_rhs : d_x).download(out);
        return out;
    }
};

std::vector<Form> forms() {
    std::vector<Form> list;
    for (const auto& [rows, systems] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 70}, {2, 33}, {17, 1}, {64, 100}, {65, 999}, {129, 40}, {1000, 9}})
        for (const bool interleaved : {false, true})
            for (const int kind : {0, 1, 2, 3})
                list.push_back({rows, systems, kind == 1 ? 3 : 0, interleaved, kind == 2, kind == 3, kind != 1});
    return list;
}

std::string text(const Form& f) {
    return std::to_string(f.rows) + " rows, " + std::to_string(f.systems) + " systems" + (f.interleaved ? ", interleaved" : "") + (f.pad ? ", padded" : "") +
           (f.in_place ? ", in place" : "") + (f.shared ? ", shared" : "") + (f.dominant ? ", dominant" : "") + (f.periodic ? ", periodic" : "") + (f.accumulate ? ", added to x" : "");
}

class DeviceMemory : public OnDevice {
protected:
    bool own_memory() const { return queue.memory().kind == MemoryKind::device; }

    template <class T>
    static void nearly_all_agree(const std::vector<T>& found, const std::vector<T>& expected) {
        ASSERT_EQ(found.size(), expected.size());
        std::size_t far = 0;
        for (std::size_t i = 0; i < found.size(); ++i)
            if (!(std::abs(found[i] - expected[i]) <= std::abs(expected[i]) * (sizeof(T) == 8 ? 1e-9 : 1e-2))) ++far;
        EXPECT_LE(far, found.size() / 50);
    }

    template <class T>
    void same_bits(const Form& form, bool async) {
        SCOPED_TRACE(text(form) + (async ? ", enqueued" : ""));
        Twice<T> t(queue, form);
        const Problem problem = t.device();
        std::vector<std::int8_t> host_status(static_cast<std::size_t>(form.systems), 55), found = host_status;
        DeviceArray<std::int8_t> status(queue, host_status);
        Options options;
        options.status = status.data();
        Outcome outcome;
        DeviceArray<std::byte> scratch;
        if (async) {
            const auto needs = tridiagonal::workspace(queue, problem, options);
            scratch = {queue, static_cast<std::int64_t>(needs[0].bytes)};
            options.workspace = {scratch.data(), needs[0].bytes};
            PendingOutcome pending(queue);
            tridiagonal::solve_async(queue, problem, options, pending);
            outcome = pending.read();
        } else {
            outcome = tridiagonal::solve(queue, problem, options);
        }
        options = {};
        options.status = host_status.data();
        const Outcome expected = tridiagonal::solve(queue, t.host(), options);
        ASSERT_TRUE(expected.ok());
        EXPECT_EQ(outcome.reason, expected.reason);
        EXPECT_STREQ(outcome.branch, expected.branch);
        EXPECT_STREQ(outcome.device, expected.device);
        EXPECT_EQ(outcome.failures, 0);
        if (form.pad > 0) {
            // Gaps may shift where a device cuts systems, or how rows are aligned: other rounding, and other systems that need pivots.
            nearly_all_agree(t.device_x(), t.host_x());
        } else {
            EXPECT_EQ(outcome.rescued, expected.rescued);
            EXPECT_LE(outcome.rescued, form.systems);
            EXPECT_EQ(t.device_x(), t.host_x());
        }
        status.download(found);
        EXPECT_EQ(found, host_status);
    }

    Error refusal(const std::function<void()>& call) {
        try {
            call();
        } catch (const Error& error) {
            return error;
        }
        return Error(ErrorCode::internal, "nothing", "was refused");
    }
};

TEST_P(DeviceMemory, IsSolvedWhereItLies) {
    for (const Form& form : forms()) same_bits<double>(form, false), same_bits<float>(form, false);
}

TEST_P(DeviceMemory, IsSolvedWhenEnqueued) {
    for (const Form& form : forms()) same_bits<double>(form, true), same_bits<float>(form, true);
}

TEST_P(DeviceMemory, MixesWithTheHosts) {
    Twice<double> t(queue, {100, 20, 0, false, false, false, true});
    Problem mixed = t.device();
    mixed.matrix.diag = t.host().matrix.diag;
    mixed.x = t.host().x;
    ASSERT_TRUE(tridiagonal::solve(queue, mixed).ok());
    const std::vector<double> x = t.x;
    ASSERT_TRUE(tridiagonal::solve(queue, t.device()).ok());
    EXPECT_EQ(t.device_x(), x);
}

TEST_P(DeviceMemory, FailuresAreNamed) {
    for (const bool in_place : {false, true}) {
        Twice<double> t(queue, {50, 30, 0, false, in_place, false, true});
        for (const std::int64_t system : {21, 7}) {
            const std::size_t at = static_cast<std::size_t>(system * 50 + 20);
            t.diag[at] = t.upper[at - 1] = t.lower[at + 1] = 0;
        }
        t.d_diag.upload(t.diag), t.d_upper.upload(t.upper), t.d_lower.upload(t.lower);
        const auto needs = tridiagonal::workspace(queue, t.device());
        const DeviceArray<std::byte> scratch(queue, static_cast<std::int64_t>(needs[0].bytes));
        Options options;
        options.workspace = {scratch.data(), needs[0].bytes};
        PendingOutcome pending(queue);
        tridiagonal::solve_async(queue, t.device(), options, pending);
        const Outcome outcome = pending.read();
        EXPECT_EQ(outcome.reason, Reason::singular);
        EXPECT_EQ(outcome.system, 7);
        EXPECT_EQ(outcome.row, 20);
        EXPECT_EQ(outcome.failures, 2);
    }
}

TEST_P(DeviceMemory, WhatIsNotFiniteIsFoundBeforeAnythingIsWritten) {
    Twice<double> t(queue, {50, 30, 0, true, false, false, true});
    t.rhs[static_cast<std::size_t>(31 * 30 + 12)] = NAN;
    t.d_rhs.upload(t.rhs);
    Options options;
    options.check_finite = true;
    const Outcome outcome = tridiagonal::solve(queue, t.device(), options);
    EXPECT_EQ(outcome.reason, Reason::not_finite);
    EXPECT_EQ(outcome.system, 12);
    EXPECT_EQ(outcome.row, 31);
    EXPECT_EQ(outcome.failures, 1);
    EXPECT_EQ(t.device_x(), t.x);
}

TEST_P(DeviceMemory, HostArraysAreRefusedWhereTheyWouldHaveToBeCopied) {
    if (!own_memory()) GTEST_SKIP() << GetParam() << " works in the host's memory";
    Twice<double> t(queue, {20, 4, 0, false, false, false, true});
    PendingOutcome pending(queue);
    Problem problem = t.device();
    problem.rhs = t.host().rhs;
    Error error = refusal([&] { tridiagonal::solve_async(queue, problem, {}, pending); });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(error.where(), "rhs");
    problem = t.device();
    problem.matrix.upper = t.host().matrix.upper;
    error = refusal([&] { tridiagonal::solve_async(queue, problem, {}, pending); });
    EXPECT_EQ(error.where(), "upper");
    // A view that says it lies on the device, and does not.
    problem.matrix.upper = t.matrix(t.upper.data(), queue.memory());
    error = refusal([&] { tridiagonal::solve(queue, problem); });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(error.where(), "upper");
}

// Rings and what is added to x, where the device has kernels for them: on chip, over several blocks, and through T.
TEST_P(DeviceMemory, RingsAndSumsAreSolvedWhereTheyLie) {
    const auto own = [&](Problem problem) { return tridiagonal::plan(queue, problem).device == queue.device(); };
    for (const auto& [rows, systems] : {std::pair<std::int64_t, std::int64_t>{1, 3}, {2, 3}, {3, 5}, {8, 9}, {9, 70}, {255, 3}, {256, 17}, {257, 8}, {1000, 9}, {4096, 2}, {4097, 3}, {20000, 2}})
        for (const bool interleaved : {false, true})
            for (const auto& [periodic, accumulate] : {std::pair{true, false}, {true, true}, {false, true}})
                for (const bool shared : {false, true})
                    for (const bool in_place : {false, true}) {
                        if (accumulate && in_place) continue;
                        const Form form{rows, systems, 0, interleaved, in_place, shared, true, periodic, accumulate};
                        if (!own(Twice<double>(queue, form).host())) GTEST_SKIP() << GetParam() << " leaves them to the cpu";
                        same_bits<double>(form, false), same_bits<float>(form, true);
                        if (HasFailure()) return;
                    }
}

TEST_P(DeviceMemory, WhatNeedsTheHostIsRefusedWhenEnqueued) {
    if (!own_memory()) GTEST_SKIP() << GetParam() << " is the host";
    Twice<double> t(queue, {20, 4, 0, false, false, false, true});
    PendingOutcome pending(queue);
    Problem problem;
    const Memory memory = queue.memory();
    const auto rows = [&](const DeviceArray<double>& array) { return View<double>::strided(array.data(), {80, 1}, {}, memory); };
    problem.matrix = {rows(t.d_lower), rows(t.d_diag), rows(t.d_upper)};
    problem.rhs = rows(t.d_rhs), problem.x = rows(t.d_x);
    const std::int64_t offsets[] = {0, 20, 80};
    problem.offsets = offsets;
    problem.matrix.periodic = tridiagonal::plan(queue, problem).device == queue.device();  // ragged rings are left to others by all
    Error error = refusal([&] { tridiagonal::solve_async(queue, problem, {}, pending); });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("ragged"), std::string::npos) << error.what();
    error = refusal([&] { tridiagonal::solve(queue, problem); });
    EXPECT_EQ(error.code(), ErrorCode::device_unavailable);
    EXPECT_NE(std::string(error.what()).find("ragged"), std::string::npos) << error.what();
    Options options;
    options.check_finite = true;
    EXPECT_EQ(refusal([&] { tridiagonal::solve_async(queue, t.device(), options, pending); }).code(), ErrorCode::usage);
    const auto needs = tridiagonal::workspace(queue, t.device());
    if (needs[0].bytes > 0) {
        error = refusal([&] { tridiagonal::solve_async(queue, t.device(), {}, pending); });
        EXPECT_EQ(error.where(), "Options::workspace");
        EXPECT_NE(std::string(error.what()).find(std::to_string(needs[0].bytes)), std::string::npos) << error.what();
    }
}

TEST_P(DeviceMemory, WhereThereIsNothingToSolveTheStatusSaysSo) {
    const std::vector<std::int8_t> before(5, 55);
    DeviceArray<std::int8_t> status(queue, before);
    const DeviceArray<double> memory(queue, 1);
    Problem problem;
    const Dim batch[] = {{5, 0}};
    problem.rhs = View<const double>::strided(memory.data(), {0, 1}, batch, memory.memory()), problem.x = View<double>::strided(memory.data(), {0, 1}, batch, memory.memory());
    Options options;
    options.status = status.data();
    EXPECT_EQ(tridiagonal::solve(queue, problem, options).reason, Reason::none);
    std::vector<std::int8_t> found(5);
    status.download(found);
    EXPECT_EQ(found, std::vector<std::int8_t>(5, static_cast<std::int8_t>(Reason::none)));
}

// LAPACK's arrays of n-1 rows, transposed ones, and arrays of n rows whose first or last one lies outside of the device's memory: there is nothing in front of the first row that is read, nor behind the last one.
TEST_P(DeviceMemory, ArraysWithoutCornersAreNotReadBeyondTheirEnds) {
    for (const std::int64_t rows : {1, 2, 7, 40, 300, 1000})
        for (const std::int64_t systems : {1, 40, 3000})
            for (const auto& [transposed, full] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
                if (rows * systems > 400000 || (full && rows == 1)) continue;
                SCOPED_TRACE(testing::Message() << rows << " rows, " << systems << " systems, transposed " << transposed << ", n rows of couplings " << full);
                std::vector<double> couplings(static_cast<std::size_t>((rows - 1) * systems), -1.0), diag(static_cast<std::size_t>(rows * systems), 4.0), rhs(diag.size()), x(diag.size());
                for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t k = 0; k < systems; ++k) rhs[static_cast<std::size_t>(i * systems + k)] = rows == 1 ? 4 : i == 0 || i + 1 == rows ? 3 : 2;
                const DeviceArray<double> d_lower(queue, couplings), d_upper(queue, couplings), d_diag(queue, diag), d_rhs(queue, rhs), d_x(queue, x);
                const Memory where = d_diag.memory();
                Problem problem;
                problem.matrix.lower = View<const double>::interleaved(full ? d_lower.data() - systems : d_lower.data(), full ? rows : rows - 1, systems, systems, where);
                problem.matrix.upper = View<const double>::interleaved(d_upper.data(), full ? rows : rows - 1, systems, systems, where);
                problem.matrix.diag = View<const double>::interleaved(d_diag.data(), rows, systems, 0, where);
                problem.matrix.transposed = transposed;
                problem.rhs = View<const double>::interleaved(d_rhs.data(), rows, systems, 0, where), problem.x = View<double>::interleaved(d_x.data(), rows, systems, 0, where);
                ASSERT_TRUE(tridiagonal::solve(queue, problem).ok());
                d_x.download(x);
                for (const double value : x) ASSERT_NEAR(value, 1, 1e-14);
            }
}

// upper, x and lower in one array, so that x begins where upper's last row would be and ends where lower's first one would.
TEST_P(DeviceMemory, XMayLieOverCouplingsThatAreNotRead) {
    for (const auto& [rows, systems] : {std::pair<std::int64_t, std::int64_t>{2, 1}, {2, 50}, {9, 1}, {33, 70}, {300, 1}, {300, 300}, {5000, 1}, {200000, 1}})
        for (const bool interleaved : {false, true})
            for (const bool of_the_host : {false, true}) {
                if (of_the_host && !own_memory()) continue;
                SCOPED_TRACE(testing::Message() << rows << " rows, " << systems << " systems, interleaved " << interleaved << ", host arrays " << of_the_host);
                Twice<double> t(queue, {rows, systems, 0, interleaved, false, false, true});
                ASSERT_TRUE(tridiagonal::solve(queue, t.host()).ok());
                const std::int64_t length = 3 * rows - 2, row = interleaved ? systems : 1, system = interleaved ? 1 : length;
                std::vector<double> together(static_cast<std::size_t>(length * systems), 0);
                const auto entry = [&](std::int64_t i, std::int64_t k) -> double& { return together[static_cast<std::size_t>(i * row + k * system)]; };
                const auto old = [&, rows = rows, systems = systems](std::int64_t i, std::int64_t k) { return static_cast<std::size_t>(interleaved ? i * systems + k : k * rows + i); };
                for (std::int64_t k = 0; k < systems; ++k)
                    for (std::int64_t i = 0; i + 1 < rows; ++i) entry(i, k) = t.upper[old(i, k)], entry(2 * rows - 1 + i, k) = t.lower[old(i + 1, k)];
                const DeviceArray<double> there(queue, together);
                double* const data = of_the_host ? together.data() : there.data();
                const Dim batch[] = {{systems, system}};
                const auto part = [&, rows = rows](std::int64_t first) { return View<double>::strided(data + first * row, {rows, row}, batch, of_the_host ? Memory{} : there.memory()); };
                Problem problem = of_the_host ? t.host() : t.device();
                problem.matrix.upper = part(0), problem.x = part(rows - 1), problem.matrix.lower = part(2 * rows - 2);
                ASSERT_TRUE(tridiagonal::solve(queue, problem).ok());
                if (!of_the_host) there.download(together);
                for (std::int64_t k = 0; k < systems; ++k)
                    for (std::int64_t i = 0; i < rows; ++i) {
                        ASSERT_NEAR(entry(rows - 1 + i, k), t.x[old(i, k)], 1e-13) << i << " of " << k;
                        if (i + 1 == rows) continue;
                        ASSERT_EQ(entry(2 * rows - 1 + i, k), t.lower[old(i + 1, k)]);
                        if (i > 0) { ASSERT_EQ(entry(i - 1, k), t.upper[old(i - 1, k)]); }
                    }
            }
}

TEST_P(DeviceMemory, TooMuchIsSaidBeforeItIsTaken) {
    const Error error = refusal([&] { release(queue, allocate(queue, std::size_t{1} << 50)); });
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    const std::string text = error.what();
    EXPECT_TRUE(text.find("1048576.0 GiB") != std::string::npos || text.find("1024.0 TiB") != std::string::npos || text.find("PiB") != std::string::npos) << text;
}

TEST_P(DeviceMemory, AnArrayHasAsManyValuesAsItSays) {
    for (const std::int64_t size : {std::int64_t{-1}, INT64_MIN, (std::int64_t{1} << 61) + 1, INT64_MAX})
        EXPECT_THROW(DeviceArray<double>(queue, size), Error) << size;
    DeviceArray<double> nothing;
    std::vector<double> none;
    nothing.upload(none), nothing.download(none);
    EXPECT_THROW(nothing.upload(std::vector<double>(1)), Error);
}

TEST_P(DeviceMemory, AnOutcomeThatWasMovedAwayIsRefused) {
    tridiagonal::PendingOutcome first(queue);
    const tridiagonal::PendingOutcome second = std::move(first);
    EXPECT_EQ(second.read().reason, Reason::none);
    EXPECT_THROW((void)first.read(), Error);
}

TEST_P(DeviceMemory, AStreamIsForDevicesThatHaveThem) {
    if (own_memory()) GTEST_SKIP() << GetParam() << " has streams";
    int nothing = 0;
    EXPECT_EQ(refusal([&] { Queue(context(), GetParam(), &nothing); }).code(), ErrorCode::usage);
}

TRIFOLD_ON_EVERY_DEVICE(DeviceMemory);

}  // namespace
}  // namespace trifold::tests
