// SPDX-License-Identifier: BSD-3-Clause
// Tiles of rows × systems are made in f64 beside the caches and stored in the type and order that is wanted.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/available_memory.hpp"
#include "io/generators/generator.hpp"
#include "trifold/error.hpp"

namespace trifold::io {
namespace {

constexpr std::uint64_t solution_stream = 21;

// C order: outer × rows × inner, systems numbered outer × inner.
struct Order {
    std::int64_t outer = 1, rows = 1, inner = 1;
    std::int64_t offset(std::int64_t system, std::int64_t row) const {
        return (system / inner * rows + row) * inner + system % inner;
    }
};

// The exact solution around which rhs is made.
double solution(const StreamKey& key, std::int64_t row) {
    return 3 + key.bell(row);
}

// rhs = A x; x of the neighbouring rows is drawn again where they lie in another tile.
void multiply(const Tile& tile, const StreamKey& key) {
    double before = tile.first > 0 ? solution(key, tile.first - 1) : 0, here = solution(key, tile.first);
    for (std::int64_t j = 0; j < tile.count; ++j) {
        const std::int64_t next = tile.first + j + 1;
        const double after = next < tile.rows ? solution(key, next) : 0;
        tile.rhs[j] = tile.lower[j] * before + tile.diag[j] * here + tile.upper[j] * after;
        before = here;
        here = after;
    }
}

class Maker {
public:
    Maker(const GeneratorSpec& spec, TridiagonalData& data, const Progress& progress)
        : spec_(spec), data_(data), progress_(progress), seed_{mix64(spec.seed + 1)} {
        const std::vector<std::int64_t>& extents = spec.extents;
        for (int d = 0; d < static_cast<int>(extents.size()); ++d)
            (d < data.axis ? order_.outer : d == data.axis ? order_.rows : order_.inner) *= extents[d];
    }

    void run() {
        if (spec_.matrix != MatrixStorage::own) make_shared_matrix();
        if (data_.rhs.dtype() == DType::f32)
            fill<float>();
        else
            fill<double>();
        if (const std::int64_t row = bad_row_; row < none)
            throw Error(ErrorCode::usage, spec_.text,
                        "row " + std::to_string(row) + " has entries too large for " + name_of(data_.rhs.dtype()),
                        data_.rhs.dtype() == DType::f32 ? "use --precision f64, or smaller parameters"
                                                        : "use smaller parameters");
    }

    // One matrix of n rows, or one number per diagonal, taken from row 1, which has all three.
    void make_shared_matrix() {
        const bool scalar = spec_.matrix == MatrixStorage::scalar;
        if (data_.rhs.dtype() == DType::f32)
            scalar ? make_scalars<float>() : make_rows<float>();
        else
            scalar ? make_scalars<double>() : make_rows<double>();
    }

private:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

    bool own() const { return spec_.matrix == MatrixStorage::own; }
    StreamKey matrix_key(std::int64_t system) const {
        return seed_.stream(own() ? static_cast<std::uint64_t>(system) : 0);
    }

    // The coefficients, and rhs, of some rows of one system.
    void make(const Tile& tile, std::int64_t system) const {
        spec_.kind->fill(spec_.values, tile);
        const StreamKey key = seed_.stream(static_cast<std::uint64_t>(system));
        Tile of_rhs = tile;
        of_rhs.key = key;
        if (spec_.kind->fill_rhs)
            spec_.kind->fill_rhs(spec_.values, of_rhs);
        else
            multiply(of_rhs, key.stream(solution_stream));
    }

    template <class T>
    void store(T* to, std::int64_t stride, const double* from, std::int64_t count, std::int64_t row) {
        T sum = 0;
        for (std::int64_t j = 0; j < count; ++j) {
            const T value = static_cast<T>(from[j]);
            to[j * stride] = value;
            sum += value * T(0);
        }
        if (sum == T(0)) return;
        for (std::int64_t j = 0; j < count; ++j)
            if (!std::isfinite(static_cast<T>(from[j]))) return note_bad(row + j);
    }

    void note_bad(std::int64_t row) {
        std::int64_t least = bad_row_;
        while (row < least && !bad_row_.compare_exchange_weak(least, row)) {
        }
    }

    template <class T>
    void make_scalars() {
        double values[4][3];
        spec_.kind->fill(spec_.values, Tile{3, 0, 3, matrix_key(0), values[0], values[1], values[2], values[3]});
        store(data_.lower.as<T>(), 1, &values[0][1], 1, 1);
        store(data_.diag.as<T>(), 1, &values[1][1], 1, 1);
        store(data_.upper.as<T>(), 1, &values[2][1], 1, 1);
    }

    template <class T>
    void make_rows() {
        constexpr std::int64_t step = 512;
#pragma omp parallel for schedule(static) if (order_.rows > 16 * step)
        for (std::int64_t first = 0; first < order_.rows; first += step) {
            double values[4][step];
            const Tile tile{order_.rows,   first,     std::min(step, order_.rows - first),
                            matrix_key(0), values[0], values[1],
                            values[2],     values[3]};
            spec_.kind->fill(spec_.values, tile);
            store(data_.lower.as<T>() + first, 1, values[0], tile.count, first);
            store(data_.diag.as<T>() + first, 1, values[1], tile.count, first);
            store(data_.upper.as<T>() + first, 1, values[2], tile.count, first);
        }
    }

    // inner == 1: tiles of 512 rows of one system. Else 32 rows of up to 32 neighbouring systems, stored row by row.
    template <class T>
    void fill() {
        constexpr std::int64_t most = 1024;
        const std::int64_t across = order_.inner == 1 ? 1 : std::min<std::int64_t>(32, order_.inner);
        const std::int64_t down = order_.inner == 1 ? 512 : 32;
        const std::int64_t row_tiles = (order_.rows + down - 1) / down,
                           system_tiles = (order_.inner + across - 1) / across;
        const std::int64_t tiles = order_.outer * row_tiles * system_tiles, bytes = data_.bytes();
        std::atomic<std::int64_t> done{0};
#pragma omp parallel if (tiles >= 16)
        {
            double lower[most], diag[most], upper[most], rhs[most], line[32];
            std::int64_t since = 0;
#pragma omp for schedule(static)
            for (std::int64_t t = 0; t < tiles; ++t) {
                const std::int64_t in = t % system_tiles, along = t / system_tiles % row_tiles,
                                   outer = t / system_tiles / row_tiles;
                const std::int64_t first = along * down, count = std::min(down, order_.rows - first);
                const std::int64_t system = outer * order_.inner + in * across,
                                   width = std::min(across, order_.inner - in * across);
                for (std::int64_t s = 0; s < width; ++s)
                    make(Tile{order_.rows, first, count, matrix_key(system + s), lower + s * down, diag + s * down,
                              upper + s * down, rhs + s * down},
                         system + s);
                const auto put = [&](const Array& array, const double* values) {
                    T* to = array.as<T>() + order_.offset(system, first);
                    if (width == 1) return store(to, order_.inner, values, count, first);
                    for (std::int64_t i = 0; i < count; ++i) {
                        for (std::int64_t s = 0; s < width; ++s) line[s] = values[s * down + i];
                        store(to + i * order_.inner, 1, line, width, first + i);
                    }
                };
                if (own()) put(data_.lower, lower), put(data_.diag, diag), put(data_.upper, upper);
                put(data_.rhs, rhs);
                if (!progress_ || ++since < 256) continue;
                const std::int64_t now = done += since;
                since = 0;
                if (omp_get_thread_num() == 0)
                    progress_(static_cast<std::int64_t>(static_cast<double>(now) / static_cast<double>(tiles) *
                                                        static_cast<double>(bytes)),
                              bytes);
            }
        }
        if (progress_) progress_(bytes, bytes);
    }

    const GeneratorSpec& spec_;
    TridiagonalData& data_;
    const Progress& progress_;
    StreamKey seed_;
    Order order_;
    std::atomic<std::int64_t> bad_row_{none};
};

}  // namespace

TridiagonalData generate_tridiagonal(const GeneratorSpec& spec, const LoadOptions& options) {
    TridiagonalData data;
    data.name = spec.text;
    data.description = std::string(spec.kind->doc);
    const int dims = static_cast<int>(spec.extents.size());
    const auto counted = [&](int axis) { return axis < 0 ? axis + dims : axis; };
    data.axis = counted(spec.axis);
    if (options.axis) {
        if (spec.axis_given && counted(*options.axis) != data.axis)
            throw Error(ErrorCode::usage, spec.text,
                        "--axis " + std::to_string(*options.axis) + " contradicts its axis", "give one of them");
        data.axis = counted(*options.axis);
        if (data.axis < 0 || data.axis >= dims)
            throw Error(ErrorCode::usage, "--axis " + std::to_string(*options.axis),
                        "the problem has " + std::to_string(dims) + " dimensions",
                        "use an axis from " + std::to_string(-dims) + " to " + std::to_string(dims - 1));
    }
    const Shape rhs{options.precision.value_or(DType::f64), spec.extents, false};
    Shape matrix = rhs;
    if (spec.matrix == MatrixStorage::shared) matrix.extents = {spec.extents[static_cast<std::size_t>(data.axis)]};
    if (spec.matrix == MatrixStorage::scalar) matrix.extents.clear();

    const bool small = matrix.extents.empty();  // numbers are needed even for a plan
    const auto allocate = [&](const Shape& shape, bool values) {
        return values ? Array(shape, spec.text) : Array::without_values(shape);
    };
    if (options.values)
        require_memory(spec.text, static_cast<double>(rhs.bytes()) + 3 * static_cast<double>(matrix.bytes()),
                       "use fewer rows or --precision f32");
    data.lower = allocate(matrix, options.values || small);
    data.diag = allocate(matrix, options.values || small);
    data.upper = allocate(matrix, options.values || small);
    data.rhs = allocate(rhs, options.values);
    if (options.values)
        Maker(spec, data, options.progress).run();
    else if (small)
        Maker(spec, data, options.progress).make_shared_matrix();
    return data;
}

}  // namespace trifold::io
