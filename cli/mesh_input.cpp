// SPDX-License-Identifier: BSD-3-Clause
#include "mesh_input.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/nearest.hpp"
#include "io/convert.hpp"
#include "io/npy.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts{""};
    for (const char c : text)
        if (c == at) parts.emplace_back();
        else parts.back() += c;
    return parts;
}

Edge edge_from(const std::string& name) {
    static constexpr std::string_view known[] = {"dirichlet", "neumann", "periodic"};
    if (name == known[0]) return Edge::odd;
    if (name == known[1]) return Edge::even;
    if (name == known[2]) return Edge::periodic;
    throw Error(ErrorCode::usage, "--boundary", "unknown kind '" + name + "'", nearest_hint(name, known));
}

Side side_from(const std::string& text) {
    const std::size_t colon = text.find(':');
    Side side{edge_from(text.substr(0, colon)), 0};
    if (colon == std::string::npos) return side;
    const std::string value = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), side.value);
    if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(side.value))
        throw Error(ErrorCode::usage, "--boundary", "'" + value + "' is no number", "write for example x-=dirichlet:1.5");
    if (side.edge != Edge::odd) throw Error(ErrorCode::usage, "--boundary", "'" + text + "': only dirichlet sides have a value");
    return side;
}

template <class T>
std::int64_t first_not_finite(const io::Array& array) {
    const T* const values = array.as<T>();
    const std::int64_t count = array.shape().elements();
    for (std::int64_t i = 0; i < count; ++i)
        if (!std::isfinite(values[i])) return i;
    return -1;
}

std::uint64_t mixed(std::uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Each mesh of a batch differs a little, so that a mix-up shows.
double initial_value(const std::string& name, const MeshShape& shape, std::int64_t m, double x, double y, double z, std::uint64_t point) {
    const double own = 1 + 0.1 * static_cast<double>(m % 10);
    if (name == "mode") {
        double value = own;
        if (shape.x > 1) value *= std::sin(std::numbers::pi * x);
        if (shape.y > 1) value *= std::sin(std::numbers::pi * y);
        if (shape.z > 1) value *= std::sin(std::numbers::pi * z);
        return value;
    }
    if (name == "spot") {
        const auto square = [](double d) { return d * d; };
        const double distance = square(x - 0.35) + (shape.y > 1 ? square(y - 0.6) : 0) + (shape.z > 1 ? square(z - 0.45) : 0);
        return own * std::exp(-60 * distance);
    }
    return static_cast<double>(mixed(point) >> 11) * 0x1p-53;  // random
}

template <class T>
void fill(const std::string& name, const MeshShape& shape, T* to) {
    const auto centre = [](std::int64_t i, std::int64_t n) { return (static_cast<double>(i) + 0.5) / static_cast<double>(n); };
#pragma omp parallel for collapse(3) schedule(static)
    for (std::int64_t m = 0; m < shape.meshes; ++m)
        for (std::int64_t k = 0; k < shape.z; ++k)
            for (std::int64_t j = 0; j < shape.y; ++j)
                for (std::int64_t i = 0; i < shape.x; ++i) {
                    const std::int64_t point = ((m * shape.z + k) * shape.y + j) * shape.x + i;
                    to[point] = static_cast<T>(initial_value(name, shape, m, centre(i, shape.x), centre(j, shape.y), centre(k, shape.z), static_cast<std::uint64_t>(point)));
                }
}

}  // namespace

MeshShape mesh_from(const std::string& text, std::int64_t meshes) {
    const std::vector<std::string> parts = split(text, 'x');
    std::int64_t extent[3] = {1, 1, 1};
    bool good = parts.size() >= 1 && parts.size() <= 3;
    for (std::size_t k = 0; good && k < parts.size(); ++k) {
        const auto [end, error] = std::from_chars(parts[k].data(), parts[k].data() + parts[k].size(), extent[k]);
        good = error == std::errc() && end == parts[k].data() + parts[k].size() && !parts[k].empty();
        if (good && extent[k] < 3) throw Error(ErrorCode::usage, "--mesh", std::to_string(extent[k]) + " cells along " + "xyz"[k], "a mesh has at least 3 cells along each axis");
    }
    if (!good) throw Error(ErrorCode::usage, "--mesh", "'" + text + "' is no mesh", "write for example 128x128 or 96x96x96");
    MeshShape shape{extent[0], extent[1], extent[2], meshes};
    std::int64_t points = meshes;
    for (const std::int64_t n : extent)
        if (__builtin_mul_overflow(points, n, &points) || points > std::int64_t{1} << 58)
            throw Error(ErrorCode::usage, "--mesh", "'" + text + "' has more cells than can be counted");
    return shape;
}

std::array<Sides, 3> sides_from(const std::string& text, const MeshShape& shape) {
    std::array<Sides, 3> sides;
    for (Sides& axis : sides) axis.low.edge = axis.high.edge = Edge::odd;
    if (text.find('=') == std::string::npos) {
        for (Sides& axis : sides) axis.low = axis.high = side_from(text);
        return sides;
    }
    bool named[3][2] = {};
    for (const std::string& one : split(text, ',')) {
        const std::size_t equals = one.find('=');
        const std::string name = one.substr(0, equals);
        static constexpr std::string_view known[] = {"x", "y", "z", "x-", "x+", "y-", "y+", "z-", "z+"};
        const auto at = std::find(std::begin(known), std::end(known), name) - std::begin(known);
        if (equals == std::string::npos || at == 9) throw Error(ErrorCode::usage, "--boundary", "'" + one + "' is no side", "write for example x-=dirichlet:1,x+=neumann,y=periodic");
        const Side side = side_from(one.substr(equals + 1));
        const std::size_t axis = static_cast<std::size_t>(at < 3 ? at : (at - 3) / 2);
        if (shape.along(static_cast<int>(axis)) == 1)
            throw Error(ErrorCode::usage, "--boundary", "'" + one + "': the mesh has no " + name[0] + " axis", "name sides of the axes that --mesh gives");
        for (const int high : {0, 1}) {
            if (at >= 3 && at % 2 == high) continue;  // x- is 3, x+ is 4
            if (named[axis][high]) throw Error(ErrorCode::usage, "--boundary", std::string("side ") + name[0] + (high ? '+' : '-') + " is named twice", "name each side once");
            named[axis][high] = true;
            (high ? sides[axis].high : sides[axis].low) = side;
        }
    }
    for (std::size_t axis = 0; axis < 3; ++axis)
        if ((sides[axis].low.edge == Edge::periodic) != (sides[axis].high.edge == Edge::periodic))
            throw Error(ErrorCode::usage, "--boundary", std::string("one side of ") + "xyz"[axis] + " is periodic and the other is not", std::string("write ") + "xyz"[axis] + "=periodic");
    return sides;
}

io::Shape array_shape(const MeshShape& shape, DType dtype) {
    io::Shape array{dtype, {}};
    if (shape.meshes > 1) array.extents.push_back(shape.meshes);
    if (shape.z > 1) array.extents.push_back(shape.z);
    if (shape.y > 1 || shape.z > 1) array.extents.push_back(shape.y);
    array.extents.push_back(shape.x);
    return array;
}

io::Array field_from(const std::string& path, const MeshShape& shape, DType dtype, bool batch) {
    io::Array array = io::load_npy(path);
    MeshShape due = shape;
    if (!batch) due.meshes = 1;
    const io::Shape expected = array_shape(due, dtype);
    if (array.shape().extents != expected.extents)
        throw Error(ErrorCode::bad_input, path, "is " + array.shape().text() + " where " + expected.text() + " is due", "the mesh is x by y by z; an array's indices are mesh, z, y, x");
    array = io::in_c_order(std::move(array), path);
    const std::int64_t bad = array.dtype() == DType::f32 ? first_not_finite<float>(array) : first_not_finite<double>(array);
    if (bad >= 0)
        throw Error(ErrorCode::bad_input, path, "not finite at x = " + std::to_string(bad % due.x) + ", y = " + std::to_string(bad / due.x % due.y) + ", z = " +
                                                    std::to_string(bad / (due.x * due.y) % due.z), "mend the array and save it anew");
    return array.dtype() == dtype ? std::move(array) : io::converted(array, dtype, true, path);
}

const std::vector<std::string>& initial_names() {
    static const std::vector<std::string> names{"spot", "mode", "random"};
    return names;
}

void make_initial(const std::string& name, const MeshShape& shape, const io::Array& to) {
    if (to.dtype() == DType::f32) fill(name, shape, to.as<float>());
    else fill(name, shape, to.as<double>());
}

}  // namespace trifold::cli
