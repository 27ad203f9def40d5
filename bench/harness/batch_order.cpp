// SPDX-License-Identifier: BSD-3-Clause
#include "bench/harness/batch_order.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace trifold::bench {
namespace {

constexpr std::int64_t line = 64, column_lines = 2;  // lines of systems in a block

std::uint64_t word_at(const void* p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    return word;
}

void put(void* p, std::uint64_t word) { std::memcpy(p, &word, sizeof(word)); }

}  // namespace

BatchOrder::BatchOrder(const devices::StreamArrays& arrays, const io::TridiagonalData& data, int threads)
    : arrays_(arrays), rows_(data.rows()), element_(static_cast<std::int64_t>(size_of(data.rhs.dtype()))), threads_(threads) {
    blocks_ = static_cast<std::int64_t>(data.systems()) * element_ / (column_lines * line);
    for (int t = 0; t < threads; ++t) scratch_.emplace_back(static_cast<std::size_t>(rows_ * 2 * column_lines * 8 + 8));
    static volatile std::uint64_t zero = 0;
    zero_ = zero;
}

double BatchOrder::sample() {
    const auto start = std::chrono::steady_clock::now();
#pragma omp parallel num_threads(threads_)
    {
        const std::int64_t t = omp_get_thread_num(), of = omp_get_num_threads();
        char* const scratch = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(scratch_[static_cast<std::size_t>(t)].data()) + 63) / 64 * 64);
        for (std::int64_t k = blocks_ * t / of; k < blocks_ * (t + 1) / of; ++k) pass(k, scratch);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void BatchOrder::pass(std::int64_t block, char* scratch) {
    const std::int64_t systems = column_lines * line / element_, system_bytes = rows_ * element_, bytes = systems * system_bytes;
    const unsigned char* p[4];
    for (int k = 0; k < 4; ++k) p[k] = arrays_.read[k] + block * bytes;
    unsigned char* const x = arrays_.write + block * bytes;
    std::uint64_t seen = 0;
    for (std::int64_t at = 0; at + line <= bytes; at += line)
        for (int k = 0; k < 4; ++k) seen |= word_at(p[k] + at);
    char* s = scratch;
    const std::int64_t scratch_lines = 2 * column_lines * (line / element_);  // of a line of rows
    for (std::int64_t at = 0; at + line <= system_bytes; at += line) {
        for (std::int64_t j = 0; j < systems; ++j)
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) seen |= word_at(p[k] + j * system_bytes + at);
        for (std::int64_t l = 0; l < scratch_lines; ++l, s += line) put(s, seen);
    }
    for (std::int64_t at = (system_bytes / line - 1) * line; at >= 0; at -= line) {
        for (std::int64_t l = 0; l < scratch_lines; ++l) seen |= word_at(s -= line);
        for (std::int64_t j = 0; j < systems; ++j) put(x + j * system_bytes + at, word_at(x + j * system_bytes + at) | (seen & zero_));
    }
}

}  // namespace trifold::bench
