// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

namespace trifold::opencl {
namespace {

struct Block {
    std::size_t bytes;
    int device;
    cl::Buffer buffer;
};

std::mutex& mutex() {
    static std::mutex* const one = new std::mutex;
    return *one;
}

std::map<std::uintptr_t, Block>& blocks() {
    static auto* const all = new std::map<std::uintptr_t, Block>;  // never given back: drivers end before us
    return *all;
}

/// Under the mutex.
std::map<std::uintptr_t, Block>::const_iterator block_of(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto& all = blocks();
    auto next = all.upper_bound(at);
    if (next == all.begin()) return all.end();
    return at - (--next)->first < next->second.bytes ? next : all.end();
}

}  // namespace

void size_text(char (&out)[32], std::size_t bytes) {
    const double b = static_cast<double>(bytes);
    if (b >= 1 << 30) std::snprintf(out, sizeof out, "%.1f GiB", b / (1 << 30));
    else if (b >= 1 << 20) std::snprintf(out, sizeof out, "%.0f MiB", b / (1 << 20));
    else std::snprintf(out, sizeof out, "%zu bytes", bytes);
}

void* reserve(int device, std::size_t bytes) {
    cl::Buffer buffer(open_device(device).context, CL_MEM_READ_WRITE, bytes);
    void* const range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) throw cl::Error(CL_OUT_OF_HOST_MEMORY, "mmap");
    const std::lock_guard lock(mutex());
    blocks()[reinterpret_cast<std::uintptr_t>(range)] = {bytes, device, buffer};
    return range;
}

void give_back(void* address) {
    ++buffers_given_back;
    Block block;
    {
        const std::lock_guard lock(mutex());
        const auto found = blocks().find(reinterpret_cast<std::uintptr_t>(address));
        if (found == blocks().end()) return;
        block = found->second;
        blocks().erase(found);
    }
    munmap(address, block.bytes);
}

std::size_t reserved(int device) {
    const std::lock_guard lock(mutex());
    std::size_t sum = 0;
    for (const auto& [address, block] : blocks())
        if (block.device == device) sum += block.bytes;
    return sum;
}

Place place_of(const void* address) {
    const std::lock_guard lock(mutex());
    const auto there = block_of(address);
    if (there == blocks().end()) return {};
    return {there->second.buffer, reinterpret_cast<std::uintptr_t>(address) - there->first, there->second.device};
}

int device_of(const void* address) {
    const std::lock_guard lock(mutex());
    const auto there = block_of(address);
    return there == blocks().end() ? -1 : there->second.device;
}

void Touched::add(const void* first, const void* last, bool written) {
    if (!device_.info.in_host_memory) return;
    runs_.push_back({reinterpret_cast<std::uintptr_t>(first), reinterpret_cast<std::uintptr_t>(last), written, {}});
}

void Touched::make() {
    if (!device_.info.in_host_memory) return;
    // What several buffers do to the same memory is undefined: one for all that overlap.
    std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
    std::vector<Run> merged;
    for (const Run& run : runs_)
        if (!merged.empty() && run.first <= merged.back().last) merged.back().last = std::max(merged.back().last, run.last), merged.back().written |= run.written;
        else merged.push_back(run);
    runs_ = std::move(merged);
    for (const Run& run : runs_)
        if (run.last - run.first >= device_.info.largest_block) {
            char all[32], most[32], message[200];
            size_text(all, run.last - run.first + 1), size_text(most, device_.info.largest_block);
            std::snprintf(message, sizeof message, "an array reaches over %s of memory, and its driver takes at most %s at once", all, most);
            Stop stop;
            stop.failure.say(ErrorCode::bad_input, message, "solve fewer rows or systems at a time, use f32, or take device 'cpu'");
            throw stop;
        }
    for (Run& run : runs_)
        run.buffer = cl::Buffer(device_.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, run.last - run.first + 1, reinterpret_cast<void*>(run.first));
}

Place Touched::at(const void* address) const {
    if (!device_.info.in_host_memory) return place_of(address);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (const Run& run : runs_)
        if (run.first <= at && at <= run.last) return {run.buffer, at - run.first, 0};
    return {};
}

void Touched::to_host() {
    if (device_.info.in_host_memory)
        for (Run& run : runs_) {
            if (!run.written) continue;
            void* const mapped = device_.main.queue.enqueueMapBuffer(run.buffer, CL_FALSE, CL_MAP_READ, 0, run.last - run.first + 1);
            device_.main.queue.enqueueUnmapMemObject(run.buffer, mapped);
        }
    device_.main.queue.finish();
}

Touched::~Touched() {
    if (!runs_.empty()) ++buffers_given_back;
    // Kernels that still run after a failure must not outlive what they write to.
    if (device_.info.in_host_memory) device_.settle();
}

}  // namespace trifold::opencl
