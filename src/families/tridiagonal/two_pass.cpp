// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/two_pass.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "base/aligned_buffer.hpp"
#include "base/available_memory.hpp"
#include "families/tridiagonal/coupling.hpp"
#include "families/tridiagonal/lu_gathers.hpp"

namespace trifold::tridiagonal {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Unit roundoffs accepted of a chunk because LU would leave more in the whole.
constexpr double most_as_lu = 256;

std::size_t lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// What lies in Launch::scratch, in this order; the device's part comes last.
struct Parts {
    InterfaceRow* rows;
    std::int64_t* zero_pivot;
    double* boundary;
    double* correction;
    ChunkResidual* residuals;
    void* coupling;
    void* device;
    std::size_t driver_bytes;

    Parts(void* scratch, std::int64_t chunks) {
        char* const base = static_cast<char*>(scratch);
        std::size_t at = 0;
        // Without scratch only sizes are counted.
        const auto take = [&](std::size_t bytes) {
            const std::size_t here = std::exchange(at, at + lines(bytes));
            return base ? base + here : nullptr;
        };
        rows = reinterpret_cast<InterfaceRow*>(take(2 * chunks * sizeof(InterfaceRow)));
        zero_pivot = reinterpret_cast<std::int64_t*>(take(chunks * sizeof(std::int64_t)));
        boundary = reinterpret_cast<double*>(take(2 * chunks * sizeof(double)));
        correction = reinterpret_cast<double*>(take(2 * chunks * sizeof(double)));
        residuals = reinterpret_cast<ChunkResidual*>(take(chunks * sizeof(ChunkResidual)));
        coupling = take(coupling_scratch(chunks));
        driver_bytes = at;
        device = take(0);
    }
};

/// The largest residual; NaN where one is NaN.
double worst(const ChunkResidual* residuals, std::int64_t chunks) {
    double largest = 0;
    for (std::int64_t k = 0; k < chunks; ++k) {
        if (std::isnan(residuals[k].residual)) return residuals[k].residual;
        largest = std::max(largest, residuals[k].residual);
    }
    return largest;
}

class TwoPass {
public:
    TwoPass(const Ops& ops, const System& system, const Launch& launch, std::int64_t chunk_rows)
        : ops_(ops), system_(system), launch_(launch), partition_{system.rows, chunk_rows}, parts_(launch.scratch, partition_.chunks()),
          accept_(two_pass_accept(system.dtype)), wide_(32 * unit_roundoff(system.dtype)) {
        assert(launch.scratch_bytes >= parts_.driver_bytes);
        device_ = launch;
        device_.scratch = parts_.device;
        device_.scratch_bytes = launch.scratch_bytes - parts_.driver_bytes;
    }

    Outcome run() {
        const std::int64_t chunks = partition_.chunks();
        if (ops_.sweep_pivoted && ops_.sweep_pivoted(system_, launch_)) return done(Reason::exact, Outcome::unknown);
        // In place, what LAPACK's measure may still accept is stored too.
        double residual = pass(parts_.boundary, system_.in_place ? std::max(wide_, as_lu()) : infinite);
        if (residual <= accept_ || (residual <= wide_ && good_for_the_whole()) || residual <= as_lu()) return done(Reason::exact, residual);
        const auto all_stored = [&] { return std::all_of(parts_.residuals, parts_.residuals + chunks, [](const ChunkResidual& r) { return r.stored; }); };
        // Nothing can be refined in place, and LU would have to do with a right-hand side that is made again from this x: no better than what is there.
        if (system_.in_place && finished_ && all_stored()) return done(Reason::exact, residual);
        if (!system_.in_place && finished_ && ops_.corrects && all_stored()) {
            partition_.stored = parts_.boundary;
            residual = pass(parts_.correction, infinite);
            if (residual <= accept_ || good_for_the_whole()) return done(Reason::refined, residual);
        }
        return system_.in_place && finished_ ? lu_in_place() : lu();
    }

private:
    /// Both passes; NaN where there is no solution. finished_: something may have been stored.
    double pass(double* boundary, double accept) {
        const std::int64_t chunks = partition_.chunks();
        finished_ = false;
        ops_.reduce(system_, partition_, device_, parts_.rows, parts_.zero_pivot);
        if (std::any_of(parts_.zero_pivot, parts_.zero_pivot + chunks, [](std::int64_t row) { return row >= 0; })) return Outcome::unknown;
        if (couple(chunks, parts_.rows, boundary, coupled_to(system_.dtype), launch_.threads, parts_.coupling) >= 0) return Outcome::unknown;
        ops_.finish(system_, partition_, device_, boundary, accept, parts_.residuals);
        finished_ = true;
        return worst(parts_.residuals, chunks);
    }

    /// What is accepted of a system that forgets nothing: LU leaves more of it. Devices without that pass may have memory of their own.
    double as_lu() {
        if (std::isnan(as_lu_)) as_lu_ = !ops_.sweep_pivoted ? 0 : std::min(lu_gathers(system_), most_as_lu) * unit_roundoff(system_.dtype);
        return as_lu_;
    }

    /// LAPACK's measure: residuals against the largest scale of any chunk. For the one chunk of 10^5 that is a little worse, and
    /// for systems graded so steeply that a chunk's own scale is out of reach.
    bool good_for_the_whole() const {
        double scale = 0, residual = 0;
        for (std::int64_t k = 0; k < partition_.chunks(); ++k) {
            const ChunkResidual& chunk = parts_.residuals[k];
            if (!chunk.stored || !std::isfinite(chunk.scale)) return false;
            scale = std::max(scale, chunk.scale);
            residual = std::max(residual, chunk.residual * chunk.scale);
        }
        return residual <= 4 * unit_roundoff(system_.dtype) * scale;
    }

    Outcome done(Reason reason, double residual) const {
        Outcome outcome;
        outcome.reason = reason;
        outcome.residual = residual;
        outcome.branch = name_of(Algorithm::two_pass);
        outcome.device = ops_.device;
        if (reason == Reason::refined) outcome.rescued = partition_.chunks();
        if (launch_.status) launch_.status[system_.number] = static_cast<std::int8_t>(reason);
        return outcome;
    }

    /// A column without a pivot comes here too, so that the row that is named is the one LU with partial pivoting names.
    Outcome lu() const {
        const std::size_t bytes = ops_.workspace(system_, Algorithm::lu, launch_.threads);
        Launch launch = launch_;
        AlignedBuffer own;
        if (bytes > launch.scratch_bytes) {
            require_memory("two_pass, which hands this system over to lu", static_cast<double>(bytes), "free some memory, or solve fewer rows; nothing is lost");
            own = AlignedBuffer(bytes);
            launch.scratch = own.data(), launch.scratch_bytes = bytes;
        }
        Outcome outcome;
        ops_.solve(system_, Algorithm::lu, launch, outcome);
        outcome.tried_other = true;
        return outcome;
    }

    Outcome lu_in_place() {
        const std::int64_t chunks = partition_.chunks();
        const double rounding = 4 * unit_roundoff(system_.dtype);
        double lost = 0, right = 0;  // how far the new right-hand side may be from the one that was overwritten, and how large that was
        for (std::int64_t k = 0; k < chunks; ++k) {
            const ChunkResidual& chunk = parts_.residuals[k];
            right = std::max(right, chunk.right);
            if (chunk.stored) lost = std::max(lost, (chunk.residual + rounding) * chunk.scale);
        }
        ops_.restore(system_, partition_, device_, parts_.boundary, parts_.residuals);
        // LU may take all of the scratch, but `lost` and `right` are known.
        Outcome outcome = lu();
        if (!outcome.ok()) return outcome;
        ops_.restore(system_, partition_, device_, nullptr, parts_.residuals);
        double scale = 0;
        for (std::int64_t k = 0; k < chunks; ++k) scale = std::max(scale, parts_.residuals[k].scale);
        // A tenth more, since x and its scale differ by what is computed.
        if (!(lost <= 1.1 * (std::max(wide_, as_lu()) + rounding) * (scale + right))) {
            outcome.reason = Reason::unstable;
            outcome.system = system_.number, outcome.failures = 1;
            if (launch_.status) launch_.status[system_.number] = static_cast<std::int8_t>(outcome.reason);
        }
        return outcome;
    }

    const Ops& ops_;
    const System& system_;
    const Launch& launch_;
    Launch device_;
    Partition partition_;
    Parts parts_;
    double accept_, wide_, as_lu_ = std::numeric_limits<double>::quiet_NaN();
    bool finished_ = false;
};

}  // namespace

std::int64_t two_pass_chunk_rows(std::int64_t rows, DType) noexcept {
    // Two vectors of 496-row chunks, their pivot rows and their x fill about half of a second-level cache of 1 MiB; 496 and not
    // 512, so that the lanes do not meet in one set of the first level. Short systems: 128 chunks of 32 rows or more.
    constexpr std::int64_t longest = 496, shortest = 32, chunks = 128;
    return std::clamp(rows / chunks / 16 * 16, shortest, longest);
}

double two_pass_accept(DType dtype) noexcept { return 10 * unit_roundoff(dtype); }

std::size_t two_pass_workspace(const Ops& ops, const System& system, int threads) {
    const std::size_t least = two_pass_least_workspace(ops, system, threads);
    return ops.sweep_pivoted_scratch ? std::max(least, ops.sweep_pivoted_scratch(system, threads)) : least;
}

std::size_t two_pass_least_workspace(const Ops& ops, const System& system, int threads) {
    return two_pass_workspace(ops, system, threads, two_pass_chunk_rows(system.rows, system.dtype));
}

std::size_t two_pass_workspace(const Ops& ops, const System& system, int threads, std::int64_t chunk_rows) {
    if (system.rows < 2 * chunk_rows) return ops.workspace(system, Algorithm::lu, threads);
    return Parts(nullptr, system.rows / chunk_rows).driver_bytes + ops.workspace(system, Algorithm::two_pass, threads);
}

const char* two_pass_refuses(const Ops& ops, const System& system) {
    if (!ops.reduce || !ops.finish) return "this device has no two_pass";
    if (system.in_place && !ops.restore) return "two_pass on this device needs an x that is not rhs";
    return ops.refuses ? ops.refuses(system, Algorithm::two_pass) : nullptr;
}

Outcome solve_two_pass(const Ops& ops, const System& system, const Launch& launch) {
    return solve_two_pass(ops, system, launch, two_pass_chunk_rows(system.rows, system.dtype));
}

Outcome solve_two_pass(const Ops& ops, const System& system, const Launch& launch, std::int64_t chunk_rows) {
    assert(chunk_rows >= 2);
    if (system.rows < 2 * chunk_rows) {
        Outcome outcome;
        ops.solve(system, Algorithm::lu, launch, outcome);
        outcome.tried_other = true;
        return outcome;
    }
    return TwoPass(ops, system, launch, chunk_rows).run();
}

}  // namespace trifold::tridiagonal
