// SPDX-License-Identifier: BSD-3-Clause
// Groups of systems side by side, two beside each other copied into scratch together. Rows of an operand lie far apart, each in another page, and in few sets of a cache where they are a multiple of 4 KiB apart: kernels that read
// them line by line, and some more than once, wait for them longer than all else takes. What is copied follows each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/tridiagonal/lane_group.hpp"

namespace trifold::cpu {

template <class T>
class CopiedGroups {
public:
    static constexpr int most = 2;

    /// Groups that are copied together at most; 1: none are.
    static int most_of(const tridiagonal::System& system) {
        constexpr std::int64_t least_step = 1024, page = 4096, most_bytes = std::int64_t{8} << 20;
        constexpr std::int64_t few_rows = 512;  // which the second-level cache holds as they lie, and what pages they are on is remembered
        const std::int64_t step = system.rhs.row_stride * static_cast<std::int64_t>(sizeof(T));
        if (system.offsets || !system.periodic || step < least_step || (system.rows <= few_rows && step % page != 0)) return 1;
        return static_cast<int>(std::clamp<std::int64_t>(most_bytes / static_cast<std::int64_t>(bytes_of_group(system.rows)), 1, most));
    }
    static std::size_t bytes(const tridiagonal::System& system) {
        const int groups = most_of(system);
        return groups == 1 ? 0 : static_cast<std::size_t>(groups) * bytes_of_group(system.rows);
    }

    /// In memory aligned to 64.
    CopiedGroups(void* memory, std::int64_t rows) : memory_(static_cast<T*>(memory)), rows_(rows) {}

    /// Their operands are in scratch then, but for constants and corners; false: they do not lie beside each other.
    bool bring(LaneGroup<T>* groups, int count) {
        count_ = count;
        for (int o = 0; o < operands; ++o) {
            const LaneOperand<T>& first = *operand(groups[0], o);
            if (first.how == How::constant && o < x_operand - 1) continue;
            for (int q = 0; q < count; ++q)
                if (const LaneOperand<T>& own = *operand(groups[q], o); own.how != How::direct || own.data != first.data + q * W) return false;
        }
        for (int q = 0; q < count; ++q)
            if (!groups[q].even || groups[q].longest != rows_) return false;
        T* from[operands];
        std::int64_t step[operands];
        for (int o = 0; o < operands; ++o) from[o] = operand(groups[0], o)->data, step[o] = operand(groups[0], o)->row_step;
        x_ = from[x_operand], x_step_ = step[x_operand];
        const bool copied[x_operand] = {groups[0].lower.how == How::direct, groups[0].diag.how == How::direct, groups[0].upper.how == How::direct, true};
        for (std::int64_t i = 0; i < rows_; ++i)
            for (int o = 0; o < x_operand; ++o) {
                if (!copied[o]) continue;
                const T* const row = from[o] + i * step[o];
                if (i + ahead < rows_)
                    for (int q = 0; q < count; ++q) __builtin_prefetch(row + ahead * step[o] + q * W, 0, 2);
                for (int q = 0; q < count; ++q) std::memcpy(at(q, o) + i * W, row + q * W, sizeof(T) * W);
            }
        for (int q = 0; q < count; ++q)
            for (int o = 0; o < operands; ++o)
                if (o == x_operand || copied[o]) operand(groups[q], o)->data = at(q, o), operand(groups[q], o)->row_step = W;
        return true;
    }

    /// x, or what is added to it, of all groups but for lanes that are skipped, a mask of each group.
    void take_back(const std::uint32_t (&skip)[most], bool accumulate) const {
        constexpr std::uint32_t all = (1u << W) - 1;
        for (std::int64_t i = 0; i < rows_; ++i) {
            T* const row = x_ + i * x_step_;
            if (i + ahead < rows_)
                for (int q = 0; q < count_; ++q) __builtin_prefetch(row + ahead * x_step_ + q * W, 1, 2);
            for (int q = 0; q < count_; ++q) {
                const T* const own = at(q, x_operand) + i * W;
                T* const to = row + q * W;
                if (skip[q] == 0 && !accumulate) {
                    std::memcpy(to, own, sizeof(T) * W);
                } else if ((skip[q] & all) != all) {
                    for (int j = 0; j < W; ++j)
                        if ((skip[q] >> j & 1) == 0) to[j] = accumulate ? to[j] + own[j] : own[j];
                }
            }
        }
    }

private:
    using How = typename LaneOperand<T>::How;
    static constexpr int W = group_lanes<T>, operands = 5, x_operand = 4;
    static constexpr std::int64_t ahead = 8, gap = 5;  ///< rows; a gap, so that rows of all operands meet in no set of a cache

    static std::size_t bytes_of_group(std::int64_t rows) { return static_cast<std::size_t>(operands * (rows + gap) * W) * sizeof(T); }
    static LaneOperand<T>* operand(LaneGroup<T>& group, int o) {
        LaneOperand<T>* const all[operands] = {&group.lower, &group.diag, &group.upper, &group.rhs, &group.x};
        return all[o];
    }
    T* at(int group, int o) const { return memory_ + (group * operands + o) * (rows_ + gap) * W; }

    T *memory_, *x_ = nullptr;
    std::int64_t rows_, x_step_ = 0;
    int count_ = 0;
};

}  // namespace trifold::cpu
