// SPDX-License-Identifier: BSD-3-Clause
// Batches on the GPU beside cuSPARSE and the roof, in one process, interleaved: medians, percent of the best stream that reads four
// arrays and writes one of the same size. Solves are enqueued as the library does, rescue included; results are checked on the GPU.
//
//   cuda_batch_bench [--json FILE] [--rows 2^k] [--rounds N] [contiguous] [long] [axes]
//
// cuSPARSE is loaded at run time from the machine's own CUDA; without it, its columns stay empty.
#include <cuda_runtime.h>
#include <cusparse.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/tridiagonal/batch.hpp"
#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "trifold/tridiagonal.hpp"

namespace {

using namespace trifold;
using trifold::tridiagonal::Operand;
using trifold::tridiagonal::System;

void check(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "cuda_batch_bench: %s: %s\n", what, cudaGetErrorString(code));
    std::exit(5);
}

__device__ double uniform(std::uint64_t seed, std::uint64_t i) {
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

template <int N>
__global__ void stream(const int4* a, const int4* b, const int4* c, const int4* d, int4* x) {
    const std::int64_t first = blockIdx.x * std::int64_t(N * blockDim.x) + threadIdx.x;
    int4 va[N], vb[N], vc[N], vd[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const std::int64_t i = first + n * blockDim.x;
        va[n] = __ldcs(a + i), vb[n] = __ldcs(b + i), vc[n] = __ldcs(c + i), vd[n] = __ldcs(d + i);
    }
#pragma unroll
    for (int n = 0; n < N; ++n)
        __stcs(x + first + n * blockDim.x, make_int4(va[n].x ^ vb[n].x ^ vc[n].x ^ vd[n].x, va[n].y ^ vb[n].y ^ vc[n].y ^ vd[n].y,
                                                     va[n].z ^ vb[n].z ^ vc[n].z ^ vd[n].z, va[n].w ^ vb[n].w ^ vc[n].w ^ vd[n].w));
}

/// A batch: systems along `columns` (stride) and `outer`.
struct Shape {
    std::string name;
    std::int64_t rows, row_stride, columns, column_stride, outer = 1, outer_stride = 0;
    bool strided_peer = false, interleaved_peer = false;
    std::int64_t systems() const { return columns * outer; }
};

template <class T>
struct Arrays {
    T *lower, *diag, *upper, *rhs, *x;
};

// Normwise backward error of every system, with products and sums as exact as two doubles: the largest one.
template <class T>
__global__ void backward_error(Arrays<T> a, std::int64_t rows, std::int64_t rs, std::int64_t columns, std::int64_t cs, std::int64_t outer,
                               std::int64_t os, unsigned long long* worst) {
    const std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x;
    if (k >= columns * outer) return;
    const std::int64_t base = k % columns * cs + k / columns * os;
    double residual = 0, matrix = 0, largest = 0, rhs = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t at = base + i * rs;
        double high = a.rhs[at], low = 0, sum = 0;
        const auto add = [&](double m, double x) {
            const double p = -m * x, e = fma(-m, x, -p), s = high + p, v = s - high;
            low += (high - (s - v)) + (p - v) + e;
            high = s, sum += fabs(m);
        };
        add(a.diag[at], a.x[at]);
        if (i) add(a.lower[at], a.x[at - rs]);
        if (i + 1 < rows) add(a.upper[at], a.x[at + rs]);
        if (!(fabs(high + low) <= residual)) residual = fabs(high + low);
        matrix = fmax(matrix, sum), largest = fmax(largest, fabs(double(a.x[at]))), rhs = fmax(rhs, fabs(double(a.rhs[at])));
    }
    const double error = residual / (matrix * largest + rhs);
    atomicMax(worst, __double_as_longlong(error >= 0 ? error : 1e300));
}

template <class T>
Operand view(T* data, const Shape& s) {
    Operand o;
    o.kind = Operand::Kind::view;
    o.data = data;
    o.row_stride = s.row_stride;
    const bool outer = s.outer > 1;
    if (outer) o.level_stride[0] = s.outer_stride;
    o.level_stride[outer ? 1 : 0] = s.column_stride;
    return o;
}

template <class T>
System system_of(const Arrays<T>& a, const Shape& s) {
    System system;
    system.dtype = sizeof(T) == 8 ? DType::f64 : DType::f32;
    system.rows = s.rows;
    system.levels = s.outer > 1 ? 2 : 1;
    if (s.outer > 1) system.extent[0] = s.outer;
    system.extent[system.levels - 1] = s.columns;
    system.number_stride[system.levels - 1] = 1;
    if (s.outer > 1) system.number_stride[0] = s.columns;
    system.lower = view(a.lower, s), system.diag = view(a.diag, s), system.upper = view(a.upper, s), system.rhs = view(a.rhs, s);
    system.x = view(a.x, s);
    return system;
}

/// What is used of cuSPARSE.
struct Sparse {
    void* library = dlopen("libcusparse.so.12", RTLD_NOW);
    cusparseHandle_t handle = nullptr;
    template <class F>
    F* find(const char* name) const { return reinterpret_cast<F*>(dlsym(library, name)); }
    Sparse() {
        if (library && find<decltype(cusparseCreate)>("cusparseCreate")(&handle) != CUSPARSE_STATUS_SUCCESS) handle = nullptr;
    }
};

template <class T, class D, class S>
auto choose(const Sparse& sparse, const char* d, const char* s) {
    if constexpr (sizeof(T) == 8) return sparse.find<D>(d);
    else return sparse.find<S>(s);
}

double median(std::vector<float> v) {
    if (v.empty()) return NAN;
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

template <class T>
class Bench {
public:
    Bench(const Sparse& sparse, std::int64_t count, int rounds, nlohmann::ordered_json& rows) : sparse_(sparse), count_(count), rounds_(rounds), rows_(rows) {
        T** const arrays[] = {&a_.lower, &a_.diag, &a_.upper, &a_.rhs, &a_.x, &w_[0], &w_[1], &w_[2]};
        for (T** const p : arrays) check(cudaMalloc(p, bytes()), "arrays");
        fill<<<4096, 256>>>(a_.lower, count, 1, T(-1), T(1)), fill<<<4096, 256>>>(a_.diag, count, 2, T(3), T(4));
        fill<<<4096, 256>>>(a_.upper, count, 3, T(-1), T(1)), fill<<<4096, 256>>>(a_.rhs, count, 4, T(-1), T(1));
        check(cudaMalloc(&outcome_, sizeof *outcome_), "outcome");
        check(cudaMalloc(&worst_, sizeof *worst_), "worst");
        cudaEventCreate(&begin_), cudaEventCreate(&end_);
        // The roof is the best of several streams; the best one also runs between the solves, and the better figure of both counts.
        for (int way = 0; way < 6; ++way) {
            std::vector<float> times;
            for (int round = 0; round < 9; ++round) times.push_back(time([&] { run_stream(way); }));
            if (median(times) < best_ms_) best_ms_ = median(times), stream_ = way;
        }
    }
    ~Bench() {
        T* const arrays[] = {a_.lower, a_.diag, a_.upper, a_.rhs, a_.x, w_[0], w_[1], w_[2]};
        for (T* const p : arrays) cudaFree(p);
        cudaFree(outcome_), cudaFree(worst_);
    }

    void run(const Shape& shape) {
        const System system = system_of(a_, shape);
        if (cuda::batch_refuses(system)) return void(std::printf("%-14s %lld: not on chip\n", shape.name.c_str(), static_cast<long long>(shape.rows)));
        const auto plan = cuda::plan_batch<T>(system);
        cuda::BatchLaunch launch;
        launch.scratch_bytes = cuda::batch_scratch(system);
        check(cudaMalloc(&launch.scratch, launch.scratch_bytes), "scratch");
        launch.outcome = outcome_;
        const auto solve = [&] {
            cuda::reset_outcome(outcome_, system.rows, system.systems(), 0, nullptr);
            cuda::solve_batch(system, launch);
        };
        void* buffer = nullptr;
        const std::size_t peer_bytes = peer_buffer(shape);
        const bool peer = peer_bytes > 0 && cudaMalloc(&buffer, peer_bytes) == cudaSuccess;
        cudaGetLastError();
        std::vector<float> roof, ours, theirs[2];
        for (int round = 0; round <= rounds_; ++round) {
            const float r = time([&] { run_stream(stream_); });
            const float t = time(solve);
            if (round) roof.push_back(r), ours.push_back(t);
            if (peer && round < 4)
                for (int way = 0; way < (shape.strided_peer ? 1 : 2); ++way) {
                    const float p = time_peer(shape, way, buffer);
                    if (round) theirs[way].push_back(p);
                }
        }
        check(cudaMemset(worst_, 0, sizeof *worst_), "memset");
        check(cudaMemset(a_.x, 0xff, bytes()), "memset");
        solve();
        const auto blocks = static_cast<unsigned>((shape.systems() + 127) / 128);
        backward_error<<<blocks, 128>>>(a_, shape.rows, shape.row_stride, shape.columns, shape.column_stride, shape.outer, shape.outer_stride, worst_);
        double error = 0;
        cuda::DeviceOutcome outcome;
        check(cudaMemcpy(&error, worst_, sizeof error, cudaMemcpyDeviceToHost), shape.name.c_str());
        check(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), "outcome");
        const double words = 5.0 * sizeof(T), needed = words * static_cast<double>(shape.rows * shape.systems());
        const double bandwidth = words * static_cast<double>(count_) / std::min(median(roof), best_ms_) / 1e6, ms = median(ours);
        const double best_peer = theirs[1].empty() ? median(theirs[0]) : std::min(median(theirs[0]), median(theirs[1]));
        const double fraction = needed / ms / 1e6 / bandwidth;
        nlohmann::ordered_json row;
        row["case"] = shape.name, row["rows"] = shape.rows, row["systems"] = shape.systems(), row["precision"] = sizeof(T) == 8 ? "f64" : "f32";
        row["ms"] = ms, row["roof_gb_per_s"] = bandwidth, row["fraction"] = fraction, row["grows_per_s"] = needed / words / ms / 1e6;
        if (std::isfinite(best_peer)) row["cusparse_ms"] = best_peer, row["times_cusparse"] = best_peer / ms, row["cusparse_fraction"] = needed / best_peer / 1e6 / bandwidth;
        row["backward_error_roundoffs"] = error * (sizeof(T) == 8 ? 0x1p53 : 0x1p24);
        row["rescued"] = outcome.rescued, row["failures"] = outcome.failures;
        row["rows_per_lane"] = plan.kernel->chunk, row["columns_wide"] = plan.kernel->width, row["cluster"] = plan.job.blocks;
        row["warps"] = plan.job.warps, row["shared_bytes"] = cuda::shared_bytes(plan.job, *plan.kernel);
        rows_.push_back(row);
        std::printf("%-14s %s %6lld rows  %5.1f %% of %4.0f GB/s  %4.1f x cuSPARSE  %4.1f u  rescued %llu\n", shape.name.c_str(), sizeof(T) == 8 ? "f64" : "f32",
                    static_cast<long long>(shape.rows), 100 * fraction, bandwidth, best_peer / ms, double(row["backward_error_roundoffs"]), outcome.rescued);
        std::fflush(stdout);
        cudaFree(buffer), cudaFree(launch.scratch);
    }

private:
    std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

    void run_stream(int way) {
        const unsigned threads = way % 2 ? 512 : 256, each = 1u << way / 2;
        const auto blocks = static_cast<unsigned>(bytes() / sizeof(int4) / threads / each);
        const auto call = [&](auto kernel) {
            kernel<<<blocks, threads>>>(reinterpret_cast<const int4*>(a_.lower), reinterpret_cast<const int4*>(a_.diag),
                                        reinterpret_cast<const int4*>(a_.upper), reinterpret_cast<const int4*>(a_.rhs), reinterpret_cast<int4*>(a_.x));
        };
        if (each == 1) call(stream<1>);
        else if (each == 2) call(stream<2>);
        else call(stream<4>);
    }

    template <class F>
    float time(F call) {
        cudaEventRecord(begin_);
        call();
        cudaEventRecord(end_);
        check(cudaEventSynchronize(end_), "solve");
        float ms = 0;
        cudaEventElapsedTime(&ms, begin_, end_);
        return ms;
    }

    std::size_t peer_buffer(const Shape& s) {
        std::size_t size = 0, most = 0;
        const int m = static_cast<int>(s.rows), n = static_cast<int>(s.systems());
        if (!sparse_.handle || s.rows < 3) return 0;
        if (s.strided_peer)
            choose<T, decltype(cusparseDgtsv2StridedBatch_bufferSizeExt), decltype(cusparseSgtsv2StridedBatch_bufferSizeExt)>(
                sparse_, "cusparseDgtsv2StridedBatch_bufferSizeExt", "cusparseSgtsv2StridedBatch_bufferSizeExt")(sparse_.handle, m, a_.lower, a_.diag, a_.upper, a_.x, n, m, &most);
        if (s.interleaved_peer)
            for (int way = 0; way < 2; ++way) {
                choose<T, decltype(cusparseDgtsvInterleavedBatch_bufferSizeExt), decltype(cusparseSgtsvInterleavedBatch_bufferSizeExt)>(
                    sparse_, "cusparseDgtsvInterleavedBatch_bufferSizeExt", "cusparseSgtsvInterleavedBatch_bufferSizeExt")(sparse_.handle, way, m, a_.lower, a_.diag, a_.upper, a_.x, n, &size);
                most = std::max(most, size);
            }
        return most;
    }

    // It overwrites its arrays: they are copied anew, outside the time.
    float time_peer(const Shape& s, int way, void* buffer) {
        const int m = static_cast<int>(s.rows), n = static_cast<int>(s.systems());
        cudaMemcpy(a_.x, a_.rhs, bytes(), cudaMemcpyDeviceToDevice);
        if (s.strided_peer) {
            auto* const call = choose<T, decltype(cusparseDgtsv2StridedBatch), decltype(cusparseSgtsv2StridedBatch)>(sparse_, "cusparseDgtsv2StridedBatch", "cusparseSgtsv2StridedBatch");
            return time([&] { call(sparse_.handle, m, a_.lower, a_.diag, a_.upper, a_.x, n, m, buffer); });
        }
        cudaMemcpy(w_[0], a_.lower, bytes(), cudaMemcpyDeviceToDevice);
        cudaMemcpy(w_[1], a_.diag, bytes(), cudaMemcpyDeviceToDevice);
        cudaMemcpy(w_[2], a_.upper, bytes(), cudaMemcpyDeviceToDevice);
        auto* const call = choose<T, decltype(cusparseDgtsvInterleavedBatch), decltype(cusparseSgtsvInterleavedBatch)>(sparse_, "cusparseDgtsvInterleavedBatch", "cusparseSgtsvInterleavedBatch");
        return time([&] { call(sparse_.handle, way, m, w_[0], w_[1], w_[2], a_.x, n, buffer); });
    }

    const Sparse& sparse_;
    std::int64_t count_;
    int rounds_;
    nlohmann::ordered_json& rows_;
    Arrays<T> a_{};
    T* w_[3] = {};
    cuda::DeviceOutcome* outcome_ = nullptr;
    unsigned long long* worst_ = nullptr;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
    int stream_ = 0;
    double best_ms_ = 1e30;
};

std::vector<Shape> shapes(std::int64_t count, const std::vector<std::string>& parts) {
    const auto wanted = [&](const char* part) { return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end(); };
    std::vector<Shape> list;
    const auto contiguous = [&](std::int64_t n) { list.push_back({"contiguous", n, 1, count / n, n, 1, 0, true, false}); };
    if (wanted("contiguous"))
        for (int n : {3, 4, 5, 7, 8, 13, 16, 31, 32, 33, 61, 64, 100, 127, 128, 129, 150, 200, 251, 256, 257, 300, 367, 400, 450, 509, 512}) contiguous(n);
    if (wanted("contiguous")) {
        list.push_back({"padded", 250, 1, count / 256, 256});
        list.push_back({"padded", 255, 1, count / 257, 257});
    }
    if (wanted("long"))
        for (int n : {513, 777, 1000, 1024, 1500, 2048, 3000, 4096, 6000, 8192}) contiguous(n);
    if (wanted("axes")) {
        for (int n : {16, 64, 256, 512, 1024, 4096}) list.push_back({"interleaved", n, count / n, count / n, 1, 1, 0, false, true});
        list.push_back({"256^3 y", 256, 256, 256, 1, count >> 16, 1 << 16});
        if (count >= 1 << 24) list.push_back({"256^3 z", 256, 65536, 65536, 1, count >> 24, 1 << 24});
        list.push_back({"512^3 y", 512, 512, 512, 1, count >> 18, 1 << 18});
        list.push_back({"512^3 z", 512, count / 512, count / 512, 1});
        list.push_back({"padded y", 256, 264, 256, 1, count / (264 * 257), 264 * 257});
        list.push_back({"odd y", 255, 257, 255, 1, count / (257 * 257), 257 * 257});
    }
    return list;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    std::int64_t count = 1 << 26;
    int rounds = 7;
    std::vector<std::string> parts;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg == "--json" && i + 1 < argc) json = argv[++i];
        else if (arg == "--rows" && i + 1 < argc) count = std::atoll(argv[++i]);
        else if (arg == "--rounds" && i + 1 < argc) rounds = std::max(std::atoi(argv[++i]), 1);
        else if (arg == "contiguous" || arg == "long" || arg == "axes") parts.push_back(arg);
        else return std::fprintf(stderr, "usage: cuda_batch_bench [--json FILE] [--rows COUNT] [--rounds N] [contiguous] [long] [axes]\n"), 2;
    }
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "no device");
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver), cudaRuntimeGetVersion(&runtime);
    const Sparse sparse;
    nlohmann::ordered_json record;
    record["schema"] = "trifold.bench/1", record["suite"] = "cuda_batch", record["title"] = "Batches on the GPU, percent of a 4 read, 1 write stream";
    record["machine"] = {{"gpu", properties.name}, {"driver_cuda", driver}, {"runtime_cuda", runtime}, {"multiprocessors", properties.multiProcessorCount}};
    record["rows_of_arrays"] = count;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const bool wide : {true, false}) {
        const auto list = shapes(count, parts);
        if (wide) {
            Bench<double> bench(sparse, count, rounds, rows);
            for (const Shape& shape : list) bench.run(shape);
        } else {
            Bench<float> bench(sparse, count, rounds, rows);
            for (const Shape& shape : list) bench.run(shape);
        }
    }
    record["rows"] = rows;
    if (!json.empty()) {
        std::ofstream(json + ".part") << record.dump(1) << "\n";
        if (std::rename((json + ".part").c_str(), json.c_str()) != 0) return std::fprintf(stderr, "cuda_batch_bench: %s cannot be written\n", json.c_str()), 1;
    }
    return 0;
}
