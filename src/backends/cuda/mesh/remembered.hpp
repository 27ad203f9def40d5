// SPDX-License-Identifier: BSD-3-Clause
// What kinds of kernels have found out about the last few problems. A run asks several times, and runs of one problem follow each other; to cut a mesh,
// to eliminate its matrices and to write its program takes as long as many steps do.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/cuda/mesh/plan.hpp"

namespace trifold::cuda {

/// Everything that a plan depends on, as bytes: addresses and strides of fields, texts of functions, numbers; not what fields hold.
std::string problem_key(const mesh::Checked& checked, const Chip& chip);

template <class Value>
class Remembered {
public:
    /// `make()` gives a Value where it is not known.
    template <class Make>
    std::shared_ptr<const Value> of(const mesh::Checked& checked, const Chip& chip, Make make) {
        std::string key = problem_key(checked, chip);
        const std::lock_guard lock(mutex_);
        for (const auto& [known, value] : last_)
            if (value && known == key) return value;
        auto& place = last_[next_++ % last_.size()];
        place = {std::move(key), std::make_shared<const Value>(make())};
        return place.second;
    }

private:
    std::mutex mutex_;
    std::array<std::pair<std::string, std::shared_ptr<const Value>>, 8> last_;
    std::size_t next_ = 0;
};

/// A plan, and its program unless it refuses.
template <class Plan>
struct Planned {
    Plan plan;
    std::string program;
};

/// By the two functions of a kind of kernels: its plan of a problem for a chip, and the program of a problem by a plan.
template <auto plan_of, auto program_of>
auto planned(const mesh::Checked& checked, const Chip& chip) {
    using Plan = std::invoke_result_t<decltype(plan_of), const mesh::Checked&, const Chip&>;
    static Remembered<Planned<Plan>> remembered;
    return remembered.of(checked, chip, [&] {
        Planned<Plan> made{plan_of(checked, chip), {}};
        if (!made.plan.refuses) made.program = program_of(checked, made.plan);
        return made;
    });
}

}  // namespace trifold::cuda
