// SPDX-License-Identifier: BSD-3-Clause
// In place, what a pivoted sweep needs of the right-hand side after x has been written over it.
//
// Arrays   seams: rows start - block … start + block - 1 of every stretch, which its neighbour reads too, and of the end of the last one;
//          log: every row of every stretch, in the order in which elimination takes it: [group][row of the stretch][lane];
//          stored: per group, blocks of its stretches that hold x
// Words    1 written per row beyond the sweep's own; read again only where the sweep fails
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/tridiagonal/pivoted_job.hpp"

namespace trifold::cpu {

template <class T>
struct PivotedUndo {
    T *seams = nullptr, *log = nullptr;
    std::int64_t* stored = nullptr;

    static std::size_t stored_bytes(std::int64_t groups) { return (groups * sizeof(std::int64_t) + 63) / 64 * 64; }
    static std::size_t seam_numbers(const PivotedCut& cut) { return 2 * cut.block * (cut.groups * cut.lanes + 1); }

    static std::size_t bytes(const PivotedCut& cut) {
        return stored_bytes(cut.groups) + (seam_numbers(cut) + cut.groups * cut.lanes * cut.length()) * sizeof(T);
    }

    /// Enough for every cut of so many rows: stretches have 24 blocks or more, and the last group is less than a third of the system longer.
    static std::size_t most_bytes(std::int64_t rows, std::int64_t longest_block, std::int64_t lanes, std::int64_t stretches) {
        return stored_bytes(stretches) + (rows / 12 + 2 * longest_block * (lanes + 2) + rows * 4 / 3) * sizeof(T);
    }

    void take(const PivotedCut& cut, char* at) {
        stored = reinterpret_cast<std::int64_t*>(at);
        seams = reinterpret_cast<T*>(at + stored_bytes(cut.groups));
        log = seams + seam_numbers(cut);
        std::fill_n(stored, cut.groups, std::int64_t{0});
    }

    /// `offset` rows from the first of a stretch, where that is outside it.
    const T* outside(const PivotedCut& cut, std::int64_t stretch, std::int64_t offset) const {
        const T* const first = seams + 2 * cut.block * stretch + cut.block;
        return offset < 0 ? first + offset : first + 2 * cut.block + offset % cut.block;
    }

    /// Before anything is stored.
    void save_seam(const SweepArrays<T>& arrays, const PivotedCut& cut, std::int64_t stretch) const {
        const std::int64_t count = 2 * cut.block, first = stretch * cut.length() - cut.pad - cut.block;
        T* const to = seams + count * stretch;
        if (first >= 0 && first + count <= arrays.rows) std::copy_n(arrays.data[3] + first, count, to);
        else for (std::int64_t i = 0; i < count; ++i) to[i] = arrays.at(3, first + i);
    }

    /// Puts back, bit for bit, what the group has written over.
    void restore(const SweepArrays<T>& arrays, const PivotedCut& cut, std::int64_t group) const {
        const T* from = log + group * cut.lanes * cut.length();
        for (std::int64_t i = 0; i < stored[group] * cut.block; ++i)
            for (std::int64_t lane = 0; lane < cut.lanes; ++lane, ++from) {
                const std::int64_t row = cut.start(group) + lane * cut.length() + i;
                if (row >= 0 && row < arrays.rows) arrays.x[row] = *from;
            }
    }
};

}  // namespace trifold::cpu
