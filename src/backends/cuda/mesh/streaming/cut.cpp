// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/cut.hpp"

#include <algorithm>
#include <cmath>

namespace trifold::cuda::streaming {
namespace {

constexpr int most_threads = 1024, most_rows = 32, most_segments_ahead = 32;
constexpr std::size_t of_the_system = 1024;  // shared memory that every block costs besides its own

int up(int n, int to) { return (n + to - 1) / to * to; }

// Registers that a thread needs besides its rows, as compiled.
constexpr int other_registers = 40;

int blocks_on(const Chip& chip, int threads, int registers, std::size_t shared) {
    const int by_registers = 65536 / (threads * up(registers, 8)), by_threads = 2048 / threads;
    const auto by_shared = static_cast<int>(chip.shared_per_multiprocessor / (shared + of_the_system));
    return std::min({by_registers, by_threads, by_shared, 32});
}

// Registers of a thread where so many warps share a multiprocessor: each of its four parts has a quarter of them, and so many warps.
int registers_beside(int warps) { return std::min(255, 16384 / (32 * ((warps + 3) / 4)) / 8 * 8); }

// What a lane wants whose K rows of R points are eliminated along two axes, by what nvcc 13 spilled where it had fewer. A few that it lacks cost doubles a third of their speed.
int registers_ahead(std::size_t value_bytes, int points) { return static_cast<int>(value_bytes == 4 ? 48 + 3.35 * points : 74 + 5.8 * points); }

// Lanes of a warp, some of them in other rows: how often a bank is met at once.
int conflicts(int lanes, int segments, int segment_rows, int row_pitch, int words) {
    const int at_once = words == 2 ? 16 : 32;
    int worst = 0;
    for (int first = 0; first < 32; first += at_once) {
        int met[32] = {};
        for (int lane = first; lane < first + at_once; ++lane)
            if (lane % lanes < segments)
                for (int w = 0; w < words; ++w) ++met[((lane / lanes * row_pitch + lane % lanes * segment_rows) * words + w) % 32];
        worst = std::max(worst, *std::max_element(met, met + 32));
    }
    return worst;
}

}  // namespace

namespace {

/// As compiled: what is around a lane's rows waits in registers as well where its vectors change places, or are doubles.
int star_registers(const RowsCut& cut, int words) { return cut.star && (words == 2 || cut.segment_rows % 8 == 0) ? cut.rows * cut.segment_rows * words * 3 / 2 : 0; }

/// Planes of a task: blocks end at about the same time, and few planes are read twice. Returns planes that a block sees.
double choose_chunk(RowsCut& cut, int n, int multiple, std::int64_t slabs, std::int64_t at_once, int reach) {
    double least = 0;
    for (int chunk = n, parts = 1; chunk >= multiple; ++parts) {
        const std::int64_t tasks = slabs * ((n + chunk - 1) / chunk);
        const double planes = static_cast<double>((tasks + at_once - 1) / at_once) * (chunk + 1.5 * reach);
        if (least == 0 || planes < least) least = planes, cut.chunk = chunk;
        if (chunk == multiple) break;
        chunk = up((n + parts) / (parts + 1), multiple);
    }
    return least;
}

}  // namespace

std::size_t rows_shared(const RowsCut& cut, int V, const Reach& reach) {
    const int place = reach.fields * (up(2 * reach.x, V) + (cut.slab() + 2 * reach.y) * cut.pitch);
    return static_cast<std::size_t>(cut.depth * place + (cut.apart ? cut.slab() * cut.pitch : 0) + cut.factors(V)) * 16 / static_cast<std::size_t>(V) + static_cast<std::size_t>(2 * (cut.depth + cut.warps)) * 8;
}

int choose_pitch(RowsCut& cut, std::size_t value_bytes, int nx, int reach_x) {
    const int V = static_cast<int>(16 / value_bytes), segments = (nx + cut.segment_rows - 1) / cut.segment_rows, narrowest = up(nx, V) + up(2 * reach_x, V);
    if (cut.star) return cut.pitch = narrowest, 1;
    int met = 1 << 20;
    for (int pitch = narrowest; pitch <= narrowest + 32; pitch += V)
        if (const int found = conflicts(cut.lanes, segments, cut.segment_rows, cut.rows * pitch, static_cast<int>(value_bytes / 4)); found < met) met = found, cut.pitch = pitch;
    return met;
}

RowsCut cut_rows(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz, std::int64_t meshes, const Reach& reach_of, const AlongX& along_x, int ahead, const RowsCut* shape, bool bulk, bool grouped) {
    // Two rows a lane were best, or close to it, wherever it was tried on an H200. (One moves more words of shared memory, more leave too few warps; so do two in doubles where it eliminates ahead.)
    constexpr int most_segment = 33, least_chunk = 24;
    const int rows_of_lane = ahead && value_bytes == 8 ? 1 : 2;
    const int n_along = ahead ? ny : nz, n_across = ahead ? nz : ny;
    const Reach reach{reach_of.fields, reach_of.x, ahead ? reach_of.z : reach_of.y, ahead ? reach_of.y : reach_of.z};
    const int V = static_cast<int>(16 / value_bytes), words = static_cast<int>(value_bytes / 4);
    // As many meshes as fill the chip.
    const auto many = ahead ? static_cast<std::int64_t>(std::exp2(std::max(0.0, std::floor(std::log2(0x1p26 / (static_cast<double>(nx) * ny * nz)))))) : meshes;
    RowsCut best;
    double least = 0;
    // The best block for rows cut so; `batch`: as many meshes as there are, else many, or, where nothing is eliminated ahead, as if there were no end to them.
    const auto try_blocks = [&](RowsCut cut, bool batch) {
        const int lanes = cut.lanes, R = cut.segment_rows, K = cut.rows, S = (nx + R - 1) / R, registers = ahead ? registers_ahead(value_bytes, K * R) + (batch && grouped && value_bytes == 8 ? 4 : 0) : up(star_registers(cut, words) + K * R * words + other_registers + 12 * words, 8);
        cut.alike = along_x.alike && S > 2, cut.ring = along_x.ring, cut.apart = false;  // single meshes of 256^3 and 384^3 take 5 to 10 % longer with it
        const int met = choose_pitch(cut, value_bytes, nx, reach.x);
        // A block of few warps has many rows beside its slab, and one warp in four or more that brings planes.
        for (cut.warps = 1; cut.warps <= 31 && registers <= 255; ++cut.warps)
            for (cut.depth = 2 * reach.z + 2; cut.depth <= 2 * reach.z + 3; ++cut.depth) {
                cut.threads = (cut.warps + (cut.bringer ? 1 : 0)) * 32;
                cut.shared = rows_shared(cut, V, reach);
                if (cut.shared > chip.shared_per_block) break;
                for (cut.blocks = ahead ? std::min(blocks_on(chip, cut.threads, 32, cut.shared), 4) : blocks_on(chip, cut.threads, registers, cut.shared); cut.blocks >= 1; cut.blocks = ahead || star_registers(cut, words) ? cut.blocks - 1 : 0) {
                    if ((ahead || star_registers(cut, words)) && registers_beside(cut.blocks * cut.threads / 32) < registers) continue;
                    const int H = cut.slab(), slabs = (n_across + H - 1) / H, coming = cut.blocks * (cut.depth - 2 * reach.z - 1);
                    const std::int64_t at_once = std::int64_t{chip.multiprocessors} * cut.blocks;
                    double planes;
                    if (batch && grouped) {
                        // Whoever has a place takes the next task: these are to be short, and how they are dealt does not matter.
                        cut.chunk = std::min((least_chunk + ahead - 1) / ahead * ahead, n_along);
                        planes = static_cast<double>(slabs * meshes) / static_cast<double>(at_once) * n_along / cut.chunk * (cut.chunk + 1.5 * reach.z);
                    } else {
                        planes = choose_chunk(cut, n_along, ahead ? ahead : 1, slabs * (batch ? meshes : many), at_once, reach.z);
                    }
                    // Points that lanes pass, for every one that there is.
                    const double turns = batch || ahead ? planes * static_cast<double>(at_once) / (static_cast<double>(slabs) * n_along * static_cast<double>(batch ? meshes : many)) : 1;
                    const double passed = turns * slabs * H / n_across * lanes * R / nx;
                    const double words_moved = 4.0 + 2.0 / K + 2 * reach.z + 5.0 / K * std::max(lanes, 16) / 32 + 60.0 / R + (met - 1) * (3.0 + 2 * reach.z);
                    // Planes on their way, and warps to work on others meanwhile; rows that are brought twice.
                    const double waiting = (cut.warps < 3 ? 1.15 : 1) * (1 + 1.0 / coming + (ahead ? 5.0 : 6.0) / (cut.warps * cut.blocks)), beside = 1 + 2.5 * reach.y / H;
                    // Who leaves a place last and brings the next plane is late for its own; in floats, where rows are whole warps', no branch parts lanes.
                    const double leaving = cut.bringer ? 1 : 1.35, whole = ahead && value_bytes == 4 && lanes == 32 ? 0.85 : 1;
                    const double cost = passed * (words_moved + 8) * waiting * beside * leaving * whole * (batch && grouped ? 1 + 0.3 / cut.blocks : 1);
                    if (least == 0 || cost < least) least = cost, best = cut;
                }
            }
    };
    if (shape) best = *shape;
    for (const int lanes : {32, 16, 8, 4, 2, 1})
        for (int R = std::max((nx + lanes - 1) / lanes, 2); !shape && R <= std::min(most_segment, nx) && 2 * ((nx + R - 1) / R) > lanes; ++R) {
            if (ahead && lanes < 32 && (R < 7 || R > 17)) continue;  // shorter and longer ones were slow
            if (along_x.ring && R >= nx) continue;
            if (nx - (nx - 1) / R * R < reach.x) continue;  // only the last lane of a row looks beyond its end
            RowsCut cut;
            cut.lanes = lanes, cut.segment_rows = R;
            cut.rows = rows_of_lane;
            for (const bool bringer : {true, false})
                if (cut.bringer = bringer; bringer || (ahead && value_bytes == 8 && nx % V == 0)) try_blocks(cut, false);
        }
    // Roundings depend on lanes and segments, which must not depend on the batch.
    least = 0;
    if (!best.fits()) return best;
    RowsCut cut = best;
    for (const bool bringer : {true, false})
        if (cut.bringer = bringer; bringer || (ahead && value_bytes == 8 && bulk)) try_blocks(cut, true);
    return best;
}

int cut_segment(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz) {
    const double points = static_cast<double>(nx) * ny * nz, many = std::exp2(std::max(0.0, std::floor(std::log2(0x1p26 / points))));
    const int pieces = up(nx * static_cast<int>(value_bytes), 128) / 128;
    int best = 0;
    double best_score = 0;
    for (int H = 8; H <= most_rows && H <= ny; H += 4) {
        if (ny % H || ny / H > most_segments_ahead) continue;
        // As many points as fill the chip, and, where a mesh has many, one alone: columns of segments are dealt to multiprocessors as they are.
        double used = 1;
        for (const double meshes : {many, points >= 0x1p24 ? 1.0 : many}) {
            const double each = pieces * (ny / H) * meshes / chip.multiprocessors;
            used *= each / std::ceil(each);
        }
        const double words = ny > H ? 5 + 6.0 / H : 5, score = used / words;
        if (score > best_score) best = H, best_score = score;
    }
    return best;
}

std::size_t columns_factors(const ColumnsCut& cut, std::size_t value_bytes, bool by_reach, bool alternates) {
    const int S = cut.segments, V = static_cast<int>(16 / value_bytes);
    return static_cast<std::size_t>(up(S * ((by_reach ? 5 : 4) * cut.segment_rows + V) + (alternates ? 6 : cut.ring ? 8 : 4) * S, V));
}

std::size_t columns_shared(const ColumnsCut& cut, std::size_t value_bytes, bool behind, bool by_reach, bool alternates) {
    const int R = cut.segment_rows, S = cut.segments;
    return (columns_factors(cut, value_bytes, by_reach, alternates) + static_cast<std::size_t>((cut.stages + cut.held_stages + (behind ? 1 : 0)) * cut.threads * R + (2 * S + 1) * cut.columns)) * value_bytes +
           (cut.held_stages ? static_cast<std::size_t>(cut.stages + cut.held_stages + 1) * 8 + 16 : 0);
}

ColumnsCut cut_columns(const Chip& chip, std::size_t value_bytes, int rows, int fetched, const ColumnsAsked& asked) {
    const int V = static_cast<int>(16 / value_bytes), words = static_cast<int>(value_bytes / 4);
    ColumnsCut best;
    double best_score = 0;
    for (const int W : {8, 16, 32, 64})
        // What has no rest takes what divides it.
        for (int R = asked.segment_rows ? asked.segment_rows : asked.ring ? 2 : V; R <= (asked.segment_rows ? asked.segment_rows : most_rows); R += asked.ring ? 1 : V)
            for (const bool prefetch : {true, false}) {
                if (prefetch && fetched == 0) continue;
                if (asked.nx && W * static_cast<int>(value_bytes) < 128) continue;
                ColumnsCut cut;
                cut.columns = W, cut.segment_rows = R, cut.segments = up((rows + R - 1) / R, std::max(32 / W, 1)), cut.prefetch = prefetch, cut.ring = asked.ring;
                if (asked.segments && cut.segments != asked.segments) continue;
                if (asked.ring && (cut.segments < 2 || cut.segments * R != rows)) continue;
                cut.threads = W * cut.segments;
                if (cut.threads > most_threads) continue;
                const int S = cut.segments;
                // Of a plane, in groups: what the update reads comes while another block solves, or early enough from the second-level cache.
                const bool flat = asked.grouped && !asked.nx && !prefetch;
                const auto shared = [&](int stages) {
                    ColumnsCut with = cut;
                    with.stages = stages;
                    return columns_shared(with, value_bytes, asked.nx > 0, asked.by_reach, asked.alternates);
                };
                const auto blocks = [&](int stages) {
                    if (shared(stages) > chip.shared_per_block) return 0;
                    return blocks_on(chip, cut.threads, R * words * ((prefetch ? 1 + fetched : 1) + (asked.nx ? 1 : 0)) + (flat ? 32 : other_registers) + (asked.nx ? 16 : 0) + (words == 2 && ((prefetch && !asked.grouped) || asked.alternates) ? 24 : 0), shared(stages));
                };
                cut.blocks = blocks(1);
                if (cut.blocks < 1) continue;
                if (blocks(2) == cut.blocks) cut.stages = 2;
                const int pieces = asked.nx ? (asked.nx + W - 1) / W : 0;
                const double each = static_cast<double>(pieces) * static_cast<double>(asked.tasks_per_piece) / chip.multiprocessors;
                // A block that is alone on its multiprocessor, and has one way to go, has a set more on its way.
                const bool alone = asked.tasks_per_piece && !prefetch && std::ceil(each) == 1 && blocks(3) >= 1;
                if (alone) cut.blocks = 1, cut.stages = 3;
                cut.shared = shared(cut.stages);
                const double used = static_cast<double>(rows) / (S * R), wide = W * static_cast<int>(value_bytes) >= 256 ? 1 : W * static_cast<int>(value_bytes) >= 128 ? (!asked.grouped || !asked.nx ? 0.92 : words == 1 ? 1 : 0.88) : W * static_cast<int>(value_bytes) >= 64 ? 0.75 : 0.5;
                double dealt = 1, blocks_there = cut.blocks;
                if (asked.nx) {
                    dealt = static_cast<double>(asked.nx) / (pieces * W) * (asked.tasks_per_piece ? each / std::ceil(each) : 1);
                    if (asked.tasks_per_piece) blocks_there = std::min(blocks_there, std::ceil(each));
                }
                const double in_flight = std::min(1.0, blocks_there * cut.threads * R * static_cast<double>(value_bytes) / 65536);
                const double score = dealt * used * wide * (0.5 + 0.5 * in_flight) * (alone ? 1.02 : flat ? 1.1 : prefetch || fetched == 0 ? 1 : asked.grouped ? 0.85 : 0.9) * (blocks_there > 1 ? 1 : 0.96) * (S > 32 ? 0.9 : 1) * (R % V == 0 ? 1 : R % 2 == 0 ? 0.97 : 0.93);
                if (score > best_score) best = cut, best_score = score;
            }
    return best;
}

}  // namespace trifold::cuda::streaming
