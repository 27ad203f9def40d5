// SPDX-License-Identifier: BSD-3-Clause
// Batches on the GPU beside cuSPARSE and the roof, in one process, interleaved: medians, percent of the best stream that reads four
// arrays and writes one of the same size (two, where couplings are the same in all systems). Solves are enqueued as the library does, rescue included; results are checked on the GPU.
//
//   cuda_batch_bench [--json FILE] [--rows 2^k] [--rounds N] [contiguous] [long] [axes] [tall] [couplings] [pivoted]
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

#include "backends/cuda/tridiagonal/batch.hpp"
#include "backends/cuda/tridiagonal/batch_plan.hpp"
#include "backends/cuda/tridiagonal/cell.hpp"
#include "backends/cuda/tridiagonal/few_rows.hpp"
#include "bench/cuda/arguments.hpp"
#include "bench/cuda/batch_case.cuh"
#include "bench/cuda/column_ceiling.cuh"
#include "bench/cuda/gpu_record.hpp"
#include "bench/cuda/row_ceiling.cuh"
#include "families/tridiagonal/ops.hpp"
#include "trifold/tridiagonal.hpp"

namespace {

namespace cuda = trifold::cuda;  // not the toolkit's own

using namespace trifold;
using namespace trifold::bench;
using trifold::tridiagonal::System;

template <class T>
struct Arrays {
    T *lower, *diag, *upper, *rhs, *x;
};

using Couplings = BatchShape::Couplings;

constexpr double lower_number = -0.7, upper_number = 0.4;  // couplings that are two numbers

template <class T>
struct RowsOf {
    Arrays<T> a;
    Couplings couplings;
    __device__ T lower(std::int64_t i, std::int64_t at) const { return couplings == Couplings::scalars ? T(lower_number) : a.lower[couplings == Couplings::own ? at : i]; }
    __device__ T diag(std::int64_t, std::int64_t at) const { return a.diag[at]; }
    __device__ T upper(std::int64_t i, std::int64_t at) const { return couplings == Couplings::scalars ? T(upper_number) : a.upper[couplings == Couplings::own ? at : i]; }
};

/// lower or upper, as the shape has them.
template <class T>
tridiagonal::Operand coupling_of(T* data, double number, const BatchShape& shape) {
    if (shape.couplings == Couplings::own) return operand_of(data, shape);
    tridiagonal::Operand o;
    if (shape.couplings == Couplings::scalars) o.kind = tridiagonal::Operand::Kind::scalar, o.value = number;
    else o.kind = tridiagonal::Operand::Kind::view, o.data = data, o.row_stride = 1;
    return o;
}

/// Diagonals as small as the rest, those of systems 0, every, 2 every …
template <class T>
__global__ void spoil(T* diag, std::int64_t rows, std::int64_t row_stride, std::int64_t columns, std::int64_t column_stride, int every, int seed) {
    const std::int64_t all = rows * ((columns + every - 1) / every);
    for (std::int64_t e = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; e < all; e += std::int64_t(gridDim.x) * blockDim.x) {
        const std::int64_t at = e % rows * row_stride + e / rows * every * column_stride;
        diag[at] = T(2 * uniform(seed, at) - 1);
    }
}

template <class T>
class Bench {
public:
    Bench(const Sparse& sparse, std::int64_t count, int rounds, nlohmann::ordered_json& rows) : sparse_(sparse), count_(count), rounds_(rounds), rows_(rows) {
        for (int k = 0; k < 8; ++k) arrays_.emplace_back(count);  // one more lowers the roof by 5 %: placement
        a_ = {arrays_[0], arrays_[1], arrays_[2], arrays_[3], arrays_[4]};
        fill_array(a_.lower, count, 1, T(-1), T(1)), fill_array(a_.diag, count, 2, T(3), T(4));
        fill_array(a_.upper, count, 3, T(-1), T(1)), fill_array(a_.rhs, count, 4, T(-1), T(1));
        const void* const read[4] = {a_.lower, a_.diag, a_.upper, a_.rhs};
        roof_.emplace(read, a_.x, bytes());
        const void* const half[4] = {a_.diag, a_.rhs, a_.diag, a_.rhs};
        half_roof_.emplace(half, a_.x, bytes(), 2);
    }

    void run(const BatchShape& shape) {
        System system = system_of(shape, a_.rhs, a_.x);
        if (shape.lasting || lasting_) {
            const T least = T(-1), most = shape.lasting ? T(-1) : T(1);
            fill_array(a_.lower, count_, 1, least, most), fill_array(a_.upper, count_, 3, least, most);
            fill_array(a_.diag, count_, 2, shape.lasting ? T(2) : T(3), shape.lasting ? T(2) : T(4));
            lasting_ = shape.lasting;
        }
        if (shape.indefinite || spoilt_) {
            fill_array(a_.diag, count_, 2, T(3), T(4));
            if (shape.indefinite) spoil<<<4096, 256>>>(a_.diag, shape.rows, shape.row_stride, shape.columns, shape.column_stride, shape.indefinite, 2);
            spoilt_ = shape.indefinite;
        }
        system.lower = coupling_of(a_.lower, lower_number, shape), system.diag = operand_of(a_.diag, shape), system.upper = coupling_of(a_.upper, upper_number, shape);
        const bool own = shape.couplings == Couplings::own;
        const StreamRoof& stream = own ? *roof_ : *half_roof_;
        const bool on_chip = !cuda::takes_few_rows(system) && !cuda::batch_refuses(system);
        const auto plan = cuda::plan_batch<T>(system);
        const tridiagonal::Ops& ops = *cuda::tridiagonal_ops(0);
        const auto algorithm = shape.pivoted ? tridiagonal::Algorithm::lu : tridiagonal::Algorithm::automatic;
        tridiagonal::Launch launch;
        launch.scratch_bytes = ops.workspace(system, algorithm, 1);
        const DeviceMemory<unsigned char> scratch(static_cast<std::int64_t>(launch.scratch_bytes));
        launch.scratch = scratch;
        const auto solve = [&] {
            Failure failure;
            if (!ops.enqueue(0, system, algorithm, launch, outcome_, failure)) failure.raise("cuda:0");
        };
        const bool strided = shape.peer == BatchShape::Peer::strided;
        T *const w[3] = {strided ? a_.lower : arrays_[5], strided ? a_.diag : arrays_[6], strided ? a_.upper : arrays_[7]};
        const BatchPeer<T> peer(sparse_, shape, w[0], w[1], w[2], a_.x);
        std::vector<float> roof, ours, queued, theirs[2], moves;
        for (int round = 0; round <= rounds_; ++round) {
            const float r = time_([&] { stream.pass(); });
            const float t = time_(solve), q = time_.queued(solve);
            if (round) roof.push_back(r), ours.push_back(t), queued.push_back(q);
            if (on_chip && !shape.pivoted && plan.columns.bands == cuda::ColumnBands::own && (plan.in_registers || plan.kernel->width == 1)) {
                const float m = time_.queued([&] {
                    if (plan.in_registers) move_columns(plan.job, plan.columns, counters_);
                    else move_rows(plan.job, *plan.kernel, static_cast<unsigned char*>(launch.scratch), counters_);
                });
                if (round) moves.push_back(m);
            }
            if (peer && round < 4)
                for (int way = 0; way < peer.ways(); ++way) {
                    // It overwrites its arrays: they are copied anew, outside the time.
                    cudaMemcpy(a_.x, a_.rhs, bytes(), cudaMemcpyDeviceToDevice);
                    for (int k = 0; !strided && k < 3; ++k) cudaMemcpy(w[k], arrays_[k], bytes(), cudaMemcpyDeviceToDevice);
                    const float p = time_([&] { peer(way); });
                    if (round) theirs[way].push_back(p);
                }
        }
        check(cudaMemset(a_.x, 0xff, bytes()), "memset");
        solve();
        const double error = backward_error_roundoffs(RowsOf<T>{a_, shape.couplings}, shape, a_.rhs, a_.x, worst_);
        cuda::DeviceOutcome outcome;
        check(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), "outcome");
        const int words_of_row = own ? 5 : 3;
        const double words = words_of_row * static_cast<double>(sizeof(T)), needed = words * static_cast<double>(shape.rows * shape.systems());
        const double bandwidth = stream.gb_per_s(median(roof)), ms = median(ours);
        const double best_peer = theirs[1].empty() ? median(theirs[0]) : std::min(median(theirs[0]), median(theirs[1]));
        const double fraction = needed / ms / 1e6 / bandwidth, queued_fraction = needed / median(queued) / 1e6 / bandwidth;
        // What only moves the same pieces may be slower than what solves: then it says nothing.
        const double ceiling = moves.empty() ? NAN : needed / median(moves) / 1e6 / bandwidth;
        nlohmann::ordered_json row;
        row["case"] = shape.name, row["rows"] = shape.rows, row["systems"] = shape.systems(), row["precision"] = sizeof(T) == 8 ? "f64" : "f32";
        row["ms"] = ms, row["roof_gb_per_s"] = bandwidth, row["fraction"] = fraction, row["grows_per_s"] = needed / words / ms / 1e6;
        row["queued_fraction"] = queued_fraction;  // enqueued while the GPU was busy, as the ceiling is
        if (ceiling > std::max(fraction, queued_fraction)) row["ceiling"] = ceiling;
        if (std::isfinite(best_peer)) row["cusparse_ms"] = best_peer, row["times_cusparse"] = best_peer / ms, row["cusparse_fraction"] = needed / best_peer / 1e6 / bandwidth;
        row["backward_error_roundoffs"] = error;
        row["rescued"] = outcome.rescued, row["failures"] = outcome.failures;
        if (!on_chip) {
        } else if (plan.in_registers) {
            const auto& cut = plan.columns;
            row["rows_per_lane"] = cuda::column_chunk, row["columns_wide"] = cut.columns, row["cluster"] = cut.blocks;
            row["warps"] = cut.warps, row["shared_bytes"] = cut.shared_bytes;
        } else {
            row["rows_per_lane"] = plan.kernel->chunk, row["columns_wide"] = plan.kernel->width, row["cluster"] = plan.job.blocks;
            row["warps"] = plan.job.warps, row["shared_bytes"] = cuda::shared_bytes(plan.job, *plan.kernel);
        }
        if (shape.pivoted) row["algorithm"] = "lu";
        if (!own) row["words_per_row"] = words_of_row;
        if (shape.lasting) row["matrix"] = "-1 2 -1";
        if (shape.indefinite) row["matrix"] = shape.indefinite == 1 ? "indefinite" : "one indefinite in " + std::to_string(shape.indefinite);
        rows_.push_back(row);
        std::printf("%-14s %s %6lld rows  %5.1f %% (queued %5.1f) of %4.0f GB/s  %4.1f x cuSPARSE  %4.1f u  rescued %llu  ceiling %.1f\n", shape.name.c_str(), sizeof(T) == 8 ? "f64" : "f32",
                    static_cast<long long>(shape.rows), 100 * fraction, 100 * queued_fraction, bandwidth, best_peer / ms, error, outcome.rescued, 100 * ceiling);
        std::fflush(stdout);
    }

private:
    std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

    const Sparse& sparse_;
    std::int64_t count_;
    int rounds_;
    bool spoilt_ = false;   ///< diag holds indefinite systems
    bool lasting_ = false;  ///< the matrix is −1, 2, −1
    nlohmann::ordered_json& rows_;
    Arrays<T> a_{};
    std::vector<DeviceMemory<T>> arrays_;  ///< those of a_, and three that a peer may overwrite
    DeviceMemory<cuda::DeviceOutcome> outcome_{1};
    DeviceMemory<unsigned long long> worst_{1};
    DeviceMemory<unsigned> counters_{32};
    std::optional<StreamRoof> roof_, half_roof_;  ///< of five words, and of three
    EventTimer time_;
};

std::vector<BatchShape> shapes(std::int64_t count, const std::vector<std::string>& parts) {
    const auto wanted = [&](const char* part) { return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end(); };
    std::vector<BatchShape> list;
    const auto contiguous = [&](std::int64_t n) { list.push_back({"contiguous", n, 1, count / n, n, 1, 0, BatchShape::Peer::strided}); };
    if (wanted("contiguous"))
        for (int n : {3, 4, 5, 7, 8, 13, 16, 31, 32, 33, 61, 64, 100, 127, 128, 129, 150, 200, 251, 256, 257, 300, 367, 400, 450, 509, 512}) contiguous(n);
    if (wanted("contiguous")) {
        list.push_back({"padded", 7, 1, count / 10, 10});
        list.push_back({"padded", 250, 1, count / 256, 256});
        list.push_back({"padded", 255, 1, count / 257, 257});
    }
    if (wanted("long"))
        for (int n : {513, 777, 1000, 1024, 1500, 2048, 3000, 4096, 6000, 8192}) contiguous(n);
    if (wanted("axes")) {
        // cuSPARSE's LU of 22 million systems of three rows reads and writes what is not its own (CUDA 13), so that it is not beside such short ones.
        for (int n : {3, 5, 8}) list.push_back({"interleaved", n, count / n, count / n, 1});
        for (int n : {16, 64, 256, 512, 1024, 4096}) list.push_back({"interleaved", n, count / n, count / n, 1, 1, 0, BatchShape::Peer::interleaved});
        list.push_back({"64 wide y", 7, 64, 64, 1, count / (64 * 7), 64 * 7});
        list.push_back({"256^3 y", 256, 256, 256, 1, count >> 16, 1 << 16});
        if (count >= 1 << 24) list.push_back({"256^3 z", 256, 65536, 65536, 1, count >> 24, 1 << 24});
        list.push_back({"512^3 y", 512, 512, 512, 1, count >> 18, 1 << 18});
        list.push_back({"512^3 z", 512, count / 512, count / 512, 1});
        list.push_back({"padded y", 256, 264, 256, 1, count / (264 * 257), 264 * 257});
        list.push_back({"odd y", 255, 257, 255, 1, count / (257 * 257), 257 * 257});
    }
    if (wanted("tall")) {
        for (int n : {5000, 8192, 20000, 65536, 1 << 20}) list.push_back({"interleaved", n, count / n, count / n, 1, 1, 0, BatchShape::Peer::interleaved});
        for (int n : {8192, 65536}) list.push_back({"interleaved, -1 2 -1", n, count / n, count / n, 1, 1, 0, BatchShape::Peer::none, false, 0, true});
    }
    if (wanted("couplings"))
        for (const Couplings couplings : {Couplings::shared, Couplings::scalars}) {
            const auto with = [&](BatchShape shape) {
                shape.couplings = couplings, shape.name += couplings == Couplings::shared ? ", couplings shared" : ", couplings numbers";
                list.push_back(shape);
            };
            for (int n : {16, 64, 100, 255, 256, 512, 1000, 1024, 2048, 4096}) with({"contiguous", n, 1, count / n, n, 1, 0, BatchShape::Peer::strided});
            for (int n : {16, 64, 100, 256, 512, 1024, 2048, 4096}) with({"interleaved", n, count / n, count / n, 1, 1, 0, BatchShape::Peer::interleaved});
            with({"256^3 y", 256, 256, 256, 1, count >> 16, 1 << 16});
            with({"odd y", 255, 257, 255, 1, count / (257 * 257), 257 * 257});
        }
    if (wanted("pivoted")) {
        for (int n : {16, 64, 256, 512, 1024, 2048, 4096, 8192}) list.push_back({"contiguous few", n, 1, count / n, n, 1, 0, BatchShape::Peer::none, false, 100, false});
        for (int n : {64, 256, 1024, 4096}) list.push_back({"interleaved few", n, count / n, count / n, 1, 1, 0, BatchShape::Peer::none, false, 100, false});
        for (const bool pivoted : {true, false}) {
            const std::string name = pivoted ? " lu" : " rescue";
            for (int n : {16, 64, 256, 512, 1024, 2048, 4096})
                list.push_back({"contiguous" + name, n, 1, count / n, n, 1, 0, BatchShape::Peer::none, false, 1, false, pivoted});
            for (int n : {64, 256, 512, 1024, 2048, 4096, 8192})
                list.push_back({"interleaved" + name, n, count / n, count / n, 1, 1, 0, pivoted ? BatchShape::Peer::interleaved : BatchShape::Peer::none, false, 1, false, pivoted});
        }
    }
    return list;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    std::int64_t count = 1 << 26;
    int rounds = 7;
    std::vector<std::string> parts;
    Arguments arguments("cuda_batch_bench", "Batches on the GPU beside cuSPARSE and the roof");
    arguments.common(json, count, 1 << 16, &rounds);
    arguments.parts(parts, {"contiguous", "long", "axes", "tall", "couplings", "pivoted"});
    if (const auto status = arguments.parse(argc, argv)) return *status;
    nlohmann::ordered_json record = gpu_record("cuda_batch", "Batches on the GPU, percent of a 4 read, 1 write stream");
    const Sparse sparse;
    record["rows_of_arrays"] = count;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const bool wide : {true, false}) {
        const auto list = shapes(count, parts);
        if (wide) {
            Bench<double> bench(sparse, count, rounds, rows);
            for (const BatchShape& shape : list) bench.run(shape);
        } else {
            Bench<float> bench(sparse, count, rounds, rows);
            for (const BatchShape& shape : list) bench.run(shape);
        }
    }
    record["rows"] = rows;
    return write_record(record, json) ? 0 : 1;
}
