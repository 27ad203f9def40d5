// SPDX-License-Identifier: BSD-3-Clause
// Fields and sweeps that tests of large meshes share: by shape, sides and scheme, with random values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "support/largest_difference.hpp"
#include "support/random.hpp"
#include "trifold/trifold.hpp"

namespace trifold::tests {

// Fields: 0 = u, 1 = source, 2 = the solution.
TRIFOLD_POINT_FUNCTION(diffuse, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u)) + p(1) * ((at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u)) +
             p(2) * ((at(0, 0, 0, -1) - u) + (at(0, 0, 0, 1) - u));
})
TRIFOLD_POINT_FUNCTION(diffuse_flat, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) + (at(0, 1, 0, 0) - u)) + p(1) * ((at(0, 0, -1, 0) - u) + (at(0, 0, 1, 0) - u)) + p(2) * at(1, 0, 0, 0);
})
// Products that neighbours have too: where a compiler fuses one of two with their sum, it may ask how often each is used.
TRIFOLD_POINT_FUNCTION(weighted, {
    out(0) = p(0) * at(0, -1, 0, 0) + p(0) * at(0, 1, 0, 0) + p(1) * at(0, 0, -1, 0) + p(1) * at(0, 0, 1, 0) + p(2) * at(0, 0, 0, -1) + p(2) * at(0, 0, 0, 1) - p(0) * at(0, 0, 0, 0);
})
TRIFOLD_POINT_FUNCTION(look_far, { out(0) = at(0, 0, 0, 0) + p(0) * (at(0, 2, -2, 0) - at(1, -2, 1, 0) + real(step)); })
TRIFOLD_POINT_FUNCTION(look_far_up, { out(0) = at(0, 0, 0, 0) + p(0) * (at(0, 2, -2, 1) - at(1, -2, 1, -2) + real(step)); })
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(2, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(mix, { out(0) = p(1) * at(1, 0, 0, 0) + at(2, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(stretched, {
    out(0) = -real(0.3) / (1 + real(x));
    out(2) = -real(0.2) / (2 + real(x));
    out(1) = 1 - out(0) - out(2);
})

struct Case {
    MeshShape shape;
    Edge x, y, z;
    int scheme;  // 0: increments in 3-D; 1: in 2-D; 2: values on the sides, no update, a stretched axis; 3: values on the sides, no update, in 3-D
};

constexpr Edge even = Edge::even, odd = Edge::odd, ring = Edge::periodic;

template <class T>
struct Fields {
    MeshShape shape;
    std::array<Sides, 3> sides, plain;
    std::vector<T> u, source;
    std::vector<Sweep> sweeps;
    std::vector<double> parameters{0.6, 0.5, 0.4};

    explicit Fields(const Case& one) : shape(one.shape) {
        Random random(31);
        for (std::vector<T>* values : {&u, &source})
            for (std::int64_t k = 0; k < shape.points(); ++k) values->push_back(static_cast<T>(random.uniform(-1, 1)));
        const auto both = [](Edge edge, Side low, Side high) { return edge == Edge::periodic ? Sides{{edge}, {edge}} : Sides{low, high}; };
        sides = {both(one.x, {one.x, 0.3}, {one.x, -0.2}), both(one.y, {one.y, 0.1}, {even}), both(one.z, {even}, {one.z, 0.4})};
        plain = sides;
        for (Sides& axis : plain) axis.low.value = axis.high.value = 0;
        const LineSolve x{0, {-0.3, 1.6, -0.3}}, y{1, {-0.2, 1.5, -0.3}}, z{2, {-0.2, 1.4, -0.2}};
        if (one.scheme == 0) sweeps = {{diffuse, {x, y, z}, add, 0, plain}};
        else if (one.scheme == 1) sweeps = {{diffuse_flat, {x, y}, add, 0, plain}};
        else if (one.scheme == 3) sweeps = {{look_far_up, {{0, {}, stretched, true}, y, z}, {}, 0, sides}};
        else sweeps = {{look_far, {{0, {}, stretched, true}, y}, {}, 0, sides}, {{}, {x, y}, mix, 0, sides}};
    }

    void take(const Fields& all, std::int64_t mesh) {
        const auto each = shape.x * shape.y * shape.z;
        u.assign(all.u.begin() + mesh * each, all.u.begin() + (mesh + 1) * each);
        source.assign(all.source.begin() + mesh * each, all.source.begin() + (mesh + 1) * each);
    }

    /// Of a mesh.
    double off(const Fields& expected, std::int64_t mesh) const {
        const auto each = static_cast<std::size_t>(shape.x * shape.y * shape.z), first = static_cast<std::size_t>(mesh) * each;
        return largest_difference(std::span(u).subspan(first, each), std::span(expected.u).subspan(first, each));
    }

    SweepOutcome run(Queue& queue, std::int64_t steps) {
        const AnyField fields[] = {Field<T>::packed(u.data(), shape, sides), Field<const T>::packed(source.data(), shape, plain)};
        return sweep(queue, {shape, fields, sweeps, parameters}, steps);
    }
};

/// With products of the right-hand side that neighbours have too.
inline const auto with_products = [](auto& fields) { fields.sweeps.front().rhs = weighted; };

}  // namespace trifold::tests
