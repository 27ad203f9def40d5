// SPDX-License-Identifier: BSD-3-Clause
// What teams that share one system (two_pass_spread.cuh) have in shared memory in front of their rows, and what they tell each other.
#pragma once

#include "backends/cuda/tridiagonal/device/two_pass_check.cuh"
#include "backends/cuda/tridiagonal/device/two_pass_spread.hpp"
#include "backends/cuda/tridiagonal/pivoted_lanes.cuh"

namespace trifold::cuda::two_pass {

/// A team's, in front of its rows.
template <class T, int Size = block_threads, int Turns = 1>
struct alignas(16) SpreadMemory {
    static constexpr int warps = Size / 32, group_lanes = Turns > 1 ? 16 : 1;
    static_assert(Turns == 1 || Spread::most_of_group <= group_lanes);
    Equations<double> across[warps];
    double between[warps][2];             ///< what the unknowns are where a warp is joined to those before it
    Joint<double> of_group[group_lanes];  ///< of the block's segments
    cuda::Ends<double> ends[2][Turns];    ///< of x and of its correction, of the team's segments
    Rows<T> system;                       ///< here, for registers would not do

    __device__ T* rows() { return reinterpret_cast<T*>(this + 1); }
    /// Words in so many bytes, and bytes of so many rows.
    static constexpr std::int64_t room(std::int64_t bytes) { return (bytes - static_cast<std::int64_t>(sizeof(SpreadMemory))) / static_cast<std::int64_t>(sizeof(T)); }
    static constexpr std::int64_t bytes(std::int64_t rows, std::int64_t words = 4) { return static_cast<std::int64_t>(sizeof(SpreadMemory)) + rows * words * static_cast<std::int64_t>(sizeof(T)); }
};

/// What a lane of a team of several segments keeps of each: how its chunk was joined, and its choices.
inline constexpr int kept_words = Joint<double>::words + 1;

/// What teams tell each other; then two equations of each segment, and of each group behind them, and what it has at its ends, for x and for its correction: words that are nothing until they are there.
/// Behind them what lanes keep.
template <class T>
struct SpreadNews {
    static constexpr bool corrects = sizeof(T) == 8;
    using Parts = Equations<double>;
    using Ends = cuda::Ends<double>;
    unsigned long long changed, largest;  ///< bits of the largest correction and the largest |x|
    int distrusted;
    Found found;

    /// By all teams, before they meet.
    template <class Team>
    __device__ __forceinline__ void clear(const Spread& spread) {
        if (Team::number() == 0 && Team::thread() == 0) changed = largest = 0, distrusted = 0, found = {};
        auto* const words = reinterpret_cast<unsigned*>(parts(spread, false));
        const std::int64_t count = 2ll * all(spread) * static_cast<int>((sizeof(Parts) + sizeof(Ends)) / sizeof(unsigned)), step = Team::count() * Team::size;
        for (std::int64_t k = Team::number() * Team::size + Team::thread(); k < count; k += step) words[k] = ~0u;
    }

    __device__ __forceinline__ static int all(const Spread& spread) { return spread.segments + spread.groups(); }

    __device__ __forceinline__ Parts* parts(const Spread& spread, bool correction) { return reinterpret_cast<Parts*>(this + 1) + (correction ? all(spread) : 0); }

    __device__ __forceinline__ Ends* ends(const Spread& spread, bool correction) { return reinterpret_cast<Ends*>(parts(spread, false) + 2 * all(spread)) + (correction ? all(spread) : 0); }

    /// Of a lane's chunk of segment s; size: lanes of a team.
    __device__ __forceinline__ double* kept(const Spread& spread, int s, int size, int lane) { return reinterpret_cast<double*>(ends(spread, false) + 2 * all(spread)) + static_cast<std::int64_t>(s) * size * kept_words + lane; }

    __device__ __forceinline__ bool are_good() const {
        constexpr double most_change = 0x1p-6;
        return !distrusted && (!corrects || number(changed) <= most_change * number(largest)) && are_small<T>(found);
    }

    /// Of segments and groups. in_turns: of them, those of teams of `size` lanes that have several.
    static constexpr std::size_t bytes(std::int64_t segments, std::int64_t in_turns = 0, int size = block_threads) {
        return sizeof(SpreadNews) + 2 * static_cast<std::size_t>(segments) * (sizeof(Parts) + sizeof(Ends)) + static_cast<std::size_t>(in_turns * size * kept_words) * sizeof(double);
    }
};

}  // namespace trifold::cuda::two_pass
