// SPDX-License-Identifier: BSD-3-Clause
// The C library lets a program bring its own malloc; ours counts and passes on.
#include "bench/harness/allocations.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

static std::atomic<std::int64_t> count{0};

static void counted() noexcept { count.fetch_add(1, std::memory_order_relaxed); }

// A sanitizer brings its own malloc, and then nothing is counted.
#if defined(__has_feature)
#define TRIFOLD_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRIFOLD_SANITIZED 1
#else
#define TRIFOLD_SANITIZED 0
#endif
#if !TRIFOLD_SANITIZED
extern "C" {
void* malloc(std::size_t bytes) { return counted(), __libc_malloc(bytes); }
void* calloc(std::size_t items, std::size_t bytes) { return counted(), __libc_calloc(items, bytes); }
void* realloc(void* block, std::size_t bytes) { return counted(), __libc_realloc(block, bytes); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return counted(), __libc_memalign(alignment, bytes); }
void* memalign(std::size_t alignment, std::size_t bytes) { return counted(), __libc_memalign(alignment, bytes); }
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
    counted();
    *block = __libc_memalign(alignment, bytes);
    return *block ? 0 : ENOMEM;
}
void free(void* block) { __libc_free(block); }
}
#endif

namespace trifold::bench {

std::int64_t allocations() noexcept { return count.load(std::memory_order_relaxed); }

}  // namespace trifold::bench
