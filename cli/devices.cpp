// SPDX-License-Identifier: BSD-3-Clause
// trifold devices: what this machine and this build have.
#include <memory>

#include "backends/registry.hpp"
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

// Of devices with memory of their own, far outside their caches: four arrays read, and one more or the last of them written.
void add_own_memory(report::DeviceList& list) {
    constexpr std::size_t array = std::size_t{1} << 29;
    for (const Device* device : registered_devices()) {
        if (why_unavailable(*device) || !device->runtime) continue;
        for (const bool in_place : {false, true}) {
            Failure failure;
            double found = 0;
            if (device->runtime->bandwidth(device->number, nullptr, 4, in_place, array, &found, failure) && found > 0)
                list.bandwidth.push_back({static_cast<std::int64_t>(array) * (in_place ? 4 : 5), 0,
                                          devices::name_of(in_place ? devices::Store::in_place : devices::Store::past_cache), found, device->name});
        }
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
    list.profile = o.measure            ? "measured now"
                   : profile.measured() ? "profile " + profile.date
                                        : "defaults, not measured: trifold devices --measure";
    list.measured = profile.measured();
    list.devices = context.devices();
    add_grid(list);
    for (const devices::Bandwidth& b : profile.bandwidth)
        list.bandwidth.push_back(
            {static_cast<std::int64_t>(b.footprint), b.threads, devices::name_of(b.store), b.bytes_per_s});
    if (o.measure) add_own_memory(list);
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
                  "measure this machine's bandwidth and pace anew and keep them for planning");
    options->add_threads(*app);
    options->add_talk(*app);
    set_examples(*app, "  trifold devices\n"
                       "  trifold devices --matrix\n"
                       "  trifold devices --measure --json\n");
    return {app, [options] { return run(*options); }};
}

}  // namespace trifold::cli
