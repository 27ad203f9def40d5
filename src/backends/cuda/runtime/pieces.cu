// SPDX-License-Identifier: BSD-3-Clause
// Pieces of a chunk that others have reduced: closed before they are solved as a batch, judged behind.
//
// Equation   rhs[first] -= lower[first] x_before,  rhs[last] -= upper[last] x_after;      worst = max |x[end] - known| / max|x| of the piece
// Work       closing: a thread per piece; judging: a warp per piece
// Words      closing 6 per piece; judging 1 per row
// Numerics   in the type of the arrays; the ratio in single precision; a NaN inside a piece that does not reach its ends is the batch's to find
#include "backends/cuda/runtime/pieces.hpp"

#include "backends/cuda/runtime/launches.hpp"

namespace trifold::cuda {
namespace {

constexpr int threads = 256;

template <class T>
struct Given {
    std::int64_t count, rows;
    const T *lower, *upper, *x, *known;
    T lower_value, upper_value;
    T* rhs;

    explicit Given(const devices::Pieces& p)
        : count(p.count), rows(p.rows), lower(static_cast<const T*>(p.lower)), upper(static_cast<const T*>(p.upper)), x(static_cast<const T*>(p.x)), known(static_cast<const T*>(p.known)),
          lower_value(static_cast<T>(p.lower_value)), upper_value(static_cast<T>(p.upper_value)), rhs(static_cast<T*>(p.rhs)) {}
};

template <class T>
__global__ void close_pieces(const Given<T> p) {
    const std::int64_t k = blockIdx.x * static_cast<std::int64_t>(threads) + threadIdx.x;
    if (k >= p.count) return;
    const std::int64_t first = k * p.rows, last = first + p.rows - 1;
    const T before = p.known[2 * k], after = p.known[2 * k + 3];
    if (before != 0) p.rhs[first] -= (p.lower ? p.lower[first] : p.lower_value) * before;
    if (after != 0) p.rhs[last] -= (p.upper ? p.upper[last] : p.upper_value) * after;
}

template <class T>
__global__ void judge_pieces(const Given<T> p, float* worst) {
    const std::int64_t k = (blockIdx.x * static_cast<std::int64_t>(threads) + threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (k >= p.count) return;
    const T* const x = p.x + k * p.rows;
    T most = 0;
    for (std::int64_t i = lane; i < p.rows; i += 32) most = fmax(most, fabs(x[i]));
    for (int step = 16; step > 0; step /= 2) most = fmax(most, __shfl_xor_sync(~0u, most, step));
    if (lane > 0) return;
    const T away = fmax(fabs(x[0] - p.known[2 * k + 1]), fabs(x[p.rows - 1] - p.known[2 * k + 2]));
    const bool numbers = x[0] - x[0] == 0 && x[p.rows - 1] - x[p.rows - 1] == 0 && most < INFINITY;
    const float ratio = !numbers ? INFINITY : away == 0 ? 0.f : static_cast<float>(away / most);
    atomicMax(reinterpret_cast<int*>(worst), __float_as_int(ratio));
}

__global__ void reset(float* worst) { *worst = 0; }

template <class T>
void judge(const devices::Pieces& pieces, float* worst, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>((32 * pieces.count + threads - 1) / threads);
    enqueue_kernel(judge_pieces<T>, blocks, threads, 0, stream, Given<T>(pieces), worst);
}

}  // namespace

void enqueue_close_pieces(const devices::Pieces& pieces, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>((pieces.count + threads - 1) / threads);
    if (pieces.dtype == DType::f32) enqueue_kernel(close_pieces<float>, blocks, threads, 0, stream, Given<float>(pieces));
    else enqueue_kernel(close_pieces<double>, blocks, threads, 0, stream, Given<double>(pieces));
}

void enqueue_judge_pieces(const devices::Pieces& pieces, float* worst, cudaStream_t stream) {
    enqueue_kernel(reset, 1, 1, 0, stream, worst);
    pieces.dtype == DType::f32 ? judge<float>(pieces, worst, stream) : judge<double>(pieces, worst, stream);
}

}  // namespace trifold::cuda
