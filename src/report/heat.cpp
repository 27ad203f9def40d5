// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/available_memory.hpp"
#include "report/format.hpp"
#include "report/render.hpp"

namespace trifold::report {
namespace {

std::string mesh_text(const HeatRecord& record) {
    std::string text;
    for (const std::int64_t cells : record.mesh) text += (text.empty() ? "" : " x ") + std::to_string(cells);
    return record.batch > 1 ? fmt::format("{} meshes of {}", count_text(record.batch), text) : "a mesh of " + text;
}

double rate(const HeatRecord& record) { return record.ok && record.solve_s > 0 ? record.points * static_cast<double>(record.iterations) / record.solve_s : unknown; }

// Words that a stream at the roof moves while a point takes one step: where a kernel moves more, the roof is not reached; where it moves
// less, what stays on chip is faster than memory.
double words_per_step(const HeatRecord& record) {
    const double size = record.dtype == DType::f64 ? 8 : 4;
    return record.roof_bytes_per_s > 0 ? record.roof_bytes_per_s / rate(record) / size : unknown;
}

}  // namespace

std::string text(const HeatRecord& record) {
    std::string out = fmt::format("trifold heat: {}, {} {}, {}\n", mesh_text(record), count_text(record.iterations), record.iterations == 1 ? "step" : "steps", name_of(record.dtype));
    const auto row = [&](const char* label, const std::string& what) { out += fmt::format("  {:<13}{}\n", label, what); };
    row("problem", fmt::format("begins as {}; sides {}; conductivity {}{}", record.initial, record.boundary, record.conductivity, record.source.empty() ? "" : "; source " + record.source));
    row("scheme", fmt::format("{}, on {}{}", record.scheme, record.device, record.threads > 0 ? fmt::format(", {} {}", record.threads, record.threads == 1 ? "thread" : "threads") : ""));
    row("step", fmt::format("{:.4g}, mesh number {:.4g}{}", record.step, record.number, record.number > accurate_mesh_number ? ": the shortest waves hardly decay" : ""));
    row("outcome", !record.ok ? record.reason + ": " + record.place : record.iterations == 0 ? record.reason + ": no steps, the field is the initial one" : record.reason);
    if (record.ok) {
        if (record.iterations > 0) row("solve", fmt::format("{}, {}{}", seconds_text(record.solve_s), rate_text(rate(record), "points"), record.parts > 1 ? fmt::format(", in {} parts", record.parts) : ""));
        if (record.roof_bytes_per_s > 0)
            row("roof", fmt::format("{:.1f} GB/s measured now: a step takes as long as moving {:.3g} words a point", record.roof_bytes_per_s / 1e9, words_per_step(record)));
        const Energy& energy = record.energy;
        if (std::isfinite(energy.joules))
            row("energy", fmt::format("{:.3g} J for the run, {}/J, {} ({}{})", energy.joules, quantity_text(rate(record) * record.solve_s / energy.joules, "points"), energy.kind, energy.note,
                                      record.energy_steps > 0 ? fmt::format("; {} steps in {}", count_text(record.energy_steps), seconds_text(energy.seconds)) : ""));
        else if (!energy.note.empty())
            row("energy", "unknown: " + energy.note);
        row("field", fmt::format("{:.6g} to {:.6g}, mean {:.10g}", record.least, record.most, record.mean));
    }
    std::string phases;
    for (const auto& [name, seconds] : record.phases) phases += (phases.empty() ? "" : " · ") + name + " " + seconds_text(seconds);
    row("time", phases + " · total " + seconds_text(record.total_s));
    row("memory", "peak " + bytes_text(static_cast<double>(record.peak_bytes)));
    const Machine& m = record.machine;
    row("machine", fmt::format("{}, {} cores; {}; trifold {}{}", m.cpu, m.cores, m.compiler, m.version, m.commit.empty() ? "" : " (" + m.commit + ")"));
    for (const std::string& path : record.written) row("written", path == "-" ? "to stdout" : path);
    return out;
}

std::string json(const HeatRecord& record) {
    using Json = nlohmann::ordered_json;
    const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
    Json phases = Json::object();
    for (const auto& [name, seconds] : record.phases) phases[name] = seconds;
    const Machine& m = record.machine;
    const Json result{{"schema", "trifold.heat/1"},
                      {"problem",
                       {{"mesh", record.mesh}, {"batch", record.batch}, {"iterations", record.iterations}, {"precision", name_of(record.dtype)}, {"step", record.step},
                        {"mesh_number", record.number}, {"scheme", record.scheme}, {"boundary", record.boundary}, {"initial", record.initial}, {"conductivity", record.conductivity},
                        {"source", record.source.empty() ? Json(nullptr) : Json(record.source)}}},
                      {"outcome", {{"ok", record.ok}, {"reason", record.reason}, {"place", record.place.empty() ? Json(nullptr) : Json(record.place)}, {"device", record.device}, {"threads", record.threads}, {"parts", record.parts}}},
                      {"field", {{"least", number(record.least)}, {"most", number(record.most)}, {"mean", number(record.mean)}}},
                      {"time", {{"clock", "wall"}, {"total_s", record.total_s}, {"solve_s", record.solve_s}, {"phases", phases}}},
                      {"roof",
                       {{"kind", "bandwidth"}, {"value", record.roof_bytes_per_s > 0 ? Json(record.roof_bytes_per_s) : Json(nullptr)}, {"unit", "B/s"},
                        {"source", record.roof_bytes_per_s > 0 ? Json("measured now") : Json(nullptr)}, {"words_per_point_and_step", number(words_per_step(record))}}},
                      {"rate", {{"points_per_s", number(rate(record))}}},
                      {"energy",
                       {{"joules", number(record.energy.joules)}, {"kind", record.energy.kind}, {"note", record.energy.note.empty() ? Json(nullptr) : Json(record.energy.note)},
                        {"points_per_joule", number(rate(record) * record.solve_s / record.energy.joules)}, {"seconds", record.energy.seconds}, {"steps", record.energy_steps}}},
                      {"memory", {{"peak_bytes", record.peak_bytes}}},
                      {"written", record.written},
                      {"machine", {{"cpu", m.cpu}, {"cores", m.cores}, {"memory_bytes", m.memory_bytes}, {"system", m.system}, {"compiler", m.compiler}, {"version", m.version},
                                   {"commit", m.commit.empty() ? Json(nullptr) : Json(m.commit)}}}};
    return result.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trifold::report
