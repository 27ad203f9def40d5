// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/coupling.hpp"

#include <algorithm>
#include <string>

#include "families/tridiagonal/two_pass.hpp"

namespace trifold::opencl {
namespace {

/// As in couple.cl: chunks that become one of the next level, of many by an item each and of few by one group, whose items are as many: then levels are short.
constexpr word run = 16, top_run = 4, level_words = 12;
constexpr std::size_t group = 64;

/// Levels of fewer chunks are one group's.
constexpr word few = 4096;

word runs_of(word count, word each) { return (count + each - 1) / each; }

std::string type_of(const Call& call) { return call.device.info.fp64 ? "-DCOUPLE=double -DCOUPLE_BYTES=8" : "-DCOUPLE=float -DCOUPLE_BYTES=4"; }

}  // namespace

Coupling::Coupling(const tridiagonal::System& system, word chunks, std::size_t numbers) : chunks_(chunks), from_((numbers * size_of(system.dtype) + 255) / 256 * 256) {
    word words = 0, n = chunks;
    while (n > few) {
        n = runs_of(n, run);
        at_.push_back(words), count_.push_back(n);
        words += level_words * n;
    }
    above_ = words;
    do n = runs_of(n, top_run), words += level_words * n;
    while (n > 1);
    bytes_ = from_ + static_cast<std::size_t>(words) * sizeof(double);
}

/// Between level l and what is below it.
void Coupling::level(Call& call, const char* kernel, const ChunkParts& parts, std::size_t l, cl_uint gate) const {
    const cl_long below = l > 0 ? at_[l - 1] : -1, count = l > 0 ? count_[l - 1] : chunks_;
    call.enqueue_as({"couple", kernel}, type_of(call), static_cast<std::size_t>(count_[l]), group, parts, static_cast<cl_long>(from_), below, count, cl_long{at_[l]}, gate);
}

void Coupling::enqueue(Call& call, const ChunkParts& parts, cl_uint gate) const {
    for (std::size_t l = 0; l < at_.size(); ++l) level(call, "merge", parts, l, gate);
    const std::size_t most = std::min<std::size_t>(256, call.device.info.group);
    const cl_long below = at_.empty() ? -1 : at_.back(), count = at_.empty() ? chunks_ : count_.back();
    call.enqueue_as({"couple", "top"}, type_of(call) + " -DRUN=" + std::to_string(top_run), most, most, parts, static_cast<cl_long>(from_), below, count, cl_long{above_}, gate);
    for (std::size_t l = at_.size(); l-- > 0;) level(call, "spread", parts, l, gate);
}

void enqueue_verdict(Call& call, const ChunkParts& parts, word chunks, cl_uint gate, const Judging& by) {
    enqueue_judged(call, {"couple", "verdict"}, type_of(call), std::min<std::size_t>(static_cast<std::size_t>(chunks), 1 << 14), group, by, parts, cl_long{chunks}, gate);
}

}  // namespace trifold::opencl
