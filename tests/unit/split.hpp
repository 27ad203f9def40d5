// SPDX-License-Identifier: BSD-3-Clause
// A device with memory of its own that is none, and systems for splits of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/registry.hpp"
#include "families/tridiagonal/split/executor.hpp"
#include "support/random.hpp"
#include "trifold/tridiagonal.hpp"

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
            r.where = [](int, const void* address, Memory* found, Failure&) { return *found = is_theirs(address) ? Memory{MemoryKind::device, 0} : registered() ? Memory{MemoryKind::registered, 0} : Memory{}, true; };
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
            r.close_stream = [](int, void* stream) {
                std::this_thread::sleep_for(std::chrono::milliseconds(closing_ms().load()));
                delete static_cast<int*>(stream);
            };
            r.wait_for = [](int, void*, void*, Failure&) { return true; };
            r.allocate_pinned = [](int, std::size_t bytes, void** memory, Failure&) { return *memory = ::operator new(bytes, std::align_val_t{256}), true; };
            r.release_pinned = [](int, void* memory) { ::operator delete(memory, std::align_val_t{256}); };
            r.gather_ends = [](int, void*, DType dtype, std::int64_t count, std::int64_t rows, const void* y, const void* g, const void* h, void* ends, Failure&) {
                const std::size_t size = size_of(dtype);
                char* to = static_cast<char*>(ends);
                for (std::int64_t k = 0; k < count; ++k)
                    for (const void* array : {y, g, h})
                        for (const std::int64_t row : {k * rows, (k + 1) * rows - 1}) std::memcpy(to, static_cast<const char*>(array) + static_cast<std::size_t>(row) * size, size), to += size;
                return true;
            };
            r.combine = [](int, void*, DType dtype, std::int64_t count, std::int64_t rows, void* x, const void* g, const void* h, const void* factors, double* sizes, Failure&) {
                const bool loses = spoiled_sums() > 0 && spoiled_sums()-- > 0;
                if (dtype == DType::f32) combine(count, rows, static_cast<float*>(x), static_cast<const float*>(g), static_cast<const float*>(h), static_cast<const float*>(factors), sizes);
                else combine(count, rows, static_cast<double*>(x), static_cast<const double*>(g), static_cast<const double*>(h), static_cast<const double*>(factors), sizes);
                if (loses) sizes[2 * (count / 2)] = 1e30 * sizes[2 * (count / 2) + 1];
                return true;
            };
            r.close_pieces = [](int, void*, const devices::Pieces& pieces, Failure&) { return pieces.dtype == DType::f32 ? close<float>(pieces) : close<double>(pieces), true; };
            r.judge_pieces = [](int, void*, const devices::Pieces& pieces, float* worst, Failure&) {
                *worst = pieces.dtype == DType::f32 ? judge<float>(pieces) : judge<double>(pieces);
                if (spoiled_pieces() > 0 && spoiled_pieces()-- > 0) *worst = std::numeric_limits<float>::infinity();
                closed_chunks()++;
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
            t.workspace = [](const System& system, Algorithm, int) { return ops_of("cpu").workspace(system, system.levels > 0 ? Algorithm::automatic : Algorithm::lu, 1) + (system.rows < 5000 ? std::size_t{1} << 20 : 0); };
            t.outcome_bytes = sizeof(Outcome);
            t.enqueue = [](int, const System& system, Algorithm, const Launch& launch, void* outcome, Failure& failure) {
                for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x})
                    if (operand->kind == Operand::Kind::view && !is_theirs(static_cast<char*>(operand->data) + 8))
                        return failure.say(ErrorCode::internal, "an array of the host reached the device");
                if (launch.scratch_bytes < ops().workspace(system, Algorithm::automatic, 1)) return failure.say(ErrorCode::bad_input, "the workspace is too small");
                largest_batch() = std::max(largest_batch().load(), static_cast<int>(system.systems()));
                Outcome found;
                ops_of("cpu").solve(system, system.levels > 0 ? Algorithm::automatic : Algorithm::lu, launch, found);
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

    /// So many chunks of pieces are said not to meet what is known of their ends; how many were closed and judged in all; the most systems that one call was given.
    static std::atomic<int>& spoiled_pieces() {
        static std::atomic<int> left{0};
        return left;
    }
    /// Whether the host's memory is said to be registered, so that nothing is staged but x in place.
    static std::atomic<bool>& registered() {
        static std::atomic<bool> all{false};
        return all;
    }
    /// What it takes to close a queue.
    static std::atomic<int>& closing_ms() {
        static std::atomic<int> ms{0};
        return ms;
    }
    static std::atomic<int>& largest_batch() {
        static std::atomic<int> systems{0};
        return systems;
    }
    static std::atomic<int>& closed_chunks() {
        static std::atomic<int> count{0};
        return count;
    }

private:
    using Clock = std::chrono::steady_clock;
    struct State {
        std::mutex mutex;
        std::map<const char*, std::size_t> blocks;
    };
    template <class T>
    static void combine(std::int64_t count, std::int64_t rows, T* x, const T* g, const T* h, const T* factors, double* sizes) {
        for (std::int64_t k = 0; k < count; ++k) {
            const T alpha = factors[2 * k], beta = factors[2 * k + 1];
            double& met = sizes[2 * k] = 0;
            double& made = sizes[2 * k + 1] = 0;
            for (std::int64_t i = k * rows; i < (k + 1) * rows; ++i) {
                met = std::max(met, std::abs(double{x[i]}) + std::abs(double{alpha} * g[i]) + std::abs(double{beta} * h[i]));
                x[i] = static_cast<T>(x[i] + alpha * g[i] + beta * h[i]);
                made = std::max(made, std::abs(double{x[i]}));
            }
        }
    }
    template <class T>
    static void close(const devices::Pieces& p) {
        const T *known = static_cast<const T*>(p.known), *lower = static_cast<const T*>(p.lower), *upper = static_cast<const T*>(p.upper);
        T* const rhs = static_cast<T*>(p.rhs);
        for (std::int64_t k = 0; k < p.count; ++k) {
            const std::int64_t first = k * p.rows, last = first + p.rows - 1;
            if (known[2 * k] != 0) rhs[first] -= (lower ? lower[first] : static_cast<T>(p.lower_value)) * known[2 * k];
            if (known[2 * k + 3] != 0) rhs[last] -= (upper ? upper[last] : static_cast<T>(p.upper_value)) * known[2 * k + 3];
        }
    }
    template <class T>
    static float judge(const devices::Pieces& p) {
        const T *known = static_cast<const T*>(p.known), *x = static_cast<const T*>(p.x);
        float worst = 0;
        for (std::int64_t k = 0; k < p.count; ++k) {
            T most = 0;
            for (std::int64_t i = 0; i < p.rows; ++i) most = std::max(most, std::abs(x[k * p.rows + i]));
            const T away = std::max(std::abs(x[k * p.rows] - known[2 * k + 1]), std::abs(x[(k + 1) * p.rows - 1] - known[2 * k + 2]));
            const float ratio = !std::isfinite(away) || !std::isfinite(most) ? std::numeric_limits<float>::infinity() : away > 0 ? static_cast<float>(away / most) : 0;
            worst = std::max(worst, ratio);
        }
        return worst;
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

    Problem problem() {
        Problem p;
        p.matrix = {View<const T>::rows(std::span<const T>(lower)), View<const T>::rows(std::span<const T>(diag)), View<const T>::rows(std::span<const T>(upper))};
        p.rhs = View<const T>::rows(std::span<const T>(rhs)), p.x = View<T>::rows(std::span<T>(in_place ? rhs : x));
        return p;
    }

    /// To be solved once more.
    void renew() {
        rhs = given;
        std::fill(x.begin(), x.end(), std::numeric_limits<T>::quiet_NaN());
    }

    /// Normwise over blocks of so many rows, in unit roundoffs: what is accepted of a seam, a chunk and a row; of a device's parts of 2^14 rows near a zero of x it is as
    /// small beside the part's largest x alone (docs/algorithms/split.md).
    double residual(std::size_t block = 1024) const {
        const std::vector<T>& v = in_place ? rhs : x;
        double worst = 0;
        const std::size_t n = v.size();
        for (std::size_t first = 0; first < n; first += block) {
            double most = 0, matrix = 0, size = 0, right = 0;
            for (std::size_t i = first; i < std::min(n, first + block); ++i) {
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
