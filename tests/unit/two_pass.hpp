// SPDX-License-Identifier: BSD-3-Clause
// Two-pass solves of arrays of one's own, on every vector target that was generated and that this machine has.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/cpu/tridiagonal/cell.hpp"
#include "backends/cpu/tridiagonal/reduce.hpp"
#include "families/tridiagonal/two_pass.hpp"
#include "problems/tridiagonal/normalise.hpp"
#include "support/bands.hpp"
#include "support/lapack.hpp"
#include "support/measure.hpp"
#include "support/random_system.hpp"
#include "support/run.hpp"
#include "support/simd_targets.hpp"
#include "support/zoo.hpp"

namespace trifold::tests {

/// The cpu's table with scratch for chunks of any length.
inline tridiagonal::Ops any_chunks() {
    tridiagonal::Ops ops = cpu::cpu_ops();
    ops.workspace = [](const tridiagonal::System& system, tridiagonal::Algorithm algorithm, int threads) {
        if (algorithm == tridiagonal::Algorithm::two_pass) return cpu::two_pass_scratch(system, std::min<std::int64_t>(system.rows, 512), threads);
        return cpu::cpu_ops().workspace(system, algorithm, threads);
    };
    return ops;
}

struct Scratch64 {
    std::vector<std::byte> memory;
    void* data = nullptr;

    explicit Scratch64(std::size_t bytes) : memory(bytes + 64) {
        std::size_t room = memory.size();
        data = memory.data();
        std::align(64, bytes, data, room);
    }
};

/// An array whose first and last element touch pages that must not be read.
template <class T>
class Fenced {
public:
    Fenced(const std::vector<T>& values, bool at_start) {
        const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes = values.size() * sizeof(T);
        const std::size_t inside = (bytes + page - 1) / page * page;
        bytes_ = inside + 2 * page;
        char* const base = static_cast<char*>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(base + page, inside, PROT_READ | PROT_WRITE);
        base_ = base;
        data = reinterpret_cast<T*>(base + page + (at_start ? 0 : inside - bytes));
        std::copy(values.begin(), values.end(), data);
    }
    ~Fenced() { munmap(base_, bytes_); }
    Fenced(const Fenced&) = delete;

    T* data;

private:
    void* base_;
    std::size_t bytes_;
};

template <class T>
Solved<T> two_pass(const tridiagonal::Ops& ops, const Bands<T>& s, std::int64_t chunk_rows, int threads = 1, bool in_place = false) {
    Solved<T> result{{}, in_place ? s.rhs : std::vector<T>(s.rhs.size(), T{77})};
    tridiagonal::Problem problem = problem_of(s, result.x);
    if (in_place) problem.rhs = problem.x;
    const tridiagonal::System system = tridiagonal::normalise(problem);
    EXPECT_EQ(tridiagonal::two_pass_refuses(ops, system), nullptr);
    const Scratch64 scratch(tridiagonal::two_pass_workspace(ops, system, threads, chunk_rows));
    tridiagonal::Launch launch;
    launch.threads = threads;
    launch.scratch = scratch.data;
    launch.scratch_bytes = scratch.memory.size() - 64;
    result.outcome = tridiagonal::solve_two_pass(ops, system, launch, chunk_rows);
    return result;
}

}  // namespace trifold::tests
