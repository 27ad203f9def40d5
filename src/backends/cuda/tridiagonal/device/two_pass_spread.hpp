// SPDX-License-Identifier: BSD-3-Clause
// How the rows of one system are dealt to the teams of a launch that share it (two_pass_spread.cuh).
#pragma once

#include <algorithm>
#include <cstdint>

namespace trifold::cuda::two_pass {

struct Spread {
    static constexpr int most_segments = 512;   ///< four for each lane of the team that joins them
    static constexpr int most_turns = 8;        ///< segments of a team
    static constexpr int most_rows = 33 * 128;  ///< of a segment: of 34 and fewer a lane remembers its choices
    static constexpr int enough = 1024;         ///< rows of a segment: with fewer there are more joints, which take as long

    int segments = 0, rows = 0;  ///< none: the system is not shared so; of every segment but the last ones

    Spread() = default;

    /// Segments of `n` rows, on any device.
    static constexpr std::int64_t most_of(std::int64_t n) { return std::clamp<std::int64_t>(n / 64, 1, most_segments); }

    /// For blocks of so many teams that hold `room` rows each. Where one team of each block has room for all, the others stay idle: joints are issued as fast as a multiprocessor can.
    Spread(std::int64_t n, std::int64_t blocks, std::int64_t teams_each, std::int64_t room) {
        constexpr std::int64_t few = 128;
        const std::int64_t most = std::min<std::int64_t>(room, most_rows), teams = n <= most * blocks ? blocks : blocks * teams_each, turns = (n + most * teams - 1) / (most * teams);
        const std::int64_t count = std::min({teams * turns, teams > blocks ? teams * turns : std::max(few, n / enough), most_of(n)});
        const std::int64_t each = (n + count - 1) / count;
        if (turns > most_turns || each > most) return;
        segments = static_cast<int>((n + each - 1) / each), rows = static_cast<int>(each);
    }
};

}  // namespace trifold::cuda::two_pass
