// SPDX-License-Identifier: BSD-3-Clause
// The same batches, given in other ways: in place, added to, as rings, parts of the matrix shared by all systems or along one dimension, arrays that lie unlike each other, turned round, with gaps. Beside the words
// that have to move.
//
//   cuda_ways_bench [--json FILE] [--rows ROWS] [--precision f32|f64]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/tridiagonal/batch.hpp"
#include "backends/cuda/tridiagonal/cell.hpp"
#include "bench/cuda/arguments.hpp"
#include "bench/cuda/batch_case.cuh"
#include "bench/cuda/gpu_record.hpp"
#include "families/tridiagonal/ops.hpp"
#include "trifold/tridiagonal.hpp"

namespace {

namespace cuda = trifold::cuda;  // not the toolkit's own

using namespace trifold;
using namespace trifold::bench;
using trifold::tridiagonal::Algorithm;
using trifold::tridiagonal::Operand;
using trifold::tridiagonal::System;

constexpr std::int64_t wide = 64;

/// How rhs and x lie: rows, systems and planes of `wide` systems so many elements apart.
struct Layout {
    const char* name;
    std::int64_t row, system, planes, plane;
};

struct Strides {
    std::int64_t row, system, plane;
};

/// Two levels as one where all operands allow it, as systems come from the library.
void merge(System& s) {
    Operand* const operands[7] = {&s.lower, &s.diag, &s.upper, &s.rhs, &s.x, &s.top_right, &s.bottom_left};
    if (s.levels != 2) return;
    for (const Operand* o : operands)
        if (o->level_stride[0] != s.extent[1] * o->level_stride[1]) return;
    for (Operand* o : operands) o->level_stride[0] = o->level_stride[1], o->level_stride[1] = 0;
    s.levels = 1, s.extent[0] *= s.extent[1], s.extent[1] = 1, s.number_stride[0] = 1, s.number_stride[1] = 0;
}

template <class T>
class Ways {
public:
    Ways(nlohmann::ordered_json& rows, std::int64_t rows_of_all) : rows_(rows), rows_of_all_(rows_of_all), capacity_(2 * rows_of_all + 4096) {
        for (int k = 0; k < 5; ++k) arrays_.emplace_back(capacity_);
        fill_array<T>(arrays_[0], capacity_, 1, T(-1), T(1)), fill_array<T>(arrays_[1], capacity_, 2, T(3), T(4)), fill_array<T>(arrays_[2], capacity_, 3, T(-1), T(1)), fill_array<T>(arrays_[3], capacity_, 4, T(-1), T(1));
        const void* const read[4] = {arrays_[0], arrays_[1], arrays_[2], arrays_[3]};
        const StreamRoof roof(read, arrays_[4], static_cast<std::size_t>(rows_of_all) * sizeof(T));
        gb_per_s_ = roof.gb_per_s(roof.best_ms());
    }

    void run() {
        for (const std::int64_t n : {6, 64, 256, 1000, 4000, 12000}) {
            const std::int64_t m = rows_of_all_ / n / wide * wide;
            if (m == 0) continue;
            for (const Layout& layout : {Layout{"contiguous", 1, n, m / wide, wide * n}, Layout{"columns", m, 1, 1, 0}, Layout{"64 wide y", wide, 1, m / wide, wide * n}}) all_ways(n, m, layout);
        }
    }

private:
    Operand view(T* data, const Layout& layout, const Strides& s) const {
        Operand o;
        o.kind = Operand::Kind::view, o.data = data, o.row_stride = s.row;
        if (layout.planes > 1) o.level_stride[0] = s.plane, o.level_stride[1] = s.system;
        else o.level_stride[0] = s.system;
        return o;
    }

    void all_ways(std::int64_t n, std::int64_t m, const Layout& l) {
        const Strides own{l.row, l.system, l.plane}, one{1, 0, 0}, turned = l.row == 1 ? Strides{m, 1, wide} : Strides{1, n, wide * n};
        const auto number = [](double value) {
            Operand o;
            o.value = value;
            return o;
        };
        const auto base = [&] {
            System s;
            s.dtype = sizeof(T) == 8 ? DType::f64 : DType::f32, s.rows = n;
            s.levels = l.planes > 1 ? 2 : 1;
            if (l.planes > 1) s.extent[0] = l.planes, s.number_stride[0] = wide;
            s.extent[s.levels - 1] = m / l.planes, s.number_stride[s.levels - 1] = 1;
            Operand* const operands[5] = {&s.lower, &s.diag, &s.upper, &s.rhs, &s.x};
            for (int k = 0; k < 5; ++k) *operands[k] = view(arrays_[k], l, own);
            return s;
        };
        const auto bands = [&](System& s, const Strides& strides) { s.lower = view(arrays_[0], l, strides), s.diag = view(arrays_[1], l, strides), s.upper = view(arrays_[2], l, strides); };
        const auto everything = [](System& s, auto change) {
            for (Operand* o : {&s.lower, &s.diag, &s.upper, &s.rhs, &s.x}) change(*o);
        };
        const auto close = [&](System& s) {
            s.periodic = true, s.top_right = s.lower, s.bottom_left = s.upper;
            s.bottom_left.data = static_cast<T*>(s.upper.data) + (n - 1) * s.upper.row_stride;
        };
        const auto in_place = [](System& s) { s.x = s.rhs, s.in_place = true; };
        const auto way = [&](const char* name, double words, auto change) {
            System s = base();
            change(s), merge(s);
            measure(name, words, n, m, l, s);
        };
        const double planes = static_cast<double>(l.planes), systems = static_cast<double>(m);
        way("plain", 5, [](System&) {});
        way("in place", 5, in_place);
        way("added to x", 6, [](System& s) { s.accumulate = true; });
        way("rings", 5, close);
        way("rings of one matrix", 2, [&](System& s) { bands(s, one), close(s); });
        way("one matrix", 2, [&](System& s) { bands(s, one); });
        way("one matrix, in place", 2, [&](System& s) { bands(s, one), in_place(s); });
        way("one matrix, added to x", 3, [&](System& s) { bands(s, one), s.accumulate = true; });
        way("numbers", 2, [&](System& s) { s.lower = s.upper = number(-1), s.diag = number(3.5); });
        way("couplings are numbers", 3, [&](System& s) { s.lower = s.upper = number(-1); });
        way("couplings of all systems", 3, [&](System& s) { s.lower = view(arrays_[0], l, one), s.upper = view(arrays_[2], l, one); });
        way("diag of all systems", 4, [&](System& s) { s.diag = view(arrays_[1], l, one); });
        way("one right-hand side", 4, [&](System& s) { s.rhs = view(arrays_[3], l, one); });
        if (l.planes > 1) way("bands of one plane for all", 2 + 3 / planes, [&](System& s) { bands(s, {own.row, own.system, 0}); });
        if (l.planes > 1) way("bands of one system for each plane", 2 + 3 * planes / systems, [&](System& s) { bands(s, {1, 0, n}); });
        way("bands lie the other way", 5, [&](System& s) { bands(s, turned); });
        way("x lies the other way", 5, [&](System& s) { s.x = view(arrays_[4], l, turned); });
        way("rhs lies the other way", 5, [&](System& s) { s.rhs = view(arrays_[3], l, turned); });
        way("last row first", 5, [&](System& s) { everything(s, [&](Operand& o) { o.data = static_cast<T*>(o.data) + (n - 1) * o.row_stride, o.row_stride = -o.row_stride; }); });
        way("one element further on", 5, [&](System& s) { everything(s, [](Operand& o) { o.data = static_cast<T*>(o.data) + 1; }); });
        if (l.row == 1) way("every other number", 5, [&](System& s) { everything(s, [](Operand& o) { o.row_stride *= 2, o.level_stride[0] *= 2, o.level_stride[1] *= 2; }); });
    }

    void measure(const char* name, double words, std::int64_t n, std::int64_t m, const Layout& layout, const System& system) {
        constexpr double worth_noting = 2;
        const tridiagonal::Ops& ops = *cuda::tridiagonal_ops(0);
        tridiagonal::Launch launch;
        launch.scratch_bytes = ops.workspace(system, Algorithm::automatic, 1);
        const DeviceMemory<unsigned char> scratch(static_cast<std::int64_t>(launch.scratch_bytes) + 1);
        launch.scratch = scratch;
        std::vector<float> times;
        for (int round = 0; round < 4; ++round) {
            if (system.in_place) fill_array<T>(arrays_[3], capacity_, 4, T(-1), T(1));
            const float ms = time_([&] {
                Failure failure;
                if (!ops.enqueue(0, system, Algorithm::automatic, launch, outcome_, failure)) failure.raise("cuda:0");
            });
            if (round) times.push_back(ms);
        }
        cuda::DeviceOutcome outcome;
        check(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), name);
        const double ms = median(times), times_roof = ms / (words * static_cast<double>(n * m) * sizeof(T) / gb_per_s_ / 1e6);
        std::printf("%-34s %-10s %s %6lld rows  %9.1f us  %5.1f x the words' time  rescued %llu  failures %llu\n", name, layout.name, sizeof(T) == 8 ? "f64" : "f32", static_cast<long long>(n), 1e3 * ms, times_roof,
                    outcome.rescued, outcome.failures);
        if (times_roof < worth_noting) return;
        rows_.push_back({{"case", layout.name}, {"way", name}, {"rows", n}, {"systems", m}, {"precision", sizeof(T) == 8 ? "f64" : "f32"}, {"ms", ms}, {"words", words}, {"times_roof", times_roof}});
    }

    nlohmann::ordered_json& rows_;
    std::int64_t rows_of_all_, capacity_;
    std::vector<DeviceMemory<T>> arrays_;
    DeviceMemory<cuda::DeviceOutcome> outcome_{1};
    double gb_per_s_ = 0;
    EventTimer time_;
};

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    std::string precision;
    std::int64_t rows_of_all = 1 << 24;
    Arguments arguments("cuda_ways_bench", "Batches on the GPU, given in other ways");
    arguments.common(json, rows_of_all, 1 << 16);
    arguments.one_of("--precision", precision, {"f32", "f64"}, "this alone");
    if (const auto status = arguments.parse(argc, argv)) return *status;
    nlohmann::ordered_json record = gpu_record("cuda_ways", "Batches on the GPU, given in other ways");
    record["rows_of_arrays"] = rows_of_all, record["rows"] = nlohmann::ordered_json::array();
    if (precision != "f32") Ways<double>(record["rows"], rows_of_all).run();
    if (precision != "f64") Ways<float>(record["rows"], rows_of_all).run();
    return write_record(record, json) ? 0 : 1;
}
