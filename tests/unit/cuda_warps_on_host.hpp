// SPDX-License-Identifier: BSD-3-Clause
// What headers whose lanes join by shuffles ask of a GPU, on the host: warps of threads that run one after the other between messages, divisions as a GPU rounds them, about. Before these headers.
#pragma once

#include "support/blocks_on_host.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
using std::abs, std::copysign, std::fabs, std::fmax, std::fmin, std::max, std::min;

#define __noinline__
#define __align__(n) alignas(n)

struct int4 {
    int x, y, z, w;
};
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

struct ThreadIndex {
    struct {
        operator unsigned() const { return static_cast<unsigned>(trifold::cuda::on_host().thread()); }
    } x;
};
inline constexpr ThreadIndex threadIdx{};
struct BlockIndex {
    struct {
        operator unsigned() const { return static_cast<unsigned>(trifold::cuda::on_host().block()); }
    } x;
};
inline constexpr BlockIndex blockIdx{};
struct Dimensions {
    unsigned x;
};
inline Dimensions gridDim{1}, blockDim{32};

inline int __double2hiint(double x) { return static_cast<int>(std::bit_cast<std::int64_t>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(std::bit_cast<std::int64_t>(x)); }
inline double __hiloint2double(int high, int low) { return std::bit_cast<double>(static_cast<std::int64_t>(high) << 32 | static_cast<std::uint32_t>(low)); }
inline long long __double_as_longlong(double x) { return std::bit_cast<std::int64_t>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(static_cast<std::int64_t>(x)); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __double2float_ru(double x) { return std::nextafter(static_cast<float>(x), INFINITY); }
inline float __log2f(float x) { return std::log2(x); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }
template <class T>
unsigned __cvta_generic_to_shared(const T*) { return 0; }

/// All 32 threads of the calling one's warp.
inline void __syncwarp() {
    static std::array<int, 4096> arrived{}, turn{};
    const auto warp = static_cast<std::size_t>(trifold::cuda::on_host().block() * 64 + trifold::cuda::on_host().thread() / 32);
    const int mine = turn[warp];
    if (++arrived[warp] == 32) arrived[warp] = 0, ++turn[warp];
    while (turn[warp] == mine) trifold::cuda::on_host().let_others_run();
}

/// What lane `from` of the warp shows.
template <class T>
T from_lane_on_host(T value, int from) {
    static std::array<T, 65536> shown;
    const auto base = static_cast<std::size_t>(trifold::cuda::on_host().block() * 2048 + trifold::cuda::on_host().thread() / 32 * 32);
    shown[base + static_cast<std::size_t>(trifold::cuda::on_host().thread() % 32)] = value;
    __syncwarp();
    const T found = shown[base + static_cast<std::size_t>(from)];
    __syncwarp();
    return found;
}
inline int lane_on_host() { return trifold::cuda::on_host().thread() % 32; }
template <class T>
T __shfl_sync(unsigned, T value, int lane, int width = 32) { return from_lane_on_host(value, lane_on_host() / width * width + (lane & (width - 1))); }
template <class T>
T __shfl_up_sync(unsigned, T value, int by, int width = 32) { return from_lane_on_host(value, lane_on_host() % width >= by ? lane_on_host() - by : lane_on_host()); }
template <class T>
T __shfl_down_sync(unsigned, T value, int by, int width = 32) { return from_lane_on_host(value, lane_on_host() % width + by < width ? lane_on_host() + by : lane_on_host()); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int other) { return from_lane_on_host(value, lane_on_host() ^ other); }

template <class T, class Add>
T of_all_lanes_on_host(T value, Add add) {
    for (int step = 16; step > 0; step /= 2) value = add(value, from_lane_on_host(value, lane_on_host() ^ step));
    return value;
}
inline unsigned __ballot_sync(unsigned, bool vote) { return of_all_lanes_on_host(vote ? 1u << lane_on_host() : 0u, [](unsigned a, unsigned b) { return a | b; }); }
inline bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
inline bool __all_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) == ~0u; }
inline unsigned __reduce_max_sync(unsigned, unsigned value) { return of_all_lanes_on_host(value, [](unsigned a, unsigned b) { return max(a, b); }); }
inline int __reduce_add_sync(unsigned, int value) { return of_all_lanes_on_host(value, [](int a, int b) { return a + b; }); }

template <class T>
void atomicMax(T* at, T value) { *at = max(*at, value); }

namespace trifold::cuda {

/// 0 for what is too large, infinite for what is too small, as there.
template <class T>
T reciprocal(T x) {
    const T found = 1 / x;
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(INFINITY, x) : std::fpclassify(found) == FP_SUBNORMAL ? T(0) : found;
}
template <class T>
T divide_by(T pivot, T upper, T& c) {
    const T k = reciprocal(pivot);
    c = upper * k;
    return k;
}
template <class T>
struct Divisor {
    T by, k;
    explicit Divisor(T x) : by(x), k(reciprocal(x)) {}
    T inverse() const { return k; }
    T roughly_inverse() const { return k; }
    T roughly_of(T x) const { return of(x); }
    T of(T x) const { return k == T(0) ? x * k : x / by; }
};

}  // namespace trifold::cuda
