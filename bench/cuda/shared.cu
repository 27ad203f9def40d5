// SPDX-License-Identifier: BSD-3-Clause
// Batches with one matrix for all systems on the GPU, in one process, interleaved: medians, percent of the best stream that reads
// one array and writes one of the same size. Beside it the kernels for general batches, which read the one matrix for every system
// anew, and cuSPARSE with the matrix copied for every system. Solves are enqueued as the library does, rescue included; results are checked on the GPU.
//
//   cuda_shared_bench [--json FILE] [--rows 2^k] [--rounds N]
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
#include "backends/cuda/tridiagonal/shared/plan.hpp"
#include "bench/cuda/cusparse.hpp"
#include "bench/cuda/gpu.cuh"
#include "bench/cuda/gpu_record.hpp"
#include "trifold/tridiagonal.hpp"

namespace {

using namespace trifold;
using namespace trifold::bench;
using trifold::tridiagonal::Operand;
using trifold::tridiagonal::System;

/// A batch: systems along `columns` (stride) and `outer`. scalars: the matrix is three numbers, else three arrays.
struct Shape {
    std::string name;
    std::int64_t rows, row_stride, columns, column_stride, outer = 1, outer_stride = 0;
    bool scalars = false;
    enum class Peer { none, strided, interleaved } peer = Peer::none;
    std::int64_t systems() const { return columns * outer; }
};

/// lower, diag, upper in row i: data[i], or the same number everywhere.
template <class T>
struct Band {
    const T* data;
    T value;
    __device__ T at(std::int64_t i) const { return data ? data[i] : value; }
};

template <class T>
struct Matrix {
    Band<T> lower, diag, upper;
};

// Normwise backward error of every system, with products and sums as exact as two doubles: the largest one.
template <class T>
__global__ void backward_error(Matrix<T> a, const T* b, const T* x, std::int64_t rows, std::int64_t rs, std::int64_t columns, std::int64_t cs,
                               std::int64_t outer, std::int64_t os, unsigned long long* worst) {
    const std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x;
    if (k >= columns * outer) return;
    const std::int64_t base = k % columns * cs + k / columns * os;
    double residual = 0, matrix = 0, largest = 0, rhs = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t at = base + i * rs;
        RowResidual row(b[at]);
        row.subtract(a.diag.at(i), x[at]);
        if (i) row.subtract(a.lower.at(i), x[at - rs]);
        if (i + 1 < rows) row.subtract(a.upper.at(i), x[at + rs]);
        if (!(row.value() <= residual)) residual = row.value();
        matrix = fmax(matrix, row.sum), largest = fmax(largest, fabs(double(x[at]))), rhs = fmax(rhs, fabs(double(b[at])));
    }
    const double error = residual / (matrix * largest + rhs);
    atomicMax(worst, __double_as_longlong(error >= 0 ? error : 1e300));
}

// The matrix once per system, for a peer that knows no other way.
template <class T>
__global__ void copy_matrix(Band<T> band, T* to, std::int64_t rows, std::int64_t systems, bool interleaved) {
    for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < rows * systems; i += std::int64_t(gridDim.x) * blockDim.x)
        to[i] = band.at(interleaved ? i / systems : i % rows);
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
Operand operand_of(const Band<T>& band) {
    Operand o;
    o.kind = band.data ? Operand::Kind::view : Operand::Kind::scalar;
    o.data = const_cast<T*>(band.data), o.value = band.value, o.row_stride = 1;
    return o;
}

template <class T>
class Bench {
public:
    static constexpr std::int64_t longest = 4096;

    Bench(const Sparse& sparse, std::int64_t count, int rounds, nlohmann::ordered_json& rows) : sparse_(sparse), count_(count), rounds_(rounds), rows_(rows) {
        for (T** const p : {&rhs_, &x_, &copies_[0], &copies_[1], &copies_[2]}) check(cudaMalloc(p, bytes()), "arrays");
        for (T*& p : bands_) check(cudaMalloc(&p, longest * sizeof(T)), "matrix");
        fill_array(bands_[0], longest, 1, T(-1), T(1)), fill_array(bands_[1], longest, 2, T(3), T(4)), fill_array(bands_[2], longest, 3, T(-1), T(1));
        fill_array(rhs_, count, 4, T(-1), T(1));
        check(cudaMalloc(&outcome_, sizeof *outcome_), "outcome");
        check(cudaMalloc(&worst_, sizeof *worst_), "worst");
        const void* const read[4] = {rhs_, rhs_, rhs_, rhs_};
        roof_.emplace(read, x_, bytes(), 1);
    }
    ~Bench() {
        for (T* const p : {rhs_, x_, copies_[0], copies_[1], copies_[2], bands_[0], bands_[1], bands_[2]}) cudaFree(p);
        cudaFree(outcome_), cudaFree(worst_);
    }

    void run(const Shape& shape) {
        // Implicit diffusion where the matrix is three numbers.
        const Matrix<T> matrix = shape.scalars ? Matrix<T>{{nullptr, T(-0.5)}, {nullptr, T(2)}, {nullptr, T(-0.5)}} : Matrix<T>{{bands_[0]}, {bands_[1]}, {bands_[2]}};
        const System system = system_of(matrix, shape);
        const auto plan = cuda::plan_shared<T>(system);
        if (!plan.kernel) return void(std::printf("%-14s %lld: no kernel\n", shape.name.c_str(), static_cast<long long>(shape.rows)));
        cuda::BatchLaunch launch;
        launch.scratch_bytes = cuda::batch_scratch(system);
        check(cudaMalloc(&launch.scratch, launch.scratch_bytes), "scratch");
        launch.outcome = outcome_;
        const auto solve = [&] {
            cuda::reset_outcome(outcome_, system.rows, system.systems(), 0, nullptr);
            cuda::solve_batch(system, launch);
        };
        auto general = cuda::plan_batch<T>(system);
        general.job.handed_over = &outcome_->marked;
        general.job.marks = static_cast<unsigned char*>(launch.scratch);
        const std::size_t peer_bytes = peer_buffer(shape);
        void* buffer = nullptr;
        const bool peer = peer_bytes > 0 && cudaMalloc(&buffer, peer_bytes) == cudaSuccess;
        cudaGetLastError();
        std::vector<float> roof, ours, theirs, before;
        for (int round = 0; round <= rounds_; ++round) {
            const float r = time_([&] { roof_->pass(); });
            const float t = time_(solve);
            if (round) roof.push_back(r), ours.push_back(t);
            if (round > 3) continue;
            if (general.fits()) {
                const float g = time_([&] {
                    if (general.in_registers) cuda::solve_cut_columns(general.job, general.columns, nullptr);
                    else general.kernel->launch(general.job, cuda::shared_bytes(general.job, *general.kernel), nullptr);
                });
                if (round) before.push_back(g);
            }
            if (peer) {
                const float p = time_peer(matrix, shape, buffer);
                if (round) theirs.push_back(p);
            }
        }
        check(cudaMemset(worst_, 0, sizeof *worst_), "memset");
        check(cudaMemset(x_, 0xff, bytes()), "memset");
        solve();
        const auto blocks = static_cast<unsigned>((shape.systems() + 127) / 128);
        backward_error<T><<<blocks, 128>>>(matrix, rhs_, x_, shape.rows, shape.row_stride, shape.columns, shape.column_stride, shape.outer, shape.outer_stride, worst_);
        double error = 0;
        cuda::DeviceOutcome outcome;
        check(cudaMemcpy(&error, worst_, sizeof error, cudaMemcpyDeviceToHost), shape.name.c_str());
        check(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), "outcome");
        const double needed = 2.0 * sizeof(T) * static_cast<double>(shape.rows * shape.systems());
        const double bandwidth = roof_->gb_per_s(median(roof)), ms = median(ours), fraction = needed / ms / 1e6 / bandwidth;
        nlohmann::ordered_json row;
        row["case"] = shape.name, row["matrix"] = shape.scalars ? "scalars" : "arrays", row["rows"] = shape.rows, row["systems"] = shape.systems();
        row["precision"] = sizeof(T) == 8 ? "f64" : "f32";
        row["ms"] = ms, row["roof_gb_per_s"] = bandwidth, row["fraction"] = fraction, row["grows_per_s"] = needed / (2.0 * sizeof(T)) / ms / 1e6;
        if (!before.empty()) row["general_ms"] = median(before), row["times_general"] = median(before) / ms;
        if (!theirs.empty()) row["cusparse_ms"] = median(theirs), row["times_cusparse"] = median(theirs) / ms;
        row["backward_error_roundoffs"] = error * (sizeof(T) == 8 ? 0x1p53 : 0x1p24);
        row["rescued"] = outcome.rescued, row["failures"] = outcome.failures;
        row["rows_per_thread"] = plan.kernel->rows, row["across"] = plan.kernel->columns ? plan.job.across : 1;
        rows_.push_back(row);
        std::printf("%-12s %-7s %s %5lld rows  %5.1f %% of %4.0f GB/s  %4.1f x general  %5.1f x cuSPARSE  %4.1f u  rescued %llu\n", shape.name.c_str(),
                    shape.scalars ? "scalars" : "arrays", sizeof(T) == 8 ? "f64" : "f32", static_cast<long long>(shape.rows), 100 * fraction, bandwidth,
                    median(before) / ms, median(theirs) / ms, double(row["backward_error_roundoffs"]), outcome.rescued);
        std::fflush(stdout);
        cudaFree(buffer), cudaFree(launch.scratch);
    }

private:
    std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

    System system_of(const Matrix<T>& matrix, const Shape& s) {
        System system;
        system.dtype = sizeof(T) == 8 ? DType::f64 : DType::f32;
        system.rows = s.rows;
        system.levels = s.outer > 1 ? 2 : 1;
        if (s.outer > 1) system.extent[0] = s.outer;
        system.extent[system.levels - 1] = s.columns;
        system.number_stride[system.levels - 1] = 1;
        if (s.outer > 1) system.number_stride[0] = s.columns;
        system.lower = operand_of(matrix.lower), system.diag = operand_of(matrix.diag), system.upper = operand_of(matrix.upper);
        system.rhs = view(rhs_, s), system.x = view(x_, s);
        return system;
    }

    std::size_t peer_buffer(const Shape& s) {
        std::size_t most = 0;
        const int m = static_cast<int>(s.rows), n = static_cast<int>(s.systems());
        if (!sparse_.handle || s.rows < 3) return 0;
        if (s.peer == Shape::Peer::strided)
            TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch_bufferSizeExt)(sparse_.handle, m, copies_[0], copies_[1], copies_[2], x_, n, m, &most);
        if (s.peer == Shape::Peer::interleaved)
            TRIFOLD_CUSPARSE(T, sparse_, gtsvInterleavedBatch_bufferSizeExt)(sparse_.handle, 0, m, copies_[0], copies_[1], copies_[2], x_, n, &most);
        return most;
    }

    // It overwrites its arrays: they are made anew, outside the time.
    float time_peer(const Matrix<T>& matrix, const Shape& s, void* buffer) {
        const int m = static_cast<int>(s.rows), n = static_cast<int>(s.systems());
        const bool interleaved = s.peer == Shape::Peer::interleaved;
        const Band<T> bands[3] = {matrix.lower, matrix.diag, matrix.upper};
        for (int b = 0; b < 3; ++b) copy_matrix<<<4096, 256>>>(bands[b], copies_[b], s.rows, s.systems(), interleaved);
        cudaMemcpy(x_, rhs_, bytes(), cudaMemcpyDeviceToDevice);
        return time_([&] {
            if (interleaved) TRIFOLD_CUSPARSE(T, sparse_, gtsvInterleavedBatch)(sparse_.handle, 0, m, copies_[0], copies_[1], copies_[2], x_, n, buffer);
            else TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch)(sparse_.handle, m, copies_[0], copies_[1], copies_[2], x_, n, m, buffer);
        });
    }

    const Sparse& sparse_;
    std::int64_t count_;
    int rounds_;
    nlohmann::ordered_json& rows_;
    T *rhs_ = nullptr, *x_ = nullptr, *copies_[3] = {}, *bands_[3] = {};
    cuda::DeviceOutcome* outcome_ = nullptr;
    unsigned long long* worst_ = nullptr;
    std::optional<StreamRoof> roof_;
    EventTimer time_;
};

std::vector<Shape> shapes(std::int64_t count) {
    using Peer = Shape::Peer;
    std::vector<Shape> list;
    for (int n : {32, 64, 100, 128, 256, 300, 512, 1000, 1024, 2048}) list.push_back({"contiguous", n, 1, count / n, n, 1, 0, false, Peer::strided});
    list.push_back({"padded", 250, 1, count / 256, 256});
    list.push_back({"padded", 255, 1, count / 257, 257});
    for (int n : {32, 64, 128, 256, 512, 1024}) list.push_back({"interleaved", n, count / n, count / n, 1, 1, 0, false, Peer::interleaved});
    for (int n : {100, 1000}) list.push_back({"odd pitch", n, count / n | 1, (count / n | 1) - 2, 1});
    for (const bool scalars : {false, true}) {
        list.push_back({"256^3 x", 256, 1, count >> 8, 256, 1, 0, scalars});
        list.push_back({"256^3 y", 256, 256, 256, 1, count >> 16, 1 << 16, scalars});
        if (count >= 1 << 24) list.push_back({"256^3 z", 256, 65536, 65536, 1, count >> 24, 1 << 24, scalars});
        list.push_back({"512^3 x", 512, 1, count >> 9, 512, 1, 0, scalars});
        list.push_back({"512^3 y", 512, 512, 512, 1, count >> 18, 1 << 18, scalars});
        list.push_back({"512^3 z", 512, count / 512, count / 512, 1, 1, 0, scalars});
    }
    list.push_back({"padded y", 256, 264, 256, 1, count / (264 * 257), 264 * 257});
    list.push_back({"odd y", 255, 257, 255, 1, count / (257 * 257), 257 * 257});
    for (Shape& s : list)  // what fits into `count` elements
        if (s.outer == 1 && s.row_stride > 1) s.rows = std::min(s.rows, (count - s.columns) / s.row_stride + 1);
    return list;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    std::int64_t count = 1 << 27;
    int rounds = 7;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg == "--json" && i + 1 < argc) json = argv[++i];
        else if (arg == "--rows" && i + 1 < argc) count = std::atoll(argv[++i]);
        else if (arg == "--rounds" && i + 1 < argc) rounds = std::max(std::atoi(argv[++i]), 1);
        else return std::fprintf(stderr, "usage: cuda_shared_bench [--json FILE] [--rows COUNT] [--rounds N]\n"), 2;
    }
    nlohmann::ordered_json record = gpu_record("cuda_shared", "Batches with one matrix on the GPU, percent of a 1 read, 1 write stream");
    const Sparse sparse;
    record["rows_of_arrays"] = count;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    const auto list = shapes(count);
    {
        Bench<double> bench(sparse, count, rounds, rows);
        for (const Shape& shape : list) bench.run(shape);
    }
    {
        Bench<float> bench(sparse, count, rounds, rows);
        for (const Shape& shape : list) bench.run(shape);
    }
    record["rows"] = rows;
    return write_record(record, json) ? 0 : 1;
}
