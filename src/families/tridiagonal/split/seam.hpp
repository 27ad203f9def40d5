// SPDX-License-Identifier: BSD-3-Clause
// Where two chunks meet that were solved each as a system of its own, as if x beyond were 0. With y what they stored, row b the first of the
// second one, the truth is x = y + dx, where
//
//     A dx = r,    r[b-1] = -upper[b-1] y[b],    r[b] = -lower[b] y[b-1],    0 elsewhere
//
// Where the matrix forgets, dx has died out `width` rows from b: it is found from a window of 2 width rows in double precision, by LU with
// partial pivoting, and added. Then every equation of the window is looked at, and refined once where it does not hold.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal::split {

/// LU of windows, on the host's device.
class Windows {
public:
    /// `host`: solves f64 by Algorithm::lu in the host's memory.
    Windows(const System& system, const Ops& host) : system_(system), host_(host) {}

    /// Rows on either side of a boundary beyond which what is put into it is below `close` of its largest: the most of `places` places,
    /// and half as much again. Of two numbers, the smaller one first, it is the first for which that is `limit` or less at all places; 0 rows where it is for neither.
    struct Width {
        std::int64_t rows = 0;
        double close = 0;
    };
    Width width(const std::array<double, 2>& close, std::int64_t limit, int places, int threads) const;

    /// In place: the right-hand side around row b, before anybody overwrites it.
    struct Seam {
        std::int64_t at = 0;
        std::vector<double> rhs;  ///< of the window, where x is rhs; else empty
    };
    Seam open(std::int64_t b, std::int64_t width) const;

    struct Joined {
        bool good = false;
        double amplified = 0;  ///< bound of |dx| by the error of y beside the seam
        double residual = 0;   ///< the largest of the window, after it: |rhs - A x| / (max|A| max|x| + max|rhs|)
    };

    /// Both chunks are in x. Changes `width` rows on either side of it.
    Joined join(const Seam& seam, std::int64_t width, double close) const;

    /// Of rows b-1 and b: |rhs - A x|, against max|A| max|x| + max|rhs| of the window.
    double residual(const Seam& seam, std::int64_t width) const;

    static void put_back(const System& system, const Seam& seam, std::int64_t width);

private:
    struct Reaches {
        std::int64_t first, last;  ///< rows on either side that are tried
        std::int64_t limit;        ///< within which it is asked for
    };
    template <class Wanted>
    std::array<std::int64_t, 2> width_at(std::int64_t b, const std::array<double, 2>& close, const Wanted& wanted, const Reaches& reaches) const;

    const System& system_;
    const Ops& host_;
};

/// x becomes A x; `before` and `after` are added to its first and its last row.
void multiply_in_place(const System& system, double before, double after);

/// One value of an array or a number.
double entry(const Operand& operand, std::int64_t row, DType dtype);

}  // namespace trifold::tridiagonal::split
