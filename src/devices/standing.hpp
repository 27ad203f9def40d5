// SPDX-License-Identifier: BSD-3-Clause
// What stands of systems of one shape until so many of them were solved: how far their matrix remembers, and which one of several devices solves them. Found by numbers, in one place: what is known by its name lies
// in hundreds of lines of memory, which a solve of some milliseconds has put out of the caches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace trifold::devices {

/// Arrays that a system lies in, and how many rows of them; null: a number.
struct Arrays {
    std::array<const void*, 5> at{};
    std::int64_t rows = 0;
    bool operator==(const Arrays&) const = default;
};

struct Shape {
    const void* devices = nullptr;        ///< those that were named
    std::uint64_t what = 0, watts = 0;    ///< type, size, how it is given, what for
    bool pageable = false;                ///< some array is, for one of them
    bool operator==(const Shape&) const = default;
};

struct Standing {
    static constexpr int most = 15;  ///< solves until it is looked at again

    Shape shape;
    Arrays arrays;                ///< of the last one that was asked where it lies
    bool known = false;           ///< how far it remembers:
    std::int64_t width = 0;       ///< 0 = it does not forget
    int dominance = 0;            ///< of some rows
    std::size_t branch = 0;       ///< that was taken
    int not_looked = 0;           ///< solves since somebody looked
    int member = -1, left = 0;    ///< who solves it, so many times
    int times = 0;
    double rows_per_s[most] = {}; ///< of those
    std::shared_ptr<const void> chosen;  ///< how that came about
};

class Standings {
public:
    /// Of systems in these arrays, wherever they lie, or else of this shape; false: none.
    bool find(const Shape& shape, const Arrays& arrays, Standing& out) const;
    bool find(const Shape& shape, Standing& out) const;

    /// In place of what there was of its shape; of many the one that was kept the longest ago is forgotten.
    void keep(Standing standing);

    void clear();

private:
    static constexpr std::size_t most = 64;
    mutable std::mutex mutex_;
    std::vector<Standing> all_;  // the last one kept first
};

}  // namespace trifold::devices
