// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/fused/cut.hpp"

#include <algorithm>
#include <cmath>

#include "backends/cuda/mesh/fused/staging.hpp"

namespace trifold::cuda::fused {
namespace {

/// How often a bank of shared memory is met at once where segments of lines along x are read.
int conflicts(const Cut& cut, int n, int words) {
    int worst = 1;
    const int at_once = 32 / words;
    const Staging laid = staging(n, cut.rows, cut.segments, cut.columns, 4 * words);
    for (int begin = 0; begin < cut.threads; begin += at_once) {
        int met[32] = {};
        for (int t = begin; t < begin + at_once && t < cut.threads; ++t) worst = std::max(worst, ++met[(t % cut.columns * laid.pitch + t / cut.columns * laid.padding + (t / cut.columns + 1) * n / cut.segments - cut.rows + n) * words % 32]);
    }
    return worst;
}

}  // namespace

Cut cut_lines(const Chip& chip, std::size_t value_bytes, const LinesOfMesh& lines) {
    constexpr int most_threads = 512;
    constexpr std::size_t of_the_system = 1024;
    const int n = lines.rows, words = static_cast<int>(value_bytes / 4);
    const bool across = lines.axis == 0;
    Cut best;
    double best_score = 0;
    for (const int W : {32, 16, 8, 4}) {
        if (!across && W * value_bytes < 32) continue;
        for (int S = lines.ring ? 2 : 1; S <= std::min(n, 128); ++S) {
            Cut cut;
            cut.columns = W, cut.segments = S, cut.rows = (n + S - 1) / S, cut.threads = W * S;
            const int R = cut.rows;
            if ((R < 2 && n > 2) || cut.threads > most_threads || cut.threads % 32) continue;
            // Each quarter of a multiprocessor has registers of its own.
            const int registers = (5 * R * words + 48 + 7) / 8 * 8;
            if (registers > (words == 1 ? 128 : 168)) continue;
            cut.shared = (static_cast<std::size_t>(across ? W * staging(n, R, S, W, 4 * words).pitch : 0) + static_cast<std::size_t>((lines.ring ? 7 : 6) * S * W + W)) * value_bytes;
            if (cut.shared > chip.shared_per_block) continue;
            cut.blocks = std::min({4 * (512 / registers) / (cut.threads / 32), 2048 / cut.threads, static_cast<int>(chip.shared_per_multiprocessor / (cut.shared + of_the_system)), 16});
            if (cut.blocks < 1) continue;
            const double filled = static_cast<double>(n) / (S * R) * static_cast<double>(lines.lines) / static_cast<double>((lines.lines + W - 1) / W * W);
            const std::size_t piece = W * value_bytes;
            const double wide = across || piece >= 128 ? 1 : piece >= 64 ? 0.85 : 0.4;
            const double in_flight = std::min(1.0, static_cast<double>(cut.blocks * cut.threads * R) * static_cast<double>(value_bytes) / 49152);
            const double overlapped = cut.blocks >= 3 ? 1 : cut.blocks == 2 ? 0.95 : 0.75, joined = 1 / (1 + 0.012 * S);
            const double score = filled * wide * (0.4 + 0.6 * in_flight) * overlapped * joined * (across ? 1 / (1 + 0.06 * (conflicts(cut, n, words) - 1)) : 1);
            if (score > best_score) best = cut, best_score = score;
        }
    }
    return best;
}

Cut cut_kept(const Chip& chip, std::size_t value_bytes, const LinesOfMesh& lines, std::int64_t meshes) {
    constexpr int most_rows = 32;
    constexpr std::size_t of_the_system = 1024;
    // How segments are cut decides roundings: by the rows alone, and so that whole warps have few lines too where these are long.
    const int n = lines.rows, words = static_cast<int>(value_bytes / 4), fewest = std::max(lines.ring ? 2 : 1, (n + most_rows - 1) / most_rows), whole = fewest <= 2 ? 1 : fewest <= 8 ? 2 : fewest <= 16 ? 4 : 8;
    const int S = std::min((fewest + whole - 1) / whole * whole, n), R = (n + S - 1) / S;
    const bool across = lines.axis == 0;
    Cut best;
    double best_score = 0;
    for (const int W : {32, 16, 8, 4}) {
        Cut cut;
        cut.columns = W, cut.segments = S, cut.rows = R, cut.threads = W * S;
        if (cut.threads > 1024 || cut.threads % 32) continue;
        const std::size_t values = static_cast<std::size_t>(across ? W * staging(n, R, S, W, 4 * words).pitch : 0) + static_cast<std::size_t>((lines.ring ? 7 : 6) * S * W + W + 4);
        const std::size_t shared = (values + static_cast<std::size_t>(2 * R * cut.threads + 2 * W)) * value_bytes;
        cut.shared = shared + static_cast<std::size_t>(R * cut.threads) * value_bytes;
        if (cut.shared > chip.shared_per_block) continue;
        const int registers = (R * words + 48 + 7) / 8 * 8;
        cut.blocks = std::min({65536 / (registers * cut.threads), 2048 / cut.threads, static_cast<int>(chip.shared_per_multiprocessor / (shared + of_the_system)), 16});
        if (cut.blocks < 1) continue;
        const auto tasks = static_cast<double>((lines.lines + W - 1) / W * meshes), at_once = static_cast<double>(cut.blocks * chip.multiprocessors);
        const double busy = std::min(1.0, tasks / static_cast<double>(chip.multiprocessors)), filled = static_cast<double>(lines.lines) / static_cast<double>((lines.lines + W - 1) / W * W);
        const double balance = tasks > at_once ? tasks / (std::ceil(tasks / at_once) * at_once) : 1;
        const std::size_t piece = W * value_bytes;
        const double wide = across || piece >= 128 ? 1 : piece >= 64 ? 0.85 : piece >= 32 ? 0.6 : 0.35;  // memory is read 32 bytes at a time
        const double overlapped = cut.blocks >= 3 ? 1 : cut.blocks == 2 ? 0.95 : 0.8;
        const double score = busy * balance * filled * wide * overlapped;
        if (score > best_score) best = cut, best_score = score;
    }
    return best;
}

}  // namespace trifold::cuda::fused
