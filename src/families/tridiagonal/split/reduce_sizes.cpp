// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/reduce_sizes.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "families/tridiagonal/split/equal_systems.hpp"
#include "families/tridiagonal/split/stream_link.hpp"

namespace trifold::tridiagonal::split {
namespace {

// Asked for each length that a chunk may have, which takes as long as the first copy: so what was found last is kept.
template <class Find>
std::size_t remembered(const System& system, const Ops& ops, SpikeRows rows, std::int64_t piece, const Find& find) {
    struct Found {
        const Ops* ops = nullptr;
        DType dtype = DType::f64;
        unsigned arrays = 0;
        std::int64_t chunk = 0, part = 0, piece = 0;
        std::size_t bytes = 0;
    };
    static std::mutex mutex;
    static std::array<Found, 8> kept;
    static std::size_t next = 0;
    Found wanted{&ops, system.dtype, 0, rows.chunk, rows.part, piece};
    const Operands operands(system);
    for (int k = 0; k < 5; ++k) wanted.arrays |= static_cast<unsigned>(operands.array(k)) << k;
    const auto like = [&](const Found& one) {
        return one.ops == wanted.ops && one.dtype == wanted.dtype && one.arrays == wanted.arrays && one.chunk == wanted.chunk && one.part == wanted.part && one.piece == wanted.piece;
    };
    {
        const std::lock_guard lock(mutex);
        for (const Found& one : kept)
            if (like(one)) return one.bytes;
    }
    wanted.bytes = find();
    const std::lock_guard lock(mutex);
    kept[next++ % kept.size()] = wanted;
    return wanted.bytes;
}

std::size_t scratch_of_batches(const System& system, const Ops& ops, std::int64_t rows, std::int64_t part) {
    std::size_t most = 0;
    for (std::int64_t count = 2; count * part <= rows; ++count) {
        most = std::max(most, ops.workspace(as_batch(shaped(system, count * part), {0, part, count}), Algorithm::automatic, 1));
        if (count >= 32) count += count / 8;
    }
    if (rows >= 2 * part) most = std::max(most, ops.workspace(as_batch(shaped(system, rows), {0, part, rows / part}), Algorithm::automatic, 1));
    return most + most / 4;
}

}  // namespace

Sizes::Sizes(const System& system, const Ops& ops, SpikeRows rows, std::int64_t piece) {
    array = align(static_cast<std::size_t>(rows.chunk) * size_of(system.dtype) + 256);
    scratch = remembered(system, ops, rows, piece, [&] {
        return align(std::max({scratch_up_to(system, ops, rows.chunk), scratch_of_batches(system, ops, rows.chunk, rows.part), scratch_of_batches(system, ops, rows.chunk, piece)}));
    });
    outcome = align(ops.outcome_bytes);
    const Operands operands(system);
    int arrays = 0;
    for (int k = 0; k < 4; ++k) arrays += operands.array(k);
    numbers = align(static_cast<std::size_t>(count_of(rows.chunk, rows.part) + 1) * 8 * sizeof(double) + 1024) / 1024 * 1024;  // six and two to a part
    known = align((2 * static_cast<std::size_t>(rows.sent / piece) + 2) * size_of(system.dtype) + sizeof(float)) + 256;
    back = numbers / 4;
    pass = static_cast<std::size_t>(arrays + 1) * array + scratch + 3 * most_groups * outcome + numbers + queued / under_way * (outcome + known + back);
    zeros = 2 * array;
}

}  // namespace trifold::tridiagonal::split
