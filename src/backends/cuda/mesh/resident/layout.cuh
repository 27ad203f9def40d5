// SPDX-License-Identifier: BSD-3-Clause
// How a mesh that stays on chip is cut, and where its parts lie in shared memory: constants of a program, chosen on the host (cut.hpp).
//
// A cluster of `cluster` blocks has one mesh. Each has a slab: `slab_rows` rows of the slowest axis (y of a plane, z of a box), the last
// block what remains; or, where `abreast` is more than 1, an equal part of a slab, cut across the axis before (decision 0058). Lines of an axis are cut into segments of `rows` points; a thread has the same segment of `together` lines.
#pragma once

#include <cstdint>

namespace trifold::cuda::resident {

inline constexpr int even = 0, odd = 1, periodic = 2;  // as trifold::Edge
inline constexpr int most_lines = 16, most_sweeps = 8, most_kept = 8, most_parameters = 64, most_values = 16;

struct AxisCut {
    int segments = 1, rows = 1;  ///< of a line within a block, and points of a segment (the last one of a line may have fewer)
};

struct FieldPlan {
    bool kept = false;        ///< in shared memory; else nobody reads it
    bool target = false;
    bool once = false;        ///< read before the first step only: then its place is for what lies between line solves
    bool diagonal = false;    ///< neighbours off the axes are read
    int ghosts[3] = {};       ///< values kept beyond the sides
    bool one[3] = {};         ///< the same along the axis: kept once
    int edge[3][2] = {};
};

struct LinePlan {
    int axis = 0;
    bool ring = false, ends = false;  ///< ends: the first and the last right-hand side lose something
    bool constant = false;            ///< all rows are the same, but for those at the sides
    bool varies = false;              ///< every line has a matrix of its own (varying.cuh)
    bool held = false;                ///< whose factors are in registers
    bool symmetric = false;           ///< looks so: two words of factors a row, and the run is refused where it is not
    int edge[2] = {};                 ///< of the solution, where lines are no rings
};

/// A value per point that a right-hand side has been cut at: in an array of its own, or in another one's as that of the next point along an axis.
struct ValuePlan {
    int array = 0, axis = -1;
};

struct SweepPlan {
    int first_line = 0, lines = 0, target = 0;
    bool looks_away = true;           ///< its right-hand side reads neighbours in a target
    int kept = 0, arrays = 0;         ///< values per point that its right-hand side has been cut at (invariants.hpp), and arrays that have them
    ValuePlan value[most_values];
};

constexpr int round_up(int n, int to) { return (n + to - 1) / to * to; }
constexpr int ceiling(int n, int by) { return (n + by - 1) / by; }
constexpr int largest(int a, int b) { return a > b ? a : b; }

/// Sizes and places in elements.
struct Plan {
    int vector = 4;  ///< elements in 16 bytes
    int mesh[3] = {1, 1, 1};
    int cluster = 1, threads = 32, slab_rows = 1;
    int abreast = 1;    ///< blocks that share a slab
    int turn_rows = 0;  ///< 0: between line solves along different axes all values are in shared memory; else in registers but for so many rows of the slab, which change threads in turn
    AxisCut cut[3];
    int fields = 0, lines = 0, sweeps = 0;
    FieldPlan field[most_kept];
    LinePlan line[most_lines];
    SweepPlan sweep[most_sweeps];

    constexpr int slab() const { return mesh[2] > 1 ? 2 : 1; }
    constexpr int slabs() const { return cluster / abreast; }
    constexpr int local(int axis) const { return axis == slab() ? slab_rows : axis + 1 == slab() ? mesh[axis] / abreast : mesh[axis]; }
    constexpr int last_rows() const { return mesh[slab()] - (slabs() - 1) * slab_rows; }
    constexpr bool even_slabs() const { return last_rows() == slab_rows; }
    constexpr int blocks_along(int axis) const { return axis == slab() ? slabs() : axis + 1 == slab() ? abreast : 1; }
    constexpr int block_along(int axis, int rank) const { return axis == slab() ? rank % slabs() : axis + 1 == slab() ? rank / slabs() : 0; }
    constexpr bool crosses(int axis) const { return axis == slab() && slabs() > 1; }         ///< its lines are joined by the blocks, each for some of them
    constexpr bool shared(int axis) const { return axis != slab() && blocks_along(axis) > 1; }  ///< by every block that has a part of them

    // Fields: x fastest, ghosts around. Rows of odd length are apart by a bank in shared memory, whichever way they are read.
    constexpr int extent(int f, int axis) const { return field[f].one[axis] ? 1 : local(axis) + 2 * field[f].ghosts[axis]; }
    constexpr int pitch(int f) const { return extent(f, 0) | 1; }
    /// A plane: lanes that go on in the next one go on in the next bank.
    constexpr int apart_by_a_bank(int packed) const {
        const int banks = 8 * vector;
        return mesh[2] > 1 && mesh[0] % banks != 0 ? packed + ((mesh[0] - packed) % banks + banks) % banks : packed;
    }
    constexpr int plane(int f) const { return apart_by_a_bank(pitch(f) * extent(f, 1)); }
    constexpr int stride(int f, int axis) const { return field[f].one[axis] ? 0 : axis == 0 ? 1 : axis == 1 ? pitch(f) : plane(f); }
    constexpr int size(int f) const { return field[f].kept ? plane(f) * extent(f, 2) : 0; }
    constexpr int first_of(int f) const {
        int at = f < fields && field[f].once ? between() : 0;
        for (int k = 0; k < f; ++k)
            if (field[k].once == (f < fields && field[f].once)) at += size(k);
        return at;
    }
    constexpr int origin(int f) const {
        int at = first_of(f);
        for (int axis = 0; axis < 3; ++axis) at += field[f].ghosts[axis] * stride(f, axis);
        return at;
    }

    // What a line solve leaves for the next one; and, once that has been read, what comes back from a join across blocks.
    constexpr int between_stride(int axis) const { return axis == 0 ? 1 : axis == 1 ? local(0) | 1 : (local(0) | 1) * local(1); }
    constexpr int between() const { return first_of(fields); }
    constexpr int once_size() const {
        int size_of_all = 0;
        for (int f = 0; f < fields; ++f) size_of_all += field[f].once ? size(f) : 0;
        return size_of_all;
    }
    constexpr int between_size() const {
        bool several = false;
        for (int s = 0; s < sweeps; ++s) several = several || sweep[s].lines > 1;
        const int rows = turn_rows > 0 ? turn_rows : local(slab());
        return largest(largest(several ? (mesh[2] > 1 ? between_stride(2) : between_stride(1)) * rows : 0, most(true, true)), once_size());
    }

    // In turns: of lines within the slab, a thread's k-th one lies in the k-th rows; of those through the slab, a thread has its rows of the slab.
    constexpr int turns() const { return ceiling(slab_rows, largest(turn_rows, 1)); }
    constexpr bool takes_turns() const {
        for (int axis = 0; axis <= slab(); ++axis)
            if (axis == slab() ? cut[axis].segments != 1 : side_by_side(axis) * slab_rows != lines_along(axis) * turn_rows) return false;
        return true;
    }

    // Lines along an axis, in a block.
    constexpr bool varies(int l) const { return line[l].varies; }
    constexpr int axis_of(int l) const { return l < 0 ? 0 : line[l].axis; }
    constexpr int lines_along(int axis) const { return local(0) * local(1) * local(2) / local(axis); }
    constexpr int segments(int axis) const { return cut[axis].segments * blocks_along(axis); }
    constexpr int last_segment(int axis) const { return mesh[axis] - (segments(axis) - 1) * cut[axis].rows; }
    constexpr int side_by_side(int axis) const { return threads / cut[axis].segments; }  ///< threads with one segment
    constexpr int together(int axis) const { return ceiling(lines_along(axis), side_by_side(axis)); }

    // Segments' ends within a block; and across blocks: what the block that joins a line's segments gets, and gives back.
    constexpr bool joined(int l) const { return segments(line[l].axis) > 1 || line[l].ring; }
    constexpr bool crosses_slabs(int s) const {
        for (int l = sweep[s].first_line; l < sweep[s].first_line + sweep[s].lines; ++l)
            if (crosses(line[l].axis) || shared(line[l].axis)) return true;
        return false;
    }
    constexpr int owned(int axis) const { return ceiling(lines_along(axis), slabs()); }
    constexpr int joiners(int axis) const { return largest(1, threads / owned(axis) < segments(axis) ? threads / owned(axis) : segments(axis)); }  ///< threads that join a line
    // Where shared memory is scarce and one thread joins a line, the result takes the place of what it was made from, and is fetched.
    constexpr bool fetches(int axis) const { return turn_rows > 0 && crosses(axis) && joiners(axis) == 1; }
    /// A line solve of the same sweep before it is joined by the same blocks.
    constexpr bool joined_before(int l) const {
        for (int s = 0; s < sweeps; ++s)
            for (int k = sweep[s].first_line; k < l && l < sweep[s].first_line + sweep[s].lines; ++k)
                if (line[k].axis == line[l].axis) return true;
        return false;
    }
    constexpr int most(bool across, bool back) const {
        int size = 0;
        for (int l = 0; l < lines; ++l) {
            const int axis = line[l].axis;
            if (line[l].varies || !joined(l) || shared(axis) || crosses(axis) != across || (back && fetches(axis))) continue;
            size = largest(size, 2 * (across && !back ? segments(axis) * owned(axis) : cut[axis].segments * lines_along(axis)));
        }
        return size;
    }
    constexpr int ends() const { return turn_rows > 0 ? between() : round_up(between() + between_size(), vector); }  // in turns: before and after them
    constexpr int ends_shared() const { return round_up(ends_across() + most(true, false), vector); }
    constexpr int shared_size() const {
        int size = 0;
        for (int l = 0; l < lines; ++l)
            if (shared(line[l].axis)) size = largest(size, 2 * segments(line[l].axis) * lines_along(line[l].axis));
        return size;
    }
    constexpr int ends_across() const { return turn_rows > 0 ? round_up(between() + largest(between_size(), most(false, false)), vector) : ends() + most(false, false); }

    // Factors of the block's segments of a line solve: [segment][inverse, lower, reach, upper, fill][rows]; then the join's coupling
    // and inverse, [1 + segments][segments]. In memory the same, with all segments.
    constexpr int padded_rows(int axis) const { return round_up(cut[axis].rows, vector); }
    constexpr int segment_size(int axis) const { return 5 * padded_rows(axis); }
    constexpr int padded_segments(int axis) const { return round_up(segments(axis), vector); }
    constexpr int join_size(int axis) const { return (1 + segments(axis)) * padded_segments(axis); }
    // Of a matrix whose rows are the same, segments but the first and the last one are the same too, and are there once.
    constexpr bool alike(int l) const { return line[l].constant && cut[line[l].axis].segments > 3; }
    constexpr int own_factors(int l) const { return alike(l) ? 3 : cut[line[l].axis].segments; }  ///< segments in a block
    constexpr int all_factors(int l) const { return alike(l) ? 3 : segments(line[l].axis); }
    // Where every line has a matrix of its own: [line of a thread][inverse, upper, lower unless symmetric][rows / vector][thread][vector], unless in registers; then what the
    // join of a line's segments has, per line that this block joins (fused/segments.cuh).
    constexpr int factor_words(int l) const { return line[l].symmetric ? 2 : 3; }
    constexpr int held_apart(int l) const { return line[l].held ? 0 : factor_words(l) * together(line[l].axis) * padded_rows(line[l].axis) * threads; }
    constexpr int join_lines(int l) const { return crosses(line[l].axis) ? owned(line[l].axis) : lines_along(line[l].axis); }
    constexpr int join_matrix(int l) const { return line[l].ring ? 5 : 4; }
    constexpr int join_rows(int l) const { return joined(l) ? segments(line[l].axis) * join_lines(l) : 0; }
    constexpr int joins(int l) const { return factors(l) + held_apart(l); }
    // Across blocks, what comes back: [x[last] of own segments; of the ones before][segment][line]; and two letterboxes, of 8 bytes each.
    constexpr int joined_size(int l) const { return round_up(2 * cut[line[l].axis].segments * lines_along(line[l].axis), vector); }
    constexpr int joined_at(int l) const { return joins(l) + round_up((join_matrix(l) + 2) * join_rows(l), vector); }
    constexpr int joined_across(int l) const { return joined(l) && crosses(line[l].axis) ? joined_size(l) + vector : 0; }
    constexpr int factors(int l) const {
        int at = round_up(ends_shared() + shared_size(), vector);
        for (int k = 0; k < l; ++k) at += line[k].varies ? held_apart(k) + round_up((join_matrix(k) + 2) * join_rows(k), vector) + joined_across(k) : own_factors(k) * segment_size(line[k].axis) + join_size(line[k].axis);
        return at;
    }
    constexpr int table(int l) const {
        int at = 0;
        for (int k = 0; k < l; ++k) at += line[k].varies ? 0 : all_factors(k) * segment_size(line[k].axis) + join_size(line[k].axis);
        return at;
    }

    // What right-hand sides are cut at: arrays of the block's points, and of the next ones along axes where neighbours share values. Rows and planes lie as those of fields do.
    constexpr int axis_of_sweep(int s) const { return axis_of(sweep[s].lines > 0 ? sweep[s].first_line : -1); }
    constexpr int shared_along(int s, int array, int axis) const {
        for (int v = 0; v < sweep[s].kept; ++v)
            if ((array < 0 || sweep[s].value[v].array == array) && sweep[s].value[v].axis == axis) return 1;
        return 0;
    }
    constexpr int kept_stride(int s, int axis) const {
        const int pitch = (local(0) + shared_along(s, -1, 0)) | 1;
        return axis == 0 ? 1 : axis == 1 ? pitch : apart_by_a_bank(pitch * (local(1) + shared_along(s, -1, 1)));
    }
    constexpr int array_size(int s, int array) const { return kept_stride(s, slab()) * (local(slab()) + shared_along(s, array, slab())); }
    constexpr int arrays_before(int s, int array) const {
        int at = 0;
        for (int k = 0; k < array; ++k) at += array_size(s, k);
        return at;
    }
    constexpr int invariants(int s) const {
        int at = factors(lines);
        for (int k = 0; k < s; ++k) at += round_up(arrays_before(k, sweep[k].arrays), vector);
        return at;
    }
    /// Of a value, from where the arrays of the sweep have the point.
    constexpr int invariant(int s, int v) const { return arrays_before(s, sweep[s].value[v].array) + (sweep[s].value[v].axis < 0 ? 0 : kept_stride(s, sweep[s].value[v].axis)); }
    // Where matrices vary, a block sends its neighbours the rows beside them, once its lines across slabs are solved: then nobody looks any more at the rows of the step before. A letterbox of 8 bytes per sweep counts them.
    constexpr bool sends_rows(int s) const {
        const FieldPlan& target = field[sweep[s].target];
        bool crosses_varying = false;
        for (int l = sweep[s].first_line; l < sweep[s].first_line + sweep[s].lines; ++l) crosses_varying = crosses_varying || (line[l].varies && crosses(line[l].axis));
        return crosses_varying && abreast == 1 && !target.diagonal && target.ghosts[slab()] > 0;
    }
    constexpr int letterbox(int s) const { return round_up(invariants(sweeps), vector) + s * (vector / 2); }
    constexpr int elements() const {
        bool sends = false;
        for (int s = 0; s < sweeps; ++s) sends = sends || sends_rows(s);
        return sends ? letterbox(sweeps) : invariants(sweeps);
    }
};

}  // namespace trifold::cuda::resident
