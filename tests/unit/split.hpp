// SPDX-License-Identifier: BSD-3-Clause
// A device with memory of its own that is none, and systems for splits of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "backends/registry.hpp"
#include "families/tridiagonal/split/executor.hpp"
#include "support/random.hpp"

namespace trifold::tests {

using namespace tridiagonal;

inline const Ops& ops_of(const char* device) { return *static_cast<const Ops*>(find_cell(device_at(find_device(device)), "tridiagonal").ops); }

/// Memory of the heap that only it knows, copies and kernels that run when they are enqueued, the cpu's LU.
class FakeDevice {
public:
    static const devices::Runtime& runtime() {
        static const devices::Runtime table = [] {
            devices::Runtime r;
            r.allocate = [](int, std::size_t bytes, void** memory, Failure&) {
                char* const data = static_cast<char*>(::operator new(bytes, std::align_val_t{256}));
                std::memset(data, 0xff, bytes);  // NaN
                const std::lock_guard lock(state().mutex);
                state().blocks[data] = bytes;
                *memory = data;
                return true;
            };
            r.release = [](int, void* memory) {
                const std::lock_guard lock(state().mutex);
                state().blocks.erase(static_cast<char*>(memory));
                ::operator delete(memory, std::align_val_t{256});
            };
            r.memory_info = [](int, std::size_t* free, std::size_t* total, Failure&) { return *free = *total = std::size_t{1} << 26, true; };
            r.where = [](int, const void* address) { return is_theirs(address) ? Memory{MemoryKind::device, 0} : Memory{}; };
            r.copy = [](int, void*, void* to, const void* from, std::size_t bytes, Failure&) { return std::memcpy(to, from, bytes), true; };
            r.synchronize = [](int, void*, Failure&) { return true; };
            r.enter = [](int, void*, bool, bool* capturing, Failure&) { return *capturing = false, true; };
            r.mark = [](int, void*, void** event, Failure&) { return *event = new Clock::time_point(Clock::now()), true; };
            r.seconds = [](int, void* from, void* to, double* seconds, Failure&) {
                *seconds = std::chrono::duration<double>(*static_cast<Clock::time_point*>(to) - *static_cast<Clock::time_point*>(from)).count();
                return true;
            };
            r.release_mark = [](int, void* event) { delete static_cast<Clock::time_point*>(event); };
            r.open_stream = [](int, void** stream, Failure&) { return *stream = new int, true; };
            r.close_stream = [](int, void* stream) { delete static_cast<int*>(stream); };
            r.wait_for = [](int, void*, void*, Failure&) { return true; };
            r.allocate_pinned = [](int, std::size_t bytes, void** memory, Failure&) { return *memory = ::operator new(bytes, std::align_val_t{256}), true; };
            r.release_pinned = [](int, void* memory) { ::operator delete(memory, std::align_val_t{256}); };
            r.combine = [](int, void*, DType dtype, std::int64_t rows, void* x, const void* g, const void* h, double alpha, double beta, double* sizes, Failure&) {
                const bool loses = spoiled_sums() > 0 && spoiled_sums()-- > 0;
                if (dtype == DType::f32) combine(rows, static_cast<float*>(x), static_cast<const float*>(g), static_cast<const float*>(h), alpha, beta, sizes);
                else combine(rows, static_cast<double*>(x), static_cast<const double*>(g), static_cast<const double*>(h), alpha, beta, sizes);
                if (loses) sizes[0] = 1e30 * sizes[1];
                return true;
            };
            return r;
        }();
        return table;
    }

    static const Ops& ops() {
        static const Ops table = [] {
            Ops t;
            t.device = "fake:0";
            t.refuses = [](const System&, Algorithm) -> const char* { return nullptr; };
            // Short ones take more than long ones.
            t.workspace = [](const System& system, Algorithm, int) { return ops_of("cpu").workspace(system, Algorithm::lu, 1) + (system.rows < 5000 ? std::size_t{1} << 20 : 0); };
            t.outcome_bytes = sizeof(Outcome);
            t.enqueue = [](int, const System& system, Algorithm, const Launch& launch, void* outcome, Failure& failure) {
                for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x})
                    if (operand->kind == Operand::Kind::view && !is_theirs(static_cast<char*>(operand->data) + 8))
                        return failure.say(ErrorCode::internal, "an array of the host reached the device");
                if (launch.scratch_bytes < ops().workspace(system, Algorithm::automatic, 1)) return failure.say(ErrorCode::bad_input, "the workspace is too small");
                Outcome found;
                ops_of("cpu").solve(system, Algorithm::lu, launch, found);
                std::memcpy(outcome, &found, sizeof found);
                return true;
            };
            t.read_outcome = [](const void* copy, Outcome& outcome) { std::memcpy(&outcome, copy, sizeof outcome); };
            return t;
        }();
        return table;
    }

    /// So many sums of spikes are said to have lost their digits.
    static std::atomic<int>& spoiled_sums() {
        static std::atomic<int> left{0};
        return left;
    }

private:
    using Clock = std::chrono::steady_clock;
    struct State {
        std::mutex mutex;
        std::map<const char*, std::size_t> blocks;
    };
    template <class T>
    static void combine(std::int64_t rows, T* x, const T* g, const T* h, double alpha, double beta, double* sizes) {
        sizes[0] = sizes[1] = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            sizes[0] = std::max(sizes[0], std::abs(double{x[i]}) + std::abs(alpha * g[i]) + std::abs(beta * h[i]));
            x[i] = static_cast<T>(x[i] + alpha * g[i] + beta * h[i]);
            sizes[1] = std::max(sizes[1], std::abs(double{x[i]}));
        }
    }
    static State& state() {
        static State& all = *new State;  // for threads that were left behind, to the end
        return all;
    }
    static bool is_theirs(const void* address) {
        const std::lock_guard lock(state().mutex);
        for (const auto& [data, bytes] : state().blocks)
            if (address >= data && address < data + bytes) return true;
        return false;
    }
};

enum class Matrix { dominant, diffusion, random, poisson, wave, antidiagonal };

/// Arrays of one system, and the residual of what is in x.
template <class T>
struct SplitCase {
    std::vector<T> lower, diag, upper, rhs, x, given;
    bool in_place;

    SplitCase(Matrix kind, std::int64_t rows, bool in_place, std::uint64_t seed = 1) : in_place(in_place) {
        Random random(seed);
        const auto n = static_cast<std::size_t>(rows);
        for (std::vector<T>* array : {&lower, &diag, &upper, &rhs, &x}) array->resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            const T a = static_cast<T>(random.uniform(-1, 1)), c = static_cast<T>(random.uniform(-1, 1));
            lower[i] = a, upper[i] = c, rhs[i] = static_cast<T>(random.uniform(-1, 1));
            switch (kind) {
                case Matrix::dominant: diag[i] = static_cast<T>(1.5) * (std::abs(a) + std::abs(c)) + T(0.01); break;
                case Matrix::diffusion: lower[i] = upper[i] = -100, diag[i] = 201; break;
                case Matrix::random: diag[i] = static_cast<T>(random.uniform(-1, 1)); break;
                case Matrix::poisson: lower[i] = upper[i] = -1, diag[i] = 2; break;
                case Matrix::wave: lower[i] = upper[i] = 1, diag[i] = static_cast<T>(0.7); break;
                case Matrix::antidiagonal: diag[i] = 0; break;  // singular where the number of rows is odd
            }
        }
        // Not read.
        lower[0] = upper[n - 1] = std::numeric_limits<T>::quiet_NaN();
        given = rhs;
    }

    System system() {
        System s;
        s.dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
        s.rows = static_cast<std::int64_t>(lower.size());
        s.in_place = in_place;
        std::vector<T>* const arrays[] = {&lower, &diag, &upper, &rhs, in_place ? &rhs : &x};
        Operand* const operands[] = {&s.lower, &s.diag, &s.upper, &s.rhs, &s.x};
        for (int k = 0; k < 5; ++k) operands[k]->kind = Operand::Kind::view, operands[k]->row_stride = 1, operands[k]->data = arrays[k]->data();
        return s;
    }

    /// Normwise over blocks of 1024 rows, in unit roundoffs: what is accepted of a seam, a chunk and a row.
    double residual() const {
        const std::vector<T>& v = in_place ? rhs : x;
        double worst = 0;
        const std::size_t n = v.size();
        for (std::size_t first = 0; first < n; first += 1024) {
            double most = 0, matrix = 0, size = 0, right = 0;
            for (std::size_t i = first; i < std::min(n, first + 1024); ++i) {
                const double a = i > 0 ? lower[i] : T(0), c = i + 1 < n ? upper[i] : T(0), b = diag[i];
                const double before = i > 0 ? v[i - 1] : T(0), after = i + 1 < n ? v[i + 1] : T(0);
                const double r = static_cast<double>(given[i]) - a * before - b * static_cast<double>(v[i]) - c * after;
                most = std::isfinite(r) ? std::max(most, std::abs(r)) : INFINITY;
                matrix = std::max({matrix, std::abs(a), std::abs(b), std::abs(c)});
                size = std::max({size, std::abs(before), std::abs(static_cast<double>(v[i])), std::abs(after)}), right = std::max(right, std::abs(static_cast<double>(given[i])));
            }
            worst = std::max(worst, most / (matrix * size + right));
        }
        return worst / (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);
    }
};

}  // namespace trifold::tests
