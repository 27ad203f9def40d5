// SPDX-License-Identifier: BSD-3-Clause
// Batches with one matrix for all systems on the GPU, in one process, interleaved: medians, percent of the best stream that reads
// one array and writes one of the same size. Beside it the kernels for general batches, which read the one matrix for every system
// anew, and cuSPARSE with the matrix copied for every system. Solves are enqueued as the library does, rescue included; results are checked on the GPU.
//
//   cuda_shared_bench [--json FILE] [--rows 2^k] [--rounds N] [--only CASE:ROWS,...] [--precision f32|f64]
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
#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "backends/cuda/tridiagonal/cell.hpp"
#include "backends/cuda/tridiagonal/shared/plan.hpp"
#include "bench/cuda/arguments.hpp"
#include "bench/cuda/batch_case.cuh"
#include "bench/cuda/gpu_record.hpp"
#include "bench/cuda/shared_ceiling.cuh"
#include "families/tridiagonal/ops.hpp"
#include "trifold/tridiagonal.hpp"

namespace {

namespace cuda = trifold::cuda;  // not the toolkit's own

using namespace trifold;
using namespace trifold::bench;
using trifold::tridiagonal::Operand;
using trifold::tridiagonal::System;

/// lower, diag, upper in row i: data[i], or the same number everywhere.
template <class T>
struct Band {
    const T* data;
    T value;
    __device__ T at(std::int64_t i) const { return data ? data[i] : value; }
};

template <class T>
struct Matrix {
    Band<T> bands[3];
    __device__ T lower(std::int64_t i, std::int64_t) const { return bands[0].at(i); }
    __device__ T diag(std::int64_t i, std::int64_t) const { return bands[1].at(i); }
    __device__ T upper(std::int64_t i, std::int64_t) const { return bands[2].at(i); }
};

// The matrix once per system, for a peer that knows no other way.
template <class T>
__global__ void copy_matrix(Band<T> band, T* to, std::int64_t rows, std::int64_t systems, bool interleaved) {
    for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < rows * systems; i += std::int64_t(gridDim.x) * blockDim.x)
        to[i] = band.at(interleaved ? i / systems : i % rows);
}

template <class T>
Operand band_operand(const Band<T>& band) {
    Operand o;
    o.kind = band.data ? Operand::Kind::view : Operand::Kind::scalar;
    o.data = const_cast<T*>(band.data), o.value = band.value, o.row_stride = 1;
    return o;
}

template <class T>
class Bench {
public:
    static constexpr std::int64_t longest = 1 << 16;

    Bench(const Sparse& sparse, std::int64_t count, int rounds, nlohmann::ordered_json& rows)
        : sparse_(sparse), rhs_(count), x_(count), copies_{DeviceMemory<T>(count), DeviceMemory<T>(count), DeviceMemory<T>(count)}, count_(count), rounds_(rounds),
          rows_(rows) {
        fill_array<T>(bands_[0], longest, 1, T(-1), T(1)), fill_array<T>(bands_[1], longest, 2, T(3), T(4)), fill_array<T>(bands_[2], longest, 3, T(-1), T(1));
        for (int b = 0; b < 3; ++b) fill_array<T>(lasting_[b], longest, 1, b == 1 ? T(2) : T(-1), b == 1 ? T(2) : T(-1));
        fill_array<T>(rhs_, count, 4, T(-1), T(1));
        const void* const read[4] = {rhs_, rhs_, rhs_, rhs_};
        roof_.emplace(read, x_, bytes(), 1);
        const void* const four[4] = {rhs_, copies_[0], copies_[1], copies_[2]};
        const StreamRoof reads(four, x_, bytes(), 4);
        four_reads_ = reads.gb_per_s(reads.best_ms());
    }

    void run(const BatchShape& shape) {
        // Implicit diffusion where the matrix is three numbers.
        const auto& bands = shape.lasting ? lasting_ : bands_;
        const Matrix<T> matrix = shape.scalars ? Matrix<T>{{{nullptr, T(-0.5)}, {nullptr, T(2)}, {nullptr, T(-0.5)}}}
                                               : Matrix<T>{{{bands[0], T(0)}, {bands[1], T(0)}, {bands[2], T(0)}}};
        System system = system_of<T>(shape, shape.in_place ? x_ : rhs_, x_);
        system.in_place = shape.in_place;
        system.lower = band_operand(matrix.bands[0]), system.diag = band_operand(matrix.bands[1]), system.upper = band_operand(matrix.bands[2]);
        const auto plan = cuda::plan_shared<T>(system);
        const tridiagonal::Ops& ops = *cuda::tridiagonal_ops(0);
        constexpr auto algorithm = tridiagonal::Algorithm::automatic;
        tridiagonal::Launch launch;
        launch.scratch_bytes = ops.workspace(system, algorithm, 1);
        const DeviceMemory<unsigned char> scratch(static_cast<std::int64_t>(launch.scratch_bytes));
        launch.scratch = scratch;
        const auto solve = [&] {
            Failure failure;
            if (!ops.enqueue(0, system, algorithm, launch, outcome_, failure)) failure.raise("cuda:0");
        };
        auto general = cuda::plan_batch<T>(system);
        auto* const outcome_there = static_cast<cuda::DeviceOutcome*>(outcome_);
        general.job.handed_over = &outcome_there->marked, general.job.tickets = &outcome_there->tickets;
        general.job.marks = static_cast<unsigned char*>(launch.scratch);
        const BatchPeer<T> peer(sparse_, shape, copies_[0], copies_[1], copies_[2], x_);
        std::vector<float> roof, ours, queued, theirs, before, moves[2];
        for (int round = 0; round <= rounds_; ++round) {
            const float r = time_([&] { roof_->pass(); });
            const float t = time_(solve), q = time_.queued(solve);
            if (round) roof.push_back(r), ours.push_back(t), queued.push_back(q);
            if (shape.in_place) check(cudaMemcpy(x_, rhs_, bytes(), cudaMemcpyDeviceToDevice), "memcpy");
            for (const bool drawn : {false, true}) {
                if (!plan.kernel) break;  // too long to be held on chip
                bool known = false;
                const float m = time_.queued([&] { known = move_shared(plan.job, *plan.kernel, counter_, drawn ? 4u : 0u); });
                if (round && known) moves[drawn].push_back(m);
            }
            if (round > 3) continue;
            if (general.fits()) {
                cuda::reset_outcome(outcome_, system.rows, system.systems(), 0, nullptr);
                const float g = time_([&] {
                    if (general.in_registers) cuda::solve_cut_columns(general.job, general.columns, nullptr, nullptr);
                    else general.kernel->launch(general.job, cuda::shared_bytes(general.job, *general.kernel), nullptr);
                });
                if (round) before.push_back(g);
            }
            if (peer) {
                // It overwrites its arrays: they are made anew, outside the time.
                const bool interleaved = shape.peer == BatchShape::Peer::interleaved;
                for (int b = 0; b < 3; ++b) copy_matrix<T><<<4096, 256>>>(matrix.bands[b], copies_[b], shape.rows, shape.systems(), interleaved);
                cudaMemcpy(x_, rhs_, bytes(), cudaMemcpyDeviceToDevice);
                const float p = time_([&] { peer(0); });
                if (round) theirs.push_back(p);
            }
        }
        check(shape.in_place ? cudaMemcpy(x_, rhs_, bytes(), cudaMemcpyDeviceToDevice) : cudaMemset(x_, 0xff, bytes()), "memset");
        solve();
        const double error = backward_error_roundoffs<T>(matrix, shape, rhs_, x_, worst_);
        cuda::DeviceOutcome outcome;
        check(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), "outcome");
        const double needed = 2.0 * sizeof(T) * static_cast<double>(shape.rows * shape.systems());
        const double bandwidth = roof_->gb_per_s(median(roof)), ms = median(ours), fraction = needed / ms / 1e6 / bandwidth;
        // What only moves the same pieces may be slower than what solves: then it says nothing.
        const double ceiling = moves[0].empty() ? NAN : needed / std::min(median(moves[0]), median(moves[1])) / 1e6 / bandwidth;
        nlohmann::ordered_json row;
        const char* const name = shape.lasting ? "-1 2 -1" : shape.scalars ? "scalars" : "arrays";
        row["case"] = shape.name, row["matrix"] = name, row["rows"] = shape.rows, row["systems"] = shape.systems();
        row["precision"] = sizeof(T) == 8 ? "f64" : "f32";
        row["ms"] = ms, row["roof_gb_per_s"] = bandwidth, row["fraction"] = fraction, row["fraction_of_four_reads"] = needed / ms / 1e6 / four_reads_, row["grows_per_s"] = needed / (2.0 * sizeof(T)) / ms / 1e6;
        const double queued_fraction = needed / median(queued) / 1e6 / bandwidth;
        row["queued_fraction"] = queued_fraction;  // enqueued while the GPU was busy, as the ceiling is
        if (ceiling > std::max(fraction, queued_fraction)) row["ceiling"] = ceiling;
        if (!before.empty()) row["general_ms"] = median(before), row["times_general"] = median(before) / ms;
        if (!theirs.empty()) row["cusparse_ms"] = median(theirs), row["times_cusparse"] = median(theirs) / ms;
        row["backward_error_roundoffs"] = error;
        row["rescued"] = outcome.rescued, row["failures"] = outcome.failures;
        if (plan.kernel) row["rows_per_thread"] = plan.kernel->rows, row["across"] = plan.kernel->columns ? plan.job.across : 1;
        if (plan.kernel && plan.kernel->bands) row["blocks"] = plan.job.cluster;
        rows_.push_back(row);
        std::printf("%-12s %-7s %s %5lld rows  %5.1f %% (queued %5.1f) of %4.0f GB/s  %4.1f x general  %5.1f x cuSPARSE  %4.1f u  rescued %llu  ceiling %.1f\n", shape.name.c_str(),
                    name, sizeof(T) == 8 ? "f64" : "f32", static_cast<long long>(shape.rows), 100 * fraction, 100 * queued_fraction, bandwidth,
                    median(before) / ms, median(theirs) / ms, error, outcome.rescued, 100 * ceiling);
        std::fflush(stdout);
    }

private:
    std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

    const Sparse& sparse_;
    DeviceMemory<T> rhs_, x_, copies_[3], bands_[3] = {DeviceMemory<T>(longest), DeviceMemory<T>(longest), DeviceMemory<T>(longest)};
    DeviceMemory<T> lasting_[3] = {DeviceMemory<T>(longest), DeviceMemory<T>(longest), DeviceMemory<T>(longest)};  ///< −1, 2, −1: unknowns far apart feel each other
    std::int64_t count_;
    int rounds_;
    nlohmann::ordered_json& rows_;
    DeviceMemory<cuda::DeviceOutcome> outcome_{1};
    DeviceMemory<unsigned long long> worst_{1};
    DeviceMemory<unsigned> counter_{1};
    std::optional<StreamRoof> roof_;
    double four_reads_ = 0;  ///< GB/s of the best stream that reads four arrays and writes one: the roof of batches with matrices of their own
    EventTimer time_;
};

std::vector<BatchShape> shapes(std::int64_t count) {
    using Peer = BatchShape::Peer;
    std::vector<BatchShape> list;
    for (int n : {32, 64, 100, 128, 256, 300, 400, 512, 1000, 1024, 2048}) list.push_back({"contiguous", n, 1, count / n, n, 1, 0, Peer::strided});
    list.push_back({"padded", 250, 1, count / 256, 256});
    list.push_back({"padded", 255, 1, count / 257, 257});
    for (int n : {32, 64, 128, 256, 512, 1024, 2048}) list.push_back({"interleaved", n, count / n, count / n, 1, 1, 0, Peer::interleaved});
    // Pieces of a row that are whole lines, or not; 12000: in single precision a last tile that is half full.
    for (int n : {1280, 1536}) list.push_back({"interleaved", n, count / n / 64 * 64, count / n / 64 * 64, 1, 1, 0, Peer::interleaved});
    list.push_back({"interleaved", 12000, count / 12000 / 32 * 32, count / 12000 / 32 * 32, 1, 1, 0, Peer::interleaved});
    for (int n : {1400, 10000}) list.push_back({"interleaved", n, count / n / 8 * 8, count / n / 8 * 8, 1, 1, 0, Peer::interleaved});
    for (const bool scalars : {false, true}) {
        for (int n : {8192, 65536}) list.push_back({"contiguous", n, 1, count / n, n, 1, 0, Peer::none, scalars});
        for (int n : {4096, 8192, 65536}) list.push_back({"interleaved", n, count / n, count / n, 1, 1, 0, Peer::none, scalars});
    }
    for (const bool contiguous : {false, true}) {
        BatchShape shape = contiguous ? BatchShape{"contiguous, in place", 8192, 1, count / 8192, 8192} : BatchShape{"interleaved, in place", 8192, count / 8192, count / 8192, 1};
        for (const bool in_place : {false, true}) {
            for (int n : {4096, 8192, 65536}) {
                BatchShape lasting{contiguous ? "contiguous" : "interleaved", n, contiguous ? 1 : count / n, count / n, contiguous ? n : 1};
                lasting.lasting = true, lasting.in_place = in_place;
                if (in_place) lasting.name += ", in place";
                if (!in_place || n == 8192) list.push_back(lasting);
            }
        }
        shape.in_place = true;
        list.push_back(shape);
    }
    list.push_back({"interleaved", 20000, count / 20000, count / 20000, 1});
    list.push_back({"odd pitch", 8191, 16385, 16383, 1});
    for (int n : {100, 500, 1000, 2000}) list.push_back({"odd pitch", n, count / n | 1, (count / n | 1) - 2, 1});
    for (const bool scalars : {false, true}) {
        list.push_back({"256^3 x", 256, 1, count >> 8, 256, 1, 0, Peer::none, scalars});
        list.push_back({"256^3 y", 256, 256, 256, 1, count >> 16, 1 << 16, Peer::none, scalars});
        if (count >= 1 << 24) list.push_back({"256^3 z", 256, 65536, 65536, 1, count >> 24, 1 << 24, Peer::none, scalars});
        list.push_back({"512^3 x", 512, 1, count >> 9, 512, 1, 0, Peer::none, scalars});
        list.push_back({"512^3 y", 512, 512, 512, 1, count >> 18, 1 << 18, Peer::none, scalars});
        list.push_back({"512^3 z", 512, count / 512, count / 512, 1, 1, 0, Peer::none, scalars});
    }
    list.push_back({"padded y", 256, 264, 256, 1, count / (264 * 257), 264 * 257});
    list.push_back({"odd y", 255, 257, 255, 1, count / (257 * 257), 257 * 257});
    for (BatchShape& s : list)  // what fits into `count` elements
        if (s.outer == 1 && s.row_stride > 1) s.rows = std::min(s.rows, (count - s.columns) / s.row_stride + 1);
    return list;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json, only, precision;
    std::int64_t count = 1 << 27;
    int rounds = 7;
    Arguments arguments("cuda_shared_bench", "Batches with one matrix on the GPU beside cuSPARSE and the roof");
    arguments.common(json, count, 1 << 16, &rounds);
    arguments.text("--only", only, "CASE:ROWS,...: these alone");
    arguments.one_of("--precision", precision, {"f32", "f64"}, "this alone");
    if (const auto status = arguments.parse(argc, argv)) return *status;
    nlohmann::ordered_json record = gpu_record("cuda_shared", "Batches with one matrix on the GPU, percent of a 1 read, 1 write stream");
    const Sparse sparse;
    record["rows_of_arrays"] = count;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    const auto list = shapes(count);
    const auto wanted = [&](const BatchShape& shape) {
        return is_asked_for(only, shape.name + ":" + std::to_string(shape.rows));
    };
    if (precision != "f32") {
        Bench<double> bench(sparse, count, rounds, rows);
        for (const BatchShape& shape : list)
            if (wanted(shape)) bench.run(shape);
    }
    if (precision != "f64") {
        Bench<float> bench(sparse, count, rounds, rows);
        for (const BatchShape& shape : list)
            if (wanted(shape)) bench.run(shape);
    }
    record["rows"] = rows;
    return write_record(record, json) ? 0 : 1;
}
