// SPDX-License-Identifier: BSD-3-Clause
#include "base/aligned_buffer.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace trifold {

AlignedBuffer::AlignedBuffer(std::size_t bytes) {
    constexpr std::size_t line = 64, huge_page = std::size_t{2} << 20;
    const bool large = bytes >= 2 * huge_page;
    const std::size_t alignment = large ? huge_page : line;
    if (bytes > std::numeric_limits<std::size_t>::max() - alignment) throw std::bad_alloc();
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    data_ = std::aligned_alloc(alignment, rounded ? rounded : line);
    if (!data_) throw std::bad_alloc();
    bytes_ = bytes;
    // A refusal costs speed only.
    if (large) (void)madvise(data_, rounded, MADV_HUGEPAGE);
}

AlignedBuffer AlignedBuffer::addresses_only(std::size_t bytes) {
    AlignedBuffer buffer;
    void* address = mmap(nullptr, bytes ? bytes : 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) throw std::bad_alloc();
    buffer.data_ = address;
    buffer.bytes_ = bytes;
    buffer.mapped_ = true;
    return buffer;
}

void AlignedBuffer::swap(AlignedBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
}

void AlignedBuffer::release() noexcept {
    if (mapped_)
        munmap(data_, bytes_ ? bytes_ : 1);
    else
        std::free(data_);
}

}  // namespace trifold
