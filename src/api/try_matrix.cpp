// SPDX-License-Identifier: BSD-3-Clause
#include "api/try_matrix.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "trifold/device_memory.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {
namespace {

// A prime, so that it has no common measure with any layout.
constexpr std::int64_t period = 4093;

template <class T>
void fill(Queue& queue, void* to, std::int64_t elements, double size) {
    std::vector<T> numbers(static_cast<std::size_t>(std::min(elements, period)));
    std::uint64_t state = 1;
    for (T& number : numbers) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double value = size * (1 + static_cast<double>(state >> 40) * 0x1p-24);
        number = static_cast<T>(state >> 39 & 1 ? -value : value);
    }
    const Device& device = device_at(queue.device_index());
    Failure failure;
    const auto copy = [&](std::int64_t at, const void* from, std::int64_t count) {
        if (!device.runtime->copy(device.number, queue.stream(), static_cast<T*>(to) + at, from, static_cast<std::size_t>(count) * sizeof(T), failure)) failure.raise(std::string("device '") + device.name + "'");
    };
    std::int64_t filled = static_cast<std::int64_t>(numbers.size());
    copy(0, numbers.data(), filled);
    for (; filled < elements; filled += std::min(filled, elements - filled)) copy(filled, to, std::min(filled, elements - filled));
    queue.synchronize();
}

Outcome solved(Queue& queue, const Problem& problem, std::int64_t elements, double size, bool check_finite) {
    problem.rhs.dtype == DType::f32 ? fill<float>(queue, problem.rhs.data, elements, size) : fill<double>(queue, problem.rhs.data, elements, size);
    Options options;
    options.check_finite = check_finite;
    return solve(queue, problem, options);
}

}  // namespace

Outcome try_matrix(Queue& queue, const KeptLayout& kept, std::int64_t rows, std::span<const std::int64_t> batch, DType dtype) {
    Problem problem;
    problem.matrix = kept.matrix;
    AnyView& rhs = problem.rhs;
    rhs.dtype = dtype, rhs.memory = queue.memory();
    rhs.batch_dims = static_cast<int>(batch.size());
    rhs.batch.fill({1, 0});
    rhs.axis = {rows, 1};
    std::int64_t elements = 1, alike = 1;
    for (int k = kept.dims - 1; k >= 0; --k) {
        const int dim = kept.order[static_cast<std::size_t>(k)];
        const auto d = static_cast<std::size_t>(std::max(dim - 1, 0));
        if (dim > 0 && !kept.varies[d]) {
            alike *= batch[d];
            continue;
        }
        Dim& along = dim == 0 ? rhs.axis : rhs.batch[d];
        along = {dim == 0 ? rows : batch[d], elements};
        elements *= along.extent;
    }
    const auto bytes = elements * static_cast<std::int64_t>(size_of(dtype));
    const DeviceArray<std::byte> right(queue, bytes), found(queue, bytes);
    problem.x = rhs;
    problem.x.writable = true;
    rhs.data = right.data(), problem.x.data = found.data();

    const Outcome first = solved(queue, problem, elements, 1, true);
    Outcome outcome = first;
    if (first.reason == Reason::not_finite) {
        // Of the matrix, by whoever looked before the solve: others may have failed before it. Or an x that is too large for its type, which says nothing of the matrix: then with much smaller numbers, and with
        // zeros where these are too large as well, of which a pivot that is none still says so.
        const bool looked = *first.branch == '\0';
        outcome = solved(queue, problem, elements, looked ? 1 : dtype == DType::f32 ? 0x1p-60 : 0x1p-500, false);
        if (!looked && outcome.reason == Reason::not_finite) outcome = solved(queue, problem, elements, 0, false);
        if (looked && (outcome.ok() || first.system <= outcome.system)) {
            outcome.failures += outcome.system != first.system;  // an infinite entry that the solve took for its limit
            outcome.reason = first.reason, outcome.system = first.system, outcome.row = first.row;
        }
    }
    outcome.residual = outcome.certificate = outcome.certified_share = Outcome::unknown;  // of numbers that are none of the caller's
    if (outcome.ok()) outcome.reason = Reason::exact;
    outcome.failures *= alike, outcome.rescued *= alike;
    // The number of its system, in the batch in which nothing is left out.
    std::int64_t rest = outcome.system, number = 0, weight = 1;
    for (std::size_t d = batch.size(); d-- > 0;) {
        if (kept.varies[d] && rest > 0) number += rest % batch[d] * weight, rest /= batch[d];
        weight *= batch[d];
    }
    if (outcome.system > 0) outcome.system = number;
    return outcome;
}

}  // namespace trifold::tridiagonal
