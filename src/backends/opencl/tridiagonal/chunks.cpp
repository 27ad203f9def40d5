// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/chunks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backends/opencl/tridiagonal/batch.hpp"
#include "backends/opencl/tridiagonal/coupled.hpp"
#include "backends/opencl/tridiagonal/coupling.hpp"

namespace trifold::opencl {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::ChunkResidual;
using tridiagonal::InterfaceRow;
using tridiagonal::Launch;
using tridiagonal::Partition;
using tridiagonal::System;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr cl_uint always = 0;  // not asked of what was found before

/// One verb on its way: the device's memory for it, numbers to and from there in the system's type.
template <class T>
class ChunkCall {
public:
    ChunkCall(const System& system, const Partition& partition, const Launch& launch)
        : chunks_(partition.chunks()), launch_(device_launch(launch)), device_(open_device(launch.device)), call_(device_, system, launch_, outcome_of(launch)),
          layout_(device_.info.wide, system, partition.chunk_rows), cut_{chunks_, partition.chunk_rows, partition.rows} {
        call_.make();
        call_.reset(Algorithm::two_pass);
    }

    std::size_t items() const {
        const auto chunks = static_cast<std::size_t>(chunks_);
        return device_.info.wide ? chunks : std::min(chunks, drawers(device_.info.units));
    }

    template <class... More>
    void enqueue(const char* kernel, const More&... more) {
        call_.enqueue({"chunks", kernel}, items(), device_.info.wide ? 64 : 1, more...);
    }

    void reduce(cl_int correct) {
        if (device_.info.wide) enqueue_tile_reduce(call_, cut_, layout_.parts, correct, always);
        else enqueue("reduce", cut_, layout_.parts, correct, always);
    }

    void finish(cl_int correct, T accept) {
        if (device_.info.wide) enqueue_tile_finish(call_, cut_, layout_, layout_.parts, correct, static_cast<double>(accept), always);
        else enqueue("finish", cut_, layout_.parts, correct, accept, layout_.kept_step, static_cast<cl_int>(!call_.system.in_place && past_caches(call_.system)), always);
    }

    void write(word at, const std::vector<T>& numbers) {
        const Place work = call_.work();
        call_.on.queue.enqueueWriteBuffer(work.buffer, CL_TRUE, work.offset + static_cast<std::size_t>(at) * sizeof(T), numbers.size() * sizeof(T), numbers.data());
    }

    std::vector<T> read(word at, word count) {
        std::vector<T> numbers(static_cast<std::size_t>(count));
        const Place work = call_.work();
        call_.on.queue.enqueueReadBuffer(work.buffer, CL_TRUE, work.offset + static_cast<std::size_t>(at) * sizeof(T), numbers.size() * sizeof(T), numbers.data());
        return numbers;
    }

    /// Known ends, all x[first] and then all x[last].
    void write_ends(word at, const double* boundary) {
        std::vector<T> ends(static_cast<std::size_t>(2 * chunks_));
        for (std::int64_t k = 0; k < chunks_; ++k)
            ends[static_cast<std::size_t>(k)] = static_cast<T>(boundary[2 * k]), ends[static_cast<std::size_t>(chunks_ + k)] = static_cast<T>(boundary[2 * k + 1]);
        write(at, ends);
    }

    void defect_first() { enqueue("defect", layout_.parts, always); }
    void wait() { call_.wait(); }

    const ChunkLayout& layout() const { return layout_; }
    const Cut& cut() const { return cut_; }

private:
    static Launch device_launch(const Launch& launch) {
        Launch out = launch;
        out.status = nullptr;
        if (const auto* own = static_cast<const OwnMemory*>(launch.stream)) out.scratch = own->scratch, out.scratch_bytes = own->bytes, out.stream = own->queue;
        return out;
    }
    static void* outcome_of(const Launch& launch) {
        const auto* own = static_cast<const OwnMemory*>(launch.stream);
        return own ? own->outcome : nullptr;
    }

    std::int64_t chunks_;
    Launch launch_;
    OpenDevice& device_;
    Call call_;
    ChunkLayout layout_;
    Cut cut_;
};

template <class T>
void reduce_typed(const System& system, const Partition& partition, const Launch& launch, InterfaceRow* rows, std::int64_t* zero_pivot) {
    ChunkCall<T> call(system, partition, launch);
    const std::int64_t chunks = partition.chunks();
    const cl_int correct = partition.stored != nullptr;
    if (correct) call.defect_first();
    call.reduce(correct);
    const std::vector<T> out = call.read(call.layout().parts.out, 11 * chunks);
    const auto at = [&](int w, std::int64_t k) { return static_cast<double>(out[static_cast<std::size_t>(w * chunks + k)]); };
    for (std::int64_t k = 0; k < chunks; ++k) {
        for (int r = 0; r < 2; ++r) {
            for (int w = 0; w < 4; ++w) rows[2 * k + r].coefficient[w] = at(4 * r + w, k);
            rows[2 * k + r].rhs = at(8 + r, k);
        }
        zero_pivot[k] = at(10, k) < 0 ? -1 : partition.first(k) + static_cast<std::int64_t>(at(10, k));
    }
}

template <class T>
void finish_typed(const System& system, const Partition& partition, const Launch& launch, const double* boundary, double accept, ChunkResidual* residuals) {
    ChunkCall<T> call(system, partition, launch);
    const std::int64_t chunks = partition.chunks();
    const ChunkLayout& layout = call.layout();
    call.write_ends(layout.parts.add, boundary);
    if (partition.stored) {
        call.write_ends(layout.parts.old, partition.stored);
        call.defect_first();
    }
    call.finish(partition.stored != nullptr, static_cast<T>(accept));
    const std::vector<T> out = call.read(layout.parts.out, 5 * chunks);
    call.wait();
    const auto at = [&](int w, std::int64_t k) { return static_cast<double>(out[static_cast<std::size_t>(w * chunks + k)]); };
    for (std::int64_t k = 0; k < chunks; ++k) {
        const double rest = at(0, k), matrix = at(1, k), size = at(2, k);
        ChunkResidual& to = residuals[k];
        to.right = at(3, k);
        to.scale = matrix * size + to.right;
        // A residual of a few denormal numbers is rounding at the lower end of the range.
        if (rest <= 8 * static_cast<double>(std::numeric_limits<T>::denorm_min())) to.residual = 0;
        else to.residual = std::isfinite(to.scale) ? rest / to.scale : rest / matrix / size;
        to.stored = at(4, k) != 0;
    }
}

template <class T>
void restore_typed(const System& system, const Partition& partition, const Launch& launch, const double* boundary, ChunkResidual* residuals) {
    ChunkCall<T> call(system, partition, launch);
    const std::int64_t chunks = partition.chunks();
    const ChunkLayout& layout = call.layout();
    if (boundary) {
        call.write_ends(layout.parts.add, boundary);
        std::vector<T> stored(static_cast<std::size_t>(chunks));
        for (std::int64_t k = 0; k < chunks; ++k) stored[static_cast<std::size_t>(k)] = residuals[k].stored;
        call.write(layout.parts.out + 4 * chunks, stored);
    }
    call.enqueue("restore", call.cut(), layout.parts, static_cast<cl_int>(boundary != nullptr));
    if (!boundary) {
        const std::vector<T> out = call.read(layout.parts.out, 3 * chunks);
        for (std::int64_t k = 0; k < chunks; ++k)
            residuals[k].scale = static_cast<double>(out[static_cast<std::size_t>(chunks + k)]) * static_cast<double>(out[static_cast<std::size_t>(2 * chunks + k)]);
    }
    call.wait();
}

word whole(word numbers) { return (numbers + 31) / 32 * 32; }  // vectors lie on lines of 64 bytes, 128 in f32

}  // namespace

ChunkLayout::ChunkLayout(bool wide, const System& system, std::int64_t chunk_rows) {
    const word chunks = system.rows / chunk_rows, lanes = wide ? 1 : 64 / static_cast<word>(size_of(system.dtype));
    const word last = system.rows - (chunks - 1) * chunk_rows;
    parts.out = 0;
    parts.add = whole(11 * chunks);
    parts.old = parts.add + whole(2 * chunks);
    parts.defect = parts.old + whole(2 * chunks);
    parts.kept = parts.defect + whole(system.rows);
    // A stream has scratch for its longest part: on a GPU no shorter one takes more.
    pitch = std::max<word>(chunks - 1, 1);
    // As in chunks.cl: pivot rows of a block, and x of its chunks with room around.
    constexpr word vectors = 2;  // at most
    kept_step = whole(vectors * lanes * (3 * last + (last / lanes + 3) * lanes));
    numbers = parts.kept + (wide ? whole(4 * system.rows) : kept_step * static_cast<word>(most_drawers()));
}

namespace {

/// Items of a group, as many as have their tiles in local memory.
std::size_t tile_items(const FoundDevice& device, DType dtype) {
    const std::size_t tiles = device.ptx >= 8 ? 2 : 1;  // one is in work while the next is on its way
    std::size_t items = 64;
    while (items > 1 && (items > device.group || items * (tiles * 4 * (64 + size_of(dtype)) + 4) > device.local_memory)) items /= 2;
    return items;
}

template <class... More>
void enqueue_tiles(Call& call, const char* kernel, const Cut& cut, const More&... more) {
    const std::size_t group = tile_items(call.device.info, call.system.dtype);
    // Long chunks, which only devices in the host's memory have, keep sums in both passes.
    const char* const sums = cut.chunk_rows > own_chunk_rows ? " -DSUMS=1" : "";
    call.enqueue_as({"chunk_tiles", kernel}, "-DG=" + std::to_string(group) + sums, static_cast<std::size_t>(cut.chunks), group, cut, more...);
}

}  // namespace

void enqueue_tile_reduce(Call& call, const Cut& cut, const ChunkParts& parts, cl_int correct, cl_uint gate) { enqueue_tiles(call, "reduce", cut, parts, correct, gate); }

/// How chunk_chip.cl is compiled: chunks and items of a group, and rows of the longest chunk.
struct Chip {
    std::size_t chunks, items, most;
    std::string defines() const { return "-DG=" + std::to_string(chunks) + " -DITEMS=" + std::to_string(items) + " -DMOST=" + std::to_string(most); }
    bool fits(const FoundDevice& device, DType dtype) const {
        constexpr std::size_t planes = 5, maxima = 4;
        return items <= device.group && planes * most * (chunks + 1) * size_of(dtype) + (chunks + maxima) * sizeof(cl_int) <= device.local_memory;
    }
};

/// Chunks of equal length, and the few with the last one, which is up to twice as long.
constexpr Chip equal_chunks{32, 64, own_chunk_rows}, last_chunks{8, 64, 2 * own_chunk_rows};

/// Systems of fewer chunks take one launch, by groups that have room for the last chunk.
constexpr word few_chunks = 8192;

bool on_chip(const Call& call, const Cut& cut) {
    const FoundDevice& device = call.device.info;
    return cut.chunk_rows == own_chunk_rows && equal_chunks.fits(device, call.system.dtype) && last_chunks.fits(device, call.system.dtype);
}

/// defines: TELLS, or nothing.
void enqueue_chip_finish(Call& call, const char* defines, const Cut& cut, const ChunkParts& parts, cl_int correct, double accept, cl_uint gate, const Judging& by) {
    constexpr auto of_group = static_cast<word>(equal_chunks.chunks);
    const word equal = cut.chunks < few_chunks ? 0 : (cut.chunks - 1) / of_group * of_group;  // whole groups before the last chunk
    const auto some = [&](const Chip& chip, word from, word chunks) {
        const std::size_t groups = (static_cast<std::size_t>(chunks) + chip.chunks - 1) / chip.chunks;
        enqueue_judged(call, {"chunk_chip", "finish"}, chip.defines() + defines, groups * chip.items, chip.items, accept, by, cut, parts, correct, static_cast<cl_long>(from), gate);
    };
    if (equal) some(equal_chunks, 0, equal);
    some(last_chunks, equal, cut.chunks - equal);
}

void enqueue_tiles_finish(Call& call, const Cut& cut, const ChunkLayout& layout, const ChunkParts& parts, cl_int correct, double accept, cl_uint gate) {
    const auto finish = [&](auto limit) { enqueue_tiles(call, "finish", cut, parts, correct, limit, static_cast<cl_long>(layout.pitch), gate); };
    if (call.system.dtype == DType::f32) finish(static_cast<cl_float>(accept));
    else finish(accept);
}

void enqueue_tile_finish(Call& call, const Cut& cut, const ChunkLayout& layout, const ChunkParts& parts, cl_int correct, double accept, cl_uint gate) {
    if (on_chip(call, cut)) enqueue_chip_finish(call, "", cut, parts, correct, accept, gate, {true, 0, Reason::exact});
    else enqueue_tiles_finish(call, cut, layout, parts, correct, accept, gate);
}

void enqueue_tile_finish_judged(Call& call, const Cut& cut, const ChunkLayout& layout, const ChunkParts& parts, cl_int correct, cl_uint gate, const Judging& by) {
    if (on_chip(call, cut)) return enqueue_chip_finish(call, " -DTELLS", cut, parts, correct, tridiagonal::two_pass_accept(call.system.dtype), gate, by);
    enqueue_tiles_finish(call, cut, layout, parts, correct, infinite, gate);
    enqueue_verdict(call, parts, cut.chunks, gate, by);
}

std::size_t chunk_scratch(bool wide, const System& system, std::int64_t chunk_rows) {
    return ScratchParts(system).work + static_cast<std::size_t>(ChunkLayout(wide, system, chunk_rows).numbers) * size_of(system.dtype);
}

void reduce(const System& system, const Partition& partition, const Launch& launch, InterfaceRow* rows, std::int64_t* zero_pivot) {
    const bool good = guarded("reducing chunks", *launch.failure, [&] {
        if (system.dtype == DType::f32) reduce_typed<float>(system, partition, launch, rows, zero_pivot);
        else reduce_typed<double>(system, partition, launch, rows, zero_pivot);
    });
    if (!good) std::fill_n(zero_pivot, partition.chunks(), std::int64_t{0});  // the driver goes no further
}

void finish(const System& system, const Partition& partition, const Launch& launch, const double* boundary, double accept, ChunkResidual* residuals) {
    const bool good = guarded("finishing chunks", *launch.failure, [&] {
        if (system.dtype == DType::f32) finish_typed<float>(system, partition, launch, boundary, accept, residuals);
        else finish_typed<double>(system, partition, launch, boundary, accept, residuals);
    });
    if (!good) std::fill_n(residuals, partition.chunks(), ChunkResidual{infinite, false, 0});
}

void restore(const System& system, const Partition& partition, const Launch& launch, const double* boundary, ChunkResidual* residuals) {
    guarded("restoring a right-hand side", *launch.failure, [&] {
        if (system.dtype == DType::f32) restore_typed<float>(system, partition, launch, boundary, residuals);
        else restore_typed<double>(system, partition, launch, boundary, residuals);
    });
}

}  // namespace trifold::opencl
