// SPDX-License-Identifier: BSD-3-Clause
// usage: coupling_bench [--pieces N] [--threads N] [--rounds N] [--refined] [--warm]
//
// The coupling between two passes, phase by phase and thread by thread: pieces as Poisson's equation leaves them, 496 rows each, as many as the cpu has of 128 million rows (FP64, refined) and of 256 million (FP32, not). Before every
// round the rows are written anew by whichever thread is free, and all threads read and write past their caches, as in the first pass; --warm: not. Medians over rounds, microseconds.
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "families/tridiagonal/coupling.hpp"
#include "families/tridiagonal/coupling_runs.hpp"

namespace trifold::bench {
namespace {

using namespace tridiagonal;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of.empty() ? NAN : of[of.size() / 2];
}

long faults() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/// A thread's stream between two rounds.
constexpr std::size_t stream_bytes = std::size_t{32} << 20;

struct Asked {
    std::int64_t pieces;
    double accept;
    int threads, rounds;
    bool warm;
};

class Pieces {
public:
    explicit Pieces(const Asked& asked) : asked_(asked), rows_(static_cast<std::size_t>(2 * asked.pieces) * sizeof(InterfaceRow)), boundary_(static_cast<std::size_t>(2 * asked.pieces) * sizeof(double)),
          scratch_(coupling_scratch(asked.pieces)) {
        for (int k = 0; k < asked.threads; ++k) streams_.emplace_back(asked.warm ? 64 : stream_bytes);
    }

    void before() {
        InterfaceRow* const rows = static_cast<InterfaceRow*>(rows_.data());
        const double inside = 1.0 / 496, last = 494.0 / 495;
#pragma omp parallel for num_threads(asked_.threads) schedule(dynamic, 32)
        for (std::int64_t k = 0; k < asked_.pieces; ++k) {
            const auto right = [](std::int64_t row) {
                std::uint64_t bits = static_cast<std::uint64_t>(row + 1) * 0x9e3779b97f4a7c15;
                bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9, bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
                return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
            };
            rows[2 * k] = {{-inside, 0, 1 + inside, -1}, right(2 * k)};
            rows[2 * k + 1] = {{-last, 1, -(1 - last), 0}, right(2 * k + 1)};
        }
#pragma omp parallel for num_threads(asked_.threads) schedule(static, 1)
        for (int k = 0; k < asked_.threads; ++k) {
            double* const of = static_cast<double*>(streams_[static_cast<std::size_t>(k)].data());
            for (std::size_t i = 0; i < streams_[static_cast<std::size_t>(k)].bytes() / sizeof(double); ++i) of[i] = of[i] * 0.5 + 1;
        }
    }

    bool couple(int threads, std::vector<CouplingSpan>* spans) {
        const ChunkRows all{static_cast<InterfaceRow*>(rows_.data()), asked_.pieces};
        return tridiagonal::couple({&all, 1}, static_cast<double*>(boundary_.data()), asked_.accept, threads, scratch_.data(), spans) < 0;
    }

private:
    const Asked asked_;
    AlignedBuffer rows_, boundary_, scratch_;
    std::vector<AlignedBuffer> streams_;
};

/// Nanoseconds per piece of a thread that has a few runs in its first cache, on so many threads at a time: twice as much on all of them where two share a core.
void rate(int threads) {
    const std::int64_t runs = runs_together(), pieces = runs * run_length;
    std::vector<double> reduced(static_cast<std::size_t>(threads)), finished(reduced), again(reduced), corrected(reduced);
#pragma omp parallel num_threads(threads)
    {
        std::vector<InterfaceRow> rows(static_cast<std::size_t>(2 * pieces), InterfaceRow{{-0.1, 1, 0.5, -0.2}, 1}), out(static_cast<std::size_t>(2 * runs));
        std::vector<double> ends(static_cast<std::size_t>(2 * runs + 2), 1.0), x(static_cast<std::size_t>(2 * pieces)), left(x);
        for (std::size_t k = 1; k < rows.size(); k += 2) rows[k] = {{0.3, -0.7, 1, 0.1}, 1};
        std::vector<ChunkRun> run;
        for (std::int64_t k = 0; k < runs; ++k) run.push_back({rows.data() + 2 * k * run_length, k * run_length, run_length});
        const ChunkRuns all{run.data(), runs};
        const auto time = [&](std::vector<double>& into, const auto& work) {
            std::vector<double> each;
#pragma omp barrier
            for (int k = 0; k < 400; ++k) {
                const auto begin = Clock::now();
                work();
                each.push_back(since(begin) * 1e9 / static_cast<double>(pieces));
            }
            into[static_cast<std::size_t>(omp_get_thread_num())] = median(each);
        };
        time(reduced, [&] { reduce_runs(all, out.data()); });
        time(finished, [&] { finish_runs(all, Also::take, {.ends = ends.data() + 1, .x = x.data()}); });
        time(again, [&] { finish_runs(all, Also::take, {.ends = ends.data() + 1, .x = x.data(), .left = left.data(), .again = out.data()}); });
        time(corrected, [&] { finish_runs(all, Also::correct, {.ends = ends.data() + 1, .x = x.data(), .right = left.data(), .ends_of_x = ends.data() + 1}); });
    }
    std::printf("  in cache, %2d threads, %d runs a vector, ns per piece and thread (median, slowest): reduce %.1f %.1f, finish and take %.1f %.1f, and reduce again %.1f %.1f, correct %.1f %.1f\n", threads, static_cast<int>(runs), median(reduced),
                *std::max_element(reduced.begin(), reduced.end()), median(finished), *std::max_element(finished.begin(), finished.end()), median(again), *std::max_element(again.begin(), again.end()), median(corrected), *std::max_element(corrected.begin(), corrected.end()));
}

/// Microseconds of a parallel region in which nothing is done, after a pause of so many.
void region(int threads, int pause_us) {
    std::vector<double> each;
    for (int k = 0; k < 200; ++k) {
        const auto pause = Clock::now();
        if (pause_us > 500) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
        else while (since(pause) < pause_us * 1e-6) {}
        const auto begin = Clock::now();
        int counted = 0;
#pragma omp parallel num_threads(threads) reduction(+ : counted)
        counted += 1;
        each.push_back(counted > 0 ? since(begin) * 1e6 : NAN);
    }
    std::printf("  a region of %d threads, %d µs after the one before: %.1f µs\n", threads, pause_us, median(each));
}

bool phases(const Asked& asked) {
    Pieces pieces(asked);
    std::vector<double> whole, alone;
    struct Phase {
        std::vector<double> late, least, middle, most, wall;
    };
    std::vector<std::string> order;
    std::map<std::string, Phase> all;
    std::vector<double> faulted;
    std::vector<std::vector<double>> of_thread(static_cast<std::size_t>(asked.threads));
    for (int round = -2; round < asked.rounds; ++round) {
        pieces.before();
        auto begin = Clock::now();
        if (!pieces.couple(1, nullptr)) return false;
        if (round >= 0) alone.push_back(since(begin) * 1e6);
        pieces.before();
        std::vector<CouplingSpan> spans;
        const long before = faults();
        begin = Clock::now();
        if (!pieces.couple(asked.threads, &spans)) return false;
        if (round < 0) continue;
        whole.push_back(since(begin) * 1e6);
        faulted.push_back(static_cast<double>(faults() - before));
        // Phases come one after the other; "runs" comes twice where x is corrected.
        std::vector<double> busy(static_cast<std::size_t>(asked.threads), 0.0);
        for (std::size_t k = 0, number = 0; k < spans.size(); ++number) {
            std::size_t end = k;
            while (end < spans.size() && spans[end].what == spans[k].what) ++end;
            std::vector<double> seconds;
            auto first = spans[k].begin, latest = spans[k].begin, last = spans[k].end;
            for (std::size_t i = k; i < end; ++i) {
                const double us = std::chrono::duration<double>(spans[i].end - spans[i].begin).count() * 1e6;
                seconds.push_back(us), busy[static_cast<std::size_t>(spans[i].thread)] += us;
                first = std::min(first, spans[i].begin), latest = std::max(latest, spans[i].begin), last = std::max(last, spans[i].end);
            }
            const std::string name = std::to_string(number) + " " + spans[k].what;
            if (!all.count(name)) order.push_back(name);
            Phase& phase = all[name];
            const auto us = [&](auto to) { return std::chrono::duration<double>(to - first).count() * 1e6; };
            phase.late.push_back(us(latest)), phase.wall.push_back(us(last)), phase.middle.push_back(median(seconds));
            phase.least.push_back(*std::min_element(seconds.begin(), seconds.end())), phase.most.push_back(*std::max_element(seconds.begin(), seconds.end()));
            k = end;
        }
        for (std::size_t k = 0; k < busy.size(); ++k) of_thread[k].push_back(busy[k]);
    }
    const auto per_piece = [&](double us, int threads) { return us * 1e3 * threads / static_cast<double>(asked.pieces); };
    std::printf("%lld pieces, accepted to %.1e, %s: one thread %.0f µs (%.1f ns per piece), %d threads %.0f µs (%.1f ns per piece and thread), %.0f page faults\n", static_cast<long long>(asked.pieces), asked.accept,
                asked.warm ? "warm" : "after a first pass", median(alone), per_piece(median(alone), 1), asked.threads, median(whole), per_piece(median(whole), asked.threads), median(faulted));
    std::printf("  %-16s %8s %12s %8s %8s %8s\n", "phase", "wall", "last begins", "least", "median", "most");
    double sum = 0;
    for (const std::string& name : order) {
        const Phase& of = all[name];
        sum += median(of.wall);
        std::printf("  %-16s %8.1f %12.1f %8.1f %8.1f %8.1f\n", name.c_str(), median(of.wall), median(of.late), median(of.least), median(of.middle), median(of.most));
    }
    std::printf("  between phases   %8.1f\n  busy, by thread:", median(whole) - sum);
    for (const std::vector<double>& of : of_thread) std::printf(" %.0f", median(of));
    std::printf("\n");
    return true;
}

long number(const char* option, const char* text) {
    char* end = nullptr;
    const long value = text ? std::strtol(text, &end, 10) : 0;
    if (!text || *end || value < 1 || value > 100'000'000) {
        std::fprintf(stderr, "coupling_bench: %s needs a whole number from 1 to 100000000, not '%s'\n", option, text ? text : "");
        std::exit(2);
    }
    return value;
}

int run(int count, char** arguments) {
    long pieces = 0, threads = omp_get_max_threads(), rounds = 21;
    bool refined = false, warm = false;
    for (int k = 1; k < count; ++k) {
        const std::string option = arguments[k];
        const auto value = [&] { return number(option.c_str(), ++k < count ? arguments[k] : nullptr); };
        if (option == "--pieces") pieces = value();
        else if (option == "--threads") threads = value();
        else if (option == "--rounds") rounds = value();
        else if (option == "--refined") refined = true;
        else if (option == "--warm") warm = true;
        else return std::fprintf(stderr, "usage: coupling_bench [--pieces N] [--threads N] [--rounds N] [--refined] [--warm]\n"), 2;
    }
    if (threads > 4096) return std::fprintf(stderr, "coupling_bench: --threads is at most 4096\n"), 2;
    const int team = static_cast<int>(threads);
    std::printf("machine\n");
    rate(1), rate(team);
    for (const int pause : {0, 200, 2000}) region(team, pause);
    const Asked f64{pieces ? pieces : 150'000, coupled_to(DType::f64), team, static_cast<int>(rounds), warm}, f32{pieces ? pieces : 310'000, coupled_to(DType::f32), team, static_cast<int>(rounds), warm};
    if (pieces) return phases(refined ? f64 : f32) ? 0 : 1;
    return phases(f64) && phases(f32) ? 0 : 1;
}

}  // namespace
}  // namespace trifold::bench

int main(int count, char** arguments) { return trifold::bench::run(count, arguments); }
