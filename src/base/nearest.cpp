// SPDX-License-Identifier: BSD-3-Clause
#include "base/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace trifold {

static std::size_t edit_distance(std::string_view a, std::string_view b) {
    auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

std::string nearest(std::string_view name, std::span<const std::string_view> known) {
    // A name of any length may come from a file or a command line: what is far longer than every known one is not near.
    const std::string_view start = name.substr(0, 256);
    std::string_view best;
    std::size_t least = static_cast<std::size_t>(-1);
    for (const std::string_view candidate : known) {
        const std::size_t distance = edit_distance(start, candidate);
        if (distance < least) least = distance, best = candidate;
    }
    if (best.empty() || 2 * least > std::max(start.size(), best.size())) return {};
    return std::string(best);
}

std::string nearest_hint(std::string_view name, std::span<const std::string_view> known) {
    std::string text;
    if (const std::string best = nearest(name, known); !best.empty()) text = "did you mean '" + best + "'? ";
    text += "known:";
    for (std::size_t i = 0; i < known.size(); ++i) text += (i ? ", " : " ") + std::string(known[i]);
    return text;
}

}  // namespace trifold
