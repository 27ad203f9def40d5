// SPDX-License-Identifier: BSD-3-Clause
// Tiles and transposes against their definition, on every target that was generated and that this machine has.
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unit/cpu_batch_transpose.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/simd/turn-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

template <class T>
int wrong_elements() {
    const hn::ScalableTag<T> d;
    constexpr int lanes = static_cast<int>(lanes_of<decltype(d)>);
    int wrong = 0;
    for (int stride : {lanes, lanes + 1, 3 * lanes + 5})
        for (int shift : {0, 1}) {
            std::vector<T> from(stride * lanes + shift), to(from.size(), T(-1));
            for (std::size_t k = 0; k < from.size(); ++k) from[k] = static_cast<T>(k);
            hn::Vec<decltype(d)> v[lanes];
            load_tile(d, from.data() + shift, stride, v);
            for (int i = 0; i < lanes; ++i) {
                T row[lanes];
                hn::StoreU(v[i], d, row);
                for (int s = 0; s < lanes; ++s) wrong += row[s] != from[shift + s * stride + i];
            }
            store_tile(d, v, to.data() + shift, stride);
            for (int k = 0; k < static_cast<int>(to.size()); ++k) {
                const int at = k - shift, s = at / stride;
                const bool inside = at >= 0 && at - s * stride < lanes && s < lanes;
                wrong += to[k] != (inside ? from[k] : T(-1));
            }
        }
    HWY_ALIGN T aligned[lanes * lanes];
    HWY_ALIGN T back[lanes * lanes];
    for (int k = 0; k < lanes * lanes; ++k) aligned[k] = static_cast<T>(k);
    hn::Vec<decltype(d)> v[lanes];
    load_tile(d, aligned, lanes, v);
    store_tile<Store::stream>(d, v, back, lanes);
    hwy::FlushStream();
    for (int k = 0; k < lanes * lanes; ++k) wrong += back[k] != aligned[k];
    return wrong;
}

/// W × W elements from memory to memory, nothing beside them written.
template <class T, int W>
int wrong_turned() {
    const hn::ScalableTag<T> d;
    int wrong = 0;
    for (int from_step : {W, W + 1, 3 * W + 5})
        for (int to_step : {W, W + 3}) {
            std::vector<T> from(from_step * W + 1), to(to_step * W + 1, T(-1));
            for (std::size_t k = 0; k < from.size(); ++k) from[k] = static_cast<T>(k);
            turn_tile<W>(d, from.data() + 1, from_step, to.data() + 1, to_step);
            for (int k = 0; k < static_cast<int>(to.size()); ++k) {
                const int i = (k - 1) / to_step, j = (k - 1) % to_step;
                wrong += to[k] != (k >= 1 && i < W && j < W ? from[1 + j * from_step + i] : T(-1));
            }
        }
    HWY_ALIGN T aligned[W * W];
    HWY_ALIGN T turned[W * W];
    for (int k = 0; k < W * W; ++k) aligned[k] = static_cast<T>(k);
    turn_tile<W, Store::stream>(d, aligned, W, turned, W);
    hwy::FlushStream();
    for (int k = 0; k < W * W; ++k) wrong += turned[k] != aligned[k % W * W + k / W];
    return wrong;
}

template <class T>
int wrong_tiles() {
    return wrong_elements<T>() + wrong_turned<T, static_cast<int>(64 / sizeof(T))>() + wrong_turned<T, static_cast<int>(lanes_of<hn::ScalableTag<T>>)>();
}

int wrong_f32() { return wrong_tiles<float>(); }
int wrong_f64() { return wrong_tiles<double>(); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include "support/simd_targets.hpp"

namespace trifold::cpu {
namespace {

HWY_EXPORT(wrong_f32);
HWY_EXPORT(wrong_f64);

TEST(CpuTranspose, EveryTarget) {
    tests::on_every_target([] {
        EXPECT_EQ(HWY_DYNAMIC_DISPATCH(wrong_f32)(), 0);
        EXPECT_EQ(HWY_DYNAMIC_DISPATCH(wrong_f64)(), 0);
    });
}

}  // namespace
}  // namespace trifold::cpu
#endif
