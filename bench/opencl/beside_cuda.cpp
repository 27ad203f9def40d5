// SPDX-License-Identifier: BSD-3-Clause
// usage: opencl_gpu_bench [--json FILE] [--rounds N] [--rows LOG2] [--devices A,B] [--length N] [f32] [f64] [batches] [single] [streaming]
//
// An OpenCL device with memory of its own beside CUDA's on the same machine, in one process: the same numbers in arrays of each, solved in turn. Time: ten solves one after
// the other, from the first call until the device has done all, over ten; and of one solve alone, between two marks (OpenCL's wait, CUDA's do not). Medians. The roof of either is its own stream of the same size that reads four arrays and writes one.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "base/utc.hpp"
#include "devices/runtime.hpp"
#include "families/device.hpp"
#include "numbers.hpp"
#include "streaming.hpp"
#include "trifold/trifold.hpp"
#include "trifold_commit.hpp"

namespace {

using namespace trifold;
using bench::Numbers;
using bench::period;
using nlohmann::ordered_json;

struct Form {
    const char* name;
    std::int64_t rows, systems;
    bool interleaved;
    double diagonal;  ///< its least |diag|; couplings are at most 1
};

void must(bool good, const Failure& failure) {
    if (good) return;
    std::fprintf(stderr, "%s\n", failure.message);
    std::exit(5);
}

class Timed {
public:
    Timed(Context& context, const std::string& name) : device(device_at(find_device(name))), queue(context, name) {}

    template <class F>
    double seconds(F work) const {
        Failure failure;
        void *from = nullptr, *to = nullptr;
        double s = 0;
        const devices::Runtime& run = *device.runtime;
        must(run.mark(device.number, nullptr, &from, failure), failure);
        work();
        must(run.mark(device.number, nullptr, &to, failure) && run.synchronize(device.number, nullptr, failure) && run.seconds(device.number, from, to, &s, failure), failure);
        run.release_mark(device.number, from), run.release_mark(device.number, to);
        return s;
    }

    /// Of one of ten, as a program that goes on sees it.
    template <class F>
    double seconds_of_ten(F work) const {
        Failure failure;
        const auto wait = [&] { must(device.runtime->synchronize(device.number, nullptr, failure), failure); };
        wait();
        const auto start = std::chrono::steady_clock::now();
        for (int k = 0; k < 10; ++k) work();
        wait();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 10;
    }

    double roof(std::size_t bytes) const {
        Failure failure;
        double rate = 0;
        must(device.runtime->bandwidth(device.number, nullptr, 4, false, bytes, &rate, failure), failure);
        return rate;
    }

    const Device& device;
    mutable Queue queue;
};

template <class T>
struct Arrays {
    DeviceArray<T> lower, diag, upper, rhs, x;

    Arrays(const Timed& on, std::int64_t size, const Numbers<T>& numbers)
        : lower(on.queue, size), diag(on.queue, size), upper(on.queue, size), rhs(on.queue, size), x(on.queue, size) {
        fill(on, lower, numbers.lower), fill(on, diag, numbers.diag), fill(on, upper, numbers.upper), fill(on, rhs, numbers.rhs);
    }

    static void fill(const Timed& on, DeviceArray<T>& to, const std::vector<T>& from) {
        std::int64_t done = std::min(period, to.size());
        copy(on.queue, to.data(), from.data(), static_cast<std::size_t>(done) * sizeof(T));
        for (; done < to.size(); done = std::min(2 * done, to.size()))
            copy(on.queue, to.data() + done, to.data(), static_cast<std::size_t>(std::min(done, to.size() - done)) * sizeof(T));
    }
};

template <class T, class U>
View<T> view(const Form& f, U* data) {
    if (f.systems == 1) return View<T>::rows(std::span<T>(data, static_cast<std::size_t>(f.rows)));
    return f.interleaved ? View<T>::interleaved(data, f.rows, f.systems) : View<T>::contiguous(data, f.systems, f.rows);
}

/// Largest |rhs - A x| over (|a| + |b| + |c|) max|x| of the row, in unit roundoffs, over the first rows of what lies side by side.
template <class T>
double backward_error(const Timed& on, const Form& f, const Arrays<T>& a, const Numbers<T>& numbers) {
    const std::int64_t step = f.interleaved ? f.systems : 1, count = std::min(period, f.rows * f.systems);
    std::vector<T> x(static_cast<std::size_t>(count));
    copy(on.queue, x.data(), a.x.data(), x.size() * sizeof(T));
    double worst = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t row = f.interleaved ? i / f.systems : i % f.rows;
        const auto at = [&](std::int64_t k) { return static_cast<long double>(x[static_cast<std::size_t>(k)]); };
        const auto k = static_cast<std::size_t>(i);
        long double rest = numbers.rhs[k] - numbers.diag[k] * at(i), entries = std::fabs(numbers.diag[k]), size = std::fabs(at(i));
        if (row > 0) rest -= numbers.lower[k] * at(i - step), entries += std::fabs(numbers.lower[k]), size = std::max(size, std::fabs(at(i - step)));
        if (row + 1 < f.rows) {
            if (i + step >= count) continue;
            rest -= numbers.upper[k] * at(i + step), entries += std::fabs(numbers.upper[k]), size = std::max(size, std::fabs(at(i + step)));
        }
        const double error = static_cast<double>(std::fabs(rest) / (entries * size));
        if (!(error <= worst)) worst = error;
    }
    return worst / (sizeof(T) == 8 ? 0x1p-53 : 0x1p-24);
}

template <class T>
void run(const std::vector<std::unique_ptr<Timed>>& devices, const Form& form, int rounds, ordered_json& out) {
    const std::int64_t size = form.rows * form.systems;
    const Numbers<T> numbers(form.diagonal);
    struct One {
        Arrays<T> arrays;
        DeviceArray<std::byte> scratch;
        tridiagonal::Problem problem;
        tridiagonal::Options options;
        tridiagonal::PendingOutcome outcome;
        std::vector<double> seconds, marked;
    };
    std::vector<std::unique_ptr<One>> all;
    for (const auto& on : devices) {
        auto one = std::unique_ptr<One>(new One{Arrays<T>(*on, size, numbers), {}, {}, {}, tridiagonal::PendingOutcome(on->queue), {}, {}});
        tridiagonal::Problem& p = one->problem;
        p.matrix = {view<const T>(form, one->arrays.lower.data()), view<const T>(form, one->arrays.diag.data()), view<const T>(form, one->arrays.upper.data())};
        p.rhs = view<const T>(form, one->arrays.rhs.data()), p.x = view<T>(form, one->arrays.x.data());
        std::size_t bytes = 0;
        for (const WorkspaceNeed& need : workspace(on->queue, p, one->options)) bytes = std::max(bytes, need.bytes);
        if (bytes) one->scratch = DeviceArray<std::byte>(on->queue, static_cast<std::int64_t>(bytes)), one->options.workspace = {one->scratch.data(), bytes};
        all.push_back(std::move(one));
    }
    for (int round = -2; round < rounds; ++round)
        for (std::size_t d = 0; d < devices.size(); ++d) {
            One& one = *all[d];
            const auto solve = [&] { solve_async(devices[d]->queue, one.problem, one.options, one.outcome); };
            const double marked = devices[d]->seconds(solve), s = devices[d]->seconds_of_ten(solve);
            if (round >= 0) one.seconds.push_back(s), one.marked.push_back(marked);
        }
    double first = 0;
    for (std::size_t d = 0; d < devices.size(); ++d) {
        One& one = *all[d];
        std::sort(one.seconds.begin(), one.seconds.end());
        std::sort(one.marked.begin(), one.marked.end());
        const double alone = one.marked[one.marked.size() / 2];
        const double median = one.seconds[one.seconds.size() / 2], roof = devices[d]->roof(static_cast<std::size_t>(size) * sizeof(T));
        const double fraction = 5.0 * static_cast<double>(size) * sizeof(T) / median / roof;
        const Outcome outcome = one.outcome.read();
        if (d == 0) first = median;
        ordered_json row = {{"case", form.name}, {"rows", form.rows}, {"systems", form.systems}, {"precision", sizeof(T) == 8 ? "f64" : "f32"}, {"device", devices[d]->device.name},
                            {"branch", outcome.branch}, {"reason", name_of(outcome.reason)}, {"ms", median * 1e3}, {"alone_ms", alone * 1e3},
                            {"grows_per_s", static_cast<double>(size) / median * 1e-9}, {"roof_gb_per_s", roof * 1e-9}, {"fraction", fraction},
                            {"backward_error_roundoffs", backward_error(*devices[d], form, one.arrays, numbers)}, {"rescued", outcome.rescued}};
        if (d > 0) row["times_first"] = median / first;
        std::printf("%-22s %9lld x %-8lld %s %-12s %-10s %-9s %8.4f ms  alone %8.4f  %5.1f %% of %4.0f GB/s  %6.1f u  %.2f x  rescued %lld\n", form.name, static_cast<long long>(form.rows),
                    static_cast<long long>(form.systems), sizeof(T) == 8 ? "f64" : "f32", devices[d]->device.name, std::string(outcome.branch).c_str(), name_of(outcome.reason), median * 1e3, alone * 1e3,
                    100 * fraction, roof * 1e-9, row["backward_error_roundoffs"].get<double>(), median / first, static_cast<long long>(outcome.rescued));
        std::fflush(stdout);
        out.push_back(std::move(row));
    }
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        out.push_back(text.substr(at, comma - at));
        at = comma + 1;
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) try {
    std::string json, names = "cuda:0,opencl:0.0";
    int rounds = 15, log2_rows = 26, length = 0;  // 0: all lengths of batches
    bool f32 = false, f64 = false, batches = false, single = false, streaming = false;
    for (int k = 1; k < argc; ++k) {
        const std::string word = argv[k];
        if (word == "--json" && k + 1 < argc) json = argv[++k];
        else if (word == "--devices" && k + 1 < argc) names = argv[++k];
        else if (word == "--rounds" && k + 1 < argc) rounds = std::max(1, std::atoi(argv[++k]));
        else if (word == "--rows" && k + 1 < argc) log2_rows = std::clamp(std::atoi(argv[++k]), 12, 30);
        else if (word == "--length" && k + 1 < argc) length = std::atoi(argv[++k]);
        else if (word == "f32") f32 = true;
        else if (word == "f64") f64 = true;
        else if (word == "batches") batches = true;
        else if (word == "single") single = true;
        else if (word == "streaming") streaming = true;
        else return std::fprintf(stderr, "usage: opencl_gpu_bench [--json FILE] [--devices A,B] [--rounds N] [--rows LOG2] [--length ROWS] [f32] [f64] [batches] [single] [streaming]\n"), 2;
    }
    if (!f32 && !f64) f32 = f64 = true;
    if (!batches && !single && !streaming) batches = single = streaming = true;
    Context context({.threads = 0, .profile_path = "none", .log = {}});
    std::vector<std::unique_ptr<Timed>> devices;
    for (const std::string& name : split(names)) {
        if (!device_at(find_device(name)).runtime) return std::printf("%s has no memory of its own\n", name.c_str()), 77;
        devices.push_back(std::make_unique<Timed>(context, name));
    }
    const Device& last = devices.back()->device;
    ordered_json record = {{"schema", "trifold.bench/1"}, {"suite", "opencl"}, {"title", "OpenCL beside CUDA"}};
    const std::string text = last.description(last);
    record["machine"] = {{"gpu", text.substr(0, text.find(','))}, {"opencl", text}};
    record["rounds"] = rounds;
    ordered_json rows = ordered_json::array();
    const std::int64_t all = std::int64_t{1} << (log2_rows - 1);
    if (batches)
        for (const bool interleaved : {false, true})
            for (const std::int64_t n : {64, 256, 512}) {
                if (length && n != length) continue;
                const Form form{interleaved ? "batch, interleaved" : "batch, contiguous", n, all / n, interleaved, 3};
                if (f64) run<double>(devices, form, rounds, rows);
                if (f32) run<float>(devices, form, rounds, rows);
            }
    if (single)
        for (const int log2 : {log2_rows - 14, log2_rows - 10, log2_rows - 6, log2_rows - 4, log2_rows - 2, log2_rows}) {
            if (log2 < 10) continue;
            // Couplings up to 1 beside a diagonal of up to 1: it needs pivots.
            for (const Form& form : {Form{"one system, dominant", std::int64_t{1} << log2, 1, false, 3}, Form{"one system, -1, 2, -1", std::int64_t{1} << log2, 1, false, bench::poisson},
                                     Form{"one system, random", std::int64_t{1} << log2, 1, false, 0}}) {
                if (f64) run<double>(devices, form, rounds, rows);
                if (f32) run<float>(devices, form, rounds, rows);
            }
        }
    record["remarks"] = {"Measured on " + utc_now("%Y-%m-%d") + ", built from commit " + (*TRIFOLD_COMMIT ? TRIFOLD_COMMIT : "unknown") + "."};
    if (streaming) {
        if (f64) bench::run_streaming<double>(context, split(names), std::int64_t{1} << (log2_rows + 1), rounds, rows);
        if (f32) bench::run_streaming<float>(context, split(names), std::int64_t{1} << (log2_rows + 2), rounds, rows);
        record["remarks"].push_back("Streamed from the host: registered memory; the roof is the link's, copies of the same arrays to the device, and 4 words per row go that way.");
    }
    record["rows"] = std::move(rows);
    if (!json.empty()) std::ofstream(json) << record.dump(1) << '\n';
    return 0;
} catch (const trifold::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), static_cast<int>(error.code());
}
