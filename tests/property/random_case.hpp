// SPDX-License-Identifier: BSD-3-Clause
// One call of the library with all that can be chosen about it, drawn from one number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "property/random_entries.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {

enum class Way { solve, async, factor, refactor };

/// What must be refused, and nothing be written.
enum class Misuse { none, x_meets_rhs, x_meets_matrix, x_on_itself, read_only, no_memory, other_type, odd_address, other_rows, other_batch, tolerance };
inline constexpr int misuses = static_cast<int>(Misuse::tolerance) + 1;

struct Case {
    std::uint64_t seed = 0;
    DType dtype = DType::f64;
    Recipe recipe;
    DrawnEntries entries;
    Way way = Way::solve;
    Misuse misuse = Misuse::none;
    bool in_device_memory = false;     ///< where the device has its own
    tridiagonal::Algorithm algorithm = tridiagonal::Algorithm::automatic;
    double tolerance = 0;
    bool check_finite = false, status = true, report = false, own_workspace = false, other_threads = false;
    bool twice = false;                ///< in device memory: the same arrays, brought there once more; of a Factor: enqueued
    int simd = 0;                      ///< instruction sets below the best, for the cpu's kernels

    std::string text() const;
};

/// While it lives, the cpu's kernels use an instruction set that is so many below the best.
class SimdBelow {
public:
    explicit SimdBelow(int steps);
    ~SimdBelow();
    SimdBelow(const SimdBelow&) = delete;
    SimdBelow& operator=(const SimdBelow&) = delete;
};

/// `most`: elements of x, about.
Case draw(std::uint64_t seed, std::int64_t most = 60000);

/// Empty where all went as promised.
std::string attempt(const std::string& device, const Case& c);

/// A smaller or simpler case that fails as well, tried for some seconds.
Case shrunk(const std::string& device, Case c, double seconds);

}  // namespace trifold::tests
