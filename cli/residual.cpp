// SPDX-License-Identifier: BSD-3-Clause
#include "residual.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace trifold::cli {
namespace {

// f32 products are exact in double; f64's keep 11 bits more in x87's long double.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <class T>
struct Source {
    const T* data = nullptr;
    std::int64_t row = 0;                              // elements to the next row
    std::array<std::int64_t, max_batch_dims> batch{};  // and to the next system of each dimension
    T scalar{};

    const T* at(std::int64_t offset) const { return data + offset; }
};

struct Maxima {
    double residual = 0, matrix = 0, x = 0, rhs = 0;
    std::int64_t row = -1;

    double backward_error() const {
        const double size = matrix * x + rhs;
        return residual == 0 ? 0 : residual / size;
    }
    void take(const Maxima& other) {
        // A NaN is larger than any number and stays.
        if (!(other.residual <= residual) && !std::isnan(residual)) residual = other.residual, row = other.row;
        matrix = std::max(matrix, other.matrix), x = std::max(x, other.x), rhs = std::max(rhs, other.rhs);
    }
};

template <class T>
class Checker {
public:
    Checker(const tridiagonal::Problem& problem, int threads)
        : n_(problem.rhs.rows()), dims_(problem.rhs.batch_dims), periodic_(problem.matrix.periodic) {
        x_ = of(problem.x);
        rhs_ = of(problem.rhs);
        settle(lower_, problem.matrix.lower, true);
        settle(diag_, problem.matrix.diag, false);
        settle(upper_, problem.matrix.upper, false);
        for (int d = 0; d < dims_; ++d)
            extent_[static_cast<std::size_t>(d)] = problem.rhs.batch[static_cast<std::size_t>(d)].extent;
        threads_ = n_ * count() < worth_threads ? 1 : threads;
    }
    Checker(const Checker&) = delete;
    Checker& operator=(const Checker&) = delete;

    BackwardError run() {
        const std::int64_t systems = count();
        if (n_ == 0 || systems == 0) return {};
        return systems < 4 * threads_ ? long_systems(systems) : many_systems(systems);
    }

private:
    static constexpr std::int64_t block = 64;
    static constexpr std::int64_t worth_threads = 65536;  // rows: to start them takes longer than fewer do

    static Source<T> of(const AnyView& view) {
        Source<T> source;
        source.data = static_cast<const T*>(view.data);
        source.row = view.axis.stride;
        for (int d = 0; d < view.batch_dims; ++d)
            source.batch[static_cast<std::size_t>(d)] = view.batch[static_cast<std::size_t>(d)].stride;
        return source;
    }

    void settle(Source<T>& source, const Coefficient& coefficient, bool packed_starts_late) {
        if (const AnyView* view = std::get_if<AnyView>(&coefficient)) {
            source = of(*view);
            if (packed_starts_late && view->axis.extent == n_ - 1) shift_ = -source.row;
            return;
        }
        source.scalar = static_cast<T>(std::get<double>(coefficient));
        source.data = &source.scalar;
    }

    std::int64_t count() const {
        std::int64_t count = 1;
        for (int d = 0; d < dims_; ++d) count *= extent_[static_cast<std::size_t>(d)];
        return count;
    }

    static std::int64_t offset(const Source<T>& source, const std::array<std::int64_t, max_batch_dims>& index) {
        std::int64_t sum = 0;
        for (std::size_t d = 0; d < index.size(); ++d) sum += index[d] * source.batch[d];
        return sum;
    }

    std::array<std::int64_t, max_batch_dims> index_of(std::int64_t system,
                                                      const std::array<std::int64_t, max_batch_dims>& extent) const {
        std::array<std::int64_t, max_batch_dims> index{};
        for (int d = dims_ - 1; d >= 0; --d) {
            index[static_cast<std::size_t>(d)] = system % extent[static_cast<std::size_t>(d)];
            system /= extent[static_cast<std::size_t>(d)];
        }
        return index;
    }

    // Rows [first, last) of `width` systems that follow `index` along dimension `inner`.
    void rows(const std::array<std::int64_t, max_batch_dims>& index, std::size_t inner, std::int64_t width,
              std::int64_t first, std::int64_t last, Maxima* maxima) const {
        using W = Wide<T>;
        const T *l = lower_.data + offset(lower_, index) + shift_, *d = diag_.data + offset(diag_, index),
                *u = upper_.data + offset(upper_, index);
        const T *b = rhs_.data + offset(rhs_, index), *x = x_.data + offset(x_, index);
        for (std::int64_t i = first; i < last; ++i) {
            for (std::int64_t s = 0; s < width; ++s) {
                const T* xs = x + s * x_.batch[inner];
                const T here = xs[i * x_.row], centre = d[i * diag_.row + s * diag_.batch[inner]],
                        right = b[i * rhs_.row + s * rhs_.batch[inner]];
                W r = static_cast<W>(right) - static_cast<W>(centre) * here;
                double size = std::fabs(static_cast<double>(centre));
                if (i > 0 || periodic_) {
                    const T below = l[i * lower_.row + s * lower_.batch[inner]];
                    r -= static_cast<W>(below) * xs[(i > 0 ? i - 1 : n_ - 1) * x_.row];
                    size += std::fabs(static_cast<double>(below));
                }
                if (i + 1 < n_ || periodic_) {
                    const T above = u[i * upper_.row + s * upper_.batch[inner]];
                    r -= static_cast<W>(above) * xs[(i + 1 < n_ ? i + 1 : 0) * x_.row];
                    size += std::fabs(static_cast<double>(above));
                }
                Maxima& m = maxima[s];
                const double residual = std::fabs(static_cast<double>(r));
                if (!(residual <= m.residual) && !std::isnan(m.residual)) m.residual = residual, m.row = i;
                m.matrix = std::max(m.matrix, size);
                m.x = std::max(m.x, std::fabs(static_cast<double>(here)));
                m.rhs = std::max(m.rhs, std::fabs(static_cast<double>(right)));
            }
        }
    }

    static void keep(BackwardError& worst, const Maxima& maxima, std::int64_t system) {
        const double value = maxima.backward_error();
        const bool first = worst.system < 0, larger = !(value <= worst.worst) && !std::isnan(worst.worst);
        if (first || larger) worst = {value, system, maxima.row};
    }

    // The threads share the rows of each system.
    BackwardError long_systems(std::int64_t systems) const {
        constexpr std::int64_t piece = 16384;
        BackwardError worst;
        for (std::int64_t system = 0; system < systems; ++system) {
            const auto index = index_of(system, extent_);
            Maxima all;
#pragma omp parallel num_threads(threads_)
            {
                Maxima mine;
#pragma omp for schedule(static) nowait
                for (std::int64_t first = 0; first < n_; first += piece)
                    rows(index, 0, 1, first, std::min(n_, first + piece), &mine);
#pragma omp critical
                all.take(mine);
            }
            keep(worst, all, system);
        }
        return worst;
    }

    // The threads share the systems; those that lie side by side are walked side by side.
    BackwardError many_systems(std::int64_t systems) const {
        std::size_t inner = static_cast<std::size_t>(dims_ - 1);
        for (std::size_t d = 0; d < static_cast<std::size_t>(dims_); ++d)
            if (extent_[d] > 1 && std::abs(x_.batch[d]) < std::abs(x_.batch[inner])) inner = d;
        const bool side_by_side = std::abs(x_.batch[inner]) < std::abs(x_.row);
        const std::int64_t width = side_by_side ? std::min(block, extent_[inner]) : 1;
        auto blocks = extent_;
        blocks[inner] = (extent_[inner] + width - 1) / width;
        const std::int64_t items = systems / extent_[inner] * blocks[inner];
        BackwardError worst;
#pragma omp parallel num_threads(threads_)
        {
            BackwardError mine;
#pragma omp for schedule(static) nowait
            for (std::int64_t item = 0; item < items; ++item) {
                auto index = index_of(item, blocks);
                index[inner] *= width;
                Maxima maxima[block];
                const std::int64_t here = std::min(width, extent_[inner] - index[inner]);
                rows(index, inner, here, 0, n_, maxima);
                for (std::int64_t s = 0; s < here; ++s) keep(mine, maxima[s], number_of(index, inner, s));
            }
#pragma omp critical
            if (mine.system >= 0 && (worst.system < 0 || (!(mine.worst <= worst.worst) && !std::isnan(worst.worst))))
                worst = mine;
        }
        return worst;
    }

    std::int64_t number_of(std::array<std::int64_t, max_batch_dims> index, std::size_t inner, std::int64_t s) const {
        index[inner] += s;
        std::int64_t number = 0;
        for (int d = 0; d < dims_; ++d)
            number = number * extent_[static_cast<std::size_t>(d)] + index[static_cast<std::size_t>(d)];
        return number;
    }

    int threads_ = 1;
    std::int64_t n_;
    int dims_;
    bool periodic_;
    std::array<std::int64_t, max_batch_dims> extent_{1, 1, 1, 1};
    Source<T> lower_, diag_, upper_, rhs_, x_;
    std::int64_t shift_ = 0;  // a packed lower starts with row 1
};

}  // namespace

BackwardError backward_error(const tridiagonal::Problem& problem, int threads) {
    return problem.rhs.dtype == DType::f32 ? Checker<float>(problem, threads).run()
                                           : Checker<double>(problem, threads).run();
}

double backward_error_limit(DType dtype) {
    return 1000 * unit_roundoff(dtype);
}

}  // namespace trifold::cli
