// SPDX-License-Identifier: BSD-3-Clause
// ADI heat: steps of ours, of the same scheme with LAPACK, and the roof, in turns.
#include <algorithm>
#include <cmath>

#include "bench/baselines/heat_lapack.hpp"
#include "bench/harness/core_rate.hpp"
#include "bench/harness/heat_ceiling.hpp"
#include "bench/suites/suites.hpp"
#include "heat/heat.hpp"

namespace trifold::bench {
namespace {

/// Words per point and step that a three-dimensional step is held against: a right-hand side with x and y (2), the solve along z with
/// the update (3), and what caches do not keep of it (2).
constexpr double words_3d = 7;
/// Two-dimensional planes stay in cache: read and written once.
constexpr double words_2d = 2;
/// Planes that no cache holds: field read, what lies between written; both read, field written.
constexpr double words_large_2d = 5;
constexpr std::int64_t most_in_caches = 1 << 20;  ///< points of one plane

template <class T>
void run_one(const Settings& settings, Record& record, const MeshShape& shape, int steps) {
    const auto points = static_cast<double>(shape.points());
    const double words = shape.z > 1 ? words_3d : shape.points() <= most_in_caches || shape.meshes > 1 ? words_2d : words_large_2d;
    std::string name = std::to_string(shape.x) + (shape.z > 1 ? "^3" : "^2");
    if (shape.meshes > 1) name += " x " + std::to_string(shape.meshes);
    for (const int threads : settings.thread_counts()) {
        Context context(options_with(threads));
        Queue queue(context, "cpu");
        io::Array u(io::Shape{dtype_of<T>, {shape.points()}}, "u");
        std::fill_n(u.as<T>(), shape.points(), T(1));
        heat::Problem<T> problem;
        problem.shape = shape;
        for (int axis = 0; axis < 3; ++axis) problem.sides[static_cast<std::size_t>(axis)] = {{Edge::odd, 0}, {Edge::odd, 0}};
        problem.step = 0.5;
        heat::Heat<T> solver(queue, problem, u.as<T>());
        devices::RoofProbe roof({.reads = 2, .store = devices::Store::past_cache}, static_cast<std::size_t>(3 * points * sizeof(T)), threads);
        roof.measure(0.3);
        std::vector<Runner> runners{{"roof", {}, {}, [&] { return roof.sample(); }}, {"adi", {}, [&] { solver.advance(steps); }, {}}};
        const bool peer = threads == 1 && shape.z > 1;
        std::vector<T> theirs;
        std::unique_ptr<HeatLapack<T>> lapack;
        double difference = NAN;
        if (peer) {
            theirs.assign(static_cast<std::size_t>(shape.points()), T(1));
            lapack = std::make_unique<HeatLapack<T>>(shape.x, 0.5);
            // Both from the same start, before anything is timed.
            lapack->step(theirs.data()), solver.advance(1);
            difference = 0;
            for (std::size_t i = 0; i < theirs.size(); ++i) difference = std::max(difference, std::abs(static_cast<double>(theirs[i] - u.as<T>()[i])));
            runners.push_back({"lapack", {}, [&] { lapack->step(theirs.data()); }, {}});
        }
        // Four planes of lines as long, in the second-level cache: what the core takes where nothing waits for memory.
        const MeshShape near_shape{shape.x, ((std::int64_t{256} << 10) / (4 * shape.x * static_cast<std::int64_t>(sizeof(T)))), 4, 1};
        const std::int64_t near_points = near_shape.points(), near_steps = std::max<std::int64_t>(shape.points() / near_points / 8, 1);
        std::vector<T> near(peer ? static_cast<std::size_t>(near_points) : 0, T(1));
        heat::Problem<T> near_problem = problem;
        near_problem.shape = near_shape;
        std::unique_ptr<heat::Heat<T>> near_solver;
        std::unique_ptr<HeatCeiling<T>> ceiling;
        if (peer) {
            near_solver = std::make_unique<heat::Heat<T>>(queue, near_problem, near.data());
            ceiling = std::make_unique<HeatCeiling<T>>(shape.x);
            runners.push_back({"in cache", {}, [&] { std::fill(near.begin(), near.end(), T(1)), near_solver->advance(static_cast<int>(near_steps)); }, {}});
            runners.push_back({"moving alone", {}, {}, [&] { return ceiling->moving(); }});
            runners.push_back({"core", {}, {}, [] { return cycles_per_addition(1); }});
        }
        const std::vector<Timing> times = race(runners, {.rounds = 15, .least = 3, .budget_s = 8 * settings.budget_scale});
        const double bandwidth = roof.bytes_per_pass() / times[0].median;
        const auto row = [&](const char* solver_name, double seconds, const Timing& timing) {
            Row one;
            one.set("case", name).set("solver", solver_name).set("dtype", name_of(dtype_of<T>)).set("threads", static_cast<double>(threads));
            one.set("points", points).set("seconds", seconds).set("points_per_s", points / seconds).set("words", words);
            one.set("roof_bytes_per_s", bandwidth).set("fraction", points / seconds * words * sizeof(T) / bandwidth).set("samples", static_cast<double>(timing.samples));
            return one;
        };
        const double ours = times[1].median / steps;
        Row own = row("Trifold, Douglas-Gunn", ours, times[1]);
        if (peer) {
            own.set("speedup", times[2].median / ours).set("speedup_over", "LAPACK pttrs").set("difference", difference);
            const double computing_s = times[3].median * points / static_cast<double>(near_points * near_steps), moving_s = times[4].median, bound_s = std::max(moving_s, computing_s);
            own.set("moving_s", moving_s).set("computing_s", computing_s).set("ceiling", points * words * sizeof(T) / bound_s / bandwidth).set("fraction_of_ceiling", bound_s / ours);
            own.set("additions_per_cycle", 1 / times[5].median).set("most_additions_per_cycle", 1 / times[5].best);
        }
        record.rows.push_back(own);
        if (peer) record.rows.push_back(row("LAPACK pttrs", times[2].median, times[2]));
    }
}

}  // namespace

void run_heat(const Settings& settings, Record& record) {
    for (const std::int64_t n : settings.quick ? std::vector<std::int64_t>{96} : std::vector<std::int64_t>{256, 400}) {
        run_one<double>(settings, record, {n, n, n, 1}, 4);
        run_one<float>(settings, record, {n, n, n, 1}, 4);
    }
    if (!settings.quick) {
        run_one<double>(settings, record, {3000, 3000, 1, 1}, 4);
        run_one<float>(settings, record, {3000, 3000, 1, 1}, 4);
        run_one<double>(settings, record, {400, 400, 1, 1}, 100);
        run_one<float>(settings, record, {400, 400, 1, 1}, 100);
    }
    const std::int64_t batch = settings.quick ? 100 : 1500;
    for (const std::int64_t n : {32, 128}) {
        run_one<double>(settings, record, {n, n, 1, batch}, 20);
        run_one<float>(settings, record, {n, n, 1, batch}, 20);
    }
}

}  // namespace trifold::bench
