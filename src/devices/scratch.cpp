// SPDX-License-Identifier: BSD-3-Clause
#include "devices/scratch.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "base/available_memory.hpp"
#include "trifold/error.hpp"

namespace trifold::devices {

Scratch::~Scratch() {
    if (arena_) arena_->give_back(data_);
}

ScratchArena::ScratchArena() { slots_.reserve(16); }

Scratch ScratchArena::take(std::size_t bytes) {
    Scratch out;
    if (bytes == 0) return out;
    const std::lock_guard lock(mutex_);
    Slot* fit = nullptr;      // the smallest free block that is large enough
    Slot* largest = nullptr;  // else this one grows
    for (Slot& slot : slots_) {
        if (slot.lent) continue;
        if (slot.block.bytes() >= bytes && (!fit || slot.block.bytes() < fit->block.bytes())) fit = &slot;
        if (!largest || slot.block.bytes() > largest->block.bytes()) largest = &slot;
    }
    if (!fit) fit = largest ? largest : &slots_.emplace_back();
    if (fit->block.bytes() < bytes) grow(fit->block, bytes);
    fit->lent = true;
    out.arena_ = this, out.data_ = fit->block.data(), out.bytes_ = fit->block.bytes();
    return out;
}

void ScratchArena::grow(AlignedBuffer& block, std::size_t bytes) {
    held_ -= block.bytes();
    block = AlignedBuffer();  // first, so that old and new are never held together
    constexpr std::size_t page = 4096, worth_asking = std::size_t{1} << 24;
    static constexpr const char* hint = "solve fewer rows or systems at a time";
    if (bytes >= worth_asking) require_memory("scratch", static_cast<double>(bytes), hint);
    try {
        // Scratch sizes of one program differ little: round up, so that the next call finds a block that fits.
        block = AlignedBuffer((bytes + page - 1) / page * page);
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::bad_input, "scratch", "cannot allocate " + bytes_text(static_cast<double>(bytes)), hint);
    }
    held_ += block.bytes();
    peak_ = std::max(peak_, held_);
}

Scratch ScratchArena::take(std::size_t bytes, const Workspace& workspace) {
    if (!workspace.data) return take(bytes);
    constexpr std::size_t alignment = 64;
    void* data = workspace.data;
    std::size_t space = workspace.bytes;
    if (!std::align(alignment, bytes, data, space)) {
        const bool aligned = reinterpret_cast<std::uintptr_t>(workspace.data) % alignment == 0;
        throw Error(ErrorCode::usage, "Options::workspace",
                    std::to_string(workspace.bytes) + " bytes" + (aligned ? "" : " that are not aligned to 64") + ", but " +
                        std::to_string(bytes) + " are needed",
                    "ask workspace() with the same problem and options for the size");
    }
    Scratch out;
    out.data_ = data, out.bytes_ = space;
    return out;
}

Scratch ScratchArena::take(std::size_t wanted, std::size_t least, const Workspace& workspace) {
    if (workspace.data || wanted <= least) return take(least, workspace);
    if (wanted <= largest_free() || static_cast<double>(wanted) <= static_cast<double>(available_memory()) / 2) {
        try {
            return take(wanted);
        } catch (const Error&) {
            // Others may have taken it meanwhile.
        }
    }
    return take(least);
}

std::size_t ScratchArena::largest_free() const noexcept {
    const std::lock_guard lock(mutex_);
    std::size_t bytes = 0;
    for (const Slot& slot : slots_)
        if (!slot.lent) bytes = std::max(bytes, slot.block.bytes());
    return bytes;
}

void ScratchArena::give_back(void* data) noexcept {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_)
        if (slot.block.data() == data) {
            slot.lent = false;
            return;
        }
    assert(!"a block that this arena did not lend");
}

std::size_t ScratchArena::held_bytes() const noexcept {
    const std::lock_guard lock(mutex_);
    return held_;
}

std::size_t ScratchArena::peak_bytes() const noexcept {
    const std::lock_guard lock(mutex_);
    return peak_;
}

}  // namespace trifold::devices
