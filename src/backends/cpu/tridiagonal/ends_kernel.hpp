// SPDX-License-Identifier: BSD-3-Clause
// One right-hand side with kept factors, swept from both ends of the system.
//
//   Equation    a_i x[i-1] + b_i x[i] + c_i x[i+1] = r_i; rows 0 … m-1 eliminated downwards, rows n-1 … m+1 upwards, row m = n/2 last
//   Kept        per row 1/p and what couples it to the row it comes from, over p: (s_i, l_i) side by side; then for all rows what couples it to
//               the row it goes to, over p: g_i. Of row m l couples to m-1 and g to m+1
//   Sweeps      inward   w_i = r_i s_i - l_i w_{i∓1};   x_m = r_m s_m - l_m w_{m-1} - g_m w_{m+1};   outward   x_i = w_i - g_i x_{i±1}
//   Words       3 kept, r and w; then w, x: 8 with the lines of x that are read before they are written. In the nearest caches none
//   Work        a multiply-add per row and sweep, each of which waits for the one before: 8 cycles for a row of either chain, both chains at once. On two
//               threads each has one
//   Numerics    the test of group_tiles-inl.h; nothing is cut, so errors are those of LU: no joints, no halos
#pragma once

#include <cstdint>

namespace trifold::cpu {

template <class T>
struct EndsSweep {
    std::int64_t rows = 0;
    const T* kept = nullptr;
    const T* rhs = nullptr;
    std::int64_t rhs_step = 1;
    T* w = nullptr;           ///< may be rhs
    std::int64_t w_step = 1;
};

enum class Ends { down, up, both };

/// w of these rows, but for row m. The first of them whose rhs is NaN or infinite, or -1: where w takes its place, nobody can look for it afterwards.
std::int64_t sweep_inward(const EndsSweep<float>& job, Ends ends);
std::int64_t sweep_inward(const EndsSweep<double>& job, Ends ends);

/// x of these rows in place of w; row m holds its x.
void sweep_outward(const EndsSweep<float>& job, Ends ends);
void sweep_outward(const EndsSweep<double>& job, Ends ends);

}  // namespace trifold::cpu
