// SPDX-License-Identifier: BSD-3-Clause
// A cache line of systems, one lane each, as the kernels of kept factors see it: any layout, any source, lanes of different lengths.
#pragma once

#include <algorithm>
#include <cstdint>

#include "problems/tridiagonal/system.hpp"

namespace trifold::cpu {

/// Lanes of a group: what fits into a cache line.
template <class T>
inline constexpr int group_lanes = 64 / static_cast<int>(sizeof(T));

/// Where the values of one operand are: element (row i, lane j) at data[i row_step + offset[j]].
template <class T>
struct LaneOperand {
    enum class How : std::uint8_t {
        constant,
        generated,
        direct,   ///< offset[j] = j
        turned,   ///< row_step 1, offset[j] = j lane_step: squares are transposed in registers
        gathered
    };

    How how = How::constant;
    T value = 0;
    T* data = nullptr;
    std::int64_t row_step = 0, lane_step = 0, offset[group_lanes<T>] = {};
    int beside = 0;  ///< gathered: so many lanes, all that there are, lie side by side
    const Generator* generator = nullptr;
    std::int64_t shift[group_lanes<T>] = {}, number[group_lanes<T>] = {};  ///< of the generator: row i of lane j is row i + shift[j] of that system

    T at(std::int64_t i, int j) const {
        if (how == How::constant) return value;
        if (how != How::generated) return data[i * row_step + offset[j]];
        T one;
        if constexpr (sizeof(T) == 4) generator->fill_f32(&one, i + shift[j], 1, number[j], 1, generator->parameters);
        else generator->fill_f64(&one, i + shift[j], 1, number[j], 1, generator->parameters);
        return one;
    }

    /// After `data`, `row_step`, `offset` have been set for all lanes, of which `count` are systems.
    void choose(int count) {
        constexpr int all = group_lanes<T>;
        how = How::gathered;
        lane_step = all > 1 ? offset[1] - offset[0] : 0;
        beside = count;
        for (int j = 0; j < count; ++j)
            if (offset[j] != j) beside = 0;
        if (count < all || offset[0] != 0) return;
        for (int j = 1; j < all; ++j)
            if (offset[j] != j * lane_step) return;
        if (lane_step == 1) how = How::direct;
        else if (row_step == 1) how = How::turned;
    }
};

/// Rows of one lane of an operand; how they are found is settled once.
template <class T>
class OneLane {
public:
    explicit OneLane(const LaneOperand<T>& operand, int lane = 0) : operand_(&operand), lane_(lane) {
        using How = typename LaneOperand<T>::How;
        if (operand.how == How::generated) return;
        const bool constant = operand.how == How::constant;
        data_ = constant ? &operand.value : operand.data + operand.offset[lane];
        step_ = constant ? 0 : operand.row_step;
    }
    T operator[](std::int64_t i) const { return data_ ? data_[i * step_] : operand_->at(i, lane_); }

private:
    const LaneOperand<T>* operand_;
    int lane_;
    const T* data_ = nullptr;
    std::int64_t step_ = 0;
};

/// Systems side by side. Lanes of 0 rows are none. In rings rows[j] counts all rows, the last of which is eliminated last.
template <class T>
struct LaneGroup {
    std::int64_t rows[group_lanes<T>] = {}, longest = 0, shortest = 0;
    bool even = false;  ///< all lanes have `longest` rows
    LaneOperand<T> lower, diag, upper, top_right, bottom_left, rhs, x;

    void measure() {
        longest = *std::max_element(rows, rows + group_lanes<T>);
        shortest = *std::min_element(rows, rows + group_lanes<T>);
        even = shortest == longest;
    }
};

/// Words that are kept of a row of a group: 1/p, a/p, c' and, in rings, what couples it to the last row's unknown and the last row to it.
constexpr std::int64_t kept_words(bool ring) { return ring ? 5 : 3; }

}  // namespace trifold::cpu
