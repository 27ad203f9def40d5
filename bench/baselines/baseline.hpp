// SPDX-License-Identifier: BSD-3-Clause
// A peer: another solver on the same data, in the same process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/tridiagonal_data.hpp"

namespace trifold::bench {

/// rhs seen as outer × rows × inner, C order, solved along the middle.
struct Layout {
    std::int64_t outer = 1, rows = 0, inner = 1;
};
Layout layout_of(const io::TridiagonalData& data);

class Baseline {
public:
    virtual ~Baseline() = default;
    virtual std::string name() const = 0;

    /// Why it is not on this machine; empty where it is.
    virtual std::string absent() const { return {}; }

    /// Takes the problem; returns why it cannot, or nothing. `data` must outlive this.
    virtual std::string load(const io::TridiagonalData& data) = 0;

    /// Brings back what solve() destroyed; not timed.
    virtual void restore() = 0;

    /// The timed part; false where the peer reports a failure.
    virtual bool solve() = 0;

    virtual const io::Array& x() const = 0;

    /// Whether x solves `data`'s systems: not so where the peer needs another matrix of the same size.
    virtual bool verifies() const { return true; }
};

/// Copies of the arrays for a solver that overwrites all of them: x lies in rhs's copy.
class OverwritingBaseline : public Baseline {
public:
    std::string load(const io::TridiagonalData& data) override;
    void restore() override;
    const io::Array& x() const override { return rhs_; }

protected:
    const io::TridiagonalData* data_ = nullptr;
    Layout layout_;
    io::Array lower_, diag_, upper_, rhs_;
};

std::unique_ptr<Baseline> lapack_gtsv();  ///< LU with partial pivoting
std::unique_ptr<Baseline> lapack_ptsv();  ///< L D L^T, on a symmetric matrix of the same size
std::unique_ptr<Baseline> mkl_dtsvb();    ///< elimination from both ends, without pivoting; where libmkl_rt is found
std::unique_ptr<Baseline> thomas_loop();  ///< the textbook's two sweeps

/// Calls into BLAS and LAPACK on this many threads from now on.
void set_blas_threads(int threads);

}  // namespace trifold::bench
