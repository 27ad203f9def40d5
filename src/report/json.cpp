// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/render.hpp"
#include "report/trace.hpp"

namespace trifold::report {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json index(std::int64_t value) {
    return value >= 0 ? Json(value) : Json(nullptr);
}

Json object(const Phases& phases) {
    Json result = Json::object();
    for (const auto& [name, seconds] : phases) result[name] = seconds;
    return result;
}

Json object(const Machine& machine) {
    return {{"cpu", machine.cpu},
            {"cores", machine.cores},
            {"memory_bytes", machine.memory_bytes},
            {"system", machine.system},
            {"compiler", machine.compiler},
            {"version", machine.version},
            {"commit", machine.commit.empty() ? Json(nullptr) : Json(machine.commit)}};
}

Json object(const DeviceInfo& device) {
    return {{"name", device.name}, {"description", device.description}, {"modelled", device.modelled}};
}

Json object(const Candidate& candidate) {
    return {{"algorithm", candidate.algorithm},
            {"device", candidate.device},
            {"predicted_s", number(candidate.predicted_s)},
            {"taken", candidate.taken},
            {"why", candidate.why}};
}

Json object(const Plan& plan, bool candidates) {
    Json result{{"algorithm", plan.branch.empty() ? Json(nullptr) : Json(plan.branch.front())},
                {"device", plan.device},
                {"why", plan.why},
                {"predicted_s", number(plan.predicted_s)},
                {"branch", plan.branch},
                {"profile", plan.profile}};
    if (!candidates) return result;
    result["candidates"] = Json::array();
    for (const Candidate& candidate : plan.candidates) result["candidates"].push_back(object(candidate));
    return result;
}

Json object(const Outcome& outcome) {
    return {{"ok", outcome.ok()},
            {"reason", name_of(outcome.reason)},
            {"branch", outcome.branch},
            {"row", index(outcome.row)},
            {"system", index(outcome.system)},
            {"iterations", nullptr},
            {"failures", outcome.failures},
            {"rescued", outcome.rescued},
            {"certified_share", number(outcome.certified_share)},
            {"tried_other", outcome.tried_other},
            {"tabulated", outcome.tabulated},
            {"device", outcome.device}};
}

Json object(const Roof& roof, bool solved) {
    const bool known = roof.bytes_per_s > 0;
    return {{"kind", "bandwidth"},
            {"value", known ? Json(roof.bytes_per_s) : Json(nullptr)},
            {"unit", "B/s"},
            {"source", !known || roof.source.empty() ? Json(nullptr) : Json(roof.source)},
            {"needed_bytes", roof.needed_bytes},
            {"fraction", known && solved ? number(roof.fraction) : Json(nullptr)},
            {"disturbed", known && solved ? Json(disturbed(roof)) : Json(nullptr)}};
}

Json roof_of(const Record& record) {
    return object(record.report.roof, record.report.outcome.ok());
}

Json object(const DeviceEnergy& energy, double unknowns) {
    return {{"joules", number(energy.joules)},
            {"kind", energy.kind},
            {"note", energy.note.empty() ? Json(nullptr) : Json(energy.note)},
            {"rows_per_joule", number(unknowns / energy.joules)}};
}

/// A device of a solve that was split or streamed.
Json object(const DeviceShare& share, const Record& record, const TraceSummary& figures) {
    Json result{{"name", share.name},
                {"state", share.state.empty() ? "took part" : share.state},
                {"rows", share.rows},
                {"chunks", share.chunks},
                {"busy_s", share.busy_s},
                {"rate", {{"rows_per_s", share.rows > 0 ? number(share.rows_per_s) : Json(nullptr)}}},
                {"link", {{"bytes_to", share.bytes_to}, {"bytes_from", share.bytes_from}}}};
    for (const DeviceTimes& times : figures.devices)
        if (times.name == share.name)
            result["time"] = {{"kernel_s", times.kernel_s}, {"link_s", times.link_s}, {"host_s", times.host_s}, {"kernel_and_link_s", times.hidden_s}};
    for (const DeviceEnergy& energy : record.energy.devices)
        if (energy.device == share.name) result["energy"] = object(energy, static_cast<double>(share.rows));
    return result;
}

std::string line(const Json& json) {
    // A file's name may hold bytes that are not UTF-8.
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string json(const Record& record) {
    const Report& report = record.report;
    const double unknowns = static_cast<double>(report.rows) * static_cast<double>(report.systems);
    const double joules = record.energy.joules;
    const Json energy{{"joules", number(joules)},
                      {"kind", record.energy.kind},
                      {"note", record.energy.note.empty() ? Json(nullptr) : Json(record.energy.note)},
                      {"rows_per_joule", number(unknowns / joules)},
                      {"seconds", record.energy.seconds},
                      {"solves", record.energy.solves}};
    const Json rate{
        {"rows_per_s", report.outcome.ok() && report.solve_s > 0 ? number(unknowns / report.solve_s) : Json(nullptr)}};
    Json device = object(record.device);
    device["threads"] = record.threads;
    device["rows"] = report.rows * report.systems;
    device["solve_s"] = report.solve_s;
    device["roof"] = roof_of(record);
    device["rate"] = rate;
    device["energy"] = energy;
    Json devices = Json::array();
    const TraceSummary figures = summary(report);
    for (const DeviceShare& share : report.devices) devices.push_back(object(share, record, figures));
    if (devices.empty()) devices.push_back(device);
    const Json result{{"schema", "trifold.report/1"},
                      {"family", "tridiagonal"},
                      {"problem",
                       {{"rows", report.rows},
                        {"systems", report.systems},
                        {"layout", report.layout},
                        {"precision", name_of(report.dtype)},
                        {"rhs", record.right_hand_sides},
                        {"shape", record.shape},
                        {"axis", record.axis},
                        {"periodic", record.periodic},
                        {"input", record.input}}},
                      {"plan", object(report.plan, false)},
                      {"outcome", object(report.outcome)},
                      {"error",
                       {{"residual", number(record.residual)},
                        {"certificate", number(report.outcome.certificate)},
                        {"solver_residual", number(report.outcome.residual)}}},
                      {"time",
                       {{"clock", record.device.modelled ? "modelled" : "wall"},
                        {"total_s", record.total_s},
                        {"solve_s", report.solve_s},
                        {"repeats", record.repeats},
                        {"phases", object(record.phases)},
                        {"solve_phases", object(report.phases)}}},
                      {"roof", roof_of(record)},
                      {"rate", rate},
                      {"energy", energy},
                      {"memory", {{"workspace_bytes", report.workspace_bytes}, {"peak_bytes", record.peak_bytes}}},
                      {"output", record.output.empty() ? Json(nullptr) : Json(record.output)},
                      {"devices", devices},
                      {"machine", object(record.machine)}};
    return line(result);
}

std::string json(const Verification& v) {
    return line({{"schema", "trifold.verify/1"},
                 {"ok", v.ok()},
                 {"input", v.input},
                 {"solution", v.solution},
                 {"problem", {{"rows", v.rows}, {"systems", v.systems}, {"precision", name_of(v.dtype)}}},
                 {"error",
                  {{"residual", number(v.residual)},
                   {"tolerance", v.tolerance},
                   {"system", index(v.system)},
                   {"row", index(v.row)}}}});
}

std::string json(const DeviceList& list) {
    Json result{{"schema", "trifold.devices/1"},
                {"threads", list.threads},
                {"devices", Json::array()},
                {"unavailable", Json::array()},
                {"matrix", Json::array()}};
    for (const DeviceInfo& device : list.devices) result["devices"].push_back(object(device));
    for (const auto& [name, why] : list.unavailable) result["unavailable"].push_back({{"name", name}, {"why", why}});
    for (const GridCell& cell : list.cells)
        result["matrix"].push_back(
            {{"device", cell.device}, {"family", cell.family}, {"kind", cell.kind}, {"note", cell.note}});
    Json& profile = result["profile"] = {{"source", list.profile}, {"bandwidth", Json::array()}};
    for (const auto& b : list.bandwidth)
        profile["bandwidth"].push_back({{"footprint_bytes", b.footprint},
                                        {"threads", b.threads},
                                        {"store", b.store},
                                        {"bytes_per_s", b.bytes_per_s},
                                        {"device", b.device},
                                        {"source", b.source}});
    result["machine"] = object(list.machine);
    return line(result);
}

std::string json(const BenchTable& table) {
    Json result{{"schema", "trifold.bench/1"}, {"threads", table.threads}, {"rows", Json::array()}};
    for (const BenchRow& row : table.rows)
        result["rows"].push_back({{"problem", row.problem},
                                  {"rows", row.rows},
                                  {"precision", name_of(row.dtype)},
                                  {"branch", row.branch},
                                  {"reason", row.reason},
                                  {"solve_s", row.solve_s},
                                  {"predicted_s", number(row.predicted_s)},
                                  {"rows_per_s", number(row.rate())},
                                  {"certified_share", number(row.certified_share)},
                                  {"roof", object(row.roof(), row.ok)}});
    result["machine"] = object(table.machine);
    return line(result);
}

std::string json(const PlanRecord& record) {
    return line({{"schema", "trifold.plan/1"},
                 {"family", "tridiagonal"},
                 {"problem",
                  {{"rows", record.rows},
                   {"systems", record.systems},
                   {"precision", name_of(record.dtype)},
                   {"shape", record.shape},
                   {"axis", record.axis},
                   {"periodic", record.periodic},
                   {"input", record.input}}},
                 {"plan", object(record.plan, true)},
                 {"memory", {{"problem_bytes", record.problem_bytes}, {"workspace_bytes", record.workspace_bytes}, {"available_bytes", record.available_bytes}}},
                 {"threads", record.threads}});
}

}  // namespace trifold::report
