// SPDX-License-Identifier: BSD-3-Clause
// Batches of the zoo's matrices: on every draw the backward error is at most ten times that of LAPACK's ?gtsv.
#include "support/lapack.hpp"
#include "support/measure.hpp"
#include "support/zoo.hpp"
#include "unit/cpu_batch.hpp"

namespace trifold::cpu::test {
namespace {

using tests::Bands;

// Draws that each need, or do not need, pivoting share vectors.
template <class T>
void expect_as_good_as_gtsv(std::int64_t n, std::int64_t draws) {
    std::vector<Bands<T>> systems;
    std::vector<const char*> names;
    for (const tests::ZooEntry& entry : tests::zoo()) {
        if (entry.dense || (entry.singular_if_odd && n % 2 == 1)) continue;
        for (std::int64_t seed = 0; seed < draws; ++seed) {
            Bands<T> s = tests::cast<T>(tests::make(entry, n, static_cast<std::uint64_t>(seed)));
            const auto gtsv = tests::gtsv(s);
            if (gtsv.info != 0 || !tests::all_finite(tests::as_double(gtsv.x))) continue;
            systems.push_back(std::move(s)), names.push_back(entry.name);
        }
    }
    Batch<T> b(Layout::contiguous, n, 1, static_cast<std::int64_t>(systems.size()), 1, 0, true);
    b.fill([&](int w, std::int64_t i, std::int64_t, std::int64_t k) {
        const Bands<T>& s = systems[k];
        return w == 0 ? s.lower[i] : w == 1 ? s.diag[i] : w == 2 ? s.upper[i] : s.rhs[i];
    });
    std::vector<std::int8_t> status;
    run(b, Algorithm::automatic, 1, &status);
    for (std::size_t k = 0; k < systems.size(); ++k) {
        SCOPED_TRACE(testing::Message() << names[k] << " n " << n << " system " << k);
        const Bands<double> s = tests::cast<double>(systems[k]);
        std::vector<double> x(n);
        for (std::int64_t i = 0; i < n; ++i) x[i] = *b.solution(i, 0, static_cast<std::int64_t>(k));
        const double theirs = tests::backward_error(s, tests::as_double(tests::gtsv(systems[k]).x));
        if (status[k] == static_cast<std::int8_t>(Reason::exact))
            EXPECT_LE(tests::backward_error(s, x), 10 * std::max(theirs, unit_roundoff(dtype_of<T>) / 4));
        else
            EXPECT_FALSE(tests::condition(s) < 1 / unit_roundoff(dtype_of<T>)) << "refused: " << int{status[k]};
    }
}

TEST(CpuBatchZoo, AsGoodAsLapackOnEveryDraw) {
    on_every_target([] {
        for (std::int64_t n : {31, 511, 512, 1000}) {
            expect_as_good_as_gtsv<double>(n, 20);
            expect_as_good_as_gtsv<float>(n, 20);
        }
    });
}

}  // namespace
}  // namespace trifold::cpu::test
