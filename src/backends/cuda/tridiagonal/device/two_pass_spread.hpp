// SPDX-License-Identifier: BSD-3-Clause
// How the rows of one system are dealt to the teams of a launch that share it (two_pass_spread.cuh).
#pragma once

#include <algorithm>
#include <cstdint>

namespace trifold::cuda::two_pass {

struct Spread {
    static constexpr int most_groups = 128;     ///< blocks of a launch: one for each lane of the team that joins what is left of them
    static constexpr int most_turns = 3;        ///< segments of a team: with more, walking down long chunks is faster
    static constexpr int most_of_group = 9;     ///< segments of a block's teams
    static constexpr int most_segments = most_groups * most_of_group;
    static constexpr int most_rows = 33 * 128;  ///< of a segment: of 34 and fewer a lane remembers its choices
    static constexpr int enough = 1024;         ///< rows of a segment: with fewer there are more joints, which take as long
    static constexpr int together = 4;          ///< every segment begins at a multiple of so many rows, and with it at one of 16 bytes

    int segments = 0, rows = 0;     ///< none: the system is not shared so; of every segment but the last ones
    int teams = 1, of_group = 1;    ///< of a block, that take part, the first ones; segments of a block, side by side
    int words = 0;                  ///< a row has in shared memory: its own four; fifth, x; else four of U too. A team of several segments has four
    bool held = false;              ///< a team has room for the rows of all of its segments at once

    /// Blocks that share a system: so many teams of each, which have room for so many words each; and for how many where only the first of each takes part.
    struct Blocks {
        std::int64_t count, teams, room, room_alone;
        int most_turns;
        bool corrects;
    };

    Spread() = default;

    /// Segments of `n` rows, on any device.
    static constexpr std::int64_t most_of(std::int64_t n) { return std::clamp<std::int64_t>(n / 64, 1, most_segments); }
    /// Those of teams that have several.
    static constexpr std::int64_t most_in_turns(std::int64_t n) { return std::min<std::int64_t>(n / enough + 1, most_segments); }

    constexpr int turns() const { return segments > 0 ? (of_group + teams - 1) / teams : 0; }
    /// Blocks whose teams' segments are joined before those of others; 0: there is one each.
    constexpr int groups() const { return of_group > 1 ? (segments + of_group - 1) / of_group : 0; }

    Spread(std::int64_t n, const Blocks& blocks) {
        // Teams of a block wait for each other where they join. So one takes all where its rows are few enough for that.
        const Spread alone = dealt(n, blocks, 1, blocks.room_alone);
        *this = alone.turns() == 1 ? alone : dealt(n, blocks, blocks.teams, blocks.room);
        if (turns() > 1 && segments > most_in_turns(n)) *this = Spread();
    }

    /// By so many teams of each block, of which each has room for so many words.
    static Spread dealt(std::int64_t n, const Blocks& blocks, std::int64_t teams, std::int64_t room) {
        Spread to;
        const std::int64_t most = std::min<std::int64_t>(room / 4, most_rows) / together * together, groups = std::min<std::int64_t>(blocks.count, most_groups), of_block = (n + most * groups - 1) / (most * groups);
        const std::int64_t count = std::min(of_block * groups, most_of(n));
        const std::int64_t each = ((n + count - 1) / count + together - 1) / together * together;
        if (each > most || of_block > std::min<std::int64_t>(most_of_group, teams * blocks.most_turns)) return to;
        to.segments = static_cast<int>((n + each - 1) / each), to.rows = static_cast<int>(each);
        to.of_group = static_cast<int>(of_block), to.teams = static_cast<int>(std::min(teams, of_block));
        to.deal_memory(room, blocks.corrects);
        return to;
    }

    /// What a team has room for.
    constexpr void deal_memory(std::int64_t room, bool corrects) {
        const int all = corrects ? 9 : 8;
        const std::int64_t each = rows;
        words = turns() > 1 || each * 5 > room ? 4 : each * all > room ? 5 : all;
        held = turns() * each * words <= room;
    }
};

}  // namespace trifold::cuda::two_pass
