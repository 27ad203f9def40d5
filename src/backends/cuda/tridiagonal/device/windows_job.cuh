// SPDX-License-Identifier: BSD-3-Clause
// Long systems cut into windows (windows_kernel.cuh): what the host tells the kernel, what windows and blocks tell each
// other.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/device/certified_job.cuh"
#include "backends/cuda/tridiagonal/operand.cuh"
#include "backends/cuda/tridiagonal/thread/chunk.cuh"

namespace trifold::cuda::windows {

/// `stages` windows are in a block's shared memory: one is finished, one reduced, one is on its way. `helpers`: warps
/// that move windows and couple them, beside those that compute.
inline constexpr int lanes = 32, stages = 3, helpers = 2;
/// And warps that only take part in what is left to pivots, by three teams of four: they take no room, since registers come for four warps at a time.
inline constexpr int others = 2;

/// A window's relations to its neighbours: of its first unknown in the unknown before it and its last one, of its last
/// one in the unknowns before and after it.
template <class T>
struct Interface {
    Relation<T> first, last;
};

/// What is left of a warp, which the one that moves makes an Interface of: the first row of its first lane, the lanes
/// that row leads through (OddEven), the last one.
template <class T>
struct Part {
    Relation<T> first, on_the_way[5], last;
};

/// Maxima over rows, in the notation of docs/algorithms/gpu_single_bound.md, as bits (in double precision the upper half of
/// them): n, |A| + |C|, |c'|; delta / (1 - q) in single precision.
struct Maxima {
    unsigned inner = 0, reach = 0, growth = 0;
    float ends = 0;
};

/// What is known of a system: nothing bad; one pass does not do, since it does not decay fast enough; left to pivots.
enum State : unsigned { good = 0, again = 1, left = 2 };

template <class T>
struct Job {
    Levels levels;
    Source<T> input[4], x;  ///< lower, diag, upper, rhs; no data: a scalar
    std::int64_t rows = 0;
    int per_system = 0, windows = 0;  ///< windows of a system, of all
    int weak = 0;                     ///< log2, in units of 1/64, of what may be left of an unknown that is taken for 0
    T accept = 0, roundoff = 0;  ///< accepted residual of a row, relative to its size and to the largest |x| nearby
    T negligible = 0;            ///< the same for a coupling
    bool plain = false;  ///< all are arrays whose rows lie side by side, of at most one level
    bool even = false;   ///< and every system begins at a multiple of 16 bytes
    certified::Verdict<T> halos;  ///< of windows with halos, where this kernel concludes for them
    int rows_of_half = 0;  ///< rows of which DeviceOutcome::forgets speaks
    int blocks_before = 0;   ///< that have counted in DeviceOutcome::unstable
    bool after_others = false;              ///< only where certified_kernel.cuh or held_kernel.cuh has given up
    bool in_place = false, second = false;  ///< x is rhs; a second pass follows where one does not do

    Interface<T>* interfaces = nullptr;  ///< per window
    Relation<T>* joined = nullptr;       ///< second pass, per window: what WarpsOfWindow has left of its warps
    T* ends = nullptr;                   ///< second pass, per window: its last unknown
    T* chain = nullptr;                  ///< second pass: three words per window
    Interface<T>* groups = nullptr;      ///< second pass: one per warp of the device
    Seam<T>* seams = nullptr;            ///< seam s: between windows s and s + 1
    unsigned char* stored = nullptr;     ///< per window: 0, or its x is there, and in place its rhs in `kept`, from this less 1 on
    T* kept = nullptr;                   ///< in place: per window, Memory::elements
    unsigned* state = nullptr;           ///< per system: State
    unsigned* largest = nullptr;         ///< per system: bits of max|x|, in double precision the upper half
    Maxima* maxima = nullptr;            ///< per block
    DeviceOutcome* outcome = nullptr;
    std::int8_t* status = nullptr;

    __device__ unsigned state_of(int system) const { return *const_cast<volatile unsigned*>(state + system); }
    __device__ void demote(int system, State to) const {
        atomicMax(state + system, static_cast<unsigned>(to));
        atomicMax(&outcome->handed_over, static_cast<unsigned long long>(to) + windows_turn);
    }
};

}  // namespace trifold::cuda::windows
