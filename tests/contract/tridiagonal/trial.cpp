// SPDX-License-Identifier: BSD-3-Clause
#include "contract/tridiagonal/trial.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "support/measure.hpp"

namespace trifold::tests {
namespace {

// A pure function of row and system: uniform in (-1, 1), or beyond ±2.2 where `offset` asks for a dominant diagonal.
struct Noise {
    std::uint64_t seed;
    double offset;
};

double noise(const Noise& parameters, std::int64_t row, std::int64_t system) {
    Random random(parameters.seed + 0x1000003u * static_cast<std::uint64_t>(row) + 0x9e3779b1u * static_cast<std::uint64_t>(system));
    random.bits();
    const double value = random.uniform(-1, 1);
    return parameters.offset > 0 ? std::copysign(parameters.offset + std::abs(value), value) : value;
}

template <class T, class Value>
void fill(T* tile, std::int64_t first_row, std::int64_t rows, std::int64_t first_system, std::int64_t systems, const Value& value) {
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < systems; ++j) tile[i * systems + j] = static_cast<T>(value(first_row + i, first_system + j));
}

template <class T>
void fill_noise(T* tile, std::int64_t first_row, std::int64_t rows, std::int64_t first_system, std::int64_t systems, const void* parameters) {
    fill(tile, first_row, rows, first_system, systems, [&](std::int64_t row, std::int64_t system) { return noise(*static_cast<const Noise*>(parameters), row, system); });
}

struct Placed {
    const Entries* entries;
    int band;
};

template <class T>
void fill_placed(T* tile, std::int64_t first_row, std::int64_t rows, std::int64_t first_system, std::int64_t systems, const void* parameters) {
    const Placed& placed = *static_cast<const Placed*>(parameters);
    fill(tile, first_row, rows, first_system, systems, [&](std::int64_t row, std::int64_t system) { return placed.entries->coefficient(placed.band, row, system); });
}

}  // namespace

const char* name_of(Source source) {
    constexpr const char* names[] = {"full", "packed", "shared", "broadcast", "flat", "scalar", "generator"};
    return names[static_cast<int>(source)];
}

std::string Recipe::text() const {
    std::ostringstream out;
    out << rows << " rows, batch (";
    for (const std::int64_t extent : batch) out << extent << ",";
    out << ")";
    if (!lengths.empty()) out << ", " << lengths.size() << " ragged systems, " << before_systems << " rows before and " << behind_systems << " behind";
    out << ", " << name_of(layout) << ", lower " << name_of(lower) << ", diag " << name_of(diag) << ", upper " << name_of(upper);
    for (const auto& [name, on] : {std::pair{"periodic", periodic}, {"transposed", transposed}, {"accumulate", accumulate},
                                   {"in place", in_place}, {"one rhs", one_rhs}, {"dominant", dominant}, {"numbers around", around == Around::numbers},
                                   {"mixed layouts", mixed}})
        if (on) out << ", " << name;
    if (front) out << ", " << front << " dimensions in front";
    out << ", seed " << seed;
    return out.str();
}

// One coefficient: its array where it has one, and the coefficient made of it.
template <class T>
struct Trial<T>::Band {
    Source source;
    std::optional<StridedArray<T>> array, before;
    std::vector<std::int64_t> weight;  // of a batch index in the array's system number; 0 = broadcast
    Noise parameters{};
    Placed placed{};
    T scalar = 0;
    std::int64_t first_row = 0;        // packed lower: 1
    Coefficient coefficient;
};

template <class T>
Trial<T>::Trial(const Recipe& recipe) : recipe_(recipe) {
    const Recipe& r = recipe_;
    const std::int64_t total = r.rows;
    if (!r.lengths.empty()) {
        offsets_.push_back(r.before_systems);
        for (const std::int64_t length : r.lengths) offsets_.push_back(offsets_.back() + length), rows_of_.push_back(length);
    } else {
        std::int64_t systems = 1;
        for (const std::int64_t extent : r.batch) systems *= extent;
        rows_of_.assign(static_cast<std::size_t>(systems), r.rows);
    }
    Random random(r.seed);
    const auto layout = [&] { return r.mixed ? layouts[random.below(std::size(layouts))] : r.layout; };
    const auto shift = [&] { return r.mixed ? random.below(16) : std::int64_t{16 / sizeof(T)}; };
    for (int b = 0; b < 3; ++b) {
        auto band = std::make_unique<Band>();
        band->source = b == 0 ? r.lower : b == 1 ? r.diag : r.upper;
        band->parameters = {random.bits(), b == 1 && r.dominant ? 2.2 : 0.0};
        band->placed = {r.entries.get(), b};
        band->weight.assign(r.batch.size(), 0);
        const auto draw = [&, band = band.get()] {
            double value = random.uniform(-1, 1);
            const double offset = band->parameters.offset;
            // Constant couplings of very different size make solutions that grow like a power of their ratio.
            if (b != 1 && (band->source == Source::scalar || band->source == Source::flat)) value = std::copysign(0.5 + std::abs(value) / 2, value);
            return static_cast<T>(offset > 0 ? std::copysign(offset + std::abs(value), value) : value);
        };
        switch (band->source) {
            case Source::scalar:
                band->scalar = r.entries ? static_cast<T>(r.entries->coefficient(b, 0, 0)) : draw();
                band->coefficient = static_cast<double>(band->scalar);
                break;
            case Source::generator:
                if (r.entries) band->coefficient = Generator{fill_placed<float>, fill_placed<double>, &band->placed, sizeof(Placed), nullptr};
                else band->coefficient = Generator{fill_noise<float>, fill_noise<double>, &band->parameters, sizeof(Noise), nullptr};
                break;
            default: {
                const bool packed = band->source == Source::packed;
                band->first_row = packed && b == 0 ? 1 : 0;
                std::vector<std::int64_t> extents = r.batch;
                if (band->source == Source::shared) extents.clear();
                else std::fill_n(extents.begin(), r.front, 1);
                if (band->source == Source::broadcast)
                    for (std::int64_t& extent : extents)
                        if (random.chance(0.6)) extent = 1;
                const std::int64_t rows = band->source == Source::flat ? std::min<std::int64_t>(1, total) : packed ? std::max<std::int64_t>(total - 1, 0) : total;
                const Layout own = layout();
                const std::int64_t first = shift();
                band->array.emplace(rows, extents, own, random.bits(), r.around, first);
                if (r.entries) band->array->fill_by_place([&](std::int64_t i, std::int64_t k) { return static_cast<T>(r.entries->coefficient(b, i + band->first_row, k)); });
                else band->array->fill(draw);
                View<const T> view = band->array->const_view();
                view.axis.extent = packed ? rows : total;
                if (band->source == Source::flat) view.axis.stride = 0;
                std::int64_t weight = 1;
                for (std::size_t d = extents.size(); d-- > 0;) {
                    if (extents[d] != 1 || r.batch[d] == 1) band->weight[d] = weight;
                    else view.batch[d] = {r.batch[d], 0};
                    weight *= extents[d];
                }
                band->coefficient = AnyView(view);
            }
        }
        bands_.push_back(std::move(band));
    }
    const Layout rhs_layout = layout();
    const std::int64_t rhs_shift = shift();
    const std::uint64_t layout_seed = random.bits();
    rhs_.emplace(total, r.one_rhs ? std::vector<std::int64_t>(r.batch.size(), 1) : r.batch, rhs_layout, layout_seed, r.around, rhs_shift);
    if (r.entries) rhs_->fill_by_place([&](std::int64_t i, std::int64_t k) { return static_cast<T>(r.entries->right(i, k)); });
    else rhs_->fill([&] { return static_cast<T>(random.uniform(1, 5)); });
    if (!r.in_place) {
        const Layout x_layout = layout();
        const std::int64_t x_shift = shift();
        x_.emplace(total, r.batch, x_layout, random.bits(), r.around, x_shift);
        x_->fill([&] { return static_cast<T>(r.accumulate ? random.uniform(-1, 1) : NAN); });
        x_before_ = x_;
    }
    // Entries that are not part of any system: the ends of the couplings where nothing is periodic.
    if (!r.periodic)
        for (const int b : {0, 2}) {
            Band& band = *bands_[b];
            if (band.source != Source::full && band.source != Source::shared) continue;
            for (std::size_t k = 0; k < rows_of_.size(); ++k)
                if (rows_of_[k] > 0) coefficient(b, b == 0 ? 0 : rows_of_[k] - 1, static_cast<std::int64_t>(k)) = r.around == Around::nan ? T(NAN) : T(3);
        }
    rhs_before_ = rhs_;
    for (const auto& band : bands_) band->before = band->array;

    problem_.matrix.lower = bands_[0]->coefficient;
    problem_.matrix.diag = bands_[1]->coefficient;
    problem_.matrix.upper = bands_[2]->coefficient;
    problem_.matrix.periodic = r.periodic;
    problem_.matrix.transposed = r.transposed;
    problem_.rhs = rhs_->view();
    if (r.one_rhs)
        for (std::size_t d = 0; d < r.batch.size(); ++d) problem_.rhs.batch[d] = {r.batch[d], 0};
    problem_.x = r.in_place ? rhs_->view() : x_->view();
    problem_.accumulate = r.accumulate;
    if (!offsets_.empty()) problem_.offsets = offsets_;
}

template <class T>
Trial<T>::~Trial() = default;

template <class T>
Rows<const T> Trial<T>::values(int b, std::int64_t k, std::vector<T>& made) const {
    const Band& band = *bands_[b];
    const std::int64_t first = offsets_.empty() ? 0 : offsets_[k];
    if (band.source == Source::scalar) return {&band.scalar, 0, 0};
    if (band.source == Source::generator) {
        made.resize(static_cast<std::size_t>(rows_of_[k]));
        for (std::int64_t i = 0; i < rows_of_[k]; ++i)
            made[static_cast<std::size_t>(i)] = static_cast<T>(recipe_.entries ? recipe_.entries->coefficient(b, first + i, k) : noise(band.parameters, first + i, k));
        return {made.data(), 0, 1};
    }
    std::int64_t number = 0, rest = offsets_.empty() ? k : 0;
    for (std::size_t d = recipe_.batch.size(); d-- > 0;) {
        number += rest % recipe_.batch[d] * band.weight[d];
        rest /= recipe_.batch[d];
    }
    Rows<const T> entries = std::as_const(*band.array).rows(number);
    if (band.source == Source::flat) entries.stride = 0;
    return entries.from(first - band.first_row);
}

template <class T>
T& Trial<T>::coefficient(int b, std::int64_t i, std::int64_t k) {
    const std::int64_t row = i + (offsets_.empty() ? 0 : offsets_[k]);
    return bands_[b]->array->at(row, bands_[b]->source == Source::full && offsets_.empty() ? k : 0);
}

template <class T>
T& Trial<T>::rhs(std::int64_t i, std::int64_t k) {
    return rows(*rhs_, recipe_.one_rhs ? 0 : k)[i];
}

template <class T>
Bands<double> Trial<T>::system(std::int64_t k) const {
    const std::int64_t n = rows_of_[k];
    Bands<double> s(n, recipe_.periodic);
    std::vector<T> made[3];
    const Rows<const T> lower = values(0, k, made[0]), diag = values(1, k, made[1]), upper = values(2, k, made[2]), rhs = rows(*rhs_before_, recipe_.one_rhs ? 0 : k);
    // A's entry (i, i-1) is lower[i], (i, i+1) is upper[i]; the transpose has (i, i-1) = upper[i-1], (i, i+1) = lower[i+1].
    const Rows<const T> before = recipe_.transposed ? upper.from(-1) : lower, after = recipe_.transposed ? lower.from(1) : upper;
    for (std::int64_t i = 0; i < n; ++i) s.diag[i] = diag[i], s.rhs[i] = rhs[i];
    for (std::int64_t i = 1; i < n; ++i) s.lower[i] = before[i], s.upper[i - 1] = after[i - 1];
    if (recipe_.periodic && n > 0) s.lower[0] = recipe_.transposed ? upper[n - 1] : lower[0], s.upper[n - 1] = recipe_.transposed ? lower[0] : upper[n - 1];
    return s;
}

template <class T>
std::vector<T> Trial<T>::stored(std::int64_t k) const {
    const Rows<const T> from = rows(recipe_.in_place ? *rhs_ : *x_, k);
    std::vector<T> x(static_cast<std::size_t>(rows_of_[k]));
    for (std::int64_t i = 0; i < rows_of_[k]; ++i) x[i] = from[i];
    return x;
}

template <class T>
std::vector<double> Trial<T>::solution(std::int64_t k) const {
    std::vector<double> x = as_double(stored(k));
    if (!recipe_.accumulate) return x;
    const Rows<const T> before = rows(*x_before_, k);
    for (std::int64_t i = 0; i < rows_of_[k]; ++i) x[i] -= static_cast<double>(before[i]);
    return x;
}

template <class T>
std::vector<double> Trial<T>::stored_before(std::int64_t k) const {
    std::vector<double> x(static_cast<std::size_t>(rows_of_[k]));
    if (!recipe_.accumulate) return x;
    const Rows<const T> before = rows(*x_before_, k);
    for (std::int64_t i = 0; i < rows_of_[k]; ++i) x[i] = static_cast<double>(before[i]);
    return x;
}

template <class T>
std::vector<std::span<T>> Trial<T>::memory() {
    std::vector<std::span<T>> all{rhs_->memory()};
    if (x_) all.push_back(x_->memory());
    for (const auto& band : bands_)
        if (band->array) all.push_back(band->array->memory());
    return all;
}

template <class T>
tridiagonal::Matrix Trial<T>::matrix_behind_front() const {
    tridiagonal::Matrix matrix = problem_.matrix;
    for (Coefficient* const coefficient : {&matrix.lower, &matrix.diag, &matrix.upper})
        if (AnyView* const view = std::get_if<AnyView>(coefficient); view && view->batch_dims > 0) {
            std::copy(view->batch.begin() + static_cast<std::ptrdiff_t>(recipe_.front), view->batch.begin() + view->batch_dims, view->batch.begin());
            view->batch_dims -= static_cast<int>(recipe_.front);
        }
    return matrix;
}

template <class T>
bool Trial<T>::surroundings_untouched() const {
    for (const auto& band : bands_)
        if (band->array && !band->array->same_bits(*band->before)) return false;
    const StridedArray<T>&x = recipe_.in_place ? *rhs_ : *x_, &before = recipe_.in_place ? *rhs_before_ : *x_before_;
    const auto same = [&](std::int64_t i) { return std::memcmp(&x.at(i, 0), &before.at(i, 0), sizeof(T)) == 0; };
    for (std::int64_t i = 0; i < recipe_.before_systems; ++i)
        if (!same(i)) return false;
    for (std::int64_t i = 0; i < recipe_.behind_systems; ++i)
        if (!same(recipe_.rows - 1 - i)) return false;
    return x.same_around(before) && (recipe_.in_place || rhs_->same_bits(*rhs_before_));
}

template <class T>
void Trial<T>::expect_solved(const Outcome& outcome, const std::vector<std::int8_t>* status) const {
    SCOPED_TRACE(recipe_.text() + ", " + trifold::name_of(dtype_of<T>) + ", branch " + outcome.branch + " on " + outcome.device);
    bool any = false;
    for (const std::int64_t rows : rows_of_) any = any || rows > 0;
    ASSERT_TRUE(outcome.ok()) << trifold::name_of(outcome.reason) << ", system " << outcome.system << ", row " << outcome.row;
    EXPECT_EQ(outcome.reason == Reason::none, !any);
    EXPECT_EQ(outcome.failures, 0);
    EXPECT_EQ(outcome.system, -1);
    EXPECT_EQ(outcome.row, -1);
    EXPECT_STRNE(outcome.device, "");
    EXPECT_TRUE(surroundings_untouched());
    const double u = unit_roundoff(dtype_of<T>);
    double worst = 0;
    std::int64_t worst_system = 0;
    for (std::int64_t k = 0; k < systems(); ++k) {
        if (rows_of_[k] == 0) continue;
        const double error = backward_error(system(k), solution(k));
        if (!(error <= worst)) worst = error, worst_system = k;
        if (status) { EXPECT_GT((*status)[k], 0) << "system " << k; }
    }
    EXPECT_LE(worst, 20 * u) << "backward error of system " << worst_system;
}

template class Trial<float>;
template class Trial<double>;

Recipe random_recipe(std::uint64_t seed, bool few_and_long) {
    Random random(seed);
    Recipe r;
    r.seed = seed;
    r.around = seed % 2 ? Around::nan : Around::numbers;
    const std::int64_t sizes[] = {1, 2, 3, 4, 7, 8, 16, 17, 31, 33, 64, 65, 100, 257};
    const std::int64_t long_sizes[] = {1023, 1024, 1025, 1500, 2047, 2500, 3001, 4097, 5000, 8191, 8192, 8193, 12000, 20001};
    r.rows = (few_and_long ? long_sizes : sizes)[random.below(14)];
    r.periodic = random.chance(0.25);
    r.transposed = random.chance(0.25);
    const int form = static_cast<int>(random.below(4));
    r.accumulate = form == 1;
    r.in_place = form == 2;
    r.dominant = random.chance(0.6);
    r.layout = layouts[random.below(5)];
    const bool ragged = random.chance(0.15);
    for (Source* source : {&r.lower, &r.diag, &r.upper}) *source = random.chance(0.5) ? Source::full : sources[random.below(7)];
    if (r.diag == Source::packed) r.diag = Source::full;
    for (Source* source : {&r.lower, &r.upper})
        if (*source == Source::packed && (r.periodic || ragged)) *source = Source::full;
    const auto keep_bounded = [&] {
        for (Source* source : {&r.lower, &r.upper})
            if (*source == Source::scalar || *source == Source::flat) *source = Source::full;
    };
    if (ragged) {
        r.rows = 0;
        if (r.periodic) r.transposed = false;
        for (std::int64_t k = random.below(few_and_long ? 5 : 20); k >= 0; --k) r.lengths.push_back(random.below(4) ? random.below(few_and_long ? 9000 : 40) : 0);
        if (!r.dominant && few_and_long) keep_bounded();
        for (const std::int64_t length : r.lengths) r.rows += length;
        return r;
    }
    const std::int64_t dims = random.below(5);
    for (std::int64_t d = 0; d < dims; ++d) r.batch.push_back(dims == 1 ? 1 + random.below(few_and_long ? 20 : 70) : 1 + random.below(few_and_long ? 3 : 6));
    r.one_rhs = !r.in_place && random.chance(0.1);
    if (!r.dominant && r.rows > 64) keep_bounded();
    return r;
}

}  // namespace trifold::tests
