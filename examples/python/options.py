#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""European calls by finite differences, all strikes and volatilities at once: a tridiagonal system per option and step.

Black and Scholes' equation in x = log(price / strike), backwards from the expiry (t is the time left):

    dV/dt = s²/2 d²V/dx² + (r - s²/2) dV/dx - r V,      V(x, 0) = max(exp(x) - 1, 0),  in units of the strike

by Crank and Nicolson's scheme, the first two steps as four implicit half steps (Rannacher), since the payoff has a kink. Compared with
the formula. Needs NumPy, and the command `trifold` on the PATH or in $TRIFOLD.
"""
import math
import sys

import numpy

from bridge import solve


def price(volatility, rate, years, points=401, steps=40, device='cpu'):
    """Values of calls, in units of the strike, [option, point]; and the points log(price / strike)."""
    x = numpy.linspace(-1.5, 1.5, points)
    h, k = x[1] - x[0], years / steps
    s2 = numpy.square(numpy.asarray(volatility))[:, None]
    down, up = s2 / (2 * h * h) - (rate - s2 / 2) / (2 * h), s2 / (2 * h * h) + (rate - s2 / 2) / (2 * h)
    here = -s2 / (h * h) - rate
    inside = numpy.ones(points)
    inside[[0, -1]] = 0                                    # the value is known at both ends
    value = numpy.broadcast_to(numpy.maximum(numpy.exp(x) - 1, 0), (len(s2), points)).copy()
    time = 0.0
    for length, implicit in [(k / 2, 1.0)] * 4 + [(k, 0.5)] * (steps - 2):
        time += length
        change = numpy.zeros_like(value)
        change[:, 1:-1] = down * value[:, :-2] + here * value[:, 1:-1] + up * value[:, 2:]
        rhs = value + (1 - implicit) * length * change
        rhs[:, 0], rhs[:, -1] = 0.0, math.exp(x[-1]) - math.exp(-rate * time)
        weight = -implicit * length * inside
        value = solve(weight * down, 1 + weight * here, weight * up, rhs, '--device', device)
    return x, value


def formula(x, volatility, rate, years):
    d1 = (x + (rate + volatility ** 2 / 2) * years) / (volatility * math.sqrt(years))
    normal = lambda z: 0.5 * math.erfc(-z / math.sqrt(2))
    return math.exp(x) * normal(d1) - math.exp(-rate * years) * normal(d1 - volatility * math.sqrt(years))


def main():
    volatilities, rate, years = numpy.linspace(0.1, 0.4, 31), 0.03, 1.0
    x, values = price(volatilities, rate, years, device=sys.argv[1] if len(sys.argv) > 1 else 'cpu')
    print('volatility   at the money   10 % above   error of both')
    worst = 0.0
    for k in range(0, len(volatilities), 5):
        found = [float(numpy.interp(place, x, values[k])) for place in (0.0, math.log(1.1))]
        error = max(abs(value - formula(place, volatilities[k], rate, years)) for value, place in zip(found, (0.0, math.log(1.1))))
        print(f'{volatilities[k]:10.2f}   {found[0]:12.5f}   {found[1]:10.5f}   {error:.1e}')
        worst = max(worst, error)
    return 0 if worst < 1e-3 else 1


if __name__ == '__main__':
    sys.exit(main())
