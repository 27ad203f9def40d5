// SPDX-License-Identifier: BSD-3-Clause
#include "problems/tridiagonal/overlap.hpp"

#include <algorithm>
#include <cstdlib>

namespace trifold {
namespace {

// One term of sum(step_k × stride_k) = distance with low_k ≤ step_k ≤ high_k.
struct Term {
    std::int64_t stride, low, high;
};

struct Terms {
    Term term[2 * (max_batch_dims + 1)];
    int count = 0;

    // Kept in order of falling stride. A negative stride counts the other way, so that every stride here is positive.
    void add(std::int64_t stride, std::int64_t low, std::int64_t high) {
        if (stride == 0 || low >= high) return;
        const Term added = stride > 0 ? Term{stride, low, high} : Term{-stride, -high, -low};
        int at = count++;
        for (; at > 0 && term[at - 1].stride < added.stride; --at) term[at] = term[at - 1];
        term[at] = added;
    }
};

constexpr int step_limit = 4096;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0); }

// Largest stride first: what the smaller ones can still reach leaves few steps to try.
bool reachable(const Terms& terms, int k, std::int64_t distance, int& steps) {
    if (++steps > step_limit) return true;
    if (k == terms.count) return distance == 0;
    std::int64_t low = 0, high = 0;
    for (int j = k + 1; j < terms.count; ++j) {
        low += terms.term[j].stride * terms.term[j].low;
        high += terms.term[j].stride * terms.term[j].high;
    }
    const Term& t = terms.term[k];
    const std::int64_t from = std::max(t.low, -floor_div(-(distance - high), t.stride));
    const std::int64_t to = std::min(t.high, floor_div(distance - low, t.stride));
    for (std::int64_t step = from; step <= to; ++step)
        if (reachable(terms, k + 1, distance - step * t.stride, steps)) return true;
    return false;
}

bool is_empty(const AnyView& view) { return view.rows() <= 0 || view.systems() <= 0; }

}  // namespace

bool overlap(const AnyView& a, const AnyView& b) noexcept {
    if (!stretch_of(a).meets(stretch_of(b))) return false;
    const auto size = static_cast<std::intptr_t>(size_of(a.dtype));
    const std::intptr_t bytes = reinterpret_cast<std::intptr_t>(b.data) - reinterpret_cast<std::intptr_t>(a.data);
    if (a.dtype != b.dtype || bytes % size != 0) return true;
    // Element i of a is element j of b where sum(i_k s_k) - sum(j_k t_k) = distance.
    Terms terms;
    auto add = [&](const AnyView& view, bool from_a) {
        auto one = [&](const Dim& dim) {
            if (from_a) terms.add(dim.stride, 0, dim.extent - 1);
            else terms.add(dim.stride, -(dim.extent - 1), 0);
        };
        one(view.axis);
        for (int d = 0; d < view.batch_dims; ++d) one(view.batch[d]);
    };
    // Equal strides are one term with a range on both sides: it keeps the search short for sub-blocks of one array.
    if (a.batch_dims == b.batch_dims && a.axis.stride == b.axis.stride &&
        std::equal(a.batch.begin(), a.batch.begin() + a.batch_dims, b.batch.begin(),
                   [](const Dim& p, const Dim& q) { return p.stride == q.stride; })) {
        terms.add(a.axis.stride, -(b.axis.extent - 1), a.axis.extent - 1);
        for (int d = 0; d < a.batch_dims; ++d) terms.add(a.batch[d].stride, -(b.batch[d].extent - 1), a.batch[d].extent - 1);
    } else {
        add(a, true);
        add(b, false);
    }
    int steps = 0;
    return reachable(terms, 0, bytes / size, steps);
}

bool overlaps_itself(const AnyView& view) noexcept {
    if (is_empty(view)) return false;
    Terms terms;
    auto one = [&](const Dim& dim) {
        if (dim.stride == 0) return dim.extent > 1;
        terms.add(dim.stride, -(dim.extent - 1), dim.extent - 1);
        return false;
    };
    if (one(view.axis)) return true;
    for (int d = 0; d < view.batch_dims; ++d)
        if (one(view.batch[d])) return true;
    // Nested strides cannot meet: each is beyond the reach of all smaller ones.
    bool nested = true;
    for (int k = 0; k < terms.count; ++k) {
        std::int64_t reach = 0;
        for (int j = k + 1; j < terms.count; ++j) reach += terms.term[j].stride * terms.term[j].high;
        nested = nested && terms.term[k].stride > reach;
    }
    if (nested) return false;
    // Otherwise look for a step that is not all zero and leads back: fix the sign of the first non-zero one.
    int steps = 0;
    for (int k = 0; k < terms.count; ++k) {
        Terms rest;
        for (int j = k + 1; j < terms.count; ++j) rest.term[rest.count++] = terms.term[j];
        for (std::int64_t step = 1; step <= terms.term[k].high; ++step) {
            if (reachable(rest, 0, -step * terms.term[k].stride, steps)) return true;
            std::int64_t reach = 0;
            for (int j = 0; j < rest.count; ++j) reach += rest.term[j].stride * rest.term[j].high;
            if (step * terms.term[k].stride > reach) break;
        }
    }
    return false;
}

}  // namespace trifold
