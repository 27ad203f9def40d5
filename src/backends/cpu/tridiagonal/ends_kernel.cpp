// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cpu/tridiagonal/ends_kernel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/tridiagonal/ends_kernel.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Numbers as vectors of one lane: multiply-adds where the machine has them.
template <class T>
class EndsChains {
public:
    using D = hn::CappedTag<T, 1>;
    using V = hn::Vec<D>;

    explicit EndsChains(const EndsSweep<T>& job) : job_(job), m_(job.rows / 2), below_(job.rows - 1 - m_) {}

    template <bool down, bool up>
    HWY_ATTR std::int64_t inward() const {
        const D d;
        V first = hn::Zero(d), second = hn::Zero(d);
        std::int64_t bad_down = -1, bad_up = -1;
        const std::int64_t pairs = down && up ? below_ : down ? m_ : below_, n = job_.rows;
        for (std::int64_t k = 0; k < pairs; ++k) {
            if constexpr (down) first = in(k, first, bad_down);
            if constexpr (up) second = in(n - 1 - k, second, bad_up);
        }
        if (down && up && m_ > below_) in(m_ - 1, first, bad_down);
        return bad_down >= 0 ? bad_down : bad_up;
    }

    template <bool down, bool up>
    HWY_ATTR void outward() const {
        const D d;
        V before = hn::LoadU(d, job_.w + m_ * job_.w_step), after = before;
        const std::int64_t pairs = down && up ? below_ : down ? m_ : below_;
        for (std::int64_t k = 1; k <= pairs; ++k) {
            if constexpr (down) before = out(m_ - k, before);
            if constexpr (up) after = out(m_ + k, after);
        }
        if (down && up && m_ > below_) out(0, before);
    }

private:
    // bad: of the rows from the top the first, of those from the bottom the last that was seen.
    HWY_INLINE HWY_ATTR V in(std::int64_t i, V w, std::int64_t& bad) const {
        const D d;
        const V rhs = hn::LoadU(d, job_.rhs + i * job_.rhs_step), right = hn::Mul(rhs, hn::LoadU(d, job_.kept + 2 * i));
        if (const T number = hn::GetLane(rhs); HWY_UNLIKELY(number - number != 0) && (i > m_ || bad < 0)) bad = i;
        w = hn::NegMulAdd(hn::LoadU(d, job_.kept + 2 * i + 1), w, right);
        hn::StoreU(w, d, job_.w + i * job_.w_step);
        return w;
    }
    HWY_INLINE HWY_ATTR V out(std::int64_t i, V x) const {
        const D d;
        T* const at = job_.w + i * job_.w_step;
        x = hn::NegMulAdd(hn::LoadU(d, job_.kept + 2 * job_.rows + i), x, hn::LoadU(d, at));
        hn::StoreU(x, d, at);
        return x;
    }

    EndsSweep<T> job_;
    std::int64_t m_, below_;
};

template <class T>
HWY_ATTR std::int64_t inward(const EndsSweep<T>& job, Ends ends) {
    const EndsChains<T> chains(job);
    if (ends == Ends::both) return chains.template inward<true, true>();
    return ends == Ends::down ? chains.template inward<true, false>() : chains.template inward<false, true>();
}
template <class T>
HWY_ATTR void outward(const EndsSweep<T>& job, Ends ends) {
    const EndsChains<T> chains(job);
    if (ends == Ends::both) chains.template outward<true, true>();
    else ends == Ends::down ? chains.template outward<true, false>() : chains.template outward<false, true>();
}

std::int64_t inward_f32(const EndsSweep<float>& job, Ends ends) { return inward(job, ends); }
std::int64_t inward_f64(const EndsSweep<double>& job, Ends ends) { return inward(job, ends); }
void outward_f32(const EndsSweep<float>& job, Ends ends) { outward(job, ends); }
void outward_f64(const EndsSweep<double>& job, Ends ends) { outward(job, ends); }

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trifold::cpu {

HWY_EXPORT(inward_f32);
HWY_EXPORT(inward_f64);
HWY_EXPORT(outward_f32);
HWY_EXPORT(outward_f64);

std::int64_t sweep_inward(const EndsSweep<float>& job, Ends ends) { return HWY_DYNAMIC_DISPATCH(inward_f32)(job, ends); }
std::int64_t sweep_inward(const EndsSweep<double>& job, Ends ends) { return HWY_DYNAMIC_DISPATCH(inward_f64)(job, ends); }
void sweep_outward(const EndsSweep<float>& job, Ends ends) { HWY_DYNAMIC_DISPATCH(outward_f32)(job, ends); }
void sweep_outward(const EndsSweep<double>& job, Ends ends) { HWY_DYNAMIC_DISPATCH(outward_f64)(job, ends); }

}  // namespace trifold::cpu
#endif
