// SPDX-License-Identifier: BSD-3-Clause
#include "api/device_solve.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "api/stage.hpp"
#include "base/available_memory.hpp"
#include "devices/context_state.hpp"
#include "families/tridiagonal/offsets.hpp"

namespace trifold::tridiagonal {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of a ragged batch the rows of all systems, which lie one after the other, as one system; else the system itself.
System as_arrays(const System& system) {
    if (!system.offsets) return system;
    System all = system;
    const std::int64_t ends[] = {system.offsets[0], system.offsets[system.ragged_systems]};
    all.offsets = ends, all.ragged_systems = 1;
    return system_at(all, 0);
}

std::size_t offsets_size(const System& system) { return static_cast<std::size_t>(system.ragged_systems + 1) * sizeof *system.offsets; }

// Marks in the stream that are given back.
class Mark {
public:
    Mark(const devices::Runtime& runtime, int device) : runtime_(runtime), device_(device) {}
    ~Mark() {
        if (event) runtime_.release_mark(device_, event);
    }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    void* event = nullptr;

private:
    const devices::Runtime& runtime_;
    int device_;
};

class DeviceSolve {
public:
    DeviceSolve(Queue& queue, const Device& device, const Ops& ops, const System& system, const Options& options, DeviceTimes& times)
        : queue_(queue), state_(queue.context().state()), device_(device), runtime_(*device.runtime), ops_(ops), system_(system), options_(options), times_(times) {}

    Outcome run(bool transposed, Algorithm algorithm, const Placement& placement, bool timed) {
        enter();
        plan_copies(transposed, placement);
        take_memory(algorithm, placement);
        auto start = Clock::now();
        bring();
        if (copies_) wait(), times_.to_device = seconds_since(start);

        if (options_.check_finite) {
            enqueue(ops_.enqueue_finite(ops_.number, on_device_, launch(nullptr), outcome_, failure_));
            const Outcome looked = read();
            if (!looked.ok()) return not_finite(looked, placement);
        }
        Mark before(runtime_, device_.number), after(runtime_, device_.number);
        if (timed) enqueue(runtime_.mark(device_.number, queue_.stream(), &before.event, failure_));
        enqueue(ops_.enqueue(ops_.number, on_device_, algorithm, launch(status_), outcome_, failure_));
        if (timed) enqueue(runtime_.mark(device_.number, queue_.stream(), &after.event, failure_));
        const Outcome outcome = read();
        if (timed) enqueue(runtime_.seconds(device_.number, before.event, after.event, &times_.solve, failure_));

        start = Clock::now();
        fetch(outcome, placement);
        if (copies_) times_.from_device = seconds_since(start);
        return outcome;
    }

private:
    [[noreturn]] void raise() const {
        const bool lost = times_.stores && system_.in_place;
        throw Error(static_cast<ErrorCode>(failure_.code), std::string("device '") + device_.name + "'", failure_.message,
                    lost ? "x was being stored over the right-hand side, some of which is lost" : failure_.hint);
    }
    void enqueue(bool good) const {
        if (!good) raise();
    }
    void wait() { enqueue(runtime_.synchronize(device_.number, queue_.stream(), failure_)); }
    void copy(void* to, const void* from, std::size_t bytes) {
        enqueue(runtime_.copy(device_.number, queue_.stream(), to, from, bytes, failure_));
    }

    void enter() {
        bool capturing = false;
        enqueue(runtime_.enter(device_.number, queue_.stream(), true, &capturing, failure_));
        if (capturing)
            throw Error(ErrorCode::usage, "solve", "the queue's stream is being recorded into a graph, and solve waits", "use solve_async there");
    }

    static constexpr int operands = 7, x_operand = 4;

    std::array<Operand*, operands> operands_on_device() {
        return {&on_device_.lower, &on_device_.diag, &on_device_.upper, &on_device_.rhs, &on_device_.x, &on_device_.top_right, &on_device_.bottom_left};
    }

    // The order of Placement, then the corners of rings, which come with lower and upper where they are rows of these; a transposed matrix has its couplings exchanged.
    void plan_copies(bool transposed, const Placement& placement) {
        const System arrays = as_arrays(system_);
        const std::int64_t n = rows_ = arrays.rows;
        on_device_ = arrays;
        // Read in periodic systems only, which ragged batches of a device have none of.
        if (system_.offsets) on_device_.top_right = on_device_.bottom_left = {};
        System corners = system_;
        corners.rows = 1;
        within_[0] = system_.periodic && is_row_of(system_, system_.top_right, system_.lower, 0);
        within_[1] = system_.periodic && is_row_of(system_, system_.bottom_left, system_.upper, n - 1);
        const auto all = operands_on_device();
        const int lower = transposed ? 2 : 0, upper = transposed ? 0 : 2, origin[operands] = {lower, 1, upper, 3, x_operand, lower, upper};
        for (int k = 0; k < operands; ++k) {
            copied_[k] = all[k]->kind == Operand::Kind::view && !placement.there[origin[k]] && !(k > x_operand && within_[k - x_operand - 1]);
            if (!copied_[k]) continue;
            if (k > x_operand) staged_[k] = stage_operand(*all[k], corners, 0, 0);
            else staged_[k] = stage_operand(*all[k], arrays, k == 0 && !within_[0] ? 1 : 0, k == 2 && !within_[1] ? n - 2 : n - 1);
            copies_ = true;
        }
    }

    // Back from all rows as one system: offsets count from the beginning of the arrays, copies begin with the first system.
    void make_ragged() {
        if (!system_.offsets) return;
        on_device_.offsets = system_.offsets, on_device_.ragged_systems = system_.ragged_systems;
        on_device_.rows = system_.rows;
        for (Operand* const operand : operands_on_device())
            if (operand->kind == Operand::Kind::view)
                operand->data = static_cast<char*>(operand->data) - system_.offsets[0] * operand->row_stride * static_cast<std::int64_t>(size_of(system_.dtype));
    }

    void take_memory(Algorithm algorithm, const Placement& placement) {
        const auto systems = static_cast<std::size_t>(system_.systems());
        std::size_t scratch = ops_.workspace(system_, algorithm, 1);
        std::size_t bytes = align(ops_.outcome_bytes), place[operands] = {};
        const std::size_t status_place = bytes;
        if (options_.status && !placement.status_there) bytes += align(systems);
        for (int k = 0; k < operands; ++k) {
            if (!copied_[k] || (k == x_operand && system_.in_place)) continue;
            place[k] = bytes;
            bytes += align(staged_[k].bytes());
        }
        if (system_.in_place) place[x_operand] = place[3];
        const std::size_t scratch_place = bytes;
        const auto take = [&] {
            const double rows = static_cast<double>(rows_) * (system_.offsets ? 1 : static_cast<double>(systems));
            block_ = state_.device_memory(runtime_, device_.number, device_.name).take(bytes + (options_.workspace.data ? 0 : align(scratch)), "solve", rows, static_cast<double>(systems));
        };
        const std::size_t least = ops_.least_workspace && !options_.workspace.data ? ops_.least_workspace(system_, algorithm) : scratch;
        try {
            take();
        } catch (const Error&) {
            if (least >= scratch) throw;
            scratch = least;
            take();
        }
        times_.workspace_bytes = bytes + scratch;
        char* const base = static_cast<char*>(block_.data());
        outcome_ = base;
        status_ = options_.status ? placement.status_there ? options_.status : reinterpret_cast<std::int8_t*>(base + status_place) : nullptr;
        const auto all = operands_on_device();
        for (int k = 0; k < operands; ++k) {
            if (!copied_[k]) continue;
            *all[k] = staged_[k].compact;
            all[k]->data = copy_[k] = base + place[k];
        }
        if (within_[0]) on_device_.top_right = on_device_.lower;
        if (within_[1]) on_device_.bottom_left = on_device_.upper;
        if (within_[1] && on_device_.upper.kind == Operand::Kind::view)
            on_device_.bottom_left.data = static_cast<char*>(on_device_.upper.data) + (system_.rows - 1) * on_device_.upper.row_stride * static_cast<std::int64_t>(size_of(system_.dtype));
        scratch_ = options_.workspace.data ? supplied(scratch) : base + scratch_place;
        scratch_bytes_ = scratch;
        make_ragged();
    }

    void* supplied(std::size_t bytes) {
        const Workspace& w = options_.workspace;
        if (w.bytes < bytes)
            throw Error(ErrorCode::usage, "Options::workspace", std::to_string(w.bytes) + " bytes, but " + std::to_string(bytes) + " are needed",
                        "ask workspace() with the same problem and options for the size");
        if (reinterpret_cast<std::uintptr_t>(w.data) % 256 != 0)
            throw Error(ErrorCode::usage, "Options::workspace", "an address that is not aligned to 256", "allocate() and cudaMalloc align so");
        Memory found{MemoryKind::device, device_.number};
        if (bytes > 0) enqueue(runtime_.where(device_.number, w.data, &found, failure_));
        if (found != Memory{MemoryKind::device, device_.number})
            throw Error(ErrorCode::usage, "Options::workspace", std::string("is not memory of '") + device_.name + "'",
                        "workspace() says where it must lie; allocate() gives such memory");
        return w.data;
    }

    // In place x is rhs; where it is not added to, it comes back only.
    void bring() {
        if (system_.offsets) copy(scratch_, system_.offsets, offsets_size(system_));
        for (int k = 0; k < operands; ++k) {
            if (!copied_[k] || staged_[k].bytes() == 0 || (k == x_operand && !system_.accumulate)) continue;
            const StagedOperand& s = staged_[k];
            char* const to = static_cast<char*>(copy_[k]);
            if (s.dense) {
                copy(to + s.dense_offset(), static_cast<const char*>(s.host.data) + s.dense_offset(), s.dense_bytes());
                fill_ends(s, to);
                continue;
            }
            const devices::Scratch packed = state_.scratch.take(s.bytes());
            s.pack(packed.data(), state_.threads);
            copy(to, packed.data(), s.bytes());
            wait();  // before the host's copy is given back
        }
    }

    // Entries outside the matrix, which the caller's arrays need not have: kernels may load them, whatever they are, with their
    // neighbours.
    void fill_ends(const StagedOperand& s, char* to) {
        const std::size_t head = s.dense_offset(), tail = s.bytes() - head - s.dense_bytes();
        if (head + tail == 0) return;
        const std::vector<char> zeros(std::max(head, tail));
        if (head > 0) copy(to, zeros.data(), head);
        if (tail > 0) copy(to + s.bytes() - tail, zeros.data(), tail);
        wait();
    }

    void fetch(const Outcome& outcome, const Placement& placement) {
        if (copied_[x_operand] && outcome.failures < system_.systems()) {
            const StagedOperand& s = staged_[x_operand];
            const void* const from = copy_[x_operand];
            if (s.dense) {
                times_.stores = true;
                copy(s.host.data, from, s.bytes());
                wait();
            } else {
                const devices::Scratch packed = state_.scratch.take(s.bytes());
                copy(packed.data(), from, s.bytes());
                wait();
                times_.stores = true;
                s.unpack(packed.data(), state_.threads);
            }
        }
        if (options_.status && !placement.status_there) {
            copy(options_.status, status_, static_cast<std::size_t>(system_.systems()));
            wait();
        }
    }

    Launch launch(std::int8_t* status) const {
        Launch out;
        out.scratch = scratch_;
        out.scratch_bytes = scratch_bytes_;
        out.tolerance = options_.tolerance > 0 ? options_.tolerance : unit_roundoff(system_.dtype);
        out.status = status;
        out.stream = queue_.stream();
        return out;
    }

    Outcome read() {
        std::array<std::byte, 512> kept;
        copy(kept.data(), outcome_, ops_.outcome_bytes);
        wait();
        Outcome outcome;
        ops_.read_outcome(kept.data(), outcome);
        outcome.device = ops_.device;
        return outcome;
    }

    // As on the host: the first bad system is named, nothing was solved.
    Outcome not_finite(Outcome looked, const Placement& placement) {
        looked.failures = 1;
        looked.branch = "";
        looked.tried_other = false;
        if (!options_.status) return looked;
        std::vector<std::int8_t> none(static_cast<std::size_t>(system_.systems()), static_cast<std::int8_t>(Reason::none));
        none[static_cast<std::size_t>(looked.system)] = static_cast<std::int8_t>(looked.reason);
        if (placement.status_there) {
            copy(options_.status, none.data(), none.size());
            wait();
        } else {
            std::memcpy(options_.status, none.data(), none.size());
        }
        return looked;
    }

    Queue& queue_;
    Context::State& state_;
    const Device& device_;
    const devices::Runtime& runtime_;
    const Ops& ops_;
    const System& system_;
    const Options& options_;
    DeviceTimes& times_;
    mutable Failure failure_;
    System on_device_;
    StagedOperand staged_[operands];
    void* copy_[operands] = {};   ///< where they begin
    std::int64_t rows_ = 0;       ///< of an array
    bool copied_[operands] = {}, copies_ = false, within_[2] = {};  ///< within: the corner is a row of lower, of upper
    devices::DeviceBlock block_;
    void *outcome_ = nullptr, *scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    std::int8_t* status_ = nullptr;
};

}  // namespace

Outcome solve_on_device(Queue& queue, const Device& device, const Ops& ops, const System& system, bool transposed, Algorithm algorithm,
                        const Placement& placement, const Options& options, bool timed, DeviceTimes& times) {
    return DeviceSolve(queue, device, ops, system, options, times).run(transposed, algorithm, placement, timed);
}

void enqueue_on_device(Queue& queue, const Device& device, const Ops& ops, const System& system, Algorithm algorithm, const Options& options,
                       void* outcome) {
    const std::string place = std::string("device '") + device.name + "'";
    Failure failure;
    bool capturing = false;
    if (!device.runtime->enter(device.number, queue.stream(), false, &capturing, failure)) failure.raise(place);
    const std::size_t bytes = ops.workspace(system, algorithm, 1);
    if (bytes > options.workspace.bytes || (bytes > 0 && !options.workspace.data))
        throw Error(ErrorCode::usage, "Options::workspace",
                    std::to_string(bytes) + " bytes of '" + device.name + "' are needed" +
                        (options.workspace.data ? ", and " + std::to_string(options.workspace.bytes) + " were given" : ", and solve_async does not allocate"),
                    "ask workspace() for the size and allocate() it once");
    Memory found{MemoryKind::device, device.number};
    if (bytes > 0 && !device.runtime->where(device.number, options.workspace.data, &found, failure)) failure.raise(place);
    if (found != Memory{MemoryKind::device, device.number})
        throw Error(ErrorCode::usage, "Options::workspace", std::string("is not memory of '") + device.name + "'", "allocate() gives such memory");
    // From pinned memory, so that nothing waits; recorded into a graph, it is copied by each launch.
    if (system.offsets && !device.runtime->copy(device.number, queue.stream(), options.workspace.data, system.offsets, offsets_size(system), failure)) failure.raise(place);
    Launch launch;
    launch.scratch = options.workspace.data;
    launch.scratch_bytes = options.workspace.bytes;
    launch.tolerance = options.tolerance > 0 ? options.tolerance : unit_roundoff(system.dtype);
    launch.status = options.status;
    launch.stream = queue.stream();
    if (!ops.enqueue(ops.number, system, algorithm, launch, outcome, failure)) failure.raise(place);
}

}  // namespace trifold::tridiagonal
