// SPDX-License-Identifier: BSD-3-Clause
//
//   write[k] = read[R-1][k]  while  read[0 … R-2][k] are read too,  k = first … last-1 (bytes, R = 1 … 4)
//
// Work: one thread, 256 bytes of every array per step. Words moved: R read, 1 written (none for Store::none).
// The value stored is read[R-1] xor ((read[0] xor … ) and mask) with a mask that is zero at run time only, so that no
// load can be dropped and in place nothing changes, whatever the bits mean.
#include "devices/stream.hpp"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "devices/stream.cpp"
#include "hwy/foreach_target.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::devices {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<std::uint64_t>;
using V = hn::Vec<D>;
constexpr std::size_t step = 256;

template <int R, Store S>
struct Pass {
    const StreamArrays& arrays;
    V mask;
    V seen;

    /// Bytes [at, at + step) of every array.
    HWY_INLINE void move(std::size_t at) {
        const D d;
        const std::size_t bytes = hn::Lanes(d) * sizeof(std::uint64_t);
        for (std::size_t k = 0; k < step; k += bytes) {
            V kept = load(arrays.read[R - 1], at + k), others = hn::Zero(d);
            for (int r = 0; r + 1 < R; ++r) others = hn::Xor(others, load(arrays.read[r], at + k));
            if constexpr (S == Store::none) {
                seen = hn::Xor(seen, hn::Xor(kept, others));
            } else {
                if constexpr (R > 1) kept = hn::Xor(kept, hn::And(others, mask));
                auto* to = reinterpret_cast<std::uint64_t*>(arrays.write + at + k);
                if constexpr (S == Store::past_cache) hn::Stream(kept, d, to);
                else hn::StoreU(kept, d, to);
            }
        }
    }

    static HWY_INLINE V load(const unsigned char* from, std::size_t at) {
        return hn::LoadU(D(), reinterpret_cast<const std::uint64_t*>(from + at));
    }

    /// Beyond the end of a part the next part follows; beyond the arrays a prefetch is without effect.
    template <int Locality>
    HWY_INLINE void run_ahead(std::size_t ahead, std::size_t first, std::size_t last) {
        for (; first < last; first += step) {
            for (int r = 0; r < R; ++r)
                for (std::size_t k = 0; k < step; k += 64) __builtin_prefetch(arrays.read[r] + first + ahead + k, 0, Locality);
            move(first);
        }
    }

    HWY_INLINE void run(StreamShape shape, std::size_t first, std::size_t last) {
        const std::size_t ahead = static_cast<std::size_t>(shape.prefetch_bytes);
        if (ahead == 0)
            for (; first < last; first += step) move(first);
        else if (shape.into == StreamShape::Into::once) run_ahead<0>(ahead, first, last);
        else if (shape.into == StreamShape::Into::second) run_ahead<2>(ahead, first, last);
        else run_ahead<3>(ahead, first, last);
    }
};

template <int R, Store S>
std::uint64_t pass(const StreamArrays& arrays, StreamShape shape, std::size_t first, std::size_t last, std::uint64_t mask) {
    const D d;
    Pass<R, S> pass{arrays, hn::Set(d, mask), hn::Zero(d)};
    pass.run(shape, first, last);
    HWY_ALIGN std::uint64_t lanes[HWY_MAX_BYTES / 8];
    hn::Store(pass.seen, d, lanes);
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) out ^= lanes[i];
    return out;
}

template <Store S>
std::uint64_t with_reads(const StreamArrays& arrays, StreamShape shape, std::size_t first, std::size_t last, std::uint64_t mask) {
    switch (arrays.reads) {
        case 1: return pass<1, S>(arrays, shape, first, last, mask);
        case 2: return pass<2, S>(arrays, shape, first, last, mask);
        case 3: return pass<3, S>(arrays, shape, first, last, mask);
        default: return pass<4, S>(arrays, shape, first, last, mask);
    }
}

std::uint64_t Stream(const StreamArrays& arrays, Store store, StreamShape shape, std::size_t first, std::size_t last,
                     std::uint64_t mask) {
    switch (store) {
        case Store::none: return with_reads<Store::none>(arrays, shape, first, last, mask);
        case Store::past_cache: {
            const std::uint64_t out = with_reads<Store::past_cache>(arrays, shape, first, last, mask);
            hwy::FlushStream();
            return out;
        }
        default: return with_reads<Store::regular>(arrays, shape, first, last, mask);
    }
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace trifold::devices
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::devices {

HWY_EXPORT(Stream);
HWY_EXPORT(TargetName);

std::uint64_t stream_pass(const StreamArrays& arrays, Store store, StreamShape shape, std::size_t first, std::size_t last) {
    assert(arrays.reads >= 1 && arrays.reads <= 4 && (store == Store::none || arrays.write));
    static volatile std::uint64_t zero = 0;
    // Non-temporal stores need full, aligned vectors: the ends before and after go plainly.
    std::size_t middle = first;
    if (store == Store::past_cache) {
        const std::size_t off = reinterpret_cast<std::uintptr_t>(arrays.write + first) % 64;
        middle = std::min(last, first + (off ? 64 - off : 0));
    }
    const std::size_t end = middle + (last - middle) / 256 * 256;
    std::uint64_t seen = HWY_DYNAMIC_DISPATCH(Stream)(arrays, store, shape, middle, end, zero);
    auto plainly = [&](std::size_t from, std::size_t to) {
        for (std::size_t k = from; k < to; ++k) {
            for (int r = 0; r < arrays.reads; ++r) seen += arrays.read[r][k];
            if (store != Store::none) arrays.write[k] = arrays.read[arrays.reads - 1][k];
        }
    };
    plainly(first, middle);
    plainly(end, last);
    return seen;
}

const char* simd_target() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace trifold::devices
#endif
