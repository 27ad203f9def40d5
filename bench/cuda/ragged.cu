// SPDX-License-Identifier: BSD-3-Clause
// Ragged batches (systems of different lengths, one after the other) on the GPU beside the roof, in one process, interleaved: medians, percent of the best stream that reads four arrays and writes one
// of the same size. Results are checked on the GPU.
//
// cuSPARSE has no call for them. What takes its place is what its users write: one long system with zeros between those that it is made of, without pivots where rows are dominant, with them elsewhere. It works in place of a right-hand side
// that is copied outside the time.
//
//   cuda_ragged_bench [--json FILE] [--rows 2^k] [--rounds N] [--only CASE:MATRIX,...] [--no-peer]
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/cell.hpp"
#include "bench/cuda/arguments.hpp"
#include "bench/cuda/batch_case.cuh"
#include "bench/cuda/gpu_record.hpp"
#include "families/tridiagonal/ops.hpp"
#include "trifold/tridiagonal.hpp"

namespace {

namespace cuda = trifold::cuda;  // not the toolkit's own

using namespace trifold;
using namespace trifold::bench;
using trifold::tridiagonal::System;

struct Shape {
    std::string name;
    std::int64_t least, most;
    bool dominant;

    std::string matrix() const { return dominant ? "dominance 3" : "random"; }
};

template <class T>
struct Arrays {
    T *lower, *diag, *upper, *rhs, *x;
};

template <class T>
__global__ void clear_ends(Arrays<T> a, const std::int64_t* offsets, std::int64_t systems) {
    const std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x;
    if (k < systems) a.lower[offsets[k]] = 0, a.upper[offsets[k + 1] - 1] = 0;
}

template <class T>
__global__ void backward_error(Arrays<T> a, const std::int64_t* offsets, std::int64_t systems, unsigned long long* worst) {
    const std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x;
    if (k >= systems) return;
    double residual = 0, matrix = 0, largest = 0, rhs = 0;
    for (std::int64_t i = offsets[k]; i < offsets[k + 1]; ++i) {
        RowResidual row(a.rhs[i]);
        row.subtract(a.diag[i], a.x[i]);
        if (i > offsets[k]) row.subtract(a.lower[i], a.x[i - 1]);
        if (i + 1 < offsets[k + 1]) row.subtract(a.upper[i], a.x[i + 1]);
        if (!(row.value() <= residual)) residual = row.value();
        matrix = fmax(matrix, row.sum), largest = fmax(largest, fabs(double(a.x[i]))), rhs = fmax(rhs, fabs(double(a.rhs[i])));
    }
    const double error = residual / (matrix * largest + rhs);
    atomicMax(worst, __double_as_longlong(error >= 0 ? error : 1e300));
}

template <class T>
class Bench {
public:
    Bench(const Sparse& sparse, std::int64_t count, int rounds, bool peers, nlohmann::ordered_json& rows) : sparse_(sparse), count_(count), rounds_(rounds), peers_(peers), rows_(rows) {
        for (int k = 0; k < 5; ++k) arrays_.emplace_back(count);
        a_ = {arrays_[0], arrays_[1], arrays_[2], arrays_[3], arrays_[4]};
        fill_array(a_.rhs, count, 4, T(-1), T(1));
        check(cudaMallocHost(&offsets_, static_cast<std::size_t>(count + 1) * sizeof(std::int64_t)), "offsets");
    }
    ~Bench() { cudaFreeHost(offsets_); }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    void run(const Shape& shape) {
        fill_array(a_.lower, count_, 1, T(-1), T(1)), fill_array(a_.upper, count_, 3, T(-1), T(1));
        fill_array(a_.diag, count_, 2, shape.dominant ? T(3) : T(-1), shape.dominant ? T(4) : T(1));
        const std::int64_t systems = draw(shape), used = offsets_[systems];
        DeviceMemory<std::int64_t> there(systems + 1);
        check(cudaMemcpy(there, offsets_, static_cast<std::size_t>(systems + 1) * sizeof(std::int64_t), cudaMemcpyHostToDevice), "offsets");
        const auto blocks = static_cast<unsigned>((systems + 127) / 128);
        clear_ends<T><<<blocks, 128>>>(a_, there, systems);
        const auto bytes = static_cast<std::size_t>(used) * sizeof(T);
        const void* const read[4] = {a_.lower, a_.diag, a_.upper, a_.rhs};
        const StreamRoof roof(read, a_.x, bytes);
        System system;
        system.dtype = sizeof(T) == 8 ? DType::f64 : DType::f32;
        system.offsets = offsets_, system.ragged_systems = systems, system.rows = longest_;
        const auto array = [](T* data) {
            tridiagonal::Operand operand;
            operand.kind = tridiagonal::Operand::Kind::view, operand.data = data, operand.row_stride = 1;
            return operand;
        };
        system.lower = array(a_.lower), system.diag = array(a_.diag), system.upper = array(a_.upper), system.rhs = array(a_.rhs), system.x = array(a_.x);
        const tridiagonal::Ops& ops = *cuda::tridiagonal_ops(0);
        tridiagonal::Launch launch;
        launch.scratch_bytes = ops.workspace(system, tridiagonal::Algorithm::automatic, 1);
        DeviceMemory<unsigned char> scratch(static_cast<std::int64_t>(launch.scratch_bytes));
        launch.scratch = scratch;
        const auto enqueue = [&] {
            check(cudaMemcpyAsync(scratch, offsets_, static_cast<std::size_t>(systems + 1) * sizeof(std::int64_t), cudaMemcpyHostToDevice), "offsets");  // where kernels look for them (families/tridiagonal/offsets.hpp)
            Failure failure;
            if (!ops.enqueue(0, system, tridiagonal::Algorithm::automatic, launch, outcome_, failure)) failure.raise("cuda:0");
        };

        void* buffer = nullptr;
        const int rows = static_cast<int>(used);
        if (std::size_t size = 0; peers_ && sparse_.handle) {
            if (shape.dominant) TRIFOLD_CUSPARSE(T, sparse_, gtsv2_nopivot_bufferSizeExt)(sparse_.handle, rows, 1, a_.lower, a_.diag, a_.upper, a_.x, rows, &size);
            else TRIFOLD_CUSPARSE(T, sparse_, gtsv2_bufferSizeExt)(sparse_.handle, rows, 1, a_.lower, a_.diag, a_.upper, a_.x, rows, &size);
            if (cudaMalloc(&buffer, size) != cudaSuccess) buffer = nullptr;
            cudaGetLastError();
        }
        const auto peer = [&] {
            if (shape.dominant) TRIFOLD_CUSPARSE(T, sparse_, gtsv2_nopivot)(sparse_.handle, rows, 1, a_.lower, a_.diag, a_.upper, a_.x, rows, buffer);
            else TRIFOLD_CUSPARSE(T, sparse_, gtsv2)(sparse_.handle, rows, 1, a_.lower, a_.diag, a_.upper, a_.x, rows, buffer);
        };
        std::vector<float> roofs, ours, queued, copies, theirs, host;
        const auto timed_on_host = [&] {
            const auto begin = std::chrono::steady_clock::now();
            enqueue();
            host.push_back(std::chrono::duration<float, std::micro>(std::chrono::steady_clock::now() - begin).count());
        };
        for (int round = 0; round <= rounds_; ++round) {
            const float r = time_([&] { roof.pass(); }), t = time_(timed_on_host), q = time_.queued(enqueue);
            const float c = time_([&] { cudaMemcpyAsync(there, offsets_, static_cast<std::size_t>(systems + 1) * sizeof(std::int64_t), cudaMemcpyHostToDevice); });
            if (round) roofs.push_back(r), ours.push_back(t), queued.push_back(q), copies.push_back(c);
            if (!buffer || round >= 4) continue;
            cudaMemcpy(a_.x, a_.rhs, bytes, cudaMemcpyDeviceToDevice);
            const float p = time_(peer);
            if (round) theirs.push_back(p);
        }
        cudaFree(buffer);
        check(cudaMemset(a_.x, 0xff, bytes), "memset");
        enqueue();
        check(cudaMemset(worst_, 0, sizeof(unsigned long long)), "memset");
        backward_error<T><<<blocks, 128>>>(a_, there, systems, worst_);
        double error = 0;
        check(cudaMemcpy(&error, worst_, sizeof error, cudaMemcpyDeviceToHost), shape.name.c_str());
        cuda::DeviceOutcome outcome;
        check(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), "outcome");
        const double needed = 5 * static_cast<double>(bytes), bandwidth = roof.gb_per_s(median(roofs)), ms = median(ours), best_peer = median(theirs);
        error *= sizeof(T) == 8 ? 0x1p53 : 0x1p24;
        nlohmann::ordered_json row;
        row["case"] = shape.name, row["matrix"] = shape.matrix(), row["systems"] = systems, row["rows"] = used, row["precision"] = sizeof(T) == 8 ? "f64" : "f32";
        row["ms"] = ms, row["queued_ms"] = median(queued), row["roof_gb_per_s"] = bandwidth, row["fraction"] = needed / ms / 1e6 / bandwidth, row["queued_fraction"] = needed / median(queued) / 1e6 / bandwidth;
        row["offsets_ms"] = median(copies), row["host_us"] = median(host), row["grows_per_s"] = static_cast<double>(used) / ms / 1e6;
        if (std::isfinite(best_peer)) row["peer"] = shape.dominant ? "gtsv2_nopivot" : "gtsv2", row["cusparse_ms"] = best_peer, row["times_cusparse"] = best_peer / ms;
        row["backward_error_roundoffs"] = error, row["rescued"] = outcome.rescued, row["failures"] = outcome.failures;
        rows_.push_back(row);
        std::printf("%-16s %-12s %s %9lld systems  %8.3f ms  %5.1f %% (queued %5.1f) of %4.0f GB/s  offsets %7.3f ms  host %4.0f us  %5.1f x cuSPARSE  %4.1f u  rescued %llu failed %llu\n", shape.name.c_str(), shape.matrix().c_str(),
                    sizeof(T) == 8 ? "f64" : "f32", static_cast<long long>(systems), ms, 100 * double(row["fraction"]), 100 * double(row["queued_fraction"]), bandwidth, median(copies), median(host), best_peer / ms, error, outcome.rescued, outcome.failures);
        std::fflush(stdout);
    }

private:
    /// Lengths, the same for both types. Returns how many.
    std::int64_t draw(const Shape& shape) {
        std::mt19937_64 random(static_cast<std::uint64_t>(shape.most));
        std::uniform_int_distribution<std::int64_t> length(shape.least, shape.most);
        std::int64_t systems = 0;
        longest_ = 0, offsets_[0] = 0;
        for (std::int64_t n = length(random); offsets_[systems] + n <= count_; n = length(random)) {
            offsets_[systems + 1] = offsets_[systems] + n, ++systems;
            longest_ = std::max(longest_, n);
        }
        return systems;
    }

    const Sparse& sparse_;
    std::int64_t count_, longest_ = 0, *offsets_ = nullptr;
    int rounds_;
    bool peers_;
    nlohmann::ordered_json& rows_;
    Arrays<T> a_{};
    std::vector<DeviceMemory<T>> arrays_;
    DeviceMemory<cuda::DeviceOutcome> outcome_{1};
    DeviceMemory<unsigned long long> worst_{1};
    EventTimer time_;
};

std::vector<Shape> shapes() {
    std::vector<Shape> list;
    for (const bool dominant : {true, false})
        for (const auto& [name, least, most] : {std::tuple{"1 to 6", 1, 6}, {"4 to 60", 4, 60}, {"64", 64, 64}, {"20 to 400", 20, 400}, {"100 to 1000", 100, 1000}, {"1000", 1000, 1000}, {"500 to 3000", 500, 3000}, {"2000 to 6000", 2000, 6000},
                                                {"8000 to 60000", 8000, 60000}})
            list.push_back({name, least, most, dominant});
    return list;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json, only;
    std::int64_t count = 1 << 26;
    int rounds = 7;
    bool peer = true;
    Arguments arguments("cuda_ragged_bench", "Ragged batches on the GPU beside cuSPARSE and the roof");
    arguments.common(json, count, 1 << 16, &rounds);
    arguments.text("--only", only, "CASE:MATRIX,...: these alone");
    arguments.clears("--no-peer", peer, "cuSPARSE takes no turns");
    if (const auto status = arguments.parse(argc, argv)) return *status;
    std::vector<Shape> chosen;
    for (const Shape& shape : shapes())
        if (is_asked_for(only, shape.name + ":" + shape.matrix())) chosen.push_back(shape);
    nlohmann::ordered_json record = gpu_record("cuda_ragged", "Ragged batches on the GPU, percent of a 4 read, 1 write stream");
    const Sparse sparse;
    record["rows_of_arrays"] = count, record["reduced"] = !only.empty() || !peer;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    {
        Bench<double> bench(sparse, count, rounds, peer, rows);
        for (const Shape& shape : chosen) bench.run(shape);
    }
    {
        Bench<float> bench(sparse, count, rounds, peer, rows);
        for (const Shape& shape : chosen) bench.run(shape);
    }
    record["rows"] = rows;
    return write_record(record, json) ? 0 : 1;
}
