// SPDX-License-Identifier: BSD-3-Clause
// The zoo: as accurate as LAPACK's gtsv, or named as singular.
//
// On every draw the backward error is at most 10 × gtsv's. Where gtsv's own is below the unit roundoff u, by luck of one draw
// or because the system needs next to no arithmetic, 10 u is asked instead: no method in that precision can promise less. The
// forward error is compared by medians over 20 seeds, where the condition number is below 1e12 (f64) or the same distance
// from 1/u (f32): on single draws gtsv run from the other end loses to itself by more than 10 now and then.
#include "contract/tridiagonal/devices.hpp"
#include "support/lapack.hpp"
#include "support/measure.hpp"
#include "support/run.hpp"
#include "support/truth.hpp"
#include "support/zoo.hpp"

namespace trifold::tests {
namespace {

class Zoo : public testing::TestWithParam<std::tuple<std::string, std::int64_t>> {};

template <class T>
void visit(Queue& queue, const ZooEntry& entry, std::int64_t rows, int seeds) {
    const double u = unit_roundoff(dtype_of<T>), worst_condition = 1e12 * 0x1p-53 / u;
    std::vector<double> own_errors, peer_errors;
    for (int seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE(testing::Message() << entry.name << ", " << rows << " rows, " << name_of(dtype_of<T>) << ", seed " << seed);
        const Bands<T> s = cast<T>(make(entry, rows, static_cast<std::uint64_t>(seed)));
        const Bands<double> exact = cast<double>(s);
        // Out of the range of the type: there is no such system.
        if (!all_finite(exact.rhs) || !all_finite(exact.diag) || !all_finite(exact.lower) || !all_finite(exact.upper)) return;
        const Gtsv<T> peer = gtsv(s);
        const std::vector<double> peer_x = as_double(peer.x);
        std::vector<T> stored(s.rhs.size(), T{77});
        const Outcome outcome = tridiagonal::solve(queue, problem_of(s, stored));
        const std::vector<double> x = as_double(stored);
        if (entry.singular_if_odd && rows % 2 == 1) {
            EXPECT_EQ(outcome.reason, Reason::singular);
            EXPECT_GE(outcome.row, 0);
            EXPECT_EQ(outcome.failures, 1);
            continue;
        }
        if (outcome.ok()) { EXPECT_TRUE(all_finite(x)); }
        if (peer.info != 0 || !all_finite(peer_x)) continue;
        ASSERT_TRUE(outcome.ok()) << name_of(outcome.reason) << " at row " << outcome.row << " by " << outcome.branch;
        const double own = backward_error(exact, x), theirs = backward_error(exact, peer_x);
        EXPECT_LE(own, 10 * std::max(theirs, u)) << outcome.branch << ", gtsv has " << theirs;
        if (condition(exact) > worst_condition) continue;
        const std::vector<DoubleDouble> truth = true_solution(exact);
        own_errors.push_back(forward_error(x, truth));
        peer_errors.push_back(forward_error(peer_x, truth));
    }
    if (own_errors.size() < 10) return;  // too few of them are well enough conditioned for a median
    EXPECT_LE(median(own_errors), 10 * std::max(median(peer_errors), u)) << entry.name << ", " << rows << " rows, " << name_of(dtype_of<T>);
}

TEST_P(Zoo, IsAsAccurateAsLapack) {
    const auto& [device, rows] = GetParam();
    Queue queue(context(), device);
    for (const ZooEntry& entry : zoo()) {
        if (entry.dense && rows > 1000) continue;
        // The dense ones cost a second each: all seeds at one size, one at the others.
        const int seeds = !entry.dense ? 20 : rows == 100 ? 20 : 1;
        visit<double>(queue, entry, rows, seeds);
        visit<float>(queue, entry, rows, seeds);
    }
}

INSTANTIATE_TEST_SUITE_P(Device, Zoo, testing::Combine(testing::ValuesIn(devices()), testing::Values(100, 511, 512, 513, 4096, 4099, 100003)),
                         [](const auto& info) {
                             return device_test_name({std::get<0>(info.param), 0}) + "_" + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace trifold::tests
