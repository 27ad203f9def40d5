// SPDX-License-Identifier: BSD-3-Clause
// Kept factors: right-hand sides solved with a matrix, or a batch of them, that was factored before, beside LAPACK's and the roof.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/baselines/factored_lapack.hpp"
#include "bench/suites/suites.hpp"

namespace trifold::bench {
namespace {

/// Systems along one axis of a block: row i of system (o, j) at o outer_stride + i row_stride + j.
struct Block {
    std::string name;
    std::int64_t rows, outer, inner;
    bool one_matrix;
    bool decays;  ///< else -1, 2, -1

    std::int64_t systems() const { return outer * inner; }
    std::int64_t elements() const { return rows * systems(); }
    /// Read and written once: rhs, x, and three words that are kept of every matrix.
    double words() const { return one_matrix && systems() > 1 ? 2 : 5; }
};

template <class T>
class FactoredCase {
public:
    explicit FactoredCase(const Block& block) : block_(block) {
        const std::int64_t matrix = block.one_matrix ? block.rows : block.elements();
        const auto array = [](std::int64_t count) { return io::Array(io::Shape{dtype_of<T>, {count}}, "factored"); };
        off_ = array(matrix), diag_ = array(matrix), lower_ = array(matrix), rhs_ = array(block.elements()), x_ = array(block.elements());
        const std::int64_t step = block.one_matrix ? 1 : block.inner, systems = block.one_matrix ? 1 : block.systems(), n = block.rows;
        const auto noise = [](std::int64_t k) { return static_cast<T>(static_cast<double>((static_cast<std::uint64_t>(k) * 0x9e3779b97f4a7c15u) >> 40) * 0x1p-24); };
#pragma omp parallel for
        for (std::int64_t s = 0; s < systems; ++s)
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t at = s / step * step * n + s % step + i * step;
                off_.as<T>()[at] = block.decays ? T(-0.5) - noise(at) : T(-1);
            }
#pragma omp parallel for
        for (std::int64_t s = 0; s < systems; ++s)
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t at = s / step * step * n + s % step + i * step;
                const T below = i > 0 ? off_.as<T>()[at - step] : T(0), above = i + 1 < n ? off_.as<T>()[at] : T(0);
                lower_.as<T>()[at] = below;
                diag_.as<T>()[at] = block.decays ? T(1.5) * (std::abs(below) + std::abs(above)) + T(0.5) : T(2);
            }
#pragma omp parallel for
        for (std::int64_t k = 0; k < block.elements(); ++k) rhs_.as<T>()[k] = noise(7 * k + 1) - T(0.5), x_.as<T>()[k] = 0;
    }

    tridiagonal::Matrix matrix() const {
        tridiagonal::Matrix m;
        m.lower = matrix_view(lower_), m.diag = matrix_view(diag_), m.upper = matrix_view(off_);
        return m;
    }
    std::vector<std::int64_t> batch() const {
        if (block_.one_matrix) return {};
        return {block_.outer, block_.inner};
    }
    View<const T> rhs() const { return side<const T>(rhs_.as<T>()); }
    View<T> x() { return side<T>(x_.as<T>()); }
    io::Array& x_array() { return x_; }
    const io::Array& rhs_array() const { return rhs_; }
    const T* lower() const { return lower_.as<T>(); }
    const T* diag() const { return diag_.as<T>(); }
    const T* upper() const { return off_.as<T>(); }

    /// Largest |rhs - A x| of a row over largest |A| (4 rows of the largest diagonal) times largest |x|.
    double backward_error(const T* x) const {
        const std::int64_t step = block_.inner, n = block_.rows;
        double residual = 0, largest_x = 0, largest_a = 0;
#pragma omp parallel for reduction(max : residual, largest_x, largest_a)
        for (std::int64_t s = 0; s < block_.systems(); ++s)
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t at = s / step * step * n + s % step + i * step, m = block_.one_matrix ? i : at;
                const double a = lower()[m], b = diag()[m], c = i + 1 < n ? upper()[m] : T(0);
                const double ax = (i > 0 ? a * x[at - step] : 0) + b * x[at] + (i + 1 < n ? c * x[at + step] : 0);
                residual = std::max(residual, std::abs(rhs_.as<T>()[at] - ax));
                largest_x = std::max(largest_x, std::abs(static_cast<double>(x[at]))), largest_a = std::max(largest_a, std::abs(a) + std::abs(b) + std::abs(c));
            }
        return residual / (largest_a * largest_x);
    }

private:
    View<const T> matrix_view(const io::Array& array) const {
        if (block_.one_matrix) return View<const T>::strided(array.as<T>(), {block_.rows, 1}, {});
        return side<const T>(array.as<T>());
    }
    template <class U>
    View<U> side(U* data) const {
        const std::int64_t n = block_.rows, inner = block_.inner;
        const Dim batch[] = {{block_.outer, n * inner}, {inner, 1}};
        if (block_.systems() == 1) return View<U>::strided(data, {n, 1}, {});
        return View<U>::strided(data, {n, inner}, batch);
    }

    Block block_;
    io::Array off_, diag_, lower_, rhs_, x_;
};

template <class T>
void run_one(const Settings& settings, Record& record, const Block& block) {
    FactoredCase<T> problem(block);
    const double rows = static_cast<double>(block.elements()), bytes = rows * block.words() * sizeof(T);
    for (const int threads : settings.thread_counts()) {
        Context context(options_with(threads));
        Queue queue(context, "cpu");
        tridiagonal::Factor factor(queue, problem.matrix(), block.rows, problem.batch(), dtype_of<T>);
        const auto factored = std::chrono::steady_clock::now();
        factor.refactor(problem.matrix());
        const double factor_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - factored).count();
        const devices::RoofMix mix{.reads = static_cast<int>(block.words()) - 1, .store = devices::Store::past_cache};
        devices::RoofProbe roof(mix, static_cast<std::size_t>(bytes), threads);
        roof.measure(0.4);
        Outcome outcome, solved;
        tridiagonal::Problem direct;
        direct.matrix = problem.matrix(), direct.rhs = problem.rhs(), direct.x = problem.x();
        std::vector<Runner> runners{{"roof", {}, {}, [&] { return roof.sample(); }},
                                    {"factored", {}, [&] { outcome = factor.solve(problem.rhs(), problem.x()); }, {}},
                                    {"solve", {}, [&] { solved = tridiagonal::solve(queue, direct); }, {}}};
        std::vector<std::unique_ptr<FactoredLapack<T>>> peers;
        std::vector<T> theirs;
        if (threads == 1 && block.inner == 1) {
            theirs.resize(static_cast<std::size_t>(block.elements()));
            for (const bool positive : {false, true}) {
                peers.push_back(std::make_unique<FactoredLapack<T>>(block.rows, block.one_matrix ? 1 : block.systems(), positive));
                peers.back()->factor(problem.lower(), problem.diag(), problem.upper());
                runners.push_back({positive ? "LAPACK pttrs" : "LAPACK gttrs", [&] { std::copy_n(problem.rhs_array().template as<T>(), block.elements(), theirs.data()); },
                                   [&, peer = peers.back().get()] { peer->solve(theirs.data(), block.systems()); }, {}});
            }
        }
        const std::vector<Timing> times = race(runners, {.rounds = 21, .least = 3, .budget_s = 6 * settings.budget_scale});
        const double bandwidth = roof.bytes_per_pass() / times[0].median;
        for (std::size_t k = 1; k < runners.size(); ++k) {
            runners[k].prepare ? runners[k].prepare() : void();
            runners[k].run();
            Row row;
            row.set("case", block.name).set("solver", k == 2 ? std::string("solve, not kept") : runners[k].name).set("dtype", name_of(dtype_of<T>));
            row.set("threads", k > 2 ? 1.0 : static_cast<double>(threads)).set("rows", rows).set("seconds", times[k].median).set("best_s", times[k].best);
            row.set("samples", static_cast<double>(times[k].samples)).set("rows_per_s", rows / times[k].median).set("words", block.words());
            row.set("roof_bytes_per_s", bandwidth).set("fraction", bytes / times[k].median / bandwidth);
            if (k == 1) row.set("factor_s", factor_s).set("branch", outcome.branch);
            if (k == 1 && runners.size() > 3) row.set("speedup", times[3].median / times[1].median).set("speedup_over", "LAPACK gttrs");
            row.set("backward_error", problem.backward_error(k > 2 ? theirs.data() : problem.x_array().template as<T>()));
            if ((k == 1 && !outcome.ok()) || (k == 2 && !solved.ok())) row.set("failed", true);
            std::fprintf(stderr, "  %-34s %-16s %s %d thr %9.3f ms %8.1f Mrows/s %5.1f %% of %.1f GB/s, error %.1e\n", block.name.c_str(), row.text("solver").c_str(),
                         name_of(dtype_of<T>), threads, times[k].median * 1e3, rows / times[k].median / 1e6, 100 * bytes / times[k].median / bandwidth,
                         bandwidth / 1e9, row.number("backward_error"));
            record.rows.push_back(std::move(row));
        }
    }
}

}  // namespace

void run_factored(const Settings& settings, Record& record) {
    const std::int64_t lines = settings.quick ? 16384 : 32768, side = settings.quick ? 160 : 200, rows = settings.quick ? 4000000 : 8000000;
    const std::string many = std::to_string(lines) + " x 256", cube = std::to_string(side) + "^3 along ", long_one = count_text(static_cast<double>(rows)) + " rows";
    const Block blocks[] = {{many + ", one matrix", 256, lines, 1, true, true},
                            {cube + "y, one matrix", side, side, side, true, true},
                            {many, 256, lines, 1, false, true},
                            {cube + "y", side, side, side, false, true},
                            {long_one + ", decaying", rows, 1, 1, true, true},
                            {long_one + ", Poisson", rows, 1, 1, true, false},
                            {"100000 rows, decaying", 100000, 1, 1, true, true}};
    for (const Block& block : blocks) {
        run_one<double>(settings, record, block);
        run_one<float>(settings, record, block);
    }
}

}  // namespace trifold::bench
