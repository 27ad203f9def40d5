// SPDX-License-Identifier: BSD-3-Clause
// What a driver may still touch after a call to it that has not returned: it stays until the process ends, and who looks for leaks finds who has it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace trifold {

template <class T>
void keep_for_good(std::unique_ptr<T> what) noexcept {
    if (!what) return;
    try {
        static std::mutex* const mutex = new std::mutex;
        static auto* const kept = new std::vector<std::unique_ptr<T>>;
        const std::lock_guard lock(*mutex);
        kept->push_back(std::move(what));
    } catch (...) {
        static_cast<void>(what.release());
    }
}

}  // namespace trifold
