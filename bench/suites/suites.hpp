// SPDX-License-Identifier: BSD-3-Clause
// The suites: each fills one record.
#pragma once

#include <span>

#include "bench/harness/case.hpp"

namespace trifold::bench {

struct Suite {
    const char* name;
    const char* title;
    void (*run)(const Settings& settings, Record& record);
};

void run_single(const Settings& settings, Record& record);
void run_curve(const Settings& settings, Record& record);
void run_pivoted(const Settings& settings, Record& record);
void run_batch(const Settings& settings, Record& record);
void run_small(const Settings& settings, Record& record);
void run_planner(const Settings& settings, Record& record);
void run_factored(const Settings& settings, Record& record);
void run_general(const Settings& settings, Record& record);
void run_heat(const Settings& settings, Record& record);
void run_dominance(const Settings& settings, Record& record);
void run_opencl_cpu(const Settings& settings, Record& record);
void run_mappings(const Settings& settings, Record& record);
void run_hetero(const Settings& settings, Record& record);
void run_hetero_kinds(const Settings& settings, Record& record);
void run_hetero_choice(const Settings& settings, Record& record);

inline constexpr Suite suites[] = {
    {"single", "One system, dominant: in memory and inside the last-level cache", run_single},
    {"curve", "One system, from strong decay to none", run_curve},
    {"pivoted", "One general system, pivoted", run_pivoted},
    {"batch", "Batches in place, along every axis", run_batch},
    {"small", "One small system: latency and allocations", run_small},
    {"planner", "Predicted and measured, and what a better choice would have saved", run_planner},
    {"factored", "Kept factors: many right-hand sides, a batch, one long system", run_factored},
    {"general", "Rings, ragged batches and x that is added to", run_general},
    {"heat", "ADI heat, per step", run_heat},
    {"dominance", "Error against diagonal dominance, every device and oclspkt's mappings", run_dominance},
    {"opencl_cpu", "OpenCL in the host's memory beside the native cpu", run_opencl_cpu},
    {"mappings", "oclspkt's mappings on OpenCL devices, data where they compute", run_mappings},
    {"hetero", "One system of the host's memory on every device and set of devices", run_hetero},
    {"hetero_kinds", "One system of the host's memory, of other kinds and given in other ways, on devices and sets of them", run_hetero_kinds},
    {"hetero_choice", "What the planner chooses of a set of devices, beside its best single one in turns", run_hetero_choice},
};

/// "1e8" for round numbers, else digits.
std::string count_text(double count);

/// Largest number of rows, at most `wanted`, whose arrays (`words` of them) fit half of the free memory.
std::int64_t rows_that_fit(double wanted, DType dtype, double words);

/// Rows of a single system whose five arrays fill half of the last-level cache.
std::int64_t rows_in_cache(DType dtype);

}  // namespace trifold::bench
