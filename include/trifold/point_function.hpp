// SPDX-License-Identifier: BSD-3-Clause
// A function of a mesh point, written once in the subset that C++, CUDA, OpenCL C and HLS share: it is compiled where it stands for
// the host, and its text is kept for devices that compile at run time.
//
//   TRIFOLD_POINT_FUNCTION(heating, {
//       real u = at(0, 0, 0, 0);
//       out(0) = p(0) * (at(0, -1, 0, 0) - 2 * u + at(0, 1, 0, 0)) + at(1, 0, 0, 0);
//   })
//
// at namespace scope. Within it:
//   real                  float or double
//   at(f, dx, dy, dz)     field f at the point's neighbour, up to 2 points away along each axis; beyond a side it is what the field's
//                         sides say. All four are integers as such, so that what is read can be known from the text
//   out(k)                result k, to be assigned
//   p(k)                  parameter k, an integer as such
//   x, y, z, mesh, step   where the point is, and the number of the time step
//   mad(a, b, c)          a b + c as a real, rounded once or twice, as is fastest: a GPU rounds it once, and fuses nothing that is not written so
// and arithmetic, comparisons, if, ?:, fabs, sqrt, exp, fmin, fmax. No macros, static state or other functions. A point must not depend
// on the results of another: they are computed in any order, and several at a time.
#pragma once

#include <cmath>
#include <cstdint>

namespace trifold {

inline constexpr int max_reach = 2;               ///< points along each axis that a function may look away
inline constexpr int rows_across = 2 * max_reach + 1;

/// Neighbouring points along x, for one call: rows[(f rows_across + dz + max_reach) rows_across + dy + max_reach] is field f's row at
/// that offset from the first of `count` points on, with as many more on both sides as the function reads. Rows that it does not
/// read are null.
template <class T>
struct PointRows {
    const T* const* rows;
    T* const* out;
    const T* p;
    std::int64_t count, x, y, z, mesh, step;
};

struct PointFunction {
    const char* name = nullptr;    ///< null: no function
    const char* source = nullptr;  ///< its text, from { to }
    void (*run_f32)(const PointRows<float>&) = nullptr;
    void (*run_f64)(const PointRows<double>&) = nullptr;

    explicit operator bool() const noexcept { return name != nullptr; }
};

}  // namespace trifold

#if defined(__clang__)
#define TRIFOLD_INDEPENDENT_POINTS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TRIFOLD_INDEPENDENT_POINTS _Pragma("GCC ivdep")
#else
#define TRIFOLD_INDEPENDENT_POINTS
#endif

// Compiled for several instruction sets where the compiler can choose among them when the program starts.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TRIFOLD_ANY_VECTORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TRIFOLD_ANY_VECTORS
#endif

#define TRIFOLD_POINT_FUNCTION(NAME, ...)                                                                                                   \
    template <class real>                                                                                                                   \
    TRIFOLD_ANY_VECTORS void NAME##_along_x(const ::trifold::PointRows<real>& trifold_call) {                                                                   \
        using std::exp, std::fabs, std::fmax, std::fmin, std::sqrt;                                                                         \
        const ::trifold::PointRows<real> trifold_rows = trifold_call;                                                                       \
        [[maybe_unused]] const std::int64_t y = trifold_rows.y, z = trifold_rows.z, mesh = trifold_rows.mesh, step = trifold_rows.step;     \
        [[maybe_unused]] const auto p = [trifold_rows](int k) -> real { return trifold_rows.p[k]; };                                        \
        TRIFOLD_INDEPENDENT_POINTS                                                                                                          \
        for (std::int64_t trifold_i = 0; trifold_i < trifold_rows.count; ++trifold_i) {                                                     \
            [[maybe_unused]] const std::int64_t x = trifold_rows.x + trifold_i;                                                             \
            [[maybe_unused]] const auto at = [&](int field, int dx, int dy, int dz) -> real {                                               \
                constexpr int across = ::trifold::rows_across, reach = ::trifold::max_reach;                                                \
                return trifold_rows.rows[(field * across + dz + reach) * across + dy + reach][trifold_i + dx];                              \
            };                                                                                                                              \
            [[maybe_unused]] const auto mad = [](real a, real b, real c) -> real { return a * b + c; };                                     \
            [[maybe_unused]] const auto out = [&](int k) -> real& { return trifold_rows.out[k][trifold_i]; };                               \
            __VA_ARGS__                                                                                                                     \
        }                                                                                                                                   \
    }                                                                                                                                       \
    inline constexpr ::trifold::PointFunction NAME{#NAME, #__VA_ARGS__, &NAME##_along_x<float>, &NAME##_along_x<double>};
