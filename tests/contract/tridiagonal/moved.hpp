// SPDX-License-Identifier: BSD-3-Clause
// A trial's arrays in the memory of a device.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "contract/tridiagonal/trial.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {

/// A trial whose arrays are in the queue's memory while this lives. Tight: nothing but the arrays, so that compute-sanitizer sees what is read beside them.
template <class T>
class Moved {
public:
    Moved(const Queue& queue, Trial<T>& trial, bool tight) : blocks_(trial.memory()), problem(trial.problem()) {
        if (tight)
            for (std::span<T>& block : blocks_) block = touched(block);
        for (const std::span<T> block : blocks_) there_.emplace_back(queue, std::span<const T>(block));
        problem.matrix = moved(problem.matrix);
        move(problem.rhs), move(problem.x);
    }

    /// The same views of arrays of the trial, where these are now.
    tridiagonal::Matrix moved(tridiagonal::Matrix matrix) const {
        for (Coefficient* const coefficient : {&matrix.lower, &matrix.diag, &matrix.upper})
            if (AnyView* const view = std::get_if<AnyView>(coefficient)) move(*view);
        return matrix;
    }

    void bring_there() {
        for (std::size_t k = 0; k < blocks_.size(); ++k) there_[k].upload(blocks_[k]);
    }
    void bring_back() {
        for (std::size_t k = 0; k < blocks_.size(); ++k) there_[k].download(blocks_[k]);
    }

private:
    // From the beginning of a cache line to the last element.
    std::span<T> touched(std::span<T> block) const {
        std::ptrdiff_t low = static_cast<std::ptrdiff_t>(block.size()), high = 0;
        const auto add = [&](const AnyView& view) {
            const auto* const data = static_cast<const T*>(view.data);
            if (std::less<>{}(data, block.data()) || !std::less<>{}(data, block.data() + block.size()) || view.rows() <= 0 || view.systems() <= 0) return;
            std::ptrdiff_t first = data - block.data(), last = first;
            const auto dim = [&](const Dim& d) { (d.stride < 0 ? first : last) += (d.extent - 1) * d.stride; };
            dim(view.axis);
            for (int k = 0; k < view.batch_dims; ++k) dim(view.batch[static_cast<std::size_t>(k)]);
            low = std::min(low, first), high = std::max(high, last + 1);
        };
        add(problem.rhs), add(problem.x);
        for (const Coefficient* const coefficient : {&problem.matrix.lower, &problem.matrix.diag, &problem.matrix.upper})
            if (const AnyView* const view = std::get_if<AnyView>(coefficient)) add(*view);
        if (low >= high) return block;
        const auto line = static_cast<std::ptrdiff_t>(64 / sizeof(T));
        return block.subspan(static_cast<std::size_t>(low / line * line), static_cast<std::size_t>(high - low / line * line));
    }

    void move(AnyView& view) const {
        const auto* const data = static_cast<const T*>(view.data);
        for (std::size_t k = 0; k < blocks_.size(); ++k)
            if (std::less_equal<>{}(blocks_[k].data(), data) && std::less<>{}(data, blocks_[k].data() + blocks_[k].size())) {
                view.data = there_[k].data() + (data - blocks_[k].data());
                view.memory = there_[k].memory();
                return;
            }
    }

    std::vector<std::span<T>> blocks_;
    std::vector<DeviceArray<T>> there_;

public:
    tridiagonal::Problem problem;
};

}  // namespace trifold::tests
