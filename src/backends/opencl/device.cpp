// SPDX-License-Identifier: BSD-3-Clause
// The devices opencl:P.D (platform P, device D) and their parts as libtrifold sees them. Nothing here needs OpenCL: what does
// lies in libtrifold_opencl.so, which is loaded when such a device is first named.
#include <array>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/kernel_times.hpp"
#include "backends/opencl/table.hpp"
#include "devices/loadable.hpp"
#include "families/device.hpp"

namespace trifold {
namespace {

using Library = devices::Loaded<opencl::Table>;

const Library& library() {
    static const Library loaded = devices::load_table<opencl::Table>("it is built where OpenCL's loader and headers are found: ocl-icd-opencl-dev, opencl-clhpp-headers; it belongs beside libtrifold");
    return loaded;
}

std::string describe(const Device& device) { return library().why.empty() ? library().table->describe(device.number) : ""; }

const char* unavailable(const Device& device) {
    const Library& lib = library();
    return lib.why.empty() ? lib.table->unusable(device.number) : lib.why.c_str();
}

constexpr const char* note =
    "the cpu computes periodic, ragged and accumulating solves, and factors in host memory, the reference most algorithms by name, from there; in memory of its own a Factor keeps the matrix; generators are tabulated";

// Grows by the parts that are named. A device stays where it is.
class Devices {
public:
    Devices() {
        all_.reserve(most);
        const Library& lib = library();
        const int there = lib.why.empty() ? lib.table->count() : 0;
        for (int k = 0; k < there; ++k) add(lib.table->name(k), lib.table->tridiagonal(k), lib.table->runtime(k));
        if (there == 0) add("opencl:0.0", nullptr, nullptr);
    }

    std::span<const Device> all() {
        const std::lock_guard lock(mutex_);
        return all_;
    }

    int number(std::string_view name, std::string& why) {
        const std::lock_guard lock(mutex_);
        for (const Device& device : all_)
            if (name == device.name) return device.number;
        if (!library().why.empty()) return -1;
        const opencl::Table& table = *library().table;
        Failure failure;
        if (all_.size() == most) why = "too many parts of devices were named in this process";
        else if (const int part = table.part(std::string(name).c_str(), failure); part < 0) why = failure.message;
        else return add(table.name(part), table.tridiagonal(part), table.runtime(part));
        return -1;
    }

private:
    static constexpr std::size_t most = 256;

    int add(std::string name, const tridiagonal::Ops* ops, const devices::Runtime* runtime) {
        const int number = static_cast<int>(all_.size());
        names_.push_back(std::move(name));
        cells_.push_back({Cell{"tridiagonal", CellKind::native, ops, note}});
        all_.push_back({names_.back().c_str(), describe, false, unavailable, cells_.back(), number, runtime});
        return number;
    }

    std::mutex mutex_;
    std::deque<std::string> names_;
    std::deque<std::array<Cell, 1>> cells_;
    std::vector<Device> all_;
};

Devices& devices_here() {
    static auto* const all = new Devices;  // never given back: lanes that were left behind use their tables while a process ends
    return *all;
}

}  // namespace

std::span<const Device> opencl_devices() { return devices_here().all(); }

opencl::KernelTimes opencl::kernel_times(const Device& device, bool wanted) {
    double seconds[2] = {};
    const char* kernels = "";
    Failure failure;
    if (!library().why.empty() || !library().table->spike_times(device.number, wanted, seconds, &kernels, failure)) return {};
    return {seconds[0], seconds[1], kernels};
}

int opencl_number(std::string_view device, std::string& why) { return devices_here().number(device, why); }

}  // namespace trifold
