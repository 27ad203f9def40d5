// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/cut.hpp"

#include <algorithm>

namespace trifold::cuda::streaming {
namespace {

constexpr int most_threads = 1024, most_rows = 32;
constexpr std::size_t of_the_system = 1024;  // shared memory that every block costs besides its own

int up(int n, int to) { return (n + to - 1) / to * to; }

// Registers that a thread needs besides its rows, as compiled.
constexpr int other_registers = 40;

int blocks_on(const Chip& chip, int threads, int registers, std::size_t shared) {
    const int by_registers = 65536 / (threads * up(registers, 8)), by_threads = 2048 / threads;
    const auto by_shared = static_cast<int>(chip.shared_per_multiprocessor / (shared + of_the_system));
    return std::min({by_registers, by_threads, by_shared, 32});
}

// Lanes across lines, some of them in the next segment: how often a bank is met at once, worst of a warp.
int conflicts(int lines, int segment_rows, int pitch, int words) {
    const int lanes = words == 2 ? 16 : 32;
    int worst = 0;
    for (int first = 0; first < 32; first += lanes) {
        int met[32] = {};
        for (int lane = first; lane < first + lanes; ++lane)
            for (int w = 0; w < words; ++w) ++met[((lane % lines * pitch + lane / lines * segment_rows) * words + w) % 32];
        worst = std::max(worst, *std::max_element(met, met + 32));
    }
    return worst;
}

int pitch_for(int lines, int segment_rows, int segments, int words) {
    int best = 0, least = 1 << 20;
    for (int pitch = segment_rows * segments; pitch < segment_rows * segments + 33; ++pitch)
        if (const int found = conflicts(lines, segment_rows, pitch, words); found < least) best = pitch, least = found;
    return best;
}

}  // namespace

RowsCut cut_rows(const Chip& chip, std::size_t value_bytes, int nx, int ny, int nz, std::int64_t meshes, const Reach& reach) {
    const int V = static_cast<int>(16 / value_bytes), words = static_cast<int>(value_bytes / 4);
    RowsCut best;
    // Sixteen rows a thread and lines of a slab, as far as they fit: measured best, or close to it, on an H200. (Shorter segments wait longer for the thread that
    // joins them; longer ones leave too few threads.)
    for (const int H : {16, 8, 4, 32})
        for (const int R : {16, 20, 24, 28, 32, 12, 8}) {
            RowsCut cut;
            cut.rows = H, cut.segment_rows = R, cut.segments = (nx + R - 1) / R;
            const int S = cut.segments;
            cut.threads = up(H * S, 32);
            if (best.fits() || cut.threads > most_threads) continue;
            cut.pitch = pitch_for(std::min(H, 32), R, S, words);
            const std::int64_t ring = std::int64_t{reach.fields} * (2 * reach.z + 2) * (H + 2 * reach.y) * up(nx, 4);
            const std::int64_t values = ring + S * (4 * R + V) + 4 * S + up(H * cut.pitch, 4) + up(S * H, 4) + (S + 1) * H + 8;
            cut.shared = static_cast<std::size_t>(values) * value_bytes;
            if (cut.shared > chip.shared_per_block) continue;
            cut.blocks = blocks_on(chip, cut.threads, std::max(R * words + other_registers, 64), cut.shared);
            if (cut.blocks >= 1) best = cut;
        }
    // Tasks go up through so many planes that blocks end at about the same time and few planes are read twice.
    std::int64_t least = -1;
    const std::int64_t at_once = std::int64_t{chip.multiprocessors} * std::max(best.blocks, 1), slabs = best.rows ? (ny + best.rows - 1) / best.rows * meshes : 0;
    for (int chunk = 1; best.rows && chunk <= nz; ++chunk) {
        const std::int64_t tasks = slabs * ((nz + chunk - 1) / chunk), cost = (tasks + at_once - 1) / at_once * (chunk + 2 * reach.z);
        if (least < 0 || cost <= least) best.chunk = chunk, least = cost;
    }
    return best;
}

ColumnsCut cut_columns(const Chip& chip, std::size_t value_bytes, int rows, int fetched) {
    const int V = static_cast<int>(16 / value_bytes), words = static_cast<int>(value_bytes / 4);
    ColumnsCut best;
    double best_score = 0;
    for (const int W : {16, 32, 64})
        for (int R = V; R <= most_rows; R += V)
            for (const bool prefetch : {true, false}) {
                if (prefetch && fetched == 0) continue;
                ColumnsCut cut;
                cut.columns = W, cut.segment_rows = R, cut.segments = W < 32 ? up((rows + R - 1) / R, 2) : (rows + R - 1) / R, cut.prefetch = prefetch;
                cut.threads = W * cut.segments;
                if (cut.threads > most_threads) continue;
                const int S = cut.segments;
                const auto shared = [&](int stages) { return static_cast<std::size_t>(stages * cut.threads * R + S * (4 * R + V) + 4 * S + (2 * S + 1) * W) * value_bytes; };
                const auto blocks = [&](int stages) {
                    if (shared(stages) > chip.shared_per_block) return 0;
                    return blocks_on(chip, cut.threads, R * words * (prefetch ? 1 + fetched : 1) + other_registers, shared(stages));
                };
                cut.blocks = blocks(1);
                if (cut.blocks < 1) continue;
                if (blocks(2) == cut.blocks) cut.stages = 2;
                cut.shared = shared(cut.stages);
                const double used = static_cast<double>(rows) / (S * R), wide = W * static_cast<int>(value_bytes) >= 256 ? 1 : W * static_cast<int>(value_bytes) >= 128 ? 0.92 : 0.75;
                const double in_flight = std::min(1.0, cut.blocks * cut.threads * R * static_cast<double>(value_bytes) / 65536);
                const double score = used * wide * (0.5 + 0.5 * in_flight) * (prefetch || fetched == 0 ? 1 : 0.9) * (cut.blocks > 1 ? 1 : 0.96) * (S > 32 ? 0.9 : 1);
                if (score > best_score) best = cut, best_score = score;
            }
    return best;
}

}  // namespace trifold::cuda::streaming
