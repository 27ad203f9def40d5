// SPDX-License-Identifier: BSD-3-Clause
#include "problems/tridiagonal/normalise.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "problems/tridiagonal/overlap.hpp"
#include "problems/tridiagonal/read_rows.hpp"

namespace trifold::tridiagonal {
namespace {

[[noreturn]] void misuse(const std::string& where, const std::string& message, const std::string& hint = {}) {
    throw Error(ErrorCode::usage, where, message, hint);
}

std::string shape_text(const AnyView& view) {
    std::string text = "(";
    for (int d = 0; d < view.batch_dims; ++d) text += std::to_string(view.batch[d].extent) + ", ";
    return text + std::to_string(view.axis.extent) + " rows)";
}

// The user's dimensions and, per dimension, the stride of every operand: merged and sorted only at the end.
struct Dims {
    int count = 0;
    std::int64_t extent[max_batch_dims] = {};
    const char* whose = "rhs";  // who decides them, and the rows and the type
};

// Beyond every address space, and with room for what is computed from it.
constexpr std::int64_t most_elements = std::int64_t{1} << 53;

/// One line of rows that is far from every limit, as small systems are.
bool is_short_line(const AnyView& view) {
    constexpr std::int64_t most = std::int64_t{1} << 26;
    const auto near = [](std::int64_t value) { return static_cast<std::uint64_t>(value) + most <= 2 * most; };
    return view.batch_dims == 0 && view.data && view.axis.extent >= 0 && near(view.axis.extent) && near(view.axis.stride) &&
           (reinterpret_cast<std::uintptr_t>(view.data) & (size_of(view.dtype) - 1)) == 0;
}

void check_any_view(const char* name, const AnyView& view) {
    if (view.batch_dims < 0 || view.batch_dims > max_batch_dims)
        misuse(name, std::to_string(view.batch_dims) + " batch dimensions", "at most 4 are supported");
    std::int64_t count = view.axis.extent;
    bool negative = count < 0, overflow = false;
    for (int d = 0; d < view.batch_dims; ++d) {
        negative = negative || view.batch[d].extent < 0;
        overflow = overflow || __builtin_mul_overflow(count, view.batch[d].extent, &count);
    }
    if (negative) misuse(name, "a negative extent in " + shape_text(view));
    if (overflow || count > most_elements) misuse(name, "more than 2^53 elements in " + shape_text(view));
    std::int64_t reach = 0;
    const auto reaches = [&](const Dim& dim) {
        if (dim.extent <= 1) return;
        std::int64_t far = 0, sum = 0;
        const bool fits = dim.stride != INT64_MIN && !__builtin_mul_overflow(std::llabs(dim.stride), dim.extent - 1, &far) && !__builtin_add_overflow(reach, far, &sum);
        if (!fits || sum > most_elements) misuse(name, "elements " + std::to_string(dim.stride) + " apart in " + shape_text(view) + ", beyond every address", "strides count elements");
        reach = sum;
    };
    if (count > 0) {
        reaches(view.axis);
        for (int d = 0; d < view.batch_dims; ++d) reaches(view.batch[d]);
    }
    if (!view.data && count > 0) misuse(name, "no memory (null pointer) for " + shape_text(view));
    if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype))
        misuse(name, std::string("an address that is not a multiple of the size of ") + name_of(view.dtype));
}

void check_view(const char* name, const AnyView& view) {
    if (!is_short_line(view)) check_any_view(name, view);
}

void check_memory(const Problem& problem, Memory device) {
    const auto refuse = [device](const char* name, const AnyView& view) {
        const std::string lies = "memory of device " + std::to_string(view.memory.index);
        if (device.kind == MemoryKind::device)
            misuse(name, lies + " where the queue's device is number " + std::to_string(device.index), "copy it there, or take a Queue on its own device");
        misuse(name, lies + " where host memory is due", "copy it to the host, or take a Queue on its own device");
    };
    const auto check = [&](const char* name, const AnyView& view) {
        if (view.memory.kind == MemoryKind::device && view.memory != device) refuse(name, view);
    };
    check("rhs", problem.rhs);
    check("x", problem.x);
    const std::pair<const char*, const Coefficient*> matrix[] = {
        {"lower", &problem.matrix.lower}, {"diag", &problem.matrix.diag}, {"upper", &problem.matrix.upper}};
    for (const auto& [name, coefficient] : matrix)
        if (const AnyView* view = std::get_if<AnyView>(coefficient)) check(name, *view);
}

// `shift`: the operand's row i is the coefficient's row i + shift (transposition); `packed_front`: a packed array starts with row 1.
void set_operand(Operand& result, const char* name, const Coefficient& coefficient, DType dtype, std::int64_t rows, const Dims& dims, bool periodic,
                 bool packs, bool packed_front, std::int64_t shift) {
    if (const double* value = std::get_if<double>(&coefficient)) {
        result.kind = Operand::Kind::scalar;
        result.value = *value;
        return;
    }
    if (const Generator* generator = std::get_if<Generator>(&coefficient)) {
        const bool given = dtype == DType::f32 ? generator->fill_f32 != nullptr : generator->fill_f64 != nullptr;
        if (!given) misuse(name, std::string("the generator has no function for ") + name_of(dtype));
        result.kind = Operand::Kind::generator;
        result.generator = generator;
        result.generator_shift = shift;
        return;
    }
    const AnyView& view = std::get<AnyView>(coefficient);
    check_view(name, view);
    if (view.dtype != dtype)
        misuse(name, std::string("type ") + name_of(view.dtype) + " where " + dims.whose + " has " + name_of(dtype), "use one type for all arrays");
    const bool packed = packs && rows > 0 && view.axis.extent == rows - 1;
    if (view.axis.extent != rows && !packed)
        misuse(name, std::to_string(view.axis.extent) + " rows where " + dims.whose + " has " + std::to_string(rows),
               packs ? "give n rows, or n-1 as LAPACK does" : "give as many rows");
    if (packed && periodic)
        misuse(name, "a packed array of n-1 rows in a periodic system", "give n rows: the first of lower and the last of upper are the corners");
    if (view.batch_dims != 0 && view.batch_dims != dims.count)
        misuse(name, std::to_string(view.batch_dims) + " batch dimensions where " + dims.whose + " has " + std::to_string(dims.count),
               "give the same batch dimensions (stride 0 shares), or none for one matrix that all systems share");
    result.kind = Operand::Kind::view;
    result.row_stride = view.axis.stride;
    for (int d = 0; d < view.batch_dims; ++d) {
        if (view.batch[d].extent != dims.extent[d] && view.batch[d].extent != 1)
            misuse(name, "extent " + std::to_string(view.batch[d].extent) + " in batch dimension " + std::to_string(d) + " where " + dims.whose + " has " +
                             std::to_string(dims.extent[d]));
        result.level_stride[d] = view.batch[d].extent == 1 ? 0 : view.batch[d].stride;
    }
    const std::int64_t offset = (shift - (packed && packed_front ? 1 : 0)) * view.axis.stride;
    result.data = static_cast<char*>(view.data) + offset * static_cast<std::int64_t>(size_of(dtype));
}

Operand at_row(Operand operand, std::int64_t row, DType dtype) {
    if (operand.kind == Operand::Kind::view)
        operand.data = static_cast<char*>(operand.data) + row * operand.row_stride * static_cast<std::int64_t>(size_of(dtype));
    else if (operand.kind == Operand::Kind::generator)
        operand.generator_shift += row;
    return operand;
}

void fill_matrix(System& system, const Matrix& matrix, const Dims& dims) {
    const DType dtype = system.dtype;
    const std::int64_t n = system.rows;
    // Row i of the transpose has upper[i-1] below and lower[i+1] above the diagonal.
    const int turn = matrix.transposed ? 1 : 0;
    Operand &lower = matrix.transposed ? system.upper : system.lower, &upper = matrix.transposed ? system.lower : system.upper;
    set_operand(lower, "lower", matrix.lower, dtype, n, dims, matrix.periodic, true, true, turn);
    set_operand(upper, "upper", matrix.upper, dtype, n, dims, matrix.periodic, true, false, -turn);
    set_operand(system.diag, "diag", matrix.diag, dtype, n, dims, matrix.periodic, false, false, 0);
    system.periodic = matrix.periodic;
    if (!matrix.periodic) {
        // One row couples to nothing: an array of couplings may be empty (packed), a number infinite.
        if (n == 1) system.lower = system.upper = Operand{};
        return;
    }
    // In both cases row 0's neighbour across the end is what the shifted lower reads at row 0, and likewise at the last row:
    // plain: lower[0], upper[n-1]; transposed: upper[n-1], lower[0].
    system.top_right = matrix.transposed ? at_row(upper, n, dtype) : lower;
    system.bottom_left = matrix.transposed ? at_row(lower, -1, dtype) : at_row(upper, n - 1, dtype);
}

void set_levels(System& system, const Dims& dims) {
    std::int64_t weight = 1;
    system.levels = dims.count;
    for (int d = dims.count - 1; d >= 0; --d) {
        system.extent[d] = dims.extent[d];
        system.number_stride[d] = weight, weight *= dims.extent[d];
    }
    order_levels(system);
}

void set_array(Operand& result, const AnyView& view) {
    result.kind = Operand::Kind::view;
    result.data = view.data;
    result.row_stride = view.axis.stride;
    for (int d = 0; d < view.batch_dims; ++d) result.level_stride[d] = view.batch[d].stride;
}

void check_offsets(const Problem& problem, System& system) {
    const auto offsets = problem.offsets;
    if (problem.rhs.batch_dims != 0)
        misuse("offsets", "a ragged batch with batch dimensions", "give one-dimensional arrays that hold the systems one after the other");
    const std::int64_t rows = problem.rhs.axis.extent;
    std::int64_t longest = 0;
    for (std::size_t k = 0; k < offsets.size(); ++k) {
        if (offsets[k] < 0 || offsets[k] > rows)
            misuse("offsets[" + std::to_string(k) + "]", std::to_string(offsets[k]) + " is outside 0 … " + std::to_string(rows));
        if (k && offsets[k] < offsets[k - 1])
            misuse("offsets[" + std::to_string(k) + "]", std::to_string(offsets[k]) + " is below its predecessor " + std::to_string(offsets[k - 1]));
        if (k) longest = std::max(longest, offsets[k] - offsets[k - 1]);
    }
    system.offsets = offsets.data();
    system.ragged_systems = static_cast<std::int64_t>(offsets.size()) - 1;
    system.rows = longest;
}

struct NamedCoefficient {
    const char* name;
    Array array;
    const Coefficient* coefficient;
};
std::array<NamedCoefficient, 3> matrix_of(const Problem& problem) {
    return {{{"lower", Array::lower, &problem.matrix.lower}, {"diag", Array::diag, &problem.matrix.diag}, {"upper", Array::upper, &problem.matrix.upper}}};
}

bool same_strides(const AnyView& a, const AnyView& b) {
    bool same = a.axis.stride == b.axis.stride || a.axis.extent <= 1;
    for (int d = 0; d < a.batch_dims; ++d) same = same && (a.batch[d].stride == b.batch[d].stride || a.batch[d].extent <= 1);
    return same;
}

void check_aliasing(const Problem& problem, System& system) {
    if (overlaps_itself(problem.x))
        misuse("x", "two of its elements are the same memory " + shape_text(problem.x), "an output needs distinct elements: no zero strides");
    const bool same = problem.x.data == problem.rhs.data && same_strides(problem.x, problem.rhs);
    if (same && problem.accumulate) misuse("x", "is rhs in a solve that adds to x", "give x memory of its own");
    const Stretch written = stretch_of(problem.x);
    const auto overlaps_x = [&](Array array, const AnyView& view) { return written.meets(stretch_of(view)) && read_where_x_is_written(problem, array, view); };
    if (same) system.in_place = true;
    else if (overlaps_x(Array::rhs, problem.rhs))
        misuse("x", "overlaps rhs", "give the same memory with the same strides (in place), or memory of its own");
    for (const auto& [name, array, coefficient] : matrix_of(problem))
        if (const AnyView* view = std::get_if<AnyView>(coefficient); view && overlaps_x(array, *view))
            misuse("x", std::string("overlaps ") + name, "the matrix is read while x is written: give x memory of its own");
}

}  // namespace

System normalise(const Problem& problem, Memory device) {
    const AnyView &rhs = problem.rhs, &x = problem.x;
    check_memory(problem, device);
    check_view("rhs", rhs);
    check_view("x", x);
    if (!x.writable) misuse("x", x.data || rhs.axis.extent == 0 ? "a read-only view" : "no view was given", "give a View<double> or View<float>");
    if (x.dtype != rhs.dtype)
        misuse("x", std::string("type ") + name_of(x.dtype) + " where rhs has " + name_of(rhs.dtype), "use one type for all arrays");
    bool same_shape = x.axis.extent == rhs.axis.extent && x.batch_dims == rhs.batch_dims;
    for (int d = 0; same_shape && d < rhs.batch_dims; ++d) same_shape = x.batch[d].extent == rhs.batch[d].extent;
    if (!same_shape) misuse("x", "shape " + shape_text(x) + " where rhs has " + shape_text(rhs));

    System system;
    system.dtype = rhs.dtype;
    system.rows = rhs.axis.extent;
    system.accumulate = problem.accumulate;
    Dims dims;
    dims.count = rhs.batch_dims;
    for (int d = 0; d < rhs.batch_dims; ++d) dims.extent[d] = rhs.batch[d].extent;
    set_array(system.rhs, rhs);
    set_array(system.x, x);
    const bool ragged = problem.offsets.data() != nullptr;
    if (ragged && problem.offsets.empty()) misuse("offsets", "no entries", "systems + 1 of them are due");
    fill_matrix(system, problem.matrix, dims);
    if (ragged) {
        // The corners of a piece are found from its own first and last row (system_at).
        const int turn = problem.matrix.transposed ? 1 : 0;
        if (problem.matrix.periodic && turn)
            misuse("transposed", "a ragged batch of periodic systems", "swap lower and upper yourself: each piece has its own corners");
        system.top_right = system.lower;
        system.bottom_left = system.upper;
        check_offsets(problem, system);
    } else {
        set_levels(system, dims);
    }
    check_aliasing(problem, system);
    return system;
}

void check_workspace(const Problem& problem, const Workspace& workspace) {
    if (!workspace.data || workspace.bytes < sizeof(float)) return;
    AnyView scratch;
    scratch.data = workspace.data;
    // Of another type than the array, so that all between its first and last element counts.
    const auto check = [&](const char* name, const AnyView& view) {
        scratch.dtype = view.dtype == DType::f32 ? DType::f64 : DType::f32;
        scratch.axis = {static_cast<std::int64_t>(std::max<std::size_t>(workspace.bytes / size_of(scratch.dtype), 1)), 1};
        if (overlap(scratch, view)) misuse("Options::workspace", std::string("lies over ") + name, "give it memory of its own");
    };
    check("x", problem.x);
    check("rhs", problem.rhs);
    for (const auto& [name, array, coefficient] : matrix_of(problem))
        if (const AnyView* view = std::get_if<AnyView>(coefficient)) check(name, read_rows(problem, array, *view));
}

System normalise(const Matrix& matrix, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype, Memory device) {
    if (rows < 0) misuse("rows", std::to_string(rows) + " rows");
    if (batch.size() > max_batch_dims) misuse("batch", std::to_string(batch.size()) + " dimensions", "at most 4 are supported");
    Problem alone;
    alone.matrix = matrix;
    check_memory(alone, device);
    System system;
    system.dtype = dtype;
    system.rows = rows;
    Dims dims;
    dims.whose = "the factor";
    std::int64_t stride = rows;
    dims.count = static_cast<int>(batch.size());
    system.rhs.kind = system.x.kind = Operand::Kind::view;
    system.rhs.row_stride = system.x.row_stride = 1;
    for (int d = dims.count - 1; d >= 0; --d) {
        if (batch[d] < 0) misuse("batch", "a negative extent");
        dims.extent[d] = batch[d];
        system.rhs.level_stride[d] = system.x.level_stride[d] = stride;
        if (__builtin_mul_overflow(stride, batch[d], &stride) || stride > most_elements) misuse("batch", "more than 2^53 elements");
    }
    if (rows > most_elements) misuse("rows", std::to_string(rows) + " rows", "at most 2^53 can be counted");
    fill_matrix(system, matrix, dims);
    set_levels(system, dims);
    return system;
}

const char* layout_name(const System& system) noexcept {
    if (system.offsets) return "ragged";
    if (system.rhs.row_stride == 1) return "contiguous";
    if (system.levels > 0 && system.rhs.level_stride[system.levels - 1] == 1) return "interleaved";
    return "strided";
}

double needed_bytes(const System& system) noexcept {
    double words = 0;
    const double rows = static_cast<double>(system.rows);
    double all = rows * static_cast<double>(system.systems());
    if (system.offsets) all = static_cast<double>(system.offsets[system.ragged_systems] - system.offsets[0]);
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper}) {
        if (operand->kind != Operand::Kind::view) continue;
        double distinct = system.offsets ? all : operand->row_stride ? rows : 1;
        for (int d = 0; d < system.levels; ++d)
            if (operand->level_stride[d] != 0) distinct *= static_cast<double>(system.extent[d]);
        words += distinct;
    }
    words += all * (system.accumulate ? 3 : 2);
    return words * static_cast<double>(size_of(system.dtype));
}

}  // namespace trifold::tridiagonal
