// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/coupled.hpp"

#include <limits>
#include <string>
#include <vector>

#include "backends/opencl/tridiagonal/chunks.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::System;

/// As in couple.cl.
constexpr word run = 16, level_words = 12;
constexpr std::size_t group = 64;

/// Levels of fewer chunks are one group's.
constexpr word few = 4096;

word runs_of(word count) { return (count + run - 1) / run; }

struct Levels {
    std::size_t from, bytes;
    std::vector<word> at, count;  ///< of the levels that are enqueued one by one, above the chunks themselves; the last one is where the top begins

    explicit Levels(const System& system) {
        const ChunkLayout layout(true, system, own_chunk_rows);
        from = (static_cast<std::size_t>(layout.numbers) * size_of(system.dtype) + 255) / 256 * 256;
        word words = 0;
        for (word n = runs_of(system.rows / own_chunk_rows);; n = runs_of(n)) {
            if (count.empty() || count.back() > few) at.push_back(words), count.push_back(n);
            words += level_words * n;
            if (n == 1) break;
        }
        bytes = from + static_cast<std::size_t>(words) * sizeof(double);
    }
};

template <class T>
class Chain {
public:
    explicit Chain(Call& call)
        : call_(call), levels_(call.system), layout_(true, call.system, own_chunk_rows), chunks_(call.system.rows / own_chunk_rows), cut_{chunks_, own_chunk_rows, call.system.rows},
          couple_(call.device.info.fp64 ? "-DCOUPLE=double -DCOUPLE_BYTES=8" : "-DCOUPLE=float -DCOUPLE_BYTES=4") {}

    /// Both passes; `correct`: for rhs - A x.
    void passes(cl_uint gate, bool correct) {
        // What is added by the correction lies apart from the ends that x was finished from.
        ChunkParts parts = layout_.parts;
        if (correct) std::swap(parts.add, parts.old);
        const auto corrects = static_cast<cl_int>(correct);
        if (correct) call_.enqueue({"chunks", "defect"}, static_cast<std::size_t>(chunks_), group, parts, gate);
        enqueue_tile_reduce(call_, cut_, parts, corrects, gate);
        level("merge", parts, 0, gate);
        for (std::size_t l = 1; l < levels_.at.size(); ++l) level("merge", parts, l, gate);
        const std::size_t most = std::min<std::size_t>(256, call_.device.info.group);
        call_.enqueue_as({"couple", "top"}, couple_, most, most, from(), cl_long{levels_.at.back()}, cl_long{levels_.count.back()}, gate);
        for (std::size_t l = levels_.at.size(); l-- > 0;) level("spread", parts, l, gate);
        enqueue_tile_finish(call_, cut_, layout_, parts, corrects, std::numeric_limits<T>::infinity(), gate);
        const double unit = unit_roundoff(call_.system.dtype);
        call_.enqueue_as({"couple", "verdict"}, couple_, std::min<std::size_t>(static_cast<std::size_t>(chunks_), 1 << 14), group, parts, cl_long{chunks_},
                         static_cast<T>(tridiagonal::two_pass_accept(call_.system.dtype)), static_cast<T>(4 * unit), gate, static_cast<cl_int>(!correct),
                         static_cast<cl_int>(correct ? Reason::refined : Reason::exact), call_.telling(Algorithm::two_pass), call_.outcome_buffer());
    }

private:
    cl_long from() const { return static_cast<cl_long>(levels_.from); }

    /// Between level l and what is below it.
    void level(const char* kernel, const ChunkParts& parts, std::size_t l, cl_uint gate) {
        const cl_long below = l > 0 ? levels_.at[l - 1] : -1, count = l > 0 ? levels_.count[l - 1] : chunks_;
        call_.enqueue_as({"couple", kernel}, couple_, static_cast<std::size_t>(levels_.count[l]), group, parts, from(), below, count, cl_long{levels_.at[l]}, gate);
    }

    Call& call_;
    const Levels levels_;
    const ChunkLayout layout_;
    const word chunks_;
    const Cut cut_;
    const std::string couple_;
};

template <class T>
void enqueue_chain(Call& call, bool after_windows) {
    Chain<T> chain(call);
    chain.passes(after_windows ? COUPLE_CHUNKS : 0, false);
    chain.passes(CORRECT, true);
}

}  // namespace

std::size_t coupled_scratch(const System& system) { return system.rows < least_cut_rows ? 0 : ScratchParts(system).work + Levels(system).bytes; }

void enqueue_coupled(Call& call, bool after_windows) {
    call.use_state();
    if (call.system.dtype == DType::f32) enqueue_chain<float>(call, after_windows);
    else enqueue_chain<double>(call, after_windows);
    call.told();
}

}  // namespace trifold::opencl
