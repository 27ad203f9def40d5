// SPDX-License-Identifier: BSD-3-Clause
#include "base/aligned_buffer.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace trifold {

// Eight buffers in a row begin five lines apart within a page, large ones a page more; which one a buffer gets does not matter.
static std::size_t next_stagger(std::size_t page) {
    static std::atomic<unsigned> made{0};
    return (made.fetch_add(1, std::memory_order_relaxed) % 8) * (page + 5 * 64);
}

AlignedBuffer::AlignedBuffer(std::size_t bytes) {
    constexpr std::size_t line = 64, huge_page = std::size_t{2} << 20;
    const bool large = bytes >= 2 * huge_page;
    const std::size_t alignment = large ? huge_page : line, stagger = large ? next_stagger(4096) : bytes >= (std::size_t{32} << 10) ? next_stagger(0) : 0;
    if (bytes > std::numeric_limits<std::size_t>::max() - 2 * huge_page) throw std::bad_alloc();
    const std::size_t rounded = (bytes + stagger + alignment - 1) / alignment * alignment;
    base_ = std::aligned_alloc(alignment, rounded ? rounded : line);
    if (!base_) throw std::bad_alloc();
    data_ = static_cast<char*>(base_) + stagger;
    bytes_ = bytes;
    // A refusal costs speed only.
    if (large) (void)madvise(base_, rounded, MADV_HUGEPAGE);
}

AlignedBuffer AlignedBuffer::addresses_only(std::size_t bytes) {
    AlignedBuffer buffer;
    void* address = mmap(nullptr, bytes ? bytes : 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) throw std::bad_alloc();
    buffer.base_ = buffer.data_ = address;
    buffer.bytes_ = bytes;
    buffer.mapped_ = true;
    return buffer;
}

void AlignedBuffer::swap(AlignedBuffer& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
}

void AlignedBuffer::release() noexcept {
    if (mapped_)
        munmap(base_, bytes_ ? bytes_ : 1);
    else
        std::free(base_);
}

}  // namespace trifold
