// SPDX-License-Identifier: BSD-3-Clause
// Sweeps over meshes that no chip holds, on GPUs, beside the cpu, and one mesh of a batch beside itself alone.
#pragma once

#include <algorithm>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "support/largest_difference.hpp"

namespace trifold::tests {

class OnCompilingGpu : public OnDevice {
protected:
    void SetUp() override {
        if (!GetParam().starts_with("cuda:")) GTEST_SKIP() << "for GPUs that compile sweeps";
    }
    Queue cpu{context(), "cpu"};

    /// Fields: made of a Case, with run(queue, steps) and u.
    template <class Fields, class Case>
    void compare(const std::vector<Case>& cases, std::int64_t steps, double allowed) {
        for (const Case& one : cases) {
            Fields ours(one), expected = ours;
            ASSERT_EQ(ours.run(queue, steps).reason, Reason::exact);
            ASSERT_TRUE(expected.run(cpu, steps).ok());
            ASSERT_LE(largest_difference(ours.u, expected.u), allowed) << one.shape.x << " x " << one.shape.y << " x " << one.shape.z << ", case " << &one - cases.data();
        }
    }

    /// The first, a middle and the last mesh have the bits that each has alone. Fields: also take(fields of all, a mesh), which is of what they had at first; prepare(fields): of all, and of one.
    template <class Fields, class Case, class Prepare>
    void one_of_many(const Case& all, Prepare prepare) {
        Fields batch(all);
        prepare(batch);
        const Fields before = batch;
        ASSERT_TRUE(batch.run(queue, 3).ok());
        const std::int64_t each = all.shape.x * all.shape.y * all.shape.z, last = all.shape.meshes - 1;
        std::vector<std::int64_t> some{0, last / 2, last};
        some.erase(std::unique(some.begin(), some.end()), some.end());
        for (const std::int64_t mesh : some) {
            Case alone = all;
            alone.shape.meshes = 1;
            Fields one(alone);
            prepare(one);
            one.take(before, mesh);
            ASSERT_TRUE(one.run(queue, 3).ok());
            ASSERT_TRUE(std::equal(one.u.begin(), one.u.end(), batch.u.begin() + mesh * each)) << all.shape.x << ", mesh " << mesh;
        }
    }
    template <class Fields, class Case>
    void one_of_many(const Case& all) {
        one_of_many<Fields>(all, [](Fields&) {});
    }
};

}  // namespace trifold::tests
