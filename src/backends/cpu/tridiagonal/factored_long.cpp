// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/factored_long.hpp"

#include <omp.h>

#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "trifold/dtype.hpp"

namespace trifold::cpu {
namespace {

using tridiagonal::System;

constexpr std::int64_t most_halo = 1024, block_rows = 512;
constexpr double tame = 16;

// A page's worth of distance between stretches would bring all of them into the same sets of the first-level cache.
template <class T>
std::int64_t staggered(std::int64_t length) {
    constexpr std::int64_t page = 4096 / static_cast<std::int64_t>(sizeof(T)), W = group_lanes<T>;
    return length < page ? length : length / page * page + page / W + W;
}

template <class T>
LongCut<T> local_cut(std::int64_t rows) {
    return {rows, staggered<T>(std::clamp<std::int64_t>(rows / (group_lanes<T> * 64), 1024, 16384))};
}

// Short: the rounding of a chunk's rows adds up where two chunks meet, and the less there is the seldomer it must be spread. Among millions of chunks
// there are worse ones; in memory shorter ones cost nothing.
template <class T>
LongCut<T> coupled_cut(std::int64_t rows) {
    const std::int64_t wanted = sizeof(T) == 8 && rows >= (std::int64_t{1} << 20) ? 24 : 64;
    return {rows, std::min<std::int64_t>(wanted, rows / group_lanes<T>)};
}

// Kept lines of group g: `left` rows before its first one, then its rows, then `right` more.
template <class T>
std::int64_t lines_before(const LongCut<T>& cut, std::int64_t g, std::int64_t halo) {
    return g * halo + (g < cut.full() ? g * cut.usual : (cut.full() - 1) * cut.usual + cut.longer());
}

template <class T>
T* lines_of(const void* memory) { return long_numbers<T>(memory); }

// What a chunk does to units at its ends, W lanes each: w that enters → w that leaves; → x of its first row; x that enters → the same. And the shares of
// its rows in what is missing at either end: chunk_spread-inl.h.
template <class T>
struct Joints {
    T *w_to_w, *w_to_x, *x_to_x, *down_share, *up_share;
    explicit Joints(T* at)
        : w_to_w(at), w_to_x(at + group_lanes<T>), x_to_x(at + 2 * group_lanes<T>), down_share(at + 3 * group_lanes<T>), up_share(at + 4 * group_lanes<T>) {}
    static constexpr std::int64_t lines = 5, words = lines * group_lanes<T>;
};

template <class T>
std::int64_t coupled_lines(const LongCut<T>& cut) { return lines_before(cut, cut.groups(), 0) + 2 * cut.W; }

/// The products along the numbers of a matrix.
template <class T>
class Products {
public:
    Products(std::int64_t rows, const T* numbers) : rows_(rows), numbers_(numbers), close_(std::ldexp(unit_roundoff(dtype_of<T>), -42)) {}

    /// Rows before `row` whose product of l, also that with any of the rows up to `end`, is small; most_halo + 1: not so.
    std::int64_t before(std::int64_t row, std::int64_t end) const {
        double product = 1;
        std::int64_t count = 0;
        for (std::int64_t i = row; product > reserve * close_; ++count, --i) {
            if (i == 0) return count;  // all there is
            if (count == most_halo) return most_halo + 1;
            product *= l(i - 1);
        }
        return stays(product, row, end, +1) ? count : most_halo + 1;
    }

    /// Rows from `row` on whose product of c', also that with any of the rows down to `first`, is small.
    std::int64_t behind(std::int64_t row, std::int64_t first) const {
        double product = 1;
        std::int64_t count = 0;
        for (std::int64_t i = row; product > reserve * close_; ++count, ++i) {
            if (i == rows_) return count;
            if (count == most_halo) return most_halo + 1;
            product *= c(i);
        }
        return stays(product, row - 1, first - 1, -1) ? count : most_halo + 1;
    }

    double l(std::int64_t i) const { return std::abs(static_cast<double>(numbers_[3 * i + 1])); }
    double c(std::int64_t i) const { return std::abs(static_cast<double>(numbers_[3 * i + 2])); }

private:
    static constexpr double reserve = 1.0 / 1024;

    bool stays(double product, std::int64_t from, std::int64_t end, int step) const {
        const double gone = close_ * 0x1p-400;
        for (std::int64_t i = from; i != end && product > gone; i += step) {
            product *= step > 0 ? l(i) : c(i);
            if (product > close_) return false;
        }
        return true;
    }

    std::int64_t rows_;
    const T* numbers_;
    double close_;
};

template <class T>
LongHead halos(std::int64_t rows, const T* numbers, int threads) {
    const LongCut<T> cut = local_cut<T>(rows);
    const Products<T> products(rows, numbers);
    std::atomic<std::int64_t> left{0}, right{0};
    const auto widen = [](std::atomic<std::int64_t>& widest, std::int64_t halo) {
        for (std::int64_t now = widest.load(); halo > now && !widest.compare_exchange_weak(now, halo);) {}
    };
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (std::int64_t g = 0; g < cut.groups(); ++g)
        for (std::int64_t j = 0; j < cut.W && left <= most_halo && right <= most_halo; ++j) {
            const std::int64_t start = cut.start(g, j), end = cut.start(g, j + 1), tiles = cut.length(g) / cut.W;
            if (start == end) continue;
            widen(left, products.before(start, end));
            const std::int64_t blocks = (cut.length(g) + block_rows - 1) / block_rows;
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::int64_t first = start + tiles * b / blocks * cut.W, last = std::min(start + tiles * (b + 1) / blocks * cut.W, rows);
                if (first < last) widen(right, products.behind(last, first));
            }
        }
    LongHead head;
    const auto whole = [&](std::int64_t halo) { return (halo + cut.W - 1) / cut.W * cut.W; };
    if (left > most_halo || right > most_halo || 2 * (whole(left) + whole(right)) > cut.usual) return head;
    head.mode = LongMode::local;
    head.left = static_cast<std::int32_t>(whole(left)), head.right = static_cast<std::int32_t>(whole(right));
    return head;
}

// Rows of a group and its halos, turned into lines of lanes.
template <class T>
void turn_factors(const LongCut<T>& cut, std::int64_t g, const LongHead& head, const T* numbers, T* lines) {
    const std::int64_t count = head.left + cut.length(g) + head.right;
    for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < cut.W; ++j) {
            const std::int64_t row = cut.first(g) + j * cut.length(g) + i - head.left;
            const bool there = row >= 0 && row < cut.rows;
            for (int what = 0; what < 3; ++what) lines[(i * 3 + what) * cut.W + j] = there ? numbers[3 * row + what] : T(0);
        }
}

// Of a chunk of `length` rows, of which those from `rows` on are none; false where a product grows.
template <class T>
bool join(const T* numbers, std::int64_t first, std::int64_t length, std::int64_t rows, Joints<T> out, std::int64_t j) {
    const auto number = [&](std::int64_t i, int what) { return first + i < rows ? static_cast<double>(numbers[3 * (first + i) + what]) : 0.0; };
    double product = 1, largest = 0, other = 1, down = 0, up = 0;
    std::vector<double> w(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; ++i) {
        const double l = number(i, 1);
        w[static_cast<std::size_t>(i)] = product *= -l;
        largest = std::max(largest, std::abs(product));
        down = 1 + std::abs(l) * down;
    }
    double x = 0;
    for (std::int64_t i = length - 1; i >= 0; --i) {
        const double c = number(i, 2);
        x = w[static_cast<std::size_t>(i)] - c * x;
        other *= -c;
        largest = std::max(largest, std::abs(other));
        up = 1 + std::abs(c) * up;
    }
    out.w_to_w[j] = static_cast<T>(product), out.w_to_x[j] = static_cast<T>(x), out.x_to_x[j] = static_cast<T>(other);
    out.down_share[j] = first + length < rows ? static_cast<T>(std::copysign(1 / down, product)) : T(0);
    out.up_share[j] = first > 0 && first < rows ? static_cast<T>(std::copysign(1 / up, other)) : T(0);
    return largest <= tame;
}

template <class T>
LaneGroup<T> group_of(const LongCut<T>& cut, std::int64_t g, const System& system, std::int64_t extra) {
    LaneGroup<T> group;
    const auto set = [&](LaneOperand<T>& to, const tridiagonal::Operand& from) {
        to.row_step = from.row_stride;
        to.data = static_cast<T*>(from.data) + cut.first(g) * from.row_stride;
        for (std::int64_t j = 0; j < cut.W; ++j) to.offset[j] = j * cut.length(g) * from.row_stride;
        to.choose(static_cast<int>(cut.W));
        if (to.how == LaneOperand<T>::How::direct) to.how = LaneOperand<T>::How::gathered;
    };
    set(group.rhs, system.rhs), set(group.x, system.x);
    for (std::int64_t j = 0; j < cut.W; ++j)
        group.rows[j] = std::clamp<std::int64_t>(cut.rows - (cut.first(g) + j * cut.length(g)), 0, cut.length(g) + extra);
    group.measure();
    return group;
}

template <class T>
struct Run {
    const System& system;
    const LongHead head;
    const LongCut<T> cut;
    T* const lines;
    const int threads;
    T* scratch;
    bool stream = false;

    T* take(std::int64_t count) { return std::exchange(scratch, scratch + (count + cut.W - 1) / cut.W * cut.W); }

    LongSweep<T> sweep_of(std::int64_t g) const {
        LongSweep<T> job;
        job.length = cut.length(g), job.right = head.right;
        job.block = head.mode == LongMode::local ? block_rows : cut.longest();
        job.group = group_of(cut, g, system, 0);
        job.kept = lines + (lines_before(cut, g, head.left + head.right) + head.left) * 3 * cut.W;
        job.stream = stream;
        return job;
    }
    T* rings() {
        ring_words = LongSweep<T>::ring_tiles(head.mode == LongMode::local ? block_rows : cut.longest(), head.right) * cut.W * cut.W;
        return take(ring_words * threads);
    }
    std::int64_t ring_words = 0;

    bool local() {
        const std::int64_t W = cut.W, groups = cut.groups();
        T *const starts = take(groups * W), *const beyond = take(groups * W * head.right), *const ring = rings(), *const halo = take(threads * head.left * W);
        std::atomic<bool> finite{true};
#pragma omp parallel num_threads(threads)
        {
            const int me = omp_get_thread_num();
            // Before anything is stored, as x may be rhs.
#pragma omp for schedule(static)
            for (std::int64_t g = 0; g < groups; ++g) {
                LaneGroup<T> wide = group_of(cut, g, system, head.right);
                gather_lines(wide, wide.rhs, cut.length(g), head.right, beyond + g * W * head.right);
                for (int j = 0; j < W; ++j) wide.rows[j] = cut.first(g) + j * cut.length(g) - head.left < 0 || wide.rows[j] == 0 ? 0 : head.left;
                wide.measure();
                wide.rhs.data -= head.left * wide.rhs.row_step;
                gather_lines(wide, wide.rhs, 0, head.left, halo + me * head.left * W);
                halo_long(halo + me * head.left * W, lines + lines_before(cut, g, head.left + head.right) * 3 * W, head.left, starts + g * W);
            }
#pragma omp for schedule(dynamic, 1)
            for (std::int64_t g = 0; g < groups; ++g) {
                LongSweep<T> job = sweep_of(g);
                job.before = starts + g * W, job.beyond = beyond + g * W * head.right;
                if (!sweep_long(job, ring + me * ring_words)) finite = false;
            }
        }
        return finite;
    }

    bool coupled() {
        const std::int64_t W = cut.W, groups = cut.groups();
        T *const last_w = take((groups + 1) * W), *const first_x = take((groups + 1) * W) + W, *const ring = rings();
        T* const joints = lines + coupled_lines(cut) * 3 * W;
        std::atomic<bool> finite{true};
        const auto all = [&](bool stores) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
            for (std::int64_t g = 0; g < groups; ++g) {
                LongSweep<T> job = sweep_of(g);
                job.stores = stores;
                if (stores) {
                    const Joints<T> of(joints + g * Joints<T>::words);
                    job.before = last_w + g * W, job.leaving = job.before + 1, job.down_share = of.down_share;
                    job.after = first_x + g * W, job.first = job.after - 1, job.up_share = of.up_share;
                } else {
                    job.last_w = last_w + g * W, job.first_x = first_x + g * W;
                }
                if (!sweep_long(job, ring + omp_get_thread_num() * ring_words)) finite = false;
            }
        };
        all(false);
        if (!finite) return false;
        T entering = 0;  // last_w becomes what enters each chunk
        for (std::int64_t k = 0; k < groups * W; ++k) {
            const Joints<T> of(joints + k / W * Joints<T>::words);
            const T own = last_w[k];
            last_w[k] = entering;
            entering = own + of.w_to_w[k % W] * entering;
        }
        last_w[groups * W] = entering;
        T behind = 0;  // first_x becomes what enters from behind
        for (std::int64_t k = groups * W - 1; k >= 0; --k) {
            const Joints<T> of(joints + k / W * Joints<T>::words);
            const T own = first_x[k];
            first_x[k] = behind;
            behind = own + of.w_to_x[k % W] * last_w[k] + of.x_to_x[k % W] * behind;
        }
        first_x[-1] = behind;
        if (!std::isfinite(behind) || !std::isfinite(entering)) return false;
        all(true);
        return finite;
    }
};

}  // namespace

template <class T>
std::size_t long_factor_bytes(std::int64_t rows) {
    const LongCut<T> local = local_cut<T>(rows), coupled = coupled_cut<T>(rows);
    const std::int64_t most = lines_before(local, local.groups(), local.usual / 2) + 2 * local.W;
    const std::int64_t lines = std::max(most, coupled_lines(coupled) + (coupled.groups() * Joints<T>::lines + 2) / 3);
    return 64 + static_cast<std::size_t>(lines * 3 * local.W) * sizeof(T);
}

template <class T>
void long_factor(std::int64_t rows, const T* numbers, void* memory, int threads) {
    LongHead& head = *static_cast<LongHead*>(memory) = halos(rows, numbers, threads);
    T* const lines = lines_of<T>(memory);
    bool good = true;
    if (head.mode == LongMode::none) {
        const LongCut<T> cut = coupled_cut<T>(rows);
        T* const joints = lines + coupled_lines(cut) * 3 * cut.W;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(&& : good)
        for (std::int64_t g = 0; g < cut.groups(); ++g)
            for (std::int64_t j = 0; j < cut.W; ++j) good = join(numbers, cut.first(g) + j * cut.length(g), cut.length(g), rows, Joints<T>(joints + g * Joints<T>::words), j) && good;
        if (good) head.mode = LongMode::coupled;
    }
    if (head.mode == LongMode::none) return;
    const LongCut<T> cut = head.mode == LongMode::local ? local_cut<T>(rows) : coupled_cut<T>(rows);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t g = 0; g < cut.groups(); ++g)
        turn_factors(cut, g, head, numbers, lines + lines_before(cut, g, head.left + head.right) * 3 * cut.W);
}

template <class T>
std::size_t long_scratch(std::int64_t rows, int threads) {
    const LongCut<T> local = local_cut<T>(rows), coupled = coupled_cut<T>(rows);
    const std::int64_t W = local.W, halo = std::min(most_halo, local.usual / 2) + W;
    const std::int64_t one = local.groups() * W * (1 + halo) + threads * (LongSweep<T>::ring_tiles(block_rows, halo) * W * W + halo * W);
    const std::int64_t other = 2 * (coupled.groups() + 1) * W + threads * LongSweep<T>::ring_tiles(coupled.longest(), 0) * W * W;
    return static_cast<std::size_t>(std::max(one, other) + 8 * W) * sizeof(T);
}

template <class T>
bool long_solve(const System& system, const void* memory, int threads, void* scratch) {
    constexpr std::int64_t beyond_caches = std::int64_t{24} << 20;
    const LongHead head = *static_cast<const LongHead*>(memory);
    const LongCut<T> cut = head.mode == LongMode::local ? local_cut<T>(system.rows) : coupled_cut<T>(system.rows);
    // The factors are only read.
    Run<T> run{system, head, cut, lines_of<T>(memory), static_cast<int>(std::min<std::int64_t>(threads, cut.groups())), static_cast<T*>(scratch)};
    run.stream = !system.in_place && system.x.row_stride == 1 && reinterpret_cast<std::uintptr_t>(system.x.data) % 64 == 0 &&
                 5 * system.rows * static_cast<std::int64_t>(sizeof(T)) > beyond_caches;
    return head.mode == LongMode::local ? run.local() : run.coupled();
}

template std::size_t long_factor_bytes<float>(std::int64_t);
template std::size_t long_factor_bytes<double>(std::int64_t);
template void long_factor<float>(std::int64_t, const float*, void*, int);
template void long_factor<double>(std::int64_t, const double*, void*, int);
template std::size_t long_scratch<float>(std::int64_t, int);
template std::size_t long_scratch<double>(std::int64_t, int);
template bool long_solve<float>(const System&, const void*, int, void*);
template bool long_solve<double>(const System&, const void*, int, void*);

}  // namespace trifold::cpu
