// SPDX-License-Identifier: BSD-3-Clause
// The heat equation du/dt = div(k grad u) + s on cell centres, by the fluxes through the faces of a cell.
//
// Fields: 0 = u, 1 = k, 2 = s, 3 = the solution of a sweep. Parameters: 0, 1, 2 = step / spacing² along x, y, z, times k where that is a
// constant; 3 = step. Conductivity at a face: the harmonic mean of both cells. Mirroring k evenly and u about the value on a side
// puts that value on the face, half a cell away: 2 k (value - u) / spacing². Where conductivity is a constant, functions without a source
// read nothing but u; half steps where it varies read a row of zeros for a source that is not there.
#pragma once

#include "trifold/point_function.hpp"

namespace trifold::heat {

// Douglas and Gunn 1964: all of step (A u + s) on the right-hand side.

TRIFOLD_POINT_FUNCTION(increment_2d, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(0), (at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0)), p(1) * ((at(0, 0, -1, 0) - u) - (u - at(0, 0, 1, 0))));
})

TRIFOLD_POINT_FUNCTION(increment_3d, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(0), (at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0)), mad(p(1), (at(0, 0, -1, 0) - u) - (u - at(0, 0, 1, 0)), p(2) * ((at(0, 0, 0, -1) - u) - (u - at(0, 0, 0, 1)))));
})

TRIFOLD_POINT_FUNCTION(heated_increment_2d, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(0), (at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0)), mad(p(1), (at(0, 0, -1, 0) - u) - (u - at(0, 0, 1, 0)), p(3) * at(2, 0, 0, 0)));
})

TRIFOLD_POINT_FUNCTION(heated_increment_3d, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(0), (at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0)), mad(p(1), (at(0, 0, -1, 0) - u) - (u - at(0, 0, 1, 0)), mad(p(2), (at(0, 0, 0, -1) - u) - (u - at(0, 0, 0, 1)), p(3) * at(2, 0, 0, 0))));
})

// The number at a face is written alike on both of its sides: devices that keep it keep one for both.

TRIFOLD_POINT_FUNCTION(varying_increment_2d, {
    real u = at(0, 0, 0, 0);
    real k = at(1, 0, 0, 0);
    real west = at(1, -1, 0, 0), east = at(1, 1, 0, 0);
    real south = at(1, 0, -1, 0), north = at(1, 0, 1, 0);
    out(0) = mad(2 * p(0), mad(west * (k / (west + k)), at(0, -1, 0, 0) - u, k * (east / (k + east)) * (at(0, 1, 0, 0) - u)),
                 2 * p(1) * mad(south * (k / (south + k)), at(0, 0, -1, 0) - u, k * (north / (k + north)) * (at(0, 0, 1, 0) - u)));
})

TRIFOLD_POINT_FUNCTION(varying_increment_3d, {
    real u = at(0, 0, 0, 0);
    real k = at(1, 0, 0, 0);
    real west = at(1, -1, 0, 0), east = at(1, 1, 0, 0);
    real south = at(1, 0, -1, 0), north = at(1, 0, 1, 0);
    real below = at(1, 0, 0, -1), above = at(1, 0, 0, 1);
    out(0) = mad(2 * p(0), mad(west * (k / (west + k)), at(0, -1, 0, 0) - u, k * (east / (k + east)) * (at(0, 1, 0, 0) - u)),
                 mad(2 * p(1), mad(south * (k / (south + k)), at(0, 0, -1, 0) - u, k * (north / (k + north)) * (at(0, 0, 1, 0) - u)),
                     2 * p(2) * mad(below * (k / (below + k)), at(0, 0, 0, -1) - u, k * (above / (k + above)) * (at(0, 0, 0, 1) - u))));
})

TRIFOLD_POINT_FUNCTION(heated_varying_increment_2d, {
    real u = at(0, 0, 0, 0);
    real k = at(1, 0, 0, 0);
    real west = at(1, -1, 0, 0), east = at(1, 1, 0, 0);
    real south = at(1, 0, -1, 0), north = at(1, 0, 1, 0);
    out(0) = mad(2 * p(0), mad(west * (k / (west + k)), at(0, -1, 0, 0) - u, k * (east / (k + east)) * (at(0, 1, 0, 0) - u)),
                 mad(2 * p(1), mad(south * (k / (south + k)), at(0, 0, -1, 0) - u, k * (north / (k + north)) * (at(0, 0, 1, 0) - u)),
                     p(3) * at(2, 0, 0, 0)));
})

TRIFOLD_POINT_FUNCTION(heated_varying_increment_3d, {
    real u = at(0, 0, 0, 0);
    real k = at(1, 0, 0, 0);
    real west = at(1, -1, 0, 0), east = at(1, 1, 0, 0);
    real south = at(1, 0, -1, 0), north = at(1, 0, 1, 0);
    real below = at(1, 0, 0, -1), above = at(1, 0, 0, 1);
    out(0) = mad(2 * p(0), mad(west * (k / (west + k)), at(0, -1, 0, 0) - u, k * (east / (k + east)) * (at(0, 1, 0, 0) - u)),
                 mad(2 * p(1), mad(south * (k / (south + k)), at(0, 0, -1, 0) - u, k * (north / (k + north)) * (at(0, 0, 1, 0) - u)),
                     mad(2 * p(2), mad(below * (k / (below + k)), at(0, 0, 0, -1) - u, k * (above / (k + above)) * (at(0, 0, 0, 1) - u)),
                         p(3) * at(2, 0, 0, 0))));
})

TRIFOLD_POINT_FUNCTION(add_increment, { out(0) = at(0, 0, 0, 0) + at(3, 0, 0, 0); })

// Half a step of one axis: rows of 1 - step A / 2. Both rows at a face have the same number, bit by bit: devices look for symmetry.

TRIFOLD_POINT_FUNCTION(varying_x, {
    real k = at(1, 0, 0, 0);
    real low = at(1, -1, 0, 0);
    real high = at(1, 1, 0, 0);
    out(0) = -p(0) * (low * (k / (low + k)));
    out(2) = -p(0) * (k * (high / (k + high)));
    out(1) = 1 - out(0) - out(2);
})

TRIFOLD_POINT_FUNCTION(varying_y, {
    real k = at(1, 0, 0, 0);
    real low = at(1, 0, -1, 0);
    real high = at(1, 0, 1, 0);
    out(0) = -p(1) * (low * (k / (low + k)));
    out(2) = -p(1) * (k * (high / (k + high)));
    out(1) = 1 - out(0) - out(2);
})

TRIFOLD_POINT_FUNCTION(varying_z, {
    real k = at(1, 0, 0, 0);
    real low = at(1, 0, 0, -1);
    real high = at(1, 0, 0, 1);
    out(0) = -p(2) * (low * (k / (low + k)));
    out(2) = -p(2) * (k * (high / (k + high)));
    out(1) = 1 - out(0) - out(2);
})

// Peaceman and Rachford 1955: half a step explicit along the one axis, then implicit along the other.

TRIFOLD_POINT_FUNCTION(half_step_y, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(1) / 2, (at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u), u);
})

TRIFOLD_POINT_FUNCTION(half_step_x, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(0) / 2, (at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u), u);
})

TRIFOLD_POINT_FUNCTION(heated_half_step_y, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(1) / 2, (at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u), mad(p(3) / 2, at(2, 0, 0, 0), u));
})

TRIFOLD_POINT_FUNCTION(heated_half_step_x, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(0) / 2, (at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u), mad(p(3) / 2, at(2, 0, 0, 0), u));
})

TRIFOLD_POINT_FUNCTION(varying_half_step_y, {
    real u = at(0, 0, 0, 0);
    real k = at(1, 0, 0, 0);
    real south = at(1, 0, -1, 0), north = at(1, 0, 1, 0);
    out(0) = mad(p(1), mad(south * (k / (south + k)), at(0, 0, -1, 0) - u, k * (north / (k + north)) * (at(0, 0, 1, 0) - u)), u + p(3) * at(2, 0, 0, 0) / 2);
})

TRIFOLD_POINT_FUNCTION(varying_half_step_x, {
    real u = at(0, 0, 0, 0);
    real k = at(1, 0, 0, 0);
    real west = at(1, -1, 0, 0), east = at(1, 1, 0, 0);
    out(0) = mad(p(0), mad(west * (k / (west + k)), at(0, -1, 0, 0) - u, k * (east / (k + east)) * (at(0, 1, 0, 0) - u)), u + p(3) * at(2, 0, 0, 0) / 2);
})

}  // namespace trifold::heat
