// SPDX-License-Identifier: BSD-3-Clause
#include "report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "report/format.hpp"

namespace trifold::report {
namespace {

using Json = nlohmann::ordered_json;
using Spans = std::vector<std::pair<double, double>>;

enum class Kind { kernel, to, from, host };

Kind kind_of(const TraceEvent& event) {
    const std::string_view phase = event.phase;
    if (phase == "kernel") return Kind::kernel;
    if (phase == "to device") return Kind::to;
    if (phase == "from device") return Kind::from;
    return Kind::host;
}

/// Sorted, without overlaps.
Spans united(Spans spans) {
    std::sort(spans.begin(), spans.end());
    Spans out;
    for (const auto& span : spans) {
        if (!out.empty() && span.first <= out.back().second) out.back().second = std::max(out.back().second, span.second);
        else out.push_back(span);
    }
    return out;
}

double length(const Spans& spans) {
    double sum = 0;
    for (const auto& [begin, end] : spans) sum += end - begin;
    return sum;
}

Spans common(const Spans& a, const Spans& b) {
    Spans out;
    for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
        const double begin = std::max(a[i].first, b[k].first), end = std::min(a[i].second, b[k].second);
        if (begin < end) out.emplace_back(begin, end);
        a[i].second < b[k].second ? ++i : ++k;
    }
    return out;
}

/// Devices of the report, then the host's joins as one more.
std::size_t place_of(const TraceEvent& event, const trifold::Report& report) {
    const auto count = static_cast<int>(report.devices.size());
    return static_cast<std::size_t>(event.device >= 0 && event.device < count ? event.device : count);
}

std::string name_at(std::size_t place, const trifold::Report& report) { return place < report.devices.size() ? report.devices[place].name : "host"; }

/// Events of one device and slot that overlap lie in rows of their own: row of every event, and how many rows each (place, slot) has.
struct Rows {
    std::vector<int> row;
    std::map<std::pair<std::size_t, int>, int> count;
};

Rows rows_of(const trifold::Report& report) {
    std::vector<std::size_t> order(report.trace.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return report.trace[a].begin_s < report.trace[b].begin_s; });
    Rows out;
    out.row.resize(order.size());
    std::map<std::pair<std::size_t, int>, std::vector<double>> ends;
    for (const std::size_t k : order) {
        const TraceEvent& event = report.trace[k];
        const std::pair key(place_of(event, report), event.slot);
        std::vector<double>& busy = ends[key];
        std::size_t row = 0;
        while (row < busy.size() && busy[row] > event.begin_s) ++row;
        if (row == busy.size()) busy.push_back(0);
        busy[row] = event.end_s;
        out.row[k] = static_cast<int>(row);
        out.count[key] = static_cast<int>(busy.size());
    }
    return out;
}

}  // namespace

TraceSummary summary(const trifold::Report& report) {
    TraceSummary out;
    if (report.trace.empty()) return out;
    const std::size_t places = report.devices.size() + 1;
    std::vector<Spans> all(places), kernels(places), link(places), host(places);
    out.devices.resize(places);
    double first = INFINITY, last = 0;
    for (const TraceEvent& event : report.trace) {
        const std::size_t at = place_of(event, report);
        const std::pair span(event.begin_s, event.end_s);
        const Kind kind = kind_of(event);
        all[at].push_back(span);
        (kind == Kind::kernel ? kernels : kind == Kind::host ? host : link)[at].push_back(span);
        DeviceTimes& times = out.devices[at];
        if (kind == Kind::kernel) times.kernel_bytes += event.bytes;
        if (kind == Kind::to) times.bytes_to += event.bytes;
        if (kind == Kind::from) times.bytes_from += event.bytes;
        first = std::min(first, event.begin_s), last = std::max(last, event.end_s);
    }
    out.seconds = last - first;
    Spans together, any;
    for (std::size_t at = 0; at < places; ++at) {
        const Spans k = united(kernels[at]), l = united(link[at]), busy = united(all[at]);
        DeviceTimes& times = out.devices[at];
        times.name = name_at(at, report);
        times.busy_s = length(busy), times.kernel_s = length(k), times.link_s = length(l), times.host_s = length(united(host[at])), times.hidden_s = length(common(k, l));
        const Spans shared = common(any, busy);
        together.insert(together.end(), shared.begin(), shared.end());
        any.insert(any.end(), busy.begin(), busy.end());
        any = united(std::move(any));
    }
    out.together_s = length(united(std::move(together)));
    if (all.back().empty()) out.devices.pop_back();
    return out;
}

std::string chrome_trace(const trifold::Report& report) {
    const Rows rows = rows_of(report);
    Json events = Json::array();
    for (std::size_t at = 0; at <= report.devices.size(); ++at)
        if (at < report.devices.size() || std::any_of(report.trace.begin(), report.trace.end(), [&](const TraceEvent& e) { return place_of(e, report) == at; }))
            events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", at}, {"tid", 0}, {"args", {{"name", name_at(at, report)}}}});
    constexpr int rows_of_slot = 256;
    for (const auto& [key, count] : rows.count)
        for (int row = 0; row < count; ++row)
            events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", key.first}, {"tid", key.second * rows_of_slot + row}, {"args", {{"name", fmt::format("slot {}", key.second)}}}});
    for (std::size_t k = 0; k < report.trace.size(); ++k) {
        const TraceEvent& event = report.trace[k];
        const double seconds = event.end_s - event.begin_s;
        Json args{{"first row", event.first}, {"rows", event.rows}, {"bytes", event.bytes}};
        if (seconds > 0 && event.bytes > 0) args["GB/s"] = event.bytes / seconds * 1e-9;
        events.push_back({{"name", event.phase}, {"cat", event.phase}, {"ph", "X"}, {"pid", place_of(event, report)}, {"tid", event.slot * rows_of_slot + rows.row[k]},
                          {"ts", event.begin_s * 1e6}, {"dur", seconds * 1e6}, {"args", std::move(args)}});
    }
    const TraceSummary figures = summary(report);
    Json other{{"schema", "trifold.trace/1"}, {"rows", report.rows}, {"precision", name_of(report.dtype)}, {"seconds", figures.seconds}, {"together_s", figures.together_s}};
    for (const DeviceTimes& d : figures.devices)
        other["devices"].push_back({{"name", d.name}, {"busy_s", d.busy_s}, {"kernel_s", d.kernel_s}, {"link_s", d.link_s}, {"host_s", d.host_s}, {"hidden_s", d.hidden_s},
                                    {"bytes_to", d.bytes_to}, {"bytes_from", d.bytes_from}});
    return Json{{"displayTimeUnit", "ms"}, {"otherData", other}, {"traceEvents", events}}.dump(1) + "\n";
}

std::string timeline_svg(const trifold::Report& report) {
    if (report.trace.empty())
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"420\" height=\"40\" font-family=\"sans-serif\" font-size=\"12\">"
               "<text x=\"10\" y=\"25\">nothing was split or streamed: there are no events</text></svg>\n";
    constexpr double left = 150, width = 900, row_height = 16, gap = 8, top = 58;
    constexpr std::pair<std::string_view, const char*> colours[] = {{"kernel", "#b2182b"}, {"to device", "#2166ac"}, {"from device", "#1b7837"}, {"stage", "#d9820f"}, {"store", "#a6761d"}, {"join", "#8c6bb1"}};
    const Rows rows = rows_of(report);
    double last = 0;
    for (const TraceEvent& event : report.trace) last = std::max(last, event.end_s);
    if (!(last > 0)) last = 1e-9;
    const auto x_of = [&](double s) { return left + width * s / last; };
    // Top edge of every (place, slot); devices in order, a gap between them.
    std::map<std::pair<std::size_t, int>, double> tops;
    double y = top;
    std::size_t device = rows.count.begin()->first.first;
    std::string out;
    const TraceSummary figures = summary(report);
    for (const auto& [key, count] : rows.count) {
        if (key.first != device) y += gap, device = key.first;
        if (key.second == 0 || tops.find({key.first, key.second - 1}) == tops.end()) {
            const std::string name = name_at(key.first, report);
            double busy = 0;
            for (const DeviceTimes& d : figures.devices)
                if (d.name == name) busy = d.busy_s;
            out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}, busy {}</text>\n", left - 8, y + 12, name, percent_text(busy / last));
        }
        tops[key] = y;
        y += row_height * count;
    }
    const double bottom = y + gap;
    std::string grid;
    double step = std::pow(10, std::floor(std::log10(last)));
    if (last / step < 2) step /= 5;
    else if (last / step < 5) step /= 2;
    for (double s = 0; s <= last * (1 + 1e-9); s += step)
        grid += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#dddddd\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n", x_of(s), top - 4,
                            bottom, bottom + 14, s > 0 ? seconds_text(s) : "0");
    std::string bars;
    for (std::size_t k = 0; k < report.trace.size(); ++k) {
        const TraceEvent& event = report.trace[k];
        const char* colour = "#777777";
        for (const auto& [phase, its] : colours)
            if (phase == event.phase) colour = its;
        const double at = tops[{place_of(event, report), event.slot}] + row_height * rows.row[k];
        bars += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{} rows {}…{}, {}</title></rect>\n", x_of(event.begin_s), at + 1,
                            std::max(0.3, x_of(event.end_s) - x_of(event.begin_s)), row_height - 3, colour, event.phase, event.first, event.first + event.rows - 1, seconds_text(event.end_s - event.begin_s));
    }
    std::string legend;
    double x = left;
    for (const auto& [phase, colour] : colours) {
        legend += fmt::format("<rect x=\"{0}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{1}\"/><text x=\"{2}\" y=\"44\">{3}</text>\n", x, colour, x + 17, phase);
        x += 34 + 7.2 * static_cast<double>(phase.size());
    }
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#333333\">\n"
                       "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"20\" font-size=\"13\" font-weight=\"bold\">{3}, {4}: {5}, two devices or more busy in {6}</text>\n",
                       left + width + 30, static_cast<int>(bottom + 26), left, problem_text(report.rows, report.systems), name_of(report.dtype), seconds_text(last), percent_text(figures.together_s / last)) +
           legend + grid + out + bars + "</svg>\n";
}

}  // namespace trifold::report
