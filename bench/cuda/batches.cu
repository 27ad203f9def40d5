// SPDX-License-Identifier: BSD-3-Clause
// Batches on the GPU beside cuSPARSE and the roof, in one process, interleaved: medians, percent of the best stream that reads four
// arrays and writes one of the same size. Solves are enqueued as the library does, rescue included; results are checked on the GPU.
//
//   cuda_batch_bench [--json FILE] [--rows 2^k] [--rounds N] [contiguous] [long] [axes]
//
// cuSPARSE is loaded at run time from the machine's own CUDA; without it, its columns stay empty.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/tridiagonal/batch.hpp"
#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "bench/cuda/cusparse.hpp"
#include "bench/cuda/gpu.cuh"
#include "bench/cuda/gpu_record.hpp"
#include "trifold/tridiagonal.hpp"

namespace {

using namespace trifold;
using namespace trifold::bench;
using trifold::tridiagonal::Operand;
using trifold::tridiagonal::System;

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
        RowResidual row(a.rhs[at]);
        row.subtract(a.diag[at], a.x[at]);
        if (i) row.subtract(a.lower[at], a.x[at - rs]);
        if (i + 1 < rows) row.subtract(a.upper[at], a.x[at + rs]);
        if (!(row.value() <= residual)) residual = row.value();
        matrix = fmax(matrix, row.sum), largest = fmax(largest, fabs(double(a.x[at]))), rhs = fmax(rhs, fabs(double(a.rhs[at])));
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

template <class T>
class Bench {
public:
    Bench(const Sparse& sparse, std::int64_t count, int rounds, nlohmann::ordered_json& rows) : sparse_(sparse), count_(count), rounds_(rounds), rows_(rows) {
        T** const arrays[] = {&a_.lower, &a_.diag, &a_.upper, &a_.rhs, &a_.x, &w_[0], &w_[1], &w_[2]};
        for (T** const p : arrays) check(cudaMalloc(p, bytes()), "arrays");
        fill_array(a_.lower, count, 1, T(-1), T(1)), fill_array(a_.diag, count, 2, T(3), T(4));
        fill_array(a_.upper, count, 3, T(-1), T(1)), fill_array(a_.rhs, count, 4, T(-1), T(1));
        check(cudaMalloc(&outcome_, sizeof *outcome_), "outcome");
        check(cudaMalloc(&worst_, sizeof *worst_), "worst");
        const void* const read[4] = {a_.lower, a_.diag, a_.upper, a_.rhs};
        roof_.emplace(read, a_.x, bytes());
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
            const float r = time_([&] { roof_->pass(); });
            const float t = time_(solve);
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
        const double bandwidth = roof_->gb_per_s(median(roof)), ms = median(ours);
        const double best_peer = theirs[1].empty() ? median(theirs[0]) : std::min(median(theirs[0]), median(theirs[1]));
        const double fraction = needed / ms / 1e6 / bandwidth;
        nlohmann::ordered_json row;
        row["case"] = shape.name, row["rows"] = shape.rows, row["systems"] = shape.systems(), row["precision"] = sizeof(T) == 8 ? "f64" : "f32";
        row["ms"] = ms, row["roof_gb_per_s"] = bandwidth, row["fraction"] = fraction, row["grows_per_s"] = needed / words / ms / 1e6;
        if (std::isfinite(best_peer)) row["cusparse_ms"] = best_peer, row["times_cusparse"] = best_peer / ms, row["cusparse_fraction"] = needed / best_peer / 1e6 / bandwidth;
        row["backward_error_roundoffs"] = error * (sizeof(T) == 8 ? 0x1p53 : 0x1p24);
        row["rescued"] = outcome.rescued, row["failures"] = outcome.failures;
        if (plan.in_registers) {
            const auto& cut = plan.columns;
            row["rows_per_lane"] = cuda::column_chunk, row["columns_wide"] = cut.columns, row["cluster"] = cut.blocks;
            row["warps"] = cut.warps, row["shared_bytes"] = cut.shared_bytes;
        } else {
            row["rows_per_lane"] = plan.kernel->chunk, row["columns_wide"] = plan.kernel->width, row["cluster"] = plan.job.blocks;
            row["warps"] = plan.job.warps, row["shared_bytes"] = cuda::shared_bytes(plan.job, *plan.kernel);
        }
        rows_.push_back(row);
        std::printf("%-14s %s %6lld rows  %5.1f %% of %4.0f GB/s  %4.1f x cuSPARSE  %4.1f u  rescued %llu\n", shape.name.c_str(), sizeof(T) == 8 ? "f64" : "f32",
                    static_cast<long long>(shape.rows), 100 * fraction, bandwidth, best_peer / ms, double(row["backward_error_roundoffs"]), outcome.rescued);
        std::fflush(stdout);
        cudaFree(buffer), cudaFree(launch.scratch);
    }

private:
    std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

    std::size_t peer_buffer(const Shape& s) {
        std::size_t size = 0, most = 0;
        const int m = static_cast<int>(s.rows), n = static_cast<int>(s.systems());
        if (!sparse_.handle || s.rows < 3) return 0;
        if (s.strided_peer)
            TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch_bufferSizeExt)(sparse_.handle, m, a_.lower, a_.diag, a_.upper, a_.x, n, m, &most);
        if (s.interleaved_peer)
            for (int way = 0; way < 2; ++way) {
                TRIFOLD_CUSPARSE(T, sparse_, gtsvInterleavedBatch_bufferSizeExt)(sparse_.handle, way, m, a_.lower, a_.diag, a_.upper, a_.x, n, &size);
                most = std::max(most, size);
            }
        return most;
    }

    // It overwrites its arrays: they are copied anew, outside the time.
    float time_peer(const Shape& s, int way, void* buffer) {
        const int m = static_cast<int>(s.rows), n = static_cast<int>(s.systems());
        cudaMemcpy(a_.x, a_.rhs, bytes(), cudaMemcpyDeviceToDevice);
        if (s.strided_peer) {
            auto* const call = TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch);
            return time_([&] { call(sparse_.handle, m, a_.lower, a_.diag, a_.upper, a_.x, n, m, buffer); });
        }
        cudaMemcpy(w_[0], a_.lower, bytes(), cudaMemcpyDeviceToDevice);
        cudaMemcpy(w_[1], a_.diag, bytes(), cudaMemcpyDeviceToDevice);
        cudaMemcpy(w_[2], a_.upper, bytes(), cudaMemcpyDeviceToDevice);
        auto* const call = TRIFOLD_CUSPARSE(T, sparse_, gtsvInterleavedBatch);
        return time_([&] { call(sparse_.handle, way, m, w_[0], w_[1], w_[2], a_.x, n, buffer); });
    }

    const Sparse& sparse_;
    std::int64_t count_;
    int rounds_;
    nlohmann::ordered_json& rows_;
    Arrays<T> a_{};
    T* w_[3] = {};
    cuda::DeviceOutcome* outcome_ = nullptr;
    unsigned long long* worst_ = nullptr;
    std::optional<StreamRoof> roof_;
    EventTimer time_;
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
    nlohmann::ordered_json record = gpu_record("cuda_batch", "Batches on the GPU, percent of a 4 read, 1 write stream");
    const Sparse sparse;
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
    return write_record(record, json) ? 0 : 1;
}
