// SPDX-License-Identifier: BSD-3-Clause
// The systems of a batch in the order in which they become lanes, and where their operands are.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

class LaneOrder {
public:
    /// By number, as the user counts them: the order of factors that are kept.
    static LaneOrder by_number(const tridiagonal::System& system) {
        LaneOrder order(system);
        std::stable_sort(order.level_, order.level_ + order.levels_,
                         [&](int a, int b) { return system.number_stride[a] > system.number_stride[b]; });
        order.finish(false);
        return order;
    }

    /// For the sake of memory: systems side by side next to each other, else the level with the most of them.
    static LaneOrder by_memory(const tridiagonal::System& system) {
        constexpr std::int64_t enough = 8;
        LaneOrder order(system);
        int fast = 0;
        for (int l = 1; l < system.levels; ++l)
            if (system.extent[l] > system.extent[fast]) fast = l;
        for (int l = 0; l < system.levels; ++l)
            if (system.rhs.level_stride[l] == 1 && system.extent[l] >= enough) fast = l;
        if (system.levels > 0) std::rotate(order.level_ + fast, order.level_ + fast + 1, order.level_ + order.levels_);
        order.finish(true);
        return order;
    }

    std::int64_t systems() const noexcept { return run_ * runs_; }
    template <class T>
    std::int64_t groups() const noexcept { return runs_ * groups_per_run<T>(); }

    /// Where group k begins, and how many systems it has.
    template <class T>
    std::int64_t first(std::int64_t k) const noexcept { return k / groups_per_run<T>() * run_ + k % groups_per_run<T>() * group_lanes<T>; }
    template <class T>
    int count(std::int64_t k) const noexcept {
        return static_cast<int>(std::min<std::int64_t>(group_lanes<T>, run_ - k % groups_per_run<T>() * group_lanes<T>));
    }

    std::int64_t number(std::int64_t place) const noexcept { return system_->number + sum(system_->number_stride, place); }
    /// What system_at takes.
    std::int64_t index(std::int64_t place) const noexcept {
        std::int64_t weight[4] = {}, all = 1;
        for (int l = levels_ - 1; l >= 0; --l) weight[l] = all, all *= system_->extent[l];
        return sum(weight, place);
    }

    /// Lanes 0 … count-1 are the systems from `place` on.
    template <class T>
    void set(LaneOperand<T>& to, const tridiagonal::Operand& from, std::int64_t place, int count) const {
        using How = typename LaneOperand<T>::How;
        using tridiagonal::Operand;
        to.value = static_cast<T>(from.value);
        if (from.kind == Operand::Kind::scalar) {
            to.how = How::constant;
            return;
        }
        if (from.kind == Operand::Kind::generator) {
            to.how = How::generated, to.generator = from.generator;
            for (int j = 0; j < group_lanes<T>; ++j) to.shift[j] = from.generator_shift, to.number[j] = number(place + std::min(j, count - 1));
            return;
        }
        const std::int64_t base = sum(from.level_stride, place);
        to.data = static_cast<T*>(from.data) + base;
        to.row_step = from.row_stride;
        const bool side_by_side = levels_ > 0 && place % fastest_ + count <= fastest_;
        const std::int64_t step = levels_ > 0 ? from.level_stride[level_[levels_ - 1]] : 0;
        for (int j = 0; j < group_lanes<T>; ++j) to.offset[j] = j >= count ? 0 : side_by_side ? j * step : sum(from.level_stride, place + j) - base;
        to.choose(count);
    }

private:
    explicit LaneOrder(const tridiagonal::System& system) : system_(&system), levels_(system.levels) {
        for (int l = 0; l < 4; ++l) level_[l] = l;
    }

    void finish(bool in_runs) {
        std::int64_t all = 1;
        for (int l = 0; l < levels_; ++l) all *= system_->extent[l];
        fastest_ = levels_ > 0 ? system_->extent[level_[levels_ - 1]] : 1;
        // Short runs would leave lanes empty.
        run_ = in_runs && fastest_ >= 32 ? fastest_ : all;
        runs_ = run_ > 0 ? all / run_ : 0;
    }

    std::int64_t sum(const std::int64_t* weight, std::int64_t place) const noexcept {
        std::int64_t total = 0;
        for (int l = levels_ - 1; l >= 0; --l) {
            total += place % system_->extent[level_[l]] * weight[level_[l]];
            place /= system_->extent[level_[l]];
        }
        return total;
    }

    template <class T>
    std::int64_t groups_per_run() const noexcept { return (run_ + group_lanes<T> - 1) / group_lanes<T>; }

    const tridiagonal::System* system_;
    int levels_, level_[4];
    std::int64_t fastest_ = 1, run_ = 0, runs_ = 0;
};

}  // namespace trifold::cpu
