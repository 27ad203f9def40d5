// SPDX-License-Identifier: BSD-3-Clause
// How the rows of a long column are cut: into segments, one after the other, or into windows that overlap, of which each stores what lies within its halos.
#pragma once

#include <algorithm>

#ifdef __CUDACC__
#define TRIFOLD_BOTH __host__ __device__ __forceinline__
#else
#define TRIFOLD_BOTH inline
#endif

namespace trifold::cuda {

#ifdef __CUDACC__
using ::max;
using ::min;
#else
using std::max;
using std::min;
#endif

struct ColumnRows {
    int step = 0;                   ///< rows from one to the next; of a segment, the last one may have fewer
    unsigned count = 1;             ///< of a column
    int last = 0, halo = 0;         ///< windows: where the last one begins, rows on either side that others store

    static constexpr int chunk = 32;  ///< of a lane: seams lie between chunks

    static ColumnRows segments(int rows, int tile) { return {tile, static_cast<unsigned>((rows + tile - 1) / tile), rows, 0}; }

    /// All of `tile` rows but the last one, which may have a few less. rows > tile; tile and halo are multiples of a chunk.
    static ColumnRows windows(int rows, int tile, int halo) {
        const int step = tile - 2 * halo;
        return {step, static_cast<unsigned>((rows - 2 * halo + step - 1) / step), (rows - tile + chunk - 1) / chunk * chunk, halo};
    }

    TRIFOLD_BOTH int begin(unsigned k) const { return min(static_cast<int>(k) * step, last); }
    /// The rows that it stores, its end excluded.
    struct Stored {
        int from, to;
    };
    /// By values: a member that reads them itself becomes other machine code in the kernel of windows, with more of it.
    static TRIFOLD_BOTH Stored stored(unsigned k, int step, int halo, unsigned count, int rows) {
        const int from = static_cast<int>(k) * step + halo;
        return {k ? from : 0, k + 1 < count ? from + step : rows};
    }
};

}  // namespace trifold::cuda
