// SPDX-License-Identifier: BSD-3-Clause
// A batch inside guarded arrays, its solution in long double by LU with partial pivoting, and every vector length in turn.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "backends/cpu/tridiagonal/cell.hpp"
#include "support/simd_targets.hpp"

namespace trifold::cpu::test {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Operand;
using tridiagonal::System;
using trifold::tests::on_every_target;

enum class Layout { contiguous, interleaved, middle_axis, scattered };

inline const char* name_of(Layout layout) {
    switch (layout) {
        case Layout::contiguous: return "contiguous";
        case Layout::interleaved: return "interleaved";
        case Layout::middle_axis: return "middle axis";
        case Layout::scattered: return "scattered";
    }
    return "?";
}

/// An array with NaN around and between the elements of a view, so that whatever is read or written beside it shows.
template <class T>
struct Guarded {
    std::vector<T> data;
    std::int64_t row_stride = 0, level_stride[4] = {}, base = 0;

    T& at(std::int64_t i, std::int64_t j, std::int64_t k) { return data[base + i * row_stride + j * level_stride[0] + k * level_stride[1]]; }
};

template <class T>
struct Batch {
    std::int64_t rows, outer, inner;  // systems = outer × inner, two levels
    Guarded<T> lower, diag, upper, rhs, x;
    System system;
    bool packed = false;

    static constexpr std::int64_t guard = 64;

    /// pad: elements between the ends of rows or planes; shift: offset of the first element from alignment.
    Batch(Layout layout, std::int64_t n, std::int64_t outer_systems, std::int64_t inner_systems, std::int64_t pad, std::int64_t shift, bool in_place)
        : rows(n), outer(outer_systems), inner(inner_systems) {
        for (Guarded<T>* a : {&lower, &diag, &upper, &rhs, &x}) arrange(*a, layout, pad, shift);
        system.dtype = dtype_of<T>;
        system.rows = n;
        const auto view = [](Guarded<T>& a) {
            Operand o;
            o.kind = Operand::Kind::view;
            o.data = a.data.data() + a.base;
            o.row_stride = a.row_stride;
            std::copy_n(a.level_stride, 4, o.level_stride);
            return o;
        };
        system.lower = view(lower), system.diag = view(diag), system.upper = view(upper), system.rhs = view(rhs);
        system.x = in_place ? system.rhs : view(x);
        system.in_place = in_place;
        system.levels = 2;
        system.extent[0] = outer, system.extent[1] = inner;
        system.number_stride[0] = inner, system.number_stride[1] = 1;
    }

    T* solution(std::int64_t i, std::int64_t j, std::int64_t k) { return &(system.in_place ? rhs : x).at(i, j, k); }

    template <class Fill>
    void fill(const Fill& value) {  // value(which 0…3, row, j, k)
        Guarded<T>* arrays[] = {&lower, &diag, &upper, &rhs};
        for (int w = 0; w < 4; ++w)
            for (std::int64_t j = 0; j < outer; ++j)
                for (std::int64_t k = 0; k < inner; ++k)
                    for (std::int64_t i = 0; i < rows; ++i)
                        if (!(w == 0 && i == 0) && !(w == 2 && i == rows - 1)) arrays[w]->at(i, j, k) = value(w, i, j, k);
    }

private:
    void arrange(Guarded<T>& a, Layout layout, std::int64_t pad, std::int64_t shift) const {
        std::int64_t size = 0;
        switch (layout) {
            case Layout::contiguous: a.row_stride = 1, a.level_stride[1] = rows + pad, a.level_stride[0] = inner * a.level_stride[1] + pad, size = outer * a.level_stride[0]; break;
            case Layout::interleaved: a.level_stride[1] = 1, a.level_stride[0] = inner, a.row_stride = outer * inner + pad, size = rows * a.row_stride; break;
            case Layout::middle_axis: a.level_stride[1] = 1, a.row_stride = inner + pad, a.level_stride[0] = rows * a.row_stride + pad, size = outer * a.level_stride[0]; break;
            case Layout::scattered: a.level_stride[1] = 3, a.row_stride = 3 * inner + pad + 1, a.level_stride[0] = rows * a.row_stride + 2, size = outer * a.level_stride[0]; break;
        }
        a.base = guard + shift;
        a.data.assign(size + 2 * guard + shift, std::numeric_limits<T>::quiet_NaN());
    }
};

/// x of one system by LU with partial pivoting (the scheme of ?gtsv), computed in type W. Empty where a pivot is zero.
template <class W = long double, class T>
std::vector<W> truth(Batch<T>& b, std::int64_t j, std::int64_t k, const std::vector<T>& rhs_kept) {
    const std::int64_t n = b.rows;
    std::vector<W> d(n), u(n, 0), u2(n, 0), x(n), l(n, 0);
    for (std::int64_t i = 0; i < n; ++i) {
        d[i] = b.diag.at(i, j, k), x[i] = rhs_kept[(j * b.inner + k) * n + i];
        if (i > 0) l[i] = b.lower.at(i, j, k);
        if (i + 1 < n) u[i] = b.upper.at(i, j, k);
    }
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        if (std::abs(l[i + 1]) > std::abs(d[i])) {
            std::swap(d[i], l[i + 1]), std::swap(u[i], d[i + 1]), std::swap(x[i], x[i + 1]);
            u2[i] = u[i + 1], u[i + 1] = 0;
        }
        if (d[i] == 0) return {};
        const W m = l[i + 1] / d[i];
        d[i + 1] -= m * u[i], u[i + 1] -= m * u2[i], x[i + 1] -= m * x[i];
    }
    if (d[n - 1] == 0) return {};
    for (std::int64_t i = n - 1; i >= 0; --i) {
        if (i + 1 < n) x[i] -= u[i] * x[i + 1];
        if (i + 2 < n) x[i] -= u2[i] * x[i + 2];
        x[i] /= d[i];
    }
    return x;
}

template <class T>
std::vector<T> kept_rhs(Batch<T>& b) {
    std::vector<T> kept(b.rows * b.outer * b.inner);
    for (std::int64_t j = 0; j < b.outer; ++j)
        for (std::int64_t k = 0; k < b.inner; ++k)
            for (std::int64_t i = 0; i < b.rows; ++i) kept[(j * b.inner + k) * b.rows + i] = b.rhs.at(i, j, k);
    return kept;
}

/// max over rows of |rhs - A x| / (max|A| max|x| + max|rhs|), in long double; of `other` in place of the batch's x where given.
template <class T>
double backward_error(Batch<T>& b, std::int64_t j, std::int64_t k, const std::vector<T>& rhs_kept, const std::vector<T>* other = nullptr) {
    const std::int64_t n = b.rows;
    long double a = 0, f = 0, xm = 0, r = 0;
    const auto x = [&](std::int64_t i) -> long double { return other ? (*other)[i] : *b.solution(i, j, k); };
    for (std::int64_t i = 0; i < n; ++i) {
        const long double l = i > 0 ? b.lower.at(i, j, k) : T(0), u = i + 1 < n ? b.upper.at(i, j, k) : T(0), d = b.diag.at(i, j, k);
        const long double rhs = rhs_kept[(j * b.inner + k) * n + i];
        long double s = rhs - d * x(i);
        if (i > 0) s -= l * x(i - 1);
        if (i + 1 < n) s -= u * x(i + 1);
        if (s != s) return HUGE_VAL;
        r = std::max(r, std::abs(s)), f = std::max(f, std::abs(rhs)), xm = std::max(xm, std::abs(x(i)));
        a = std::max({a, std::abs(l), std::abs(d), std::abs(u)});
    }
    return r == 0 ? 0 : static_cast<double>(r / (a * xm + f));
}

/// The number of elements that were written though they belong to no row of any system.
template <class T>
std::int64_t touched_outside(Batch<T>& b, Guarded<T>& a) {
    std::vector<bool> inside(a.data.size());
    for (std::int64_t j = 0; j < b.outer; ++j)
        for (std::int64_t k = 0; k < b.inner; ++k)
            for (std::int64_t i = 0; i < b.rows; ++i) inside[&a.at(i, j, k) - a.data.data()] = true;
    std::int64_t touched = 0;
    for (std::size_t e = 0; e < a.data.size(); ++e) touched += !inside[e] && a.data[e] == a.data[e];
    return touched;
}

template <class T>
Outcome run(Batch<T>& b, Algorithm algorithm = Algorithm::automatic, int threads = 1, std::vector<std::int8_t>* status = nullptr) {
    const auto& ops = cpu_ops();
    EXPECT_EQ(ops.refuses(b.system, algorithm), nullptr);
    const std::size_t bytes = ops.workspace(b.system, algorithm, threads);
    std::vector<unsigned char> scratch(bytes + 64 + 64, 0xff);
    void* aligned = scratch.data();
    std::size_t space = bytes + 64;
    std::align(64, bytes, aligned, space);
    unsigned char* const end = static_cast<unsigned char*>(aligned) + bytes;
    Launch launch;
    launch.threads = threads, launch.scratch = aligned, launch.scratch_bytes = bytes, launch.tolerance = 1e-16;
    if (status) status->assign(b.outer * b.inner, 77), launch.status = status->data();
    Outcome outcome;
    ops.solve(b.system, algorithm, launch, outcome);
    EXPECT_TRUE(std::all_of(end, scratch.data() + scratch.size(), [](unsigned char c) { return c == 0xff; })) << "scratch overrun";
    return outcome;
}

}  // namespace trifold::cpu::test
