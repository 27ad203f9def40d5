// SPDX-License-Identifier: BSD-3-Clause
// One change after another is tried on a case that fails, and kept where it still fails.
#include <algorithm>
#include <chrono>
#include <functional>

#include "property/random_case.hpp"

namespace trifold::tests {
namespace {

using Change = std::function<void(Case&)>;

void set_rows(Case& c, std::int64_t rows) {
    if (!c.recipe.lengths.empty()) return;
    c.recipe.rows = c.entries.rows = std::max<std::int64_t>(rows, 1);
    for (Planted& p : c.entries.planted) p.row = std::min(p.row, c.recipe.rows - 1);
}

void halve_pieces(Case& c) {
    if (c.recipe.lengths.empty()) return;
    c.recipe.lengths.resize((c.recipe.lengths.size() + 1) / 2);
    c.recipe.rows = c.recipe.before_systems + c.recipe.behind_systems;
    for (const std::int64_t length : c.recipe.lengths) c.recipe.rows += length;
    c.entries.rows = c.recipe.rows;
}

void nothing_beside(Case& c) {
    c.recipe.rows -= c.recipe.before_systems + c.recipe.behind_systems;
    c.recipe.before_systems = c.recipe.behind_systems = 0;
    c.entries.rows = c.recipe.rows;
}

std::vector<Change> changes() {
    std::vector<Change> all{halve_pieces,
                            nothing_beside,
                            [](Case& c) { set_rows(c, c.recipe.rows / 2); },
                            [](Case& c) { set_rows(c, c.recipe.rows * 7 / 8); },
                            [](Case& c) { set_rows(c, c.recipe.rows - 1); },
                            [](Case& c) { c.recipe.transposed = false; },
                            [](Case& c) { c.recipe.periodic = c.entries.periodic = false; },
                            [](Case& c) { c.recipe.accumulate = false; },
                            [](Case& c) { c.recipe.in_place = false; },
                            [](Case& c) { c.recipe.mixed = false; },
                            [](Case& c) { c.recipe.layout = Layout::interleaved, c.recipe.mixed = false; },
                            [](Case& c) { c.recipe.layout = Layout::contiguous, c.recipe.mixed = false; },
                            [](Case& c) { c.recipe.one_rhs = false; },
                            [](Case& c) { c.recipe.around = Around::nan; },
                            [](Case& c) { c.recipe.lower = Source::full; },
                            [](Case& c) { c.recipe.diag = Source::full; },
                            [](Case& c) { c.recipe.upper = Source::full; },
                            [](Case& c) { c.way = Way::solve; },
                            [](Case& c) { c.way = c.way == Way::refactor ? Way::factor : c.way; },
                            [](Case& c) { c.algorithm = tridiagonal::Algorithm::automatic; },
                            [](Case& c) { c.tolerance = 0; },
                            [](Case& c) { c.check_finite = c.report = c.own_workspace = c.other_threads = false, c.status = true; },
                            [](Case& c) { c.simd = 0; },
                            [](Case& c) { c.twice = false; },
                            [](Case& c) { c.in_device_memory = false; },
                            [](Case& c) { c.entries.kind = {Kind::dominant}; },
                            [](Case& c) { c.entries.kind.resize((c.entries.kind.size() + 1) / 2); },
                            [](Case& c) { c.entries.kind = {c.entries.kind.back()}; },
                            [](Case& c) { c.entries.rhs = Right::normal; },
                            [](Case& c) { c.entries.exponent = 0; },
                            [](Case& c) { c.entries.planted.clear(); },
                            [](Case& c) { if (!c.entries.planted.empty()) c.entries.planted.pop_back(); },
                            [](Case& c) { if (!c.entries.planted.empty()) c.entries.planted.erase(c.entries.planted.begin()); }};
    for (std::size_t d = 0; d < max_batch_dims; ++d) {
        all.push_back([d](Case& c) { if (d < c.recipe.batch.size() && c.recipe.front == 0) c.recipe.batch.erase(c.recipe.batch.begin() + static_cast<std::ptrdiff_t>(d)); });
        all.push_back([d](Case& c) { if (d < c.recipe.batch.size()) c.recipe.batch[d] = (c.recipe.batch[d] + 1) / 2; });
        all.push_back([d](Case& c) { if (d < c.recipe.batch.size() && c.recipe.batch[d] > 1) --c.recipe.batch[d]; });
    }
    return all;
}

}  // namespace

Case shrunk(const std::string& device, Case c, double seconds) {
    const auto start = std::chrono::steady_clock::now();
    for (bool simpler = true; simpler;) {
        simpler = false;
        for (const Change& change : changes()) {
            if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) return c;
            Case next = c;
            change(next);
            if (next.text() == c.text() || attempt(device, next).empty()) continue;
            c = next, simpler = true;
        }
    }
    return c;
}

}  // namespace trifold::tests
