// SPDX-License-Identifier: BSD-3-Clause
// Point functions over whole rows of points, on the host: rows that lie as the function wants them are read where they are; those
// that it follows beyond the sides, and mirrored and strided ones, are copied first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "problems/mesh/checked.hpp"

namespace trifold::mesh {

/// Where a value beyond the sides of an axis comes from: sign × f(index) + offset.
template <class T>
struct Mirrored {
    std::int64_t index;
    T sign = 1, offset = 0;

    Mirrored(const Sides& sides, std::int64_t n, std::int64_t i) : index(i) {
        while (index < 0 || index >= n) {
            const Side& side = index < 0 ? sides.low : sides.high;
            if (side.edge == Edge::periodic) {
                index += index < 0 ? n : -n;
                continue;
            }
            if (side.edge == Edge::odd) offset += sign * T(2 * side.value), sign = -sign;
            index = index < 0 ? -1 - index : 2 * n - 1 - index;
        }
    }

    bool as_it_is() const noexcept { return sign == T(1) && offset == T(0); }
    T operator()(T value) const noexcept { return sign * value + offset; }
};

/// One thread's. Buffers are allocated once.
template <class T>
class MeshRows {
public:
    /// At most `longest` points per call.
    MeshRows(const Checked& checked, std::int64_t longest)
        : shape_(checked.problem->shape), fields_(checked.problem->fields.begin(), checked.problem->fields.end()),
          parameters_(checked.problem->parameters.begin(), checked.problem->parameters.end()), pitch_((longest + max_reach + line - 1) / line * line + line) {
        const auto most = [](const Access& access) {
            int rows = 0;
            for (const FieldAccess& field : access.field) rows += __builtin_popcount(field.rows);
            return rows;
        };
        int rows = 0;
        for (const CheckedSweep& sweep : checked.sweeps) {
            rows = std::max({rows, most(sweep.rhs), most(sweep.update)});
            for (const Access& access : sweep.coefficients) rows = std::max(rows, most(access));
        }
        buffer_.resize(static_cast<std::size_t>(rows * pitch_ + line));
        for (const AnyField& field : fields_) {
            for (int k = 0; k < max_reach; ++k) beyond_.push_back({field.sides[0], shape_.x, k - max_reach});
            for (int k = 0; k < max_reach; ++k) beyond_.push_back({field.sides[0], shape_.x, shape_.x + k});
        }
    }

    /// Points x … x + count - 1 of row (mesh, z, y). solution: of these points, for updates. out: one row per result.
    void run(const PointFunction& function, const Access& access, std::int64_t mesh, std::int64_t z, std::int64_t y, std::int64_t x, std::int64_t count,
             std::int64_t step, const T* solution, const std::array<T*, 3>& out) {
        if (goes_on(access, mesh, z, y))
            for (int k = 0; k < found_; ++k) row_[k].from += row_[k].field->stride[1];
        else find_rows(access, mesh, z, y);
        last_ = {&access, mesh, z, y};
        gather(x, count);
        if (solution) rows_[solution_row()] = solution;
        const PointRows<T> call{rows_, out.data(), parameters_.data(), count, x, y, z, mesh, step};
        if constexpr (sizeof(T) == 4) function.run_f32(call);
        else function.run_f64(call);
    }

    /// Field f at points x … x + count - 1 of a row inside the mesh.
    void copy(int f, std::int64_t mesh, std::int64_t z, std::int64_t y, std::int64_t x, std::int64_t count, T* to) const {
        const AnyField& field = fields_[static_cast<std::size_t>(f)];
        const T* const from = row_of(field, mesh, z, y) + x * field.stride[0];
        if (field.stride[0] == 1) std::copy_n(from, count, to);
        else
            for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * field.stride[0]];
    }

private:
    // A copied row has its first point on a line of the cache, so that two of the three loads along it at most lie in two of them.
    static constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    static_assert(max_reach <= line);

    T* first_line() {
        const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(buffer_.data()) % 64 / sizeof(T));
        return buffer_.data() + (line - behind) % line;
    }

    static const T* row_of(const AnyField& field, std::int64_t mesh, std::int64_t z, std::int64_t y) {
        return static_cast<const T*>(field.data) + mesh * field.stride[3] + z * field.stride[2] + y * field.stride[1];
    }

    // A row that is read: where it lies, and what becomes of its values.
    struct Row {
        int number, slot, along_x;
        const AnyField* field;
        const T* from;
        T sign_y, offset_y, sign_z, offset_z;
        bool as_it_is;
    };

    int solution_row() const { return static_cast<int>(fields_.size()) * rows_across * rows_across + max_reach * rows_across + max_reach; }

    // The row after the last call's, in the same plane, and no side along y within reach of either: everything lies one row on.
    bool goes_on(const Access& access, std::int64_t mesh, std::int64_t z, std::int64_t y) const {
        return last_.access == &access && last_.mesh == mesh && last_.z == z && last_.y + 1 == y && y > max_reach && y + max_reach < shape_.y;
    }

    void find_rows(const Access& access, std::int64_t mesh, std::int64_t z, std::int64_t y) {
        found_ = 0;
        for (int f = 0; f < std::min(access.fields, static_cast<int>(fields_.size())); ++f) {
            const FieldAccess& read = access.field[static_cast<std::size_t>(f)];
            const AnyField& field = fields_[static_cast<std::size_t>(f)];
            for (unsigned rest = read.rows; rest; rest &= rest - 1) {
                const int row = __builtin_ctz(rest);
                const Mirrored<T> at_z(field.sides[2], shape_.z, z + row / rows_across - max_reach), at_y(field.sides[1], shape_.y, y + row % rows_across - max_reach);
                row_[found_++] = {f, f * rows_across * rows_across + row, read.along_x[static_cast<std::size_t>(row)], &field, row_of(field, mesh, at_z.index, at_y.index), at_y.sign, at_y.offset, at_z.sign, at_z.offset,
                                  field.stride[0] == 1 && at_z.as_it_is() && at_y.as_it_is()};
            }
        }
    }

    void gather(std::int64_t x, std::int64_t count) {
        T* free = first_line();
        for (int k = 0; k < found_; ++k) {
            const Row& row = row_[k];
            if (row.as_it_is && x >= row.along_x && x + count + row.along_x <= shape_.x) {
                rows_[row.slot] = row.from + x;
                continue;
            }
            const std::int64_t stride = row.field->stride[0], low = std::max<std::int64_t>(x - row.along_x, 0), high = std::min(x + count + row.along_x, shape_.x);
            T* const to = free + line - x;
            const auto value = [sign_y = row.sign_y, offset_y = row.offset_y, sign_z = row.sign_z, offset_z = row.offset_z](T v) { return sign_z * (sign_y * v + offset_y) + offset_z; };
            const auto outside = [&](std::int64_t i) {
                const Mirrored<T>& at_x = beyond_[static_cast<std::size_t>(row.number * 2 * max_reach + (i < 0 ? i + max_reach : i - shape_.x + max_reach))];
                const T v = at_x(row.from[at_x.index * stride]);
                to[i] = row.as_it_is ? v : value(v);
            };
            for (std::int64_t i = x - row.along_x; i < low; ++i) outside(i);
            if (row.as_it_is) std::copy(row.from + low, row.from + high, to + low);
            else if (stride == 1) std::transform(row.from + low, row.from + high, to + low, value);
            else
                for (std::int64_t i = low; i < high; ++i) to[i] = value(row.from[i * stride]);
            for (std::int64_t i = high; i < x + count + row.along_x; ++i) outside(i);
            rows_[row.slot] = free + line;
            free += pitch_;
        }
    }

    MeshShape shape_;
    std::vector<AnyField> fields_;
    std::vector<T> parameters_;
    std::int64_t pitch_;
    std::vector<T> buffer_;
    std::vector<Mirrored<T>> beyond_;  // along x, of every field: max_reach points before the first and after the last
    struct {
        const Access* access = nullptr;
        std::int64_t mesh = 0, z = 0, y = 0;
    } last_;
    Row row_[max_fields * rows_across * rows_across];
    int found_ = 0;
    const T* rows_[(max_fields + 1) * rows_across * rows_across] = {};
};

}  // namespace trifold::mesh
