// SPDX-License-Identifier: BSD-3-Clause
// Owned, uninitialised memory for large arrays.
#pragma once

#include <cstddef>

namespace trifold {

/// Bytes aligned to 64; from 4 MiB on advised to lie in huge pages. From 32 KiB on begun at another offset within a page than the
/// buffers made before: streams at equal offsets delay each other's loads and stores. Pages belong to the thread that
/// first writes them, so let the threads that will use a part write it first. Moves, does not copy.
class AlignedBuffer {
public:
    AlignedBuffer() = default;

    /// Throws std::bad_alloc where the system refuses; see require_memory() for an answer in words.
    explicit AlignedBuffer(std::size_t bytes);

    /// Addresses without memory: for planning on shapes alone. Reading or writing them is a fault.
    static AlignedBuffer addresses_only(std::size_t bytes);

    ~AlignedBuffer() { release(); }
    AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
    AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
        AlignedBuffer taken(static_cast<AlignedBuffer&&>(other));
        swap(taken);
        return *this;
    }

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    void swap(AlignedBuffer& other) noexcept;
    void release() noexcept;

    void* base_ = nullptr;  // what was allocated
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool mapped_ = false;
};

}  // namespace trifold
