// SPDX-License-Identifier: BSD-3-Clause
// Records to characters. JSON keys are never removed or renamed within a schema; numbers that are not known are null.
#pragma once

#include <string>

#include "report/record.hpp"

namespace trifold::report {

/// For a person; `colour` adds terminal escapes.
std::string text(const Record& record, bool colour);
std::string text(const Verification& verification, bool colour);
std::string text(const DeviceList& list, bool matrix);
std::string text(const BenchTable& table);
std::string text(const PlanRecord& plan, bool explain);
std::string text(const HeatRecord& record);

/// One object and a line end. Schemas trifold.report/1, trifold.verify/1, trifold.devices/1, trifold.bench/1,
/// trifold.plan/1, trifold.heat/1.
std::string json(const Record& record);
std::string json(const Verification& verification);
std::string json(const DeviceList& list);
std::string json(const BenchTable& table);
std::string json(const PlanRecord& plan);
std::string json(const HeatRecord& record);

/// One solve as a line of comma-separated values, and the line of their names.
std::string csv_header();
std::string csv_line(const Record& record);

}  // namespace trifold::report
