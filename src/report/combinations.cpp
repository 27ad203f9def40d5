// SPDX-License-Identifier: BSD-3-Clause
#include "report/combinations.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/format.hpp"

namespace trifold::report {
namespace {

using Json = nlohmann::ordered_json;

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : "+") + name;
    return text;
}

bool explained(double predicted, double known) { return !(std::fabs(deviation(predicted, known)) > explained_within); }

std::string million(double value) {
    if (!std::isfinite(value)) return "–";
    return value < 1e8 ? fmt::format("{:.3g}", value * 1e-6) : fmt::format("{:.0f}", value * 1e-6);
}

std::string off(double predicted, double known) {
    const double by = deviation(predicted, known);
    return std::isfinite(by) ? fmt::format("{:+.0f} %", 100 * by) : "";
}

std::string right(const std::string& text, int width) { return fmt::format("{:>{}}", text, width); }

std::string shares_text(const CombinationLine& line) {
    if (line.devices.size() < 2) return "";
    std::string text;
    for (const double share : line.shares) text += (text.empty() ? "" : " : ") + fmt::format("{:.0f}", 100 * share);
    return text;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json object(const CombinationLine& line) {
    return {{"devices", line.devices},
            {"shares", line.shares},
            {"rows_per_s", number(line.rows_per_s)},
            {"rows_per_joule", number(line.rows_per_joule)},
            {"known_rows_per_s", number(line.known_rows_per_s)},
            {"known_rows_per_joule", number(line.known_rows_per_joule)},
            {"deviation", number(deviation(line.rows_per_s, line.known_rows_per_s))},
            {"deviation_per_joule", number(deviation(line.rows_per_joule, line.known_rows_per_joule))}};
}

/// "cpu (rate +34 %, rows per joule +66 %)": what this model is further from than it may be.
std::vector<std::string> unexplained(const MachineModel& model) {
    std::vector<std::string> names;
    for (const CombinationLine& line : model.lines) {
        std::string what;
        if (!explained(line.rows_per_s, line.known_rows_per_s)) what = "rate " + off(line.rows_per_s, line.known_rows_per_s);
        if (!explained(line.rows_per_joule, line.known_rows_per_joule))
            what += (what.empty() ? "" : ", ") + ("rows per joule " + off(line.rows_per_joule, line.known_rows_per_joule));
        if (!what.empty()) names.push_back(joined(line.devices) + " (" + what + ")");
    }
    return names;
}

std::string in_m(const double (&count)[2]) { return count[1] == 0 ? fmt::format("{:g} m", count[0]) : fmt::format("{:g} m + {:g}", count[0], count[1]); }

std::string text(const std::vector<Operations>& operations) {
    if (operations.empty()) return "";
    std::string out = fmt::format("\n  {:<11}{:<18}{:>10}{:>10}   of a partition of m rows\n", "", "", "published", "counted");
    for (const Operations& one : operations)
        out += fmt::format("  {:<11}{:<18}{:>10}{:>10}{}\n", one.kernel, one.operation, in_m(one.published), in_m(one.counted),
                           one.published[0] == one.counted[0] && one.published[1] == one.counted[1] ? "" : "   differs");
    return out;
}

bool anything_known(const MachineModel& model) {
    for (const CombinationLine& line : model.lines)
        if (std::isfinite(line.known_rows_per_s)) return true;
    return false;
}

}  // namespace

double deviation(double predicted, double known) { return predicted / known - 1; }

std::string text(const MachineTable& table) {
    std::string out = table.title + "\n" + count_text(static_cast<std::int64_t>(table.rows)) + " rows\n" + text(table.operations);
    for (const MachineModel& model : table.models) {
        const bool known = anything_known(model);
        out += "\nmodel '" + model.name + "'" + (model.why.empty() ? "" : ": " + model.why) + "\n";
        if (model.kernel_ratio.size() > 1) {
            out += "  kernels by their own memory ";
            for (std::size_t k = 0; k < model.kernel_ratio.size(); ++k)
                out += fmt::format("{}{} {:.3g}", k ? " : " : "", model.kernel_ratio[k].first, model.kernel_ratio[k].second);
            out += "\n";
        }
        out += fmt::format("  {:<20}{:>9}", "", "Mrows/s") + (known ? fmt::format("{:>9}{:>8}", "known", "off") : "") + fmt::format("{:>9}", "Mrows/J") +
               (known ? fmt::format("{:>9}{:>8}", "known", "off") : "") + "   share %\n";
        for (const CombinationLine& line : model.lines) {
            out += fmt::format("  {:<20}", joined(line.devices)) + right(million(line.rows_per_s), 9);
            if (known) out += right(million(line.known_rows_per_s), 9) + right(off(line.rows_per_s, line.known_rows_per_s), 8);
            out += right(million(line.rows_per_joule), 9);
            if (known) out += right(million(line.known_rows_per_joule), 9) + right(off(line.rows_per_joule, line.known_rows_per_joule), 8);
            const std::string shares = shares_text(line);
            out += (shares.empty() ? "" : "   " + shares) + "\n";
        }
        for (const auto& [objective, names] : model.best) out += fmt::format("  least {:<7} {}\n", name_of(objective), joined(names));
        if (!known) continue;
        std::string list;
        for (const std::string& name : unexplained(model)) list += (list.empty() ? "" : "; ") + name;
        out += fmt::format("  not explained (off by more than {:.0f} %): {}\n", 100 * explained_within, list.empty() ? "none" : list);
    }
    return out;
}

std::string json(const MachineTable& table) {
    Json result{{"schema", "trifold.machine_plan/1"}, {"title", table.title}, {"rows", table.rows}, {"models", Json::array()}};
    for (const Operations& one : table.operations)
        result["operations"].push_back({{"kernel", one.kernel}, {"operation", one.operation}, {"published", one.published}, {"counted", one.counted}});
    for (const MachineModel& model : table.models) {
        Json entry{{"name", model.name}, {"why", model.why}, {"kernel_ratio", Json::object()}, {"combinations", Json::array()}, {"best", Json::object()}, {"unexplained", unexplained(model)}};
        for (const auto& [name, ratio] : model.kernel_ratio) entry["kernel_ratio"][name] = ratio;
        for (const CombinationLine& line : model.lines) entry["combinations"].push_back(object(line));
        for (const auto& [objective, names] : model.best) entry["best"][name_of(objective)] = names;
        result["models"].push_back(std::move(entry));
    }
    return result.dump(1) + "\n";
}

}  // namespace trifold::report
