// SPDX-License-Identifier: BSD-3-Clause
// Scratch memory of a Context: blocks that grow on demand and are kept for the next call. Solves that run at the same time
// get blocks of their own.
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "trifold/memory.hpp"

namespace trifold::devices {

class ScratchArena;

/// A block on loan; given back when it goes out of scope.
class Scratch {
public:
    Scratch() = default;
    Scratch(Scratch&& other) noexcept { swap(other); }
    Scratch& operator=(Scratch&& other) noexcept { return swap(other), *this; }
    ~Scratch();

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    friend class ScratchArena;
    void swap(Scratch& other) noexcept {
        std::swap(arena_, other.arena_), std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    }
    ScratchArena* arena_ = nullptr;  // null: the caller's memory, nothing to give back
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

class ScratchArena {
public:
    ScratchArena();
    ScratchArena(const ScratchArena&) = delete;
    ScratchArena& operator=(const ScratchArena&) = delete;

    /// At least `bytes`, aligned to 64, contents undefined. Allocates only where no kept block is large enough. Throws
    /// Error(bad_input) where the machine has not that much memory. bytes == 0 gives an empty block.
    Scratch take(std::size_t bytes);

    /// The caller's workspace where there is one, else take(bytes). Throws Error(usage) where it is too small.
    Scratch take(std::size_t bytes, const Workspace& workspace);

    /// `wanted` bytes where the workspace has them, or where, without one, they are half of the free memory at most; else `least`, likewise.
    Scratch take(std::size_t wanted, std::size_t least, const Workspace& workspace);

    /// Bytes held, on loan or not, now and at most so far.
    std::size_t held_bytes() const noexcept;
    std::size_t peak_bytes() const noexcept;

private:
    friend class Scratch;
    struct Slot {
        AlignedBuffer block;
        bool lent = false;
    };
    void grow(AlignedBuffer& block, std::size_t bytes);
    void give_back(void* data) noexcept;
    std::size_t largest_free() const noexcept;

    mutable std::mutex mutex_;
    std::vector<Slot> slots_;
    std::size_t held_ = 0, peak_ = 0;
};

}  // namespace trifold::devices
