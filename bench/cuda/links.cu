// SPDX-License-Identifier: BSD-3-Clause
// usage: cuda_links_bench [OUT.json] [SECONDS of one case] [MiB of an array]
//
// What the cores and the link to the GPU take from the host's memory, alone and side by side: the inputs of the contention model
// (docs/algorithms/split_model.md). Cores: the stream of a solve (4 read, 1 written past the caches), or solves of one dominant system. Link: copies
// of 32 MiB between pinned memory and the GPU, in one direction, in both, or 4 in for 1 out as a solve moves them. All of a case run for the
// same time; rates are what was finished between two clocks.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "bench/cuda/gpu_record.hpp"
#include "devices/stream.hpp"
#include "devices/threads.hpp"
#include "trifold/trifold.hpp"

namespace trifold::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Calls work(k) for k = 0 … threads-1, each on a thread of its own.
template <class F>
void on_threads(int threads, const F& work) {
    std::vector<std::thread> team;
    for (int k = 0; k < threads; ++k) team.emplace_back(work, k);
    for (std::thread& thread : team) thread.join();
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Five arrays of a solve on the host, and pinned ones with their counterparts on the GPU.
struct Memory {
    std::size_t bytes;  ///< of one array
    AlignedBuffer host[5];
    AlignedBuffer pageable;
    unsigned char *in = nullptr, *out = nullptr, *device = nullptr;

    explicit Memory(std::size_t bytes) : bytes(bytes) {
        for (AlignedBuffer& buffer : host) buffer = AlignedBuffer(bytes);
        pageable = AlignedBuffer(bytes);
        const int team = devices::usable_cores();
        const std::size_t part = bytes / static_cast<std::size_t>(team);
        on_threads(team, [&](int k) {
            const std::size_t first = part * static_cast<std::size_t>(k), count = k + 1 < team ? part : bytes - first;
            for (AlignedBuffer& buffer : host) std::memset(static_cast<unsigned char*>(buffer.data()) + first, 0, count);
            std::memset(static_cast<unsigned char*>(pageable.data()) + first, 1, count);
        });
        check(cudaMallocHost(&in, 2 * bytes), "pinned memory"), check(cudaMallocHost(&out, bytes), "pinned memory");
        check(cudaMalloc(&device, 2 * bytes), "memory of the GPU");
        std::memset(in, 1, 2 * bytes), std::memset(out, 1, bytes);
    }
    ~Memory() { cudaFreeHost(in), cudaFreeHost(out), cudaFree(device); }

    template <class T>
    void fill() {
        const std::size_t rows = bytes / sizeof(T);
        const int team = devices::usable_cores();
        on_threads(team, [&](int k) {
            const auto share = [&](int n) { return rows * static_cast<std::size_t>(n) / static_cast<std::size_t>(team); };
            for (std::size_t i = share(k); i < share(k + 1); ++i) {
                const double noise = static_cast<double>((i * 0x9e3779b97f4a7c15u) >> 40) * 0x1p-24;
                static_cast<T*>(host[0].data())[i] = static_cast<T>(noise - 1), static_cast<T*>(host[2].data())[i] = static_cast<T>(-noise);
                static_cast<T*>(host[1].data())[i] = static_cast<T>(4 + noise), static_cast<T*>(host[3].data())[i] = static_cast<T>(noise);
            }
        });
    }
};

enum class Work { none, stream, solve_f32, solve_f64 };
enum class Link { none, in, out, both, solve, pageable_in, pageable_out };

constexpr const char* work_names[] = {"", "stream", "solve f32", "solve f64"};
constexpr const char* link_names[] = {"", "in", "out", "in and out", "4 in, 1 out", "pageable in", "pageable out"};

struct Counters {
    std::atomic<std::int64_t> core_bytes{0}, in_bytes{0}, out_bytes{0};
    std::atomic<bool> stop{false};
};

void stream_on(const Memory& memory, int threads, Counters& counters) {
    constexpr std::size_t block = std::size_t{1} << 20;
    devices::StreamArrays arrays;
    for (int k = 0; k < 4; ++k) arrays.read[k] = static_cast<const unsigned char*>(memory.host[k].data());
    arrays.reads = 4, arrays.write = const_cast<unsigned char*>(static_cast<const unsigned char*>(memory.host[4].data()));
    on_threads(threads, [&](int k) {
        const std::size_t part = memory.bytes / static_cast<std::size_t>(threads) / block * block;
        const std::size_t first = part * static_cast<std::size_t>(k);
        for (std::size_t at = 0; !counters.stop; at = at + block < part ? at + block : 0) {
            devices::stream_pass(arrays, devices::Store::past_cache, {}, first + at, first + at + block);
            counters.core_bytes += 5 * block;
        }
    });
}

template <class T>
void solve_on(const Memory& memory, int threads, Counters& counters) {
    const auto rows = memory.bytes / sizeof(T);
    const auto view = [&](int k) { return View<const T>::rows(std::span(static_cast<const T*>(memory.host[k].data()), rows)); };
    tridiagonal::Problem problem;
    problem.matrix = {view(0), view(1), view(2)};
    problem.rhs = view(3);
    problem.x = View<T>::rows(std::span(const_cast<T*>(static_cast<const T*>(memory.host[4].data())), rows));
    Context context({.threads = threads, .profile_path = "none", .log = {}});
    Queue queue(context);
    while (!counters.stop) {
        const Outcome outcome = tridiagonal::solve(queue, problem);
        if (!outcome.ok()) std::fprintf(stderr, "cpu: %s\n", name_of(outcome.reason)), std::exit(1);
        counters.core_bytes += static_cast<std::int64_t>(5 * memory.bytes);
    }
}

/// Copies in one direction until told to stop, four in flight; `weight` of every `of` slots is used, so that directions keep a ratio.
class Lane {
public:
    Lane(const Memory& memory, bool in, std::atomic<std::int64_t>& bytes) : memory_(memory), in_(in), bytes_(bytes) {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
        for (cudaEvent_t& event : events_) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync), "event");
    }
    ~Lane() {
        cudaStreamSynchronize(stream_);
        for (const cudaEvent_t event : events_) cudaEventDestroy(event);
        cudaStreamDestroy(stream_);
    }

    void step() {
        const std::size_t slot = count_ % depth, room = (in_ ? 2 : 1) * memory_.bytes, at = count_ * piece % room;
        if (count_ >= depth) check(cudaEventSynchronize(events_[slot]), "copy"), bytes_ += piece;
        check(in_ ? cudaMemcpyAsync(memory_.device + at, memory_.in + at, piece, cudaMemcpyHostToDevice, stream_)
                  : cudaMemcpyAsync(memory_.out + at, memory_.device + at, piece, cudaMemcpyDeviceToHost, stream_),
              "copy");
        check(cudaEventRecord(events_[slot], stream_), "event");
        ++count_;
    }

private:
    static constexpr std::size_t depth = 4, piece = std::size_t{32} << 20;
    const Memory& memory_;
    bool in_;
    std::atomic<std::int64_t>& bytes_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t events_[depth] = {};
    std::size_t count_ = 0;
};

/// `duty`: share of the time in which copies are under way.
void copy_on(const Memory& memory, Link link, double duty, Counters& counters) {
    if (link == Link::pageable_in || link == Link::pageable_out) {
        const std::size_t piece = std::size_t{32} << 20;
        auto* host = static_cast<unsigned char*>(const_cast<void*>(static_cast<const void*>(memory.pageable.data())));
        for (std::size_t at = 0; !counters.stop; at = at + 2 * piece <= memory.bytes ? at + piece : 0) {
            const bool in = link == Link::pageable_in;
            check(in ? cudaMemcpy(memory.device + at, host + at, piece, cudaMemcpyHostToDevice) : cudaMemcpy(host + at, memory.device + at, piece, cudaMemcpyDeviceToHost), "copy");
            (in ? counters.in_bytes : counters.out_bytes) += piece;
        }
        return;
    }
    std::vector<std::thread> lanes;
    const auto lane = [&](bool in) {
        Lane lane(memory, in, in ? counters.in_bytes : counters.out_bytes);
        auto from = Clock::now();
        while (!counters.stop) {
            // As a solve moves them: a copy out for every four in.
            if (link == Link::solve && !in && 4 * counters.out_bytes > counters.in_bytes) {
                std::this_thread::sleep_for(std::chrono::microseconds(50));
                continue;
            }
            lane.step();
            if (duty < 1) {
                std::this_thread::sleep_for(std::chrono::duration<double>(seconds_since(from) * (1 - duty) / duty));
                from = Clock::now();
            }
        }
    };
    if (link != Link::out) lanes.emplace_back(lane, true);
    if (link != Link::in) lanes.emplace_back(lane, false);
    for (std::thread& thread : lanes) thread.join();
}

void run(const Memory& memory, Work work, int threads, Link link, double duty, double seconds, nlohmann::ordered_json& rows) {
    Counters counters;
    std::thread cores([&] {
        if (work == Work::stream) stream_on(memory, threads, counters);
        if (work == Work::solve_f32) solve_on<float>(memory, threads, counters);
        if (work == Work::solve_f64) solve_on<double>(memory, threads, counters);
    });
    std::thread copies([&] {
        if (link != Link::none) copy_on(memory, link, duty, counters);
    });
    std::this_thread::sleep_for(std::chrono::duration<double>(0.3 * seconds));
    const auto start = Clock::now();
    const std::int64_t before[] = {counters.core_bytes, counters.in_bytes, counters.out_bytes};
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const std::int64_t after[] = {counters.core_bytes, counters.in_bytes, counters.out_bytes};
    const double passed = seconds_since(start);
    counters.stop = true;
    cores.join(), copies.join();
    const auto rate = [&](int k) { return static_cast<double>(after[k] - before[k]) / passed * 1e-9; };
    rows.push_back({{"cores", work_names[static_cast<int>(work)]}, {"threads", work == Work::none ? 0 : threads}, {"link", link_names[static_cast<int>(link)]},
                    {"duty", link == Link::none ? 0 : duty}, {"cores_gb_per_s", rate(0)}, {"in_gb_per_s", rate(1)}, {"out_gb_per_s", rate(2)}});
    std::printf("%-9s %2d threads | %-12s duty %.2f | cores %6.1f  in %5.1f  out %5.1f  sum %6.1f GB/s\n", work_names[static_cast<int>(work)], work == Work::none ? 0 : threads,
                link_names[static_cast<int>(link)], duty, rate(0), rate(1), rate(2), rate(0) + rate(1) + rate(2));
    std::fflush(stdout);
}

/// Seconds to pin and to release memory that is there already.
void pin(Memory& memory, nlohmann::ordered_json& record) {
    auto start = Clock::now();
    check(cudaHostRegister(memory.pageable.data(), memory.bytes, cudaHostRegisterDefault), "pin");
    const double there = seconds_since(start);
    start = Clock::now();
    check(cudaHostUnregister(memory.pageable.data()), "release");
    const double back = seconds_since(start), bytes = static_cast<double>(memory.bytes);
    record["pin_gb_per_s"] = bytes / there * 1e-9, record["unpin_gb_per_s"] = bytes / back * 1e-9;
    std::printf("pinning %.1f GB/s, releasing %.1f GB/s\n", bytes / there * 1e-9, bytes / back * 1e-9);
}

int main_of(int argc, char** argv) {
    const std::string path = argc > 1 ? argv[1] : "";
    if (path.starts_with("-")) return std::fprintf(stderr, "usage: cuda_links_bench [FILE [SECONDS [MIB]]]\n"), 2;
    const double seconds = argc > 2 ? std::max(0.01, std::atof(argv[2])) : 0.5;
    const std::size_t mib = argc > 3 ? static_cast<std::size_t>(std::max(64, std::atoi(argv[3]))) : 512;
    check(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync), "no device");
    nlohmann::ordered_json record = gpu_record("cuda_links", "Cores and link side by side: what they take from the host's memory");
    const auto start = Clock::now();
    Memory memory(mib << 20);
    std::printf("memory ready after %.1f s\n", seconds_since(start));
    const int all = devices::usable_cores();
    record["machine"]["cores"] = all;
    pin(memory, record);
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    const auto measure = [&](Work work, int threads, Link link, double duty = 1) { run(memory, work, threads, link, duty, seconds, rows); };
    for (const Link link : {Link::in, Link::out, Link::both, Link::solve, Link::pageable_in, Link::pageable_out}) measure(Work::none, 0, link);
    for (int threads = 1; threads < all; threads *= 2) measure(Work::stream, threads, Link::none);
    if (all > 2) measure(Work::stream, all - 1, Link::none);
    measure(Work::stream, all, Link::none);
    for (const Link link : {Link::in, Link::out, Link::both, Link::solve, Link::pageable_in})
        for (const int threads : {all / 2, all - 1, all})
            if (threads > 0) measure(Work::stream, threads, link);
    for (const double duty : {0.25, 0.5, 0.75}) measure(Work::stream, all, Link::solve, duty);
    for (const Work work : {Work::solve_f32, Work::solve_f64}) {
        work == Work::solve_f32 ? memory.fill<float>() : memory.fill<double>();
        for (const int threads : {all / 2, all - 2, all - 1, all})
            if (threads > 0)
                for (const Link link : {Link::none, Link::solve}) measure(work, threads, link);
    }
    record["rows"] = rows;
    return write_record(record, path) ? 0 : 1;
}

}  // namespace
}  // namespace trifold::bench

int main(int argc, char** argv) { return trifold::bench::main_of(argc, argv); }
