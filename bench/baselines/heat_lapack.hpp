// SPDX-License-Identifier: BSD-3-Clause
// Douglas and Gunn's step of the heat equation as one writes it with LAPACK: a loop over the points for the right-hand side, the three
// matrices factored once (pttrf), then pttrs along x in place, along y and z on transposed planes. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace trifold::bench {

template <class T>
class HeatLapack {
public:
    /// A cube of n³ cells, sides at temperature 0; `number` = step × conductivity / spacing².
    HeatLapack(std::int64_t n, double number);

    /// u is [z][y][x].
    void step(T* u);

private:
    std::int64_t n_;
    T number_;
    std::vector<T> diag_, off_, increment_, plane_;
};

}  // namespace trifold::bench
