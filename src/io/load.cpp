// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "io/convert.hpp"
#include "io/generators/generator.hpp"
#include "io/npz.hpp"
#include "io/tridiagonal_data.hpp"
#include "trifold/error.hpp"

namespace trifold::io {
namespace {

constexpr std::string_view array_names[] = {"lower", "diag", "upper", "rhs"};

std::string at(const std::string& file, std::string_view array) {
    return file + ", array '" + std::string(array) + "'";
}

[[noreturn]] void wrong(const TridiagonalData& data, std::string_view array, const std::string& what,
                        const std::string& hint) {
    throw Error(ErrorCode::bad_input, at(data.name, array), what, hint);
}

void settle_axis(TridiagonalData& data, int axis) {
    const Shape& rhs = data.rhs.shape();
    const int dims = data.rhs.dims();
    if (dims < 1 || dims > max_batch_dims + 1)
        wrong(data, "rhs", rhs.text() + " has " + std::to_string(dims) + " dimensions", "give it 1 to 5");
    data.axis = axis < 0 ? axis + dims : axis;
    if (data.axis < 0 || data.axis >= dims)
        throw Error(ErrorCode::usage, "--axis " + std::to_string(axis), "rhs is " + rhs.text(),
                    "use an axis from " + std::to_string(-dims) + " to " + std::to_string(dims - 1));
}

// Does `array` fit along `axis`? Packed arrays (n-1 rows) do where `packs`.
bool fits(const Shape& array, const Shape& rhs, int axis, bool packs) {
    const std::size_t dims = array.extents.size();
    const auto rows_fit = [&](std::int64_t rows) {
        const std::int64_t n = rhs.extents[axis];
        return rows == n || (packs && n > 0 && rows == n - 1);
    };
    if (dims == 0) return true;
    if (dims == 1) return rows_fit(array.extents[0]);
    if (dims != rhs.extents.size()) return false;
    for (int d = 0; d < static_cast<int>(dims); ++d)
        if (d == axis ? !rows_fit(array.extents[d]) : array.extents[d] != rhs.extents[d] && array.extents[d] != 1)
            return false;
    return true;
}

void check_coefficient(const TridiagonalData& data, std::string_view name, const Array& array, bool packs) {
    const Shape& shape = array.shape();
    const Shape& rhs = data.rhs.shape();
    if (shape.dtype != rhs.dtype)
        wrong(data, name, std::string("type ") + name_of(shape.dtype) + " where rhs has " + name_of(rhs.dtype),
              "save all arrays in one type, or ask for one with --precision");
    if (fits(shape, rhs, data.axis, packs)) return;
    const std::string n = std::to_string(data.rows());
    std::string hint = "give it rhs's shape, or " + n + " rows for one matrix that all systems share" +
                       (packs ? ", or one row less as LAPACK does" : "");
    for (int axis = 0; axis < data.rhs.dims(); ++axis)
        if (axis != data.axis && fits(shape, rhs, axis, packs))
            hint = "it would fit with --axis " + std::to_string(axis);
    wrong(data, name,
          "shape " + shape.text() + " does not fit rhs " + rhs.text() + ", solved along axis " +
              std::to_string(data.axis),
          hint);
}

TridiagonalData load_npz(const std::string& path, const LoadOptions& options) {
    const NpzReader archive(path);
    TridiagonalData data;
    data.name = path;
    data.description = "arrays lower, diag, upper, rhs of " + (path == "-" ? "stdin" : path);
    std::string ignored;
    for (const std::string& name : archive.names())
        if (std::find(std::begin(array_names), std::end(array_names), name) == std::end(array_names))
            ignored += (ignored.empty() ? "" : ", ") + name;
    if (!ignored.empty())
        data.notes.push_back("ignored in " + path + ": " + ignored +
                             (ignored.find("periodic") != std::string::npos && !options.periodic ? " (rings are asked for with --periodic)" : ""));
    data.periodic = options.periodic;

    // Shapes first: what cannot be solved is not worth reading.
    Array* const arrays[] = {&data.lower, &data.diag, &data.upper, &data.rhs};
    std::int64_t total = 0, before = 0;
    for (int k = 0; k < 4; ++k) {
        *arrays[k] = archive.read(array_names[k], false);
        total += arrays[k]->shape().bytes();
    }
    settle_axis(data, options.axis.value_or(-1));
    const bool converts = options.precision.has_value();
    for (int k = 0; k < 3; ++k) {
        Shape shape = arrays[k]->shape();
        if (converts) shape.dtype = data.rhs.dtype();
        check_coefficient(data, array_names[k], Array::without_values(shape), k != 1 && !data.periodic);
    }
    for (int k = 0; k < 4; ++k) {
        // A single number is needed for a plan too: it becomes a scalar coefficient.
        if (options.values || arrays[k]->dims() == 0) {
            const Progress progress =
                options.progress ? [&](std::int64_t done, std::int64_t) { options.progress(before + done, total); }
                                 : Progress{};
            *arrays[k] = archive.read(array_names[k], true, progress);
            before += arrays[k]->shape().bytes();
        }
        if (!converts || arrays[k]->dtype() == *options.precision) continue;
        std::string note = at(path, array_names[k]) + " converted from " + name_of(arrays[k]->dtype()) + " to " + name_of(*options.precision);
        std::int64_t vanished = 0;
        *arrays[k] = converted(*arrays[k], *options.precision, options.values || arrays[k]->dims() == 0,
                               at(path, array_names[k]), &vanished);
        if (vanished > 0) note += ", where " + std::to_string(vanished) + (vanished == 1 ? " value is" : " values are") + " too small and became 0";
        data.notes.push_back(std::move(note));
    }
    return data;
}

bool has_ending(std::string_view text, std::string_view ending) {
    return text.ends_with(ending);
}

}  // namespace

TridiagonalData load_tridiagonal(const std::string& input, const LoadOptions& options) {
    if (std::string_view(input).starts_with("gen:")) {
        TridiagonalData data = generate_tridiagonal(parse_generator(input), options);
        data.periodic = options.periodic;
        return data;
    }
    if (input.empty()) throw Error(ErrorCode::usage, "INPUT", "is empty", "name a problem.npz or gen:NAME?key=value&...");
    if (has_ending(input, ".npy") && std::filesystem::exists(input))
        throw Error(ErrorCode::bad_input, input, "is one array, and a problem has four",
                    "save them together: numpy.savez('problem.npz', lower=…, diag=…, upper=…, rhs=…)");
    if (find_generator(std::string_view(input).substr(0, input.find('?'))) && !std::filesystem::exists(input))
        throw Error(ErrorCode::usage, input, "is no file, but the name of a generator", "write gen:" + input);
    return load_npz(input, options);
}

}  // namespace trifold::io
