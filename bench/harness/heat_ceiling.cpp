// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/heat_ceiling.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/harness/heat_ceiling.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/mesh/fused-inl.h"
#include "backends/cpu/mesh/star-inl.h"
#include "devices/prefetch_level.hpp"

HWY_BEFORE_NAMESPACE();
namespace trifold::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace kernels = cpu::HWY_NAMESPACE;

template <class T>
void move_step(const HeatMoves<T>& m) {
    using kernels::Depth;
    const hn::ScalableTag<T> d;
    const std::int64_t n = m.n, strip_rows = kernels::groups_of<decltype(d)> * static_cast<std::int64_t>(kernels::lanes_of<decltype(d)>), to_pitch = (n * sizeof(T) + 63) / 64 * 64 / sizeof(T);
    cpu::ComingRows<T> coming{.count = 1, .second_level = devices::asks_second_level()};
    for (std::int64_t z = 0; z < n; ++z) {
        std::fill_n(m.row, m.apart, T(0));
        for (std::int64_t y = 0; y < n; y += strip_rows) {
            const std::int64_t rows = std::min(strip_rows, n - y);
            // The outer planes and rows in the place of what lies beyond them.
            const T *const here = m.u + (z * n + y) * n, *const plane_after = z + 1 < n ? here + n * n : here, *const plane_before = z > 0 ? here - n * n : here;
            kernels::star_of_rows<true>(cpu::Star<T>{}, {here, y > 0 ? here - n : here, y + rows < n ? here + rows * n : here, plane_before, plane_after, nullptr, n, n, n}, rows, n, m.strip, m.apart);
            coming.rows[0] = {m.u + ((z + 1) * n + y + strip_rows) * n, n};
            T *const front = m.front + y * m.apart, *const to = m.w + (z * n + y) * to_pitch;
            const cpu::AlongZ<T> along_z{1, 0, false};
            if (rows == strip_rows)
                kernels::strip_of<Depth::next, true, true, true>(d, *m.factors, *m.factors, along_z, m.strip, m.apart, y, rows, m.row, front, m.apart, to, to_pitch, coming);
            else
                kernels::strip_of<Depth::next, false, true, true>(d, *m.factors, *m.factors, along_z, m.strip, m.apart, y, rows, m.row, front, m.apart, to, to_pitch, coming);
        }
    }
    hwy::FlushStream();
    for (std::int64_t z = n - 1; z >= 0; --z) {
        std::fill_n(m.row, m.apart, T(0));
        for (std::int64_t y = n - 1; y >= 0; --y) kernels::deep_row_of<false, true, true>(T(1), T(1), n, m.w + (z * n + y) * to_pitch, m.front + y * m.apart, m.row, m.u + (z * n + y) * n);
    }
}

void move_step_f32(const HeatMoves<float>& m) { move_step(m); }
void move_step_f64(const HeatMoves<double>& m) { move_step(m); }

}  // namespace trifold::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::bench {
namespace {

HWY_EXPORT(move_step_f32);
HWY_EXPORT(move_step_f64);

void dispatch(const HeatMoves<float>& m) { HWY_DYNAMIC_DISPATCH(move_step_f32)(m); }
void dispatch(const HeatMoves<double>& m) { HWY_DYNAMIC_DISPATCH(move_step_f64)(m); }

/// u lies a line of the cache behind the beginning of its buffer: the first and the last point have neighbours too.
template <class T>
AlignedBuffer zeros(std::int64_t values) {
    AlignedBuffer buffer(static_cast<std::size_t>(values) * sizeof(T));
    std::memset(buffer.data(), 0, buffer.bytes());
    return buffer;
}

}  // namespace

template <class T>
HeatCeiling<T>::HeatCeiling(std::int64_t n) : n_(n) {
    constexpr std::int64_t line = 64 / sizeof(T), most_rows = 16;
    const std::int64_t lines = (n + line - 1) / line;
    apart_ = line * (lines | 1);
    factors_.n = n;
    for (std::vector<T>* numbers : {&factors_.scale, &factors_.lower, &factors_.upper}) numbers->assign(static_cast<std::size_t>(n + 16), T(0));
    u_ = zeros<T>(n * n * n + 3 * line), w_ = zeros<T>(n * n * lines * line + line), front_ = zeros<T>((n + most_rows) * apart_), row_ = zeros<T>(apart_ + line), strip_ = zeros<T>(most_rows * apart_);
}

template <class T>
double HeatCeiling<T>::moving() {
    const auto at = [](const AlignedBuffer& buffer) { return static_cast<T*>(buffer.data()); };
    const HeatMoves<T> moves{n_, apart_, at(u_) + 64 / sizeof(T), at(w_), at(front_), at(row_), at(strip_), &factors_};
    const auto start = std::chrono::steady_clock::now();
    dispatch(moves);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template class HeatCeiling<float>;
template class HeatCeiling<double>;

}  // namespace trifold::bench
#endif
