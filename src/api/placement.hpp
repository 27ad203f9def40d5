// SPDX-License-Identifier: BSD-3-Clause
// Where the arrays of a problem lie, asked of the device that shall solve it.
#pragma once

#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

struct Placement {
    /// In the order lower, diag, upper, rhs, x as the problem has them: the device's kernels can use it where it is. A scalar
    /// or a generator is nowhere: not there.
    bool there[5] = {};
    bool status_there = false;
    const char* first_there = nullptr;   ///< name of an array that lies on the device
    const char* first_here = nullptr;    ///< name of an array that lies in ordinary host memory
};

/// Throws Error(usage) where a view says that it lies on the device and does not, or lies on another one. Pinned host memory
/// counts as the device's where `reaches_pinned`, else as the host's.
Placement place(const Queue& queue, const Problem& problem, const Options& options, bool reaches_pinned);

/// The host reads a ragged batch's offsets: throws Error(usage) where they lie in memory of the queue's device or of another one. Returns whether that device reaches them where they are.
bool check_offsets_memory(const Queue& queue, const Problem& problem);

}  // namespace trifold::tridiagonal
