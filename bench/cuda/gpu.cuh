// SPDX-License-Identifier: BSD-3-Clause
// What the benchmarks on the GPU share: arrays of random numbers, the roof, times by events, an accurate residual.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace trifold::bench {

/// Ends the program (exit status 5) where `code` is an error.
inline void check(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
    std::exit(5);
}

/// A number in [0, 1) from a seed and a position.
__device__ inline double uniform(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t z = seed * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

template <class T>
__global__ void fill(T* to, std::int64_t count, int seed, T low, T high) {
    for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < count; i += std::int64_t(gridDim.x) * blockDim.x)
        to[i] = low + (high - low) * T(uniform(seed, i));
}

template <class T>
void fill_array(T* to, std::int64_t count, int seed, T low, T high) {
    fill<<<4096, 256>>>(to, count, seed, low, high);
}

/// One row's rhs - A x, its products and sums as exact as two doubles are.
struct RowResidual {
    double high, low = 0, sum = 0;  ///< sum: of the row's magnitudes
    __device__ explicit RowResidual(double rhs) : high(rhs) {}
    __device__ void subtract(double m, double x) {
        const double p = -m * x, e = fma(-m, x, -p), s = high + p, v = s - high;
        low += (high - (s - v)) + (p - v) + e;
        high = s, sum += fabs(m);
    }
    __device__ double value() const { return fabs(high + low); }
};

inline double median(std::vector<float> v) {
    if (v.empty()) return NAN;
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

__global__ inline void keep_busy(unsigned long long nanoseconds) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < nanoseconds);
}

/// Milliseconds on the GPU between two events around what is enqueued on `stream`.
class EventTimer {
public:
    explicit EventTimer(cudaStream_t stream = nullptr) : stream_(stream) { cudaEventCreate(&begin_), cudaEventCreate(&end_); }
    ~EventTimer() { cudaEventDestroy(begin_), cudaEventDestroy(end_); }
    EventTimer(const EventTimer&) = delete;
    EventTimer& operator=(const EventTimer&) = delete;

    template <class F>
    float operator()(F call) {
        cudaEventRecord(begin_, stream_);
        call();
        cudaEventRecord(end_, stream_);
        check(cudaEventSynchronize(end_), "what was timed");
        float ms = 0;
        cudaEventElapsedTime(&ms, begin_, end_);
        return ms;
    }

    /// The same of what is enqueued while the GPU is still busy with something else: without the host's share of the launches.
    template <class F>
    float queued(F call) {
        keep_busy<<<1, 1, 0, stream_>>>(100'000);
        return (*this)(call);
    }

private:
    cudaStream_t stream_;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// What `call` enqueues on the stream, so many times, as one graph.
template <class F>
cudaGraphExec_t graph_of(cudaStream_t stream, int times, F call) {
    cudaGraph_t recorded = nullptr;
    cudaGraphExec_t made = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    for (int k = 0; k < times; ++k) call();
    check(cudaStreamEndCapture(stream, &recorded), "capture");
    check(cudaGraphInstantiate(&made, recorded, 0), "graph");
    cudaGraphDestroy(recorded);
    return made;
}

namespace detail {

template <int Reads, int N>
__global__ void stream(const int4* a, const int4* b, const int4* c, const int4* d, int4* x) {
    const std::int64_t first = blockIdx.x * std::int64_t(N * blockDim.x) + threadIdx.x;
    int4 v[Reads][N];
    const int4* const from[4] = {a, b, c, d};
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
        for (int r = 0; r < Reads; ++r) v[r][n] = __ldcs(from[r] + first + n * blockDim.x);
#pragma unroll
    for (int n = 0; n < N; ++n) {
        int4 sum = v[0][n];
#pragma unroll
        for (int r = 1; r < Reads; ++r) sum = make_int4(sum.x ^ v[r][n].x, sum.y ^ v[r][n].y, sum.z ^ v[r][n].z, sum.w ^ v[r][n].w);
        __stcs(x + first + n * blockDim.x, sum);
    }
}

}  // namespace detail

/// The roof: the best of several streams that read `reads` (1 … 4) arrays and write one. Arrays have `bytes` bytes, what is
/// beyond the last multiple of 32 KiB is left out of the pass and of `bytes_moved`.
class StreamRoof {
public:
    StreamRoof(const void* const (&read)[4], void* write, std::size_t bytes, int reads = 4) : write_(write), bytes_(bytes / 32768 * 32768), reads_(reads) {
        for (int r = 0; r < 4; ++r) read_[r] = static_cast<const int4*>(read[r]);
        EventTimer time;
        for (int way = 0; way < 6; ++way) {
            way_ = way;
            std::vector<float> times;
            for (int round = 0; round < 9; ++round) times.push_back(time([&] { pass(); }));
            if (median(times) < best_ms_) best_ms_ = median(times), best_ = way;
        }
        way_ = best_;
    }

    /// Enqueues the best one once more: to be timed in turns with what it is the roof of. The better figure of both counts.
    void pass(cudaStream_t stream = nullptr) const {
        if (reads_ == 4) enqueue<4>(stream);
        else if (reads_ == 3) enqueue<3>(stream);
        else if (reads_ == 2) enqueue<2>(stream);
        else enqueue<1>(stream);
    }

    double bytes_moved() const { return static_cast<double>(bytes_) * (reads_ + 1); }
    double best_ms() const { return best_ms_; }
    double gb_per_s(double ms) const { return bytes_moved() / std::min(ms, best_ms_) / 1e6; }

private:
    template <int Reads>
    void enqueue(cudaStream_t stream) const {
        const unsigned threads = way_ % 2 ? 512 : 256, each = 1u << way_ / 2;
        const auto blocks = static_cast<unsigned>(bytes_ / sizeof(int4) / threads / each);
        const auto call = [&](auto kernel) { kernel<<<blocks, threads, 0, stream>>>(read_[0], read_[1], read_[2], read_[3], static_cast<int4*>(write_)); };
        if (each == 1) call(detail::stream<Reads, 1>);
        else if (each == 2) call(detail::stream<Reads, 2>);
        else call(detail::stream<Reads, 4>);
    }

    const int4* read_[4];
    void* write_;
    std::size_t bytes_;
    int reads_, way_ = 0, best_ = 0;
    double best_ms_ = 1e30;
};

}  // namespace trifold::bench
