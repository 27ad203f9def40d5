// SPDX-License-Identifier: BSD-3-Clause
// From an operand's place in memory to rows of lanes, and back: the only place where layouts and sources differ.
//
//   constant     one value                                    one buffered row, step 0
//   splat        one value per row for all systems            a buffered vector per row
//   direct       systems side by side (lane_stride 1)         read where it is
//   transposed   rows side by side (row_stride 1)             buffered, through registers
//   gathered     anything else, generators, few lanes         buffered, one element at a time
//
// Nothing outside rows [low, high) and lanes [0, count) is read or written: a tile at the edge of the rows is loaded from
// further inside, the last vector overlaps the one before.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/transpose-inl.h"
#include "backends/cpu/tridiagonal/batch_job.hpp"
#include "backends/cpu/tridiagonal/batch_rows-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_TILES_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_TILES_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_TILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

enum class Access : std::uint8_t { constant, splat, direct, transposed, gathered };

/// Lanes of one block: `vectors` of them, of which the last starts at lane `last`; fewer than a vector where count < N.
struct Span {
    std::int64_t count = 0, last = 0;
    int vectors = 0;
};

template <class D, class T = hn::TFromD<D>>
class Source {
public:
    static constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    static constexpr std::int64_t tile_rows = 64 / static_cast<std::int64_t>(sizeof(T));

    /// Elements of buffer for blocks of `width` lanes: a tile, and as many rows before and after it for tiles loaded from further inside.
    static constexpr std::int64_t buffer_elements(std::int64_t width) { return (2 * tile_rows + 2) * width; }

    /// Rows outside [low, high) are zero and are not read.
    Source(const BatchOperand<T>& operand, std::int64_t rows, std::int64_t low, std::int64_t high, T* buffer, std::int64_t width)
        : operand_(operand), rows_(rows), low_(low), high_(high), buffer_(buffer), width_(width) {}

    void choose(const Span& span) {
        using Kind = tridiagonal::Operand::Kind;
        const bool view = operand_.kind == Kind::view;
        if (operand_.kind == Kind::scalar) access_ = Access::constant;
        else if (view && operand_.lane_stride == 0) access_ = Access::splat;
        else if (!view || span.count < N) access_ = Access::gathered;
        else if (operand_.lane_stride == 1) access_ = Access::direct;
        else if (operand_.row_stride == 1 && high_ - low_ >= tile_rows) access_ = Access::transposed;
        else access_ = Access::gathered;
    }

    Access access() const { return access_; }
    T* base() const { return base_; }

    /// The block whose lane 0 is at `base`; a generator's system with that number.
    void enter(T* base, std::int64_t number, const Span& span) {
        base_ = base, number_ = number, span_ = span;
        if (access_ == Access::constant) std::fill_n(buffer_ + width_, width_, operand_.value);
    }

    /// Rows first … first+count-1, count ≤ tile_rows; the view holds until the next call.
    Rows<T> rows(D d, std::int64_t first, std::int64_t count) {
        const std::int64_t packed = (span_.vectors - 1) * N;
        const bool edge = first < low_ || first + count > high_;
        switch (access_) {
            case Access::constant:
                if (!edge) return {buffer_ + width_, 0, N, packed};
                break;
            case Access::direct:
                if (!edge) return {base_ + first * operand_.row_stride, operand_.row_stride, N, span_.last};
                break;
            case Access::transposed: {
                const std::int64_t window = std::clamp(first, low_, high_ - tile_rows);
                load_columns(d, window, row(window - first));
                if (edge) zero_outside(first, count);
                return {row(0), width_, N, packed};
            }
            default: break;
        }
        const std::int64_t from = std::max(first, low_), to = std::min(first + count, high_);
        zero_outside(first, count);
        if (access_ == Access::splat && from < to) {
            for (std::int64_t i = from; i < to; ++i)
                hn::StoreU(hn::Set(d, base_[i * operand_.row_stride]), d, row(i - first));
            return {row(0), width_, 0, 0};
        }
        for (std::int64_t i = from; i < to; ++i) copy_row(d, i, row(i - first));
        return {row(0), width_, N, packed};
    }

    /// Asks for part `unit` of `units` of the block whose lane 0 is at `base`, which will be entered soon: rows where they are
    /// direct, else the systems one after the other, as they lie in memory.
    HWY_INLINE void prefetch(const T* base, std::int64_t unit, std::int64_t lanes) const {
        const std::int64_t line = tile_rows;
        if (access_ == Access::direct) {
            const std::int64_t end = std::min((unit + 1) * tile_rows, rows_);
            for (std::int64_t i = unit * tile_rows; i < end; ++i) {
                const T* p = base + i * operand_.row_stride;
                for (std::int64_t j = 0; j < lanes; j += line) prefetch_second_level(p + j);
            }
        } else if (access_ == Access::transposed) {
            const std::int64_t per_lane = (rows_ + line - 1) / line;
            std::int64_t lane = unit * lanes / per_lane, at = unit * lanes % per_lane;
            for (std::int64_t j = 0; j < lanes; ++j) {
                prefetch_second_level(base + lane * operand_.lane_stride + at * line);
                if (++at == per_lane) at = 0, ++lane;
            }
        }
    }

private:
    T* row(std::int64_t i) const { return buffer_ + (i + tile_rows) * width_; }
    std::int64_t lane(int k) const { return k + 1 == span_.vectors ? span_.last : k * N; }

    HWY_INLINE void load_columns(D d, std::int64_t window, T* to) const {
        const std::int64_t stride = operand_.lane_stride, pitch = width_;
        const int vectors = span_.vectors;
        for (int k = 0; k < vectors; ++k) {
            const T* p = base_ + (k + 1 == vectors ? span_.last : k * N) * stride + window;
#pragma GCC unroll 1
            for (std::int64_t i = 0; i < tile_rows; i += N) {
                hn::Vec<D> v[N];
                load_tile(d, p + i, stride, v);
                T* HWY_RESTRICT row = to + i * pitch + k * N;
#pragma GCC unroll 16
                for (std::int64_t j = 0; j < N; ++j) hn::Store(v[j], d, row + j * pitch);
            }
        }
    }

    void zero_outside(std::int64_t first, std::int64_t count) const {
        for (std::int64_t i = first; i < low_ && i < first + count; ++i) std::fill_n(row(i - first), width_, T(0));
        for (std::int64_t i = std::max(first, high_); i < first + count; ++i) std::fill_n(row(i - first), width_, T(0));
    }

    void copy_row(D d, std::int64_t i, T* to) const {
        if (access_ == Access::constant) std::fill_n(to, width_, operand_.value);
        else if (access_ == Access::direct)
            for (int k = 0; k < span_.vectors; ++k) hn::Store(hn::LoadU(d, base_ + i * operand_.row_stride + lane(k)), d, to + k * N);
        else
            for (int k = 0; k < span_.vectors; ++k)
                for (std::int64_t j = 0; j < N; ++j) to[k * N + j] = element(i, std::min(lane(k) + j, span_.count - 1));
    }

    T element(std::int64_t i, std::int64_t lane) const {
        return base_[i * operand_.row_stride + lane * operand_.lane_stride];
    }

    BatchOperand<T> operand_;
    std::int64_t rows_, low_, high_;
    T* buffer_;
    std::int64_t width_;
    T* base_ = nullptr;
    std::int64_t number_ = 0;
    Span span_;
    Access access_ = Access::gathered;
};

/// x rows first … first+count-1 from rows of lanes at `from` (vector k at column k·N) to x's place.
template <Store how, class D, class T = hn::TFromD<D>>
HWY_INLINE void store_columns(D d, const T* from, std::int64_t pitch, int vectors, std::int64_t last, T* to, std::int64_t lane_stride) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>), tile_rows = 64 / sizeof(T);
    for (int k = 0; k < vectors; ++k) {
        T* place = to + (k + 1 == vectors ? last : k * N) * lane_stride;
        for (std::int64_t i = 0; i < tile_rows; i += N) {
            hn::Vec<D> v[N];
#pragma GCC unroll 16
            for (std::int64_t j = 0; j < N; ++j) v[j] = hn::Load(d, from + (i + j) * pitch + k * N);
            store_tile<how>(d, v, place + i, lane_stride);
        }
    }
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
