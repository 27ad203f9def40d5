// SPDX-License-Identifier: BSD-3-Clause
// What lanes of the general path solve (src/backends/cpu/tridiagonal/general*): rings, ragged batches and x that is added to, beside LAPACK's LU one system after the other and the roof.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/baselines/general_lapack.hpp"
#include "bench/suites/suites.hpp"

namespace trifold::bench {
namespace {

enum class Matrix { dominant, random, waves };
constexpr const char* matrix_names[] = {"dominant", "random", "waves"};

struct Shape {
    const char* what;
    std::int64_t least, most;  ///< rows of a system; unlike each other: ragged
    bool side_by_side, ring, adds;
    Matrix matrix;

    bool ragged() const { return least != most; }
    std::string name() const {
        const std::string rows = ragged() ? std::to_string(least) + " to " + std::to_string(most) : std::to_string(least);
        return std::string(what) + ", " + rows + " rows, " + (ragged() ? "" : side_by_side ? "side by side, " : "one after the other, ") + matrix_names[static_cast<int>(matrix)];
    }
    /// Four read and one written; x read as well where it is added to.
    double words() const { return adds ? 6 : 5; }
};

template <class T>
class GeneralCase {
public:
    GeneralCase(const Shape& shape, std::int64_t rows) : shape_(shape) {
        std::uint64_t state = static_cast<std::uint64_t>(shape.most);
        offsets_.push_back(0);
        while (true) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const std::int64_t n = shape.least + static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(shape.most - shape.least + 1));
            if (offsets_.back() + n > rows) break;
            offsets_.push_back(offsets_.back() + n);
        }
        for (io::Array* array : {&lower_, &diag_, &upper_, &rhs_, &x_}) *array = io::Array(io::Shape{dtype_of<T>, {offsets_.back()}}, "general");
        const auto noise = [](std::int64_t k) { return static_cast<T>(static_cast<double>((static_cast<std::uint64_t>(k) * 0x9e3779b97f4a7c15u) >> 40) * 0x1p-23 - 1); };  // between -1 and 1
#pragma omp parallel for
        for (std::int64_t k = 0; k < offsets_.back(); ++k) {
            const T d = noise(4 * k + 1);
            const bool waves = shape.matrix == Matrix::waves;
            lower_.as<T>()[k] = waves ? T(-1) : noise(4 * k), upper_.as<T>()[k] = waves ? T(-1) : noise(4 * k + 2);
            diag_.as<T>()[k] = waves ? T(0.5) : shape.matrix == Matrix::dominant ? std::copysign(T(2.1) + std::abs(d), d) : d;
            rhs_.as<T>()[k] = noise(4 * k + 3), x_.as<T>()[k] = 0;
        }
    }

    std::int64_t rows() const { return offsets_.back(); }
    std::int64_t systems() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    T* x() { return x_.as<T>(); }

    tridiagonal::Problem problem() {
        tridiagonal::Problem p;
        p.matrix.lower = view<const T>(lower_), p.matrix.diag = view<const T>(diag_), p.matrix.upper = view<const T>(upper_);
        p.matrix.periodic = shape_.ring;
        p.rhs = view<const T>(rhs_), p.x = view<T>(x_);
        p.accumulate = shape_.adds;
        if (shape_.ragged()) p.offsets = offsets_;
        return p;
    }

    GeneralLapack<T> peer() const { return {lower_.as<T>(), diag_.as<T>(), upper_.as<T>(), rhs_.as<T>(), offsets_, shape_.ring}; }
    bool peer_takes() const { return !shape_.side_by_side && !shape_.adds; }

    /// Largest |rhs - A x| of a row over largest |A| times largest |x|, of any system.
    double backward_error(const T* x) const {
        double worst = 0;
#pragma omp parallel for reduction(max : worst)
        for (std::int64_t s = 0; s < systems(); ++s) {
            const std::int64_t n = offsets_[s + 1] - offsets_[s];
            const std::int64_t step = shape_.side_by_side ? systems() : 1, first = shape_.side_by_side ? s : offsets_[s];
            double residual = 0, largest_x = 0, largest_a = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t at = first + i * step, before = first + (i > 0 ? i - 1 : n - 1) * step, after = first + (i + 1 < n ? i + 1 : 0) * step;
                const double a = shape_.ring || i > 0 ? lower_.as<T>()[at] : T(0), c = shape_.ring || i + 1 < n ? upper_.as<T>()[at] : T(0), b = diag_.as<T>()[at];
                residual = std::max(residual, std::abs(rhs_.as<T>()[at] - (a * x[before] + b * x[at] + c * x[after])));
                largest_x = std::max(largest_x, std::abs(static_cast<double>(x[at]))), largest_a = std::max(largest_a, std::abs(a) + std::abs(b) + std::abs(c));
            }
            worst = std::max(worst, residual / (largest_a * largest_x));
        }
        return worst;
    }

private:
    template <class U>
    View<U> view(const io::Array& array) const {
        U* const data = const_cast<io::Array&>(array).as<T>();
        const Dim batch[] = {{systems(), shape_.side_by_side ? 1 : shape_.least}};
        if (shape_.ragged()) return View<U>::strided(data, {rows(), 1}, {});
        return View<U>::strided(data, {shape_.least, shape_.side_by_side ? systems() : 1}, batch);
    }

    Shape shape_;
    std::vector<std::int64_t> offsets_;
    io::Array lower_, diag_, upper_, rhs_, x_;
};

template <class T>
void run_one(const Settings& settings, Record& record, const Shape& shape) {
    GeneralCase<T> problem(shape, settings.quick ? 400000 : 4000000);
    const double rows = static_cast<double>(problem.rows()), bytes = rows * shape.words() * sizeof(T);
    for (const int threads : settings.thread_counts()) {
        Context context(options_with(threads));
        Queue queue(context, "cpu");
        const devices::RoofMix mix{.reads = static_cast<int>(shape.words()) - 1, .store = devices::Store::past_cache};
        devices::RoofProbe roof(mix, static_cast<std::size_t>(bytes), threads);
        roof.measure(0.2);
        const tridiagonal::Problem ours = problem.problem();
        Outcome outcome;
        std::vector<Runner> runners{{"roof", {}, {}, [&] { return roof.sample(); }},
                                    {"automatic", [&] { if (shape.adds) std::fill_n(problem.x(), problem.rows(), T(0)); }, [&] { outcome = tridiagonal::solve(queue, ours); }, {}}};
        GeneralLapack<T> peer = problem.peer();
        bool peer_good = true;
        if (threads == 1 && problem.peer_takes()) runners.push_back({peer.name(), [&] { peer.restore(); }, [&] { peer_good = peer.solve() && peer_good; }, {}});
        const std::vector<Timing> times = race(runners, {.rounds = 15, .least = 3, .budget_s = 2 * settings.budget_scale});
        const double bandwidth = roof.bytes_per_pass() / times[0].median;
        for (std::size_t k = 1; k < runners.size(); ++k) {
            runners[k].prepare();
            runners[k].run();
            Row row;
            row.set("case", shape.name()).set("solver", runners[k].name).set("dtype", name_of(dtype_of<T>)).set("threads", static_cast<double>(threads));
            row.set("rows", rows).set("systems", static_cast<double>(problem.systems())).set("seconds", times[k].median).set("best_s", times[k].best);
            row.set("samples", static_cast<double>(times[k].samples)).set("rows_per_s", rows / times[k].median).set("words", shape.words());
            row.set("roof_bytes_per_s", bandwidth).set("fraction", bytes / times[k].median / bandwidth);
            if (k == 1) row.set("rescued", static_cast<double>(outcome.rescued)).set("branch", outcome.branch);
            if (k == 1 && runners.size() > 2) row.set("speedup", times[2].median / times[1].median).set("speedup_over", peer.name());
            row.set("backward_error", problem.backward_error(k > 1 ? peer.x() : problem.x()));
            if (k == 1 ? !outcome.ok() : !peer_good) row.set("failed", true);
            std::fprintf(stderr, "  %-52s %-14s %s %d thr %8.2f ns a row %5.1f %% of %.1f GB/s, error %.1e%s\n", shape.name().c_str(), runners[k].name.c_str(), name_of(dtype_of<T>), threads, 1e9 * times[k].median / rows,
                         100 * row.number("fraction"), bandwidth / 1e9, row.number("backward_error"), k == 1 && runners.size() > 2 ? ("  x" + std::to_string(row.number("speedup")).substr(0, 5)).c_str() : "");
            record.rows.push_back(std::move(row));
        }
    }
}

}  // namespace

void run_general(const Settings& settings, Record& record) {
    std::vector<Shape> shapes;
    for (const Matrix matrix : {Matrix::dominant, Matrix::random, Matrix::waves})
        for (const std::int64_t rows : {256, 6000})
            for (const bool side_by_side : {true, false}) shapes.push_back({"rings", rows, rows, side_by_side, true, false, matrix});
    for (const bool ring : {false, true})
        for (const Matrix matrix : {Matrix::dominant, Matrix::random})
            for (const auto& [least, most] : {std::pair<std::int64_t, std::int64_t>{1, 6}, {20, 400}, {1000, 7000}})
                if (!ring || most == 400) shapes.push_back({ring ? "ragged rings" : "ragged", least, most, false, ring, false, matrix});
    for (const Matrix matrix : {Matrix::dominant, Matrix::random})
        for (const std::int64_t rows : {64, 1000})
            for (const bool side_by_side : {true, false}) shapes.push_back({"added to x", rows, rows, side_by_side, false, true, matrix});
    for (const Shape& shape : shapes) {
        run_one<double>(settings, record, shape);
        run_one<float>(settings, record, shape);
    }
}

}  // namespace trifold::bench
