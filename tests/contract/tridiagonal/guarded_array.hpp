// SPDX-License-Identifier: BSD-3-Clause
// Memory between two pages that may not be touched, for arrays of which every element may be read and nothing beside them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace trifold::tests {

template <class T>
class GuardedArray {
public:
    GuardedArray() = default;
    /// The last element ends where its page does, or the first one begins there.
    GuardedArray(std::int64_t size, bool at_the_end) : size_(size) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes = static_cast<std::size_t>(size) * sizeof(T), inside = (bytes + page - 1) / page * page;
        mapped_ = inside + 2 * page;
        memory_ = static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (memory_ == MAP_FAILED) throw std::bad_alloc();
        if (inside > 0 && mprotect(memory_ + page, inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        data_ = reinterpret_cast<T*>(memory_ + page + (at_the_end ? inside - bytes : 0));
    }
    GuardedArray(GuardedArray&& other) noexcept { swap(other); }
    GuardedArray& operator=(GuardedArray&& other) noexcept { return swap(other), *this; }
    ~GuardedArray() {
        if (memory_) munmap(memory_, mapped_);
    }

    T* data() const { return data_; }
    std::int64_t size() const { return size_; }

private:
    void swap(GuardedArray& other) noexcept { std::swap(memory_, other.memory_), std::swap(mapped_, other.mapped_), std::swap(data_, other.data_), std::swap(size_, other.size_); }
    std::byte* memory_ = nullptr;
    std::size_t mapped_ = 0;
    T* data_ = nullptr;
    std::int64_t size_ = 0;
};

}  // namespace trifold::tests
