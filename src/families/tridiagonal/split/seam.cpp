// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/seam.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace trifold::tridiagonal::split {

double entry(const Operand& operand, std::int64_t row, DType dtype) {
    if (operand.kind == Operand::Kind::scalar) return operand.value;
    if (dtype == DType::f32) return static_cast<const float*>(operand.data)[row * operand.row_stride];
    return static_cast<const double*>(operand.data)[row * operand.row_stride];
}

namespace {

// As the checked solvers of devices ask of a row, in unit roundoffs.
constexpr double accepted = 16;

// Windows of twice so many rows are solved in some ten microseconds; and in a hundred, where nothing is forgotten within them.
constexpr std::int64_t soon = 128, later = 2048;

constexpr std::int64_t not_seen = -2;

// Rows first … first+rows-1 in double precision, and what solves them.
class Window {
public:
    Window(const System& system, const Ops& host, std::int64_t first, std::int64_t rows)
        : system_(system), host_(host), first_(first), rows_(rows) {
        for (int k = 0; k < 3; ++k) {
            const Operand& operand = k == 0 ? system.lower : k == 1 ? system.diag : system.upper;
            matrix_[k].resize(static_cast<std::size_t>(rows));
            for (std::int64_t i = 0; i < rows; ++i) {
                const std::int64_t row = first + i;
                const bool outside = (k == 0 && row == 0) || (k == 2 && row + 1 == system.rows);
                matrix_[k][static_cast<std::size_t>(i)] = outside ? 0 : entry(operand, row, system.dtype);
            }
        }
    }

    double lower(std::int64_t i) const { return matrix_[0][static_cast<std::size_t>(i)]; }
    double diag(std::int64_t i) const { return matrix_[1][static_cast<std::size_t>(i)]; }
    double upper(std::int64_t i) const { return matrix_[2][static_cast<std::size_t>(i)]; }

    // b becomes the solution; what lies beyond the window is taken for 0.
    bool solve(std::vector<double>& b) {
        System s;
        s.rows = rows_;
        Operand* const operands[] = {&s.lower, &s.diag, &s.upper, &s.rhs, &s.x};
        for (int k = 0; k < 5; ++k) {
            operands[k]->kind = Operand::Kind::view;
            operands[k]->row_stride = 1;
            operands[k]->data = k < 3 ? matrix_[k].data() : b.data();
        }
        s.in_place = true;
        const std::size_t bytes = host_.workspace(s, Algorithm::lu, 1);
        scratch_.resize(bytes / sizeof(double) + 16);
        Launch launch;
        const auto address = reinterpret_cast<std::uintptr_t>(scratch_.data());
        launch.scratch = reinterpret_cast<void*>((address + 63) / 64 * 64);
        launch.scratch_bytes = bytes;
        launch.tolerance = 0x1p-53;
        Outcome outcome;
        host_.solve(s, Algorithm::lu, launch, outcome);
        return outcome.ok();
    }

private:
    const System& system_;
    const Ops& host_;
    std::int64_t first_, rows_;
    std::vector<double> matrix_[3], scratch_;
};

double largest(const std::vector<double>& values) {
    double most = 0;
    for (const double v : values) most = std::max(most, std::abs(v));
    return most;
}

template <class T>
void multiply_typed(const System& system, double first, double last) {
    T* const x = static_cast<T*>(system.x.data);
    const std::int64_t stride = system.x.row_stride;
    double before = 0;
    for (std::int64_t i = 0; i < system.rows; ++i) {
        const double own = x[i * stride], after = i + 1 < system.rows ? x[(i + 1) * stride] : T(0);
        double sum = entry(system.diag, i, system.dtype) * own;
        if (i > 0) sum += entry(system.lower, i, system.dtype) * before;
        if (i + 1 < system.rows) sum += entry(system.upper, i, system.dtype) * after;
        if (i == 0) sum += first;
        if (i + 1 == system.rows) sum += last;
        x[i * stride] = static_cast<T>(sum);
        before = own;
    }
}

template <class T>
Windows::Joined join_typed(const System& system, const Ops& host, const Windows::Seam& seam, std::int64_t width, double close) {
    Windows::Joined out;
    const std::int64_t first = std::max<std::int64_t>(seam.at - width, 0), end = std::min(seam.at + width, system.rows), rows = end - first;
    const std::int64_t b = seam.at - first, stride = system.x.row_stride;
    T* const x = static_cast<T*>(system.x.data) + first * stride;
    const auto stored = [&](std::int64_t i) { return first + i >= 0 && first + i < system.rows ? static_cast<double>(x[i * stride]) : 0; };
    Window window(system, host, first, rows);

    // What one unit in either of the two rows becomes.
    std::vector<double> left(static_cast<std::size_t>(rows)), right(static_cast<std::size_t>(rows));
    left[static_cast<std::size_t>(b - 1)] = right[static_cast<std::size_t>(b)] = 1;
    if (!window.solve(left) || !window.solve(right)) return out;
    const double most_left = largest(left), most_right = largest(right);
    for (const std::int64_t i : {std::int64_t{0}, rows - 1}) {
        if ((i == 0 && first == 0) || (i != 0 && end == system.rows)) continue;
        const auto k = static_cast<std::size_t>(i);
        if (!(std::abs(left[k]) <= close * most_left) || !(std::abs(right[k]) <= close * most_right)) return out;
    }
    const double to_left = window.upper(b - 1), to_right = window.lower(b);
    out.amplified = std::abs(to_left) * most_left + std::abs(to_right) * most_right;
    const double r_left = -to_left * stored(b), r_right = -to_right * stored(b - 1);
    for (std::int64_t i = 0; i < rows; ++i) {
        const auto k = static_cast<std::size_t>(i);
        x[i * stride] = static_cast<T>(stored(i) + r_left * left[k] + r_right * right[k]);
    }

    const auto rhs = [&](std::int64_t i) { return seam.rhs.empty() ? entry(system.rhs, first + i, system.dtype) : seam.rhs[static_cast<std::size_t>(i)]; };
    std::vector<double> rest(static_cast<std::size_t>(rows));
    for (int step = 0; step < 3; ++step) {
        double matrix = 0, size = 0, right_side = 0, sum = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            const double r = rhs(i) - window.lower(i) * stored(i - 1) - window.diag(i) * stored(i) - window.upper(i) * stored(i + 1);
            rest[static_cast<std::size_t>(i)] = r;
            sum += r;
            matrix = std::max({matrix, std::abs(window.lower(i)), std::abs(window.diag(i)), std::abs(window.upper(i))});
            size = std::max(size, std::abs(stored(i))), right_side = std::max(right_side, std::abs(rhs(i)));
        }
        const double scale = matrix * size + right_side, most = largest(rest);
        if (!std::isfinite(sum)) return out;
        out.residual = scale > 0 ? most / scale : 0;
        out.good = out.residual <= accepted * unit_roundoff(system.dtype);
        if (out.good || step == 2 || !window.solve(rest)) return out;
        for (std::int64_t i = 0; i < rows; ++i) x[i * stride] = static_cast<T>(stored(i) + rest[static_cast<std::size_t>(i)]);
    }
    return out;
}

// What units in rows b-1 and b become within `reach` rows on either side.
class Response {
public:
    Response(const System& system, const Ops& host, std::int64_t b, std::int64_t reach)
        : first_(std::max<std::int64_t>(b - reach, 0)), rows_(std::min(b + reach, system.rows) - first_), at_(b - first_), window_(system, host, first_, rows_) {}

    /// The unit in row b-1, or both. False: the window is singular.
    bool solve(int units) {
        for (; solved_ < units; ++solved_) {
            std::vector<double>& unit = unit_[solved_];
            unit.assign(static_cast<std::size_t>(rows_), 0);
            unit[static_cast<std::size_t>(at_ - 1 + solved_)] = 1;
            if (!window_.solve(unit)) return false;
            const double most = largest(unit);
            for (double& value : unit) value = std::abs(value) / most;
        }
        return true;
    }

    /// Rows from b from where on what has been solved is `close` or less.
    std::int64_t needed(double close) const {
        std::int64_t needed = 0;
        for (std::int64_t i = 0; i < rows_; ++i)
            if (value(i) > close) needed = std::max(needed, std::abs(i - at_) + 1);
        return needed;
    }

    /// The largest of rows so far from b, or farther.
    double beyond(std::int64_t away) const {
        double most = 0;
        for (std::int64_t i = 0; i < rows_; ++i)
            if (std::abs(i - at_) >= away) most = std::max(most, value(i));
        return most;
    }

private:
    double value(std::int64_t i) const {
        const auto k = static_cast<std::size_t>(i);
        return solved_ > 1 ? std::max(unit_[0][k], unit_[1][k]) : unit_[0][k];
    }

    const std::int64_t first_, rows_, at_;  // at: of row b among them
    Window window_;
    int solved_ = 0;
    std::vector<double> unit_[2];
};

}  // namespace

// Rows from b after which it has died out, for either number that is wanted; -1: not within the limit; not_seen: the last reach does not tell.
template <class Wanted>
std::array<std::int64_t, 2> Windows::width_at(std::int64_t b, const std::array<double, 2>& close, const Wanted& wanted, const Reaches& reaches) const {
    const std::int64_t limit = reaches.limit, last = std::min(reaches.last, limit);
    std::array<std::int64_t, 2> found{-1, -1};
    std::array<bool, 2> open{true, true};
    for (std::int64_t reach = std::min(reaches.first, last); reach <= last; reach = reach < last ? std::min(4 * reach, last) : last + 1) {
        for (std::size_t k = 0; k < 2; ++k) open[k] = open[k] && wanted(k);
        if (!open[0] && !open[1]) break;
        Response units(system_, host_, b, reach);
        if (!units.solve(1)) continue;
        // At this pace the longest window is too short: one unit is enough to see that.
        const auto give_up = [&] {
            const double pace = std::log(units.beyond(reach / 2)) * static_cast<double>(limit);
            for (std::size_t k = 0; k < 2; ++k) open[k] = open[k] && !(pace > std::log(close[k]) * static_cast<double>(reach / 2));
        };
        const auto fits = [&](std::int64_t needed) { return needed + needed / 2 <= reach; };
        const auto any_may_fit = [&] {
            bool any = false;
            for (std::size_t k = 0; k < 2; ++k) any = any || (open[k] && fits(units.needed(close[k])));
            return any;
        };
        if (any_may_fit()) {
            if (!units.solve(2)) continue;
            for (std::size_t k = 0; k < 2; ++k)
                if (const std::int64_t needed = units.needed(close[k]); open[k] && fits(needed)) found[k] = needed, open[k] = false;
        }
        give_up();
    }
    if (last < limit)
        for (std::size_t k = 0; k < 2; ++k)
            if (open[k]) found[k] = not_seen;
    return found;
}

Windows::Width Windows::width(const std::array<double, 2>& close, std::int64_t limit, int places, int threads) const {
    limit = std::min(limit, system_.rows / 4);
    const auto row = [&](int place) { return system_.rows / (places + 1) * (place + 1); };
    const auto wider = [&](std::int64_t most, std::size_t k) { return Width{std::min(most + most / 2 + 8, limit), close[k]}; };
    std::int64_t most = 0;
    bool forgets = true;
    // Where that is soon no thread is woken for it.
    for (int place = 0; place < places && forgets; ++place) {
        // Windows of twice what the places before needed: one and a half times that has to fit.
        const std::int64_t found = width_at(row(place), close, [](std::size_t k) { return k == 0; }, {place == 0 ? soon : std::max<std::int64_t>(2 * most, 16), soon, std::min(limit, soon)})[0];
        most = std::max(most, found), forgets = found >= 0;
    }
    if (forgets) return wider(most, 0);
    std::atomic<bool> lost[2] = {limit <= soon, false};  // at some place: the others need not look for that
    std::int64_t rows[2] = {};
    const auto wanted = [&](std::size_t k) { return !lost[k].load(std::memory_order_relaxed); };
    // Nor where one place says it: to wake all threads takes longer.
    const auto first = width_at(row(0), close, wanted, {soon, later, limit});
    for (std::size_t k = 0; k < 2; ++k)
        if (first[k] == -1) lost[k] = true;
    if (lost[0] && lost[1]) return {};
    // All threads, though there are fewer places: a team that changes its size is made anew.
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(max : rows[:2])
    for (int place = 0; place < places; ++place) {
        const auto found = width_at(row(place), close, wanted, {soon, limit, limit});
        for (std::size_t k = 0; k < 2; ++k) {
            rows[k] = std::max(rows[k], found[k]);
            if (found[k] < 0) lost[k] = true;
        }
    }
    for (std::size_t k = 0; k < 2; ++k)
        if (!lost[k]) return wider(rows[k], k);
    return {};
}

Windows::Seam Windows::open(std::int64_t b, std::int64_t width) const {
    Seam seam;
    seam.at = b;
    if (!system_.in_place) return seam;
    const std::int64_t first = std::max<std::int64_t>(b - width, 0), end = std::min(b + width, system_.rows);
    seam.rhs.reserve(static_cast<std::size_t>(end - first));
    for (std::int64_t row = first; row < end; ++row) seam.rhs.push_back(entry(system_.rhs, row, system_.dtype));
    return seam;
}

void Windows::put_back(const System& system, const Seam& seam, std::int64_t width) {
    const std::int64_t first = std::max<std::int64_t>(seam.at - width, 0);
    for (std::size_t k = 0; k < seam.rhs.size(); ++k) {
        const std::int64_t at = (first + static_cast<std::int64_t>(k)) * system.x.row_stride;
        if (system.dtype == DType::f32) static_cast<float*>(system.x.data)[at] = static_cast<float>(seam.rhs[k]);
        else static_cast<double*>(system.x.data)[at] = seam.rhs[k];
    }
}

void multiply_in_place(const System& system, double before, double after) {
    system.dtype == DType::f32 ? multiply_typed<float>(system, before, after) : multiply_typed<double>(system, before, after);
}

double Windows::residual(const Seam& seam, std::int64_t width) const {
    const std::int64_t first = std::max<std::int64_t>(seam.at - width, 0), end = std::min(seam.at + width, system_.rows);
    double matrix = 0, size = 0, right = 0, most = 0;
    for (std::int64_t row = first; row < end; ++row) {
        const double a = row > 0 ? entry(system_.lower, row, system_.dtype) : 0, b = entry(system_.diag, row, system_.dtype);
        const double c = row + 1 < system_.rows ? entry(system_.upper, row, system_.dtype) : 0, x = entry(system_.x, row, system_.dtype);
        const double d = seam.rhs.empty() ? entry(system_.rhs, row, system_.dtype) : seam.rhs[static_cast<std::size_t>(row - first)];
        matrix = std::max({matrix, std::abs(a), std::abs(b), std::abs(c)}), size = std::max(size, std::abs(x)), right = std::max(right, std::abs(d));
        if (row != seam.at - 1 && row != seam.at) continue;
        const double before = row > 0 ? entry(system_.x, row - 1, system_.dtype) : 0, after = row + 1 < system_.rows ? entry(system_.x, row + 1, system_.dtype) : 0;
        const double rest = std::abs(d - a * before - b * x - c * after);
        most = std::isnan(rest) ? rest : std::max(most, rest);
    }
    const double scale = matrix * size + right;
    return scale > 0 ? most / scale : most;
}

Windows::Joined Windows::join(const Seam& seam, std::int64_t width, double close) const {
    return system_.dtype == DType::f32 ? join_typed<float>(system_, host_, seam, width, close) : join_typed<double>(system_, host_, seam, width, close);
}

}  // namespace trifold::tridiagonal::split
