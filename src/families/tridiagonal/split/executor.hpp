// SPDX-License-Identifier: BSD-3-Clause
// One huge system of the host's memory on several devices at a time, or streamed through one. Rows are handed out in chunks, each is
// solved as a system of its own by whoever takes it, and where two meet they are joined (seam.hpp; docs/algorithms/split.md).
#pragma once

#include <span>
#include <vector>

#include "devices/scratch.hpp"
#include "devices/stream_kit.hpp"
#include "families/tridiagonal/split/part.hpp"
#include "trifold/report.hpp"

namespace trifold::tridiagonal::split {

/// How far the matrix remembers.
struct Reach {
    std::int64_t width = 0;             ///< rows on either side of a boundary by which chunks are joined; 0 = it does not forget
    double close = 0;                   ///< what is put into a boundary has died out to this there
};

struct Setting {
    std::span<const Part> parts;
    const Ops* host = nullptr;          ///< the host's own device: joins chunks, and finishes what nobody else could
    int threads = 1;
    double tolerance = 0;
    Reach reach;                       ///< as look() found it
    std::vector<double> rows_per_s;     ///< of each part, as known, in both passes together where there are two; 0 or empty = not
    std::vector<Trouble> trouble;       ///< of each part, for tests; empty = none
    bool couple = true;                 ///< where the matrix does not forget: two passes, coupled; else it is given up
    std::vector<std::string> left_behind;  ///< parts that shall not be asked for anything
    std::vector<Readiness> ready;       ///< of each part; empty = all are
    double patience_s = 30;             ///< a call to a device, other than the host's own, that takes longer is not waited for
    std::int64_t least_rows = 0;        ///< of a chunk; 0 = what pays
    std::int64_t slot_rows = 0;         ///< most rows of a chunk on a device with memory of its own; 0 = what pays
    devices::ScratchArena* scratch = nullptr;
    devices::StreamKits* kits = nullptr;
};

struct Result {
    bool solved = false;                ///< else x may hold anything; rhs is intact, in place to rounding, and `why` says what was met
    bool coupled = false;               ///< in two passes
    Outcome outcome;
    std::string why;
    std::vector<DeviceShare> devices;
    std::vector<TraceEvent> trace;
    std::vector<double> rows_per_s;     ///< of each part, as seen; 0 = did nothing
    std::vector<std::string> left_behind;  ///< whose calls have not returned: nobody should ask them for anything again
    std::vector<std::pair<std::string, double>> phases;
};

/// nullptr, or why this system is none for it, as Ops::refuses: it takes one system in views with rows side by side, and scalars.
const char* refuses(const System& system);

/// Of so many threads those that compute where these solve: who streams needs a core to wait and to copy with; of few cores none is given up for that.
int host_threads(std::span<const Part> parts, int threads);

/// From a few places, on the host's device: well below a millisecond where it forgets within some hundred rows, or one of them shows that it never does.
Reach look(const System& system, const Ops& host, double tolerance, int threads);

/// |diag| over |lower| + |upper|, less 1, the mean of three rows: by which a matrix is known again, or one like it.
double glance(const System& system);

Result solve(const System& system, const Setting& setting);

}  // namespace trifold::tridiagonal::split
