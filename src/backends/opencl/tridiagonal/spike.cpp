// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/spike.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace trifold::opencl {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Operand;
using tridiagonal::System;

constexpr word paper_m = 32, longest_m = 1024, short_rows = 1 << 14, gpu_group = 64;
constexpr std::size_t mover_group = 256;  // at most that of spike.cl's MOST_ITEMS
constexpr double accepted = 16;  // roundoffs of max|A| max|x| + max|rhs|

word up(word n, word multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Rows after which d^-rows is below the tolerance; longer than any partition where d proves nothing.
word decay_rows(double d, double tolerance) {
    if (!(d > 1)) return std::numeric_limits<std::int32_t>::max();
    return std::max<word>(1, static_cast<word>(std::ceil(std::log(1 / tolerance) / std::log(d))));
}

/// As many as fill the vectors of all compute units a few times, whole vectors; or fewer than one vector where m_min is long.
word cpu_partitions(word n, int units, word m_min, int lanes) {
    const word p = std::clamp<word>(n / (4 * m_min), 1, units * 2 * lanes);
    return p > lanes ? p / lanes * lanes : p;
}

std::size_t partition_words(word p, word m) { return static_cast<std::size_t>(7 * p * m + 5 * (p + 2)); }

template <class T>
class Spike {
public:
    explicit Spike(Call& call) : call_(call), work_(call.work()) {
        const Job& job = call.job;
        at_ = {call.system.rows, job.lower.offset, job.diag.offset, job.upper.offset, job.rhs.offset, job.x.offset};
        first_ = static_cast<word>(work_.offset / sizeof(T));
    }

    double dominance() {
        std::vector<T> least(look("dominance"));
        read(least);
        return static_cast<double>(*std::min_element(least.begin(), least.end()));
    }

    void thomas() {
        timed_ = call_.device.spike_times.wanted;
        with_system("spike_fpga", "tdma", 1, 1, work_.buffer, static_cast<cl_long>(first_));
    }

    void fpga(word m) {
        timed_ = call_.device.spike_times.wanted;
        defines_ = "-DM=" + std::to_string(m);
        with_system("spike_fpga", "spktrunc", 1, 1);
        defines_.clear();
    }

    void partitions(word p, word m, word top, word ul, bool gpu) {
        timed_ = call_.device.spike_times.wanted;
        // Whole vectors: partitions beyond the last one are identities.
        const word lanes = call_.device.lanes(call_.system.dtype);
        p = up(p, lanes);
        const SpikePartitions parts{first_, p, m, top, ul};
        const std::size_t group = call_.device.info.wide ? gpu_group : 1, items = static_cast<std::size_t>(p / lanes);
        // On a GPU a group per tile.
        const bool tiles = lanes == 1;
        const std::size_t mover = tiles ? mover_group : 1, most = static_cast<std::size_t>(tiles ? up(p, 32) / 32 * (up(m, 32) / 32) : p * m), movers = std::min<std::size_t>(tiles ? 1 << 14 : 1 << 8, most) * mover;
        marshalling_ = true;
        with_system("spike", "marshal", movers, mover, work_.buffer, parts);
        marshalling_ = false;
        with_partitions("spkfact", items, group, parts);
        if (gpu) {
            with_partitions("spkreclu", items, group, parts);
            with_partitions("spkrecul", items, group, parts);
        } else {
            with_partitions("spkrec", items, group, parts);
        }
        marshalling_ = true;
        with_system("spike", "unmarshal", movers, mover, work_.buffer, parts);
    }

    /// max|Y - A x| / (max|A| max|x| + max|Y|); NaN where anything is not finite.
    double residual() {
        timed_ = false;
        const std::size_t groups = look("check");
        std::vector<T> found(4 * groups);
        read(found);
        double most[4] = {};
        for (std::size_t w = 0; w < 4; ++w)
            for (std::size_t i = 0; i < groups; ++i) {
                const double value = static_cast<double>(found[w * groups + i]);
                if (std::isnan(value)) return value;
                most[w] = std::max(most[w], value);
            }
        const double scale = most[1] * most[2] + most[3];
        return most[0] == 0 ? 0 : most[0] / scale;
    }

private:
    /// A kernel of which every group says something, into work. Returns how many groups it has.
    std::size_t look(const char* name) {
        const bool wide = call_.device.info.wide;
        const std::size_t group = wide ? call_.device.group_of(kernel_of("spike", name), mover_group) : 1, groups = wide ? 2048 : 256;
        with_system("spike", name, groups * group, group, work_.buffer, static_cast<cl_long>(first_));
        return groups;
    }

    cl::Kernel& kernel_of(const char* file, const char* name) { return call_.device.kernel({file, name}, call_.system.dtype, defines_); }

    template <class... More>
    void with_system(const char* file, const char* name, std::size_t items, std::size_t group, const More&... more) {
        cl::Kernel& kernel = kernel_of(file, name);
        for (cl_uint k = 0; k < 5; ++k) kernel.setArg(k, call_.buffers[k]);
        kernel.setArg(5, at_);
        cl_uint next = 6;
        (kernel.setArg(next++, more), ...);
        run(kernel, items, group);
    }

    void with_partitions(const char* name, std::size_t items, std::size_t group, const SpikePartitions& parts) {
        cl::Kernel& kernel = call_.device.kernel({"spike", name}, call_.system.dtype);
        kernel.setArg(0, work_.buffer);
        kernel.setArg(1, parts);
        run(kernel, items, group);
    }

    void run(cl::Kernel& kernel, std::size_t items, std::size_t group) {
        if (!timed_) return call_.run(kernel, items, group);
        SpikeTimes& times = call_.device.spike_times;
        (marshalling_ ? times.marshalling : times.solving) += call_.device.run_timed(kernel, items, group);
    }

    void read(std::vector<T>& to) { call_.on.queue.enqueueReadBuffer(work_.buffer, CL_TRUE, work_.offset, to.size() * sizeof(T), to.data()); }

    Call& call_;
    Place work_;
    SpikeSystem at_{};
    word first_ = 0;
    std::string defines_;
    bool timed_ = false;
    bool marshalling_ = false;
};

// False: no partition is long enough.
template <class T>
bool run_spike(Spike<T>& spike, const System& system, int units, int lanes, Mapping mapping, double tolerance) {
    const word n = system.rows, t = decay_rows(spike.dominance(), tolerance);
    if (mapping == Mapping::cpu) {
        // One partition is cut nowhere: then it is plain elimination.
        const word p = t > n ? 1 : cpu_partitions(n, units, t, lanes), m = (n + p - 1) / p;
        if (p < lanes && n > short_rows) return false;
        spike.partitions(p, m, p == 1 ? 0 : t, p == 1 ? 1 : std::min(2 * t, m), false);
        return true;
    }
    const word m = std::max(paper_m, up(2 * t, 32));
    if (m > longest_m) return false;
    if (mapping == Mapping::fpga) spike.fpga(m);
    else spike.partitions((n + m - 1) / m, m, m / 2, m, true);
    return true;
}

template <class T>
void solve_typed(Call& call, Algorithm algorithm, Mapping mapping, Outcome& outcome) {
    Spike<T> spike(call);
    SpikeTimes& times = call.device.spike_times;
    times.marshalling = times.solving = 0;
    times.kernels = algorithm == Algorithm::thomas ? "tdma" : mapping == Mapping::gpu ? "gpu mapping" : mapping == Mapping::cpu ? "cpu mapping" : "fpga mapping";
    outcome = Outcome{};
    outcome.branch = name_of(algorithm);
    bool run = true;
    if (algorithm == Algorithm::thomas) spike.thomas();
    else run = run_spike(spike, call.system, call.device.info.units, call.device.lanes(call.system.dtype), mapping, call.launch.tolerance);
    if (run) outcome.residual = spike.residual();
    call.wait();
    outcome.reason = run && outcome.residual <= accepted * unit_roundoff(call.system.dtype) ? Reason::exact
                     : algorithm == Algorithm::thomas                                       ? Reason::unstable
                                                                                            : Reason::not_certified;
    if (!outcome.ok()) outcome.failures = 1, outcome.system = call.system.number;
}

}  // namespace

Mapping mapping_of(Kind kind) {
    const char* const asked = std::getenv("TRIFOLD_OPENCL_MAPPING");
    const std::string_view wanted = asked ? asked : "";
    if (wanted == "cpu") return Mapping::cpu;
    if (wanted == "gpu") return Mapping::gpu;
    if (wanted == "fpga") return Mapping::fpga;
    if (!wanted.empty()) {
        Stop stop;
        stop.failure.say(ErrorCode::usage, ("TRIFOLD_OPENCL_MAPPING='" + std::string(wanted) + "' is no mapping").c_str(), "cpu, gpu or fpga");
        throw stop;
    }
    return kind == Kind::gpu ? Mapping::gpu : kind == Kind::cpu ? Mapping::cpu : Mapping::fpga;
}

const char* spike_refuses(const System& system) {
    if (system.levels > 0) return "this device's kernel for it takes one system at a time";
    if (system.in_place) return "this device's kernel for it needs an x that is not rhs";
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x})
        if (operand->kind != Operand::Kind::view || (operand->row_stride != 1 && system.rows > 1)) return "this device's kernel for it takes arrays whose rows lie side by side";
    return nullptr;
}

std::size_t spike_scratch(const System& system) {
    const word n = system.rows, longest = n <= short_rows ? 16 * n + 16 * longest_m : n + 16 * longest_m;
    return ScratchParts(system).work + partition_words(1, longest) * size_of(system.dtype) + static_cast<std::size_t>(5 * (longest / paper_m + 2)) * size_of(system.dtype);
}

void solve_spike(Call& call, Algorithm algorithm, Mapping mapping, Outcome& outcome) {
    if (call.system.dtype == DType::f32) solve_typed<float>(call, algorithm, mapping, outcome);
    else solve_typed<double>(call, algorithm, mapping, outcome);
}

}  // namespace trifold::opencl
