// SPDX-License-Identifier: BSD-3-Clause
// A system that does not forget, in two passes over the devices: every chunk is reduced to rows in the unknowns at its ends and its neighbours', by whoever takes
// it; all of them are coupled by pivoted elimination in double precision; whoever reduced a chunk finishes it from its ends.
//
// Who has `reduce` and `finish` (the cpu) eliminates with pivots, in pieces of some hundred rows: words 4, then 5 per row. A device with memory of its own solves
// its chunk, or equal parts of it as a batch, as systems of their own three times,
//
//     A y = rhs,   A g = e_first,   A h = e_last,        x = y - lower[s] x[s-1] g - upper[e] x[e+1] h
//
// keeps y, g and h there, and later adds them: 4 words in, 1 out. x at its ends is then what the coupled rows say, up to rounding, since they were made
// from this y, g and h.
//
// So the second pass is a link's first turned round: its way there is idle. Such a device then takes pieces that were reduced in the host's memory too, closed between ends that are known, as a batch of
// systems: 4 words in, 1 out (finishing.hpp).
#pragma once

#include <algorithm>
#include <vector>

#include "families/tridiagonal/split/lane.hpp"

namespace trifold::tridiagonal::split {

/// Rows that are finished together, between ends that are known.
struct Piece {
    std::int64_t first = 0, rows = 0;
};

/// A chunk, or some of it, as pieces one after the other. There are hundreds of thousands in a system: what is said of each is kept short.
struct Pieces {
    Chunk* chunk = nullptr;
    std::int64_t each = 0, count = 0;  ///< rows of every piece but the last, which has what is left
    const double* ends = nullptr;      ///< x[first], x[last] of every piece, with the neighbours' beside them, 0 outside the system, as they were finished; null: they were not
    std::vector<char> stored;          ///< of every piece, whether x is there; empty: of none

    Piece piece(std::int64_t k) const noexcept { return {chunk->first + k * each, k + 1 < count ? each : chunk->rows - k * each}; }
    bool finished() const { return !stored.empty() && std::find(stored.begin(), stored.end(), 0) == stored.end(); }
};

/// What one chunk became.
struct Reduced : Pieces {
    InterfaceRow* rows = nullptr;  ///< two per piece, in one of these
    std::vector<InterfaceRow> own;
    devices::Scratch kept;
};

/// Pieces that a device was sent: on their way there or back, and back.
struct Sent {
    std::int64_t under_way = 0, back = 0;
};

/// The chunks that one lane has reduced, in its own way.
class Reducer {
public:
    virtual ~Reducer() = default;

    /// Takes chunks from the board until there are none; finished means reduced. False: the lane is out, `why` says why, and what it had is given back.
    virtual bool reduce() = 0;

    /// One chunk again, that another has lost. False: it cannot.
    virtual bool reduce_again(Reduced&) { return false; }

    /// one.ends is known. `bad`: it was not accepted. What is not stored when all is flushed the host does again. False: the lane is out.
    virtual bool finish(Pieces& one, bool& bad) = 0;

    /// Whether it finishes pieces of equal length that were reduced in the host's memory: `finish_sent`, as `finish`; what is not stored then it is not good for, and is not asked again.
    virtual bool takes_pieces() const { return false; }
    virtual bool finish_sent(Pieces&) { return false; }

    /// Waits until `finish_sent` need not, and says what has been sent to it. False: the lane is out.
    virtual bool make_room(Sent&) { return true; }

    /// Waits for what `finish` has left under way, and stores it.
    virtual bool flush(bool& bad) = 0;

    /// Waits for what is still under way, and gives back what it has of a driver: the lane's last call.
    virtual void close() {}

    std::vector<Reduced> reduced;
    std::string why;
};

/// On a device that has the verbs, in the host's memory. `piece_rows` divides where chunks begin.
/// `own`, `scratch`: as of a host lane.
std::unique_ptr<Reducer> reducer_on_host(Shared& shared, int lane, const Part& part, int threads, bool own, std::int64_t piece_rows, devices::ScratchArena& scratch,
                                         Calls call, Done& done);

/// Rows of a chunk there, of its parts, and of what is sent there in the second pass at a time.
struct SpikeRows {
    std::int64_t chunk = 0, part = 0, sent = 0;
    std::size_t free = 0;  ///< bytes of its memory, when that was asked
};

/// On a device with memory of its own that can combine.
std::unique_ptr<Reducer> reducer_on_device(Shared& shared, int lane, const Part& part, SpikeRows rows, std::int64_t piece_rows, int copiers, devices::StreamKits& kits, Calls call,
                                           Done& done);

/// nullptr, or why it cannot.
const char* reducer_refuses(const Part& part, const System& system);

/// A chunk of `most` rows or fewer, in parts of `longest`; 0 where not even small ones fit.
SpikeRows reducer_rows(const System& system, const Part& part, std::int64_t most, std::int64_t longest, std::int64_t piece_rows);

/// What is accepted of a piece's residual and at a seam, in unit roundoffs.
inline constexpr double widest = 32;

}  // namespace trifold::tridiagonal::split
