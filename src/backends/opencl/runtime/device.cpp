// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/device.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "backends/opencl/kernels/job.h"
#include "backends/opencl/runtime/spread.hpp"
#include "base/program_cache.hpp"
#include "base/text_hash.hpp"

namespace trifold::opencl {

/// The texts of ../kernels (trifold_embed).
const char* kernel_text(std::string_view file);

namespace {

constexpr ProgramCache cache("opencl", ".bin", ".cl");

[[noreturn]] void stop(ErrorCode code, const std::string& message, const char* hint) {
    Stop out;
    out.failure.say(code, message.c_str(), hint);
    throw out;
}

// The compiler's log is long, and its first error is what counts.
std::string first_error(const std::string& log) {
    const std::size_t error = log.find("error"), newline = error == log.npos ? log.npos : log.rfind('\n', error);
    const std::size_t from = newline == log.npos ? 0 : newline + 1;
    return log.substr(from, std::min<std::size_t>(log.find('\n', from) - from, 180));
}

// Options of the user's own for the driver's compiler.
std::string users_options() {
    const char* const own = std::getenv("TRIFOLD_OPENCL_OPTIONS");
    return own && *own ? std::string(" ") + own : "";
}

// PoCL keeps what it has compiled, and compiles every kernel once more, for groups of any size, when it is asked for a binary: half of the time that a first solve takes.
bool keeps_programs(const FoundDevice& found) {
    const char* const own = std::getenv("POCL_KERNEL_CACHE");
    return found.is_pocl() && !(own && std::string_view(own) == "0");
}

// Texts that it includes, in place of the lines that say so, each once.
std::string with_includes(const std::string& file, std::set<std::string>& included) {
    constexpr std::string_view mark = "#include \"";
    std::string text = kernel_text(file);
    for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
        const std::size_t from = at + mark.size(), end = text.find('"', from);
        const std::string name = text.substr(from, end - from);
        text.replace(at, end + 1 - at, included.insert(name).second ? with_includes(name, included) : "");
    }
    return text;
}

cl::Program build_from_source(OpenDevice& device, const std::string& name, const std::string& text, const std::string& options, const std::string& key) {
    cl::Program program(device.context, text);
    try {
        program.build({device.info.device}, options.c_str());
    } catch (const cl::Error& error) {
        if (error.err() == CL_INVALID_BUILD_OPTIONS && !users_options().empty())
            stop(ErrorCode::usage, "its compiler takes no options" + users_options(), "TRIFOLD_OPENCL_OPTIONS has them");
        if (error.err() != CL_BUILD_PROGRAM_FAILURE) throw;
        const std::string log = program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device.info.device);
        const std::string kept = cache.keep_failure(key, "// " + options + "\n" + text, log);
        stop(ErrorCode::internal, "its compiler refuses " + name + ".cl: " + first_error(log),
             kept.empty() ? "nothing can be kept in $XDG_CACHE_HOME or ~/.cache, which drivers need too: is that disk full?" : ("text and log are in " + kept).c_str());
    }
    if (keeps_programs(device.info)) return program;
    const std::vector<std::vector<unsigned char>> binaries = program.getInfo<CL_PROGRAM_BINARIES>();
    if (binaries.size() == 1 && !binaries[0].empty()) cache.store(key, {reinterpret_cast<const char*>(binaries[0].data()), binaries[0].size()});
    return program;
}

}  // namespace

DeviceQueue::DeviceQueue(OpenDevice& on, cl_command_queue_properties properties)
    : device(on), queue(on.context, on.info.device, properties), state(on.context, CL_MEM_READ_WRITE, sizeof(QueueState)) {
    const QueueState nothing{};  // `broken`; the rest is made fresh by a kernel
    queue.enqueueWriteBuffer(state, CL_TRUE, 0, sizeof nothing, &nothing);
}

OpenDevice::OpenDevice(const FoundDevice& found)
    : info(found), context(found.device), main(*this), timed(context, found.device, cl::QueueProperties::Profiling) {
    if (!found.part) spread_threads(found, context);
}

std::size_t OpenDevice::group_of(const cl::Kernel& kernel, std::size_t wanted) const {
    const auto known = most_items_.find(kernel());
    return known == most_items_.end() ? wanted : std::min(wanted, known->second);
}

void OpenDevice::run(DeviceQueue& on, const cl::Kernel& kernel, std::size_t items, std::size_t group) {
    group = group_of(kernel, group);
    on.queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange((items + group - 1) / group * group), cl::NDRange(group), nullptr, info.in_host_memory ? &last_ : nullptr);
}

double OpenDevice::run_timed(const cl::Kernel& kernel, std::size_t items, std::size_t group) {
    main.queue.finish();
    group = group_of(kernel, group);
    cl::Event event;
    timed.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange((items + group - 1) / group * group), cl::NDRange(group), nullptr, &event);
    if (info.in_host_memory) last_ = event;
    event.wait();
    return 1e-9 * static_cast<double>(event.getProfilingInfo<CL_PROFILING_COMMAND_END>() - event.getProfilingInfo<CL_PROFILING_COMMAND_START>());
}

bool OpenDevice::settle(Failure& failure) {
    const std::lock_guard lock(order);
    in_a_row = false;
    return !look_back || std::exchange(look_back, nullptr)(failure);
}

void OpenDevice::settle() noexcept {
    constexpr auto patience = std::chrono::seconds(30);  // a device that is lost never says so
    if (!last_()) return;
    clFlush(main.queue());
    for (const auto start = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - start < patience;) {
        cl_int status = CL_COMPLETE;
        if (clGetEventInfo(last_(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) != CL_SUCCESS || status <= CL_COMPLETE) return;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

cl::Program& OpenDevice::program(const char* file, DType dtype, const std::string& defines) {
    const bool wide_type = dtype == DType::f64;
    const std::string name = file, key = name + (wide_type ? "|f64|" : "|f32|") + defines;
    if (const auto known = programs_.find(key); known != programs_.end()) return known->second;
    if (wide_type && !info.fp64)
        stop(ErrorCode::device_unavailable, "the system is f64, and this device has no FP64", "give it as f32, or take another device (trifold devices)");
    const std::string options = std::string("-cl-std=CL1.2 -w -DREAL=") + (wide_type ? "double" : "float") + " -DREAL_BYTES=" + (wide_type ? "8" : "4") +
                                " -DLANES=" + std::to_string(lanes(dtype)) + (info.wide ? "" : " -DVECTOR_BYTES=" + std::to_string(info.vector_bytes)) + (info.ptx >= 7 ? " -DPTX" : "") + (info.ptx >= 8 ? " -DASYNC" : "") + (info.ptx >= 9 ? " -DBULK" : "") + (defines.empty() ? "" : " ") + defines + users_options();
    std::set<std::string> included;
    const std::string text = with_includes(name + ".cl", included);
    TextHash hash;
    hash.add(info.driver), hash.add(options), hash.add(text);
    const std::string binary_key = hash.text();
    if (const std::string kept = cache.load(binary_key); !kept.empty()) {
        try {
            cl::Program program(context, {info.device}, cl::Program::Binaries{{kept.begin(), kept.end()}});
            program.build({info.device}, options.c_str());
            return programs_[key] = program;
        } catch (const cl::Error&) {
            // A driver may refuse what it wrote itself some time ago.
        }
    }
    return programs_[key] = build_from_source(*this, name, text, options, binary_key);
}

KernelArguments& OpenDevice::arguments(const KernelName& name, DType dtype, std::string_view defines) {
    auto& by_options = kernels_[{name.file, name.kernel, dtype}];
    if (const auto known = by_options.find(defines); known != by_options.end()) return known->second;
    const std::string options(defines);
    cl::Kernel made(program(name.file, dtype, options), name.kernel);
    // One that was compiled for a size runs with that one only, whatever NVIDIA's driver says of its registers.
    if (made.getWorkGroupInfo<CL_KERNEL_COMPILE_WORK_GROUP_SIZE>(info.device)[0] == 0)
        most_items_[made()] = std::max<std::size_t>(made.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(info.device), 1);
    return by_options.emplace(options, KernelArguments(std::move(made))).first->second;
}

OpenDevice& open_device(int device) {
    struct Opened {
        std::mutex mutex;  // of this one: a driver that does not return from opening it holds up nobody else
        OpenDevice* device = nullptr;
    };
    static std::mutex mutex;
    static auto* const all = new std::map<int, Opened>;  // never given back, nor are they: drivers end before us, and threads whose call has not returned ask while a process ends
    Opened* there = nullptr;
    {
        const std::lock_guard lock(mutex);
        there = &(*all)[device];
    }
    const std::lock_guard lock(there->mutex);
    if (!there->device) there->device = new OpenDevice(found(device));
    return *there->device;
}

}  // namespace trifold::opencl
