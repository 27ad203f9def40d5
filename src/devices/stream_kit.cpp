// SPDX-License-Identifier: BSD-3-Clause
#include "devices/stream_kit.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/keep_for_good.hpp"

namespace trifold::devices {
namespace {

constexpr std::align_val_t alignment{4096};

}  // namespace

StreamKit::~StreamKit() {
    release_memory();
    release_host();
    for (void* stream : {to, run, from})
        if (stream) runtime_.close_stream(device_, stream);
}

void StreamKit::release_memory() noexcept {
    if (memory_) runtime_.release(device_, memory_);
    memory_ = nullptr, memory_bytes_ = 0;
}

void StreamKit::release_host() noexcept {
    if (host_ && runtime_.release_pinned) runtime_.release_pinned(device_, host_);
    else if (host_) ::operator delete(host_, alignment);
    host_ = nullptr, host_bytes_ = 0;
}

bool StreamKit::prepare(std::size_t device_bytes, std::size_t host_bytes, Failure& failure) {
    if (runtime_.open_stream)
        for (void** stream : {&to, &run, &from})
            if (!*stream && !runtime_.open_stream(device_, stream, failure)) return false;
    if (device_bytes > memory_bytes_) {
        release_memory();
        if (!runtime_.allocate(device_, device_bytes, &memory_, failure)) return memory_ = nullptr, false;
        memory_bytes_ = device_bytes;
    }
    if (host_bytes > host_bytes_) {
        release_host();
        if (!runtime_.allocate_pinned) host_ = ::operator new(host_bytes, alignment, std::nothrow);
        else if (!runtime_.allocate_pinned(device_, host_bytes, &host_, failure)) return host_ = nullptr, false;
        if (!host_) return failure.say(ErrorCode::bad_input, "no memory on the host to stream through");
        host_bytes_ = host_bytes;
    }
    return true;
}

std::unique_ptr<StreamKit> StreamKits::take(const Runtime& runtime, int device) {
    const std::lock_guard lock(mutex_);
    for (auto at = kits_.begin(); at != kits_.end(); ++at) {
        if (&(*at)->runtime() != &runtime || (*at)->device() != device) continue;
        auto kit = std::move(*at);
        kits_.erase(at);
        return kit;
    }
    return std::make_unique<StreamKit>(runtime, device);
}

void StreamKits::give_back(std::unique_ptr<StreamKit> kit) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::count(left_behind_, std::pair(&kit->runtime(), kit->device())) > 0) return keep_for_good(std::move(kit));
    kits_.push_back(std::move(kit));
}

std::unique_ptr<ScratchArena> StreamKits::take_scratch() {
    const std::lock_guard lock(mutex_);
    if (scratch_.empty()) return std::make_unique<ScratchArena>();
    auto scratch = std::move(scratch_.back());
    scratch_.pop_back();
    return scratch;
}

void StreamKits::give_back(std::unique_ptr<ScratchArena> scratch) {
    const std::lock_guard lock(mutex_);
    scratch_.push_back(std::move(scratch));
}

void StreamKits::leave_behind(const Runtime& runtime, int device) {
    const std::lock_guard lock(mutex_);
    for (auto& kit : kits_)
        if (&kit->runtime() == &runtime && kit->device() == device) keep_for_good(std::move(kit));
    std::erase(kits_, nullptr);
    left_behind_.emplace_back(&runtime, device);
}

}  // namespace trifold::devices
