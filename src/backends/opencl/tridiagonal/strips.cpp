// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/strips.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/opencl/tridiagonal/batch.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;

/// Bytes of an operand that a strip has: c' and d' of an item's strips fill a quarter of a second-level cache of 1 MiB, or of 512 KiB where half as many go side by side (vectors of 32 bytes).
/// 64 more than a multiple of 4 KiB, so that lanes do not meet in one set of the first level.
constexpr std::int64_t strip_bytes = 8192 + 64, short_strip_bytes = 4096 + 64, longest_halo = 1024, seen_numbers = 6, end_numbers = 8;

/// What may be left of an unknown beyond a halo, below the tolerance: so little that values far larger there do no harm, and that no bit of x depends on the cut.
constexpr double margin = 0x1p-42;

/// Halos come in few sizes, so that the workspace can be known beforehand; all of them are whole vectors, of which strips.cl makes tiles.
std::int64_t next_halo(std::int64_t rows, std::int64_t lanes) {
    std::int64_t halo = 16;
    while (halo < rows) halo = halo % 3 == 0 ? halo / 3 * 4 : halo / 2 * 3;
    return (halo + lanes - 1) / lanes * lanes;
}

std::int64_t lanes_of(const System& system) { return 64 / static_cast<std::int64_t>(size_of(system.dtype)); }

/// Vectors of 64 bytes of strips that a work item has, as in kernels/vectors.h.
std::int64_t vectors_of(int vector_bytes) { return vector_bytes == 32 ? 1 : 2; }

struct StripCut {
    std::int64_t vectors, lanes, halo, first, rows, strips;  ///< strips of `rows` rows from row `first`; 0 strips: not for this system

    StripCut(const System& system, std::int64_t halo_rows, int vector_bytes) : vectors(vectors_of(vector_bytes)), lanes(lanes_of(system)), halo(halo_rows) {
        const auto bytes = static_cast<std::int64_t>(size_of(system.dtype));
        const std::int64_t misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(system.x.data) % 64) / bytes;
        first = halo + lanes + (lanes - misaligned) % lanes;  // so that every strip of x begins with a cache line
        rows = (bytes == 8 ? strip_bytes : short_strip_bytes) / bytes;
        while (rows < 4 * halo) rows += 4096 / bytes;
        // Short systems: two groups for every work item, if strips stay long beside their halos.
        const std::int64_t usable = system.rows - first - halo - 1, wanted = usable / (2 * vectors * lanes * static_cast<std::int64_t>(most_drawers()));
        if (rows > wanted) rows = std::min(rows, std::max(wanted, 8 * halo) / (2 * lanes) * (2 * lanes) + lanes);
        strips = usable / rows;
        if (strips < 2 * lanes) strips = 0;
    }
    std::int64_t groups() const { return (strips + vectors * lanes - 1) / (vectors * lanes); }
    /// Numbers of what is seen, and of c' and d' of an item.
    std::int64_t seen() const { return (groups() * seen_numbers * vectors * lanes + 2 * end_numbers + 31) / 32 * 32; }
    std::int64_t kept() const { return (rows + 2 * halo) * 2 * vectors * lanes; }
    std::size_t bytes(const System& system) const {
        return ScratchParts(system).work + static_cast<std::size_t>(seen() + kept() * static_cast<std::int64_t>(most_drawers())) * size_of(system.dtype);
    }
};

bool fits(const Operand& operand) { return operand.kind == Operand::Kind::scalar || (operand.kind == Operand::Kind::view && operand.row_stride == 1); }

bool fits(const System& system) {
    return system.levels == 0 && !system.in_place && system.rhs.kind == Operand::Kind::view && system.x.row_stride == 1 && fits(system.lower) && fits(system.diag) &&
           fits(system.upper) && fits(system.rhs);
}

/// The host's look at a few rows.
template <class T>
struct Rows {
    const System& system;

    static T at(const Operand& o, std::int64_t i) { return o.kind == Operand::Kind::scalar ? static_cast<T>(o.value) : static_cast<const T*>(o.data)[i]; }
    T lower(std::int64_t i) const { return i > 0 ? at(system.lower, i) : T(0); }
    T diag(std::int64_t i) const { return at(system.diag, i); }
    T upper(std::int64_t i) const { return i + 1 < system.rows ? at(system.upper, i) : T(0); }
};

/// Rows over which elimination forgets: products of |c'| and of |a / p|, from some places; more than `limit` where they do not.
template <class T>
std::int64_t decay(const System& system, double close, std::int64_t limit) {
    const Rows<T> rows{system};
    std::int64_t most = 0;
    constexpr int places = 16;
    for (int place = 0; place < places; ++place) {
        std::int64_t i = (system.rows - 3 * limit) / places * place, end = i + 3 * limit;
        T c = 0;
        for (const std::int64_t warm = i + limit; i < warm; ++i) c = rows.upper(i) / (rows.diag(i) - rows.lower(i) * c);
        double ahead = 1, behind = 1;
        std::int64_t count = 0;
        for (; i < end && (ahead > close || behind > close); ++i, ++count) {
            const T p = rows.diag(i) - rows.lower(i) * c;
            behind *= std::abs(static_cast<double>(rows.lower(i) / p));
            c = rows.upper(i) / p;
            ahead *= std::abs(static_cast<double>(c));
        }
        if (!(ahead <= close && behind <= close)) return limit + 1;
        most = std::max(most, count);
    }
    return most;
}

struct Seen {
    double before, first, last, after, largest;
    bool good;
};

/// Every seam: what either side took the other's x for.
bool seams_agree(const std::vector<Seen>& pieces, double accept) {
    double largest = 0;
    for (const Seen& s : pieces) {
        if (!s.good) return false;
        largest = std::max(largest, s.largest);
    }
    for (std::size_t k = 0; k + 1 < pieces.size(); ++k) {
        const Seen &above = pieces[k], &below = pieces[k + 1];
        const double gap = std::max(std::abs(above.last - below.before), std::abs(above.after - below.first));
        if (!(gap <= accept * std::max({above.largest, below.largest, 0x1p-40 * largest}))) return false;
    }
    return true;
}

template <class T>
bool sweep(const System& system, const Launch& launch, const StripCut& cut) {
    constexpr double accepted_roundoffs = 16;
    const double unit = unit_roundoff(system.dtype);
    Launch own = launch;
    own.status = nullptr;
    Call call(open_device(launch.device), system, own, nullptr);
    call.make();
    call.reset(Algorithm::two_pass);
    const std::size_t items = std::min<std::size_t>(static_cast<std::size_t>(cut.groups()), drawers(call.device.info.units));
    call.enqueue({"strips", "strips"}, items, 1, cl_long{cut.first}, cl_long{cut.strips}, cl_long{cut.rows}, cl_long{cut.halo}, cl_long{cut.seen()},
                 static_cast<cl_int>(past_caches(system)));
    std::vector<T> numbers(static_cast<std::size_t>(cut.seen()));
    const Place work = call.work();
    call.on.queue.enqueueReadBuffer(work.buffer, CL_TRUE, work.offset, numbers.size() * sizeof(T), numbers.data());
    call.wait();
    if (call.found().marked) return false;

    const std::int64_t width = cut.vectors * cut.lanes, ends = cut.groups() * seen_numbers * width;
    const auto piece = [&](std::int64_t at, std::int64_t step) {
        const T* const n = numbers.data() + at;
        return Seen{n[0], n[step], n[2 * step], n[3 * step], n[4 * step], n[5 * step] != 0};
    };
    std::vector<Seen> pieces{piece(ends, 1)};
    pieces.reserve(static_cast<std::size_t>(cut.strips + 2));
    for (std::int64_t s = 0; s < cut.strips; ++s) pieces.push_back(piece(s / width * seen_numbers * width + s % width, width));
    pieces.push_back(piece(ends + end_numbers, 1));
    return seams_agree(pieces, std::max(accepted_roundoffs * unit, launch.tolerance));
}

}  // namespace

std::size_t strips_scratch(const System& system, int) {
    if (!fits(system)) return 0;
    std::size_t most = 0;
    const std::int64_t lanes = lanes_of(system);
    for (std::int64_t halo = next_halo(1, lanes); halo <= longest_halo; halo = next_halo(halo + 1, lanes))
        for (const int vector_bytes : {32, 64})
            if (const StripCut cut(system, halo, vector_bytes); cut.strips) most = std::max(most, cut.bytes(system));
    return most;
}

bool sweep_strips(const System& system, const Launch& launch) {
    if (!fits(system) || launch.failure->code) return false;
    const std::int64_t lanes = lanes_of(system);
    // The longest decay whose halo, a quarter longer, is allowed.
    const std::int64_t limit = std::min((longest_halo - lanes) * 4 / 5, system.rows / 64);
    const double close = launch.tolerance * margin;
    const std::int64_t forgets = system.dtype == DType::f32 ? decay<float>(system, close, limit) : decay<double>(system, close, limit);
    if (forgets > limit) return false;
    const StripCut cut(system, next_halo(forgets * 5 / 4 + lanes, lanes), found(launch.device).vector_bytes);
    if (cut.strips == 0 || launch.scratch_bytes < cut.bytes(system)) return false;
    bool good = false;
    return guarded("sweeping strips", *launch.failure, [&] { good = system.dtype == DType::f32 ? sweep<float>(system, launch, cut) : sweep<double>(system, launch, cut); }) && good;
}

}  // namespace trifold::opencl
