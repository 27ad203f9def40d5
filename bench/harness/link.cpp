// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/link.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trifold/error.hpp"

namespace trifold::bench {
namespace {

constexpr int depth = 4;  // copies of one direction that are under way

}  // namespace

struct Link::Counters {
    std::atomic<std::int64_t> in{0}, out{0};
    std::atomic<bool> stop{false}, failed{false};
    std::string why;  // written by the lane that set `failed`
};

Link::Link(const Device& device, std::vector<const void*> in, void* out, std::size_t bytes) : device_(device), in_(std::move(in)), out_(static_cast<char*>(out)), bytes_(bytes) {
    const devices::Runtime* runtime = device.runtime;
    if (!runtime || !runtime->open_stream) throw Error(ErrorCode::usage, device.name, "has no queues beside the user's");
    if (bytes < piece) throw Error(ErrorCode::usage, device.name, "needs larger arrays to copy");
    Failure failure;
    if (!runtime->allocate(device.number, 2 * depth * piece, &memory_, failure)) failure.raise(device.name);
}

Link::~Link() { device_.runtime->release(device_.number, memory_); }

void Link::lane(bool in, Direction direction, Counters& counters) const {
    const devices::Runtime& runtime = *device_.runtime;
    Failure failure;
    void* streams[depth] = {};
    bool good = true;
    for (void*& stream : streams) good = good && runtime.open_stream(device_.number, &stream, failure);
    const std::size_t room = bytes_ / piece, arrays = in ? in_.size() : 1;
    for (std::size_t count = 0; good && !counters.stop; ++count) {
        if (direction == Direction::solve && !in && 4 * counters.out > counters.in) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
            continue;
        }
        const std::size_t slot = count % depth, at = count / arrays % room * piece;
        if (count >= depth) {
            good = runtime.synchronize(device_.number, streams[slot], failure);
            (in ? counters.in : counters.out) += piece;
        }
        char* const there = static_cast<char*>(memory_) + ((in ? 0 : depth) + slot) * piece;
        good = good && runtime.copy(device_.number, streams[slot], in ? there : out_ + at, in ? static_cast<const char*>(in_[count % arrays]) + at : there, piece, failure);
    }
    for (void* stream : streams) {
        if (!stream) continue;
        good = runtime.synchronize(device_.number, stream, failure) && good;
        runtime.close_stream(device_.number, stream);
    }
    if (!good && !counters.failed.exchange(true)) counters.why = failure.message;
}

LinkRates Link::during(Direction direction, const std::function<void()>& work) const {
    using Clock = std::chrono::steady_clock;
    Counters counters;
    std::vector<std::thread> lanes;
    if (direction != Direction::from) lanes.emplace_back([&] { lane(true, direction, counters); });
    if (direction != Direction::to) lanes.emplace_back([&] { lane(false, direction, counters); });
    const auto under_way = [&] { return (direction == Direction::from || counters.in > 0) && (direction == Direction::to || counters.out > 0); };
    while (!under_way() && !counters.failed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto start = Clock::now();
    const double in = static_cast<double>(counters.in), out = static_cast<double>(counters.out);
    work();
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    const LinkRates rates{(static_cast<double>(counters.in) - in) / passed, (static_cast<double>(counters.out) - out) / passed};
    counters.stop = true;
    for (std::thread& thread : lanes) thread.join();
    if (counters.failed) throw Error(ErrorCode::device_unavailable, device_.name, counters.why);
    return rates;
}

LinkRates Link::alone(Direction direction, double seconds) const {
    return during(direction, [&] { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); });
}

}  // namespace trifold::bench
