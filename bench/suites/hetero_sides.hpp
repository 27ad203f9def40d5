// SPDX-License-Identifier: BSD-3-Clause
// What a set of devices can do at once, part by part: the cpu on its rows while copies run over the links of the others, and the copies while it solves. Their sum is the
// ceiling of a split. The cpu solves in two ways, on all threads and on one less (which a split leaves to who waits for copies): as `cpu` does it, and in chunks that its
// threads take, as a split's cpu does it: same team, same waiting. The largest sum counts.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/record.hpp"
#include "bench/suites/hetero_all.hpp"
#include "bench/suites/hetero_arrays.hpp"
#include "bench/suites/hetero_links.hpp"
#include "bench/suites/hetero_series.hpp"

namespace trifold::bench {

class Side {
public:
    /// parts: `cpu`, which has the first `cut` rows, and devices with links, which have equal parts of the others; or devices only. Throws Error where there is no link.
    template <class T>
    static Side of(const std::string& name, std::vector<std::string> parts, std::int64_t cut, std::int64_t rows, const Arrays& arrays, Context& all, Context& fewer) {
        Side side;
        const bool cpu = std::erase(parts, "cpu") > 0;
        side.name_ = name, side.parts_ = parts;
        side.cut_ = cpu ? cut : 0;
        side.links_ = Links::of<T>(parts, side.cut_, rows, arrays);
        if (!cpu) {
            side.ways_.emplace_back();
            return side;
        }
        for (Context* context : {&all, &fewer}) {
            side.ways_.push_back({.threads = context->threads(), .queue = std::make_unique<Queue>(*context, "cpu"), .chunks = nullptr, .cpu = {}, .to = {}, .from = {}});
            side.ways_.push_back({.threads = context->threads(), .queue = nullptr, .chunks = std::make_unique<AllTogether>(std::vector<std::string>{"cpu"}, context->threads()), .cpu = {}, .to = {}, .from = {}});
        }
        return side;
    }

    /// One round: each alone, then all at once.
    template <class T>
    void measure(const Arrays& arrays, std::int64_t rows, double seconds) {
        if (!ways_[0].idle()) cpu_.push_back(cores<T>(ways_[0], arrays, rows, seconds));
        to_.push_back(links_.one_alone(Direction::to, seconds).to), from_.push_back(links_.one_alone(Direction::from, seconds).from);
        const LinkRates alone = links_.one_alone(Direction::solve, seconds);
        solve_to_.push_back(alone.to), solve_from_.push_back(alone.from);
        for (Way& way : ways_) {
            double rate = 0;
            const LinkRates copies = links_.during(Direction::solve, [&] {
                if (way.idle()) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
                else rate = cores<T>(way, arrays, cut_, seconds);
            });
            way.cpu.push_back(rate), way.to.push_back(copies.to), way.from.push_back(copies.from);
        }
    }

    template <class T>
    void put(const char* matrix, std::int64_t rows, int threads, Record& record, std::map<std::string, double>& ceiling, std::map<std::string, double>& link) const {
        const double row_in = 4 * sizeof(T);
        const auto sum = [&](const Way& way) {
            std::vector<double> sums;
            for (std::size_t k = 0; k < way.cpu.size(); ++k) sums.push_back(way.cpu[k] + way.to[k] / row_in);
            return median(sums);
        };
        const Way& best = *std::max_element(ways_.begin(), ways_.end(), [&](const Way& a, const Way& b) { return sum(a) < sum(b); });
        Row row;
        row.set("kind", "ceiling").set("matrix", matrix).set("devices", name_).set("dtype", name_of(dtype_of<T>)).set("rows", static_cast<double>(rows)).set("threads", static_cast<double>(threads));
        row.set("rounds", static_cast<double>(to_.size())).set("cpu_share", static_cast<double>(cut_) / static_cast<double>(rows));
        row.set("to_bytes_per_s", median(to_)).set("from_bytes_per_s", median(from_)).set("solve_to_bytes_per_s", median(solve_to_)).set("solve_from_bytes_per_s", median(solve_from_));
        if (!best.idle()) {
            row.set("cpu_rows_per_s", median(cpu_)).set("threads_beside", static_cast<double>(best.threads)).set("in_chunks", best.chunks != nullptr);
            row.set("cpu_rows_per_s_while_copies", median(best.cpu));
            for (const Way& way : ways_) row.set("sum_rows_per_s_" + std::to_string(way.threads) + (way.chunks ? "_threads_chunks" : "_threads"), sum(way));
        }
        row.set("to_bytes_per_s_while_cpu", median(best.to)).set("from_bytes_per_s_while_cpu", median(best.from)).set("ceiling_rows_per_s", sum(best));
        ceiling[name_] = sum(best);
        if (parts_.size() == 1) link[parts_[0]] = median(to_) / row_in;
        std::fprintf(stderr, "  %s %s %.3g rows side by side:", name_.c_str(), name_of(dtype_of<T>), static_cast<double>(rows));
        for (const Way& way : ways_) std::fprintf(stderr, " %.0f + %.0f = %.0f Mrows/s (%d%s)", 1e-6 * median(way.cpu), 1e-6 * median(way.to) / row_in, 1e-6 * sum(way), way.threads, way.chunks ? ", chunks" : "");
        std::fprintf(stderr, "\n");
        record.rows.push_back(std::move(row));
    }

private:
    struct Way {
        int threads = 0;
        std::unique_ptr<Queue> queue;          ///< as `cpu` solves
        std::unique_ptr<AllTogether> chunks;   ///< as a split's cpu does
        std::vector<double> cpu, to, from;     ///< rows/s, bytes/s; of all links together
        bool idle() const { return !queue && !chunks; }
    };

    template <class T>
    static double cores(Way& way, const Arrays& arrays, std::int64_t count, double seconds) {
        using Clock = std::chrono::steady_clock;
        const tridiagonal::Problem problem = arrays.problem<T>(count, false);
        T* each[5];
        for (int k = 0; k < 5; ++k) each[k] = arrays.at<T>(k);
        std::vector<double> times;
        for (const auto start = Clock::now(); times.size() < 2 || std::chrono::duration<double>(Clock::now() - start).count() < seconds;) {
            const auto begin = Clock::now();
            if (way.queue) tridiagonal::solve(*way.queue, problem);
            else if (!std::isfinite(way.chunks->solve<T>(each, count)) && times.empty()) continue;  // the first one learns its pace
            times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
        }
        return static_cast<double>(count) / median(times);
    }

    std::string name_;
    std::vector<std::string> parts_;  ///< but for the cpu
    std::int64_t cut_ = 0;
    Links links_;
    std::vector<Way> ways_;
    std::vector<double> cpu_, to_, from_, solve_to_, solve_from_;
};

}  // namespace trifold::bench
