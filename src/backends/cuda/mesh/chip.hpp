// SPDX-License-Identifier: BSD-3-Clause
// What plans of meshes know of a GPU and of its memory: without CUDA's headers, since their tests are built where there is no CUDA.
#pragma once

#include <cstddef>

namespace trifold::cuda {

/// What a plan asks of a GPU. Without one, what an H200 has.
struct Chip {
    int architecture = 90, multiprocessors = 132;
    std::size_t shared_per_block = 227 * 1024, shared_per_multiprocessor = 228 * 1024, l2 = std::size_t{50} << 20, memory = std::size_t{140} << 30;

    bool moves_alone = false;  ///< a benchmark asks for what moving takes (mesh/run.hpp)

    bool has_clusters() const noexcept { return architecture >= 90; }
};

/// Parts of a run's scratch begin at multiples of 256 bytes.
constexpr std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace trifold::cuda
