// SPDX-License-Identifier: BSD-3-Clause
// usage: opencl_bench [OUT.json] [ROUNDS] [batches | single | published]
//
// An OpenCL device that works in the host's memory beside the native cpu: the same arrays, solved in turn, medians. Stands in for what a vendor's CPU
// driver makes of the kernels; its first round compiles them and is left out.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trifold/trifold.hpp"

namespace {

using namespace trifold;
using nlohmann::json;

struct Form {
    std::int64_t rows, systems;
    bool interleaved;
    tridiagonal::Algorithm algorithm = tridiagonal::Algorithm::automatic;
};

template <class T, class U>
View<T> view(const Form& f, U* data) {
    if (f.systems == 1) return View<T>::rows(std::span<T>(data, static_cast<std::size_t>(f.rows)));
    return f.interleaved ? View<T>::interleaved(data, f.rows, f.systems) : View<T>::contiguous(data, f.systems, f.rows);
}

template <class T>
void run(Context& context, const std::vector<std::string>& devices, const Form& form, int rounds, json& out) {
    const auto size = static_cast<std::size_t>(form.rows * form.systems);
    std::vector<T> lower(size), diag(size), upper(size), rhs(size), x(size);
    unsigned state = 1;
    const auto next = [&state] { return static_cast<T>((((state = state * 1664525u + 1013904223u)) >> 8) * 0x1p-23 - 1); };
    for (std::size_t i = 0; i < size; ++i) lower[i] = next(), upper[i] = next(), diag[i] = T(6) + next(), rhs[i] = next();
    tridiagonal::Problem problem;
    problem.matrix = {view<const T>(form, lower.data()), view<const T>(form, diag.data()), view<const T>(form, upper.data())};
    problem.rhs = view<const T>(form, rhs.data());
    problem.x = view<T>(form, x.data());
    tridiagonal::Options options;
    options.algorithm = form.algorithm;
    std::vector<std::vector<double>> seconds(devices.size());
    std::vector<std::string> branch(devices.size());
    for (int round = -1; round < rounds; ++round)
        for (std::size_t d = 0; d < devices.size(); ++d) {
            Queue queue(context, devices[d]);
            const auto start = std::chrono::steady_clock::now();
            const Outcome outcome = tridiagonal::solve(queue, problem, options);
            const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            if (!outcome.ok()) std::fprintf(stderr, "%s: %s\n", devices[d].c_str(), name_of(outcome.reason));
            branch[d] = std::string(outcome.branch) + " on " + outcome.device;
            if (round >= 0) seconds[d].push_back(s);
        }
    for (std::size_t d = 0; d < devices.size(); ++d) {
        std::sort(seconds[d].begin(), seconds[d].end());
        const double median = seconds[d][seconds[d].size() / 2];
        out.push_back({{"rows", form.rows}, {"systems", form.systems}, {"layout", form.interleaved ? "interleaved" : "contiguous"}, {"precision", sizeof(T) == 8 ? "f64" : "f32"},
                       {"asked", tridiagonal::name_of(form.algorithm)}, {"device", devices[d]}, {"branch", branch[d]}, {"median_s", median}, {"least_s", seconds[d].front()},
                       {"rows_per_s", static_cast<double>(size) / median}});
        std::printf("%9lld x %-7lld %-11s %s  %-16s %-30s %9.3f ms  %7.1f Mrows/s\n", static_cast<long long>(form.rows), static_cast<long long>(form.systems),
                    form.interleaved ? "interleaved" : "contiguous", sizeof(T) == 8 ? "f64" : "f32", tridiagonal::name_of(form.algorithm), branch[d].c_str(), median * 1e3,
                    static_cast<double>(size) / median * 1e-6);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 15;
    Context context({.threads = 0, .profile_path = "none", .log = {}});
    std::vector<std::string> devices{"cpu"};
    for (const DeviceInfo& device : context.devices())
        if (device.name.starts_with("opencl:")) devices.push_back(device.name);
    if (devices.size() == 1) return std::puts("no OpenCL device on this machine"), 77;
    json measured = json::array();
    using tridiagonal::Algorithm;
    const std::string only = argc > 3 ? argv[3] : "";
    const auto wanted = [&only](const char* part) { return only.empty() || only == part; };
    for (const Form& form : {Form{256, 4096, false}, Form{256, 4096, true}, Form{64, 131072, false}, Form{64, 131072, true}, Form{1000000, 1, false}, Form{8000000, 1, false}, Form{32000000, 1, false}}) {
        if (!wanted(form.systems == 1 ? "single" : "batches")) continue;
        run<double>(context, devices, form, rounds, measured);
        run<float>(context, devices, form, rounds, measured);
    }
    const std::vector<std::string> one(devices.begin() + 1, devices.end());
    if (wanted("published"))
        for (const Algorithm algorithm : {Algorithm::thomas, Algorithm::truncated_spike}) run<float>(context, one, {8000000, 1, false, algorithm}, rounds, measured);
    if (argc > 1) std::ofstream(argv[1]) << json{{"schema", "trifold.bench.opencl/1"}, {"threads", context.threads()}, {"rounds", rounds}, {"measured", measured}}.dump(1) << '\n';
    return 0;
}
