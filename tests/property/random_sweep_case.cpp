// SPDX-License-Identifier: BSD-3-Clause
#include "property/random_sweep_case.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "support/random.hpp"

namespace trifold::tests {
namespace {

TRIFOLD_POINT_FUNCTION(star, {
    real u = at(0, 0, 0, 0);
    out(0) = p(0) * ((at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0))) + p(1) * ((at(0, 0, -1, 0) - u) - (u - at(0, 0, 1, 0))) + p(2) * ((at(0, 0, 0, -1) - u) - (u - at(0, 0, 0, 1)));
})
TRIFOLD_POINT_FUNCTION(flat_star, {
    real u = at(0, 0, 0, 0);
    out(0) = mad(p(0), (at(0, -1, 0, 0) - u) - (u - at(0, 1, 0, 0)), p(1) * ((at(0, 0, -1, 0) - u) - (u - at(0, 0, 1, 0))));
})
// Products that neighbours have too.
TRIFOLD_POINT_FUNCTION(weighted, {
    out(0) = p(0) * at(0, -1, 0, 0) + p(0) * at(0, 1, 0, 0) + p(1) * at(0, 0, -1, 0) + p(1) * at(0, 0, 1, 0) + p(2) * at(0, 0, 0, -1) + p(2) * at(0, 0, 0, 1) - p(0) * at(0, 0, 0, 0);
})
TRIFOLD_POINT_FUNCTION(heated, { out(0) = mad(p(1), at(0, 1, 0, 0) - at(0, 0, -1, 0), mad(p(2), at(2, 0, 0, 0), at(0, 0, 0, 0))); })
TRIFOLD_POINT_FUNCTION(diagonal, { out(0) = p(0) * at(0, -1, 1, 0) - p(1) * at(0, 1, 0, -1) + at(0, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(far, { out(0) = at(0, 0, 0, 0) + p(0) * (at(0, 2, -2, 0) - at(2, -2, 1, 0)); })
TRIFOLD_POINT_FUNCTION(placed, { out(0) = at(0, 0, 0, 0) * (x + 2 * y > z + mesh ? p(0) : p(1)) + p(2) * real(step) / 8; })
TRIFOLD_POINT_FUNCTION(divided, {
    real k = at(1, 0, 0, 0);
    real west = at(1, -1, 0, 0), east = at(1, 1, 0, 0);
    real south = at(1, 0, -1, 0), north = at(1, 0, 1, 0);
    real u = at(0, 0, 0, 0);
    out(0) = mad(2 * p(0), mad(west * (k / (west + k)), at(0, -1, 0, 0) - u, k * (east / (k + east)) * (at(0, 1, 0, 0) - u)),
             2 * p(1) * (south * (k / (south + k)) * (at(0, 0, -1, 0) - u) + k * (north / (k + north)) * (at(0, 0, 1, 0) - u)));
})
TRIFOLD_POINT_FUNCTION(add, { out(0) = at(0, 0, 0, 0) + at(3, 0, 0, 0); })
TRIFOLD_POINT_FUNCTION(mix, { out(0) = mad(p(3), at(2, 0, 0, 0), at(3, 0, 0, 0)); })
TRIFOLD_POINT_FUNCTION(relax, { out(0) = real(0.5) * at(0, 0, 0, 0) + real(0.5) * at(3, 0, 0, 0); })

TRIFOLD_POINT_FUNCTION(stretched_x, { out(0) = -real(0.3) / (1 + real(x)); out(2) = -real(0.2) / (2 + real(x)); out(1) = real(1.1) - out(0) - out(2); })
TRIFOLD_POINT_FUNCTION(stretched_y, { out(0) = -real(0.3) / (1 + real(y)); out(2) = -real(0.2) / (2 + real(y)); out(1) = real(1.1) - out(0) - out(2); })
TRIFOLD_POINT_FUNCTION(stretched_z, { out(0) = -real(0.3) / (1 + real(z)); out(2) = -real(0.2) / (2 + real(z)); out(1) = real(1.1) - out(0) - out(2); })
TRIFOLD_POINT_FUNCTION(varying_x, {
    real k = at(1, 0, 0, 0);
    out(0) = -p(0) * k * (at(1, -1, 0, 0) / (k + at(1, -1, 0, 0)));
    out(2) = -p(0) * k * (at(1, 1, 0, 0) / (k + at(1, 1, 0, 0)));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(varying_y, {
    real k = at(1, 0, 0, 0);
    out(0) = -p(1) * k * (at(1, 0, -1, 0) / (k + at(1, 0, -1, 0)));
    out(2) = -p(1) * k * (at(1, 0, 1, 0) / (k + at(1, 0, 1, 0)));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(varying_z, {
    real k = at(1, 0, 0, 0);
    out(0) = -p(2) * k * (at(1, 0, 0, -1) / (k + at(1, 0, 0, -1)));
    out(2) = -p(2) * k * (at(1, 0, 0, 1) / (k + at(1, 0, 0, 1)));
    out(1) = 1 - out(0) - out(2);
})
TRIFOLD_POINT_FUNCTION(moving, { out(0) = -p(0) * real(0.1) * real(step % 3); out(2) = -p(1) / 4; out(1) = real(1.2) - out(0) - out(2); })

struct Named {
    PointFunction function;
    const char* name;
    int reach = 0;  ///< points away along x or y
};

class Draw {
public:
    Draw(std::uint64_t seed, std::int64_t most) : random_(seed), most_(most) { case_.seed = seed; }

    SweepCase run() {
        case_.dtype = random_.chance(0.5) ? DType::f32 : DType::f64;
        case_.parameters = {random_.uniform(0.1, 0.6), random_.uniform(0.1, 0.6), random_.uniform(0.1, 0.6), random_.uniform(-0.2, 0.2)};
        const bool heat = random_.chance(0.5);
        shape(heat);
        sides(heat);
        layout();
        const int count = !heat && random_.chance(0.25) ? 2 : 1;
        for (int s = 0; s < count; ++s) sweep(heat);
        case_.steps = 1 + random_.below(4), case_.first_step = random_.chance(0.3) ? random_.below(5) : 0;
        case_.bad = random_.chance(0.1);
        return case_;
    }

private:
    std::int64_t between(std::int64_t low, std::int64_t high) { return low + random_.below(high - low + 1); }

    void shape(bool heat) {
        MeshShape& s = case_.shape;
        switch (random_.below(heat ? 6 : 5)) {
            case 0: s = {between(1, 20), between(1, 20), between(1, 12), between(1, 40)}; break;
            case 1: s = {between(16, 140), between(16, 140), between(8, 100), between(1, 12)}; break;
            case 2: s = {between(3, 600), between(3, 600), 1, between(1, 20)}; break;
            case 3: s = {8 * between(2, 16), 8 * between(2, 16), 4 * between(4, 20), between(1, 40)}; break;
            case 4: s = {between(2, 40), between(2, 300), between(1, 300), between(1, 4)}; break;
            default: s = {16 * between(4, 8), 16 * between(4, 8), 2 * between(12, 50), between(1, 30)}; break;
        }
        if (random_.chance(0.15)) std::swap(s.x, s.z);
        // As large as is wanted: the last axes give way.
        for (std::int64_t* const n : {&s.meshes, &s.z, &s.y, &s.x})
            while (s.points() > most_ && *n > 1) *n = (*n + 1) / 2;
    }

    Sides side(bool values) {
        if (random_.chance(0.3)) return {{Edge::periodic}, {Edge::periodic}};
        Sides both;
        for (Side* one : {&both.low, &both.high}) {
            one->edge = random_.chance(0.5) ? Edge::even : Edge::odd;
            if (values && one->edge == Edge::odd) one->value = random_.uniform(-1, 1);
        }
        if (random_.chance(0.5)) both.high.edge = both.low.edge, both.high.value = both.low.edge == Edge::odd ? both.high.value : 0;
        return both;
    }

    void sides(bool heat) {
        const bool lines = heat && random_.chance(0.5);  // no rings
        for (std::size_t axis = 0; axis < 3; ++axis) {
            do case_.sides[axis] = side(true);
            while (lines && case_.sides[axis].low.edge == Edge::periodic);
            if (case_.sides[axis].low.edge == Edge::periodic) case_.mirrored[axis] = case_.sides[axis];
        }
    }

    void layout() {
        const MeshShape& s = case_.shape;
        const std::int64_t row = s.x + (random_.chance(0.15) ? between(1, 5) : 0), plane = row * s.y, mesh = plane * s.z + (random_.chance(0.15) ? between(1, 9) : 0);
        case_.strides = {1, row, plane, mesh};
        case_.elements = mesh * s.meshes;
        if (random_.chance(0.1)) case_.strides = {s.y * s.z, s.z, 1, s.x * s.y * s.z}, case_.elements = s.points();
        case_.one_k = random_.chance(0.5), case_.one_source = random_.chance(0.5);
    }

    LineSolve line(int axis, int kind) {
        static const Named stretched[] = {{stretched_x, "stretched"}, {stretched_y, "stretched"}, {stretched_z, "stretched"}}, varying[] = {{varying_x, "varying"}, {varying_y, "varying"}, {varying_z, "varying"}};
        LineSolve one;
        one.axis = axis;
        const auto a = static_cast<std::size_t>(axis);
        std::string name = std::string(1, "xyz"[axis]);
        if (kind == 1) one.coefficients = stretched[a].function, one.same_on_every_line = true, name += " stretched";
        else if (kind == 2) one.coefficients = varying[a].function, name += " varying";
        else if (kind == 3) one.coefficients = moving, one.same_on_every_line = true, name += " moving";
        else {
            const double low = random_.uniform(-0.4, 0.4), high = random_.chance(0.6) ? low : random_.uniform(-0.4, 0.4);
            one.constant = {low, 1 + std::abs(low) + std::abs(high), high};
        }
        case_.names.push_back(name);
        return one;
    }

    void sweep(bool heat) {
        const MeshShape& s = case_.shape;
        Sweep one;
        std::vector<int> axes;
        for (int axis = 0; axis < 3; ++axis)
            if (s.along(axis) > 1 || random_.chance(0.05)) axes.push_back(axis);
        if (axes.empty()) axes.push_back(0);
        if (!heat) {
            for (std::size_t k = axes.size(); k > 1; --k) std::swap(axes[k - 1], axes[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(k)))]);
            if (random_.chance(0.3)) axes.resize(static_cast<std::size_t>(1 + random_.below(static_cast<std::int64_t>(axes.size()))));
        }
        one.solution = case_.sides;
        const bool plain = heat || random_.chance(0.6);
        for (Sides& axis : one.solution) {
            if (!heat && random_.chance(0.2)) axis = side(true);
            if (plain) axis.low.value = axis.high.value = 0;
        }
        const std::int64_t kind = random_.below(heat ? 8 : 6);
        for (const int axis : axes) one.lines.push_back(line(axis, kind == 1 ? 1 : kind == 2 ? 2 : kind == 3 && !heat ? static_cast<int>(random_.below(4)) : 0));
        if (heat) {
            const bool vary = kind == 2;
            one.rhs = vary ? PointFunction(divided) : s.z > 1 ? PointFunction(star) : PointFunction(flat_star), one.update = add;
            case_.names.push_back(vary ? "divided, add" : "star, add");
            if (!vary && s.z > 1 && random_.chance(0.3)) one.rhs = weighted, case_.names.back() = "weighted, add";
        } else {
            static const Named rights[] = {{{}, "no right-hand side"}, {heated, "heated"}, {weighted, "weighted"}, {diagonal, "diagonal"}, {far, "far", 2}, {placed, "placed"}, {divided, "divided"}};
            static const Named updates[] = {{{}, "no update"}, {add, "add"}, {mix, "mix"}, {relax, "relax"}};
            const Named* right = &rights[random_.below(7)];
            if (std::min(s.x, s.y) < right->reach) right = &rights[1];
            const Named& update = updates[random_.below(4)];
            one.rhs = right->function, one.update = update.function;
            case_.asks_mesh = case_.asks_mesh || right->function.name == placed.name;
            case_.names.push_back(std::string(right->name) + ", " + update.name + (plain ? "" : ", values"));
        }
        case_.sweeps.push_back(one);
    }

    Random random_;
    const std::int64_t most_;
    SweepCase case_;
};

}  // namespace

SweepCase draw_sweeps(std::uint64_t seed, std::int64_t most) { return Draw(seed, most).run(); }

std::string SweepCase::text() const {
    std::ostringstream out;
    const auto of = [](const Sides& axis) {
        const auto one = [](const Side& side) { return side.edge == Edge::periodic ? "ring" : side.edge == Edge::even ? "even" : "odd"; };
        return axis.low.edge == Edge::periodic ? std::string("ring") : std::string(one(axis.low)) + "/" + one(axis.high);
    };
    out << name_of(dtype) << ", " << shape.x << " x " << shape.y << " x " << shape.z << ", " << shape.meshes << " meshes, strides " << strides[0] << " " << strides[1] << " " << strides[2] << " " << strides[3] << ", sides "
        << of(sides[0]) << " " << of(sides[1]) << " " << of(sides[2]) << (one_k ? ", one k" : "") << (one_source ? ", one source" : "") << ", " << steps << " steps from " << first_step << (bad ? ", one NaN" : "");
    for (const Sweep& sweep : sweeps) out << "; solution " << of(sweep.solution[0]) << " " << of(sweep.solution[1]) << " " << of(sweep.solution[2]);
    for (const std::string& name : names) out << "; " << name;
    return out.str();
}

}  // namespace trifold::tests
