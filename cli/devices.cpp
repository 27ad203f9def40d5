// SPDX-License-Identifier: BSD-3-Clause
// trifold devices: what this machine and this build have.
#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "backends/registry.hpp"
#include "base/utc.hpp"
#include "build_info.hpp"
#include "common.hpp"
#include "devices/context_state.hpp"
#include "families/tridiagonal/ops.hpp"
#include "output.hpp"
#include "planner/calibrate.hpp"
#include "progress.hpp"
#include "report/render.hpp"

namespace trifold::cli {
namespace {

struct Options : CommonOptions {
    bool matrix = false, measure = false;
};

const char* name_of(CellKind kind) {
    switch (kind) {
    case CellKind::native:
        return "native";
    case CellKind::delegated:
        return "delegated";
    case CellKind::absent:
        return "absent";
    }
    return "?";
}

// No family of its own: sweeps over meshes are solves of lines, by who has kernels for them. Of a device that is not there nobody can tell.
void add_sweeps(report::DeviceList& list, const Device& device) {
    for (const Cell& cell : device.cells) {
        const auto* ops = static_cast<const tridiagonal::Ops*>(std::string_view(cell.family) == "tridiagonal" ? cell.ops : nullptr);
        if (!ops) continue;
        const bool native = ops->mesh_sweep || ops->mesh_run;
        list.cells.push_back({device.name, "sweeps", name_of(native ? CellKind::native : CellKind::absent), native ? ops->mesh_run ? "compiled at run time" : "" : "the device has no kernels for sweeps over meshes"});
    }
}

void add_grid(report::DeviceList& list) {
    for (const Device* device : registered_devices()) {
        if (const char* why = why_unavailable(*device))
            list.unavailable.emplace_back(device->name, why);
        for (const FamilyEntry& family : registered_families()) {
            report::GridCell cell{device->name, family.name, name_of(CellKind::absent),
                                  "the device has no cell for this family"};
            for (const Cell& own : device->cells)
                if (std::string_view(own.family) == family.name) cell.kind = name_of(own.kind), cell.note = own.note;
            list.cells.push_back(std::move(cell));
        }
        add_sweeps(list, *device);
    }
}

// Far outside a device's caches, and five arrays fit: four are read, and one more or the last of them written.
devices::Profile measure_own_memory(const Device& device) {
    constexpr std::size_t most = std::size_t{1} << 29;
    devices::Profile profile;
    profile.now = true;
    profile.date = utc_now("%Y-%m-%d");
    Failure failure;
    std::size_t free = 0, total = 0;
    if (!device.runtime->memory_info(device.number, &free, &total, failure)) return profile;
    const std::size_t array = std::min(most, std::bit_floor(free / 16));
    for (const bool in_place : {false, true}) {
        double found = 0;
        if (device.runtime->bandwidth(device.number, nullptr, 4, in_place, array, &found, failure) && found > 0)
            profile.bandwidth.push_back({array * (in_place ? 4 : 5), 1, in_place ? devices::Store::in_place : devices::Store::past_cache, found});
    }
    return profile;
}

// Of devices with memory of their own: measured and kept, or what was kept.
void add_own_memory(report::DeviceList& list, Context::State& state, bool measure) {
    for (const Device* device : registered_devices()) {
        if (why_unavailable(*device) || !device->runtime) continue;
        const std::string identity = devices::identity_of(device->description ? device->description(*device) : "");
        std::optional<devices::Profile> profile;
        if (!measure) profile = state.device_profile(device->name, identity);
        else if (profile = measure_own_memory(*device); !profile->bandwidth.empty()) state.keep_device_profile(device->name, identity, *profile);
        if (!profile) continue;
        for (const devices::Bandwidth& b : profile->bandwidth)
            list.bandwidth.push_back({static_cast<std::int64_t>(b.footprint), 0, devices::name_of(b.store), b.bytes_per_s, device->name, profile->source()});
    }
}

int run(const Options& o) {
    Context context(o.context());
    Context::State& state = context.state();
    report::DeviceList list;
    if (o.measure) {
        ProgressLine line(o.quiet);
        line.stage("measure bandwidth and pace");
        tridiagonal::measure_profile(context);
    }
    const devices::Profile& profile = state.profile();
    list.profile = profile.measured() ? profile.source() : "defaults, not measured: trifold devices --measure";
    list.measured = profile.measured();
    list.devices = context.devices();
    add_grid(list);
    for (const devices::Bandwidth& b : profile.bandwidth)
        list.bandwidth.push_back(
            {static_cast<std::int64_t>(b.footprint), b.threads, devices::name_of(b.store), b.bytes_per_s, "cpu", profile.source()});
    add_own_memory(list, state, o.measure);
    list.threads = context.threads();
    list.machine = report::this_machine(build_commit());
    print(o.json ? report::json(list) : report::text(list, o.matrix));
    return good;
}

}  // namespace

Command devices_command(CLI::App& parent) {
    auto options = std::make_shared<Options>();
    CLI::App* app = parent.add_subcommand("devices", "list the devices, what each can do, and how fast its memory is");
    app->add_flag("--matrix", options->matrix, "who computes what: native, delegated (to whom), absent (why)");
    app->add_flag("--measure", options->measure,
                  "measure bandwidth and pace of this machine, and the bandwidth of devices with memory of their own, anew and keep them");
    options->add_threads(*app);
    options->add_talk(*app);
    set_examples(*app, "  trifold devices\n"
                       "  trifold devices --matrix\n"
                       "  trifold devices --measure --json\n");
    return {app, [options] { return run(*options); }};
}

}  // namespace trifold::cli
