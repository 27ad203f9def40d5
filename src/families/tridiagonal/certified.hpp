// SPDX-License-Identifier: BSD-3-Clause
// One huge system in one pass of five words per row: elimination without pivoting that is cut where its memory has died, with a
// bound on the error of every row (docs/algorithms/certified.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "families/tridiagonal/ops.hpp"

namespace trifold::tridiagonal {

/// nullptr, or why this driver cannot run on that device, as Ops::refuses.
const char* certified_refuses(const Ops& ops, const System& system);

/// A part of a larger system that others solve at the same time.
struct CertifiedPart {
    std::int64_t of_rows = 0;  ///< of all of it: whether x stays in a cache; 0 = it is no part
    bool one_thread = false;   ///< nobody shares this part: few groups, since lanes begin anew in each
};

/// Bytes of Launch::scratch for solve_certified, whatever decay it will find.
std::size_t certified_workspace(const Ops& ops, const System& system, int threads, const CertifiedPart& part = {});

/// Solves one system, to be called where certified_refuses() is nullptr. True: x is stored, the outcome is `certified`, with a
/// certificate ≥ max|error| / max|x| that covers truncation and rounding; or it is `exact`, without a certificate: truncation is
/// within the tolerance, |c'| and seams show the backward error of elimination in one go, but the condition leaves no useful
/// forward bound (FP32 mostly). False: handed over, rhs holds the right-hand side (in
/// place to rounding) and the outcome says why: not_certified where couplings do not decay within the halos or the bound is no
/// bound, unstable where |c'| shows a small pivot, not_finite; row is near where it was seen.
/// Truncation of every block is at most tolerance × the largest |x| of the block, or of 2^-40 of the largest |x| of all where
/// the block has nothing as large.
bool solve_certified(const Ops& ops, const System& system, const Launch& launch, Outcome& outcome, const CertifiedPart& part = {});

/// The same with given stretches (tests choose small ones); the scratch must suffice for them and a StretchBound per stretch.
bool solve_certified(const Ops& ops, const System& system, const Launch& launch, const Stretches& stretches, Outcome& outcome);

/// The stretches that solve_certified takes, and the rows after which couplings have decayed; groups == 0 where they do too slowly.
struct CertifiedCut {
    Stretches stretches;
    std::int64_t decay = 0;
    bool unfit = false;  ///< a pivot was
};
CertifiedCut cut_certified(const Ops& ops, const System& system, const Launch& launch, const CertifiedPart& part = {});

/// The stretches for halos of at least `halo` rows; groups == 0 where the system is too short for them.
Stretches plan_stretches(const System& system, std::int64_t halo, double close, const CertifiedPart& part = {});

}  // namespace trifold::tridiagonal
