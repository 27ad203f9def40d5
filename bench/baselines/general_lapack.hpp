// SPDX-License-Identifier: BSD-3-Clause
// Rings and ragged batches as users of LAPACK solve them: gtsv for one system after the other, a ring's open part for two right-hand sides and a correction by its last unknown. On one thread.
#pragma once

#include <cstdint>
#include <vector>

namespace trifold::bench {

template <class T>
class GeneralLapack {
public:
    /// Arrays of all rows; offsets: where systems begin, and an end. All must outlive this.
    GeneralLapack(const T* lower, const T* diag, const T* upper, const T* rhs, const std::vector<std::int64_t>& offsets, bool ring);

    const char* name() const { return ring_ ? "LAPACK gtsv, two sides" : "LAPACK gtsv"; }
    void restore();  ///< what solve() destroys
    bool solve();    ///< false: some system failed
    const T* x() const { return x_.data(); }

private:
    bool solve_ring(std::int64_t first, std::int64_t rows);

    const T *from_lower_, *from_diag_, *from_upper_, *from_rhs_;
    const std::vector<std::int64_t>& offsets_;
    bool ring_;
    std::vector<T> lower_, diag_, upper_, x_, sides_;
};

}  // namespace trifold::bench
