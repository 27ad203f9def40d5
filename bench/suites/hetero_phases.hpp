// SPDX-License-Identifier: BSD-3-Clause
// What a set of the cpu and devices with links can reach of a system that does not forget, pass by pass, since all rows have to be read before any x is written (two_phases.hpp). Measured with what a split does: in the first
// pass the cpu reduces its rows while links only bring those of the others; in the second it finishes them while links take x away, and once more while they also bring rows that the cpu has reduced. Each alone too, for what is
// left of a pass when the other has ended. On all of the cpu's threads and on one less; what is faster counts. Not in it: coupling between the passes, and what a device takes to compute.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/record.hpp"
#include "bench/harness/two_phases.hpp"
#include "bench/suites/hetero_links.hpp"
#include "bench/suites/hetero_passes.hpp"
#include "bench/suites/hetero_series.hpp"

namespace trifold::bench {

class Phases {
public:
    /// parts: the cpu, which has the first `cut` rows, and devices with links. Throws Error where there is no link, or the rows cannot be coupled.
    template <class T>
    static Phases of(const std::string& name, std::vector<std::string> parts, std::int64_t cut, std::int64_t rows, const Arrays& arrays, std::vector<int> threads) {
        Phases phases;
        phases.name_ = name, phases.cut_ = cut, phases.row_in_ = 4 * sizeof(T), phases.row_out_ = sizeof(T);
        std::erase(parts, "cpu");
        phases.links_ = Links::of<T>(parts, cut, rows, arrays);
        std::sort(threads.begin(), threads.end()), threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
        for (const int count : threads) {
            Way way;
            way.threads = count, way.passes = TwoPasses::of<T>(arrays, cut, rows, count);
            way.passes->reduce();
            if (!std::isfinite(way.passes->reduce()) || !way.passes->couple() || !std::isfinite(way.passes->finish())) throw Error(ErrorCode::device_unavailable, "cpu", "cannot do these rows in two passes");
            phases.ways_.push_back(std::move(way));
        }
        return phases;
    }

    const std::string& name() const { return name_; }

    /// One round.
    void measure(double seconds) {
        const auto idle = [&] { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
        for (std::size_t k = 0; k < 3; ++k) seen(alone_[k], 0, links_.during(directions[k], idle));
        for (Way& way : ways_) {
            const auto reduce = [&] { return rate(seconds, [&] { return way.passes->reduce(); }); };
            const auto finish = [&] { return rate(seconds, [&] { return way.passes->finish(); }); };
            seen(way.reduce_alone, reduce(), {}), seen(way.finish_alone, finish(), {});
            for (std::size_t k = 0; k < 3; ++k) {
                double cores = 0;
                const LinkRates copies = links_.during(directions[k], [&] { cores = k == 0 ? reduce() : finish(); });
                seen(way.beside[k], cores, copies);
            }
        }
    }

    /// all: what the devices took together, in turns with this, and what of it was coupling.
    void put(const char* matrix, const char* dtype, std::int64_t rows, AllTogether* all, Record& record, std::map<std::string, double>& ceiling) const {
        std::vector<double> reached;
        for (const Way& way : ways_) reached.push_back(median(rates(way)));
        const auto best = static_cast<std::size_t>(std::max_element(reached.begin(), reached.end()) - reached.begin());
        const Way& way = ways_[best];
        const double n = static_cast<double>(rows);
        const auto at = [](const std::vector<TwoPhases>& found, double TwoPhases::*what) {
            std::vector<double> values;
            for (const TwoPhases& one : found) values.push_back(one.*what);
            return median(values);
        };
        const std::vector<TwoPhases> found = passes(way);
        Row row;
        row.set("kind", "ceiling").set("name", "phases").set("matrix", matrix).set("devices", name_).set("dtype", dtype).set("rows", n).set("rounds", static_cast<double>(found.size()));
        row.set("measured_share", static_cast<double>(cut_) / n).set("threads_beside", static_cast<double>(way.threads));
        constexpr const char* beside[] = {"reduce_beside_to", "finish_beside_from", "finish_beside_both"};
        constexpr const char* alone[] = {"to_alone", "from_alone", "both_alone"};
        for (std::size_t k = 0; k < 3; ++k) put_seen(row, beside[k], way.beside[k]);
        put_seen(row, "reduce_alone", way.reduce_alone), put_seen(row, "finish_alone", way.finish_alone);
        for (std::size_t k = 0; k < 3; ++k) put_seen(row, alone[k], alone_[k]);
        for (std::size_t k = 0; k < ways_.size(); ++k) row.set("ceiling_rows_per_s_" + std::to_string(ways_[k].threads) + "_threads", reached[k]);
        row.set("ceiling_rows_per_s", reached[best]).set("share", at(found, &TwoPhases::share)).set("sent_share", at(found, &TwoPhases::sent)).set("first_pass", at(found, &TwoPhases::first));
        if (all)
            for (const char* phase : {"reduce", "couple", "finish"})
                if (const std::vector<double>& times = all->phase(phase); !times.empty()) row.set(std::string("solve_") + phase + "_s", median(times));
        if (const double couple = row.number("solve_couple_s"); std::isfinite(couple)) row.set("coupled_rows_per_s", n / (n / reached[best] + couple));
        ceiling[name_] = reached[best];
        std::fprintf(stderr, "  %s %s %.3g rows in two passes: %.0f Mrows/s, cores %.0f %%, sent back %.0f %%, %d threads\n", name_.c_str(), dtype, n, 1e-6 * reached[best], 100 * row.number("share"),
                     100 * row.number("sent_share"), way.threads);
        record.rows.push_back(std::move(row));
    }

private:
    static constexpr Direction directions[] = {Direction::to, Direction::from, Direction::both};

    /// Of every round, rows/s and bytes/s.
    struct Seen {
        std::vector<double> cores, to, from;
    };
    struct Way {
        int threads = 0;
        std::unique_ptr<TwoPasses> passes;
        Seen reduce_alone, finish_alone, beside[3];
    };

    static void seen(Seen& all, double cores, LinkRates copies) { all.cores.push_back(cores), all.to.push_back(copies.to), all.from.push_back(copies.from); }

    template <class Pass>
    double rate(double seconds, const Pass& pass) const {
        std::vector<double> times;
        for (double sum = 0; times.size() < 2 || sum < seconds; sum += times.back()) {
            const double its = pass();
            times.push_back(std::isfinite(its) ? its : INFINITY);  // refused: no rows at all
        }
        return static_cast<double>(cut_) / median(times);
    }

    static void put_seen(Row& row, const std::string& name, const Seen& all) {
        if (const double cores = median(all.cores); cores > 0) row.set(name + "_rows_per_s", cores);
        if (const double to = median(all.to); to > 0) row.set(name + "_to_bytes_per_s", to);
        if (const double from = median(all.from); from > 0) row.set(name + "_from_bytes_per_s", from);
    }

    /// The fastest way through both, of every round.
    std::vector<TwoPhases> passes(const Way& way) const {
        std::vector<TwoPhases> found;
        for (std::size_t round = 0; round < alone_[0].to.size(); ++round) {
            std::vector<PhaseMode> modes;
            const auto mode = [&](int pass, const Seen& one) { modes.push_back({pass, one.cores[round], one.to[round] / row_in_, one.from[round] / row_out_}); };
            mode(1, way.reduce_alone), mode(1, way.beside[0]), mode(1, alone_[0]);
            for (const Seen* one : {&way.finish_alone, &way.beside[1], &way.beside[2], &alone_[1], &alone_[2]}) mode(2, *one);
            found.push_back(fastest(modes));
        }
        return found;
    }

    std::vector<double> rates(const Way& way) const {
        std::vector<double> out;
        for (const TwoPhases& one : passes(way)) out.push_back(one.rows_per_s);
        return out;
    }

    std::string name_;
    std::int64_t cut_ = 0;
    double row_in_ = 0, row_out_ = 0;
    Links links_;
    std::vector<Way> ways_;
    Seen alone_[3];
};

}  // namespace trifold::bench
