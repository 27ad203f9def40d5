// SPDX-License-Identifier: BSD-3-Clause
// What kernels are told, by value: the same text for the host and for OpenCL C. Every member has 8 bytes, so that both lay it out alike.
#ifndef TRIFOLD_OPENCL_JOB
#define TRIFOLD_OPENCL_JOB
#ifdef __OPENCL_VERSION__
typedef long word;
#else
#include <cstdint>
namespace trifold::opencl {
typedef std::int64_t word;
#endif

/// Element (row i, level indices j[]) of an operand lies at offset + i row_stride + sum j[d] level_stride[d] of its buffer; or it is a number.
typedef struct {
    word is_view, offset, row_stride, level_stride[4];
    word bits;  ///< of the number, as the kernel's type has them (f32: the lower half)
} Source;

/// A batch, as trifold::tridiagonal::System has it: the last level counts fastest in an index k over all systems.
typedef struct {
    word rows, systems, levels, extent[4];
    word number, number_stride[4];
    Source lower, diag, upper, rhs, x;
} Job;

/// What a call finds out, in memory that kernels change by atomics whose order does not matter.
typedef struct {
    unsigned first;     ///< least number of a system that failed; ~0 = none
    unsigned failures;  ///< systems that failed
    unsigned rescued;   ///< systems that took the pivoted path and are good
    unsigned marked;    ///< systems that an unpivoted kernel left to the pivoted one
    unsigned tickets;   ///< blocks that are handed out
    int reason;         ///< trifold::Reason of the first failure
    word row;           ///< of it
    word rows, systems, branch;
    word residual;      ///< bits of a double where it is known, else 0
    word tried_other;   ///< one system only: a fall-back gave this
} Found;

/// Places where groups of one kernel meet (meet.h).
#define MEETINGS 4096

/// What kernels of one queue find, call after call: the last one of a call tells its outcome, and leaves this as the first one needs it.
typedef struct {
    Found found;  ///< first == ~0, counts 0
    unsigned given_up, largest, excess;  ///< of all windows (windows.cl); floats as bits: they are ordered like numbers, none is negative
    unsigned groups_done;
    unsigned broken;  ///< solves on trust that did not hold; in turn, 1 + the place of the first one. Left as it is
    unsigned rest;    ///< as `largest`
    unsigned open;    ///< what kernels that follow are to do: COUPLE_CHUNKS, PIVOT_CHUNKS, CORRECT; 0 = nothing
    unsigned met[MEETINGS];  ///< groups that have come; 0 between calls
} QueueState;

#define COUPLE_CHUNKS 1
#define CORRECT 2
#define PIVOT_CHUNKS 3

/// Whether a verdict on trust that does not hold is counted in `broken`; WHERE_LAST: only where it opens nothing. IN_TURN + k: it is the k-th one in a row, of which those behind one that does not hold leave all as it is.
#define NEVER 0
#define ALWAYS 1
#define WHERE_LAST 2
#define IN_TURN 3

/// Where the last kernel of a call tells its outcome: bytes from the start of its buffer, and what it says where nothing was found.
typedef struct {
    word at;
    Found fresh;
} Telling;

/// One system cut into chunks of chunk_rows rows; the last one takes the remainder too.
typedef struct {
    word chunks, chunk_rows, rows;
} Cut;

/// Where the kernels of chunks.cl have their numbers, from the start of `work`: out (11 per chunk), add and old (2 per chunk each), the defect
/// (one per row, where it corrects), what an elimination keeps.
typedef struct {
    word out, add, old, defect, kept;
} ChunkParts;

/// Bytes from the start of a buffer: of the call's scratch, and of what else a call has where it wants it.
typedef struct {
    word work, marks, verdicts;  ///< in scratch: a kernel's own; a byte and a word per system
    word found, status;          ///< in buffers of their own; status -1: not wanted
} Where;

/// spike.cl: rows, and where row 0 of each array lies in its buffer.
typedef struct {
    word n, lower, diag, upper, rhs, x;
} SpikeSystem;

/// p partitions of m rows; substituted downwards above row `top`, upwards from there on; the first `ul` rows are eliminated upwards too.
typedef struct {
    word at, p, m, top, ul;
} SpikePartitions;

#ifndef __OPENCL_VERSION__
}  // namespace trifold::opencl
#endif

#endif
