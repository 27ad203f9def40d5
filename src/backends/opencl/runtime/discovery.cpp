// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/discovery.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

namespace trifold::opencl {
namespace {

// For tests, in TRIFOLD_OPENCL_AS: every device plays a GPU ("gpu": memory of its own, a GPU's kernels; with "unified" in the host's memory), or has no FP64 ("f32"), or groups that do
// not see each other's numbers ("apart"), or vectors of 32 or 64 bytes whatever its own are ("vectors32", "vectors64").
bool plays(const char* part) {
    const char* const as = std::getenv("TRIFOLD_OPENCL_AS");
    return as && std::strstr(as, part);
}

std::string one_line(std::string text) {
    while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
    return text;
}

void judge(FoundDevice& f, const std::string& vendor, const std::string& version) {
    int major = 0, minor = 0;
    std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor);
    if (!f.device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>())
        f.unusable = std::string("its driver compiles nothing at run time (an ") + name_of(f.kind) + "): programs for it are made beforehand by " +
                     offline_compiler(vendor) + ", and this build has none";
    else if (10 * major + minor < 12)
        f.unusable = "it has " + version + ", and OpenCL 1.2 is needed (install a newer driver)";
    else if (!f.device.getInfo<CL_DEVICE_AVAILABLE>())
        f.unusable = "its driver says that it is not available";
}

// Of cl_nv_device_attribute_query; 0 where it is not told.
int compute_capability(const cl::Device& device) {
    constexpr cl_device_info major = 0x4000;
    cl_uint value = 0;
    return clGetDeviceInfo(device(), major, sizeof value, &value, nullptr) == CL_SUCCESS ? static_cast<int>(value) : 0;
}

// Of cl_khr_pci_bus_info; empty where it is not told. (What cl_nv_device_attribute_query calls a slot is the number of the device alone for some drivers.)
std::string pci_bus(const cl::Device& device) {
    constexpr cl_device_info pci_bus_info = 0x410F;
    struct {
        cl_uint domain, bus, device, function;
    } at{};
    if (clGetDeviceInfo(device(), pci_bus_info, sizeof at, &at, nullptr) != CL_SUCCESS) return {};
    char text[48];
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", at.domain, at.bus, at.device, at.function);
    return text;
}

// Without what the user's options for the compiler take away (docs/decisions/0050).
int assembler_of(const cl::Device& device) {
    const char* const own = std::getenv("TRIFOLD_OPENCL_OPTIONS");
    const std::string_view told = own ? own : "";
    if (told.find("-UPTX") != told.npos) return 0;
    const int major = compute_capability(device);
    return told.find("-UBULK") != told.npos ? std::min(major, 8) : major;
}

FoundDevice look_at(const cl::Device& device, const std::string& platform_name, std::string name) {
    FoundDevice f;
    f.name = std::move(name);
    f.device = device;
    const std::string vendor = one_line(device.getInfo<CL_DEVICE_VENDOR>()), version = one_line(device.getInfo<CL_DEVICE_VERSION>());
    const cl_device_type type = device.getInfo<CL_DEVICE_TYPE>();
    f.kind = kind_of(platform_name, vendor, type & CL_DEVICE_TYPE_CPU, type & CL_DEVICE_TYPE_GPU, std::getenv("XCL_EMULATION_MODE") != nullptr);
    f.wide = f.kind == Kind::gpu || plays("gpu");
    const bool shared = f.kind == Kind::cpu || device.getInfo<CL_DEVICE_HOST_UNIFIED_MEMORY>();
    f.in_host_memory = shared && (!plays("gpu") || plays("unified"));
    const bool has_32_bytes = device.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>() == 8;
    f.vector_bytes = plays("vectors32") || (has_32_bytes && !plays("vectors64")) ? 32 : 64;
    const std::string extensions = device.getInfo<CL_DEVICE_EXTENSIONS>();
    f.fp64 = extensions.find("cl_khr_fp64") != extensions.npos && !plays("f32");
    const bool nvidia = extensions.find("cl_nv_device_attribute_query") != extensions.npos;
    if (f.wide && nvidia) f.ptx = assembler_of(device);
    if (nvidia && extensions.find("cl_khr_pci_bus_info") != extensions.npos) f.bus = pci_bus(device);
    f.groups_meet = (f.ptx >= 7 || platform_name == "Portable Computing Language") && !plays("apart");
    f.units = static_cast<int>(device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
    f.memory = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
    f.largest_block = device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
    f.local_memory = device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
    f.group = std::min(device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>(), device.getInfo<CL_DEVICE_MAX_WORK_ITEM_SIZES>().at(0));
    const std::string model = one_line(device.getInfo<CL_DEVICE_NAME>()), driver = one_line(device.getInfo<CL_DRIVER_VERSION>());
    f.driver = platform_name + "|" + model + "|" + version + "|" + driver;
    char memory[64];
    std::snprintf(memory, sizeof memory, "%.1f GiB%s", static_cast<double>(f.memory) / (1 << 30), shared ? " shared with the host" : "");
    f.text = model + ", " + name_of(f.kind) + ", " + std::to_string(f.units) + (f.units == 1 ? " compute unit, " : " compute units, ") + memory +
             (f.fp64 ? "" : ", no FP64") + ", " + platform_name + " (" + vendor + ", driver " + driver + ")";
    judge(f, vendor, version);
    return f;
}

struct All {
    std::mutex mutex;
    std::deque<FoundDevice> devices;  // parts come last
    int whole = 0;
    std::string absent;

    All() {
        std::vector<cl::Platform> platforms;
        try {
            cl::Platform::get(&platforms);
        } catch (const cl::Error&) {
        }
        for (std::size_t p = 0; p < platforms.size(); ++p) add_platform(platforms[p], "opencl:" + std::to_string(p) + ".");
        whole = static_cast<int>(devices.size());
        if (platforms.empty())
            absent = "this machine has no OpenCL platform (install a driver: clinfo must list it; pocl-opencl-icd gives one for any CPU)";
        else if (whole == 0)
            absent = "no OpenCL platform of this machine shows a device (does clinfo list one? PoCL needs a folder for its cache that can be written: POCL_CACHE_DIR, else in XDG_CACHE_HOME)";
    }

    void add_platform(const cl::Platform& platform, const std::string& prefix) {
        try {
            const std::string name = one_line(platform.getInfo<CL_PLATFORM_NAME>());
            std::vector<cl::Device> there;
            platform.getDevices(CL_DEVICE_TYPE_ALL, &there);
            for (std::size_t d = 0; d < there.size(); ++d) devices.push_back(look_at(there[d], name, prefix + std::to_string(d)));
        } catch (const cl::Error&) {
            // A platform without devices says so by an error; one that is broken is as good as none.
        }
    }
};

All& all() {
    static All* const once = new All;  // never given back: drivers end before us
    return *once;
}

int make_part(All& everything, const std::string& name, int number, unsigned k, unsigned n, Failure& failure) {
    const FoundDevice& whole = everything.devices[static_cast<std::size_t>(number)];
    const auto units = static_cast<unsigned>(whole.units);
    char message[200];
    if (n == 0 || k >= n || n > units) {
        std::snprintf(message, sizeof message, "there is no part %u of %u of '%s', which has %u compute units (parts are counted from 0: %s/0/2)", k, n,
                      whole.name.c_str(), units, whole.name.c_str());
        failure.say(ErrorCode::device_unavailable, message);
        return -1;
    }
    const bool good = guarded("making a part of the device", failure, [&] {
        const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_EQUALLY, static_cast<cl_device_partition_property>(units / n), 0};
        cl::Device device = whole.device;
        std::vector<cl::Device> parts;
        device.createSubDevices(how, &parts);
        FoundDevice part = look_at(parts.at(k), cl::Platform(device.getInfo<CL_DEVICE_PLATFORM>()).getInfo<CL_PLATFORM_NAME>(), name);
        part.part = true;
        part.text += ", part " + std::to_string(k) + " of " + std::to_string(n);
        everything.devices.push_back(std::move(part));
    });
    return good ? static_cast<int>(everything.devices.size()) - 1 : -1;
}

}  // namespace

int device_count() { return all().whole; }

const char* absent() { return all().absent.c_str(); }

const FoundDevice& found(int device) {
    All& everything = all();
    const std::lock_guard lock(everything.mutex);
    return everything.devices[static_cast<std::size_t>(device)];
}

int part_of_device(const char* name, Failure& failure) {
    All& everything = all();
    const std::lock_guard lock(everything.mutex);
    for (std::size_t k = 0; k < everything.devices.size(); ++k)
        if (everything.devices[k].name == name) return static_cast<int>(k);
    unsigned k = 0, n = 0;
    const char* const slash = std::strchr(name, '/');
    char rest = 0;
    if (!slash || std::sscanf(slash, "/%u/%u%c", &k, &n, &rest) != 2) return -1;
    for (int d = 0; d < everything.whole; ++d)
        if (everything.devices[static_cast<std::size_t>(d)].name == std::string(name, slash)) return make_part(everything, name, d, k, n, failure);
    return -1;
}

}  // namespace trifold::opencl
