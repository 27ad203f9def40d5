// SPDX-License-Identifier: BSD-3-Clause
#include "property/random_verdict.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "support/lapack.hpp"
#include "support/measure.hpp"

namespace trifold::tests {
namespace {

bool is_finite_row(const Bands<double>& s, std::int64_t i, bool with_rhs = true) {
    return std::isfinite(s.lower[i]) && std::isfinite(s.diag[i]) && std::isfinite(s.upper[i]) && (!with_rhs || std::isfinite(s.rhs[i]));
}

std::int64_t first_bad_row(const Bands<double>& s, bool with_rhs = true) {
    for (std::int64_t i = 0; i < s.rows(); ++i)
        if (!is_finite_row(s, i, with_rhs)) return i;
    return -1;
}

// Infinite diagonal entries and nothing else: long systems may take them for their limit (outcome.hpp).
bool only_infinite_diagonals(Bands<double> s) {
    for (double& value : s.diag)
        if (std::isinf(value)) value = 1;
    return first_bad_row(s) < 0;
}

// No elimination can miss it: nothing is ever added to such a row or column.
bool has_zero_row_or_column(const Bands<double>& s) {
    const std::int64_t n = s.rows();
    for (std::int64_t i = 0; i < n; ++i) {
        if (s.diag[i] != 0) continue;
        if (s.lower[i] == 0 && s.upper[i] == 0) return true;
        const double from_above = i > 0 ? s.upper[i - 1] : s.periodic ? s.upper[n - 1] : 0, from_below = i < n - 1 ? s.lower[i + 1] : s.periodic ? s.lower[0] : 0;
        if (from_above == 0 && from_below == 0) return true;
    }
    return false;
}

double largest_entry(const Bands<double>& s) { return std::max({largest(s.lower), largest(s.diag), largest(s.upper)}); }

bool is_dominant(const Bands<double>& s, double factor) {
    for (std::int64_t i = 0; i < s.rows(); ++i)
        if (!(std::abs(s.diag[i]) > factor * (std::abs(s.lower[i]) + std::abs(s.upper[i])))) return false;
    return true;
}

/// Why a regular system could still fail in this type, or that it must not.
template <class T>
bool may_fail(const Bands<double>& s) {
    constexpr double most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
    const double u = unit_roundoff(dtype_of<T>);
    if (s.rows() == 0) return false;
    if (largest_entry(s) > most * 0x1p-12 || largest(s.rhs) > most * 0x1p-12 || largest_entry(s) < least * 0x1p12) return true;
    if (s.periodic) {
        double smallest = HUGE_VAL;
        for (const double value : s.diag) smallest = std::min(smallest, std::abs(value));
        return !is_dominant(s, 1.05) || largest(s.rhs) / smallest > most * 0x1p-12 || largest_entry(s) / smallest > std::sqrt(most);
    }
    if (condition(s) > 0.005 / u) return true;
    const Gtsv<T> peer = gtsv(cast<T>(s));
    const std::vector<double> x = as_double(peer.x);
    return peer.info != 0 || !all_finite(x) || largest(x) > most * 0x1p-12;
}

// Beside 20 roundoffs: what adding to x, a tolerance and numbers near the end of the range may cost.
template <class T>
double allowed(const Trial<T>& trial, std::int64_t k, const Bands<double>& s, const std::vector<double>& x, const Circumstances& how) {
    const double u = unit_roundoff(dtype_of<T>), least = std::numeric_limits<T>::min();
    // Long rings are joined, and as many roundoffs are accepted of that. Of waves gtsv leaves 0.12 √n, seldom 0.5 √n.
    const double waves = is_dominant(s, 1) ? 0 : std::sqrt(static_cast<double>(s.rows()));
    const double roundoffs = how.named ? 2e3 : s.periodic && s.rows() > 8192 ? std::max(40.0, waves) : std::max(20.0, waves);
    double bound = roundoffs * u + 8 * how.tolerance;
    const double matrix = 3 * largest_entry(s);
    if (matrix == 0) return largest(s.rhs) > 0 ? bound + 8 * least / largest(s.rhs) : bound;
    const double size = largest(x) + largest(s.rhs) / matrix;  // in units of x: matrix times x may be beyond the range
    if (size > 0) bound += 8 * (least / matrix + least) / size;
    if (size > 0 && trial.recipe().accumulate) bound += 2 * u * (largest(trial.stored_before(k)) / size + largest(x) / size);
    return bound;
}

template <class T>
class Judge {
public:
    Judge(const Trial<T>& trial, const Outcome& outcome, const std::vector<std::int8_t>& status, const Circumstances& how)
        : trial_(trial), outcome_(outcome), status_(status), how_(how) {}

    std::string text() {
        if (!trial_.surroundings_untouched()) out_ << "what lies around x, or an input, has changed\n";
        whole();
        for (std::int64_t k = 0; k < trial_.systems() && out_.tellp() < 300; ++k) one(k);
        return out_.str();
    }

private:
    void whole() {
        std::int64_t rows = 0;
        for (std::int64_t k = 0; k < trial_.systems(); ++k) rows += trial_.system(k).rows();
        if (rows == 0 || outcome_.reason == Reason::none) {
            if ((rows == 0) != (outcome_.reason == Reason::none)) out_ << "none is said of " << rows << " rows, or is not\n";
            return;
        }
        if (outcome_.ok() != (outcome_.failures == 0) || outcome_.ok() != (outcome_.system < 0))
            out_ << "says " << trifold::name_of(outcome_.reason) << ", " << outcome_.failures << " failures, system " << outcome_.system << "\n";
        if (!*outcome_.device || !*outcome_.branch) {
            if (!(how_.checked && outcome_.reason == Reason::not_finite)) out_ << "no device or no branch\n";
        }
        if (outcome_.system >= trial_.systems() || outcome_.failures > trial_.systems()) {
            out_ << "system " << outcome_.system << ", " << outcome_.failures << " failures\n";
            return;
        }
        if (outcome_.ok()) return;
        const Bands<double> s = trial_.system(outcome_.system);
        if (outcome_.row < -1 || outcome_.row >= s.rows()) out_ << "row " << outcome_.row << " of " << s.rows() << "\n";
        const std::int64_t bad = first_bad_row(s);
        if (outcome_.reason == Reason::not_finite && bad >= 0 && (how_.checked || how_.rows_are_named) && outcome_.row != bad)
            out_ << "row " << outcome_.row << " where " << bad << " of system " << outcome_.system << " is the first that is not finite\n";
        if (status_.empty()) return;
        const auto failed = [](std::int8_t reason) { return reason < 0; };
        const auto count = std::ranges::count_if(status_, failed);
        const auto first = std::ranges::find_if(status_, failed) - status_.begin();
        if (count != outcome_.failures || first != outcome_.system)
            out_ << outcome_.failures << " failures, first " << outcome_.system << ", where status has " << count << ", first " << first << "\n";
        else if (status_[static_cast<std::size_t>(first)] != static_cast<std::int8_t>(outcome_.reason))
            out_ << "reason " << trifold::name_of(outcome_.reason) << " where status has " << trifold::name_of(static_cast<Reason>(status_[static_cast<std::size_t>(first)])) << "\n";
    }

    // What is said of a system, where it is said.
    std::optional<Reason> said(std::int64_t k) const {
        if (!status_.empty()) return static_cast<Reason>(status_[static_cast<std::size_t>(k)]);
        if (outcome_.ok()) return trial_.system(k).rows() ? outcome_.reason : Reason::none;
        if (k == outcome_.system) return outcome_.reason;
        if (how_.checked && outcome_.reason == Reason::not_finite) return Reason::none;
        if (outcome_.failures == 1 || k < outcome_.system) return Reason::exact;
        return {};
    }

    void one(std::int64_t k) {
        const Bands<double> s = trial_.system(k);
        const auto reason = said(k);
        if (!reason) return;
        const std::int64_t bad = first_bad_row(s);
        const auto complain = [&]() -> std::ostream& { return out_ << "system " << k << " (" << trifold::name_of(*reason) << "): "; };
        if (*reason == Reason::none) {
            if (s.rows() && !(how_.checked && outcome_.reason == Reason::not_finite) && trial_.systems()) complain() << "was not solved\n";
            return;
        }
        if (!ok(*reason)) return failed(k, s, *reason, bad, complain);
        if (bad >= 0 && !only_infinite_diagonals(s)) {
            complain() << "row " << bad << " is not finite\n";
            return;
        }
        if (bad >= 0) return;
        if (has_zero_row_or_column(s)) complain() << "is singular\n";
        const std::vector<double> x = trial_.solution(k);
        const double error = backward_error(s, x);
        double bound = allowed(trial_, k, s, x, how_);
        // Where all rows are equal so are their roundings, and how they add up is chance: of the same system times some numbers LAPACK leaves what differs by a factor of ten.
        for (const double times : {1.0, 1.1, 0.77, 1.3, 0.9})
            if (!s.periodic && !(error <= bound)) bound = std::max(bound, 10 * lapack_error(s, times));
        if (!(error <= bound)) complain() << "backward error " << error << " where " << bound << " is allowed (" << error / unit_roundoff(dtype_of<T>) << " roundoffs)\n";
    }

    /// Of the system times a number.
    static double lapack_error(Bands<double> s, double times) {
        for (auto* const band : {&s.lower, &s.diag, &s.upper, &s.rhs})
            for (double& v : *band) v = static_cast<double>(static_cast<T>(times * v));
        return backward_error(s, as_double(gtsv(cast<T>(s)).x));
    }

    template <class Complain>
    void failed(std::int64_t k, const Bands<double>& s, Reason reason, std::int64_t bad, const Complain& complain) {
        const Recipe& r = trial_.recipe();
        switch (reason) {
            case Reason::not_finite:
                if (bad < 0 && !may_fail<T>(s)) complain() << "all is finite\n";
                break;
            case Reason::singular:
                if (!has_zero_row_or_column(s) && first_bad_row(s, false) < 0 && !may_fail<T>(s)) complain() << "is regular\n";
                break;
            default:
                if (how_.named) break;
                if (reason == Reason::unstable && r.in_place && may_fail<T>(s)) break;
                complain() << "no algorithm was named\n";
        }
        // A large x is documented to lose it: one of a nearly singular matrix, or one beyond its type.
        if (!r.in_place || r.accumulate || how_.kept || reason != Reason::singular || bad >= 0 || !has_zero_row_or_column(s)) return;
        const std::vector<double> left = trial_.solution(k);
        const double most = (2000 + 4 * std::sqrt(static_cast<double>(s.rows()))) * unit_roundoff(dtype_of<T>) * largest(s.rhs) + std::numeric_limits<T>::min();
        for (std::int64_t i = 0; i < s.rows(); ++i)
            if (!(std::abs(left[i] - s.rhs[i]) <= most)) {
                complain() << "in place, row " << i << " of the right-hand side was " << s.rhs[i] << ", is " << left[i] << "\n";
                return;
            }
    }

    const Trial<T>& trial_;
    const Outcome& outcome_;
    const std::vector<std::int8_t>& status_;
    const Circumstances& how_;
    std::ostringstream out_;
};

}  // namespace

template <class T>
std::string verdict(const Trial<T>& trial, const Outcome& outcome, const std::vector<std::int8_t>& status, const Circumstances& how) {
    return Judge<T>(trial, outcome, status, how).text();
}

template <class T>
std::string verdict_of_factor(const Trial<T>& trial, const Outcome& outcome, std::int64_t systems) {
    std::ostringstream out;
    if (!trial.surroundings_untouched()) out << "factoring has changed an array\n";
    if (outcome.ok() != (outcome.failures == 0) || outcome.ok() != (outcome.system < 0) || outcome.system >= systems || outcome.failures > systems)
        out << "factoring says " << trifold::name_of(outcome.reason) << ", " << outcome.failures << " failures, system " << outcome.system << "\n";
    if (!outcome.ok() && out.tellp() == 0) {
        const Bands<double> s = trial.system(outcome.system);
        const std::int64_t bad = first_bad_row(s, false);
        if (outcome.row < -1 || outcome.row >= s.rows()) out << "row " << outcome.row << " of " << s.rows() << "\n";
        const bool plausible = outcome.reason == Reason::singular ? has_zero_row_or_column(s) || bad >= 0 || may_fail<T>(s) : outcome.reason == Reason::not_finite && (bad >= 0 || may_fail<T>(s));
        if (!plausible) out << "factoring says " << trifold::name_of(outcome.reason) << " of system " << outcome.system << ", which is regular\n";
    }
    const std::int64_t end = outcome.ok() ? systems : std::max<std::int64_t>(outcome.system, 0);
    for (std::int64_t k = 0; k < end && out.tellp() < 1000; ++k) {
        const Bands<double> s = trial.system(k);
        if (first_bad_row(s, false) >= 0) out << "factoring says nothing of system " << k << ", whose row " << first_bad_row(s, false) << " is not finite\n";
        else if (has_zero_row_or_column(s)) out << "factoring says nothing of system " << k << ", which is singular\n";
    }
    return out.str();
}

template std::string verdict(const Trial<float>&, const Outcome&, const std::vector<std::int8_t>&, const Circumstances&);
template std::string verdict(const Trial<double>&, const Outcome&, const std::vector<std::int8_t>&, const Circumstances&);
template std::string verdict_of_factor(const Trial<float>&, const Outcome&, std::int64_t);
template std::string verdict_of_factor(const Trial<double>&, const Outcome&, std::int64_t);

}  // namespace trifold::tests
