// SPDX-License-Identifier: BSD-3-Clause
// Where an array lives, and the scratch memory that a call needs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trifold {

enum class MemoryKind : std::uint8_t {
    host,        ///< pageable host memory
    registered,  ///< pinned host memory that a device can reach
    device,      ///< memory of device `index`
};

struct Memory {
    MemoryKind kind = MemoryKind::host;
    int index = 0;
    friend bool operator==(const Memory&, const Memory&) = default;
};

/// One block of scratch that a call uses and gives back: nothing in it outlives the call.
struct WorkspaceNeed {
    Memory memory;
    std::size_t bytes = 0;
    std::size_t alignment = 64;
};

/// Scratch supplied by the caller; empty = taken from the Context, which keeps it for the next call.
struct Workspace {
    void* data = nullptr;
    std::size_t bytes = 0;
};

}  // namespace trifold
