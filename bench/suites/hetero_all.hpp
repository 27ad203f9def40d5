// SPDX-License-Identifier: BSD-3-Clause
// All devices of a set, whatever is learnt of who helps: what a split of them can do, as its executor does it.
#pragma once

#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "families/tridiagonal/split/executor.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::bench {

/// lower, diag, upper, rhs and x of one system.
template <class T>
tridiagonal::System system_of(T* const arrays[5], std::int64_t rows) {
    tridiagonal::System system;
    system.dtype = sizeof(T) == 4 ? DType::f32 : DType::f64, system.rows = rows, system.in_place = arrays[4] == arrays[3];
    tridiagonal::Operand* const to[] = {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x};
    for (int k = 0; k < 5; ++k) to[k]->kind = tridiagonal::Operand::Kind::view, to[k]->data = arrays[k], to[k]->row_stride = 1;
    return system;
}

/// A device's verbs.
inline const tridiagonal::Ops& ops_of(const Device& device) { return *static_cast<const tridiagonal::Ops*>(find_cell(device, "tridiagonal").ops); }

class AllTogether {
public:
    AllTogether(const std::vector<std::string>& names, int threads) : threads_(threads) {
        for (const std::string& name : names) {
            const Device& device = device_at(find_device(name));
            parts_.push_back({device.name, &ops_of(device), device.runtime, device.number});
        }
    }

    /// Seconds; NaN where they could not, and of the first solve, which makes buffers and learns paces.
    template <class T>
    double solve(T* const arrays[5], std::int64_t rows) {
        const tridiagonal::System system = system_of(arrays, rows);
        const auto start = std::chrono::steady_clock::now();
        tridiagonal::split::Setting setting;
        setting.parts = parts_, setting.host = &ops_of(device_at(find_device("cpu"))), setting.threads = threads_;
        setting.tolerance = std::ldexp(1.0, sizeof(T) == 4 ? -24 : -53);
        setting.reach = tridiagonal::split::look(system, *setting.host, setting.tolerance, threads_);
        setting.rows_per_s = paces_, setting.scratch = &scratch_, setting.kits = &kits_;
        const tridiagonal::split::Result result = tridiagonal::split::solve(system, setting);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (!result.solved) return NAN;
        const bool first = paces_.empty();
        if (!first)
            for (const auto& [name, passed] : result.phases) phases_[name].push_back(passed);
        paces_.resize(parts_.size());
        for (std::size_t k = 0; k < parts_.size(); ++k)
            if (result.rows_per_s[k] > 0) paces_[k] = paces_[k] > 0 ? 2 / (1 / paces_[k] + 1 / result.rows_per_s[k]) : result.rows_per_s[k];
        return first ? NAN : seconds;
    }

    /// Seconds of every solve in `reduce`, `couple`, `finish`, where there were two passes.
    const std::vector<double>& phase(const std::string& name) { return phases_[name]; }

private:
    const int threads_;
    std::vector<tridiagonal::split::Part> parts_;
    std::vector<double> paces_;
    std::map<std::string, std::vector<double>> phases_;
    devices::ScratchArena scratch_;
    devices::StreamKits kits_;
};

}  // namespace trifold::bench
