// SPDX-License-Identifier: BSD-3-Clause
// One call of `sweep_pivoted` outside the vector units: how the system is cut, the division of the scratch, groups handed to threads.
#pragma once

#include "backends/cpu/tridiagonal/pivoted.hpp"
#include "backends/cpu/tridiagonal/pivoted_undo.hpp"

namespace trifold::cpu {

template <class T>
struct PivotedCall {
    /// Below this many rows stretches would be too short for their halos, or too few for the threads.
    static constexpr std::int64_t fewest_rows = std::int64_t{1} << 19;
    /// Below this many bytes of x and coefficients a solve may still find them in the last-level cache.
    static constexpr std::int64_t cached_bytes = std::int64_t{64} << 20;

    PivotedCut cut;
    PivotedUndo<T> undo;
    PivotedJob<T> job;
    T* rings = nullptr;
    bool fits;  ///< the scratch; else nothing else is set

    /// Rows of a block, or 0 where the matrix forgets too late.
    static std::int64_t block_for(const tridiagonal::System& system) {
        const std::int64_t longest = PivotedCut::longest(system.rows, line<T>), slowest = pivoted_decay(system, unit_roundoff(system.dtype) / 4, longest / 2);
        // Some rows forget later than those that were looked at. Where even this is too soon, blocks do not agree.
        const std::int64_t wanted = (9 * slowest / 4 + 32 + PivotedCut::unit - 1) / PivotedCut::unit * PivotedCut::unit;
        return wanted > longest ? 0 : std::max(wanted, PivotedCut::shortest);
    }

    PivotedCall(const tridiagonal::System& system, const tridiagonal::Launch& launch, std::int64_t lanes, std::int64_t block)
        : cut(system.rows, lanes, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(system.x.data) / sizeof(T) % line<T>), block, line<T>),
          job{{}, cut, static_cast<T>(4 * unit_roundoff(system.dtype)), false, nullptr, nullptr} {
        const std::int64_t stretches = cut.groups * cut.lanes;
        const std::size_t undo_bytes = system.in_place ? PivotedUndo<T>::bytes(cut) : 0;
        fits = launch.scratch_bytes >= seam_bytes(stretches) + own_bytes(cut.block, launch.threads) + undo_bytes;
        if (!fits) return;
        SweepArrays<T>& arrays = job.arrays;
        arrays.x = static_cast<T*>(system.x.data), arrays.rows = system.rows, arrays.in_place = system.in_place;
        char* at = static_cast<char*>(launch.scratch);
        job.seams = reinterpret_cast<PivotedSeam<T>*>(at);
        at += seam_bytes(stretches);
        using tridiagonal::Operand;
        const Operand* operands[4] = {&system.lower, &system.diag, &system.upper, &system.rhs};
        for (int k = 0; k < 4; ++k, at += 64) {
            const bool view = operands[k]->kind == Operand::Kind::view;
            T* const constants = reinterpret_cast<T*>(at);
            std::fill_n(constants, line<T>, static_cast<T>(operands[k]->value));
            arrays.data[k] = view ? static_cast<const T*>(operands[k]->data) : constants;
            arrays.step[k] = view;
        }
        rings = reinterpret_cast<T*>(at);
        job.stream = !system.in_place && 5 * system.rows * static_cast<std::int64_t>(sizeof(T)) > cached_bytes;
        if (!system.in_place) return;
        undo.take(cut, at + launch.threads * PivotedJob<T>::ring(cut.block) * sizeof(T));
        job.undo = &undo;
    }
    PivotedCall(const PivotedCall&) = delete;

    /// sweep(group, ring of the thread) for all groups, until one of them stops the others.
    template <class Sweep>
    void each_group(int threads, const Sweep& sweep) {
#pragma omp parallel num_threads(threads)
        {
            if (job.undo) {
#pragma omp for schedule(static)
                for (std::int64_t stretch = 0; stretch <= cut.groups * cut.lanes; ++stretch) undo.save_seam(job.arrays, cut, stretch);
            }
#pragma omp for schedule(dynamic, 1)
            for (std::int64_t group = 0; group < cut.groups; ++group)
                if (!job.stop.load(std::memory_order_relaxed)) sweep(group, rings + omp_get_thread_num() * PivotedJob<T>::ring(cut.block));
        }
    }

    /// Enough for any block.
    static std::size_t most_bytes(const tridiagonal::System& system, int threads) {
        const std::int64_t block = PivotedCut::longest(system.rows, line<T>) + 3 * PivotedCut::unit;
        const std::int64_t stretches = system.rows / (PivotedCut::shortest * PivotedCut::fewest) + 2 * line<T>;
        const std::size_t undo = system.in_place ? PivotedUndo<T>::most_bytes(system.rows, block, line<T>, stretches) : 0;
        return seam_bytes(stretches) + own_bytes(block, threads) + undo;
    }

private:
    static std::size_t seam_bytes(std::int64_t stretches) { return (stretches * sizeof(PivotedSeam<T>) + 63) / 64 * 64; }

    /// Constants of the arrays and rings of the threads.
    static std::size_t own_bytes(std::int64_t block, int threads) { return (4 * line<T> + threads * PivotedJob<T>::ring(block)) * sizeof(T); }
};

}  // namespace trifold::cpu
