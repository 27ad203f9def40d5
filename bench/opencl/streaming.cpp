// SPDX-License-Identifier: BSD-3-Clause
#include "streaming.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/aligned_buffer.hpp"
#include "numbers.hpp"

namespace trifold::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

template <class T>
struct Host {
    std::int64_t rows;
    AlignedBuffer array[5];

    explicit Host(std::int64_t n) : rows(n) {
        for (AlignedBuffer& one : array) one = AlignedBuffer(static_cast<std::size_t>(n) * sizeof(T));
        const Numbers<T> numbers(3);
        const std::vector<T>* const from[] = {&numbers.lower, &numbers.diag, &numbers.upper, &numbers.rhs};
#pragma omp parallel for schedule(static)
        for (std::int64_t first = 0; first < n; first += period)
            for (int k = 0; k < 5; ++k) {
                const std::int64_t count = std::min(period, n - first);
                if (k < 4) std::copy_n(from[k]->data(), count, at(k) + first);
                else std::fill_n(at(k) + first, count, T(0));
            }
    }
    T* at(int k) const { return static_cast<T*>(array[k].data()); }

    tridiagonal::Problem problem() const {
        const auto view = [&](int k) { return View<const T>::rows(std::span<const T>(at(k), static_cast<std::size_t>(rows))); };
        tridiagonal::Problem p;
        p.matrix = {view(0), view(1), view(2)};
        p.rhs = view(3);
        p.x = View<T>::rows(std::span<T>(at(4), static_cast<std::size_t>(rows)));
        return p;
    }

    /// Largest |rhs - A x| over (|a| + |b| + |c|) max|x| of the row, in unit roundoffs.
    double backward_error() const {
        double worst = 0;
#pragma omp parallel for schedule(static) reduction(max : worst)
        for (std::int64_t i = 0; i < rows; ++i) {
            const double a = i > 0 ? at(0)[i] : T(0), b = at(1)[i], c = i + 1 < rows ? at(2)[i] : T(0), above = i > 0 ? at(4)[i - 1] : T(0), below = i + 1 < rows ? at(4)[i + 1] : T(0), x = at(4)[i];
            const double r = std::abs(at(3)[i] - a * above - b * x - c * below) / ((std::abs(a) + std::abs(b) + std::abs(c)) * std::max({std::abs(above), std::abs(x), std::abs(below)}));
            worst = std::max(worst, r == r ? r : INFINITY);
        }
        return worst / (sizeof(T) == 8 ? 0x1p-53 : 0x1p-24);
    }
};

/// Bytes per second from arrays of the host into the device, nothing else running.
template <class T>
double link_in(Queue& queue, const Host<T>& host) {
    const std::size_t bytes = std::min<std::size_t>(host.array[0].bytes(), std::size_t{1} << 30);
    DeviceArray<std::byte> there(queue, static_cast<std::int64_t>(bytes));
    std::vector<double> rates;
    for (int round = 0; round < 5; ++round) {
        const auto start = Clock::now();
        copy(queue, there.data(), host.at(round % 4), bytes);
        rates.push_back(static_cast<double>(bytes) / seconds_since(start));
    }
    return median(rates);
}

}  // namespace

template <class T>
void run_streaming(Context& context, const std::vector<std::string>& devices, std::int64_t rows, int rounds, nlohmann::ordered_json& out) {
    const Host<T> host(rows);
    struct One {
        std::unique_ptr<Queue> queue;
        std::vector<double> seconds;
        double link = 0, error = 0;
        Outcome outcome;
    };
    std::vector<One> all(devices.size());
    for (std::size_t d = 0; d < devices.size(); ++d) all[d].queue = std::make_unique<Queue>(context, devices[d]);
    // Memory is registered with one driver at a time; twice each, in turns, and the first solve of either does not count.
    for (int turn = 0; turn < 2; ++turn)
        for (One& one : all) {
            std::vector<RegisteredMemory> registered;
            for (const AlignedBuffer& array : host.array) registered.emplace_back(*one.queue, array.data(), array.bytes());
            for (int round = -1; round < (rounds + 1) / 2; ++round) {
                const auto start = Clock::now();
                one.outcome = tridiagonal::solve(*one.queue, host.problem(), {});
                if (round >= 0) one.seconds.push_back(seconds_since(start));
            }
            one.error = host.backward_error();
            one.link = link_in(*one.queue, host);
        }
    double first = 0;
    for (std::size_t d = 0; d < all.size(); ++d) {
        const double s = median(all[d].seconds), bytes = 4.0 * static_cast<double>(rows) * sizeof(T), fraction = bytes / s / all[d].link;
        if (d == 0) first = s;
        nlohmann::ordered_json row = {{"case", "streamed from the host"}, {"rows", rows}, {"systems", 1}, {"precision", sizeof(T) == 8 ? "f64" : "f32"}, {"device", devices[d]},
                                      {"branch", all[d].outcome.branch}, {"reason", name_of(all[d].outcome.reason)}, {"ms", s * 1e3}, {"alone_ms", s * 1e3},
                                      {"grows_per_s", static_cast<double>(rows) / s * 1e-9}, {"roof_gb_per_s", all[d].link * 1e-9}, {"fraction", fraction},
                                      {"backward_error_roundoffs", all[d].error}, {"rescued", all[d].outcome.rescued}};
        if (d > 0) row["times_first"] = s / first;
        std::printf("%-22s %9lld %s %-12s %-10s %-9s %8.2f ms  %5.2f Grows/s  %5.1f %% of the link's %4.1f GB/s  %6.1f u  %.2f x\n", "streamed from the host", static_cast<long long>(rows), sizeof(T) == 8 ? "f64" : "f32",
                    devices[d].c_str(), std::string(all[d].outcome.branch).c_str(), name_of(all[d].outcome.reason), s * 1e3, static_cast<double>(rows) / s * 1e-9, 100 * fraction, all[d].link * 1e-9, all[d].error, s / first);
        std::fflush(stdout);
        out.push_back(std::move(row));
    }
}

template void run_streaming<float>(Context&, const std::vector<std::string>&, std::int64_t, int, nlohmann::ordered_json&);
template void run_streaming<double>(Context&, const std::vector<std::string>&, std::int64_t, int, nlohmann::ordered_json&);

}  // namespace trifold::bench
