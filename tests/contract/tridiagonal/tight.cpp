// SPDX-License-Identifier: BSD-3-Clause
// Arrays that hold what may be read and nothing else: lower without row 0, upper without the last row (packed, or views of n rows that reach out there), no row before, between or behind, every array with strides of its own. Who reads beside
// them meets a page that may not be touched, or, in a device's memory, what a checker watches (compute-sanitizer, Oclgrind).
//
//   contract_tridiagonal_tight            TRIFOLD_TIGHT_CASES: how many a device and type; TRIFOLD_TIGHT_SEED: the first
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/guarded_array.hpp"
#include "support/random.hpp"
#include "trifold/device_memory.hpp"

namespace trifold::tests {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t usual) {
    const char* const text = std::getenv(variable);
    return text ? std::strtoull(text, nullptr, 10) : usual;
}

/// Where element (row i, batch index j) lies, from row 0 of system 0; that place may be nobody's.
struct Strides {
    std::int64_t row = 1;
    std::vector<std::int64_t> batch;

    std::int64_t at(std::int64_t i, std::int64_t system, const std::vector<std::int64_t>& extents) const {
        std::int64_t place = i * row;
        for (std::size_t d = extents.size(); d-- > 0; system /= extents[d]) place += system % extents[d] * batch[d];
        return place;
    }
};

struct Shape {
    std::int64_t rows = 1, systems = 1;
    std::vector<std::int64_t> batch;
};

Strides draw_strides(Random& random, const Shape& shape) {
    std::vector<std::int64_t> extents{shape.rows};
    extents.insert(extents.end(), shape.batch.begin(), shape.batch.end());
    std::vector<std::size_t> order(extents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (const auto kind = random.below(4); kind < 2) std::reverse(order.begin(), order.end());  // rows slowest, as they are
    else if (kind == 2) std::rotate(order.begin(), order.begin() + 1, order.end()), std::reverse(order.begin(), order.end());
    else
        for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
    // From the fastest on.
    Strides strides;
    strides.batch.resize(shape.batch.size());
    std::int64_t stride = random.chance(0.85) ? 1 : 1 + random.below(3);
    for (const std::size_t d : order) {
        const std::int64_t own = random.chance(0.8) ? stride : -stride;
        (d == 0 ? strides.row : strides.batch[d - 1]) = own;
        stride *= extents[d] + (random.chance(0.7) ? 0 : random.below(4));
    }
    return strides;
}

Shape draw_shape(Random& random, std::int64_t most) {
    constexpr std::int64_t rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 34, 47, 49, 63, 64, 65, 97, 100, 127, 128, 129, 192, 257, 300, 513, 545, 1023, 1025, 2049, 4097, 5001, 20011};
    constexpr std::int64_t systems[] = {1, 1, 2, 3, 5, 8, 12, 32, 33, 65, 100, 257, 2048, 2051, 4100};
    Shape shape;
    do {
        shape.rows = rows[random.below(std::size(rows))], shape.systems = systems[random.below(std::size(systems))];
    } while (shape.rows * shape.systems > most);
    if (shape.systems > 1 || random.chance(0.5)) shape.batch = {shape.systems};
    for (const std::int64_t divisor : {7, 4, 3})
        if (shape.systems % divisor == 0 && shape.systems > divisor && random.chance(0.4)) {
            shape.batch = {divisor, shape.systems / divisor};
            break;
        }
    return shape;
}

/// One operand. `shared`: by all systems.
template <class T>
class Tight {
public:
    Tight(Random& random, const Shape& shape, const Strides& strides, std::int64_t first_row, std::int64_t end_row, bool shared) : shape_(shape), strides_(strides), shared_(shared) {
        if (shared) strides_.batch.assign(shape.batch.size(), 0);
        const std::int64_t systems = shared ? 1 : shape.systems;
        std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = std::numeric_limits<std::int64_t>::min();
        for (std::int64_t k = 0; k < systems; ++k)
            for (const std::int64_t i : {first_row, end_row - 1})
                if (first_row < end_row) least = std::min(least, at(i, k)), most = std::max(most, at(i, k));
        if (least > most) least = 0, most = -1;
        array_ = GuardedArray<T>(most - least + 1, random.chance(0.5)), origin_ = least;
        for (std::int64_t k = 0; k < array_.size(); ++k) array_.data()[k] = static_cast<T>(random.uniform(-1, 1));  // between rows too
    }

    T& operator()(std::int64_t i, std::int64_t k) const { return array_.data()[at(i, k) - origin_]; }

    AnyView view(bool writable, Queue* there = nullptr) {
        T* data = array_.data();
        Memory where;
        if (there) {
            device_.emplace(*there, std::span<const T>(array_.data(), static_cast<std::size_t>(array_.size())));
            data = device_->data(), where = device_->memory();
        }
        std::vector<Dim> batch;
        for (std::size_t d = 0; d < shape_.batch.size(); ++d) batch.push_back({shape_.batch[d], strides_.batch[d]});
        AnyView view = View<T>::strided(reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(data) - static_cast<std::uintptr_t>(origin_) * sizeof(T)), {shape_.rows, strides_.row}, batch, where);
        view.writable = writable;
        return view;
    }
    void fetch() {
        if (device_) device_->download({array_.data(), static_cast<std::size_t>(array_.size())});
    }

private:
    std::int64_t at(std::int64_t i, std::int64_t k) const { return strides_.at(i, shared_ ? 0 : k, shape_.batch); }

    Shape shape_;
    Strides strides_;
    bool shared_;
    std::int64_t origin_ = 0;
    GuardedArray<T> array_;
    std::optional<DeviceArray<T>> device_;
};

/// Empty where it went well.
template <class T>
std::string attempt(Queue& queue, std::uint64_t seed, std::int64_t most, bool loud) {
    Random random(seed);
    random.bits();
    const Shape shape = draw_shape(random, most);
    const std::int64_t n = shape.rows;
    const bool alike = random.chance(0.5), one_matrix = random.chance(0.2), dominant = random.chance(0.6), in_place = random.chance(0.25), accumulate = !in_place && random.chance(0.1);
    const bool periodic = n >= 3 && random.chance(0.15), transposed = random.chance(0.25), numbers = dominant && random.chance(0.15), factored = !accumulate && random.chance(0.1);
    const bool packed = random.chance(0.6);
    // OpenCL devices leave what is periodic or added to others, who have the host's memory.
    const bool by_host = factored || (std::string_view(queue.device()).starts_with("opencl:") && (periodic || accumulate));
    const bool on_device = queue.memory().kind == MemoryKind::device && !by_host && random.chance(0.7);
    const Strides common = draw_strides(random, shape);
    const auto strides = [&] { return alike ? common : draw_strides(random, shape); };
    std::ostringstream text;
    text << "seed " << seed << ", " << name_of(dtype_of<T>) << ": " << n << " rows, " << shape.systems << " systems in " << shape.batch.size() << " dimensions";
    for (const auto& [name, on] : {std::pair{"strides alike", alike}, {"one matrix", one_matrix}, {"dominant", dominant}, {"in place", in_place}, {"accumulate", accumulate}, {"periodic", periodic}, {"transposed", transposed},
                                   {"numbers", numbers}, {"packed", packed}, {"factored", factored}, {"on the device", on_device}})
        if (on) text << ", " << name;
    if (loud) std::fprintf(stderr, "%s\n", text.str().c_str());

    Tight<T> lower(random, shape, strides(), periodic ? 0 : 1, n, one_matrix), diag(random, shape, strides(), 0, n, one_matrix), upper(random, shape, strides(), 0, periodic ? n : n - 1, one_matrix);
    Tight<T> rhs(random, shape, strides(), 0, n, false);
    std::optional<Tight<T>> apart;
    if (!in_place) apart.emplace(random, shape, strides(), 0, n, false);
    Tight<T>& x = in_place ? rhs : *apart;
    for (std::int64_t k = 0; k < (one_matrix ? 1 : shape.systems); ++k)
        for (std::int64_t i = 0; dominant && i < n; ++i) diag(i, k) = std::copysign(T(2.2) + std::abs(diag(i, k)), diag(i, k));
    std::vector<T> d, before;
    for (std::int64_t k = 0; k < shape.systems; ++k)
        for (std::int64_t i = 0; i < n; ++i) d.push_back(rhs(i, k)), before.push_back(x(i, k));

    Queue* const there = on_device ? &queue : nullptr;
    const auto coefficient = [&](Tight<T>& of, bool first) {
        AnyView view = of.view(false, there);
        if (periodic || !(packed || n == 1)) return view;
        if (first) view.data = static_cast<T*>(view.data) + view.axis.stride;
        view.axis.extent = n - 1;
        return view;
    };
    tridiagonal::Problem problem;
    problem.matrix.periodic = periodic, problem.matrix.transposed = transposed;
    problem.matrix.lower = numbers ? Coefficient(-0.5) : Coefficient(coefficient(lower, true));
    problem.matrix.diag = diag.view(false, there);
    problem.matrix.upper = numbers ? Coefficient(0.25) : Coefficient(coefficient(upper, false));
    problem.rhs = rhs.view(in_place, there);
    problem.x = in_place ? problem.rhs : x.view(true, there);
    problem.accumulate = accumulate;
    Outcome outcome;
    if (factored) {
        const tridiagonal::Factor factor(queue, problem.matrix, n, shape.batch, dtype_of<T>);
        if (!factor.outcome().ok()) return text.str() + ": a factor says " + trifold::name_of(factor.outcome().reason) + "\n";
        outcome = factor.solve(problem.rhs, problem.x);
    } else {
        outcome = tridiagonal::solve(queue, problem);
    }
    x.fetch();
    if (!outcome.ok()) return text.str() + ": says " + trifold::name_of(outcome.reason) + "\n";

    const auto entry = [&](Tight<T>& of, T number, std::int64_t i, std::int64_t k) { return static_cast<double>(numbers ? number : of(i, one_matrix ? 0 : k)); };
    const double allowed = 200 * std::numeric_limits<T>::epsilon() * std::sqrt(static_cast<double>(n));
    for (std::int64_t k = 0; k < shape.systems; ++k) {
        const auto solution = [&](std::int64_t i) { return static_cast<double>(x(i, k)) - (accumulate ? static_cast<double>(before[static_cast<std::size_t>(k * n + i)]) : 0); };
        double rest = 0, size = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t above = i > 0 ? i - 1 : n - 1, below = i < n - 1 ? i + 1 : 0;
            const double a = i == 0 && !periodic ? 0 : transposed ? entry(upper, T(0.25), above, k) : entry(lower, T(-0.5), i, k);
            const double c = i == n - 1 && !periodic ? 0 : transposed ? entry(lower, T(-0.5), below, k) : entry(upper, T(0.25), i, k);
            const double b = static_cast<double>(diag(i, one_matrix ? 0 : k)), right = static_cast<double>(d[static_cast<std::size_t>(k * n + i)]);
            const double r = right - a * solution(above) - b * solution(i) - c * solution(below);
            if (!std::isfinite(r)) return text.str() + ": row " + std::to_string(i) + " of system " + std::to_string(k) + " is no number\n";
            rest = std::max(rest, std::abs(r)), size = std::max({size, (std::abs(a) + std::abs(b) + std::abs(c)) * std::abs(solution(i)), std::abs(right)});
            if (accumulate) size = std::max(size, std::abs(b) * std::abs(static_cast<double>(x(i, k))));
        }
        if (!(rest <= allowed * size)) return text.str() + ": system " + std::to_string(k) + " leaves " + std::to_string(rest / size) + "\n";
    }
    return "";
}

class TightArrays : public OnDevice {};

TEST_P(TightArrays, AreAllThatIsRead) {
    const std::uint64_t cases = number_of("TRIFOLD_TIGHT_CASES", 150), first = number_of("TRIFOLD_TIGHT_SEED", 1), most = number_of("TRIFOLD_TIGHT_MOST", 40000);
    const bool loud = std::getenv("TRIFOLD_TIGHT_LOUD") != nullptr;
    for (std::uint64_t seed = first; seed < first + cases; ++seed) {
        EXPECT_EQ(attempt<double>(queue, seed, static_cast<std::int64_t>(most), loud), "");
        EXPECT_EQ(attempt<float>(queue, seed, static_cast<std::int64_t>(most), loud), "");
        if (HasFailure()) break;
    }
}

TRIFOLD_ON_EVERY_DEVICE(TightArrays);

}  // namespace
}  // namespace trifold::tests
