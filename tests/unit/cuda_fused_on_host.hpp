// SPDX-License-Identifier: BSD-3-Clause
// What tests of the passes of sweeps off chip share, whose threads run on the host.
#pragma once

#include "support/blocks_on_host.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "backends/cuda/mesh/fused/prepare.hpp"
#include "backends/cuda/mesh/state.hpp"

namespace trifold::cuda {

inline bool any_of_block(bool one) {
    static bool flags[3];
    static std::vector<int> calls(4096);
    const int call = calls[static_cast<std::size_t>(on_host().thread())]++ % 3;
    if (one) flags[call] = true;
    block_barrier();
    flags[(call + 2) % 3] = false;
    return flags[call];
}
inline void bring_nearer(const void*) {}
template <int bytes>
void bring(void* to, const void* from) {
    std::memcpy(to, from, bytes);
}
inline void brought() {}
inline void bring_as_one() {}
using SharedPlace = char*;
inline SharedPlace shared_place(void* at) { return static_cast<char*>(at); }
template <int bytes>
void bring_if(bool wanted, SharedPlace to, const void* from) {
    if (wanted) std::memcpy(to, from, bytes);
}
template <class T>
const T* unforeseen_place(const T* at) {
    return at;
}
template <int left>
void brought_but() {}
inline void refuse(MeshState* state, unsigned long long sweep) { state->refused_at = std::min(state->refused_at, sweep); }
inline unsigned long long failed_at(const MeshState* state) { return state->failed_at; }
inline void report_line(MeshState* state, unsigned long long sweep, unsigned long long key) {
    state->failed_at = std::min(state->failed_at, sweep), state->first[sweep & 1] = std::min(state->first[sweep & 1], key), ++state->failures[sweep & 1];
}

// Warps on the host: lanes leave what others ask for.
template <class T>
T from_lane(T value, int lane, int lanes) {
    static std::vector<double> left(4096);
    const int thread = on_host().thread();
    left[static_cast<std::size_t>(thread)] = static_cast<double>(value);
    block_barrier();
    const double found = left[static_cast<std::size_t>(thread / lanes * lanes + lane)];
    block_barrier();
    return static_cast<T>(found);
}
inline unsigned lanes_with(bool one) {
    unsigned all = 0;
    for (int lane = 0; lane < 32; ++lane) all |= from_lane(one ? 1.f : 0.f, lane, 32) != 0 ? 1u << lane : 0u;
    return all;
}
inline void warp_barrier() { block_barrier(); }
namespace fused {
template <class T>
T reciprocal(T x) {
    return T(1) / x;
}
}  // namespace fused

}  // namespace trifold::cuda

#include "backends/cuda/mesh/arguments.hpp"
#include "backends/cuda/mesh/fused/columns.cuh"
#include "backends/cuda/mesh/fused/held.cuh"
#include "backends/cuda/mesh/fused/kept.cuh"
#include "backends/cuda/mesh/fused/right_hand_side.cuh"
#include "backends/cuda/mesh/fused/rows.cuh"
#include "support/random.hpp"
#include "trifold/trifold.hpp"

// Once for the reference, once for the kernels. Fields: 0 = u, 1 = conductivity, 2 = source, 3 = the solution.
#define FLOW                                                                                                                                      \
    {                                                                                                                                             \
        real u = at(0, 0, 0, 0), k = at(1, 0, 0, 0);                                                                                              \
        out(0) = p(0) * ((k + at(1, -1, 0, 0)) * (at(0, -1, 0, 0) - u) + (k + at(1, 1, 0, 0)) * (at(0, 1, 0, 0) - u) +                            \
                         (k + at(1, 0, -1, 0)) * (at(0, 0, -1, 0) - u) + (k + at(1, 0, 1, 0)) * (at(0, 0, 1, 0) - u) +                            \
                         (k + at(1, 0, 0, -1)) * (at(0, 0, 0, -1) - u) + (k + at(1, 0, 0, 1)) * (at(0, 0, 0, 1) - u)) + p(1) * at(2, 0, 0, 0);    \
    }
// The same, cut at the faces of cells.
#define FACES                                                                                                                              \
    {                                                                                                                                      \
        real k = at(1, 0, 0, 0);                                                                                                           \
        out(0) = k + at(1, -1, 0, 0), out(1) = k + at(1, 1, 0, 0), out(2) = k + at(1, 0, -1, 0), out(3) = k + at(1, 0, 1, 0),              \
        out(4) = k + at(1, 0, 0, -1), out(5) = k + at(1, 0, 0, 1);                                                                         \
    }
#define FLOW_OF_FACES                                                                                                                      \
    {                                                                                                                                      \
        real u = at(0, 0, 0, 0);                                                                                                           \
        out(0) = p(0) * (held(0) * (at(0, -1, 0, 0) - u) + held(1) * (at(0, 1, 0, 0) - u) + held(2) * (at(0, 0, -1, 0) - u) +               \
                         held(3) * (at(0, 0, 1, 0) - u) + held(4) * (at(0, 0, 0, -1) - u) + held(5) * (at(0, 0, 0, 1) - u)) + p(1) * at(2, 0, 0, 0); \
    }
#define AROUND(NEXT, BEFORE)                            \
    {                                                   \
        out(0) = -p(0) * (at(1, 0, 0, 0) + BEFORE) / 2; \
        out(2) = -p(0) * (at(1, 0, 0, 0) + NEXT) / 2;   \
        out(1) = 1 - out(0) - out(2);                   \
    }
#define ALONG_X AROUND(at(1, 1, 0, 0), at(1, -1, 0, 0))
#define ALONG_Y AROUND(at(1, 0, 1, 0), at(1, 0, -1, 0))
#define ALONG_Z AROUND(at(1, 0, 0, 1), at(1, 0, 0, -1))
#define ADD { out(0) = at(0, 0, 0, 0) + at(3, 0, 0, 0); }

#define WITH_ITS_TEXT(NAME, ...) TRIFOLD_POINT_FUNCTION(NAME, __VA_ARGS__)  // expanded first
WITH_ITS_TEXT(flow, FLOW)
WITH_ITS_TEXT(along_x, ALONG_X)
WITH_ITS_TEXT(along_y, ALONG_Y)
WITH_ITS_TEXT(along_z, ALONG_Z)
WITH_ITS_TEXT(add, ADD)
#define LOPSIDED                         \
    {                                    \
        out(0) = -p(0) * at(1, 0, 0, 0); \
        out(2) = out(0) / 2;             \
        out(1) = 1 - out(0) - out(2);    \
    }
WITH_ITS_TEXT(lopsided, LOPSIDED)

namespace trifold::tests {
namespace {

using cuda::MeshState;

template <class T>
struct Parameters {
    T value[2];
    T operator[](int k) const { return value[k]; }
};

/// A pass of axis `Axis` of a mesh with the same kind of sides everywhere. Position: 0 the first of its sweep, 1 between, 2 the last, 3 the only one; Apart: its right-hand side is another's.
template <class T, int X, int Y, int Z, int Kind, int Axis, int Segments, int Wide, int Position, bool Alike, bool Apart = false>
struct Pass {
    using real = T;
    using Parameters = tests::Parameters<T>;
    static constexpr int fields = 3, nx = X, ny = Y, nz = Z, not_finite = -static_cast<int>(Reason::not_finite), axis = Axis, n = Axis == 0 ? X : Axis == 1 ? Y : Z, S = Segments, R = (n + S - 1) / S, W = Wide, line = Axis,
                         target = 0, P = 2, groups = 2, reach_x = 1, reach_y = 1, reach_z = 1;
    static constexpr unsigned used = 1;
    static constexpr bool ring = Kind == 2, has_coefficients = true, alike = Alike, one = false, from_fields = !Apart && (Position == 0 || Position == 3), has_rhs = from_fields, last = Position >= 2, has_update = Position == 2,
                          exchanges = !Apart && Position == 3;
    static constexpr long stride(int field, int d) {
        constexpr long all[][4] = {{1, X, X * Y, X * Y * Z}, {1, X, X * Y, 0}, {1, 0, 0, 0}};
        return all[field][d];
    }
    static constexpr int edge(int field, int, int side) { return Kind == 2 ? 2 : field > 0 ? 0 : end(side); }
    static constexpr int end(int side) { return Kind == 2 ? 2 : Kind == 1 ? 1 - side : side; }

    struct rhs_reads {
        static constexpr int count = 15;
        static constexpr int at(int k, int what) {
            constexpr int star[][3] = {{0, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
            return what == 0 ? k / 7 : star[k % 7][what - 1];
        }
    };
    struct coefficients_reads {
        static constexpr int count = 3;
        static constexpr int at(int k, int what) { return what == 0 ? 1 : what == Axis + 1 ? k - 1 : 0; }
    };

    struct update_reads {
        static constexpr int count = has_update ? 1 : 0;
        static constexpr int at(int, int) { return 0; }
    };

#define at(f, dx, dy, dz) near.template at<f, dx, dy, dz>()
#define out(k) result[k]
#define p(k) parameters[k]
#define held(k) near.template kept<k>()

    template <class Near>
    static void rhs(const Near& near, const Parameters& parameters, real* result, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
        if constexpr (kept > 0 && requires { near.template kept<0>(); }) FLOW_OF_FACES
        else FLOW
    }
    template <class Near>
    static void keep(const Near& near, const Parameters&, real* result, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) FACES
    // Faces are shared by the cells on both sides of them, held or in memory; but for one kind of sides, where nothing is kept.
    static constexpr bool held = Kind != 1 && (Alike || sizeof(T) == 4);
    static constexpr int kept = Kind == 1 ? 0 : 6, points = X * Y * Z;
    static constexpr long place(int value, int what) {
        constexpr long all[][3] = {{0, -1, 0}, {0, 0, 3 * points}, {points, -1, 0}, {points, 1, 3 * points + Y * Z}, {2 * points, -1, 0}, {2 * points, 2, 3 * points + Y * Z + X * Z}};
        return all[value][what];
    }
    static constexpr long all_kept = 3 * points + Y * Z + X * Z + X * Y, kept_words = Alike ? 0 : all_kept;
    template <class Near>
    static void coefficients(const Near& near, const Parameters& parameters, real* result, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
        if constexpr (Axis == 0) ALONG_X
        if constexpr (Axis == 1) ALONG_Y
        if constexpr (Axis == 2) ALONG_Z
    }
    template <class Near>
    static void unlike(const Near& near, const Parameters& parameters, real* result) LOPSIDED
    template <class Near>
    static void update(const Near& near, const Parameters&, real* result, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) ADD
};

#undef at
#undef out
#undef p
#undef held

/// All lines have one matrix of constants.
template <class P>
struct OfConstants : P {
    static constexpr bool has_coefficients = false, alike = true, one = true;
};

template <class P>
struct Lopsided : P {
    template <class Near, class... Place>
    static void coefficients(const Near& near, const typename P::Parameters& p, typename P::real* out, Place...) {
        P::unlike(near, p, out);
    }
};

/// A matrix that needs pivots.
template <class P>
struct Weak : P {
    template <class Near, class... Place>
    static void coefficients(const Near& near, const typename P::Parameters& p, typename P::real* out, Place... place) {
        P::coefficients(near, p, out, place...);
        if (near.template at<1, 0, 0, 0>() > 2.9) out[1] = out[0] + out[2];
    }
};

template <class T>
struct Heated {
    MeshShape shape;
    std::array<Sides, 3> sides{}, plain{}, mirrored{};
    std::vector<T> u, k, source;

    Heated(const MeshShape& s, int kind, Random& random) : shape(s), u(static_cast<std::size_t>(s.points())), k(static_cast<std::size_t>(s.x * s.y * s.z)), source(static_cast<std::size_t>(s.x)) {
        const Edge low = kind == 2 ? Edge::periodic : kind == 1 ? Edge::odd : Edge::even, high = kind == 2 ? Edge::periodic : kind == 1 ? Edge::even : Edge::odd;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            sides[axis] = {{low, 0.4}, {high, -0.7}}, plain[axis] = {{low}, {high}};
            if (kind == 2) mirrored[axis] = plain[axis];
        }
        for (T& v : u) v = static_cast<T>(random.uniform(-1, 1));
        for (T& v : k) v = static_cast<T>(random.uniform(0.1, 3));
        for (T& v : source) v = static_cast<T>(random.uniform(-1, 1));
    }
    std::vector<AnyField> fields() {
        return {Field<T>::packed(u.data(), shape, sides), Field<const T>::strided(k.data(), {1, shape.x, shape.x * shape.y, 0}, mirrored), Field<const T>::strided(source.data(), {1, 0, 0, 0})};
    }
};

constexpr double numbers[] = {0.4, 0.3}, constants[] = {-0.7, 2, -0.6};

template <class C>
void run_pass(const cuda::MeshArguments<typename C::real>& a, const std::array<Sides, 3>& ends, bool reversed, int blocks) {
    using T = typename C::real;
    using L = cuda::fused::Lines<C>;
    cuda::fused::PassArguments<T> pass{};
    pass.tasks = L::sets * a.extent[3];
    const Sides& own = ends[static_cast<std::size_t>(C::axis)];
    pass.twice[0] = static_cast<T>(2 * own.low.value), pass.twice[1] = static_cast<T>(2 * own.high.value);
    const Parameters<T> parameters{{static_cast<T>(numbers[0]), static_cast<T>(numbers[1])}};
    for (int b = 0; b < blocks; ++b) {
        BlocksOnHost block(1, L::threads, (static_cast<std::size_t>(L::in_memory) * sizeof(T) + 63) / 64 * 64, reversed);
        block.run([&](unsigned char* shared) {
            const L lines(a, parameters, reinterpret_cast<T*>(shared), cuda::thread_number());
            lines.run(pass, b, blocks);
        });
    }
}

/// The same with its matrix kept from before, and before it the right-hand side where it is the first one. Symmetric: only half of the couplings are read.
template <class C>
unsigned run_kept(const cuda::MeshArguments<typename C::real>& a, const std::array<Sides, 3>& ends, bool reversed, int blocks, bool first, bool symmetric) {
    using T = typename C::real;
    using L = cuda::fused::KeptLines<C>;
    using Rhs = cuda::fused::RightHandSides<C>;
    const Parameters<T> parameters{{static_cast<T>(numbers[0]), static_cast<T>(numbers[1])}};
    cuda::fused::PassArguments<T> pass{};
    pass.tasks = L::sets * a.extent[3];
    const Sides& own = ends[static_cast<std::size_t>(C::axis)];
    pass.twice[0] = static_cast<T>(2 * own.low.value), pass.twice[1] = static_cast<T>(2 * own.high.value);
    for (std::size_t c = 0; c < 3; ++c) pass.constant[c] = static_cast<T>(constants[c]);
    std::vector<T> faces(static_cast<std::size_t>(C::all_kept * (C::alike ? 1 : a.extent[3])), T(NAN));
    for (std::int64_t mesh = 0; first && C::kept > 0 && !C::held && mesh < (C::alike ? 1 : a.extent[3]); ++mesh)
        for (int at = 0; at < C::points; ++at) cuda::fused::keep_values_of<C>(a, parameters, faces.data(), mesh, at);
    if (first)
        for (unsigned piece = 0; piece < Rhs::pieces; ++piece)
            for (std::int64_t begin = 0, each = C::held && C::alike ? 2 : 1; begin < a.extent[3]; begin += each)
                for (int t = 0; t < Rhs::threads; ++t) Rhs{a, parameters, faces.data()}.run(piece, begin, std::min(begin + each, a.extent[3]), t);
    std::vector<T> memory(static_cast<std::size_t>(L::words * L::sets * (C::alike ? 1 : a.extent[3])), T(NAN));
    unsigned asymmetric = 0;
    for (const bool keeps : {true, false}) {
        const cuda::fused::KeptArguments<T> kept{memory.data(), &asymmetric, symmetric};
        for (int b = 0; b < blocks; ++b) {
            BlocksOnHost block(1, L::threads, (static_cast<std::size_t>(L::in_memory(kept.symmetric && !keeps)) * sizeof(T) + 63) / 64 * 64, reversed);
            block.run([&](unsigned char* shared) {
                const L lines(a, parameters, reinterpret_cast<T*>(shared), cuda::thread_number());
                if (keeps) lines.keep(pass, kept, b, blocks);
                else lines.begin(pass, kept, b, blocks), lines.run(pass, kept, b, blocks, cuda::failed_at(a.state) == a.sweep);
            });
        }
    }
    return asymmetric;
}

template <class T>
cuda::MeshArguments<T> arguments_of(Heated<T>& heated, std::vector<T>& values, std::vector<unsigned char>& failed, MeshState& state) {
    cuda::MeshArguments<T> a{};
    a.extent[0] = heated.shape.x, a.extent[1] = heated.shape.y, a.extent[2] = heated.shape.z, a.extent[3] = heated.shape.meshes;
    int f = 0;
    for (const AnyField& field : heated.fields()) a.field[f++] = cuda::field_view<T>(field);
    a.values = values.data(), a.failed = failed.data(), a.state = &state;
    return a;
}

}  // namespace
}  // namespace trifold::tests
