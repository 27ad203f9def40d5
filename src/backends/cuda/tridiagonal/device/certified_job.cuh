// SPDX-License-Identifier: BSD-3-Clause
// One long system for the certified pass (certified_kernel.cuh): what the host tells the kernels, what windows and blocks report.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/device/seam.cuh"
#include "backends/cuda/tridiagonal/thread/largest_bits.cuh"

namespace trifold::cuda::certified {

/// A lane's rows are a chunk. Halos have this many chunks on either side of a warp's 32.
inline constexpr int lanes = 32, halo = 4;

/// Halos of one system may forget by unlike amounts: how much more than it must a halo has to forget, in parts of 32 of what it forgets less than others.
inline constexpr int unlike = 5;

/// Rows per lane and warps per block, which is alone on its multiprocessor: as many bytes on their way as memory asks for.
template <class T>
struct Shape;
template <>
struct Shape<double> {
    static constexpr int rows = 11, warps = 8;
};
template <>
struct Shape<float> {
    static constexpr int rows = 21, warps = 8;
};

/// An operand by row; contiguous ones that begin at a 16-byte boundary come by the copy engine.
template <class T>
struct Input {
    enum class Path : std::uint8_t { scalar, elements, bulk };
    const T* data = nullptr;
    T value = 0;
    std::int64_t row_stride = 0;
    Path path = Path::scalar;
};

/// Maxima over rows, in the notation of docs/algorithms/gpu_single_bound.md, cut as Largest does: one word each.
template <class T>
struct Maxima {
    Largest<T> largest;              ///< |x|
    Largest<T> inner, ends;          ///< n X; delta X / (1 - q)
    Largest<T> inner_unit, ends_unit;  ///< n; delta / (1 - q)
    Largest<T> reach, growth;        ///< |A| + |C|; |c'|
    Largest<T> excess;               ///< residual at a seam where it is beyond what is allowed there
};

/// What is concluded from, when all blocks of the sweep have ended or counted themselves.
template <class T>
struct Verdict {
    unsigned* words = nullptr;    ///< of Maxima, every word of all blocks of the sweep side by side
    int count = 0;                ///< of blocks
    bool several = false;
    T accept = 0, roundoff = 0;   ///< accepted residual of a row, relative to its size and to the largest |x| nearby
};

/// In place, of a window: rhs is there; x is; x is, and rhs in Job::kept_rhs.
enum Stored : unsigned char { not_stored = 0, x_alone = 1, x_and_rhs = 2 };

template <class T>
struct Job {
    Input<T> input[4];  ///< lower, diag, upper, rhs
    bool all_bulk = false;
    T* x = nullptr;
    std::int64_t x_stride = 1;
    bool bulk_x = false;
    std::int64_t rows = 0;
    int each = 0;                  ///< several systems, one after the other in memory: the rows of one; else 0
    int chunks = 0;                ///< of the system, or of all
    int kept = 0;                  ///< chunks of a window: its warps × (lanes - 2 halo)
    int windows = 0;
    float strict = 0;              ///< log2 of what may be left of a lane's unknown where lanes are put into each other
    int enough = 0;                ///< powers of two by which a halo must forget what is beyond it, in units of 1/32
    int wary = 0;                  ///< in so many first windows of a block halos that forget less than others must forget more
    T accept = 0;                  ///< as in Verdict
    T* saved = nullptr;            ///< in place: rhs beside every seam, halo chunks on either side, as Stage::load reads them
    T* kept_rhs = nullptr;         ///< in place: per window whose x says too little of it, its rhs
    T least_known = 0;             ///< 2^-6 over the residual that a row may have: x of a lane that enlarges it by more may be of any size
    unsigned char* stored = nullptr;  ///< in place: per window, Stored; behind the last, whether any is
    T* inner = nullptr;            ///< in place: per window and warp, x before and after the warp's own rows as it solved them
    Seam<T>* seams = nullptr;      ///< windows - 1
    Verdict<T> verdict;
    bool judged_next = false;      ///< by the kernel behind this one
    bool all_judge = false;        ///< the sweep's blocks meet when they are done, and look at the seams between windows together; else the last one does
    DeviceOutcome* outcome = nullptr;
    DeviceOutcome fresh;           ///< what the sweep begins with

    /// Not given up. By all threads of a block it may change under way.
    __device__ bool mine() const { return *const_cast<volatile unsigned long long*>(&outcome->handed_over) == 0; }
    __device__ void give_up() const { *const_cast<volatile unsigned long long*>(&outcome->handed_over) = windows_turn; }
};

}  // namespace trifold::cuda::certified
