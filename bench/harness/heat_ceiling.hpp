// SPDX-License-Identifier: BSD-3-Clause
// What bounds a step of ADI heat on one thread: its moving without its arithmetic.
#pragma once

#include <cstdint>

#include "backends/cpu/mesh/factored.hpp"
#include "base/aligned_buffer.hpp"

namespace trifold::bench {

template <class T>
struct HeatMoves {
    std::int64_t n, apart;  ///< of a cube; from row to row of a front and of a strip, as in blocks.hpp
    T *u, *w, *front, *row, *strip;
    const cpu::LineFactors<T>* factors;
};

/// A cube of n^3 points in the order of solid.hpp, by its own kernels, compiled once more with an exclusive or of what is read in the place of arithmetic: the same loads, requests, squares turned and
/// stores at addresses laid out alike. A right-hand side is the loads of its seven points and a store; what a row's copy and calls of the user's function cost is not in it.
template <class T>
class HeatCeiling {
public:
    explicit HeatCeiling(std::int64_t n);

    /// Seconds of a step.
    double moving();

private:
    std::int64_t n_, apart_;
    cpu::LineFactors<T> factors_;
    AlignedBuffer u_, w_, front_, row_, strip_;
};

}  // namespace trifold::bench
