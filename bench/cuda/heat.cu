// SPDX-License-Identifier: BSD-3-Clause
// ADI heat on the GPU through the public interface, fields in its memory: whole runs, wall seconds of the time loop as papers count them. Beside
// it the same scheme with cuSPARSE and the roof, in one process, in turns: medians. Passes: what streams of the same reads and writes as a step in passes
// through memory would take, a copy and an update in place, 5 words for any number of axes: memory that changes between reading and writing is slower. Moves: in three dimensions, the kernels' own moving
// with nothing computed. Where conductivity varies, off chip, the words of passes whose matrices are kept, and of passes that make them, at the roof: how many times the rival that could be. Both must agree from the same start before
// anything is timed, or the case is reported as failed, without times.
//
//   cuda_heat_bench [--json FILE] [--quick] [--mesh NXxNYxNZxMESHES[/k]]… [--only PART[,PART…]]… [--budget SECONDS] [--rounds N] [--no-rival] [--no-energy | --all-energy] [--energy-only]
//                   [--energy-from FILE] [--list] [--compile]
//
// --budget S            the more important cases first, and none begun after S seconds: the record says how many were left out
// --all-energy          joules wherever they are published, not of the larger batches alone: two seconds each
// --energy-only         joules and nothing else
// --energy-from FILE    joules of cases that this run does not measure them of, from another run's record, and said so
// --compile             needs no GPU and measures nothing: the kernels of the cases, for an H200, into $XDG_CACHE_HOME/trifold/kernels
// --mesh NXxNYxNZxMESHES  instead of the usual cases, in both precisions; several --mesh: all of them
// --only 2d-large,f64   cases whose name has all these parts (--list shows names); several --only: any of them.
// cuSPARSE is loaded at run time from the machine's own CUDA; without it, its columns stay empty. Exit status: 5 no GPU, 6 a case disagrees.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/energy_counter.hpp"
#include "backends/registry.hpp"
#include "bench/cuda/arguments.hpp"
#include "bench/cuda/gpu_record.hpp"
#include "bench/cuda/heat_cases.hpp"
#include "bench/cuda/heat_ceiling.cuh"
#include "bench/cuda/heat_kernels.hpp"
#include "bench/cuda/heat_rival.cuh"
#include "heat/heat.hpp"
#include "trifold/error.hpp"

namespace {

using namespace trifold;
using namespace trifold::bench;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <class T>
__global__ void largest_difference(const T* a, const T* b, std::int64_t count, unsigned long long* largest) {
    double most = 0;
    for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < count; i += std::int64_t(gridDim.x) * blockDim.x) {
        const double off = fabs(double(a[i]) - double(b[i]));
        if (!(off <= most)) most = off == off ? off : 1e300;
    }
    for (int lane = 16; lane; lane /= 2) most = fmax(most, __shfl_xor_sync(0xffffffffu, most, lane));
    if (threadIdx.x % 32 == 0) atomicMax(largest, __double_as_longlong(most));
}

struct Settings {
    int rounds = 5;
    bool rival = true, energy = true, all_energy = false, energy_only = false;
    double budget_s = INFINITY;
    Json other_energy;  // rows of another run
};

/// Arrays for the roof, of one size for all cases.
struct RoofArrays {
    static constexpr std::size_t bytes = std::size_t{512} << 20;
    void* memory[5] = {};
    std::optional<StreamRoof> roof, copy, update;  // update: in place, as fields are

    RoofArrays() {
        for (void*& one : memory) check(cudaMalloc(&one, bytes), "arrays for the roof"), cudaMemset(one, 1, bytes);
        const void* const read[4] = {memory[0], memory[1], memory[2], memory[3]};
        roof.emplace(read, memory[4], bytes), copy.emplace(read, memory[4], bytes, 1), update.emplace(read, memory[0], bytes, 2);
    }

    /// Seconds per byte of a value, for a step of two passes through memory: one reads an array and writes one, the other reads two.
    double seconds_of_passes() const { return (2.0 / copy->gb_per_s(copy->best_ms()) + 3.0 / update->gb_per_s(update->best_ms())) / 1e9; }
    ~RoofArrays() {
        for (void* const one : memory) cudaFree(one);
    }
};

template <class T>
class Bench {
public:
    Bench(Queue& queue, const Sparse& sparse, const RoofArrays& arrays, const Settings& settings, const HeatCase& which)
        : queue_(queue), sparse_(sparse), arrays_(arrays), settings_(settings), case_(which), points_(which.shape.points()) {
        for (T** const array : {&start_, &ours_, &theirs_}) check(cudaMalloc(array, bytes()), "arrays");
        check(cudaMalloc(&largest_, sizeof *largest_), "difference");
        fill_array(start_, points_, 7, T(0), T(1));
    }
    ~Bench() {
        for (T* const array : {start_, ours_, theirs_}) cudaFree(array);
        cudaFree(largest_);
    }

    Json run() {
        restart(ours_), restart(theirs_);
        const HeatProblem<T> of_case(case_);
        heat::Heat<T> solver(queue_, of_case.problem, ours_);
        const MeshShape& shape = case_.shape;
        const rival::Box box{static_cast<int>(shape.x), static_cast<int>(shape.y), static_cast<int>(shape.z), static_cast<int>(shape.meshes), {1, 1, 1}, {1, 0, 0}, {0, 0, 0}};
        std::optional<HeatRival<T>> peer;
        const bool has_peer = !case_.halves && case_.edge == Edge::odd;
        if (settings_.rival && has_peer) peer.emplace(sparse_, box, theirs_, case_.varies ? of_case.conductivity.data() : nullptr);
        const bool raced = peer && peer->ready();

        Json row;
        row["case"] = case_.name(), row["group"] = case_.group;
        row["mesh"] = shape.z > 1 ? Json{shape.x, shape.y, shape.z} : Json{shape.x, shape.y};
        if (!case_.options().empty()) row["options"] = case_.options().substr(1);
        row["batch"] = shape.meshes, row["precision"] = name_of(case_.dtype), row["iterations"] = case_.iterations;
        const auto start = Clock::now();
        solver.advance(0);
        row["compile_s"] = seconds_since(start);
        row["kind"] = kind_of(solver.sweeps());
        if (settings_.energy_only) {
            if (case_.energy) measure_energy(solver, row);
            return row;
        }
        int per_sample = 2;
        if (raced) {
            const double step = wall([&] { peer->step(), peer->step(); }) / 2;
            per_sample = std::clamp(static_cast<int>(0.015 / step), 2, case_.iterations);
            if (!agree(solver, *peer, std::clamp(static_cast<int>(0.15 / step), 10, case_.iterations), row)) return row;
        } else {
            row["compared"] = "nothing: " + std::string(!has_peer ? "no such peer" : !settings_.rival ? "--no-rival" : sparse_.handle ? "no memory for cuSPARSE's arrays" : "no cuSPARSE here");
        }
        std::vector<float> roof, ours, theirs;
        EventTimer time;
        const double first = wall([&] { run_ours(solver); });
        const int rounds = std::clamp(static_cast<int>(0.4 / first), 3, settings_.rounds);
        for (int round = 0; round < rounds; ++round) {
            roof.push_back(time([&] { arrays_.roof->pass(); }));
            ours.push_back(static_cast<float>(wall([&] { run_ours(solver); })));
            if (raced) theirs.push_back(static_cast<float>(wall([&] { several(*peer, per_sample); }) / per_sample));
        }
        const double bandwidth = arrays_.roof->gb_per_s(median(roof)), seconds = median(ours), all = static_cast<double>(points_) * case_.iterations;
        row["seconds"] = seconds, row["seconds_best"] = *std::min_element(ours.begin(), ours.end()), row["samples"] = ours.size();
        row["points_per_s"] = all / seconds, row["roof_gb_per_s"] = bandwidth;
        for (const int words : {5, 7})
            if (words == 5 || shape.z > 1) row["fraction_" + std::to_string(words) + "_words"] = all * words * sizeof(T) / seconds / 1e9 / bandwidth;
        row["words"] = case_.words(), row["fraction_of_words"] = all * case_.words() * sizeof(T) / seconds / 1e9 / bandwidth;
        if (case_.options().empty()) row["fraction_of_passes"] = all * sizeof(T) * arrays_.seconds_of_passes() / seconds;
        if (raced) compare_times(*peer, median(theirs), seconds, per_sample, row);
        // What no kernels in passes can be beyond: their words at the roof.
        if (case_.varies && !case_.halves && row["kind"] == "fused") {
            const double kept = static_cast<double>(points_) * case_.words_of_kept() * sizeof(T) / 1e9 / bandwidth, made = static_cast<double>(points_) * case_.words() * sizeof(T) / 1e9 / bandwidth;
            row["words_of_kept"] = case_.words_of_kept(), row["fraction_of_kept"] = kept * case_.iterations / seconds;
            if (raced) row["ceiling_times_rival_kept"] = median(theirs) / kept, row["ceiling_times_rival_made"] = median(theirs) / made;
        }
        if (settings_.energy && case_.energy && (case_.larger || settings_.all_energy || case_.quick)) measure_energy(solver, row);
        else if (case_.energy) take_energy(row);
        // Last, since they overwrite the arrays.
        if (has_moves(case_, row["kind"].get<std::string>())) {
            const double moves = seconds_of_moves(device_at(queue_.device_index()).number, solver.sweeps(), case_.iterations, rounds);
            row["moves_seconds"] = moves, row["fraction_of_moves"] = moves / seconds;
        }
        // Two passes: planes take one, which is beyond it.
        if (row["kind"] == "streaming" && case_.options().empty()) {
            const double ceiling = seconds_of_streams(ours_, theirs_, points_, case_.iterations);
            row["ceiling_seconds"] = ceiling, row["fraction_of_ceiling"] = ceiling / seconds;
        }
        return row;
    }

private:
    std::size_t bytes() const { return static_cast<std::size_t>(points_) * sizeof(T); }
    void restart(T* u) { check(cudaMemcpy(u, start_, bytes(), cudaMemcpyDeviceToDevice), "copy"), check(cudaDeviceSynchronize(), "start"); }

    template <class F>
    static double wall(F call) {
        check(cudaDeviceSynchronize(), "what was enqueued");
        const auto start = Clock::now();
        call();
        check(cudaDeviceSynchronize(), "what was timed");
        return seconds_since(start);
    }
    static void several(HeatRival<T>& peer, int steps) {
        for (int k = 0; k < steps; ++k) peer.step();
    }
    void run_ours(heat::Heat<T>& solver, std::int64_t steps = 0) {
        const SweepOutcome outcome = solver.advance(steps ? steps : case_.iterations);
        if (!outcome.ok() || std::string_view(outcome.device) != queue_.device())
            throw Error(ErrorCode::internal, case_.name(), std::string("ended as ") + name_of(outcome.reason) + " on " + outcome.device);
    }

    // The same scheme with other roundings: they may drift apart by some roundings of the values per step, no more.
    bool agree(heat::Heat<T>& solver, HeatRival<T>& peer, int steps, Json& row) {
        restart(ours_), restart(theirs_);
        run_ours(solver, steps), several(peer, steps);
        check(cudaMemset(largest_, 0, sizeof *largest_), "memset");
        largest_difference<<<1024, 256>>>(ours_, theirs_, points_, largest_);
        double difference = 0;
        check(cudaMemcpy(&difference, largest_, sizeof difference, cudaMemcpyDeviceToHost), "difference");
        const double roundoff = sizeof(T) == 8 ? 0x1p-53 : 0x1p-24, limit = 8 * roundoff * steps;
        row["compared_steps"] = steps, row["difference_roundoffs"] = difference / roundoff, row["limit_roundoffs"] = limit / roundoff;
        if (difference <= limit) return true;
        row["failed"] = true;
        return false;
    }

    // As tables 2 and 3 of the paper count: four words read and one written by each solve along an axis.
    void compare_times(HeatRival<T>& peer, double step, double seconds, int steps, Json& row) {
        row["rival_seconds"] = step * case_.iterations, row["times_rival"] = step * case_.iterations / seconds;
        const std::array<double, 6> parts = peer.seconds_of_phases(std::clamp(steps / 2, 2, 20));
        Json phases;
        for (std::size_t k = 0; k < parts.size(); ++k)
            if (case_.shape.z > 1 || (k != 3 && k != 4)) phases[HeatRival<T>::phases[k]] = parts[k];
        row["rival_phases_s"] = phases;
        const double moved = 5.0 * sizeof(T) * static_cast<double>(points_) / 1e9;
        row["rival_gx_gb_per_s"] = moved / parts[1], row["rival_gy_gb_per_s"] = moved / parts[2];
        if (case_.shape.z > 1) row["rival_gz_gb_per_s"] = moved / parts[4];
    }

    // Whole runs for at least two seconds, since the counter moves in steps of up to 100 ms.
    void measure_energy(heat::Heat<T>& solver, Json& row) {
        EnergyCounter counter(device_at(queue_.device_index()));
        if (!counter.why_not().empty()) {
            row["energy_note"] = counter.why_not();
            return;
        }
        const double before = counter.joules();
        const auto start = Clock::now();
        int runs = 0;
        double taken = 0;
        do run_ours(solver), taken = seconds_since(start), ++runs;
        while (taken < 2);
        const double after = counter.joules();
        if (!std::isfinite(after - before)) return;
        row["joules"] = (after - before) / runs, row["watts"] = (after - before) / taken, row["energy_seconds"] = taken, row["energy_runs"] = runs;
    }

    void take_energy(Json& row) const {
        for (const Json& other : settings_.other_energy)
            if (other["case"] == row["case"] && other.contains("joules")) {
                for (const char* const key : {"joules", "watts", "energy_seconds", "energy_runs"}) row[key] = other[key];
                row["energy_note"] = "from a run of its own";
            }
    }

    Queue& queue_;
    const Sparse& sparse_;
    const RoofArrays& arrays_;
    const Settings& settings_;
    const HeatCase& case_;
    std::int64_t points_;
    T *start_ = nullptr, *ours_ = nullptr, *theirs_ = nullptr;
    unsigned long long* largest_ = nullptr;
};

void print(const Json& row) {
    const auto number = [&](const char* key) { return row.contains(key) ? row[key].get<double>() : NAN; };
    std::printf("%-26s ", row["case"].get<std::string>().c_str());
    if (!row.contains("seconds") && row.contains("joules")) return void(std::printf("%8.4f J, %3.0f W\n", number("joules"), number("watts")));
    if (row.contains("failed")) return void(std::printf("FAILED: %.3g roundoffs from cuSPARSE's after %d steps\n", number("difference_roundoffs"), row["compared_steps"].get<int>()));
    std::printf("%8.3f ms  %7.2f Gpoints/s  %5.1f %% of %4.0f GB/s at 5 words, %5.1f %% of its passes  %5.1f x cuSPARSE  %5.1f %% of its %.2f words, %s", 1e3 * number("seconds"), 1e-9 * number("points_per_s"),
                100 * number("fraction_5_words"), number("roof_gb_per_s"), 100 * number("fraction_of_passes"), number("times_rival"), 100 * number("fraction_of_words"), number("words"), row["kind"].get<std::string>().c_str());
    if (row.contains("ceiling_seconds")) std::printf("  %5.1f %% of its ceiling", 100 * number("fraction_of_ceiling"));
    if (row.contains("moves_seconds")) std::printf(", %5.1f %% of its moving alone, which is at %.1f %%", 100 * number("fraction_of_moves"), 100 * number("fraction_5_words") / number("fraction_of_moves"));
    if (row.contains("joules")) std::printf("  %7.3f J, %3.0f W", number("joules"), number("watts"));
    std::printf("\n"), std::fflush(stdout);
}

// "80x64x64x24": points along x, y and z, and how many meshes; in both precisions. "/k" behind it: conductivity varies.
void add_meshes(const std::string& text, std::vector<HeatCase>& cases) {
    long long x = 0, y = 0, z = 0, meshes = 0;
    char beyond = 0;
    const bool varies = text.ends_with("/k");
    if (std::sscanf(text.substr(0, text.size() - (varies ? 2 : 0)).c_str(), "%lldx%lldx%lldx%lld%c", &x, &y, &z, &meshes, &beyond) != 4 || x < 3 || y < 3 || (z != 1 && z < 3) || meshes < 1)
        throw Error(ErrorCode::usage, "--mesh " + text, "is no NXxNYxNZxMESHES[/k]");
    for (const DType dtype : {DType::f32, DType::f64}) {
        cases.push_back({z > 1 ? "3d-other" : "2d-other", {x, y, z, meshes}, dtype, 100});
        cases.back().varies = varies;
    }
}

Json read_rows(const char* path) {
    std::ifstream file(path);
    const Json record = Json::parse(file, nullptr, false);
    if (!record.is_object() || !record.contains("rows")) throw Error(ErrorCode::usage, path, "is no record of this benchmark");
    return record["rows"];
}

int run(int argc, char** argv) {
    std::string json, energy_from;
    std::vector<std::string> only, meshes;
    std::vector<HeatCase> others;
    Settings settings;
    bool quick = false, list = false, compile = false;
    Arguments arguments("cuda_heat_bench", "ADI heat on the GPU beside cuSPARSE");
    arguments.text("--json", json, "where the record is written");
    arguments.flag("--quick", quick, "a few cases");
    arguments.texts("--mesh", meshes, "NXxNYxNZxMESHES[/k], in place of the list of cases; may be given again");
    arguments.texts("--only", only, "PART[,PART...]: cases whose name has all of these; may be given again");
    arguments.seconds("--budget", settings.budget_s, "as many cases as there is time for, what matters most first");
    arguments.rounds(settings.rounds, 3);
    arguments.clears("--no-rival", settings.rival, "cuSPARSE takes no turns");
    arguments.clears("--no-energy", settings.energy, "no energy is measured");
    arguments.flag("--all-energy", settings.all_energy, "energy of every case");
    arguments.flag("--energy-only", settings.energy_only, "energy alone");
    arguments.text("--energy-from", energy_from, "a record whose energies are taken over");
    arguments.flag("--list", list, "say which cases there are");
    arguments.flag("--compile", compile, "compile the kernels of these cases, and no more");
    if (const auto status = arguments.parse(argc, argv)) return *status;
    for (const std::string& mesh : meshes) add_meshes(mesh.c_str(), others);
    if (settings.energy_only) settings.all_energy = true, settings.rival = false;
    if (!energy_from.empty()) settings.other_energy = read_rows(energy_from.c_str());
    std::vector<HeatCase> chosen;
    for (const HeatCase& one : others.empty() ? heat_cases() : others) {
        const bool named = only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& parts) { return matches(one, parts); });
        if (named && (one.quick || !quick) && (one.energy || !settings.energy_only)) chosen.push_back(one);
    }
    if (chosen.empty()) return std::fprintf(stderr, "cuda_heat_bench: no such case (see --list)\n"), 2;
    if (list) {
        for (const HeatCase& one : chosen) std::printf("%s%s\n", one.name().c_str(), one.energy ? "  energy" : "");
        return 0;
    }
    Context context;
    if (compile) {
        Queue host(context, "cpu");
        compile_kernels(host, chosen);
        return 0;
    }
    const auto start = Clock::now();
    Json record = gpu_record("cuda_heat", "ADI heat on the GPU beside cuSPARSE, and as published for an Alveo U280 and a V100");
    Queue queue(context, "cuda:0");
    const Sparse sparse;
    RoofArrays arrays;
    bool failed = false;
    record["copy_gb_per_s"] = arrays.copy->gb_per_s(arrays.copy->best_ms()), record["update_gb_per_s"] = arrays.update->gb_per_s(arrays.update->best_ms());
    record["reduced"] = true;  // as long as not all is done
    record["rows"] = Json::array();
    if (std::isfinite(settings.budget_s))
        std::stable_sort(chosen.begin(), chosen.end(), [](const HeatCase& a, const HeatCase& b) { return importance(a) < importance(b); });
    std::size_t left_out = chosen.size();
    for (const HeatCase& one : chosen) {
        if (seconds_since(start) > settings.budget_s) break;
        --left_out;
        const Json row = one.dtype == DType::f32 ? Bench<float>(queue, sparse, arrays, settings, one).run() : Bench<double>(queue, sparse, arrays, settings, one).run();
        failed = failed || row.contains("failed");
        record["rows"].push_back(row);
        print(row);
        record["seconds"] = seconds_since(start);
        write_record(record, json);
    }
    record["reduced"] = quick || !only.empty() || !others.empty() || left_out > 0;
    if (left_out > 0) record["notes"] = Json::array({std::to_string(left_out) + " cases, for which there was no time (--budget)"});
    std::printf("%.0f s\n", seconds_since(start));
    if (!write_record(record, json)) return 1;
    return failed ? 6 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const Error& error) {
        std::fprintf(stderr, "cuda_heat_bench: %s\n", error.what());
        return static_cast<int>(error.code());
    }
}
