// SPDX-License-Identifier: BSD-3-Clause
// A vector of runs of chunks: lane k has the rows of a run of its own, in pairs of numbers where they lie. Included once per Highway target.
#include <algorithm>

#include "families/tridiagonal/coupling_runs.hpp"
#include "hwy/highway.h"

#if defined(TRIFOLD_FAMILIES_TRIDIAGONAL_COUPLING_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_FAMILIES_TRIDIAGONAL_COUPLING_LANES_INL_H_
#undef TRIFOLD_FAMILIES_TRIDIAGONAL_COUPLING_LANES_INL_H_
#else
#define TRIFOLD_FAMILIES_TRIDIAGONAL_COUPLING_LANES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::tridiagonal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(D()));

/// The pairs at[0], at[2], … as blocks of a vector.
template <class Of>
HWY_INLINE hn::Vec<Of> load_blocks(Of d, const double* const* at, std::int64_t offset) {
    if constexpr (hn::MaxLanes(Of()) == 2) {
        return hn::LoadU(d, at[0] + offset);
    } else {
        const hn::Half<Of> half;
        return hn::Combine(d, load_blocks(half, at + hn::MaxLanes(Of()) / 2, offset), load_blocks(half, at, offset));
    }
}

template <class Of>
HWY_INLINE void store_blocks(Of d, hn::Vec<Of> v, double* const* at, std::int64_t offset) {
    if constexpr (hn::MaxLanes(Of()) == 2) {
        hn::StoreU(v, d, at[0] + offset);
    } else {
        const hn::Half<Of> half;
        store_blocks(half, hn::LowerHalf(half, v), at, offset);
        store_blocks(half, hn::UpperHalf(half, v), at + hn::MaxLanes(Of()) / 2, offset);
    }
}

struct Pair {
    V first, second;
};

/// Two numbers of every lane, from at[lane] + offset on.
HWY_INLINE Pair load_pairs(const double* const* at, std::int64_t offset) {
    const D d;
    const V even = load_blocks(d, at, offset), odd = load_blocks(d, at + 1, offset);
    return {hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd)};
}

HWY_INLINE void store_pairs(const Pair& pair, double* const* at, std::int64_t offset) {
    const D d;
    store_blocks(d, hn::InterleaveLower(d, pair.first, pair.second), at, offset);
    store_blocks(d, hn::InterleaveUpper(d, pair.first, pair.second), at + 1, offset);
}

HWY_INLINE V minus(V from, V a, V b) { return hn::Sub(from, hn::Mul(a, b)); }

/// A vector of runs. whole: of one length, and as many as there are lanes. Else lanes whose run has ended keep what they have, and those without a run of their own go with the last one and store nothing.
template <bool whole>
class Lanes {
public:
    explicit Lanes(ChunkRuns runs) : live_(static_cast<int>(runs.count)) {
        for (int k = 0; k < lanes; ++k) {
            const ChunkRun& run = runs.run[std::min(k, live_ - 1)];
            rows_[k] = reinterpret_cast<const double*>(run.rows), first_[k] = run.first, chunks_[k] = run.chunks;
            longest = std::max(longest, run.chunks);
        }
    }

    std::int64_t longest = 0;

    int live() const { return live_; }
    std::int64_t first(int lane) const { return first_[lane]; }
    std::int64_t chunks(int lane) const { return chunks_[lane]; }
    std::int64_t chunk_of(int lane, std::int64_t chunk) const { return whole ? chunk : std::min(chunk, chunks_[lane] - 1); }

    M active(std::int64_t chunk) const {
        const D d;
        HWY_ALIGN double active[lanes];
        for (int k = 0; k < lanes; ++k) active[k] = chunk < chunks_[k] ? 1 : 0;
        return hn::Gt(hn::Load(d, active), hn::Zero(d));
    }

    /// The ten numbers of a chunk's rows, from `offset` on.
    Pair rows(std::int64_t chunk, std::int64_t offset) const {
        if constexpr (whole) return load_pairs(rows_, 10 * chunk + offset);
        const double* at[lanes];
        for (int k = 0; k < lanes; ++k) at[k] = rows_[k] + 10 * chunk_of(k, chunk);
        return load_pairs(at, offset);
    }

    void ask_for(std::int64_t chunk) const {
        for (int k = 0; k < lanes; ++k) __builtin_prefetch(rows_[k] + 10 * chunk), __builtin_prefetch(rows_[k] + 10 * chunk + 8);
    }

    /// Two numbers of every lane in an array of two per chunk.
    Pair load(const double* array, std::int64_t chunk, std::int64_t offset) const {
        const double* at[lanes];
        // A run of one chunk has nothing before it where a longer one beside it is read.
        for (int k = 0; k < lanes; ++k) at[k] = array + (whole ? 2 * (first_[k] + chunk) + offset : std::max<std::int64_t>(2 * (first_[k] + chunk_of(k, chunk)) + offset, 0));
        return load_pairs(at, 0);
    }

    void store(const Pair& pair, double* array, std::int64_t chunk, std::int64_t offset) const {
        if constexpr (whole) {
            double* at[lanes];
            for (int k = 0; k < lanes; ++k) at[k] = array + 2 * (first_[k] + chunk);
            store_pairs(pair, at, offset);
        } else {
            const D d;
            HWY_ALIGN double first[lanes], second[lanes];
            hn::Store(pair.first, d, first), hn::Store(pair.second, d, second);
            for (int k = 0; k < live_; ++k)
                if (chunk < chunks_[k]) {
                    double* const at = array + 2 * (first_[k] + chunk) + offset;
                    at[0] = first[k], at[1] = second[k];
                }
        }
    }

private:
    const double* rows_[lanes];
    std::int64_t first_[lanes], chunks_[lanes];
    int live_;
};

/// Both rows of a chunk.
struct Chunk {
    V c[2][4], right[2];
};

template <bool whole>
HWY_INLINE Chunk chunk_rows(const Lanes<whole>& of, std::int64_t chunk, const double* right) {
    Chunk out;
    const Pair a = of.rows(chunk, 0), b = of.rows(chunk, 2), c = of.rows(chunk, 4), e = of.rows(chunk, 6), f = of.rows(chunk, 8);
    out.c[0][0] = a.first, out.c[0][1] = a.second, out.c[0][2] = b.first, out.c[0][3] = b.second;
    out.c[1][0] = c.second, out.c[1][1] = e.first, out.c[1][2] = e.second, out.c[1][3] = f.first;
    out.right[0] = c.first, out.right[1] = f.second;
    if (right) {
        const Pair instead = of.load(right, chunk, 0);
        out.right[0] = instead.first, out.right[1] = instead.second;
    }
    return out;
}

}  // namespace trifold::tridiagonal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
