// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/streaming/streaming.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cuda/jit/program.hpp"
#include "backends/cuda/mesh/arguments.hpp"
#include "backends/cuda/mesh/functions.hpp"
#include "backends/cuda/mesh/streaming/cut.hpp"
#include "backends/cuda/mesh/streaming/line_table.hpp"
#include "backends/cuda/runtime/runtime.hpp"

namespace trifold::cuda {
namespace {

using mesh::Access;
using mesh::Checked;
using mesh::CheckedSweep;
using streaming::ColumnsCut;
using streaming::RowsCut;

constexpr std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

int fetched_by(const CheckedSweep& one, int solution) {
    int count = 0;
    for (int f = 0; f < std::min(one.update.fields, solution); ++f) count += one.update.field[static_cast<std::size_t>(f)].rows != 0;
    return count;
}

bool looks_beyond_single(const Access& access, const MeshShape& shape) {
    for (const mesh::FieldAccess& field : access.field) {
        if (shape.x < 2 && field.looks_along_x()) return true;
        for (int row = 0; row < rows_across * rows_across; ++row)
            if (field.rows >> row & 1) {
                if (shape.y < 2 && row % rows_across != max_reach) return true;
                if (shape.z < 2 && row / rows_across != max_reach) return true;
            }
    }
    return false;
}

/// One pass of a sweep, with one of its line solves: rows first, then columns.
struct Pass {
    int line = 0;             ///< of the sweep
    RowsCut rows;             ///< where they fit: a pass of rows
    ColumnsCut columns;
    streaming::Reach reach;
    unsigned staged = 0;

    int segment_rows() const noexcept { return rows.fits() ? rows.segment_rows : columns.segment_rows; }
    int segments() const noexcept { return rows.fits() ? rows.segments : columns.segments; }
    int threads() const noexcept { return rows.fits() ? rows.threads : columns.threads; }
    std::size_t shared() const noexcept { return rows.fits() ? rows.shared : columns.shared; }
};

struct SweepPlan {
    std::vector<Pass> passes;
};

struct Plan {
    std::vector<SweepPlan> sweeps;
    const char* refuses = nullptr;
};

template <class T>
bool safe(const Checked& checked, int s, const Pass& pass) {
    return streaming::LineTable<T>(streaming::matrix_of<T>(checked, s, pass.line), pass.segment_rows(), pass.segments()).safe;
}

// Fields that the right-hand side reads at neighbours, and how far away.
void reach_of(const CheckedSweep& one, Pass& pass) {
    for (int f = 0; one.sweep->rhs && f < one.rhs.fields; ++f) {
        const mesh::FieldAccess& access = one.rhs.field[static_cast<std::size_t>(f)];
        if (!access.neighbours()) continue;
        pass.staged |= 1u << f, ++pass.reach.fields;
        for (int row = 0; row < rows_across * rows_across; ++row)
            if (access.rows >> row & 1) {
                pass.reach.x = std::max<int>(pass.reach.x, access.along_x[static_cast<std::size_t>(row)]);
                pass.reach.y = std::max(pass.reach.y, std::abs(row % rows_across - max_reach)), pass.reach.z = std::max(pass.reach.z, std::abs(row / rows_across - max_reach));
            }
    }
}

Plan plan_of(const Checked& checked, const Chip& chip) {
    Plan plan;
    const auto refuse = [&](const char* why) {
        plan.refuses = why;
        return plan;
    };
    const MeshShape& shape = checked.problem->shape;
    if (checked.problem->parameters.size() > 256) return refuse("there are more than 256 parameters");
    if (!chip.has_clusters()) return refuse("they are made for compute capability 9.0");
    if (shape.x > 1024 || shape.y > 1024 || shape.z > 1024) return refuse("lines are longer than 1024");
    if (shape.x * shape.y * shape.z >= std::int64_t{1} << 31 || shape.points() >= std::int64_t{1} << 36) return refuse("a mesh or a batch is too large");
    for (const AnyField& field : checked.problem->fields)
        for (std::size_t axis = 0; axis < 3; ++axis)
            if (std::abs(field.stride[axis]) >= std::int64_t{1} << 31 || std::abs(field.stride[axis] * (shape.along(static_cast<int>(axis)) + 2)) >= std::int64_t{1} << 30)
                return refuse("a field is spread too far");
    for (std::size_t s = 0; s < checked.sweeps.size(); ++s) {
        const CheckedSweep& one = checked.sweeps[s];
        const std::vector<LineSolve>& lines = one.sweep->lines;
        if (lines.size() < 2 || lines[0].axis != 0) return refuse("lines do not begin with x and go on");
        for (std::size_t k = 1; k < lines.size(); ++k)
            if (lines[k].axis == 0) return refuse("lines along x follow others");
        for (std::size_t k = 0; k < lines.size(); ++k) {
            if (shape.along(lines[k].axis) < 2) return refuse("lines have one row");
            if (const char* const why = streaming::unknown_matrix(checked, static_cast<int>(s), static_cast<int>(k))) return refuse(why);
        }
        if (looks_beyond_single(one.rhs, shape)) return refuse("neighbours are read along an axis of one point");
        SweepPlan own;
        Pass first;
        const auto nx = static_cast<int>(shape.x), ny = static_cast<int>(shape.y), nz = static_cast<int>(shape.z);
        const std::size_t bytes = size_of(checked.dtype);
        reach_of(one, first);
        first.rows = streaming::cut_rows(chip, bytes, nx, ny, nz, shape.meshes, first.reach);
        if (!first.rows.fits()) return refuse("lines along x do not fit on the chip");
        own.passes.push_back(first);
        for (std::size_t k = 1; k < lines.size(); ++k) {
            Pass pass;
            pass.line = static_cast<int>(k);
            const bool last = k + 1 == lines.size();
            pass.columns = streaming::cut_columns(chip, bytes, static_cast<int>(shape.along(lines[k].axis)), last ? fetched_by(one, checked.solution_field()) : 0);
            if (!pass.columns.fits()) return refuse("lines do not fit on the chip");
            own.passes.push_back(pass);
        }
        for (const Pass& pass : own.passes)
            if (!(checked.dtype == DType::f32 ? safe<float>(checked, static_cast<int>(s), pass) : safe<double>(checked, static_cast<int>(s), pass)))
                return refuse("a matrix needs pivots");
        plan.sweeps.push_back(own);
    }
    return plan;
}

const char* refuses(const Checked& checked, const Chip& chip) { return plan_of(checked, chip).refuses; }

// ---- the program ----

std::string text_of(std::int64_t value) { return std::to_string(value); }

std::string strides_of(const Checked& checked) {
    std::string text;
    for (const AnyField& field : checked.problem->fields) {
        text += text.empty() ? "{" : ", {";
        for (std::size_t d = 0; d < 4; ++d) text += (d ? ", " : "") + text_of(field.stride[d]);
        text += "}";
    }
    return text;
}

std::string edges_of(const Checked& checked) {
    std::string text;
    for (const AnyField& field : checked.problem->fields) {
        text += text.empty() ? "{" : ", {";
        for (std::size_t axis = 0; axis < 3; ++axis)
            text += (axis ? ", {" : "{") + text_of(static_cast<int>(field.sides[axis].low.edge)) + ", " + text_of(static_cast<int>(field.sides[axis].high.edge)) + "}";
        text += "}";
    }
    return text;
}

// Kernels have parameters as arguments.
std::int64_t parameter_count(const Checked& checked) { return std::max<std::int64_t>(static_cast<std::int64_t>(checked.problem->parameters.size()), 1); }

std::string name_of_pass(std::size_t sweep, std::size_t pass) { return "pass_" + std::to_string(sweep) + "_" + std::to_string(pass); }

class Writer {
public:
    Writer(const Checked& checked, const Plan& plan) : checked_(checked), plan_(plan) {}

    std::string text() {
        const MeshShape& shape = checked_.problem->shape;
        const auto fields = checked_.problem->fields.size();
        std::string common = "struct Common {\n    using real = ::real;\n    struct Parameters {\n        real at[" + text_of(parameter_count(checked_)) + "];\n        __device__ real operator[](int k) const { return at[k]; }\n    };\n    static constexpr int fields = " + text_of(static_cast<std::int64_t>(fields)) + ", nx = " + text_of(shape.x) + ", ny = " + text_of(shape.y) +
                             ", nz = " + text_of(shape.z) + ", not_finite = " + text_of(-static_cast<int>(Reason::not_finite)) + ";\n    static __device__ constexpr long stride(int field, int axis) {\n        constexpr long all[][4] = {" +
                             strides_of(checked_) + "};\n        return all[field][axis];\n    }\n    static __device__ constexpr int edge(int field, int axis, int side) {\n        constexpr int all[][3][2] = {" +
                             edges_of(checked_) + "};\n        return all[field][axis][side];\n    }\n};\n";
        std::string kernels;
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s)
            for (std::size_t k = 0; k < plan_.sweeps[s].passes.size(); ++k) kernels += plan_.sweeps[s].passes[k].rows.fits() ? rows(s, k) : columns(s, k);
        return functions_.text() +
               "#include \"backends/cuda/mesh/streaming/rows.cuh\"\n#include \"backends/cuda/mesh/streaming/columns.cuh\"\nusing namespace trifold::cuda;\nusing real = " +
               (checked_.dtype == DType::f32 ? "float" : "double") + ";\n" + common + kernels;
    }

private:
    std::string function(const char* name, const PointFunction& called) {
        const std::string head = std::string("    template <class Near>\n    static __device__ __forceinline__ void ") + name +
                                 "(const Near& near, const Parameters& p, real* out, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step) { ";
        return head + (called ? functions_.name_of(called) + "<real>(near, p, out, x, y, z, mesh, step); }\n" : std::string("}\n"));
    }

    bool ends(std::size_t s, int line) const {
        const Sides& sides = checked_.sweeps[s].sweep->solution[static_cast<std::size_t>(checked_.sweeps[s].sweep->lines[static_cast<std::size_t>(line)].axis)];
        return (sides.low.edge == Edge::odd && sides.low.value != 0) || (sides.high.edge == Edge::odd && sides.high.value != 0);
    }

    static const char* flag(bool value) { return value ? "true" : "false"; }

    // Copies of 16 bytes bring the rows of all staged fields.
    bool in_vectors(const Pass& pass) const {
        const std::int64_t V = 16 / static_cast<std::int64_t>(size_of(checked_.dtype));
        bool fits = checked_.problem->shape.x % V == 0;
        for (std::size_t f = 0; f < checked_.problem->fields.size(); ++f) {
            if (!(pass.staged >> f & 1)) continue;
            const AnyField& field = checked_.problem->fields[f];
            fits = fits && field.stride[0] == 1 && reinterpret_cast<std::uintptr_t>(field.data) % 16 == 0;
            for (std::size_t d = 1; d < 4; ++d) fits = fits && field.stride[d] % V == 0;
        }
        return fits;
    }

    std::string rows(std::size_t s, std::size_t k) {
        const Sweep& sweep = *checked_.sweeps[s].sweep;
        const Pass& pass = plan_.sweeps[s].passes[k];
        const streaming::RowsCut& cut = pass.rows;
        const std::string name = name_of_pass(s, k);
        return "struct C_" + name + " : Common {\n    static constexpr int H = " + text_of(cut.rows) + ", R = " + text_of(cut.segment_rows) + ", S = " + text_of(cut.segments) + ", pitch = " +
               text_of(cut.pitch) + ", threads = " + text_of(cut.threads) + ", chunk = " + text_of(cut.chunk) + ", at_once = 8, staged_count = " + text_of(pass.reach.fields) +
               ", reach_x = " + text_of(pass.reach.x) + ", reach_y = " + text_of(pass.reach.y) + ", reach_z = " + text_of(pass.reach.z) + ", target = " + text_of(sweep.target) + ", line_x = " +
               text_of(pass.line) + ";\n    static constexpr unsigned staged = " + text_of(pass.staged) + ";\n    static constexpr bool vectors = " + flag(in_vectors(pass)) + ", has_rhs = " +
               flag(static_cast<bool>(sweep.rhs)) + ", ends_x = " + flag(ends(s, pass.line)) + ";\n" + function("rhs", sweep.rhs) + "};\n" + kernel(name, cut.threads, cut.blocks, "rows_pass");
    }

    std::string columns(std::size_t s, std::size_t k) {
        const CheckedSweep& one = checked_.sweeps[s];
        const Sweep& sweep = *one.sweep;
        const Pass& pass = plan_.sweeps[s].passes[k];
        const ColumnsCut& cut = pass.columns;
        const std::string name = name_of_pass(s, k);
        const int axis = sweep.lines[static_cast<std::size_t>(pass.line)].axis;
        const bool last = k + 1 == plan_.sweeps[s].passes.size(), updates = last && sweep.update;
        const MeshShape& shape = checked_.problem->shape;
        const std::int64_t inner = axis == 1 ? shape.x : shape.x * shape.y, V = 16 / static_cast<std::int64_t>(size_of(checked_.dtype));
        unsigned used = 0;
        for (int f = 0; updates && f < std::min(one.update.fields, checked_.solution_field()); ++f) used |= one.update.field[static_cast<std::size_t>(f)].rows ? 1u << f : 0u;
        return "struct C_" + name + " : Common {\n    static constexpr int R = " + text_of(cut.segment_rows) + ", S = " + text_of(cut.segments) + ", W = " + text_of(cut.columns) + ", stages = " + text_of(cut.stages) + ", rows = " +
               text_of(shape.along(axis)) + ", axis = " + text_of(axis) + ", line = " + text_of(pass.line) + ", target = " + text_of(sweep.target) + ";\n    static constexpr unsigned used = " +
               text_of(used) + ";\n    static constexpr bool vectors = " + flag(inner % V == 0 && cut.columns % 32 == 0) + ", prefetch = " + flag(cut.prefetch && used) + ", ahead = " + flag(!cut.prefetch) + ", has_update = " + flag(updates) + ", to_target = " +
               flag(last) + ", ends = " + flag(ends(s, pass.line)) + ";\n" + function("update", updates ? sweep.update : PointFunction{}) + "};\n" + kernel(name, cut.threads, cut.blocks, "columns_pass");
    }

    static std::string kernel(const std::string& name, int threads, int blocks, const char* pass) {
        return "extern \"C\" __global__ void __launch_bounds__(" + text_of(threads) + ", " + text_of(blocks) + ") " + name +
               "(const __grid_constant__ MeshArguments<real> a, const __grid_constant__ Common::Parameters p, const real* table, real low, real high) { streaming::" + pass + "<C_" + name +
               ">(a, p, table, low, high); }\n";
    }

    const Checked& checked_;
    const Plan& plan_;
    FunctionTexts functions_;
};

std::string program(const Checked& checked, const Chip& chip) {
    const Plan plan = plan_of(checked, chip);
    Writer writer(checked, plan);
    return writer.text();
}

// ---- the run ----

std::size_t table_values(const Pass& pass) { return static_cast<std::size_t>(4 * pass.segments() * (pass.segment_rows() + 1)); }

/// Where things lie in the scratch.
struct Layout {
    std::size_t values, failed, tables, total;

    Layout(const Checked& checked, const Plan& plan) {
        const std::size_t each = size_of(checked.dtype);
        std::size_t count = 0;
        for (const SweepPlan& sweep : plan.sweeps)
            for (const Pass& pass : sweep.passes) count += table_values(pass);
        values = 0;
        failed = align(static_cast<std::size_t>(checked.problem->shape.points()) * each);
        tables = failed + align(static_cast<std::size_t>(checked.problem->shape.meshes));
        total = tables + align(count * each);
    }
};

std::size_t bytes(const Checked& checked, const Chip& chip) {
    const Plan plan = plan_of(checked, chip);
    return plan.refuses ? 0 : Layout(checked, plan).total;
}

template <class T>
class StreamingRun {
public:
    StreamingRun(const MeshRun& run, const jit::Program& program, const Plan& plan)
        : run_(run), checked_(run.checked), program_(program), plan_(plan), layout_(checked_, plan), base_(static_cast<char*>(run.scratch)), arguments_(mesh_arguments<T>(checked_)) {
        arguments_.values = at(layout_.values);
        arguments_.failed = reinterpret_cast<unsigned char*>(base_ + layout_.failed);
        arguments_.state = run.state;
    }

    bool run(Failure& failure) {
        if (!prepare(failure)) return false;
        const auto each = static_cast<std::int64_t>(checked_.sweeps.size());
        for (std::int64_t s = run_.from; s < run_.steps * each; ++s) {
            arguments_.sweep = static_cast<unsigned long long>(s);
            arguments_.step = run_.first_step + s / each;
            for (Launch& one : launches_[static_cast<std::size_t>(s % each)]) {
                void* arguments[] = {&arguments_, parameters_.data(), &one.table, &one.low, &one.high};
                if (!jit::launch(one.kernel, one.shape, arguments, failure)) return false;
            }
        }
        return true;
    }

private:
    struct Launch {
        const void* kernel = nullptr;
        jit::LaunchShape shape;
        const T* table = nullptr;
        T low = 0, high = 0;
    };

    T* at(std::size_t offset) const { return reinterpret_cast<T*>(base_ + offset); }

    bool prepare(Failure& failure) {
        parameters_.assign(checked_.problem->parameters.begin(), checked_.problem->parameters.end());
        parameters_.resize(static_cast<std::size_t>(parameter_count(checked_)));
        std::vector<T> numbers;
        launches_.resize(plan_.sweeps.size());
        for (std::size_t s = 0; s < plan_.sweeps.size(); ++s)
            for (std::size_t k = 0; k < plan_.sweeps[s].passes.size(); ++k) {
                const Pass& pass = plan_.sweeps[s].passes[k];
                Launch one;
                one.kernel = program_.kernel(name_of_pass(s, k).c_str());
                const streaming::LineMatrix<T> matrix = streaming::matrix_of<T>(checked_, static_cast<int>(s), pass.line);
                const streaming::LineTable<T> table(matrix, pass.segment_rows(), pass.segments());
                one.table = at(layout_.tables) + numbers.size();
                one.low = matrix.low, one.high = matrix.high;
                numbers.insert(numbers.end(), table.factors.begin(), table.factors.end());
                numbers.insert(numbers.end(), table.joins.begin(), table.joins.end());
                if (!shape_of(pass, s, one, failure)) return false;
                launches_[s].push_back(one);
            }
        return good(cudaMemsetAsync(arguments_.failed, 0, static_cast<std::size_t>(checked_.problem->shape.meshes), run_.stream), "clearing marks", failure) &&
               (numbers.empty() || good(cudaMemcpyAsync(at(layout_.tables), numbers.data(), numbers.size() * sizeof(T), cudaMemcpyHostToDevice, run_.stream), "copying factors", failure));
    }

    // As many blocks as run at once; no more than there are tasks.
    bool shape_of(const Pass& pass, std::size_t s, Launch& one, Failure& failure) {
        const MeshShape& shape = checked_.problem->shape;
        if (!one.kernel) return failure.say(ErrorCode::device_unavailable, "a kernel is missing in a compiled program", "this is an error in Trifold");
        if (!good(cudaFuncSetAttribute(one.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(pass.shared())), "asking for shared memory", failure)) return false;
        int at_once = 0;
        if (!good(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, one.kernel, pass.threads(), pass.shared()), "asking how many blocks run at once", failure)) return false;
        at_once *= run_.chip.multiprocessors;
        if (at_once < 1) return failure.say(ErrorCode::device_unavailable, "a compiled kernel does not fit on this GPU", "this is an error in Trifold");
        std::int64_t tasks = 0;
        if (pass.rows.fits()) {
            tasks = (shape.y + pass.rows.rows - 1) / pass.rows.rows * ((shape.z + pass.rows.chunk - 1) / pass.rows.chunk) * shape.meshes;
        } else {
            const int axis = checked_.sweeps[s].sweep->lines[static_cast<std::size_t>(pass.line)].axis;
            const std::int64_t inner = axis == 1 ? shape.x : shape.x * shape.y;
            tasks = (inner + pass.columns.columns - 1) / pass.columns.columns * (shape.points() / (inner * shape.along(axis)));
        }
        // Turns as equal as they can be.
        const std::int64_t turns = (tasks + at_once - 1) / at_once, needed = (tasks + turns - 1) / turns;
        one.shape = {.blocks = static_cast<unsigned>(needed), .threads = static_cast<unsigned>(pass.threads()), .shared = pass.shared(), .stream = run_.stream};
        return true;
    }

    const MeshRun& run_;
    const Checked& checked_;
    const jit::Program& program_;
    const Plan& plan_;
    const Layout layout_;
    char* const base_;
    MeshArguments<T> arguments_;
    std::vector<T> parameters_;
    std::vector<std::vector<Launch>> launches_;
};

bool run(const MeshRun& run, Failure& failure) {
    const Plan plan = plan_of(run.checked, run.chip);
    Writer writer(run.checked, plan);
    const jit::Program* const compiled = jit::program(writer.text(), "sweeps", failure);
    if (!compiled) return false;
    if (run.checked.dtype == DType::f32) return StreamingRun<float>(run, *compiled, plan).run(failure);
    return StreamingRun<double>(run, *compiled, plan).run(failure);
}

}  // namespace

const MeshKind streaming_kind{"streaming", refuses, bytes, program, run};

}  // namespace trifold::cuda
