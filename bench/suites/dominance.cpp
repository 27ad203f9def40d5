// SPDX-License-Identifier: BSD-3-Clause
// Largest error of x against diagonal dominance, oclspkt's figure 9: its mappings with its partitions of 32 rows, elimination without and with
// pivoting, and what every device here does by itself.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "backends/registry.hpp"
#include "bench/suites/suites.hpp"
#include "trifold/trifold.hpp"

namespace trifold::bench {
namespace {

using tridiagonal::Algorithm;
using Clock = std::chrono::steady_clock;

/// By Thomas' algorithm in 64 bits of mantissa: at least eleven bits more than any solver here, and stable on dominant systems.
template <class T>
std::vector<long double> true_solution(const io::TridiagonalData& data) {
    const T *lower = data.lower.as<T>(), *diag = data.diag.as<T>(), *upper = data.upper.as<T>(), *rhs = data.rhs.as<T>();
    const auto n = static_cast<std::size_t>(data.rows());
    std::vector<long double> above(n), x(n);
    for (std::size_t i = 0; i < n; ++i) {
        const long double a = i > 0 ? lower[i] : T(0), pivot = diag[i] - (i > 0 ? a * above[i - 1] : 0);
        above[i] = i + 1 < n ? upper[i] / pivot : 0;
        x[i] = (rhs[i] - (i > 0 ? a * x[i - 1] : 0)) / pivot;
    }
    for (std::size_t i = n - 1; i-- > 0;) x[i] -= above[i] * x[i + 1];
    return x;
}

struct Solver {
    std::string label, device;
    Algorithm algorithm = Algorithm::automatic;
    const char* mapping = nullptr;      ///< oclspkt's, with its partitions
    std::shared_ptr<Queue> queue = {};  ///< one for all: making it, and what a device compiles, would take most of the time
    double seconds = 0;                 ///< in solves, kernels' compilation among them
};

std::vector<Solver> solvers(const Context& context) {
    std::vector<Solver> list{{"LU with pivoting", "reference", Algorithm::lu}, {"TDMA", "reference", Algorithm::thomas}};
    for (const DeviceInfo& device : context.devices()) {
        if (device.name == "reference" || device.modelled) continue;
        list.push_back({device.name, device.name});
        if (!device.name.starts_with("opencl:")) continue;
        list.push_back({device.name + " tdma", device.name, Algorithm::thomas});
        for (const char* mapping : {"cpu", "gpu", "fpga"}) list.push_back({device.name + " oclspkt-" + mapping, device.name, Algorithm::truncated_spike, mapping});
    }
    return list;
}

/// Of one dominance: off-diagonals of random sign and like size; and nearly all of the weight on one side, where a truncated coupling falls by 1 / d per
/// row and no faster, which is the paper's bound.
struct MatrixKind {
    const char* name;
    std::string (*generator)(double dominance);
};

constexpr MatrixKind kinds[] = {
    {"random", [](double d) { return "dominant?least=0.5&ratio=" + std::to_string(d); }},
    {"one-sided", [](double d) { return "toeplitz?lower=-1&upper=-0.001&diag=" + std::to_string(1.001 * d); }},
};

template <class T>
void run_one(Context& context, std::vector<Solver>& list, const MatrixKind& kind, double dominance, std::int64_t rows, Record& record) {
    Case problem(kind.generator(dominance) + "&rows=" + std::to_string(rows), dtype_of<T>);
    const std::vector<long double> truth = true_solution<T>(problem.data());
    long double largest = 0;
    for (const long double x : truth) largest = std::max(largest, std::abs(x));
    const double roundoff = unit_roundoff(dtype_of<T>);
    for (Solver& solver : list) {
        if (solver.mapping && dominance <= 1) {
            record.note("oclspkt's mappings at a dominance of 1: nothing bounds what truncation leaves there");
            continue;
        }
        tridiagonal::Options options;
        options.algorithm = solver.algorithm;
        if (solver.mapping) {
            // Partitions of 32 rows, half of them before an unknown is reached: what that leaves is accepted, so that none is longer.
            options.tolerance = std::pow(dominance, -15.9);
            setenv("TRIFOLD_OPENCL_MAPPING", solver.mapping, 1);
        }
        Outcome outcome;
        std::string why;
        try {
            if (!solver.queue) solver.queue = std::make_shared<Queue>(context, solver.device);
            std::fill_n(problem.x().as<T>(), rows, T(NAN));
            tridiagonal::Problem given = problem.problem(false);
            // An x that is refused stays where it is: of a device with memory of its own it is fetched from there, since how wrong it is is what is asked.
            std::vector<DeviceArray<T>> there;
            if (solver.mapping && device_at(find_device(solver.device)).runtime) {
                const io::TridiagonalData& data = problem.data();
                const void* const arrays[] = {data.lower.as<T>(), data.diag.as<T>(), data.upper.as<T>(), data.rhs.as<T>(), problem.x().as<T>()};
                for (const void* array : arrays) {
                    there.emplace_back(*solver.queue, rows);
                    copy(*solver.queue, there.back().data(), array, static_cast<std::size_t>(rows) * sizeof(T));
                }
                const auto view = [&](int k) { return View<const T>::rows(std::span<const T>(there[static_cast<std::size_t>(k)].data(), static_cast<std::size_t>(rows))); };
                given.matrix = {view(0), view(1), view(2)}, given.rhs = view(3), given.x = View<T>::rows(std::span<T>(there[4].data(), static_cast<std::size_t>(rows)));
            }
            const auto start = Clock::now();
            outcome = tridiagonal::solve(*solver.queue, given, options);
            if (!there.empty()) copy(*solver.queue, problem.x().as<T>(), there[4].data(), static_cast<std::size_t>(rows) * sizeof(T));
            solver.seconds += std::chrono::duration<double>(Clock::now() - start).count();
        } catch (const Error& error) {
            why = error.what();
        }
        if (solver.mapping) unsetenv("TRIFOLD_OPENCL_MAPPING");
        if (!why.empty()) {
            record.note(solver.label + ": " + why);
            continue;
        }
        long double error = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            const long double off = std::abs(problem.x().as<T>()[i] - truth[static_cast<std::size_t>(i)]);
            error = off > error || std::isnan(off) ? off : error;
        }
        const double relative = static_cast<double>(error / largest);
        Row row;
        row.set("matrix", kind.name).set("dominance", dominance).set("dtype", name_of(dtype_of<T>)).set("solver", solver.label).set("device", solver.device);
        row.set("published_method", solver.mapping != nullptr).set("rows", static_cast<double>(rows));
        row.set("branch", outcome.branch).set("reason", name_of(outcome.reason)).set("ok", outcome.ok());
        row.set("error", relative).set("error_roundoffs", relative / roundoff);
        record.rows.push_back(std::move(row));
    }
}

}  // namespace

void run_dominance(const Settings& settings, Record& record) {
    Context context(options_with(settings.threads));
    std::vector<Solver> list = solvers(context);
    if (!settings.devices.empty()) std::erase_if(list, [&](const Solver& solver) { return solver.device != "reference" && ("," + settings.devices + ",").find("," + solver.device + ",") == std::string::npos; });
    const auto rows = static_cast<std::int64_t>(settings.rows > 0 ? settings.rows : settings.quick ? 1e5 : 1e6);
    // At 1 itself the condition of a matrix may grow with its rows.
    for (const double dominance : {1.0, 1.001, 1.1, 1.25, 1.5, 1.75, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.25, 3.5, 4.0}) {
        for (const MatrixKind& kind : kinds) {
            run_one<float>(context, list, kind, dominance, rows, record);
            run_one<double>(context, list, kind, dominance, rows, record);
        }
    }
    for (const Solver& solver : list) std::fprintf(stderr, "  %-32s %.2f s\n", solver.label.c_str(), solver.seconds);
}

}  // namespace trifold::bench
