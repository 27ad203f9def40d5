// SPDX-License-Identifier: BSD-3-Clause
// The events of a split solve as figures, trace and picture; joules from counters and from watts.
#include "report/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "report/energy.hpp"
#include "report/render.hpp"

namespace trifold::tests {
namespace {

using nlohmann::json;

/// The cpu has one chunk for 10 ms. A card copies two chunks there (0–4, 4–6 ms), computes them (4–5, 6–9 ms) and copies one back meanwhile (5–7 ms).
/// Two joins at the same time follow (11–12 ms).
trifold::Report two_devices() {
    trifold::Report report;
    report.rows = 1000, report.systems = 1, report.dtype = DType::f32, report.solve_s = 0.012;
    report.devices = {{.name = "cpu", .rows = 600, .chunks = 1, .busy_s = 0.010, .rows_per_s = 60000, .state = ""},
                      {.name = "card", .rows = 400, .chunks = 2, .busy_s = 0.009, .bytes_to = 6400, .bytes_from = 800, .rows_per_s = 40000, .state = ""}};
    const auto add = [&](int device, int slot, const char* phase, double begin, double end, double bytes) { report.trace.push_back({device, slot, phase, 0, 100, begin * 1e-3, end * 1e-3, bytes}); };
    add(0, 0, "kernel", 0, 10, 12000);
    add(1, 0, "to device", 0, 4, 3200), add(1, 1, "to device", 4, 6, 3200);
    add(1, 0, "kernel", 4, 5, 4000), add(1, 1, "kernel", 6, 9, 4000);
    add(1, 0, "from device", 5, 7, 800);
    add(-1, 0, "join", 11, 12, 0), add(-1, 0, "join", 11, 11.5, 0);
    return report;
}

TEST(Trace, SummaryCountsWhatRanTogether) {
    const report::TraceSummary figures = report::summary(two_devices());
    EXPECT_NEAR(figures.seconds, 0.012, 1e-12);
    EXPECT_NEAR(figures.together_s, 0.009, 1e-12);
    ASSERT_EQ(figures.devices.size(), 3u);
    EXPECT_NEAR(figures.devices[0].busy_s, 0.010, 1e-12);
    EXPECT_EQ(figures.devices[0].link_s, 0);
    const report::DeviceTimes& card = figures.devices[1];
    EXPECT_EQ(card.name, "card");
    EXPECT_NEAR(card.busy_s, 0.009, 1e-12);
    EXPECT_NEAR(card.kernel_s, 0.004, 1e-12);
    EXPECT_NEAR(card.link_s, 0.007, 1e-12);
    EXPECT_NEAR(card.hidden_s, 0.002, 1e-12);  // 4–5 and 6–7 ms
    EXPECT_EQ(card.bytes_to, 6400);
    EXPECT_EQ(card.bytes_from, 800);
    EXPECT_EQ(figures.devices[2].name, "host");
    EXPECT_NEAR(figures.devices[2].busy_s, 0.001, 1e-12);
    EXPECT_EQ(report::summary({}).seconds, 0);
}

TEST(Trace, EventsOfOneRowDoNotOverlap) {
    const json trace = json::parse(report::chrome_trace(two_devices()));
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
    int events = 0;
    for (const json& event : trace.at("traceEvents")) {
        if (event.at("ph") != "X") continue;
        ++events;
        rows[{event.at("pid"), event.at("tid")}].emplace_back(event.at("ts"), event.at("ts").get<double>() + event.at("dur").get<double>());
    }
    EXPECT_EQ(events, 8);
    EXPECT_EQ(rows.size(), 5u);  // cpu, two slots of the card, two joins
    for (auto& [row, spans] : rows) {
        std::sort(spans.begin(), spans.end());
        for (std::size_t k = 1; k < spans.size(); ++k) EXPECT_GE(spans[k].first, spans[k - 1].second);
    }
    EXPECT_NEAR(trace.at("otherData").at("devices")[1].at("hidden_s").get<double>(), 0.002, 1e-12);
}

TEST(Trace, PictureHasABarForEveryEvent) {
    const std::string svg = report::timeline_svg(two_devices());
    std::size_t bars = 0;
    for (std::size_t at = svg.find("<title>"); at != svg.npos; at = svg.find("<title>", at + 1)) ++bars;
    EXPECT_EQ(bars, 8u);
    EXPECT_NE(svg.find("card, busy 75 %"), svg.npos);
    EXPECT_NE(svg.find("two devices or more busy in 75 %"), svg.npos);
    EXPECT_TRUE(report::timeline_svg({}).starts_with("<svg ")) << "a picture, where there is nothing to show too";
}

TEST(Energy, CountersWhereTheyAreAndWattsElsewhere) {
    const trifold::Report report = two_devices();
    report::Energy energy;
    energy.devices = {{"cpu", report::unknown, "unknown", "no counter"}, {"card", 0.5, "measured", "NVML"}};
    report::complete(energy, report, {});
    EXPECT_EQ(energy.kind, "unknown");
    EXPECT_TRUE(std::isnan(energy.joules));
    report::complete(energy, report, {{"cpu", 100}, {"card", 1e9}});
    EXPECT_EQ(energy.kind, "estimated");
    EXPECT_NEAR(energy.joules, 0.5 + 1.0, 1e-12);  // 100 W for 10 ms
    EXPECT_EQ(energy.devices[1].kind, "measured");

    // A card over a link is charged for its kernels only.
    report::Energy guessed;
    report::complete(guessed, report, {{"cpu", 100}, {"card", 50}});
    EXPECT_NEAR(guessed.devices[1].joules, 50 * 0.004, 1e-12);

    report::Energy one;
    trifold::Report alone;
    alone.solve_s = 0.25, alone.outcome.device = "cpu";
    report::complete(one, alone, {{"cpu", 200}});
    EXPECT_NEAR(one.joules, 50, 1e-9);
}

TEST(Energy, PowerLimitsWhereWattsAreNotGiven) {
    const trifold::Report report = two_devices();
    const devices::PowerLimits limits{{"cpu", {225, "power limit by powercap of package-0", true}}, {"card", {700, "default power limit by NVML", false}}};
    report::Energy energy;
    report::complete(energy, report, {}, limits);
    EXPECT_EQ(energy.kind, "estimated");
    EXPECT_NEAR(energy.joules, 225 * 0.010 + 700 * 0.004, 1e-12);
    EXPECT_EQ(energy.note, "cpu: 225 W while it computes, power limit by powercap of package-0; card: 700 W while it computes, default power limit by NVML");

    // What is measured or given counts.
    report::Energy given;
    given.devices = {{"cpu", report::unknown, "unknown", "no counter"}, {"card", 0.5, "measured", "NVML"}};
    report::complete(given, report, {{"cpu", 100}}, limits);
    EXPECT_NEAR(given.joules, 1.5, 1e-12);
    EXPECT_EQ(given.devices[0].note, "100 W while it computes");
    EXPECT_EQ(given.devices[1].note, "NVML");

    // Who tells none is said, with what to do.
    report::Energy none;
    none.devices = {{"cpu", report::unknown, "unknown", "no counter"}, {"card", 0.5, "measured", "NVML"}};
    report::complete(none, report, {}, {{"cpu", {0, "", true}}});
    EXPECT_EQ(none.kind, "unknown");
    EXPECT_EQ(none.devices[0].note, "no counter; no power limit of it is known: give --watts cpu=WATTS");
}

// Both compute on the same processors.
TEST(Energy, TheProcessorsLimitCountsOnce) {
    const trifold::Report report = two_devices();
    const devices::PowerLimit host{200, "power limit by powercap of package-0", true};
    trifold::Report two = report;
    two.devices[1].name = "opencl:0.0", two.trace.clear();
    const devices::PowerLimits limits{{"cpu", host}, {"opencl:0.0", host}};
    report::Energy energy;
    report::complete(energy, two, {}, limits);
    EXPECT_EQ(energy.kind, "estimated");
    EXPECT_NEAR(energy.joules, 200 * 0.010, 1e-12);  // as long as the longer one was busy
    EXPECT_EQ(energy.devices[1].joules, 0);
    EXPECT_EQ(energy.devices[1].note, report::counted_with_the_host);

    // Whoever lies between them.
    two.devices.insert(two.devices.begin() + 1, report.devices[1]);
    report::Energy three;
    report::complete(three, two, {}, {{"cpu", host}, {"card", {700, "default power limit by NVML", false}}, {"opencl:0.0", host}});
    EXPECT_NEAR(three.joules, 200 * 0.010 + 700 * 0.009, 1e-12);
    two.devices.erase(two.devices.begin() + 1);

    // Of the limit a part is given: nobody knows the rest.
    report::Energy part;
    report::complete(part, two, {{"opencl:0.0", 50}}, limits);
    EXPECT_EQ(part.kind, "unknown");
    EXPECT_EQ(part.devices[0].note, "its part of the processors' power limit is not known: give --watts cpu=WATTS");
    EXPECT_NEAR(part.devices[1].joules, 50 * 0.009, 1e-12);
}

TEST(Energy, ReportSaysWhatEachDeviceDid) {
    report::Record record;
    record.report = two_devices();
    record.report.outcome.reason = Reason::exact;
    report::complete(record.energy, record.report, {{"cpu", 100}, {"card", 50}});
    const json out = json::parse(report::json(record));
    ASSERT_EQ(out.at("devices").size(), 2u);
    const json& card = out.at("devices")[1];
    EXPECT_EQ(card.at("name"), "card");
    EXPECT_EQ(card.at("rows"), 400);
    EXPECT_EQ(card.at("state"), "took part");
    EXPECT_NEAR(card.at("energy").at("rows_per_joule").get<double>(), 400 / 0.2, 1e-6);
    EXPECT_EQ(out.at("energy").at("kind"), "estimated");
    const std::string text = report::text(record, false);
    EXPECT_NE(text.find("card: 40 % of the rows in 2 chunks"), text.npos) << text;
    EXPECT_NE(text.find("0.2 J estimated"), text.npos) << text;
}

}  // namespace
}  // namespace trifold::tests
