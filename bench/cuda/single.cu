// SPDX-License-Identifier: BSD-3-Clause
// One long system on the GPU, and several, beside cuSPARSE and the roof, in one process, interleaved: medians, percent of the best stream that reads four
// arrays and writes one of the same size. Solves are enqueued as the library does, everything included; results are checked on the GPU.
//
//   cuda_single_bench [--json FILE] [--rows COUNT] [--rounds N] [dominant] [curve] [general] [pivots] [several] [middle] [latency] [ceilings]
//
// --rows: the longest system. cuSPARSE is loaded at run time from the machine's own CUDA; without it, its columns stay empty.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/runtime/outcome.hpp"
#include "backends/cuda/tridiagonal/cell.hpp"
#include "bench/cuda/arguments.hpp"
#include "bench/cuda/ceilings.cuh"
#include "bench/cuda/cusparse.hpp"
#include "bench/cuda/gpu.cuh"
#include "bench/cuda/gpu_record.hpp"
#include "bench/cuda/single_arrays.cuh"
#include "families/tridiagonal/ops.hpp"
#include "trifold/tridiagonal.hpp"

namespace {

using namespace trifold;
using namespace trifold::bench;
using trifold::tridiagonal::Algorithm;
using trifold::tridiagonal::Operand;
using trifold::tridiagonal::System;
namespace cuda = trifold::cuda;  // not CUDA's own

template <class T>
class Bench {
public:
    Bench(const Sparse& sparse, std::int64_t count, int rounds, nlohmann::ordered_json& rows) : sparse_(sparse), count_(count), rounds_(rounds), rows_(rows) {
        T** const arrays[] = {&a_.lower, &a_.diag, &a_.upper, &a_.rhs, &a_.x};
        for (T** const p : arrays) check(cudaMalloc(p, static_cast<std::size_t>(count) * sizeof(T)), "arrays");
        check(cudaMalloc(&outcome_, 512), "outcome");
        check(cudaMalloc(&worst_, sizeof *worst_), "worst");
        check(cudaStreamCreate(&stream_), "stream");
        sparse_.use(stream_);
    }
    ~Bench() {
        sparse_.use(nullptr);
        T* const arrays[] = {a_.lower, a_.diag, a_.upper, a_.rhs, a_.x};
        for (T* const p : arrays) cudaFree(p);
        cudaFree(outcome_), cudaFree(worst_), cudaStreamDestroy(stream_);
    }

    void dominant(std::int64_t n) {
        fill_array(a_.lower, n, 1, T(-1), T(1)), fill_array(a_.diag, n, 2, T(3), T(4));
        fill_array(a_.upper, n, 3, T(-1), T(1)), fill_array(a_.rhs, n, 4, T(-1), T(1));
    }
    void layers(std::int64_t n, double number) { diffusion<<<4096, 256>>>(a_, n, number, 1e4); }
    void poisson(std::int64_t n) {
        fill_array(a_.lower, n, 1, T(-1), T(-1)), fill_array(a_.diag, n, 2, T(2), T(2));
        fill_array(a_.upper, n, 3, T(-1), T(-1)), fill_array(a_.rhs, n, 4, T(-1), T(1));
    }
    void indefinite(std::int64_t n) {
        fill_array(a_.lower, n, 1, T(-1), T(1)), fill_array(a_.diag, n, 2, T(-1), T(1));
        fill_array(a_.upper, n, 3, T(-1), T(1)), fill_array(a_.rhs, n, 4, T(-1), T(1));
    }

    /// A Helmholtz equation: what happens anywhere is felt everywhere.
    void waves(std::int64_t n) {
        fill_array(a_.lower, n, 1, T(-1), T(-1)), fill_array(a_.diag, n, 2, T(0.7), T(0.7));
        fill_array(a_.upper, n, 3, T(-1), T(-1)), fill_array(a_.rhs, n, 4, T(-1), T(1));
    }

    /// What one launch costs that does nothing, and one cluster that brings 4096 rows and takes x away: no solve like ours can take less. Timed as solves are.
    void latency_ceilings() {
        if (sizeof(T) == 8) one_launch("ceiling: a launch that does nothing", 0, [&] { nothing<<<1, 32, 0, stream_>>>(nullptr); });
        constexpr int rows = 4096;
        auto* const kernel = rows_in_and_out<T>;
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
        const cuda::one_system::Job<T> job{{a_.lower, a_.diag, a_.upper, a_.rhs}, a_.x, rows, 31, 0, 0, false, 0, static_cast<cuda::DeviceOutcome*>(outcome_), 0, nullptr, nullptr};
        one_launch("ceiling: one cluster's loads and stores of 4096 rows", rows, [&] {
            cudaLaunchAttribute cluster;
            const cudaLaunchConfig_t config = cuda::one_system::configuration(cuda::one_system::most_blocks, 2, 0, stream_, cluster);
            cudaLaunchKernelEx(&config, kernel, job);
        });
        one_launch("ceiling: 4096 rows read and written side by side", rows,
                   [&] { rows_side_by_side<T><<<rows / 128, 128, 0, stream_>>>(a_.lower, a_.diag, a_.upper, a_.rhs, a_.x, rows); });
    }

    /// Copies without arithmetic and arithmetic without copies of both passes over n rows that decay.
    void ceilings(std::int64_t n) {
        const T* const read[4] = {a_.lower, a_.diag, a_.upper, a_.rhs};
        const void* const bytes_read[4] = {a_.lower, a_.diag, a_.upper, a_.rhs};
        StreamRoof roof(bytes_read, a_.x, static_cast<std::size_t>(n) * sizeof(T));
        const int blocks = cuda::multiprocessors_of_current();
        auto* const failed = reinterpret_cast<unsigned*>(worst_);
        cudaMemset(worst_, 0, sizeof *worst_);
        const auto halos_job = halos::job_of<T>(read, a_.x, n);
        const auto coupled_job = coupled::job_of<T>(system_of(n, false, 1));
        constexpr int halos_bytes = halos::bytes<T>, coupled_bytes = sizeof(cuda::windows::SharedOf<T>);
        const auto large = [](auto* kernel, int bytes) { cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes); };
        large(halos::part<T, true>, halos_bytes), large(halos::part<T, false>, halos_bytes);
        large(coupled::copies<T>, coupled_bytes), large(coupled::arithmetic<T>, coupled_bytes);
        EventTimer time(stream_);
        std::vector<float> roofs, times[4];
        for (int round = 0; round <= rounds_; ++round) {
            const float each[] = {
                time([&] { roof.pass(stream_); }), time([&] { halos::part<T, true><<<blocks, halos::threads<T>, halos_bytes, stream_>>>(halos_job, failed); }),
                time([&] { halos::part<T, false><<<blocks, halos::threads<T>, halos_bytes, stream_>>>(halos_job, failed); }),
                time([&] { coupled::copies<T><<<blocks, 32, coupled_bytes, stream_>>>(coupled_job); }),
                time([&] { coupled::arithmetic<T><<<blocks, 32 * cuda::windows::Shape<T>::warps, coupled_bytes, stream_>>>(coupled_job, failed); })};
            if (round == 0) continue;
            roofs.push_back(each[0]);
            for (int k = 0; k < 4; ++k) times[k].push_back(each[k + 1]);
        }
        unsigned bad = 0;
        check(cudaMemcpy(&bad, failed, sizeof bad, cudaMemcpyDeviceToHost), "ceilings");
        const char* const names[] = {"ceiling: copies of windows with halos", "ceiling: arithmetic of windows with halos", "ceiling: copies of coupled windows",
                                     "ceiling: arithmetic of coupled windows"};
        for (int k = 0; k < 4; ++k) {
            const double ms = median(times[k]), bandwidth = roof.gb_per_s(median(roofs)), fraction = 5.0 * sizeof(T) * static_cast<double>(n) / ms / 1e6 / bandwidth;
            rows_.push_back({{"case", names[k]}, {"rows", n}, {"precision", sizeof(T) == 8 ? "f64" : "f32"}, {"ms", ms}, {"roof_gb_per_s", bandwidth}, {"fraction", fraction}});
            std::printf("%s, %s: %.1f us, %.1f %% of %.0f GB/s%s\n", names[k], sizeof(T) == 8 ? "f64" : "f32", 1e3 * ms, 100 * fraction, bandwidth, bad ? " (gave up)" : "");
        }
    }

    /// n rows in all, of `systems` systems one after the other.
    void run(const std::string& name, std::int64_t n, Algorithm algorithm, bool in_place, bool pivoting_peer, bool latency, std::int64_t systems = 1) {
        if (systems > 1) cut<<<64, 256>>>(a_, n / systems, systems);
        cudaDeviceSynchronize();
        const System system = system_of(n, in_place, systems);
        const tridiagonal::Ops& ops = *cuda::tridiagonal_ops(0);
        if (const char* const why = ops.refuses(system, algorithm)) return void(std::printf("%s: %s\n", name.c_str(), why));
        tridiagonal::Launch launch;
        launch.scratch_bytes = ops.workspace(system, algorithm, 1);
        launch.tolerance = sizeof(T) == 8 ? 0x1p-53 : 0x1p-24;
        launch.stream = stream_;
        check(cudaMalloc(&launch.scratch, launch.scratch_bytes + 256), "scratch");
        const auto solve = [&] {
            Failure failure;
            if (!ops.enqueue(0, system, algorithm, launch, outcome_, failure)) failure.raise("cuda:0");
        };
        cudaGraphExec_t graph = nullptr, graph_of_many = nullptr;
        constexpr int many = 20;
        if (latency) graph = graph_of(stream_, 1, solve), graph_of_many = graph_of(stream_, many, solve);
        void* buffer = nullptr;
        std::size_t peer_bytes = 0;
        if (sparse_.handle && n < 1ll << 31) {
            const int rows = static_cast<int>(n), count = static_cast<int>(systems), each = rows / count;
            if (systems > 1) TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch_bufferSizeExt)(sparse_.handle, each, a_.lower, a_.diag, a_.upper, a_.x, count, each, &peer_bytes);
            else if (pivoting_peer) TRIFOLD_CUSPARSE(T, sparse_, gtsv2_bufferSizeExt)(sparse_.handle, rows, 1, a_.lower, a_.diag, a_.upper, a_.x, rows, &peer_bytes);
            else TRIFOLD_CUSPARSE(T, sparse_, gtsv2_nopivot_bufferSizeExt)(sparse_.handle, rows, 1, a_.lower, a_.diag, a_.upper, a_.x, rows, &peer_bytes);
        }
        const bool peer = peer_bytes > 0 && cudaMalloc(&buffer, peer_bytes) == cudaSuccess;
        cudaGetLastError();
        const void* const read[4] = {a_.lower, a_.diag, a_.upper, a_.rhs};
        StreamRoof roof(read, a_.x, static_cast<std::size_t>(std::max(n, std::int64_t{65536})) * sizeof(T));
        EventTimer time(stream_);
        const auto refresh = [&] {
            if (in_place) cudaMemcpyAsync(a_.x, a_.rhs, static_cast<std::size_t>(n) * sizeof(T), cudaMemcpyDeviceToDevice, stream_);
            else cudaMemsetAsync(a_.x, 0xff, static_cast<std::size_t>(n) * sizeof(T), stream_);
        };
        std::vector<float> roofs, ours, queued, moves[2], theirs, ours_graph, ours_each, ours_host, ours_enqueue, theirs_host;
        const bool bounded = systems == 1 && n == count_ && !in_place && !latency && algorithm == Algorithm::automatic;
        for (int round = 0; round <= (latency ? 4 * rounds_ : rounds_); ++round) {
            const float r = time([&] { roof.pass(stream_); });
            if (in_place || round == 0) refresh();
            const float t = time(solve);
            if (round) roofs.push_back(r), ours.push_back(t);
            if (!latency) {
                if (in_place) refresh();
                const float q = time.queued(solve);
                if (round) queued.push_back(q);
            }
            if (bounded) {
                const Moves alone(*this, n);
                const float with_halos = time.queued([&] { alone.halos(); }), coupled = time.queued([&] { alone.coupled(); });
                if (round) moves[0].push_back(with_halos), moves[1].push_back(coupled);
            }
            if (latency) {
                const float g = time([&] { cudaGraphLaunch(graph, stream_); });
                const float e = time([&] { cudaGraphLaunch(graph_of_many, stream_); }) / many;
                const float h = host([&] { solve(); });
                cudaStreamSynchronize(stream_);
                const auto begin = std::chrono::steady_clock::now();
                solve();
                const float q = std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - begin).count();
                if (round) ours_graph.push_back(g), ours_each.push_back(e), ours_host.push_back(h), ours_enqueue.push_back(q);
            }
            if (peer && (latency || round < 4)) {
                const auto call = [&] {
                    const int rows = static_cast<int>(n), count = static_cast<int>(systems), each = rows / count;
                    if (systems > 1) TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch)(sparse_.handle, each, a_.lower, a_.diag, a_.upper, a_.x, count, each, buffer);
                    else if (pivoting_peer) TRIFOLD_CUSPARSE(T, sparse_, gtsv2)(sparse_.handle, rows, 1, a_.lower, a_.diag, a_.upper, a_.x, rows, buffer);
                    else TRIFOLD_CUSPARSE(T, sparse_, gtsv2_nopivot)(sparse_.handle, rows, 1, a_.lower, a_.diag, a_.upper, a_.x, rows, buffer);
                };
                cudaMemcpyAsync(a_.x, a_.rhs, static_cast<std::size_t>(n) * sizeof(T), cudaMemcpyDeviceToDevice, stream_);
                const float p = time(call);
                if (round) theirs.push_back(p);
                if (latency) {
                    cudaMemcpyAsync(a_.x, a_.rhs, static_cast<std::size_t>(n) * sizeof(T), cudaMemcpyDeviceToDevice, stream_);
                    const float h = host(call);
                    if (round) theirs_host.push_back(h);
                }
            }
        }
        refresh();
        solve();
        check(cudaStreamSynchronize(stream_), name.c_str());
        check(cudaMemset(worst_, 0, sizeof *worst_), "memset");
        backward_error<<<2048, 256>>>(a_, n, worst_);
        double error = 0;
        cuda::DeviceOutcome found;
        check(cudaMemcpy(&error, worst_, sizeof error, cudaMemcpyDeviceToHost), name.c_str());
        check(cudaMemcpy(&found, outcome_, sizeof found, cudaMemcpyDeviceToHost), "outcome");
        Outcome outcome;
        cuda::read_outcome(found, outcome);

        const double needed = 5.0 * sizeof(T) * static_cast<double>(n), bandwidth = roof.gb_per_s(median(roofs)), ms = median(ours), peer_ms = median(theirs);
        nlohmann::ordered_json row;
        row["case"] = name, row["rows"] = n / systems, row["systems"] = systems, row["precision"] = sizeof(T) == 8 ? "f64" : "f32", row["algorithm"] = name_of(algorithm), row["branch"] = outcome.branch;
        row["ms"] = ms, row["roof_gb_per_s"] = bandwidth, row["fraction"] = needed / ms / 1e6 / bandwidth, row["grows_per_s"] = static_cast<double>(n) / ms / 1e6;
        if (!latency) row["queued_fraction"] = needed / median(queued) / 1e6 / bandwidth;  // enqueued while the GPU was busy, as the ceiling is
        if (bounded && outcome.branch == std::string("certified")) row["ceiling"] = needed / median(moves[found.handed_over != 0]) / 1e6 / bandwidth;
        if (latency) {
            row["graph_ms"] = median(ours_graph), row["graph_of_many_ms"] = median(ours_each);
            row["host_ms"] = median(ours_host), row["enqueue_ms"] = median(ours_enqueue);
        }
        if (std::isfinite(peer_ms)) {
            row["peer"] = systems > 1 ? "gtsv2StridedBatch" : pivoting_peer ? "gtsv2" : "gtsv2_nopivot";
            row["cusparse_ms"] = peer_ms, row["times_cusparse"] = peer_ms / ms, row["cusparse_fraction"] = needed / peer_ms / 1e6 / bandwidth;
            if (latency) row["cusparse_host_ms"] = median(theirs_host);
        }
        row["reason"] = name_of(outcome.reason);
        if (std::isfinite(outcome.certified_share)) row["certified_share"] = outcome.certified_share;
        if (std::isfinite(outcome.certificate)) row["certificate"] = outcome.certificate;
        row["backward_error_roundoffs"] = error * (sizeof(T) == 8 ? 0x1p53 : 0x1p24);
        row["scratch_bytes"] = launch.scratch_bytes;
        rows_.push_back(row);
        std::printf("%-20s %s %4lld x %9lld rows  %8.1f us  %5.1f %% of %4.0f GB/s  %4.1f x cuSPARSE  %s %s  %4.1f u  certificate %.1e", name.c_str(), sizeof(T) == 8 ? "f64" : "f32",
                    static_cast<long long>(systems), static_cast<long long>(n / systems), 1e3 * ms, 100 * double(row["fraction"]), bandwidth, peer_ms / ms, outcome.branch, name_of(outcome.reason),
                    double(row["backward_error_roundoffs"]), outcome.certificate);
        if (!latency) std::printf("  queued %.1f %%", 100 * double(row["queued_fraction"]));
        if (row.contains("ceiling")) std::printf("  ceiling %.1f %%", 100 * double(row["ceiling"]));
        if (latency) std::printf("  graph %.1f us, of many %.1f us, enqueue %.1f us, host %.1f us, cuSPARSE %.1f us, host %.1f us", 1e3 * median(ours_graph), 1e3 * median(ours_each), 1e3 * median(ours_enqueue), 1e3 * median(ours_host), 1e3 * peer_ms, 1e3 * median(theirs_host));
        std::printf("\n");
        std::fflush(stdout);
        cudaFree(buffer), cudaFree(launch.scratch);
        if (latency) cudaGraphExecDestroy(graph), cudaGraphExecDestroy(graph_of_many);
    }

private:
    /// What a pass over n rows moves, in its own windows, and nothing else.
    struct Moves {
        const Bench& of;
        cuda::certified::Job<T> halos_job;
        cuda::windows::Job<T> coupled_job;
        int blocks = cuda::multiprocessors_of_current();

        Moves(const Bench& from, std::int64_t n) : of(from), coupled_job(bench::coupled::job_of<T>(from.system_of(n, false, 1))) {
            const T* const read[4] = {from.a_.lower, from.a_.diag, from.a_.upper, from.a_.rhs};
            halos_job = bench::halos::job_of<T>(read, from.a_.x, n);
            cudaFuncSetAttribute(bench::halos::part<T, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bench::halos::bytes<T>);
            cudaFuncSetAttribute(bench::coupled::copies<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(cuda::windows::SharedOf<T>));
        }
        void halos() const {
            bench::halos::part<T, true><<<blocks, bench::halos::threads<T>, bench::halos::bytes<T>, of.stream_>>>(halos_job, reinterpret_cast<unsigned*>(of.worst_));
        }
        void coupled() const { bench::coupled::copies<T><<<blocks, 32, sizeof(cuda::windows::SharedOf<T>), of.stream_>>>(coupled_job); }
    };

    template <class Launch>
    void one_launch(const char* name, std::int64_t rows, Launch launch) {
        constexpr int many = 20;
        cudaGraphExec_t graph = graph_of(stream_, 1, launch), graph_of_many = graph_of(stream_, many, launch);
        EventTimer time(stream_);
        std::vector<float> events, graphs, each, hosts;
        for (int round = 0; round <= 8 * rounds_; ++round) {
            const float e = time(launch), g = time([&] { cudaGraphLaunch(graph, stream_); }), m = time([&] { cudaGraphLaunch(graph_of_many, stream_); }) / many, h = host(launch);
            if (round) events.push_back(e), graphs.push_back(g), each.push_back(m), hosts.push_back(h);
        }
        cudaGraphExecDestroy(graph), cudaGraphExecDestroy(graph_of_many);
        nlohmann::ordered_json row{{"case", name}, {"precision", sizeof(T) == 8 ? "f64" : "f32"}};
        if (rows) row["rows"] = rows;
        row["ms"] = median(events), row["graph_ms"] = median(graphs), row["graph_of_many_ms"] = median(each), row["host_ms"] = median(hosts);
        rows_.push_back(row);
        std::printf("%s, %s: %.1f us, graph %.1f us, of many %.1f us, host %.1f us\n", name, sizeof(T) == 8 ? "f64" : "f32", 1e3 * median(events), 1e3 * median(graphs), 1e3 * median(each),
                    1e3 * median(hosts));
    }

    System system_of(std::int64_t n, bool in_place, std::int64_t systems) const {
        System system;
        system.dtype = sizeof(T) == 8 ? DType::f64 : DType::f32;
        system.rows = n / systems;
        if (systems > 1) system.levels = 1, system.extent[0] = systems, system.number_stride[0] = 1;
        const auto view = [&](T* data) {
            Operand o;
            o.level_stride[0] = systems > 1 ? n / systems : 0;
            o.kind = Operand::Kind::view, o.data = data, o.row_stride = 1;
            return o;
        };
        system.lower = view(a_.lower), system.diag = view(a_.diag), system.upper = view(a_.upper), system.x = view(a_.x);
        system.rhs = in_place ? system.x : view(a_.rhs);
        system.in_place = in_place;
        return system;
    }

    /// Milliseconds until the host knows that it is done.
    template <class F>
    float host(F call) const {
        cudaStreamSynchronize(stream_);
        const auto begin = std::chrono::steady_clock::now();
        call();
        cudaStreamSynchronize(stream_);
        return std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - begin).count();
    }

    const Sparse& sparse_;
    std::int64_t count_;
    int rounds_;
    nlohmann::ordered_json& rows_;
    Arrays<T> a_{};
    void* outcome_ = nullptr;
    unsigned long long* worst_ = nullptr;
    cudaStream_t stream_ = nullptr;
};

template <class T>
void run(const Sparse& sparse, std::int64_t count, int rounds, const std::vector<std::string>& parts, nlohmann::ordered_json& rows) {
    const auto wanted = [&](const char* part) { return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end(); };
    Bench<T> bench(sparse, count, rounds, rows);
    if (wanted("dominant")) {
        bench.dominant(count);
        for (const std::int64_t n : {std::int64_t{1} << 20, std::int64_t{1} << 24, count})
            if (n <= count) bench.run("dominant", n, Algorithm::automatic, false, false, false);
        bench.run("dominant, in place", count, Algorithm::automatic, true, false, false);
    }
    if (wanted("curve"))
        for (const double number : {0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4}) {
            bench.layers(count, number);
            char name[32];
            std::snprintf(name, sizeof name, "diffusion %g", number);
            bench.run(name, count, Algorithm::automatic, false, false, false);
        }
    if (wanted("general")) {
        bench.poisson(count);
        bench.run("poisson", count, Algorithm::automatic, false, false, false);
        bench.run("poisson, in place", count, Algorithm::automatic, true, false, false);
        bench.run("poisson, pivoted", count, Algorithm::two_pass, false, false, false);
        bench.indefinite(count);
        bench.run("random", count, Algorithm::two_pass, false, true, false);
    }
    if (wanted("pivots"))
        for (const bool forgets : {true, false}) {
            if (forgets) bench.indefinite(count);
            else bench.waves(count);
            for (const std::int64_t n : {std::int64_t{1} << 18, std::int64_t{1} << 20, std::int64_t{1} << 22, std::int64_t{1} << 24, count})
                if (n <= count) bench.run(forgets ? "pivots, random" : "pivots, waves", n, Algorithm::automatic, false, true, false);
            bench.run(forgets ? "pivots, random, in place" : "pivots, waves, in place", count, Algorithm::automatic, true, true, false);
        }
    if (wanted("several"))
        for (const bool decays : {true, false}) {
            if (decays) bench.dominant(count);
            else bench.poisson(count);
            for (const auto& [systems, rows] : {std::pair<std::int64_t, std::int64_t>{1000, 30000}, {300, 100000}, {64, 1 << 20}, {8, 1 << 23}, {999, 30011}})
                if (systems * rows <= count) bench.run(decays ? "several, dominant" : "several, poisson", systems * rows, Algorithm::automatic, false, false, false, systems);
        }
    if (wanted("middle"))  // where batches and windows meet
        for (const bool decays : {true, false}) {
            if (decays) bench.dominant(std::min(count, std::int64_t{1} << 24));
            else bench.poisson(std::min(count, std::int64_t{1} << 24));
            for (const std::int64_t systems : {1, 64, 264})
                for (const std::int64_t rows : {5000, 12288, 24576, 32768, 40960, 65536, 100000})
                    if (systems * rows <= std::min(count, systems == 1 ? count : std::int64_t{264} * 40960)) bench.run(decays ? "middle, dominant" : "middle, poisson", systems * rows, Algorithm::automatic, false, false, systems == 1, systems);
        }
    if (wanted("ceilings")) {
        bench.dominant(count);
        bench.ceilings(count);
    }
    if (wanted("latency")) {
        bench.latency_ceilings();
        bench.dominant(std::min(count, std::int64_t{1} << 20));
        for (const std::int64_t n : {1 << 12, 1 << 18, 1 << 20})
            if (n <= count) bench.run("latency", n, Algorithm::automatic, false, false, true);
        bench.poisson(std::min(count, std::int64_t{1} << 21));
        for (const std::int64_t n : {1 << 12, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21})
            if (n <= count) bench.run("latency, poisson", n, Algorithm::automatic, false, false, true);
        bench.indefinite(std::min(count, std::int64_t{1} << 20));
        for (const std::int64_t n : {1 << 10, 1 << 12, 1 << 14, 1 << 15, 50000, 100000, 1 << 17, 1 << 20})
            if (n <= count) bench.run("latency, indefinite", n, Algorithm::automatic, false, true, true);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    std::int64_t count = 1 << 26;
    int rounds = 9;
    std::vector<std::string> parts;
    Arguments arguments("cuda_single_bench", "One long system on the GPU, and several, beside cuSPARSE and the roof");
    arguments.common(json, count, 65536, &rounds);
    arguments.parts(parts, {"dominant", "curve", "general", "pivots", "several", "middle", "latency", "ceilings"});
    if (const auto status = arguments.parse(argc, argv)) return *status;
    nlohmann::ordered_json record = gpu_record("cuda_single", "One system on the GPU, percent of a 4 read, 1 write stream");
    const Sparse sparse;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    run<double>(sparse, count, rounds, parts, rows);
    run<float>(sparse, count, rounds, parts, rows);
    record["rows"] = rows;
    return write_record(record, json) ? 0 : 1;
}
