// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <iterator>

#include "backends/cuda/runtime/launches.hpp"
#include "backends/cuda/runtime/reset.hpp"
#include "backends/cuda/tridiagonal/block/columns_job.hpp"
#include "backends/cuda/tridiagonal/block/columns_judge.hpp"
#include "backends/cuda/tridiagonal/block/tiles.hpp"

namespace trifold::cuda {
namespace {

template <class T>
bool aligned(std::int64_t elements) {
    return elements * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
}

// The copy engine takes this operand, columns one element apart, rows and what is around them further, or the same all along an outer level. Shifted: outer levels are so many rows each.
template <class T>
bool takes(const TileOperand<T>& operand, const unsigned (&outer_extent)[3], bool shifted) {
    const auto fits = [&](std::int64_t stride) { return stride > 0 && stride < (std::int64_t{1} << 35) && (shifted || aligned<T>(stride)); };
    if (operand.column_stride != 1 || !fits(operand.row_stride)) return false;
    if (!shifted && reinterpret_cast<std::uintptr_t>(operand.data) % 16) return false;
    for (int l = 0; l < 3; ++l)
        if (outer_extent[l] > 1 && !(operand.outer_stride[l] == 0 && (shifted || tensors_repeat())) && (!fits(operand.outer_stride[l]) || (shifted && operand.outer_stride[l] % operand.row_stride))) return false;
    return tensor_maps_exist();
}

// Rows of both begin at the same offsets from 16-byte boundaries.
template <class T>
bool alike(const TileOperand<T>& one, const TileOperand<T>& other, const unsigned (&outer_extent)[3]) {
    if ((reinterpret_cast<std::uintptr_t>(one.data) - reinterpret_cast<std::uintptr_t>(other.data)) % 16) return false;
    for (int l = 0; l < 3; ++l)
        if (outer_extent[l] > 1 && !aligned<T>(one.outer_stride[l] - other.outer_stride[l])) return false;
    return aligned<T>(one.row_stride - other.row_stride);
}

// The maps of one operand, and the bytes of a slice that they bring.
template <class T>
bool encode_operand(ColumnJob<T>& job, int k) {
    constexpr int E = row_offsets<T>;
    const TileOperand<T>& operand = job.operand[k];
    const bool open = job.cut.use != ColumnUse::rings;
    T* const data = operand.data + (k == 0 && open ? operand.row_stride : 0);
    const int missing = (k == 0 || k == 2) && open;  // rows
    const auto wide = static_cast<std::uint32_t>(job.cut.lane_columns * job.cut.share), rows = static_cast<std::uint32_t>(column_chunk * 32 / job.cut.lane_columns);
    if (!job.cut.shifted) {
        const std::int64_t strides[4] = {operand.row_stride, operand.outer_stride[2], operand.outer_stride[1], operand.outer_stride[0]};
        MapShape shape{data,
                       {static_cast<std::uint64_t>(job.columns), static_cast<std::uint64_t>(job.rows - missing), job.outer_extent[2], job.outer_extent[1], job.outer_extent[0]},
                       {},
                       {wide, rows, 1, 1, 1},
                       job.deep ? 5u : 3u,
                       sizeof(T) == 8};
        for (int d = 0; d < 4; ++d) shape.bytes[d] = d == 0 || shape.extents[d + 1] > 1 ? static_cast<std::uint64_t>(strides[d]) * sizeof(T) : 16;
        job.slice_bytes += wide * rows * sizeof(T);
        return encode(job.maps[k][0], shape);
    }
    std::int64_t all = job.rows - missing;
    for (int l = 0; l < 3; ++l) {
        job.outer_rows[k][l] = job.outer_extent[l] > 1 ? operand.outer_stride[l] / operand.row_stride : 0;
        all += (job.outer_extent[l] - 1) * job.outer_rows[k][l];
    }
    if (all >= std::int64_t{1} << 31) return false;
    job.slice_bytes += (wide + E) * rows * sizeof(T);
    for (int e = 0; e < E; ++e) {
        T* const first = data + e * operand.row_stride;
        const auto shift = reinterpret_cast<std::uintptr_t>(first) % 16 / sizeof(T);
        const MapShape shape{first - shift,
                             {static_cast<std::uint64_t>(job.columns) + shift, static_cast<std::uint64_t>((all - e + E - 1) / E)},
                             {static_cast<std::uint64_t>(operand.row_stride) * E * sizeof(T)},
                             {wide + E, rows / E},
                             2,
                             sizeof(T) == 8};
        if (!encode(job.maps[k][e], shape)) return false;
    }
    return true;
}

// For columns of at most so many rows. Measured on an H200: memory gives 93 to 95 % of its roof for pieces of 256 bytes of a row, 86 for 128, where
// rows lie far apart; but what the blocks of a cluster tell each other grows with the columns, and with the square of the blocks. Where rows are to be
// checked, two blocks on a multiprocessor load while the other one joins; they have 64 KiB of rows each, one alone 128. Two slices a lane (256 KiB) halve the
// blocks of a cluster: faster where there would be six to eight of them, slower where there would be fewer.
struct ColumnShape {
    int rows, lane_columns, share, resident;
    bool dominant = false;
    int pieces = 1;
};

template <class T>
constexpr ColumnShape checked_shapes[3] = {};
template <>
constexpr ColumnShape checked_shapes<double>[3] = {{256, 32, 1, 2}, {1024, 16, 1, 2}, {4096, 16, 1, 1}};
template <>
constexpr ColumnShape checked_shapes<float>[3] = {{256, 32, 2, 1}, {512, 32, 1, 2}, {4096, 32, 1, 1}};

template <class T>
constexpr ColumnShape column_shapes[5] = {};
template <>
constexpr ColumnShape column_shapes<double>[5] = {{128, 32, 1, 2}, {256, 32, 1, 2, true}, {640, 32, 1, 1, true}, {1024, 32, 1, 1, true, 2}, {4096, 16, 1, 1, true}};
template <>
constexpr ColumnShape column_shapes<float>[5] = {{128, 32, 2, 1}, {256, 32, 2, 1, true}, {640, 32, 2, 1, true}, {1024, 32, 2, 1, true, 2}, {4096, 32, 1, 1, true}};

// Where couplings are in a table, tiles take half the shared memory, so that two slices a lane fit, of two blocks too: these cover each other's joins; one block halves the blocks of a cluster (measured).
template <class T>
constexpr ColumnShape table_shapes[3] = {};
template <>
constexpr ColumnShape table_shapes<double>[3] = {{64, 32, 1, 2, true}, {512, 32, 1, 2, true, 2}, {4096, 32, 1, 1, true, 2}};
template <>
constexpr ColumnShape table_shapes<float>[3] = {{64, 32, 2, 2, true}, {512, 32, 2, 2, true, 2}, {4096, 32, 2, 1, true, 2}};

int power_of_two(int n) {
    int p = 1;
    while (p < n) p *= 2;
    return p;
}

template <class T>
int slice_elements(const ColumnCut& cut) {
    const auto of = [&]<int L, int Share>() {
        const auto with = [&]<ColumnBands Bands>() { return cut.shifted ? SliceLayout<T, column_chunk, L, Share, true, Bands>::all : SliceLayout<T, column_chunk, L, Share, false, Bands>::all; };
        if (cut.bands == ColumnBands::line) return with.template operator()<ColumnBands::line>();
        return cut.bands == ColumnBands::table ? with.template operator()<ColumnBands::table>() : with.template operator()<ColumnBands::own>();
    };
    return cut.lane_columns == 16 ? of.template operator()<16, 1>() : cut.share == 2 ? of.template operator()<32, 2>() : of.template operator()<32, 1>();
}

// Where things lie in shared memory; false where a tile does not fit.
template <class T>
bool place_columns(ColumnCut& cut) {
    constexpr int size = static_cast<int>(sizeof(T)), most_slots = 64;
    const int block_bytes = 228 * 1024 / cut.resident - 1024, slices = cut.pieces * cut.warps / cut.share, slice = slice_elements<T>(cut) * size;
    const bool in_table = cut.bands == ColumnBands::table, by_fours = cut.dominant && (in_table || cut.bands == ColumnBands::line), ring = cut.use == ColumnUse::rings;
    const int row = 6 * cut.columns * size, links = cut.joined() ? (cut.chunks + (cut.dominant ? cut.chunks / 4 : 0)) * row : 0, ends = cut.blocks > 1 || ring ? cut.blocks * row * (cut.dominant ? 2 : 1) : 0;
    const int answers = (cut.use == ColumnUse::segments ? 8 : cut.blocks > 1 || ring || by_fours ? 4 : 0) * cut.columns * size, table = in_table ? 2 * cut.chunks * cut.pieces * column_chunk * size : 0;
    const int votes = cut.dominant ? table : (cut.blocks * cut.warps * 4 + 7) / 8 * 8;
    const auto barriers = [](int slots) { return (slots + 2) * 8 + 16; };  // of slots, of what blocks and warps tell each other; the tiles of four turns
    int slots = std::min((block_bytes - links - ends - answers - votes - barriers(most_slots)) / slice, 2 * slices);
    // Warps that do not wait for each other have a ring each: one that is ahead must not meet a slot of the one before.
    // A slot that was filled once has the same rows ever after.
    if (!cut.joined() || cut.bands == ColumnBands::filled) slots = slots / slices * slices;
    cut.slots = slots;
    cut.links_at = slots * slice;
    cut.ends_at = cut.links_at + links;
    cut.answers_at = cut.ends_at + ends;
    cut.votes_at = cut.answers_at + answers;
    cut.barriers_at = cut.votes_at + votes;
    cut.shared_bytes = cut.barriers_at + barriers(slots);
    return slots >= slices / cut.pieces;
}

// Outer levels of extent 1 come first, so that where only one is longer, it is the last.
template <class T>
void sort_outer_levels(ColumnJob<T>& job, const TileJob<T>& from) {
    int next = 2;
    for (const bool longer : {true, false})
        for (int l = 2; l >= 0; --l) {
            if ((from.outer_extent[l] > 1) != longer) continue;
            job.outer_extent[next] = from.outer_extent[l], job.outer_weight[next] = from.outer_weight[l];
            for (int k = 0; k < 5; ++k) job.operand[k].outer_stride[next] = from.operand[k].outer_stride[l];
            --next;
        }
    job.one_run = job.outer_extent[2] == 1;
    job.deep = job.outer_extent[1] > 1;
}

/// Whether the copy engine takes all operands, and how.
template <class T>
bool takes_all(const TileJob<T>& job, ColumnCut& cut) {
    constexpr int fewest_rows = 6, fewest_columns = 12;
    cut = {};
    if (job.rows < fewest_rows || job.columns < fewest_columns || job.columns >= std::int64_t{1} << 31) return false;
    for (int k = 0; k < 4; ++k) cut.shifted = cut.shifted || (job.operand[k].data && !takes(job.operand[k], job.outer_extent, false));
    if (cut.shifted && !job.operand[3].data) return false;
    for (int k = 0; k < 4 && cut.shifted; ++k)
        if (job.operand[k].data && (!takes(job.operand[k], job.outer_extent, true) || !alike(job.operand[k], job.operand[3], job.outer_extent))) return false;
    return true;
}

template <class T>
TileJob<T> without(TileJob<T> job, unsigned operands) {
    for (int k = 0; k < 3; ++k)
        if (operands >> k & 1) job.operand[k].data = nullptr;
    return job;
}

/// A tile of `rows` rows, in that shape; false where there are too many of them.
template <class T>
bool cut_as(const ColumnShape& shape, const TileJob<T>& job, std::int64_t rows, ColumnCut& cut) {
    constexpr std::int64_t most_tiles = std::int64_t{1} << 30;
    cut.lane_columns = shape.lane_columns, cut.share = shape.share, cut.resident = shape.resident, cut.dominant = shape.dominant, cut.pieces = shape.pieces;
    const int per_warp = 32 / cut.lane_columns, R = column_chunk * cut.pieces, chunks = static_cast<int>((rows + R - 1) / R), most = column_threads<T> / 32 / cut.resident * per_warp / cut.share;
    const bool all = cut.use == ColumnUse::rings || (cut.dominant && (cut.bands == ColumnBands::table || cut.bands == ColumnBands::line));  // what is joined by fours
    cut.chunks = all ? most : std::min(std::max(power_of_two(chunks), per_warp), most);
    cut.blocks = (chunks + cut.chunks - 1) / cut.chunks;
    cut.across = most / cut.chunks * cut.share;
    cut.columns = cut.across * cut.lane_columns;
    cut.warps = cut.chunks * cut.columns / 32;
    const std::int64_t outer = std::int64_t{job.outer_extent[0]} * job.outer_extent[1] * job.outer_extent[2], high = (job.rows + rows - 1) / rows;
    return (job.columns + cut.columns - 1) / cut.columns * outer * high < most_tiles && place_columns<T>(cut);
}

/// All bands are the same in the columns of a run, or numbers.
template <class T>
bool have_lines(const TileJob<T>& job) {
    bool any = false, all = job.columns > 1;
    for (int k = 0; k < 3; ++k) {
        any = any || job.operand[k].data;
        all = all && (!job.operand[k].data || job.operand[k].column_stride == 0);
    }
    return any && all;
}

}  // namespace

template <class T>
bool cut_columns(const TileJob<T>& job, ColumnCut& cut, bool checked) {
    constexpr unsigned couplings = 5, diag = 2;
    constexpr int fewest_in_table = 33;  // fewer rows leave most lanes idle
    const unsigned same = same_in_all(job);
    if (!checked && job.rows >= fewest_in_table && (same & couplings) == couplings && !(same & diag) && takes_all(without(job, couplings), cut)) {
        cut.bands = ColumnBands::table;
        for (const ColumnShape& shape : table_shapes<T>)
            if (job.rows <= shape.rows) return cut_as(shape, job, job.rows, cut);
    }
    if (have_lines(job) && job.rows >= fewest_in_table && takes_all(without(job, 7), cut)) {
        cut.bands = ColumnBands::line;
        for (const ColumnShape& shape : checked ? checked_shapes<T> : table_shapes<T>)
            if (job.rows <= shape.rows) return cut_as(shape, job, job.rows, cut);
    }
    if (!takes_all(without(job, same), cut)) return false;
    for (int k = 0; k < 3; ++k)
        if (same >> k & 1 && job.operand[k].data) cut.bands = ColumnBands::filled, checked = true;
    const ColumnShape *shape = checked ? checked_shapes<T> : column_shapes<T>, *const end = checked ? std::end(checked_shapes<T>) : std::end(column_shapes<T>);
    while (shape->rows < job.rows || (cut.bands == ColumnBands::filled && shape->share > 1))
        if (++shape == end) return false;
    return cut_as(*shape, job, job.rows, cut);
}

template <class T>
bool cut_segments(const TileJob<T>& job, ColumnCut& cut) {
    constexpr ColumnShape shape = column_shapes<T>[3];  // a lane has two slices
    if (!takes_all(job, cut)) return false;
    cut.use = ColumnUse::segments;
    return cut_as(shape, job, 256, cut) && tile_rows(cut) == 256 && cut.blocks == 1;
}

template <class T>
bool cut_rings(const TileJob<T>& job, ColumnCut& cut) {
    constexpr int fewest = sizeof(T) == 8 ? 33 : 65;  // shorter ones leave most lanes idle: a thread a chunk is better then (measured)
    if (job.rows < fewest || !takes_all(job, cut)) return false;
    const ColumnShape *shape = column_shapes<T>, *const end = std::end(column_shapes<T>);
    while (!shape->dominant || shape->rows < job.rows)
        if (++shape == end) return false;
    cut.use = ColumnUse::rings;
    return cut_as(*shape, job, job.rows, cut);
}

template <class T>
bool cut_rhs(const TileJob<T>& job, ColumnCut& cut) {
    constexpr ColumnShape shape = column_shapes<T>[3];
    if (!takes_all(job, cut)) return false;
    cut.lane_columns = shape.lane_columns, cut.share = shape.share, cut.columns = shape.lane_columns * shape.share;
    return true;
}

template <class T>
bool cut_windows(const TileJob<T>& job, ColumnCut& cut) {
    constexpr ColumnShape shape = column_shapes<T>[3];
    if (job.rows <= shape.rows || !takes_all(job, cut)) return false;
    cut.use = ColumnUse::windows;
    return cut_as(shape, job, shape.rows, cut) && tile_rows(cut) == shape.rows;
}

template <class T>
bool column_job(const TileJob<T>& from, const ColumnCut& cut, ColumnJob<T>& job) {
    job.cut = cut;
    job.rows = from.rows, job.columns = from.columns;
    job.accept = from.accept, job.marks = from.marks, job.handed_over = from.handed_over, job.tickets = from.tickets, job.opening = from.opening, job.column_weight = from.column_weight;
    std::copy(from.operand, from.operand + 5, job.operand);
    sort_outer_levels(job, from);
    const TileOperand<T>& x = job.operand[4];
    job.x_by_twos = x.column_stride == 1 && x.row_stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(x.data) % (2 * sizeof(T)) == 0;
    for (int l = 0; l < 3; ++l) job.x_by_twos = job.x_by_twos && (job.outer_extent[l] == 1 || x.outer_stride[l] % 2 == 0);
    job.tiles_per_run = static_cast<unsigned>((job.columns + cut.columns - 1) / cut.columns);
    job.tiles = job.tiles_per_run * job.outer_extent[0] * job.outer_extent[1] * job.outer_extent[2];
    if (cut.use == ColumnUse::segments || cut.use == ColumnUse::windows) {
        static_assert(ColumnRows::chunk == 2 * column_chunk);
        job.segments.rows = cut.use == ColumnUse::windows ? ColumnRows::windows(job.rows, tile_rows(cut), window_halo<T>) : ColumnRows::segments(job.rows, tile_rows(cut));
        job.tiles *= job.segments.rows.count;
    }
    if (job.one_run) job.order = tile_order(x.row_stride * static_cast<std::int64_t>(sizeof(T)), cut.columns * static_cast<int>(sizeof(T)), job.tiles_per_run);
    const bool in_table = cut.bands == ColumnBands::table, in_line = cut.bands == ColumnBands::line;
    for (int k = 0; k < 4; ++k) {
        if (k < 3 && cut.bands == ColumnBands::filled && same_in_all(from) >> k & 1) job.fill[k] = job.operand[k], job.operand[k].data = nullptr;
        if (job.operand[k].data && !(in_table && k % 2 == 0) && !(in_line && k < 3) && !encode_operand(job, k)) return false;
    }
    return true;
}

template <class T>
void solve_cut_columns(const TileJob<T>& from, const ColumnCut& cut, unsigned long long* undecided, cudaStream_t stream, unsigned long long most) {
    const auto systems = static_cast<unsigned long long>(from.columns) * from.outer_extent[0] * from.outer_extent[1] * from.outer_extent[2];
    const bool both = cut.dominant && undecided;
    // A look at some columns takes 3 us, and saves a pass where it finds that most are for another kernel. Not where bands are shared: fewer words are moved, and they are dominant mostly.
    constexpr unsigned long long many_in_all = 1ull << 22;
    const bool judged = both && cut.bands != ColumnBands::table && cut.bands != ColumnBands::line && from.opening.outcome && from.rows >= judged_rows * judged_places && static_cast<unsigned long long>(from.rows) * systems >= many_in_all;
    const auto leave_all = [&] {  // to the pivoted path
        if (const Opening& o = from.opening; o.outcome) reset_outcome(o.outcome, o.rows, o.systems, o.branch, stream);
        enqueue_fill(from.marks, 1, systems, stream);
        enqueue_fill(from.handed_over, 1, 1, stream);
    };
    const auto launch = [&](ColumnJob<T>& job) {
        if (from.adds) launch_adding_columns(job, stream);
        else if (job.cut.bands == ColumnBands::line) launch_columns_of_lines(job, stream);
        else if (job.cut.bands == ColumnBands::table) launch_shared_couplings(job, stream);
        else launch_columns(job, stream);
    };
    if (both) {  // the other one is prepared while this one is on its way
        ColumnJob<T> first;
        if (!column_job(from, cut, first)) return leave_all();
        first.handed_over = undecided;
        if (judged) {
            unsigned* const beside = &from.opening.outcome->undecayed;  // which only long systems use otherwise
            judge_columns(from, static_cast<std::int64_t>(systems), beside, undecided, stream);
            first.beside = beside;
            first.opening = {};
            most = systems;
        }
        launch(first);
    }
    ColumnJob<T> checked;
    ColumnCut second = cut;
    const bool fits = !cut.dominant || cut_columns(from, second, true);
    if (!fits || !column_job(from, second, checked)) {
        if (!both) return leave_all();
        enqueue_fill(from.handed_over, 1, 1, stream);  // what is marked is left to the pivoted path
        return;
    }
    // A pass over all tiles takes as long as pivots for a tenth of them (measured).
    if (both) checked.undecided = undecided, checked.tickets = nullptr, checked.opening = {}, checked.few = systems / 12, checked.most = most;
    launch(checked);
}

template bool cut_columns(const TileJob<float>&, ColumnCut&, bool);
template bool cut_columns(const TileJob<double>&, ColumnCut&, bool);
template bool cut_segments(const TileJob<float>&, ColumnCut&);
template bool cut_segments(const TileJob<double>&, ColumnCut&);
template bool cut_rings(const TileJob<float>&, ColumnCut&);
template bool cut_rings(const TileJob<double>&, ColumnCut&);
template bool cut_rhs(const TileJob<float>&, ColumnCut&);
template bool cut_rhs(const TileJob<double>&, ColumnCut&);
template bool cut_windows(const TileJob<float>&, ColumnCut&);
template bool cut_windows(const TileJob<double>&, ColumnCut&);
template bool column_job(const TileJob<float>&, const ColumnCut&, ColumnJob<float>&);
template bool column_job(const TileJob<double>&, const ColumnCut&, ColumnJob<double>&);
template void solve_cut_columns(const TileJob<float>&, const ColumnCut&, unsigned long long*, cudaStream_t, unsigned long long);
template void solve_cut_columns(const TileJob<double>&, const ColumnCut&, unsigned long long*, cudaStream_t, unsigned long long);

}  // namespace trifold::cuda
