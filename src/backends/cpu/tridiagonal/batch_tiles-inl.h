// SPDX-License-Identifier: BSD-3-Clause
// From an operand's place in memory to rows of lanes, and back: the only place where layouts and sources differ.
//
//   constant     one value                                    one buffered row, step 0
//   splat        one value per row for all systems            a buffered vector per row
//   direct       systems side by side (lane_stride 1)         read where it is
//   partial      fewer of them than a vector has lanes        buffered under a mask; the last one fills the other lanes
//   transposed   rows side by side (row_stride 1)             buffered, through registers
//   gathered     anything else, generators                    buffered, one element at a time
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

enum class Access : std::uint8_t { constant, splat, direct, partial, transposed, gathered };

/// The first `count` lanes from p, and the last of them in all others; nothing beyond is read.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_part(D d, const T* p, std::int64_t count) {
#if HWY_TARGET <= HWY_AVX2
    const auto there = hn::FirstN(d, static_cast<std::size_t>(count));
    return hn::IfThenElse(there, hn::MaskedLoad(there, d, p), hn::Set(d, p[count - 1]));
#else  // whose masked loads read whole vectors
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    alignas(64) T all[N];
    for (std::int64_t j = 0; j < N; ++j) all[j] = p[HWY_MIN(j, count - 1)];
    return hn::Load(d, all);
#endif
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_part(D d, hn::Vec<D> v, T* p, std::int64_t count) {
#if HWY_TARGET <= HWY_AVX2
    hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(count)), d, p);
#else
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    alignas(64) T all[N];
    hn::Store(v, d, all);
    std::copy_n(all, count, p);
#endif
}

/// Lanes of one block: `vectors` of them, of which the last starts at lane `last`; fewer than a vector where count < N.
struct Span {
    std::int64_t count = 0, last = 0;
    int vectors = 0;
};

template <class D, class T = hn::TFromD<D>>
class Source {
public:
    static constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    static constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));  ///< elements of a cache line
    static constexpr std::int64_t tile_rows = 2 * line;                              ///< neighbouring lines are read together

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
        else if (view && operand_.lane_stride == 1 && span.count < N) access_ = Access::partial;
        else if (!view || span.count < N) access_ = Access::gathered;
        else if (operand_.lane_stride == 1) access_ = Access::direct;
        else if (operand_.row_stride == 1 && high_ - low_ >= line) access_ = Access::transposed;
        else access_ = Access::gathered;
    }

    Access access() const { return access_; }
    T* base() const { return base_; }

    /// The block whose lane 0 is at `base`; a generator's system with that number.
    void enter(T* base, std::int64_t number, const Span& span) {
        base_ = base, number_ = number, span_ = span;
        if (access_ == Access::constant) std::fill_n(buffer_ + width_, width_, operand_.value);
    }

    /// Rows first … first+count-1, count ≤ tile_rows; the view holds until the next call. Transposed loads ask on the way, line
    /// for line, for the rows from `soon` on (a pointer to lane 0, or null), which come from the second level into the first.
    Rows<T> rows(D d, std::int64_t first, std::int64_t count, const T* soon = nullptr) {
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
                load_columns(d, first, count, soon);
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
        if (access_ == Access::partial)
            for (std::int64_t i = from; i < to; ++i) hn::Store(load_part(d, base_ + i * operand_.row_stride, span_.count), d, row(i - first));
        else
            for (std::int64_t i = from; i < to; ++i) copy_row(d, i, row(i - first));
        return {row(0), width_, N, packed};
    }

    /// What the tile of rows from `row` on of the block whose lane 0 is at `base` will read.
    Ahead<T> ahead(const T* base, std::int64_t row) const {
        const std::int64_t stride = operand_.lane_stride;
        if (access_ == Access::direct) return {base + row * operand_.row_stride + N - 1, operand_.row_stride, N, {0, N, 2 * N, 3 * N}};
        if (access_ != Access::transposed) return {buffer_};
        // Four vectors are 4N lanes of two lines each; as many lanes as a tile has rows per vector of the group.
        constexpr std::int64_t sets = std::max<std::int64_t>(4 * N / tile_rows, 1);
        Ahead<T> to{base + row + line - 1, stride, N * stride};
        for (int k = 0; k < 4; ++k) to.offset[k] = k % sets * tile_rows * stride + k / sets % 2 * line;
        return to;
    }

    /// Rows that are read where they are start inside a line.
    bool unaligned() const {
        return access_ == Access::direct && (reinterpret_cast<std::uintptr_t>(base_) | static_cast<std::uintptr_t>(operand_.row_stride) * sizeof(T)) % 64 != 0;
    }

    bool transposed() const { return access_ == Access::transposed; }
    const T* constants() const { return buffer_ + width_; }  ///< of a scalar, as many as a block has lanes

private:
    T* row(std::int64_t i) const { return buffer_ + (i + tile_rows) * width_; }
    std::int64_t lane(int k) const { return k + 1 == span_.vectors ? span_.last : k * N; }

    // Line by line; one that would reach outside [low, high) is loaded from further inside and overlaps its neighbour.
    HWY_INLINE void load_columns(D d, std::int64_t first, std::int64_t count, const T* soon) const {
        const std::int64_t stride = operand_.lane_stride, pitch = width_;
        const int vectors = span_.vectors;
        const std::int64_t window[2] = {std::clamp(first, low_, high_ - line), std::clamp(first + line, low_, high_ - line)};
        T* const rows[2] = {row(window[0] - first), row(window[1] - first)};
        for (int k = 0; k < vectors; ++k) {
            const T* p = base_ + (k + 1 == vectors ? span_.last : k * N) * stride;
            for (int half = 0; half < (count > line ? 2 : 1); ++half)
#pragma GCC unroll 1
                for (std::int64_t i = 0; i < line; i += N) {
                    hn::Vec<D> v[N];
                    if (soon && i == 0) ask_columns(soon + (p - base_) + half * line, stride);
                    load_tile(d, p + window[half] + i, stride, v);
                    T* HWY_RESTRICT to = rows[half] + i * pitch + k * N;
#pragma GCC unroll 16
                    for (std::int64_t j = 0; j < N; ++j) hn::Store(v[j], d, to + j * pitch);
                }
        }
    }

    // The line of the last element: of a line that is not aligned, the first part came with the tile before.
    static HWY_INLINE void ask_columns(const T* p, std::int64_t stride) {
#pragma GCC unroll 16
        for (std::int64_t j = 0; j < N; ++j) hwy::Prefetch(p + j * stride + line - 1);
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

/// `lines` cache lines of x rows from rows of lanes at `from` (vector k at column k·N) to each system's place.
template <Store how, class D, class T = hn::TFromD<D>>
HWY_INLINE void store_columns(D d, const T* from, std::int64_t pitch, std::int64_t lines, int vectors, std::int64_t last, T* to,
                              std::int64_t lane_stride) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    for (int k = 0; k < vectors; ++k) {
        T* place = to + (k + 1 == vectors ? last : k * N) * lane_stride;
#pragma GCC unroll 1
        for (std::int64_t i = 0; i < lines * Source<D>::line; i += N) {
            hn::Vec<D> v[N];
#pragma GCC unroll 16
            for (std::int64_t j = 0; j < N; ++j) v[j] = hn::Load(d, from + (i + j) * pitch + k * N);
            store_tile<how>(d, v, place + i, lane_stride);
        }
    }
}

/// The system in lane j of vectors of N: the last vector overlaps the one before.
template <std::int64_t N>
std::int64_t lane_of(const Span& span, std::int64_t j) {
    const std::int64_t k = j / N;
    return std::min((k + 1 == span.vectors ? span.last : k * N) + j % N, span.count - 1);
}

/// `rows` rows of a block, `pitch` apart, to any layout, for any number of lanes.
template <class D, class T = hn::TFromD<D>>
void store_any(D d, const T* from, std::int64_t pitch, std::int64_t rows, const Span& span, T* to, std::int64_t row_stride, std::int64_t lane_stride) {
    constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    const bool part = lane_stride == 1 && span.count < N;
    for (std::int64_t r = 0; r < rows; ++r, from += pitch, to += row_stride) {
        if (part) store_part(d, hn::Load(d, from), to, span.count);
        else
            for (std::int64_t j = 0; j < span.vectors * N; ++j) to[lane_of<N>(span, j) * lane_stride] = from[j];
    }
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
