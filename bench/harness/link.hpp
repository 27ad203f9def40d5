// SPDX-License-Identifier: BSD-3-Clause
// Traffic over a device's link, in both directions at once, while something else runs or nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "backends/registry.hpp"

namespace trifold::bench {

struct LinkRates {
    double to = 0, from = 0;  ///< bytes per second
};

/// Which copies; `solve` keeps four bytes there for one back, as a solve moves them.
enum class Direction { to, from, both, solve };

/// Copies of 32 MiB, as a streamed solve makes them, between memory of the host, which should be pinned, and the device's.
class Link {
public:
    static constexpr std::size_t piece = std::size_t{32} << 20;

    /// in: arrays of `bytes` that are read in turn. Throws Error where the device has no memory, or no queues of its own.
    Link(const Device& device, std::vector<const void*> in, void* out, std::size_t bytes);
    ~Link();
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    /// Rates while `work` runs; it begins when copies are under way.
    LinkRates during(Direction direction, const std::function<void()>& work) const;

    /// For so long, with nothing beside.
    LinkRates alone(Direction direction, double seconds) const;

private:
    struct Counters;
    void lane(bool in, Direction direction, Counters& counters) const;

    const Device& device_;
    std::vector<const void*> in_;
    char* out_;
    std::size_t bytes_;
    void* memory_ = nullptr;
};

}  // namespace trifold::bench
