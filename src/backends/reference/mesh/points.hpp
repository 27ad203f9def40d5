// SPDX-License-Identifier: BSD-3-Clause
// A point function at one point, its neighbours fetched one by one by the words of trifold/mesh.hpp.
#pragma once

#include <span>
#include <vector>

#include "problems/mesh/checked.hpp"

namespace trifold::mesh::reference {

/// f(i) of a line of n values beyond whose ends the sides count. `inside` gives f(0) … f(n-1).
template <class T, class Inside>
T beyond(const Sides& sides, std::int64_t n, std::int64_t i, Inside inside) {
    if (i >= 0 && i < n) return inside(i);
    const Side& side = i < 0 ? sides.low : sides.high;
    if (side.edge == Edge::periodic) return beyond<T>(sides, n, i < 0 ? i + n : i - n, inside);
    const T mirrored = beyond<T>(sides, n, i < 0 ? -1 - i : 2 * n - 1 - i, inside);
    return side.edge == Edge::even ? mirrored : T(2 * side.value) - mirrored;
}

template <class T>
class Points {
public:
    /// solution: [mesh][z][y][x], or null.
    Points(const Checked& checked, const T* solution) : shape_(checked.problem->shape), parameters_(checked.problem->parameters.begin(), checked.problem->parameters.end()) {
        for (const AnyField& field : checked.problem->fields) fields_.push_back(field);
        fields_.push_back(Field<const T>::packed(solution, shape_));
    }

    T value(int field, std::int64_t mesh, std::int64_t x, std::int64_t y, std::int64_t z) const {
        const AnyField& f = fields_[static_cast<std::size_t>(field)];
        return beyond<T>(f.sides[2], shape_.z, z, [&](std::int64_t k) {
            return beyond<T>(f.sides[1], shape_.y, y, [&](std::int64_t j) {
                return beyond<T>(f.sides[0], shape_.x, x, [&](std::int64_t i) {
                    return static_cast<const T*>(f.data)[i * f.stride[0] + j * f.stride[1] + k * f.stride[2] + mesh * f.stride[3]];
                });
            });
        });
    }

    void evaluate(const PointFunction& function, const Access& access, std::int64_t mesh, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t step,
                  std::span<T> results) const {
        T values[(max_fields + 1) * rows_across * rows_across][rows_across];
        const T* rows[(max_fields + 1) * rows_across * rows_across] = {};
        for (int f = 0; f < access.fields; ++f)
            for (int row = 0; row < rows_across * rows_across; ++row) {
                const FieldAccess& read = access.field[static_cast<std::size_t>(f)];
                if (!(read.rows >> row & 1)) continue;
                const int at = f * rows_across * rows_across + row, dy = row % rows_across - max_reach, dz = row / rows_across - max_reach;
                const int along_x = read.along_x[static_cast<std::size_t>(row)];
                for (int dx = -along_x; dx <= along_x; ++dx) values[at][dx + max_reach] = value(f, mesh, x + dx, y + dy, z + dz);
                rows[at] = &values[at][max_reach];
            }
        T* out[3] = {};
        for (std::size_t k = 0; k < results.size(); ++k) out[k] = &results[k];
        const PointRows<T> call{rows, out, parameters_.data(), 1, x, y, z, mesh, step};
        if constexpr (sizeof(T) == 4) function.run_f32(call);
        else function.run_f64(call);
    }

private:
    MeshShape shape_;
    std::vector<T> parameters_;
    std::vector<AnyField> fields_;
};

}  // namespace trifold::mesh::reference
