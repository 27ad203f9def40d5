// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/stream_link.hpp"

#include <algorithm>
#include <cstring>

namespace trifold::tridiagonal::split {

void copy_on_host(void* to, const void* from, std::size_t bytes, int threads) {
    constexpr std::size_t worth = 1 << 20;
    const auto parts = static_cast<std::int64_t>(std::clamp<std::size_t>(bytes / worth, 1, static_cast<std::size_t>(std::max(threads, 1))));
    const std::size_t each = (bytes / static_cast<std::size_t>(parts) + 63) / 64 * 64;
#pragma omp parallel for num_threads(static_cast<int>(parts)) schedule(static) if (parts > 1)
    for (std::int64_t part = 0; part < parts; ++part) {
        const std::size_t at = std::min(static_cast<std::size_t>(part) * each, bytes), end = part + 1 == parts ? bytes : std::min(at + each, bytes);
        std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, end - at);
    }
}

bool StreamLink::staged(int k) const {
    const Operand& operand = *Operands(shared.system).of[k];
    if (operand.kind != Operand::Kind::view) return false;
    if (k == 4 && (shared.system.in_place || !runtime.allocate_pinned)) return true;
    // The first element of lower may be nobody's.
    const char* const inside = static_cast<const char*>(operand.data) + size;
    Memory found;
    Failure ignored;
    return runtime.allocate_pinned && (!runtime.where(part.number, inside, &found, ignored) || found.kind == MemoryKind::host);
}

bool StreamLink::prepare(std::size_t device_bytes, std::size_t host_bytes) {
    if (!device([&] { return kit.prepare(device_bytes, host_bytes, failure); })) return false;
    if (!device([&] { return runtime.synchronize(part.number, kit.to, failure); })) return false;
    base_s_ = shared.seconds();
    return device([&] { return runtime.mark(part.number, kit.to, &base_, failure); });
}

bool StreamLink::copy(void* stream, void* to, const void* from, std::size_t bytes) {
    return bytes == 0 || device([&] { return runtime.copy(part.number, stream, to, from, bytes, failure); });
}

bool StreamLink::mark(Slot& slot, Mark which, void* stream) {
    return device([&] {
        if (slot.mark[which]) runtime.release_mark(part.number, slot.mark[which]), slot.mark[which] = nullptr;
        return runtime.mark(part.number, stream, &slot.mark[which], failure);
    });
}

bool StreamLink::wait_for(const Slot& slot, Mark which, void* stream) {
    return !runtime.wait_for || !stream || device([&] { return runtime.wait_for(part.number, stream, slot.mark[which], failure); });
}

bool StreamLink::at(void* event, double& seconds) {
    const bool good = device([&] { return runtime.seconds(part.number, base_, event, &seconds, failure); });
    seconds += base_s_;
    return good;
}

bool StreamLink::send(Slot& slot) {
    const Chunk& chunk = *slot.chunk;
    const System here = slice(shared.system, chunk.first, chunk.rows);
    const Operands operands(here);
    const std::size_t bytes = static_cast<std::size_t>(chunk.rows) * size;
    slot.began = shared.seconds();
    // lower of row 0 and upper of the last row may not be there, and are not read.
    std::size_t skip[5] = {}, drop[5] = {};
    if (chunk.first == 0) skip[0] = size;
    if (chunk.first + chunk.rows == shared.system.rows) drop[2] = size;

    double moved = 0, copied = 0;
    for (int k = 0; k < 4; ++k) {
        if (!slot.array[k]) continue;
        moved += static_cast<double>(bytes);
        if (!slot.pinned[k]) continue;
        copied += static_cast<double>(bytes);
        copy_on_host(slot.pinned[k] + skip[k], static_cast<const char*>(operands.of[k]->data) + skip[k], bytes - skip[k] - drop[k], copiers_);
    }
    if (copied > 0) done.add(lane, slot.number, "stage", chunk, slot.began, shared.seconds(), copied);

    if (!mark(slot, arriving, kit.to)) return false;
    for (int k = 0; k < 4; ++k) {
        if (!slot.array[k]) continue;
        const char* const from = slot.pinned[k] ? slot.pinned[k] : static_cast<const char*>(operands.of[k]->data);
        if (!copy(kit.to, slot.array[k] + skip[k], from + skip[k], bytes - skip[k] - drop[k])) return false;
    }
    done.share.bytes_to += moved;
    return mark(slot, arrived, kit.to) && wait_for(slot, arrived, kit.run);
}

System StreamLink::there(const Slot& slot, char* x) const {
    System out = slice(shared.system, slot.chunk->first, slot.chunk->rows);
    out.in_place = false;
    Operand* const on[] = {&out.lower, &out.diag, &out.upper, &out.rhs, &out.x};
    for (int k = 0; k < 5; ++k)
        if (slot.array[k] || k == 4) on[k]->data = k == 4 ? x : slot.array[k], on[k]->row_stride = 1;
    return out;
}

bool StreamLink::solve(const System& chunk, void* scratch, std::size_t scratch_bytes, void* outcome, void* outcome_here, void* stream) {
    Launch launch;
    launch.scratch = scratch, launch.scratch_bytes = scratch_bytes;
    launch.tolerance = shared.tolerance;
    launch.stream = stream;
    launch.device = part.number;
    launch.failure = &failure;
    return device([&] { return part.ops->enqueue(part.number, chunk, Algorithm::automatic, launch, outcome, failure); }) &&
           copy(stream, outcome_here, outcome, part.ops->outcome_bytes);
}

char* StreamLink::x_here(const Slot& slot) const {
    return slot.pinned[4] ? slot.pinned[4] : static_cast<char*>(slice(shared.system, slot.chunk->first, slot.chunk->rows).x.data);
}

bool StreamLink::fetch(Slot& slot, const char* from) {
    const Chunk& chunk = *slot.chunk;
    const std::size_t bytes = static_cast<std::size_t>(chunk.rows) * size;
    if (!wait_for(slot, solved, kit.from) || !mark(slot, leaving, kit.from) || !copy(kit.from, x_here(slot), from, bytes)) return false;
    done.share.bytes_from += static_cast<double>(bytes);
    return mark(slot, left, kit.from);
}

bool StreamLink::wait(Slot& slot, bool sent, bool fetched) {
    const Chunk& chunk = *slot.chunk;
    if (!runtime.wait_for && !device([&] { return runtime.synchronize(part.number, kit.from, failure); })) return false;
    double time[marks] = {};
    for (int m = marks - 1; m >= 0; --m)
        if ((m <= arrived && sent) || m == solved || (m >= leaving && fetched))
            if (!at(slot.mark[m], time[m])) return false;
    const double bytes = static_cast<double>(chunk.rows) * static_cast<double>(size), needed = needed_bytes(shared.system, chunk.rows);
    if (sent) done.add(lane, slot.number, "to device", chunk, time[arriving], time[arrived], needed - bytes);
    const double from = std::max(sent ? time[arrived] : slot.began, last_solved_);
    done.add(lane, slot.number, "kernel", chunk, std::min(from, time[solved]), time[solved], needed);
    if (fetched) done.add(lane, slot.number, "from device", chunk, time[leaving], time[left], bytes);
    last_solved_ = time[solved];
    return true;
}

void StreamLink::store(const Slot& slot) {
    if (!slot.pinned[4]) return;
    const Chunk& chunk = *slot.chunk;
    const std::size_t bytes = static_cast<std::size_t>(chunk.rows) * size;
    const double begin = shared.seconds();
    copy_on_host(slice(shared.system, chunk.first, chunk.rows).x.data, slot.pinned[4], bytes, copiers_);
    done.add(lane, slot.number, "store", chunk, begin, shared.seconds(), static_cast<double>(bytes));
}

void StreamLink::release(Slot& slot) {
    for (void*& event : slot.mark)
        if (event) runtime.release_mark(part.number, event), event = nullptr;
}

void StreamLink::quiet() {
    call_.watched([&] { drain(); });
}

void StreamLink::drain() {
    Failure ignored;
    for (void* stream : {kit.to, kit.run, kit.from}) runtime.synchronize(part.number, stream, ignored);
}

void StreamLink::close() {
    if (base_) runtime.release_mark(part.number, base_), base_ = nullptr;
}

}  // namespace trifold::tridiagonal::split
