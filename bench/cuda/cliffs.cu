// SPDX-License-Identifier: BSD-3-Clause
// Where the GPU's batches fall off: many shapes and kinds of matrices between those of cuda_batch_bench, each beside cuSPARSE where it has a call for it, and beside the roof. A shape whose figure is far from its neighbours'
// is a branch that was taken too early or too late.
//
//   cuda_cliffs_bench [--json FILE] [--rows 2^k] [--from ROWS] [--matrix NAME] [--slower] [--precision f32|f64] [few] [long]
//
// few: systems of up to 16 rows, of 2^16 rows in all and more; long: of 100 to 16 000 rows, of 2^20 in all and more, with matrices that need pivots. --from: no
// shorter systems; --matrix: only those whose name has that. --slower: only what is slower than cuSPARSE, or takes ten times
// the roof's time and more, is printed. The record counts all, and has those that are slower
// than cuSPARSE and the large ones that take three times the roof's time.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/tridiagonal/batch.hpp"
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
using trifold::tridiagonal::Algorithm;
using trifold::tridiagonal::Operand;
using trifold::tridiagonal::System;

/// Numbers drawn from an interval each.
struct Kind {
    const char* name;
    double lower[2], diag[2], upper[2];
    int indefinite;   ///< of so many systems one has a diagonal as small as the rest; 0: none
    bool pivots;      ///< without exchanges it may lose everything: cuSPARSE's LU counts, not its Thomas
    bool among_few;   ///< is looked at for systems of few rows too
};

constexpr Kind kinds[] = {
    {"dominance 3", {-1, 1}, {3, 4}, {-1, 1}, 0, false, true},
    {"-1 2.001 -1", {-1, -1}, {2.001, 2.001}, {-1, -1}, 0, false, false},
    {"-1 2 -1", {-1, -1}, {2, 2}, {-1, -1}, 0, false, false},
    {"convection", {-2.5, -2.5}, {2, 2}, {0.5, 0.5}, 0, true, false},
    {"waves", {-1, -1}, {0.7, 0.7}, {-1, -1}, 0, true, false},
    {"random", {-1, 1}, {-1, 1}, {-1, 1}, 0, true, true},
    {"one in 100 random", {-1, 1}, {3, 4}, {-1, 1}, 100, true, false},
};

enum class Layout { contiguous, padded, columns, odd_columns, planes };
constexpr Layout layouts[] = {Layout::contiguous, Layout::padded, Layout::columns, Layout::odd_columns, Layout::planes};

constexpr const char* name_of(Layout layout) {
    constexpr const char* names[] = {"contiguous", "padded", "columns", "columns, odd", "64 wide y"};
    return names[static_cast<int>(layout)];
}

/// About `all` rows in all. No system where the layout has none of that size.
BatchShape shape_of(Layout layout, std::int64_t rows, std::int64_t all) {
    constexpr std::int64_t wide = 64, whole = 16;
    const std::int64_t systems = std::max<std::int64_t>(all / rows, 1);
    switch (layout) {
        case Layout::contiguous: return {name_of(layout), rows, 1, systems, rows, 1, 0, BatchShape::Peer::strided};
        case Layout::padded: return {name_of(layout), rows, 1, systems, rows + 3};
        case Layout::columns: {
            const std::int64_t columns = systems > whole ? systems / whole * whole : systems;
            return {name_of(layout), rows, columns, columns, 1, 1, 0, BatchShape::Peer::interleaved};
        }
        case Layout::odd_columns: return {name_of(layout), rows, systems | 1, systems | 1, 1};
        case Layout::planes: break;
    }
    return {name_of(layout), rows, wide, systems < 2 * wide ? 0 : wide, 1, systems / wide, wide * rows};
}

std::int64_t elements(const BatchShape& s) {
    return s.outer > 1 ? s.outer * s.outer_stride : std::max(s.rows * s.row_stride, s.columns * s.column_stride);
}

/// Row i of a system, which lies at `at`; or of all.
template <class T>
struct RowsOf {
    const T *a, *b, *c;
    bool shared;
    __device__ T lower(std::int64_t i, std::int64_t at) const { return a[shared ? i : at]; }
    __device__ T diag(std::int64_t i, std::int64_t at) const { return b[shared ? i : at]; }
    __device__ T upper(std::int64_t i, std::int64_t at) const { return c[shared ? i : at]; }
};

/// Diagonals from −1 to 1 for systems 0, every, 2 every …
template <class T>
__global__ void spoil(T* diag, std::int64_t rows, std::int64_t row_stride, std::int64_t columns, std::int64_t column_stride, int every) {
    const std::int64_t all = rows * ((columns + every - 1) / every);
    for (std::int64_t e = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; e < all; e += std::int64_t(gridDim.x) * blockDim.x) {
        const std::int64_t at = e % rows * row_stride + e / rows * every * column_stride;
        diag[at] = T(2 * uniform(2, at) - 1);
    }
}

struct Asked {
    std::int64_t most = 1 << 24, least_rows = 1;
    std::string matrix;
    bool slower = false;
    std::vector<std::string> parts;
    bool wants(const char* part) const { return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end(); }
};

template <class T>
class Cliffs {
public:
    Cliffs(const Sparse& sparse, const Asked& asked, nlohmann::ordered_json& record) : sparse_(sparse), asked_(asked), record_(record), capacity_(asked.most + asked.most / 2) {
        for (int k = 0; k < 8; ++k) arrays_.emplace_back(capacity_);
        const void* const read[4] = {arrays_[0], arrays_[1], arrays_[2], arrays_[3]};
        const StreamRoof own(read, arrays_[4], bytes(capacity_)), shared(read, arrays_[4], bytes(capacity_), 1);
        own_gb_per_s_ = own.gb_per_s(own.best_ms()), shared_gb_per_s_ = shared.gb_per_s(shared.best_ms());
    }

    void run() {
        const auto through = [&](bool few, const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& totals) {
            for (const bool shared : {false, true})
                for (const Kind& kind : kinds)
                    if (std::string_view(kind.name).find(asked_.matrix) != std::string_view::npos)
                    for (const std::int64_t all : totals)
                        for (const Layout layout : layouts)
                            for (const std::int64_t rows : sizes)
                                if (rows <= all && rows >= asked_.least_rows && (!few || kind.among_few) && !(shared && kind.indefinite) && !(layout == Layout::planes && kind.indefinite)) one(kind, shape_of(layout, rows, all), shared);
        };
        if (asked_.wants("few")) through(true, {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16}, {1 << 16, 1 << 20, asked_.most});
        if (asked_.wants("long")) through(false, {100, 256, 500, 1000, 1800, 3000, 4000, 6000, 10000, 16000}, {1 << 20, 1 << 21, 1 << 22, 1 << 23, asked_.most});
    }

private:
    static std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(T); }

    void one(const Kind& kind, const BatchShape& shape, bool shared) {
        const std::int64_t count = elements(shape);
        if (shape.systems() < 2 || count > capacity_) return;
        fill_array<T>(arrays_[0], count, 1, T(kind.lower[0]), T(kind.lower[1])), fill_array<T>(arrays_[1], count, 2, T(kind.diag[0]), T(kind.diag[1]));
        fill_array<T>(arrays_[2], count, 3, T(kind.upper[0]), T(kind.upper[1])), fill_array<T>(arrays_[3], count, 4, T(-1), T(1));
        if (kind.indefinite) spoil<T><<<1024, 256>>>(arrays_[1], shape.rows, shape.row_stride, shape.columns, shape.column_stride, kind.indefinite);
        System system = system_of<T>(shape, arrays_[3], arrays_[4]);
        const auto band = [&](T* data) {
            if (!shared) return operand_of(data, shape);
            Operand o;
            o.kind = Operand::Kind::view, o.data = data, o.row_stride = 1;
            return o;
        };
        system.lower = band(arrays_[0]), system.diag = band(arrays_[1]), system.upper = band(arrays_[2]);

        const tridiagonal::Ops& ops = *cuda::tridiagonal_ops(0);
        tridiagonal::Launch launch;
        launch.scratch_bytes = ops.workspace(system, Algorithm::automatic, 1);
        const DeviceMemory<unsigned char> scratch(static_cast<std::int64_t>(launch.scratch_bytes) + 1);
        launch.scratch = scratch;
        const auto solve = [&] {
            Failure failure;
            if (!ops.enqueue(0, system, Algorithm::automatic, launch, outcome_, failure)) failure.raise("cuda:0");
        };
        constexpr float long_ms = 30, worth_queueing_ms = 1;
        std::vector<float> ours, queued;
        for (int round = 0; round < 4; ++round) {
            const float ms = time_(solve);
            if (round) ours.push_back(ms);
            if (round && ms > long_ms) break;
        }
        for (int round = 0; round < 3 && median(ours) < worth_queueing_ms; ++round) queued.push_back(time_.queued(solve));
        const double error = backward_error_roundoffs(RowsOf<T>{arrays_[0], arrays_[1], arrays_[2], shared}, shape, static_cast<const T*>(arrays_[3]), static_cast<const T*>(arrays_[4]), worst_);
        cuda::DeviceOutcome outcome;
        check(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), "outcome");
        const double peer = shared ? NAN : peer_ms(kind, shape, count), ms = queued.empty() ? median(ours) : median(queued);
        const double roof_ms = (shared ? 2 : 5) * static_cast<double>(bytes(shape.rows * shape.systems())) / (shared ? shared_gb_per_s_ : own_gb_per_s_) / 1e6;
        write(kind, shape, shared, {median(ours), ms, roof_ms, peer, error}, outcome);
    }

    // cuSPARSE overwrites its arrays: they are copied anew, outside the time. Its LU of 22 million systems of three rows reads and writes what is not its own (CUDA 13).
    double peer_ms(const Kind& kind, const BatchShape& shape, std::int64_t count) {
        constexpr std::int64_t least_rows = 16;
        if (shape.peer == BatchShape::Peer::none || shape.rows < least_rows) return NAN;
        const bool strided = shape.peer == BatchShape::Peer::strided;
        if (strided && kind.pivots) return NAN;
        T* const w[3] = {arrays_[5], arrays_[6], arrays_[7]};
        const BatchPeer<T> peer(sparse_, shape, w[0], w[1], w[2], arrays_[4]);
        if (!peer) return NAN;
        double best = NAN;
        for (int way = 0; way < peer.ways(); ++way) {
            if (kind.pivots && way == 0) continue;
            std::vector<float> times;
            for (int round = 0; round < 3; ++round) {
                cudaMemcpy(arrays_[4], arrays_[3], bytes(count), cudaMemcpyDeviceToDevice);
                for (int k = 0; k < 3; ++k) cudaMemcpy(w[k], arrays_[k], bytes(count), cudaMemcpyDeviceToDevice);
                const float ms = time_([&] { peer(way); });
                if (round) times.push_back(ms);
            }
            if (!(median(times) >= best)) best = median(times);
        }
        return best;
    }

    struct Seen {
        double alone_ms, ms, roof_ms, peer_ms, error;
    };

    void write(const Kind& kind, const BatchShape& shape, bool shared, const Seen& seen, const cuda::DeviceOutcome& outcome) {
        constexpr double far_from_the_roof = 10, worth_noting = 3;
        const auto count = [&](const char* name, bool one) { record_[name] = record_.value(name, 0) + (one ? 1 : 0); };
        const bool beside = std::isfinite(seen.peer_ms), slower = seen.peer_ms < seen.alone_ms, large = shape.rows * shape.systems() > asked_.most / 4 * 3;
        const double times_roof = seen.ms / seen.roof_ms;
        count("shapes", true), count("beside_cusparse", beside);
        if (slower || (large && times_roof > worth_noting)) {
            nlohmann::ordered_json row;
            row["case"] = shape.name, row["matrix"] = kind.name, row["shared"] = shared, row["rows"] = shape.rows, row["systems"] = shape.systems(), row["precision"] = sizeof(T) == 8 ? "f64" : "f32";
            row["ms"] = seen.alone_ms, row["queued_ms"] = seen.ms, row["times_roof"] = times_roof;
            if (beside) row["cusparse_ms"] = seen.peer_ms, row["times_cusparse"] = seen.peer_ms / seen.alone_ms;
            row["backward_error_roundoffs"] = seen.error, row["rescued"] = outcome.rescued, row["failures"] = outcome.failures;
            record_["rows"].push_back(row);
        }
        if (asked_.slower && !slower && !(times_roof > far_from_the_roof)) return;
        std::printf("%-12s %-17s %s%s %6lld rows x %8lld  %8.1f us (queued %8.1f)  %5.1f x the roof's time  %5.2f x cuSPARSE  %5.1f u  rescued %llu\n", shape.name.c_str(), kind.name, sizeof(T) == 8 ? "f64" : "f32",
                    shared ? " shared" : "", static_cast<long long>(shape.rows), static_cast<long long>(shape.systems()), 1e3 * seen.alone_ms, 1e3 * seen.ms, times_roof, seen.peer_ms / seen.alone_ms, seen.error,
                    outcome.rescued);
        std::fflush(stdout);
    }

    const Sparse& sparse_;
    const Asked& asked_;
    nlohmann::ordered_json& record_;
    const std::int64_t capacity_;
    std::vector<DeviceMemory<T>> arrays_;  // bands, right-hand sides, x, and the bands of a peer
    DeviceMemory<cuda::DeviceOutcome> outcome_{1};
    DeviceMemory<unsigned long long> worst_{1};
    double own_gb_per_s_ = 0, shared_gb_per_s_ = 0;
    EventTimer time_;
};

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    Asked asked;
    std::string precision;
    Arguments arguments("cuda_cliffs_bench", "Batches on the GPU, shapes and matrices between those of the other benchmarks");
    arguments.common(json, asked.most, 1 << 20);
    arguments.count("--from", asked.least_rows, 1, std::int64_t{1} << 30, "rows of a system, at least");
    arguments.text("--matrix", asked.matrix, "this kind alone");
    arguments.flag("--slower", asked.slower, "show what cuSPARSE does faster, or is far from the roof, alone");
    arguments.one_of("--precision", precision, {"f32", "f64"}, "this alone");
    arguments.parts(asked.parts, {"few", "long"});
    if (const auto status = arguments.parse(argc, argv)) return *status;
    nlohmann::ordered_json record = gpu_record("cuda_cliffs", "Batches on the GPU, shapes and matrices between those of the other benchmarks");
    const Sparse sparse;
    record["rows_of_arrays"] = asked.most;
    record["rows"] = nlohmann::ordered_json::array();
    if (precision != "f32") Cliffs<double>(sparse, asked, record).run();
    if (precision != "f64") Cliffs<float>(sparse, asked, record).run();
    return write_record(record, json) ? 0 : 1;
}
