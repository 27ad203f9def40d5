// SPDX-License-Identifier: BSD-3-Clause
// The links of a set's devices, with the rows of one system that each would bring: copies over all of them at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/link.hpp"
#include "bench/suites/hetero_arrays.hpp"

namespace trifold::bench {

class Links {
public:
    /// The rows from `first` to `end`, equal parts of them for each device. Throws Error where there is no link.
    template <class T>
    static Links of(const std::vector<std::string>& devices, std::int64_t first, std::int64_t end, const Arrays& arrays) {
        Links links;
        const std::int64_t each = (end - first) / static_cast<std::int64_t>(devices.size()) / 1024 * 1024;
        for (const std::string& device : devices) {
            std::vector<const void*> in;
            for (int a = 0; a < 4; ++a) in.push_back(arrays.at<T>(a) + first);
            links.links_.push_back(std::make_unique<Link>(device_at(find_device(device)), in, arrays.at<T>(4) + first, static_cast<std::size_t>(each) * sizeof(T)));
            first += each;
        }
        return links;
    }

    /// The first one only, with nothing beside.
    LinkRates one_alone(Direction direction, double seconds) const { return links_[0]->alone(direction, seconds); }

    /// All together, while `work` runs.
    LinkRates during(Direction direction, const std::function<void()>& work) const { return from(0, direction, work); }

private:
    LinkRates from(std::size_t k, Direction direction, const std::function<void()>& work) const {
        if (k == links_.size()) return work(), LinkRates{};
        LinkRates later;
        const LinkRates own = links_[k]->during(direction, [&] { later = from(k + 1, direction, work); });
        return {own.to + later.to, own.from + later.from};
    }

    std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace trifold::bench
