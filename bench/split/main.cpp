// SPDX-License-Identifier: BSD-3-Clause
// usage: split_bench ROWS f32|f64 dominant|poisson|random ROUNDS DEVICES… [--pageable] [--in-place] [--trace FILE]
//
// One system of the host's memory on devices and sets of them ("cpu" "cuda:0" "cpu,cuda:0"), in turns: rows per second, what each did, beside the link's
// bandwidth of copies of the same arrays. Prints a JSON record. Arrays are registered with the devices unless --pageable.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "trifold/trifold.hpp"

namespace trifold::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[(values.size() - 1) / 2];
}

struct Arguments {
    std::int64_t rows = 0;
    std::string precision, kind, trace;
    int rounds = 1;
    bool registered = true, in_place = false;
    std::vector<std::string> devices;

    Arguments(int count, char** words) {
        std::vector<std::string> plain;
        for (int k = 1; k < count; ++k) {
            const std::string word = words[k];
            if (word == "--pageable") registered = false;
            else if (word == "--in-place") in_place = true;
            else if (word == "--trace" && k + 1 < count) trace = words[++k];
            else plain.push_back(word);
        }
        if (plain.size() < 5) {
            std::fprintf(stderr, "usage: split_bench ROWS f32|f64 dominant|poisson|random ROUNDS DEVICES... [--pageable] [--in-place] [--trace FILE]\n");
            std::exit(2);
        }
        rows = std::atoll(plain[0].c_str()), precision = plain[1], kind = plain[2], rounds = std::atoi(plain[3].c_str());
        devices.assign(plain.begin() + 4, plain.end());
    }
};

// [0, 1), from the row and the array alone.
double noise(std::int64_t row, std::uint64_t array) {
    std::uint64_t z = (static_cast<std::uint64_t>(row) + 1) * 0x9e3779b97f4a7c15u + array * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u, z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

template <class T>
class Bench {
public:
    explicit Bench(const Arguments& a) : a_(a), context_({.threads = 0, .profile_path = "none", .log = [](std::string_view line) { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); }}) {
        const auto start = Clock::now();
        for (AlignedBuffer& array : arrays_) array = AlignedBuffer(static_cast<std::size_t>(a.rows) * sizeof(T));
        fill(true);
        record_["fill_s"] = seconds_since(start);
    }

    Json run() {
        std::vector<std::unique_ptr<Queue>> queues;
        for (const std::string& name : a_.devices) queues.push_back(std::make_unique<Queue>(context_, name));
        std::vector<RegisteredMemory> registered;
        if (a_.registered) {
            const auto start = Clock::now();
            if (const Queue* queue = with_link(queues))
                for (const AlignedBuffer& array : arrays_) registered.emplace_back(*queue, array.data(), array.bytes());
            record_["register_s"] = seconds_since(start);
        }
        std::vector<std::vector<double>> times(queues.size()), links;
        std::vector<Report> last(queues.size());
        std::vector<Json> rounds(queues.size(), Json::array());
        for (int round = 0; round < a_.rounds; ++round)
            for (std::size_t k = 0; k < queues.size(); ++k) {
                if (a_.in_place) fill(false);
                Report report;
                tridiagonal::Options options;
                options.report = &report;
                const auto start = Clock::now();
                const Outcome outcome = tridiagonal::solve(*queues[k], problem(), options);
                const double s = seconds_since(start);
                if (round > 0 || a_.rounds == 1) times[k].push_back(s);
                Json shares = Json::array();
                for (const DeviceShare& d : report.devices)
                    shares.push_back({{"name", d.name}, {"rows", d.rows}, {"chunks", d.chunks}, {"busy_s", d.busy_s}, {"rows_per_s", d.rows_per_s}, {"state", d.state}});
                rounds[k].push_back({{"s", s}, {"reason", name_of(outcome.reason)}, {"residual", round + 1 == a_.rounds ? residual() : -1.0}, {"devices", shares}});
                // Of rounds in which it was found that one device is enough, nothing is kept.
                if (last[k].trace.empty() || !report.trace.empty()) last[k] = std::move(report);
            }
        for (std::size_t k = 0; k < queues.size(); ++k) {
            const double s = median(times[k]), words_in = 4;
            Json phases;
            for (const auto& [name, t] : last[k].phases) phases[name] = t;
            record_["cases"].push_back({{"devices", a_.devices[k]},
                                        {"median_s", s},
                                        {"rows_per_s", static_cast<double>(a_.rows) / s},
                                        {"link_equivalent_bytes_per_s", words_in * sizeof(T) * static_cast<double>(a_.rows) / s},
                                        {"phases", phases},
                                        {"rounds", rounds[k]}});
        }
        if (const Queue* queue = with_link(queues)) record_["link"] = link(*queue);
        if (!a_.trace.empty()) write_trace(last.back());
        return record_;
    }

private:
    static const Queue* with_link(const std::vector<std::unique_ptr<Queue>>& queues) {
        for (const auto& queue : queues)
            if (queue->memory().kind == MemoryKind::device) return queue.get();
        return nullptr;
    }

    T* array(int k) const { return static_cast<T*>(arrays_[k].data()); }

    // The matrix only once; in place the right-hand side before every solve.
    void fill(bool all) {
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < a_.rows; ++i) {
            array(3)[i] = static_cast<T>(noise(i, 3) - 0.5);
            if (!all) continue;
            array(4)[i] = 0;
            const double l = noise(i, 0), u = noise(i, 2);
            if (a_.kind == "poisson") array(0)[i] = array(2)[i] = -1, array(1)[i] = 2;
            else if (a_.kind == "random") array(0)[i] = static_cast<T>(2 * l - 1), array(2)[i] = static_cast<T>(2 * u - 1), array(1)[i] = static_cast<T>(2 * noise(i, 1) - 1);
            else array(0)[i] = static_cast<T>(l - 1), array(2)[i] = static_cast<T>(-u), array(1)[i] = static_cast<T>(3.5 + noise(i, 1));
        }
    }

    tridiagonal::Problem problem() const {
        const auto view = [&](int k) { return View<const T>::rows(std::span<const T>(array(k), static_cast<std::size_t>(a_.rows))); };
        tridiagonal::Problem p;
        p.matrix = {view(0), view(1), view(2)};
        p.rhs = view(3);
        p.x = View<T>::rows(std::span<T>(array(a_.in_place ? 3 : 4), static_cast<std::size_t>(a_.rows)));
        return p;
    }

    // max |rhs - A x| / (max|A| max|x| + max|rhs|)
    double residual() const {
        const T* const x = array(a_.in_place ? 3 : 4);
        double worst = 0, matrix = 0, size = 0, right = 0;
#pragma omp parallel for schedule(static) reduction(max : worst, matrix, size, right)
        for (std::int64_t i = 0; i < a_.rows; ++i) {
            const double l = i > 0 ? array(0)[i] : T(0), u = i + 1 < a_.rows ? array(2)[i] : T(0), d = array(1)[i];
            const double b = a_.in_place ? static_cast<double>(static_cast<T>(noise(i, 3) - 0.5)) : array(3)[i];
            const double r = b - (i > 0 ? l * x[i - 1] : 0) - d * x[i] - (i + 1 < a_.rows ? u * x[i + 1] : 0);
            worst = std::max(worst, r == r ? std::abs(r) : INFINITY);
            matrix = std::max({matrix, std::abs(l), std::abs(d), std::abs(u)}), size = std::max<double>(size, std::abs(x[i])), right = std::max(right, std::abs(b));
        }
        return worst / (matrix * size + right);
    }

    // Copies of the same arrays into the device, nothing else running.
    Json link(const Queue& queue) const {
        const std::size_t bytes = std::min<std::size_t>(arrays_[0].bytes(), std::size_t{1} << 30);
        DeviceArray<unsigned char> there(queue, static_cast<std::int64_t>(bytes));
        std::vector<double> in, out;
        for (int round = 0; round < 5; ++round) {
            auto start = Clock::now();
            copy(queue, there.data(), array(round % 4), bytes);
            in.push_back(static_cast<double>(bytes) / seconds_since(start));
            start = Clock::now();
            if (!a_.in_place) copy(queue, array(4), there.data(), bytes), out.push_back(static_cast<double>(bytes) / seconds_since(start));
        }
        return {{"in_bytes_per_s", median(in)}, {"out_bytes_per_s", median(out)}, {"bytes", bytes}};
    }

    void write_trace(const Report& report) const {
        Json events = Json::array();
        for (const TraceEvent& e : report.trace)
            events.push_back({{"name", e.phase}, {"ph", "X"}, {"pid", e.device}, {"tid", e.slot}, {"ts", e.begin_s * 1e6}, {"dur", (e.end_s - e.begin_s) * 1e6}, {"args", {{"first", e.first}, {"rows", e.rows}, {"bytes", e.bytes}}}});
        std::ofstream(a_.trace) << Json{{"traceEvents", events}}.dump();
    }

    const Arguments& a_;
    Context context_;
    AlignedBuffer arrays_[5];
    Json record_;
};

int run(int count, char** words) {
    const Arguments arguments(count, words);
    Json record = arguments.precision == "f32" ? Bench<float>(arguments).run() : Bench<double>(arguments).run();
    record["rows"] = arguments.rows, record["precision"] = arguments.precision, record["kind"] = arguments.kind;
    record["registered"] = arguments.registered, record["in_place"] = arguments.in_place;
    std::puts(record.dump(1).c_str());
    return 0;
}

}  // namespace
}  // namespace trifold::bench

int main(int count, char** words) try {
    return trifold::bench::run(count, words);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
