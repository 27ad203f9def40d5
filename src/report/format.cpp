// SPDX-License-Identifier: BSD-3-Clause
#include "report/format.hpp"

#include <fmt/format.h>

#include <cmath>

namespace trifold::report {

// Three digits that matter.
static std::string three_digits(double value) {
    const double size = std::fabs(value);
    return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

std::string seconds_text(double seconds) {
    if (!(seconds >= 0)) return "not known";
    if (seconds < 999.5e-9) return three_digits(seconds * 1e9) + " ns";
    if (seconds < 999.5e-6) return three_digits(seconds * 1e6) + " µs";
    if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
    return three_digits(seconds) + " s";
}

std::string quantity_text(double value, const char* unit) {
    if (!std::isfinite(value)) return "not known";
    const char* prefix = "";
    for (const char* larger : {"k", "M", "G", "T"}) {
        if (value < 999.5) break;
        value /= 1000;
        prefix = larger;
    }
    return three_digits(value) + " " + prefix + unit;
}

std::string rate_text(double per_s, const char* unit) {
    return quantity_text(per_s, unit) + (std::isfinite(per_s) ? "/s" : "");
}

std::string count_text(std::int64_t count) {
    const std::string digits = std::to_string(count);
    std::string grouped;
    for (std::size_t k = 0; k < digits.size(); ++k) {
        const bool starts_group = k > 0 && (digits.size() - k) % 3 == 0 && digits[k - 1] != '-';
        if (starts_group) grouped += ' ';
        grouped += digits[k];
    }
    return grouped;
}

std::string bound_text(double value) {
    return std::isnan(value) ? "not known" : fmt::format("{:.1e}", value);
}

std::string percent_text(double share) {
    return std::isnan(share) ? "not known" : fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0);
}

std::string problem_text(std::int64_t rows, std::int64_t systems) {
    const std::string each = count_text(rows) + (rows == 1 ? " row" : " rows");
    return systems == 1 ? "one system of " + each : count_text(systems) + " systems of " + each;
}

}  // namespace trifold::report
