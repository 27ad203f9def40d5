// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/beside.hpp"

#include <map>
#include <mutex>

#include "backends/cuda/runtime/runtime.hpp"

namespace trifold::cuda::streaming {
namespace {

std::mutex mutex;

}  // namespace

// Made once and kept until the process ends, as compiled programs are.
std::vector<Beside::One>& Beside::idle(int device) {
    static auto* const all = new std::map<int, std::vector<One>>;
    return (*all)[device];
}

bool Beside::begin(cudaStream_t caller, int count, Failure& failure) {
    if (count == 1) return streams_.push_back({caller, {}}), true;
    if (!good(cudaGetDevice(&device_), "asking for the device", failure)) return false;
    for (int k = 0; k < count; ++k) {
        One one;
        {
            const std::lock_guard lock(mutex);
            if (auto& found = idle(device_); !found.empty()) one = found.back(), found.pop_back();
        }
        if (!one.stream) {
            if (!good(cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking), "making a stream", failure)) return false;
            for (cudaEvent_t& event : one.event)
                if (!good(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event", failure)) return false;
        }
        streams_.push_back(one);
    }
    // The first one lends its events only.
    own_ = streams_[0].stream;
    streams_[0].stream = caller;
    ended_ = false;
    if (!good(cudaEventRecord(streams_[0].event[0], caller), "recording an event", failure)) return false;
    for (std::size_t k = 1; k < streams_.size(); ++k)
        if (!good(cudaStreamWaitEvent(streams_[k].stream, streams_[0].event[0], 0), "waiting for another stream", failure)) return false;
    return true;
}

bool Beside::done(int group, std::int64_t sweep, Failure& failure) {
    if (streams_.size() == 1) return true;
    const One& own = streams_[static_cast<std::size_t>(group)];
    return good(cudaEventRecord(own.event[static_cast<std::size_t>(sweep % 3)], own.stream), "recording an event", failure);
}

bool Beside::after_others(int group, std::int64_t sweep, Failure& failure) {
    for (std::size_t k = 0; k < streams_.size(); ++k)
        if (k != static_cast<std::size_t>(group) && !good(cudaStreamWaitEvent(stream(group), streams_[k].event[static_cast<std::size_t>(sweep % 3)], 0), "waiting for another stream", failure)) return false;
    return true;
}

bool Beside::end(Failure& failure) {
    ended_ = true;
    for (std::size_t k = 1; k < streams_.size(); ++k) {
        if (!good(cudaEventRecord(streams_[k].event[0], streams_[k].stream), "recording an event", failure)) return false;
        if (!good(cudaStreamWaitEvent(streams_[0].stream, streams_[k].event[0], 0), "waiting for another stream", failure)) return false;
    }
    return true;
}

Beside::~Beside() {
    Failure unheard;
    if (!ended_) end(unheard);
    if (own_) streams_[0].stream = own_;
    else streams_.clear();  // the caller's, or none
    const std::lock_guard lock(mutex);
    for (const One& one : streams_) idle(device_).push_back(one);
}

}  // namespace trifold::cuda::streaming
