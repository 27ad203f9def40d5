// SPDX-License-Identifier: BSD-3-Clause
// Which tile is next: drawn from a counter, by a warp, or by a block whose warps share every tile, so that what is under way stays together in
// memory. A counter bears some 300 draws in a microsecond, so that small tiles are drawn several at a time. Draws are asked for at the beginning of a turn at
// least before the one that loads what was drawn: nobody waits for the counter.
#pragma once

#include "backends/cuda/tridiagonal/shared/job.hpp"

namespace trifold::cuda {

template <bool Block>
class Draws {
public:
    __device__ __forceinline__ Draws(unsigned* counter, unsigned each, unsigned tiles, unsigned* slot, int lane)
        : counter_(counter), each_(each), slot_(slot), lane_(lane), teams_(Block ? gridDim.x : gridDim.x * (blockDim.x >> 5)),
          whole_(Block || each < 2 || tiles < 2 * teams_ ? ~0u : (tiles - 2 * teams_) / each),
          draw_(Block ? blockIdx.x : blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5)), later_(teams_ + draw_) {}

    /// The first two tiles or one: everybody's first two draws are given, and the counter may not be there yet.
    __device__ __forceinline__ unsigned given() {
        if (each_ == 0) return strided();
        if (drawn_out()) within_ = 0, draw_ = later_, asked_ = false;
        return tile();
    }
    /// In every turn, in this order; block: tell() before a barrier of the block, next() behind it, and a barrier from there to the next tell().
    __device__ __forceinline__ void ask() {
        if (!asked_ && each_ && (Block ? threadIdx.x == 0 : lane_ == 0)) later_ = 2 * teams_ + atomicAdd(counter_, 1u);
        asked_ = true;
    }
    __device__ __forceinline__ void tell() const {
        if (Block && threadIdx.x == 0 && drawn_out()) *slot_ = later_;  // not earlier: it may still be on its way
    }
    __device__ __forceinline__ unsigned next() {
        if (each_ == 0) return strided();
        if (drawn_out()) within_ = 0, draw_ = Block ? *slot_ : __shfl_sync(~0u, later_, 0), asked_ = false;
        return tile();
    }

private:
    __device__ __forceinline__ bool drawn_out() const { return within_ == (Block || draw_ < whole_ ? each_ : 1); }
    __device__ __forceinline__ unsigned tile() {
        const unsigned whole = Block ? draw_ : min(draw_, whole_);
        return whole * each_ + (draw_ - whole) + within_++;
    }
    __device__ __forceinline__ unsigned strided() {
        draw_ += teams_;
        return draw_ - teams_;
    }

    unsigned* const counter_;
    const unsigned each_;  ///< tiles of a draw; 0: every so many tiles instead
    unsigned* const slot_; ///< block: a word of shared memory
    const int lane_;
    const unsigned teams_, whole_;  ///< whole_: draws behind these are of one tile, so that nobody is left with several at the end
    unsigned draw_, later_, within_ = 0;  ///< later_: the draw after this one, of the thread that asks
    bool asked_ = true;
};

/// Sets of columns, one of a draw, by a block. Where none are drawn (blocks in step), every so many sets are one's own.
template <class T>
class SetDraws {
public:
    unsigned now = blockIdx.x, after = blockIdx.x + gridDim.x, turn = 0;

    __device__ __forceinline__ SetDraws(const SharedJob<T>& job, unsigned* slots) : job_(job), slots_(slots) {}
    __device__ __forceinline__ bool any() const { return job_.draw ? now < job_.tiles : turn < job_.turns; }
    /// In every turn, in this order: at its beginning, before a barrier of the block, and behind it.
    __device__ __forceinline__ void ask() {
        if (threadIdx.x == 0) later_ = job_.draw ? 2 * gridDim.x + atomicAdd(job_.tickets, 1u) : after + gridDim.x;
    }
    __device__ __forceinline__ void tell() const {
        if (threadIdx.x == 0) slots_[turn & 1] = later_;
    }
    __device__ __forceinline__ void next() { now = after, after = slots_[turn++ & 1]; }

private:
    const SharedJob<T>& job_;
    unsigned* const slots_;  ///< two words of shared memory
    unsigned later_;         ///< of the thread that asks
};

}  // namespace trifold::cuda
