// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/available_memory.hpp"
#include "report/format.hpp"
#include "report/render.hpp"
#include "report/trace.hpp"

namespace trifold::report {
namespace {

// Lines of "label  text", the label in a column of its own.
class Page {
public:
    explicit Page(bool colour) : colour_(colour) {}

    void title(const std::string& text) { out_ += paint("1", text) + "\n"; }
    void row(const std::string& label, const std::string& text) {
        out_ += paint("2", fmt::format("  {:<13}", label)) + text + "\n";
    }
    void more(const std::string& text) { row("", text); }
    std::string good(const std::string& text) const { return paint("32", text); }
    std::string bad(const std::string& text) const { return paint("31", text); }
    std::string strong(const std::string& text) const { return paint("1", text); }
    std::string take() { return std::move(out_); }

private:
    std::string paint(const char* code, const std::string& text) const {
        return colour_ ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
    }
    bool colour_;
    std::string out_;
};

std::string shape_text(const std::vector<std::int64_t>& shape, int axis) {
    if (shape.size() < 2) return "";
    std::string text = ", shape ";
    for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? " x " : "") + std::to_string(shape[d]);
    return text + " along axis " + std::to_string(axis);
}

std::string place_of(const Outcome& outcome, std::int64_t systems) {
    std::string text;
    if (outcome.row >= 0) text += " at row " + std::to_string(outcome.row);
    if (outcome.system >= 0 && systems > 1) text += " of system " + std::to_string(outcome.system);
    if (outcome.failures > 1) text += "; " + count_text(outcome.failures) + " systems failed";
    return text;
}

// What the word means for the reader's x.
const char* meaning_of(Reason reason) {
    switch (reason) {
    case Reason::exact:
        return "direct, pivot growth small or pivoted";
    case Reason::certified:
        return "truncation bounded, and the bound holds";
    case Reason::refined:
        return "one step of refinement, good now";
    case Reason::none:
        return "nothing to solve";
    case Reason::singular:
        return "a pivot is exactly zero";
    case Reason::not_finite:
        return "NaN or infinity in the input or the result";
    case Reason::unstable:
        return "a pivot is too small for this unpivoted method; leave --algorithm out";
    case Reason::not_certified:
        return "the truncation error could not be bounded; leave --algorithm out";
    }
    return "";
}

std::string threads_text(int threads) {
    return threads > 0 ? fmt::format(", {} {}", threads, threads == 1 ? "thread" : "threads") : "";
}

std::string phases_text(const Phases& phases) {
    std::string text;
    for (const auto& [name, seconds] : phases) text += (text.empty() ? "" : " · ") + name + " " + seconds_text(seconds);
    return text;
}

// One line for each device of a split or streamed solve.
void add_devices(Page& page, const Record& record) {
    const Report& report = record.report;
    const TraceSummary figures = summary(report);
    for (const DeviceShare& share : report.devices) {
        std::string line = share.name + ": ";
        if (share.rows > 0)
            line += fmt::format("{} of the rows in {} {}, {}, busy {}", percent_text(static_cast<double>(share.rows) / static_cast<double>(report.rows)), share.chunks,
                                share.chunks == 1 ? "chunk" : "chunks", rate_text(share.rows_per_s, "rows"), seconds_text(share.busy_s));
        for (const DeviceTimes& times : figures.devices)
            if (times.name == share.name && times.link_s > 0)
                line += fmt::format(", link {} in use, {} of its kernels hidden behind it{}", seconds_text(times.link_s), percent_text(times.kernel_s > 0 ? times.hidden_s / times.kernel_s : 0),
                                    times.host_s > 0 ? ", " + seconds_text(times.host_s) + " of copies within the host's memory" : "");  // through pinned buffers, where arrays are pageable
        for (const DeviceEnergy& energy : record.energy.devices)
            if (energy.device == share.name && energy.joules > 0)
                line += fmt::format(", {:.3g} J {}, {}/J", energy.joules, energy.kind, quantity_text(static_cast<double>(share.rows) / energy.joules, "rows"));
        if (!share.state.empty()) line += (share.rows > 0 ? "; " : "") + share.state;
        else if (share.rows == 0) line += "no rows: the others had done all before it began";
        page.row(&share == &report.devices.front() ? "devices" : "", line);
    }
}

// Those that had rows of a system which several shared; else the device that the outcome names.
std::string who_solved(const Record& record) {
    std::string names;
    int count = 0;
    for (const DeviceShare& share : record.report.devices)
        if (share.rows > 0) names += (count++ ? "," : "") + share.name;
    return count > 1 ? names : record.device.name;
}

}  // namespace

std::string text(const Record& record, bool colour) {
    const Report& report = record.report;
    const Outcome& outcome = report.outcome;
    Page page(colour);
    page.title("trifold solve: " + problem_text(report.rows, report.systems) + ", " + name_of(report.dtype));
    page.row("problem", record.description + shape_text(record.shape, record.axis) + (record.periodic ? ", periodic" : ""));
    if (record.description.find(record.input) == std::string::npos) page.more(record.input);
    const std::string planned = report.plan.branch.empty() ? "" : report.plan.branch.front();
    page.row("algorithm", page.strong(outcome.branch[0] ? outcome.branch : planned.empty() ? "none" : planned) + " on " + who_solved(record) +
                              threads_text(record.threads) +
                              (outcome.tried_other ? ", after another was tried" : ""));
    if (!report.plan.why.empty()) page.more("why: " + report.plan.why);
    page.row("outcome", (outcome.ok() ? page.good(name_of(outcome.reason)) : page.bad(name_of(outcome.reason))) +
                            place_of(outcome, report.systems) + ": " + meaning_of(outcome.reason));
    if (outcome.rescued > 0)
        page.more(count_text(outcome.rescued) + " of its parts took the pivoted path, and are good");
    if (!outcome.ok()) {
        page.row("time", phases_text(record.phases));
        return page.take();
    }
    if (outcome.reason == Reason::none) {  // no rows: there is nothing to time or to check
        if (!record.output.empty()) page.row("written", record.output);
        return page.take();
    }
    const double rate = static_cast<double>(report.rows) * static_cast<double>(report.systems) / report.solve_s;
    page.row("solve", page.strong(seconds_text(report.solve_s)) + ", " + page.strong(rate_text(rate, "rows")) +
                          (record.repeats > 1 ? fmt::format(" (median of {})", record.repeats) : ""));
    if (report.roof.bytes_per_s > 0)
        page.row("roof", page.strong(percent_text(report.roof.fraction)) + " of " +
                             rate_text(report.roof.bytes_per_s, "B") + " (" + report.roof.source + "), " +
                             bytes_text(report.roof.needed_bytes) + " must move" +
                             (disturbed(report.roof) ? "; above 103 % the measurement is in error" : ""));
    page.row("residual",
             std::isnan(record.residual)
                 ? "not checked"
                 : bound_text(record.residual) + " backward error, checked after the solve in higher precision");
    if (!std::isnan(outcome.certificate))
        page.row("certificate", bound_text(outcome.certificate) +
                                    " bounds the error, truncation and rounding, relative to the largest |x|" +
                                    (std::isnan(outcome.certified_share)
                                         ? ""
                                         : ", for " + percent_text(outcome.certified_share) + " of the rows"));
    else
        page.row("certificate", "none needed: nothing was truncated");
    add_devices(page, record);
    const Energy& energy = record.energy;
    if (std::isfinite(energy.joules))
        page.row("energy", fmt::format("{:.3g} J a solve, {}/J, {} ({}{})", energy.joules,
                                       quantity_text(rate * report.solve_s / energy.joules, "rows"), energy.kind, energy.note,
                                       energy.solves > 0 ? fmt::format("; {} solves in {}", energy.solves, seconds_text(energy.seconds)) : ""));
    else if (!energy.note.empty())
        page.row("energy", "unknown: " + energy.note);
    page.row("time", phases_text(record.phases) + " · total " + seconds_text(record.total_s));
    if (!report.phases.empty()) page.row("of the solve", phases_text(report.phases));
    page.row("memory", "workspace " + bytes_text(static_cast<double>(report.workspace_bytes)) + ", peak " +
                           bytes_text(static_cast<double>(record.peak_bytes)));
    const Machine& m = record.machine;
    page.row("machine", m.cpu + ", " + std::to_string(m.cores) + (m.cores == 1 ? " core, " : " cores, ") +
                            bytes_text(static_cast<double>(m.memory_bytes)) + "; " + m.compiler + "; trifold " +
                            m.version + (m.commit.empty() ? "" : " (" + m.commit + ")"));
    if (!record.output.empty()) page.row("written", record.output == "-" ? "to stdout" : record.output);
    return page.take();
}

std::string text(const Verification& v, bool colour) {
    Page page(colour);
    page.title("trifold verify: " + problem_text(v.rows, v.systems) + ", " + name_of(v.dtype));
    const bool finite = std::isfinite(v.residual);
    page.row("residual", (finite ? bound_text(v.residual) + " backward error" : "not finite: NaN or infinity in x, or products beyond its type") + ", allowed " + bound_text(v.tolerance));
    if (v.row >= 0)
        page.row(finite ? "largest at" : "first at",
                 "row " + std::to_string(v.row) + (v.systems > 1 ? " of system " + std::to_string(v.system) : ""));
    page.row("verdict", v.ok() ? page.good("good") : page.bad("not a solution"));
    return page.take();
}

std::string text(const DeviceList& list, bool matrix) {
    std::string out;
    for (const DeviceInfo& device : list.devices)
        out += fmt::format("{:<12} {}{}\n", device.name, device.description, device.modelled ? " (modelled)" : "");
    for (const auto& [name, why] : list.unavailable) out += fmt::format("{:<12} not usable here: {}\n", name, why);
    if (matrix) {
        out += "\n";
        for (const GridCell& cell : list.cells)
            out += fmt::format("{:<12} {:<12} {:<10} {}\n", cell.device, cell.family, cell.kind, cell.note);
        return out;
    }
    if (!list.measured) out += "\nbandwidth: not measured yet (trifold devices --measure; until then plans rest on defaults)\n";
    else out += fmt::format("\nbandwidth of a solve's mix of reads and writes ({}):\n", list.profile);
    for (const auto& b : list.bandwidth) {
        const bool host = b.threads > 0;
        if (host && !list.measured) continue;
        out += fmt::format("  {:>10}  {:<10}  {:<20} {}{}\n", bytes_text(static_cast<double>(b.footprint)),
                           host ? fmt::format("{:>2} {}", b.threads, b.threads == 1 ? "thread" : "threads") : b.device, b.store, rate_text(b.bytes_per_s, "B"),
                           host || b.source == list.profile ? "" : " (" + b.source + ")");
    }
    return out;
}

std::string text(const BenchTable& table) {
    std::string out = fmt::format("{} {} on {}\n\n{:<22} {:>12} {:>4}  {:<10} {:>10} {:>14} {:>8} {:>12} {:>10}\n",
                                  table.threads, table.threads == 1 ? "thread" : "threads", table.machine.cpu, "problem", "rows", "type", "algorithm", "solve",
                                  "rate", "of roof", "roof", "certified");
    const auto share = [](double value) { return std::isnan(value) ? "-" : percent_text(value); };
    bool in_error = false;
    for (const BenchRow& row : table.rows) {
        const Roof roof = row.roof();
        in_error = in_error || disturbed(roof);
        out += fmt::format("{:<22} {:>12} {:>4}  {:<10} {:>10} {:>14} {:>8} {:>12} {:>10}\n", row.problem, count_text(row.rows), name_of(row.dtype), row.branch,
                           row.ok ? seconds_text(row.solve_s) : "-", row.ok ? rate_text(row.rate(), "rows") : row.reason, share(roof.fraction),
                           roof.bytes_per_s > 0 ? rate_text(roof.bytes_per_s, "B") : "-", share(row.certified_share));
    }
    return out + (in_error ? "\nAbove 103 % of its roof something else disturbed the measurement: measure again.\n" : "");
}

std::string text(const PlanRecord& record, bool explain) {
    const Plan& plan = record.plan;
    std::string out = "trifold plan: " + problem_text(record.rows, record.systems) + ", " + name_of(record.dtype) +
                      shape_text(record.shape, record.axis) + "\n";
    std::string chain;
    for (const std::string& branch : plan.branch) chain += (chain.empty() ? "" : ", else ") + branch;
    out += fmt::format("  {:<13}{} on {}{}\n", "algorithm", chain.empty() ? "none" : chain, plan.device, threads_text(record.threads));
    if (!plan.why.empty()) out += fmt::format("  {:<13}why: {}\n", "", plan.why);
    const bool known = !std::isnan(plan.predicted_s), several = plan.device.find(',') != std::string::npos;
    out += known ? fmt::format("  {:<13}{} predicted ({})\n", "time", seconds_text(plan.predicted_s), plan.profile) : fmt::format("  {:<13}not known before a first solve\n", "time");
    const double problem = static_cast<double>(record.problem_bytes), workspace = static_cast<double>(record.workspace_bytes), available = static_cast<double>(record.available_bytes);
    out += fmt::format("  {:<13}problem {}, workspace {} at most{}\n", "memory", bytes_text(problem), bytes_text(workspace),
                       problem + workspace > available ? ": more than the " + bytes_text(available) + " available" : "");
    if (!explain) return out;
    std::size_t widest = 12;
    for (const Candidate& c : plan.candidates) widest = std::max(widest, c.device.size() + 1);
    out += fmt::format("\n  {:<18}{:<{}}{:>12}   {:<11}{}\n", "candidate", "device", widest, "predicted", "", "why");
    for (const Candidate& c : plan.candidates) {
        const bool falls_back = !c.taken && std::find(plan.branch.begin() + (plan.branch.empty() ? 0 : 1), plan.branch.end(), c.algorithm) != plan.branch.end();
        const char* state = c.taken ? "taken" : several ? "" : falls_back ? "fall-back" : "refused";
        constexpr std::string_view said = "refused: ";
        const std::string_view why = std::string_view(c.why).starts_with(said)
                                         ? std::string_view(c.why).substr(said.size())
                                         : std::string_view(c.why);
        out += fmt::format("  {:<18}{:<{}}{:>12}   {:<11}{}\n", c.algorithm, c.device, widest,
                           std::isnan(c.predicted_s) ? "-" : seconds_text(c.predicted_s), state, why);
    }
    return out;
}

}  // namespace trifold::report
