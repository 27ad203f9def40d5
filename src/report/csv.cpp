// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cmath>

#include "report/render.hpp"

namespace trifold::report {

// Quoted where a comma, quote or line end asks for it (RFC 4180).
static std::string field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
}

static std::string field(double value) {
    return std::isfinite(value) ? fmt::format("{:.9g}", value) : "";
}

std::string csv_header() {
    return "input,rows,systems,layout,precision,device,threads,algorithm,branch,reason,row,system,solve_s,predicted_s,"
           "total_s,"
           "rows_per_s,roof_bytes_per_s,needed_bytes,fraction,residual,certificate,workspace_bytes,peak_bytes\n";
}

std::string csv_line(const Record& record) {
    const Report& report = record.report;
    const Outcome& outcome = report.outcome;
    const bool solved = outcome.ok() && report.solve_s > 0;
    const double rate =
        solved ? static_cast<double>(report.rows) * static_cast<double>(report.systems) / report.solve_s : unknown;
    const double roof = report.roof.bytes_per_s > 0 ? report.roof.bytes_per_s : unknown;
    return fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", field(record.input), report.rows,
        report.systems, report.layout, name_of(report.dtype), record.device.name, record.threads,
        report.plan.branch.empty() ? "" : report.plan.branch.front(), outcome.branch, name_of(outcome.reason),
        outcome.row >= 0 ? std::to_string(outcome.row) : "", outcome.system >= 0 ? std::to_string(outcome.system) : "",
        field(report.solve_s), field(report.plan.predicted_s), field(record.total_s), field(rate), field(roof),
        field(report.roof.needed_bytes), field(solved && report.roof.bytes_per_s > 0 ? report.roof.fraction : unknown),
        field(record.residual), field(outcome.certificate), report.workspace_bytes, record.peak_bytes);
}

}  // namespace trifold::report
