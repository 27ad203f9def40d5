// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/format.hpp"
#include "report/render.hpp"

namespace trifold::report {
namespace {

Record solved() {
    Record record;
    record.report.rows = 1000;
    record.report.systems = 4;
    record.report.layout = "contiguous";
    record.report.plan.branch = {"certified", "two_pass"};
    record.report.plan.why = "decays";
    record.report.outcome.reason = Reason::certified;
    record.report.outcome.branch = "certified";
    record.report.outcome.device = "cpu";
    record.report.outcome.certificate = 1e-16;
    record.report.solve_s = 2e-6;
    record.report.roof = {1e11, "measured now", 160000, 0.8};
    record.report.phases = {{"plan", 1e-7}, {"certified", 2e-6}};
    record.input = "a \"b\",\xff.npz";
    record.description = "arrays";
    record.device.name = "cpu";
    record.residual = 2e-16;
    record.phases = {{"read", 0.25}, {"solve", 2e-6}};
    record.total_s = 0.3;
    record.machine = this_machine("abc");
    return record;
}

TEST(Json, EveryKeyOfTheSchemaAndTheirValues) {
    const auto json = nlohmann::json::parse(report::json(solved()));
    for (const char* pointer : {"/schema",
                                "/family",
                                "/problem/rows",
                                "/problem/systems",
                                "/problem/layout",
                                "/problem/precision",
                                "/problem/rhs",
                                "/plan/algorithm",
                                "/plan/device",
                                "/plan/why",
                                "/plan/predicted_s",
                                "/outcome/ok",
                                "/outcome/reason",
                                "/outcome/branch",
                                "/outcome/row",
                                "/outcome/system",
                                "/outcome/iterations",
                                "/error/residual",
                                "/error/certificate",
                                "/time/clock",
                                "/time/total_s",
                                "/time/solve_s",
                                "/time/phases",
                                "/roof/kind",
                                "/roof/value",
                                "/roof/unit",
                                "/roof/source",
                                "/roof/needed_bytes",
                                "/roof/fraction",
                                "/rate/rows_per_s",
                                "/energy/joules",
                                "/energy/kind",
                                "/memory/workspace_bytes",
                                "/memory/peak_bytes",
                                "/devices/0",
                                "/machine/cpu",
                                "/machine/commit"})
        EXPECT_TRUE(json.contains(nlohmann::json::json_pointer(pointer))) << pointer;
    EXPECT_EQ(json["schema"], "trifold.report/1");
    EXPECT_EQ(json["rate"]["rows_per_s"], 2e9);
    EXPECT_EQ(json["roof"]["fraction"], 0.8);
    EXPECT_EQ(json["roof"]["disturbed"], false);
    EXPECT_EQ(json["time"]["phases"]["read"], 0.25);
    EXPECT_TRUE(json["outcome"]["row"].is_null());
}

TEST(Json, WhatIsNotKnownIsNull) {
    Record record = solved();
    record.report.outcome = {};
    record.report.outcome.reason = Reason::singular;
    record.report.outcome.row = 7;
    record.report.roof = {};
    record.residual = unknown;
    record.report.plan.predicted_s = INFINITY;
    const auto json = nlohmann::json::parse(report::json(record));
    EXPECT_FALSE(json["outcome"]["ok"]);
    EXPECT_EQ(json["outcome"]["row"], 7);
    for (const char* pointer : {"/error/residual", "/error/certificate", "/roof/value", "/roof/fraction",
                                "/rate/rows_per_s", "/plan/predicted_s"})
        EXPECT_TRUE(json[nlohmann::json::json_pointer(pointer)].is_null()) << pointer;
}

TEST(Json, EnergyPerSolve) {
    Record record = solved();
    record.energy = {8, "measured", {}, "RAPL: package-0", 2.5, 10};
    const auto json = nlohmann::json::parse(report::json(record));
    EXPECT_EQ(json["energy"]["joules"], 8);
    EXPECT_EQ(json["energy"]["rows_per_joule"], 500);
    EXPECT_EQ(json["energy"]["kind"], "measured");
    const std::string page = text(record, false);
    EXPECT_NE(page.find("8 J a solve, 500 rows/J, measured (RAPL: package-0; 10 solves in 2.50 s)"), std::string::npos) << page;
}

TEST(Csv, AsManyFieldsAsNames) {
    const auto commas = [](const std::string& line) {
        bool quoted = false;
        int count = 0;
        for (const char c : line) {
            if (c == '"') quoted = !quoted;
            count += c == ',' && !quoted;
        }
        return count;
    };
    const std::string line = csv_line(solved());
    EXPECT_EQ(commas(line), commas(csv_header()));
    EXPECT_EQ(line.substr(0, 11), "\"a \"\"b\"\",\xff.");
}

TEST(Text, SaysWhatMatters) {
    const std::string good = text(solved(), false);
    for (const char* part : {"4 systems of 1 000 rows", "certified", "why: decays", "2.00 Grows/s",
                             "80 % of 100 GB/s (measured now)", "2.0e-16", "1.0e-16", "read 250 ms"})
        EXPECT_NE(good.find(part), std::string::npos) << part << "\n" << good;
    EXPECT_EQ(good.find('\033'), std::string::npos);
    EXPECT_NE(text(solved(), true).find('\033'), std::string::npos);
    Record record = solved();
    record.report.outcome.reason = Reason::singular;
    record.report.outcome.row = 7;
    record.report.outcome.system = 2;
    record.report.outcome.failures = 3;
    EXPECT_NE(text(record, false).find("singular at row 7 of system 2; 3 systems failed"), std::string::npos);
    record = solved();
    record.report.roof.fraction = 1.2;
    EXPECT_NE(text(record, false).find("in error"), std::string::npos);
    EXPECT_TRUE(nlohmann::json::parse(report::json(record))["roof"]["disturbed"]);
}

TEST(Devices, BandwidthSaysFromWhen) {
    DeviceList list;
    list.profile = "profile 2025-01-31", list.measured = true;
    list.bandwidth = {{1 << 20, 2, "in place", 5e10, "cpu", list.profile}, {1 << 30, 0, "in place", 4e12, "cuda:0", "profile 2025-02-03"}, {1 << 30, 0, "in place", 3e12, "cuda:1", list.profile}};
    std::string page = text(list, false);
    EXPECT_NE(page.find("reads and writes (profile 2025-01-31):\n"), page.npos) << page;
    EXPECT_NE(page.find("2 threads  in place             50.0 GB/s\n"), page.npos) << page;
    EXPECT_NE(page.find("4.00 TB/s (profile 2025-02-03)\n"), page.npos) << page;
    EXPECT_NE(page.find("3.00 TB/s\n"), page.npos) << page;
    EXPECT_EQ(nlohmann::json::parse(report::json(list))["profile"]["bandwidth"][1]["source"], "profile 2025-02-03");
    // What was kept of devices is shown where the machine itself was never measured; what is assumed of it is not.
    list.profile = "defaults", list.measured = false;
    page = text(list, false);
    EXPECT_NE(page.find("not measured yet"), page.npos) << page;
    EXPECT_EQ(page.find("threads"), page.npos) << page;
    EXPECT_NE(page.find("4.00 TB/s (profile 2025-02-03)\n"), page.npos) << page;
}

TEST(Format, Numbers) {
    EXPECT_EQ(count_text(0), "0");
    EXPECT_EQ(count_text(999), "999");
    EXPECT_EQ(count_text(1000), "1 000");
    EXPECT_EQ(count_text(-1234567), "-1 234 567");
    EXPECT_EQ(seconds_text(2.346e-3), "2.35 ms");
    EXPECT_EQ(seconds_text(0.99951), "1.00 s");
    EXPECT_EQ(seconds_text(123.4), "123 s");
    EXPECT_EQ(seconds_text(unknown), "not known");
    EXPECT_EQ(rate_text(788e6, "rows"), "788 Mrows/s");
    EXPECT_EQ(rate_text(37.5e9, "B"), "37.5 GB/s");
    EXPECT_EQ(percent_text(0.856), "86 %");
    EXPECT_EQ(percent_text(0.0123), "1.2 %");
}

}  // namespace
}  // namespace trifold::report
