// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/certified_bound.hpp"

#include <algorithm>
#include <cmath>

namespace trifold::tridiagonal {
namespace {

/// A certificate worse than this says too little to be called one.
constexpr double largest_certificate = 0x1p-6;

/// Seams may differ by so many unit roundoffs of |x|: no more than what a row of the elimination may be off by.
constexpr double largest_jump = 16;

struct Coupling {
    const Stretches& stretches;
    const StretchBound* bounds;
    const SweepResult& swept;
    double roundoff;  ///< 24 u, the rounding of a row relative to |x| nearby

    // Bounds on |x| for a slack w.
    double before(std::int64_t j, double w) const { return 1.5 * (j > 0 ? bounds[j - 1].last_max : swept.head.max) + w; }
    double after(std::int64_t j, double w) const {
        return 1.5 * (j + 1 < stretches.stretches() ? bounds[j + 1].first_max : swept.tail.max) + w;
    }
    double rounding(const EndBound& end) const { return roundoff * std::max(1.0, end.largest_c); }

    /// Defect of the elimination at the start of stretch j, apart from what its own sums hold.
    double defect(std::int64_t j, double w) const {
        const double nearby = std::max(before(j, w), 1.5 * bounds[j].first_max + w);
        if (j == 0) return rounding(swept.head) * nearby;
        return bounds[j].halo_product * before(j, w) + bounds[j].halo_rounding * nearby;
    }
    /// What the ends of stretch j and the slack add to the error of its blocks.
    double added(std::int64_t j, double w) const {
        const StretchBound& b = bounds[j];
        return b.per_unit * w + b.from_left * defect(j, w) + b.from_right * after(j, w);
    }
    double error(std::int64_t j, double w) const { return bounds[j].error + added(j, w); }

    double head_error(double w) const {
        return swept.head.sum * defect(0, w) + swept.head.product * error(0, w);
    }
    double tail_error(double w) const {
        const std::int64_t last = stretches.stretches() - 1;
        const StretchBound& b = bounds[last];
        const double here = 1.5 * swept.tail.max + w;
        const double older = b.end_defect + b.end_per_unit * w + b.end_from_left * defect(last, w);
        const double near = std::max(b.last_rounding + b.last_per_unit * (w + here), rounding(swept.tail) * here);
        return swept.tail.sum * (older + near);
    }
    /// The slack that the bounds for slack w need: they hold where it is at most w.
    double needed(double w) const {
        double most = std::max({0.0, head_error(w) - 0.5 * swept.head.max, tail_error(w) - 0.5 * swept.tail.max});
        for (std::int64_t j = 0; j < stretches.stretches(); ++j) most = std::max(most, bounds[j].excess + added(j, w));
        return most;
    }
};

/// Largest difference between what a stretch saw beside it and what is there, in units of the largest |x| of both.
double seams(const Stretches& stretches, const StretchBound* bounds, const SweepResult& swept) {
    double most = 0;
    const auto seam = [&](double seen, double there, double left, double right) {
        const double scale = std::max(left, right);
        if (scale > 0) most = std::max(most, std::abs(seen - there) / scale);
    };
    const std::int64_t last = stretches.stretches() - 1;
    for (std::int64_t j = 0; j <= last; ++j) {
        most = std::max(most, bounds[j].jump);
        if (j == last) continue;
        seam(bounds[j].beyond_x, bounds[j + 1].first_x, bounds[j].last_max, bounds[j + 1].first_max);
        seam(bounds[j + 1].before_x, bounds[j].last_x, bounds[j].last_max, bounds[j + 1].first_max);
    }
    seam(bounds[0].before_x, swept.head.near, swept.head.max, bounds[0].first_max);
    seam(bounds[last].beyond_x, swept.tail.near, bounds[last].last_max, swept.tail.max);
    return most;
}

}  // namespace

CertifiedBound combine(const Stretches& stretches, const StretchBound* bounds, const SweepResult& swept, double tolerance, double roundoff) {
    CertifiedBound result;
    const std::int64_t count = stretches.stretches();
    double largest = std::max(swept.head.max, swept.tail.max);
    for (std::int64_t j = 0; j < count; ++j) {
        largest = std::max(largest, bounds[j].max);
        if (!std::isfinite(bounds[j].max) || !std::isfinite(bounds[j].error)) result.row = stretches.start(j);
    }
    if (!std::isfinite(largest) || result.row >= 0) return result;
    if (largest == 0) {  // nothing but zeros: exact
        result.holds = true;
        return result;
    }

    const Coupling coupling{stretches, bounds, swept, 24 * roundoff};
    double slack = 0, needed = coupling.needed(0);
    for (int attempt = 0; attempt < 4 && !(needed <= slack); ++attempt) {
        slack = 2 * needed;
        needed = coupling.needed(slack);
    }
    const bool bounded = needed <= slack;
    if (!bounded) slack = 0.5 * largest;  // for truncation alone, judged by the x that was found

    // A block whose |x| is below 2^-40 of the largest is held to that.
    const double floor = tolerance * 0x1p-40 * largest, most = 1.5 * largest + slack;
    double error = std::max(coupling.head_error(slack), coupling.tail_error(slack));
    for (std::int64_t j = 0; j < count; ++j) {
        const StretchBound& b = bounds[j];
        error = std::max(error, coupling.error(j, slack));
        const double left = j > 0 ? b.halo_product * coupling.before(j, slack) : 0, right = coupling.after(j, slack);
        const bool inside = b.truncation * most <= floor || (b.relative <= tolerance && b.relative_from_right * right <= tolerance);
        const bool start = b.from_left * left <= floor || b.relative_from_left * left <= tolerance;
        if (!inside || !start) {
            result.row = stretches.start(j);
            return result;
        }
    }
    result.certificate = error / largest;
    result.holds = bounded && result.certificate <= largest_certificate;
    result.stable = seams(stretches, bounds, swept) <= largest_jump * roundoff;
    if (!result.holds) result.row = 0;
    return result;
}

}  // namespace trifold::tridiagonal
