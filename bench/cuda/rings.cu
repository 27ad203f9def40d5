// SPDX-License-Identifier: BSD-3-Clause
// Rings (periodic systems) on the GPU beside cuSPARSE and the roof, in one process, interleaved: medians, percent of the best stream that reads four arrays and writes
// one of the same size (reads one and writes one, where all rings share their matrix). Results are checked on the GPU.
//
// cuSPARSE has no periodic solver. What takes its place is what its users write: two solves with the matrix T that is left where corners are moved into
// the diagonal (Sherman and Morrison), and a kernel that joins them. Arrays that it overwrites are copied anew outside the time.
//
//   cuda_rings_bench [--json FILE] [--rows 2^k] [--rounds N] [--only CASE:ROWS,...] [--no-peer]
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
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
    std::int64_t rows, systems;
    bool interleaved = false, shared = false, peer = true;

    std::int64_t row_stride() const { return interleaved ? systems : 1; }
    std::int64_t system_stride() const { return interleaved ? 1 : rows; }
};

template <class T>
struct Arrays {
    T *lower, *diag, *upper, *rhs, *x;
};

template <class T>
__global__ void backward_error(Arrays<T> a, std::int64_t n, std::int64_t rs, std::int64_t systems, std::int64_t ss, bool shared, unsigned long long* worst) {
    const std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x, base = k * ss;
    if (k >= systems) return;
    const std::int64_t ms = shared ? 1 : rs, matrix_base = shared ? 0 : base;
    double residual = 0, matrix = 0, largest = 0, rhs = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t m = matrix_base + i * ms;
        const double x = a.x[base + i * rs];
        RowResidual row(a.rhs[base + i * rs]);
        row.subtract(a.diag[m], x);
        row.subtract(a.lower[m], a.x[base + (i ? i - 1 : n - 1) * rs]);
        row.subtract(a.upper[m], a.x[base + (i + 1 < n ? i + 1 : 0) * rs]);
        if (!(row.value() <= residual)) residual = row.value();
        matrix = fmax(matrix, row.sum), largest = fmax(largest, fabs(x)), rhs = fmax(rhs, fabs(double(a.rhs[base + i * rs])));
    }
    const double error = residual / (matrix * largest + rhs);
    atomicMax(worst, __double_as_longlong(error >= 0 ? error : 1e300));
}

/// T of Sherman and Morrison: gamma = -diag[0]; T[0] = diag[0] - gamma, T[n-1] = diag[n-1] - a c / gamma; u = (gamma, 0 … 0, c).
template <class T>
__global__ void open_rings(Arrays<T> a, T* diag, T* u, std::int64_t rows, std::int64_t rs, std::int64_t systems, std::int64_t ss) {
    for (std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; k < systems; k += std::int64_t(gridDim.x) * blockDim.x) {
        const std::int64_t first = k * ss, last = first + (rows - 1) * rs;
        const T gamma = -a.diag[first];
        diag[first] = a.diag[first] - gamma, diag[last] = a.diag[last] - a.lower[first] * a.upper[last] / gamma;
        u[first] = gamma, u[last] = a.upper[last];
    }
}

/// (v x) / (1 + v z), v = (1, 0 … 0, a / gamma).
template <class T>
__global__ void factors_of_rings(Arrays<T> a, const T* z, T* factors, std::int64_t rows, std::int64_t rs, std::int64_t systems, std::int64_t ss) {
    for (std::int64_t k = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; k < systems; k += std::int64_t(gridDim.x) * blockDim.x) {
        const std::int64_t first = k * ss, last = first + (rows - 1) * rs;
        const T v = a.lower[first] / -a.diag[first];
        factors[k] = (a.x[first] + v * a.x[last]) / (T(1) + z[first] + v * z[last]);
    }
}

template <class T>
__global__ void join_rings(T* x, const T* z, const T* factors, std::int64_t rows, std::int64_t systems, bool along) {
    for (std::int64_t e = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; e < rows * systems; e += std::int64_t(gridDim.x) * blockDim.x)
        x[e] -= factors[along ? e / rows : e % systems] * z[e];
}

template <class T>
tridiagonal::Operand operand_of(T* data, std::int64_t row_stride, std::int64_t system_stride) {
    tridiagonal::Operand o;
    o.kind = tridiagonal::Operand::Kind::view;
    o.data = data, o.row_stride = row_stride, o.level_stride[0] = system_stride;
    return o;
}

template <class T>
class Bench {
public:
    Bench(const Sparse& sparse, std::int64_t count, int rounds, nlohmann::ordered_json& rows) : sparse_(sparse), count_(count), rounds_(rounds), rows_(rows) {
        for (int k = 0; k < 8; ++k) arrays_.emplace_back(count);
        a_ = {arrays_[0], arrays_[1], arrays_[2], arrays_[3], arrays_[4]};
        fill_array(a_.lower, count, 1, T(-1), T(1)), fill_array(a_.diag, count, 2, T(3), T(4));
        fill_array(a_.upper, count, 3, T(-1), T(1)), fill_array(a_.rhs, count, 4, T(-1), T(1));
    }

    void run(const Shape& shape) {
        const std::int64_t n = shape.rows, used = n * shape.systems;
        const auto bytes = static_cast<std::size_t>(used) * sizeof(T);
        const void* const read[4] = {a_.lower, a_.diag, a_.upper, a_.rhs}, *const one[4] = {a_.rhs, a_.rhs, a_.rhs, a_.rhs};
        const StreamRoof roof(shape.shared ? one : read, a_.x, std::max(bytes, std::size_t{32768}), shape.shared ? 1 : 4);  // which has room for no less
        System ring;
        ring.dtype = sizeof(T) == 8 ? DType::f64 : DType::f32;
        ring.rows = n, ring.levels = shape.systems > 1, ring.extent[0] = shape.systems, ring.number_stride[0] = 1;
        const auto matrix = [&](T* data) { return operand_of(data, shape.shared ? 1 : shape.row_stride(), shape.shared ? 0 : shape.system_stride()); };
        ring.lower = matrix(a_.lower), ring.diag = matrix(a_.diag), ring.upper = matrix(a_.upper);
        ring.rhs = operand_of(a_.rhs, shape.row_stride(), shape.system_stride()), ring.x = operand_of(a_.x, shape.row_stride(), shape.system_stride());
        System open = ring;
        ring.periodic = true, ring.top_right = ring.lower, ring.bottom_left = ring.upper;
        ring.bottom_left.data = static_cast<T*>(ring.upper.data) + (n - 1) * ring.upper.row_stride;
        const auto enqueue = [&](const System& system) {
            const tridiagonal::Ops& ops = *cuda::tridiagonal_ops(0);
            tridiagonal::Launch launch;
            launch.scratch_bytes = scratch_bytes_, launch.scratch = *scratch_;
            Failure failure;
            if (!ops.enqueue(0, system, tridiagonal::Algorithm::automatic, launch, outcome_, failure)) failure.raise("cuda:0");
        };
        scratch_bytes_ = std::max(cuda::tridiagonal_ops(0)->workspace(ring, tridiagonal::Algorithm::automatic, 1), cuda::tridiagonal_ops(0)->workspace(open, tridiagonal::Algorithm::automatic, 1));
        scratch_.emplace(static_cast<std::int64_t>(scratch_bytes_));

        BatchShape peer_shape{shape.name, n, shape.row_stride(), shape.systems, shape.system_stride()};
        if (shape.peer && !shape.shared && shape.systems > 1) peer_shape.peer = shape.interleaved ? BatchShape::Peer::interleaved : BatchShape::Peer::strided;
        T *const w[3] = {arrays_[5], arrays_[6], arrays_[7]};
        const BatchPeer<T> peer(sparse_, peer_shape, w[0], w[1], w[2], a_.x);
        std::optional<DeviceMemory<T>> z;
        std::optional<BatchPeer<T>> peer_z;
        if (peer) z.emplace(used), peer_z.emplace(sparse_, peer_shape, w[0], w[1], w[2], *z);
        std::vector<float> roofs, ours, opens, theirs;
        for (int round = 0; round <= rounds_; ++round) {
            const float r = time_([&] { roof.pass(); }), t = time_([&] { enqueue(ring); }), o = time_([&] { enqueue(open); });
            if (round) roofs.push_back(r), ours.push_back(t), opens.push_back(o);
            if (!peer || round >= 4) continue;
            const auto fresh = [&] {
                for (int k = 0; k < 3; ++k) cudaMemcpy(w[k], arrays_[k], bytes, cudaMemcpyDeviceToDevice);
            };
            const auto opened = [&] { open_rings<<<1024, 256>>>(a_, w[1], static_cast<T*>(*z), n, shape.row_stride(), shape.systems, shape.system_stride()); };
            const auto joined = [&] {
                factors_of_rings<<<1024, 256>>>(a_, static_cast<T*>(*z), w[0], n, shape.row_stride(), shape.systems, shape.system_stride());
                join_rings<<<8192, 256>>>(a_.x, static_cast<T*>(*z), w[0], n, shape.systems, !shape.interleaved);
            };
            fresh(), cudaMemcpy(a_.x, a_.rhs, bytes, cudaMemcpyDeviceToDevice), cudaMemset(*z, 0, bytes);
            float sum = time_([&] { opened(), peer(0); });
            if (shape.interleaved) fresh(), opened();
            sum += time_([&] { (*peer_z)(0), joined(); });
            if (round) theirs.push_back(sum);
        }
        check(cudaMemset(a_.x, 0xff, bytes), "memset");
        enqueue(ring);
        check(cudaMemset(worst_, 0, sizeof(unsigned long long)), "memset");
        backward_error<T><<<static_cast<unsigned>((shape.systems + 127) / 128), 128>>>(a_, n, shape.row_stride(), shape.systems, shape.system_stride(), shape.shared, worst_);
        double error = 0;
        check(cudaMemcpy(&error, worst_, sizeof error, cudaMemcpyDeviceToHost), shape.name.c_str());
        cuda::DeviceOutcome outcome;
        check(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), "outcome");
        const int words = shape.shared ? 2 : 5;
        const double needed = words * static_cast<double>(bytes), bandwidth = roof.gb_per_s(median(roofs)), ms = median(ours), best_peer = median(theirs);
        error *= sizeof(T) == 8 ? 0x1p53 : 0x1p24;
        nlohmann::ordered_json row;
        row["case"] = shape.name, row["rows"] = n, row["systems"] = shape.systems, row["precision"] = sizeof(T) == 8 ? "f64" : "f32";
        row["ms"] = ms, row["roof_gb_per_s"] = bandwidth, row["words"] = words, row["fraction"] = needed / ms / 1e6 / bandwidth, row["grows_per_s"] = static_cast<double>(used) / ms / 1e6;
        row["open_ms"] = median(opens);
        if (std::isfinite(best_peer)) row["cusparse_ms"] = best_peer, row["times_cusparse"] = best_peer / ms;
        row["backward_error_roundoffs"] = error, row["rescued"] = outcome.rescued, row["failures"] = outcome.failures;
        rows_.push_back(row);
        std::printf("%-20s %s %8lld rows  %7.3f ms  %5.1f %% of %4.0f GB/s at %d words  open %7.3f ms  %4.1f x cuSPARSE  %4.1f u  rescued %llu failed %llu\n", shape.name.c_str(), sizeof(T) == 8 ? "f64" : "f32",
                    static_cast<long long>(n), ms, 100 * needed / ms / 1e6 / bandwidth, bandwidth, words, median(opens), best_peer / ms, error, outcome.rescued, outcome.failures);
        std::fflush(stdout);
    }

private:
    const Sparse& sparse_;
    std::int64_t count_;
    int rounds_;
    nlohmann::ordered_json& rows_;
    Arrays<T> a_{};
    std::vector<DeviceMemory<T>> arrays_;  ///< those of a_, and three that a peer may overwrite
    std::size_t scratch_bytes_ = 0;
    std::optional<DeviceMemory<unsigned char>> scratch_;
    DeviceMemory<cuda::DeviceOutcome> outcome_{1};
    DeviceMemory<unsigned long long> worst_{1};
    EventTimer time_;
};

std::vector<Shape> shapes(std::int64_t count) {
    std::vector<Shape> list;
    for (const std::int64_t n : {3, 8, 16, 32, 64, 100, 128, 255, 256, 512, 1000, 2048, 4096, 20000}) list.push_back({"contiguous", n, count / n});
    for (const std::int64_t n : {16, 32, 64, 100, 255, 256, 512, 1024, 2048, 4096, 20000}) list.push_back({"interleaved", n, count / n, true});
    for (const std::int64_t n : {16, 64, 100, 256, 500, 1024, 2000, 8192}) list.push_back({"contiguous, shared", n, count / n, false, true});
    for (const std::int64_t n : {64, 256, 512, 1024, 8192}) list.push_back({"interleaved, shared", n, count / n, true, true});
    for (const std::int64_t n : {std::int64_t{2048}, std::int64_t{4096}, std::int64_t{1} << 14, std::int64_t{1} << 15, std::int64_t{1} << 20, std::int64_t{1} << 24})
        if (n <= count) list.push_back({"one ring", n, 1});
    return list;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json, only;
    std::int64_t count = 1 << 26;
    int rounds = 7;
    bool peer = true;
    Arguments arguments("cuda_rings_bench", "Rings on the GPU beside cuSPARSE and the roof");
    arguments.common(json, count, 1 << 16, &rounds);
    arguments.text("--only", only, "CASE:ROWS,...: these alone");
    arguments.clears("--no-peer", peer, "cuSPARSE takes no turns");
    if (const auto status = arguments.parse(argc, argv)) return *status;
    std::vector<Shape> chosen;
    for (Shape shape : shapes(count)) {
        shape.peer = peer;
        if (is_asked_for(only, shape.name + ":" + std::to_string(shape.rows))) chosen.push_back(shape);
    }
    nlohmann::ordered_json record = gpu_record("cuda_rings", "Rings on the GPU, percent of a 4 read, 1 write stream");
    const Sparse sparse;
    record["rows_of_arrays"] = count, record["reduced"] = !only.empty() || !peer;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    {
        Bench<double> bench(sparse, count, rounds, rows);
        for (const Shape& shape : chosen) bench.run(shape);
    }
    {
        Bench<float> bench(sparse, count, rounds, rows);
        for (const Shape& shape : chosen) bench.run(shape);
    }
    record["rows"] = rows;
    return write_record(record, json) ? 0 : 1;
}
