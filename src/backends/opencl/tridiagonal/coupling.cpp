// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/coupling.hpp"

#include <algorithm>
#include <string>

#include "families/tridiagonal/two_pass.hpp"

namespace trifold::opencl {
namespace {

/// As in couple.cl.
constexpr word run = 16, level_words = 12;
constexpr std::size_t group = 64;

/// Levels of fewer chunks are one group's.
constexpr word few = 4096;

word runs_of(word count) { return (count + run - 1) / run; }

std::string type_of(const Call& call) { return call.device.info.fp64 ? "-DCOUPLE=double -DCOUPLE_BYTES=8" : "-DCOUPLE=float -DCOUPLE_BYTES=4"; }

}  // namespace

Coupling::Coupling(const tridiagonal::System& system, word chunks, std::size_t numbers) : chunks_(chunks), from_((numbers * size_of(system.dtype) + 255) / 256 * 256) {
    word words = 0;
    for (word n = runs_of(chunks);; n = runs_of(n)) {
        if (count_.empty() || count_.back() > few) at_.push_back(words), count_.push_back(n);
        words += level_words * n;
        if (n == 1) break;
    }
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
    call.enqueue_as({"couple", "top"}, type_of(call), most, most, static_cast<cl_long>(from_), cl_long{at_.back()}, cl_long{count_.back()}, gate);
    for (std::size_t l = at_.size(); l-- > 0;) level(call, "spread", parts, l, gate);
}

void enqueue_verdict(Call& call, const ChunkParts& parts, word chunks, bool locally, cl_uint gate, cl_uint next, Reason reason, cl_int trusted) {
    const auto judged = [&]<class T>(T accept) {
        call.enqueue_as({"couple", "verdict"}, type_of(call), std::min<std::size_t>(static_cast<std::size_t>(chunks), 1 << 14), group, parts, cl_long{chunks}, accept,
                        static_cast<T>(locally ? 0 : 4 * unit_roundoff(call.system.dtype)), gate, next, trusted, static_cast<cl_int>(reason), call.telling(tridiagonal::Algorithm::two_pass), call.outcome_buffer());
    };
    const double accept = tridiagonal::two_pass_accept(call.system.dtype);
    if (call.system.dtype == DType::f32) judged(static_cast<float>(accept));
    else judged(accept);
}

}  // namespace trifold::opencl
