// SPDX-License-Identifier: BSD-3-Clause
// usage: trifold_bench --help
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "base/available_memory.hpp"
#include "base/nearest.hpp"
#include "bench/harness/machine.hpp"
#include "bench/suites/suites.hpp"
#include "devices/topology.hpp"
#include "trifold/error.hpp"

namespace trifold::bench {

std::string count_text(double count) {
    char text[32];
    std::snprintf(text, sizeof text, count >= 1e4 && count == static_cast<double>(static_cast<std::int64_t>(count / 1e4)) * 1e4 ? "%.3g" : "%.0f", count);
    return text;
}

std::int64_t rows_that_fit(double wanted, DType dtype, double words) {
    const double fit = 0.5 * static_cast<double>(available_memory()) / (words * static_cast<double>(size_of(dtype)));
    return static_cast<std::int64_t>(std::min(wanted, fit));
}

std::int64_t rows_in_cache(DType dtype) {
    const std::size_t bytes = std::max(devices::read_topology().last_level() / 2, std::size_t{1} << 20);
    return static_cast<std::int64_t>(bytes / (5 * size_of(dtype)));
}

namespace {

constexpr const char* usage =
    "usage: trifold_bench [--quick] [--threads N] [--scale X] [--rows N] [--seconds S] [--watts D=W,…] [--devices A,B,…] [--out FOLDER] [suite…]\n"
    "  --quick       smaller problems, for a look\n"
    "  --threads N   only this many threads (default: 1 and all)\n"
    "  --scale X     X times the time for every race\n"
    "  --rows N      hetero, mappings, dominance: rows of the largest system\n"
    "  --seconds S   hetero, hetero_kinds, hetero_choice: fewer rounds, so that the suite is done by then\n"
    "  --watts D=W   hetero: watts of devices without an energy counter, cpu=140,cuda:0=700\n"
    "  --devices A,B hetero: every set of these devices, on systems of --rows rows and of half of them; dominance: only these\n"
    "  --out FOLDER  default bench/results/<machine>\n";

double number(const char* option, const char* text) {
    char* end = nullptr;
    const double value = text ? std::strtod(text, &end) : 0;
    if (!text || end == text || *end || !(value > 0) || value > 1e12)
        throw Error(ErrorCode::usage, option, std::string("needs a positive number, not '") + (text ? text : "") + "'");
    return value;
}

const Suite& suite_named(const std::string& name) {
    std::vector<std::string_view> known;
    for (const Suite& suite : suites) {
        if (name == suite.name) return suite;
        known.push_back(suite.name);
    }
    throw Error(ErrorCode::usage, "suite", "unknown suite '" + name + "'", nearest_hint(name, known));
}

void run(const Suite& suite, const Settings& settings) {
    std::fprintf(stderr, "%s: %s\n", suite.name, suite.title);
    Record record;
    record.suite = suite.name, record.title = suite.title, record.reduced = settings.quick;
    record.load_before = load_average();
    const auto start = std::chrono::steady_clock::now();
    suite.run(settings, record);
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_record(record, settings.out);
    std::fprintf(stderr, "  %.0f s, %s/%s.json\n", record.seconds, settings.out.c_str(), record.suite.c_str());
}

int main_of(int argc, char** argv) {
    Settings settings;
    settings.out = "bench/results/" + machine_slug();
    std::vector<const Suite*> chosen;
    for (int k = 1; k < argc; ++k) {
        const std::string argument = argv[k];
        const char* next = k + 1 < argc ? argv[k + 1] : nullptr;
        if (argument == "--help" || argument == "-h") {
            std::fputs(usage, stdout);
            for (const Suite& suite : suites) std::printf("  %-10s %s\n", suite.name, suite.title);
            return 0;
        }
        if (argument == "--quick") settings.quick = true, settings.budget_scale *= 0.5;
        else if (argument == "--threads") settings.threads = static_cast<int>(number("--threads", next)), ++k;
        else if (argument == "--scale") settings.budget_scale *= number("--scale", next), ++k;
        else if (argument == "--rows") settings.rows = number("--rows", next), ++k;
        else if (argument == "--seconds") settings.seconds = number("--seconds", next), ++k;
        else if (argument == "--watts") settings.watts = next ? next : "", ++k;
        else if (argument == "--devices") settings.devices = next ? next : "", ++k;
        else if (argument == "--out") {
            if (!next) throw Error(ErrorCode::usage, "--out", "needs a folder");
            settings.out = next, ++k;
        } else if (argument.starts_with("-")) {
            throw Error(ErrorCode::usage, argument, "is no option", "see --help");
        } else {
            chosen.push_back(&suite_named(argument));
        }
    }
    if (chosen.empty())
        for (const Suite& suite : suites) chosen.push_back(&suite);
    set_blas_threads(1);
    for (const Suite* suite : chosen) run(*suite, settings);
    return 0;
}

}  // namespace
}  // namespace trifold::bench

int main(int argc, char** argv) {
    try {
        return trifold::bench::main_of(argc, argv);
    } catch (const trifold::Error& error) {
        std::fprintf(stderr, "trifold_bench: %s\n", error.what());
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "trifold_bench: %s\n", error.what());
        return 1;
    }
}
