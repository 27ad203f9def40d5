// SPDX-License-Identifier: BSD-3-Clause
// Douglas and Gunn's step of the heat equation as one writes it for a GPU with a library for tridiagonal systems: a kernel for the
// right-hand side, cuSPARSE along every axis, a kernel for the update; all of it through memory.
//
//   u  [mesh][z][y][x]      r  [y][mesh][z][x] along x and y, [z][y][mesh][x] along z
//
// gtsv2StridedBatch takes lines along x in any order, so that the right-hand side is written with y outermost at once: what
// gtsvInterleavedBatch wants along y, in one call for all meshes. Along z the lines are turned once more. It overwrites its matrix, which
// is written anew by the kernel before it. Words per point and step without what happens inside cuSPARSE: 2 + 3 (right-hand side and
// matrix) + 5 (x) + 5 (y) + 2 + 3 + 5 (z) + 3 (update).
#pragma once

#include <array>
#include <vector>

#include "bench/cuda/cusparse.hpp"
#include "bench/cuda/gpu.cuh"
#include "trifold/mesh.hpp"

namespace trifold::bench {

namespace rival {

/// Mesh numbers along the axes, the values on the low and high sides (Dirichlet, half a cell beyond the last centre).
struct Box {
    int x, y, z, meshes;
    double number[3], low[3], high[3];
};

/// Conductivity at the face between two cells.
template <class T>
__device__ T at_face(T k, T other) {
    return 2 * k * other / (k + other);
}

/// A row of 1 - number/2 (second difference) in cell i of n between fixed sides.
template <class T>
struct Band {
    T *lower, *diag, *upper;
    __device__ void put(std::int64_t at, int i, int n, T number) const {
        const bool first = i == 0, last = i + 1 == n;
        lower[at] = first ? T(0) : -number / 2;
        upper[at] = last ? T(0) : -number / 2;
        diag[at] = 1 + number + (first ? number / 2 : T(0)) + (last ? number / 2 : T(0));
    }
    /// With the conductivity of the cell, whose neighbours are `apart`.
    __device__ void put(std::int64_t at, int i, int n, T number, const T* k, std::int64_t apart) const {
        if (!k) return put(at, i, n, number);
        const bool first = i == 0, last = i + 1 == n;
        const T own = *k, low = number / 2 * (first ? own : at_face(own, k[first ? 0 : -apart])), high = number / 2 * (last ? own : at_face(own, k[last ? 0 : apart]));
        lower[at] = first ? T(0) : -low, upper[at] = last ? T(0) : -high;
        diag[at] = 1 + low + high + (first ? low : T(0)) + (last ? high : T(0));
    }
};

constexpr int across = 32, down = 8, rows_each = 4;  // a block: 32 cells along x, 8 × 4 along y

template <class T, bool Solid>
__global__ void right_hand_side(Box b, const T* __restrict__ u, const T* __restrict__ conductivity, T* __restrict__ r, Band<T> along_y) {
    const int x = blockIdx.x * across + threadIdx.x, plane = blockIdx.z, z = plane % b.z;
    if (x >= b.x) return;
    const std::int64_t pitch = b.x, area = pitch * b.y, lines = std::int64_t(b.meshes) * b.z;
    const T* const from = u + plane * area + x;
    const T nx = T(b.number[0]), ny = T(b.number[1]), nz = T(b.number[2]);
    const auto row = [&](int k) { return static_cast<int>(blockIdx.y * rows_each + k) * down + static_cast<int>(threadIdx.y); };
    T sum[rows_each];  // all is read before anything is stored
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
        const int y = row(k);
        if (y >= b.y) continue;
        const T* const p = from + y * pitch;
        const T own = *p;
        const T west = x > 0 ? p[-1] : 2 * T(b.low[0]) - own, east = x + 1 < b.x ? p[1] : 2 * T(b.high[0]) - own;
        const T south = y > 0 ? p[-pitch] : 2 * T(b.low[1]) - own, north = y + 1 < b.y ? p[pitch] : 2 * T(b.high[1]) - own;
        const T* const c = conductivity ? conductivity + z * area + x + y * pitch : nullptr;
        const auto flow = [&](T beyond, bool there, std::int64_t apart) { return !c ? beyond - own : (there ? at_face(*c, c[there ? apart : 0]) : *c) * (beyond - own); };
        sum[k] = nx * (flow(west, x > 0, -1) + flow(east, x + 1 < b.x, 1)) + ny * (flow(south, y > 0, -pitch) + flow(north, y + 1 < b.y, pitch));
        if (Solid) {
            const T below = z > 0 ? p[-area] : 2 * T(b.low[2]) - own, above = z + 1 < b.z ? p[area] : 2 * T(b.high[2]) - own;
            sum[k] += nz * (flow(below, z > 0, -area) + flow(above, z + 1 < b.z, area));
        }
    }
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
        const int y = row(k);
        if (y >= b.y) continue;
        const std::int64_t at = (y * lines + plane) * pitch + x;
        r[at] = sum[k];
        along_y.put(at, y, b.y, ny, conductivity ? conductivity + z * area + x + y * pitch : nullptr, pitch);
    }
}

template <class T>
__global__ void lines_along_x(Box b, const T* conductivity, Band<T> band, std::int64_t points) {
    const std::int64_t lines = std::int64_t(b.meshes) * b.z;
    for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < points; i += std::int64_t(gridDim.x) * blockDim.x) {
        const std::int64_t row = i / b.x, y = row / lines, z = row % lines % b.z;
        band.put(i, static_cast<int>(i % b.x), b.x, T(b.number[0]), conductivity ? conductivity + (z * b.y + y) * b.x + i % b.x : nullptr, 1);
    }
}

// A row of x of line (y, mesh, z): from [y][mesh][z][x] to [z][y][mesh][x].
template <class T>
__global__ void turn(Box b, const T* __restrict__ from, const T* __restrict__ conductivity, T* __restrict__ to, Band<T> along_z) {
    const int x = blockIdx.x * across + threadIdx.x, y = blockIdx.y * down + threadIdx.y, plane = blockIdx.z, z = plane % b.z, mesh = plane / b.z;
    if (x >= b.x || y >= b.y) return;
    const std::int64_t pitch = b.x, lines = std::int64_t(b.meshes) * b.z, at = ((std::int64_t(z) * b.y + y) * b.meshes + mesh) * pitch + x;
    to[at] = from[(y * lines + plane) * pitch + x];
    along_z.put(at, z, b.z, T(b.number[2]), conductivity ? conductivity + (std::int64_t(z) * b.y + y) * pitch + x : nullptr, pitch * b.y);
}

template <class T, bool Solid>
__global__ void update(Box b, T* __restrict__ u, const T* __restrict__ d) {
    const int x = blockIdx.x * across + threadIdx.x, plane = blockIdx.z, z = plane % b.z, mesh = plane / b.z;
    if (x >= b.x) return;
    const std::int64_t pitch = b.x, lines = std::int64_t(b.meshes) * b.z;
    const auto row = [&](int k) { return static_cast<int>(blockIdx.y * rows_each + k) * down + static_cast<int>(threadIdx.y); };
    T* const to = u + std::int64_t(plane) * b.y * pitch + x;
    T sum[rows_each];
#pragma unroll
    for (int k = 0; k < rows_each; ++k) {
        const int y = row(k);
        const std::int64_t from = Solid ? ((std::int64_t(z) * b.y + y) * b.meshes + mesh) * pitch : (y * lines + plane) * pitch;
        if (y < b.y) sum[k] = to[y * pitch] + d[from + x];
    }
#pragma unroll
    for (int k = 0; k < rows_each; ++k)
        if (row(k) < b.y) to[row(k) * pitch] = sum[k];
}

}  // namespace rival

template <class T>
class HeatRival {
public:
    static constexpr std::array<const char*, 6> phases{"right_hand_side", "x", "y", "turn", "z", "update"};

    /// `u` is advanced in place, on the default stream. Without cuSPARSE, or memory for its arrays: not ready().
    /// `conductivity`: [z][y][x] of the host, for all meshes; null: 1.
    HeatRival(const Sparse& sparse, const rival::Box& box, T* u, const T* conductivity = nullptr) : sparse_(sparse), box_(box), u_(u) {
        points_ = std::int64_t(box.x) * box.y * box.z * box.meshes;
        if (!sparse.handle || points_ >= std::int64_t{1} << 31) return;
        const bool solid = box.z > 1;
        T** const arrays[] = {&r_, &x_.lower, &x_.diag, &x_.upper, &y_.lower, &y_.diag, &y_.upper, &turned_};
        for (T** const array : arrays)
            if ((array != &turned_ || solid) && !take(reinterpret_cast<void**>(array), bytes())) return;
        if (conductivity) {
            const std::size_t one = sizeof(T) * static_cast<std::size_t>(points_ / box.meshes);
            if (!take(reinterpret_cast<void**>(&k_), one)) return;
            check(cudaMemcpy(k_, conductivity, one, cudaMemcpyHostToDevice), "conductivity");
        }
        rival::lines_along_x<T><<<4096, 256>>>(box, k_, x_, points_);
        std::size_t need = 0, most = 0;
        TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch_bufferSizeExt)(sparse_.handle, box.x, x_.lower, x_.diag, x_.upper, r_, lines(box.x), box.x, &need);
        most = need;
        for (const int rows : {box.y, box.z}) {
            if (rows == 1) continue;
            TRIFOLD_CUSPARSE(T, sparse_, gtsvInterleavedBatch_bufferSizeExt)(sparse_.handle, thomas, rows, y_.lower, y_.diag, y_.upper, r_, lines(rows), &need);
            most = std::max(most, need);
        }
        ready_ = take(&buffer_, most);
    }
    ~HeatRival() {
        for (void* const memory : taken_) cudaFree(memory);
    }
    HeatRival(const HeatRival&) = delete;
    HeatRival& operator=(const HeatRival&) = delete;

    bool ready() const { return ready_; }

    /// Enqueues one step. `mark(k)` is called before phase k of `phases` and with 6 at the end.
    template <class Mark>
    void step(Mark mark) {
        const bool solid = box_.z > 1;
        const auto ceil = [](int n, int of) { return static_cast<unsigned>((n + of - 1) / of); };
        const dim3 block(rival::across, rival::down), planes(ceil(box_.x, rival::across), ceil(box_.y, rival::down), static_cast<unsigned>(box_.z * box_.meshes));
        const dim3 strips(planes.x, ceil(box_.y, rival::down * rival::rows_each), planes.z);
        mark(0);
        if (solid) rival::right_hand_side<T, true><<<strips, block>>>(box_, u_, k_, r_, y_);
        else rival::right_hand_side<T, false><<<strips, block>>>(box_, u_, k_, r_, y_);
        mark(1);
        good(TRIFOLD_CUSPARSE(T, sparse_, gtsv2StridedBatch)(sparse_.handle, box_.x, x_.lower, x_.diag, x_.upper, r_, lines(box_.x), box_.x, buffer_));
        mark(2);
        interleaved(box_.y, r_);
        mark(3);
        if (solid) rival::turn<T><<<planes, block>>>(box_, r_, k_, turned_, y_);
        mark(4);
        if (solid) interleaved(box_.z, turned_);
        mark(5);
        if (solid) rival::update<T, true><<<strips, block>>>(box_, u_, turned_);
        else rival::update<T, false><<<strips, block>>>(box_, u_, r_);
        mark(6);
    }
    void step() {
        step([](int) {});
    }

    /// Seconds of each phase, means over `steps` steps.
    std::array<double, 6> seconds_of_phases(int steps) {
        std::array<cudaEvent_t, 7> at{};
        for (cudaEvent_t& event : at) check(cudaEventCreate(&event), "event");
        std::array<double, 6> seconds{};
        for (int k = 0; k < steps; ++k) {
            step([&](int phase) { cudaEventRecord(at[static_cast<std::size_t>(phase)]); });
            check(cudaEventSynchronize(at[6]), "cuSPARSE's step");
            for (std::size_t phase = 0; phase < 6; ++phase) {
                float ms = 0;
                cudaEventElapsedTime(&ms, at[phase], at[phase + 1]);
                seconds[phase] += 1e-3 * ms / steps;
            }
        }
        for (const cudaEvent_t event : at) cudaEventDestroy(event);
        return seconds;
    }

private:
    static constexpr int thomas = 0;  // the fastest of gtsvInterleavedBatch's algorithms

    std::size_t bytes() const { return static_cast<std::size_t>(points_) * sizeof(T); }
    int lines(int rows) const { return static_cast<int>(points_ / rows); }
    bool take(void** memory, std::size_t size) {
        const bool got = cudaMalloc(memory, std::max<std::size_t>(size, 1)) == cudaSuccess;
        cudaGetLastError();
        if (got) taken_.push_back(*memory);
        return got;
    }
    void interleaved(int rows, T* r) {
        good(TRIFOLD_CUSPARSE(T, sparse_, gtsvInterleavedBatch)(sparse_.handle, thomas, rows, y_.lower, y_.diag, y_.upper, r, lines(rows), buffer_));
    }
    static void good(cusparseStatus_t status) {
        if (status == CUSPARSE_STATUS_SUCCESS) return;
        std::fprintf(stderr, "cuSPARSE: status %d\n", static_cast<int>(status));
        std::exit(5);
    }

    const Sparse& sparse_;
    rival::Box box_;
    std::int64_t points_ = 0;
    T *u_, *r_ = nullptr, *turned_ = nullptr, *k_ = nullptr;
    rival::Band<T> x_{}, y_{};
    void* buffer_ = nullptr;
    std::vector<void*> taken_;
    bool ready_ = false;
};

}  // namespace trifold::bench
