// SPDX-License-Identifier: BSD-3-Clause
// Long systems whose x takes the place of rhs: passes that give up late have stored over rhs by then what may be far larger than x. What solves them next has to have rhs again.
#include "cuda/long_system.hpp"

namespace trifold::tests {
namespace {

using InPlace = LongSystem;

/// Rows of one kind after rows of another one.
enum class Kind { decaying, hardly_any_diagonal, random, diffusion, zero_diagonals };

template <class T>
void fill(System<T>& s, std::size_t from, std::size_t to, Kind kind, std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(-1, 1);
    for (std::size_t i = from; i < std::min(to, s.size()); ++i) {
        s.lower[i] = static_cast<T>(any(random)), s.diag[i] = static_cast<T>(any(random)), s.upper[i] = static_cast<T>(any(random)), s.rhs[i] = static_cast<T>(any(random));
        if (kind == Kind::decaying) s.diag[i] = static_cast<T>(s.diag[i] < 0 ? -3 : 3);
        // Couplings of one size, or x would grow or vanish like a random walk of its logarithm.
        if (kind == Kind::hardly_any_diagonal) s.lower[i] = s.lower[i] < 0 ? -1 : 1, s.upper[i] = s.upper[i] < 0 ? -1 : 1, s.diag[i] *= sizeof(T) == 8 ? T(1e-9) : T(1e-5);
        if (kind == Kind::diffusion) s.lower[i] = s.upper[i] = -1, s.diag[i] = 2;
        if (kind == Kind::zero_diagonals && i % 5 == 0) s.diag[i] = 0;
    }
}

/// Whether x is as right as twice the precision says that elimination with exchanges could make it, to some digits.
template <class T>
double error_of(const System<T>& s, const std::vector<T>& x) {
    const auto truth = s.exact();
    typename System<T>::Twice error = 0, largest = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
        const auto e = std::abs(static_cast<typename System<T>::Twice>(x[i]) - truth[i]);
        if (!(e <= error)) error = e;
        largest = std::max(largest, std::abs(truth[i]));
    }
    return static_cast<double>(error / largest);
}

// So long that x is not kept apart: all that comes before pivots gives up in the last rows alone.
TEST_F(InPlace, LongOnesThatGiveUpLate) {
    std::mt19937_64 random(41);
    const auto check = [&]<class T>(T) {
        constexpr std::size_t n = (sizeof(T) == 8 ? 1 : 2) * std::size_t{1190922};
        for (const auto& [head, middle, tail] : {std::tuple{Kind::decaying, Kind::decaying, Kind::zero_diagonals},
                                                 {Kind::decaying, Kind::hardly_any_diagonal, Kind::zero_diagonals},
                                                 {Kind::decaying, Kind::random, Kind::decaying},
                                                 {Kind::decaying, Kind::diffusion, Kind::zero_diagonals},
                                                 {Kind::diffusion, Kind::diffusion, Kind::random},
                                                 {Kind::hardly_any_diagonal, Kind::hardly_any_diagonal, Kind::hardly_any_diagonal},
                                                 {Kind::hardly_any_diagonal, Kind::random, Kind::zero_diagonals}})
            for (const std::int64_t off : {0, 1}) {
                SCOPED_TRACE(testing::Message() << sizeof(T) << " " << static_cast<int>(head) << static_cast<int>(middle) << static_cast<int>(tail) << " " << off);
                System<T> system(n);
                fill(system, 0, n / 2, head, random), fill(system, n / 2, n - n / 10, middle, random), fill(system, n - n / 10, n, tail, random);
                std::vector<T> apart, x, again;
                const Outcome outside = solve_there(system, apart, off), inside = solve_there(system, x, off, true);
                solve_there(system, again, off, true);
                ASSERT_TRUE(outside.ok() && inside.ok());
                EXPECT_STREQ(inside.branch, outside.branch);
                EXPECT_EQ(x, again);
                EXPECT_LE(error_of(system, x), 8 * error_of(system, apart) + 1e3 * unit_roundoff(sizeof(T) == 8 ? DType::f64 : DType::f32));
                if (HasFailure()) return;
            }
    };
    check(double());
    check(float());
}

// Several with gaps: windows whose rhs is kept. In place, x is what it is elsewhere, bit by bit; what has no solution keeps its rhs.
TEST_F(InPlace, SeveralAsElsewhere) {
    std::mt19937_64 random(42);
    const auto check = [&]<class T>(T) {
        constexpr std::size_t count = 40, rows = 100003, pitch = rows + 5;
        const Kind kinds[] = {Kind::decaying, Kind::hardly_any_diagonal, Kind::random, Kind::diffusion, Kind::zero_diagonals};
        std::vector<std::vector<T>> host(4, std::vector<T>(count * pitch, std::numeric_limits<T>::quiet_NaN()));
        for (std::size_t k = 0; k < count; ++k) {
            System<T> s(rows);
            fill(s, 0, rows, kinds[k % 5], random), fill(s, rows - rows / 10, rows, kinds[k * 7 / 5 % 5], random);
            if (k == 17) s.lower[70000] = s.diag[70000] = s.upper[70000] = 0;  // singular
            for (std::size_t i = 0; i < rows; ++i) {
                const std::size_t at = k * pitch + i;
                if (i > 0) host[0][at] = s.lower[i];
                host[1][at] = s.diag[i], host[3][at] = s.rhs[i];
                if (i + 1 < rows) host[2][at] = s.upper[i];
            }
        }
        std::vector<DeviceArray<T>> arrays;
        for (const auto& from : host) arrays.emplace_back(*queue, std::span<const T>(from));
        std::vector<T> solution[3];
        std::vector<std::int8_t> status[3];
        for (int turn = 0; turn < 3; ++turn) {
            DeviceArray<T> x(*queue, std::span<const T>(host[3]));
            const auto at = [&](T* data) { return View<T>::contiguous(data, count, rows, pitch); };
            tridiagonal::Problem problem;
            problem.matrix.lower = at(arrays[0].data()), problem.matrix.diag = at(arrays[1].data()), problem.matrix.upper = at(arrays[2].data());
            problem.rhs = turn ? at(x.data()) : at(arrays[3].data()), problem.x = at(x.data());
            tridiagonal::Options options;
            status[turn].assign(count, 0), solution[turn].resize(host[3].size());
            options.status = status[turn].data();
            EXPECT_EQ(tridiagonal::solve(*queue, problem, options).failures, 1);
            x.download(std::span<T>(solution[turn]));
        }
        for (std::size_t k = 0; k < count; ++k) {
            SCOPED_TRACE(k);
            EXPECT_EQ(status[0][k], status[1][k]);
            const std::vector<T>& expected = k == 17 ? host[3] : solution[0];
            for (std::size_t i = 0; i < rows; ++i)
                for (const int turn : {1, 2}) ASSERT_EQ(solution[turn][k * pitch + i], expected[k * pitch + i]) << i;
        }
    };
    check(double());
    check(float());
}

}  // namespace
}  // namespace trifold::tests
