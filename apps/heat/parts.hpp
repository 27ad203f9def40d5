// SPDX-License-Identifier: BSD-3-Clause
// A run from and to host memory, on any device: one with memory of its own gets as many meshes at a time as fit there.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "heat/heat.hpp"
#include "trifold/device_memory.hpp"

namespace trifold::heat {

template <class T>
class Parts {
public:
    /// `u` is [mesh][z][y][x] in host memory. `at_once`: meshes in a part, 0 = all. Where the device has no memory for them, parts are halved
    /// until it has. Throws as Heat does, and Error(bad_input) where not even one mesh fits.
    Parts(Queue& queue, const Problem<T>& problem, T* u, std::int64_t at_once = 0);

    std::int64_t count() const noexcept { return static_cast<std::int64_t>(done_.size()); }
    std::int64_t meshes() const noexcept { return at_once_; }  ///< of each part but the last
    bool cut_for_memory() const noexcept { return cut_; }      ///< fewer than asked for
    std::int64_t points_entered() const noexcept { return heat_ ? entered_meshes() * cells_ : 0; }

    /// Makes part `k` the one that is advanced: copied to the device, after what was entered before has been fetched.
    void enter(std::int64_t k);

    /// Steps of the part that was entered. Steps and meshes of a failure are counted as if there were no parts.
    SweepOutcome advance(std::int64_t steps);

    /// Brings the part that was entered up to date in host memory.
    void fetch();

    /// Points of the part that was entered, from its first mesh's point `first` on.
    void read(std::int64_t first, std::span<T> to) const;

private:
    bool elsewhere() const noexcept { return queue_.memory().kind == MemoryKind::device; }
    std::int64_t entered_meshes() const noexcept;
    T* in_host() const noexcept { return u_ + entered_ * at_once_ * cells_; }
    T* where_it_computes() const noexcept { return elsewhere() ? device_.data() : in_host(); }
    void divide(std::int64_t at_once);
    bool fits();

    Queue& queue_;
    Problem<T> problem_;
    T* u_;
    std::int64_t cells_, at_once_ = 0, entered_ = -1, entered_at_ = 0;
    bool ahead_ = false, cut_ = false;  // ahead of what is in host memory
    std::vector<std::int64_t> done_;  // steps, of each part
    DeviceArray<T> device_;
    std::optional<Heat<T>> heat_;
};

extern template class Parts<float>;
extern template class Parts<double>;

}  // namespace trifold::heat
