// SPDX-License-Identifier: BSD-3-Clause
// One system in arrays with room around them, through the certified driver on the cpu's sweep.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backends/cpu/tridiagonal/sweep.hpp"
#include "families/tridiagonal/certified.hpp"
#include "support/bands.hpp"
#include "support/simd_targets.hpp"

namespace trifold::tests {

using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::Stretches;
using tridiagonal::System;

inline const tridiagonal::Ops& sweep_ops() {
    static const tridiagonal::Ops ops = [] {
        tridiagonal::Ops table;
        table.device = "cpu";
        table.refuses = [](const System& system, tridiagonal::Algorithm) { return cpu::sweep_refuses(system); };
        table.decay = cpu::decay;
        table.sweep_scratch = cpu::sweep_scratch;
        table.sweep = cpu::sweep;
        table.unsweep = cpu::unsweep;
        return table;
    }();
    return ops;
}

/// Numbers from a given offset of a cache line on, with NaN around them: whatever is read or written beside them shows.
template <class T>
class Fenced {
public:
    Fenced(const std::vector<T>& values, std::int64_t offset) : size_(values.size()), room_(values.size() + 4 * line) {
        T* const aligned = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(room_.data()) + 63) / 64 * 64);
        data_ = aligned + line + offset;
        std::fill(room_.begin(), room_.end(), fence());
        std::copy(values.begin(), values.end(), data_);
    }
    T* data() { return data_; }
    std::vector<T> values() const { return {data_, data_ + size_}; }
    bool intact() const {
        for (const T* p = room_.data(); p < room_.data() + room_.size(); ++p)
            if ((p < data_ || p >= data_ + size_) && *p == *p) return false;
        return true;
    }

private:
    static constexpr std::int64_t line = 64 / sizeof(T);
    static T fence() { return std::numeric_limits<T>::quiet_NaN(); }
    std::size_t size_;
    std::vector<T> room_;
    T* data_;
};

struct How {
    bool in_place = false;
    int threads = 1;
    double tolerance = 0;      ///< 0 = unit roundoff
    std::int64_t offset = 0;   ///< of x in its cache line, elements; the inputs are at others
    Stretches stretches;       ///< block, left, right, close, length and stream are taken; length == 0 lets the driver plan
    tridiagonal::CertifiedPart part = {};
};

template <class T>
struct Certified {
    bool accepted = false, fences = false;
    Outcome outcome;
    std::vector<T> x;  ///< in place and not accepted: the right-hand side
};

template <class T>
Certified<T> certify(const Bands<T>& s, const How& how) {
    const std::int64_t n = s.rows(), lanes = 64 / static_cast<std::int64_t>(sizeof(T));
    std::vector<T> lower = s.lower, upper = s.upper;
    lower[0] = upper[n - 1] = std::numeric_limits<T>::quiet_NaN();  // never read
    Fenced<T> a(lower, (how.offset + 1) % lanes), b(s.diag, (how.offset + 2) % lanes), c(upper, (how.offset + 3) % lanes);
    Fenced<T> r(s.rhs, how.offset), x(std::vector<T>(n, T{77}), how.offset);
    System system;
    system.dtype = dtype_of<T>;
    system.rows = n;
    const auto view = [](T* data) { Operand o; o.kind = Operand::Kind::view, o.data = data, o.row_stride = 1; return o; };
    system.lower = view(a.data()), system.diag = view(b.data()), system.upper = view(c.data()), system.rhs = view(r.data());
    system.x = how.in_place ? system.rhs : view(x.data());
    system.in_place = how.in_place;

    Launch launch;
    launch.threads = how.threads;
    launch.tolerance = how.tolerance > 0 ? how.tolerance : unit_roundoff(dtype_of<T>);
    Stretches cut = how.stretches;
    std::size_t bytes;
    if (cut.length > 0) {
        cut.rows = n;
        cut.lanes = static_cast<int>(lanes);
        cut.first = lanes - how.offset;
        cut.stream = !how.in_place && cut.stream;
        const std::int64_t usable = n - cut.first - 1;
        cut.groups = std::max<std::int64_t>(usable / (lanes * cut.length), 1);
        cut.last_length = (usable - (cut.groups - 1) * lanes * cut.length) / (lanes * lanes) * lanes;
        EXPECT_GE(cut.last_length, cut.length);
        bytes = sizeof(tridiagonal::StretchBound) * cut.stretches() + 64 + cpu::sweep_scratch(system, cut, how.threads);
    } else {
        EXPECT_EQ(tridiagonal::certified_refuses(sweep_ops(), system), nullptr);
        bytes = tridiagonal::certified_workspace(sweep_ops(), system, how.threads, how.part);
    }
    std::vector<std::byte> scratch(bytes + 128, std::byte{0xff});
    char* const aligned = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
    std::memset(aligned + bytes, 0x5a, 64);
    launch.scratch = aligned;
    launch.scratch_bytes = bytes;

    Certified<T> result;
    result.accepted = cut.length > 0 ? tridiagonal::solve_certified(sweep_ops(), system, launch, cut, result.outcome)
                                     : tridiagonal::solve_certified(sweep_ops(), system, launch, result.outcome, how.part);
    result.x = how.in_place ? r.values() : x.values();
    result.fences = a.intact() && b.intact() && c.intact() && r.intact() && x.intact();
    for (int i = 0; i < 64; ++i) result.fences &= aligned[bytes + i] == 0x5a;
    return result;
}

/// Halos and blocks of so many tiles, the smallest stretches that take them or longer ones.
template <class T>
Stretches tiles(std::int64_t left, std::int64_t right, std::int64_t block, std::int64_t length, double close) {
    const std::int64_t lanes = 64 / static_cast<std::int64_t>(sizeof(T));
    Stretches s;
    s.left = left * lanes, s.right = right * lanes, s.block = block * lanes, s.length = length * lanes, s.close = close;
    s.stream = true;
    return s;
}

}  // namespace trifold::tests
