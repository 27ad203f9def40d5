// SPDX-License-Identifier: BSD-3-Clause
// A layer of OpenCL's loader (OPENCL_LAYERS) that counts the calls which can fail and lets one of them, or all from it on, fail with CL_OUT_OF_RESOURCES, or one not return until it is let go. What is given back
// and what is only asked is not counted.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <tuple>
#include <type_traits>

#include "opencl/layer.hpp"

namespace {

using layer::below, layer::own;
std::atomic<long> calls{0}, failing{-1}, waits{0};
std::atomic<bool> lasting{false};
std::atomic<long> build_ms{0};
std::atomic<bool> builds_held{false};
std::atomic<long> held{-1}, let_go{0};  // the call; how often they were let go
long slow_ms = 0;

bool fails() {
    const long call = calls.fetch_add(1), wanted = failing.load();
    if (slow_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms));
    if (call == held.load())
        for (const long before = let_go; let_go == before;) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return wanted >= 0 && (call == wanted || (lasting.load() && call > wanted));
}

template <auto Member, auto Other>
constexpr bool is = std::is_same_v<std::integral_constant<decltype(Member), Member>, std::integral_constant<decltype(Other), Other>>;
template <auto Member>
constexpr bool builds = is<Member, &cl_icd_dispatch::clBuildProgram>;

/// Whether a call returns only when the device has done what was asked of it.
template <auto Member, class... A>
bool waits_for_device(const A&... arguments) {
    using D = cl_icd_dispatch;
    if constexpr (is<Member, &D::clEnqueueReadBuffer>) return std::get<2>(std::tie(arguments...)) == CL_TRUE;
    else return is<Member, &D::clFinish>;
}

/// The entry `Member` of the table: of type R (*)(A…). What returns an object says how it went in its last argument.
template <auto Member>
struct Counted;
template <class R, class... A, R(CL_API_CALL* cl_icd_dispatch::*Member)(A...)>
struct Counted<Member> {
    static R CL_API_CALL call(A... arguments) {
        if (builds<Member> && build_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(build_ms.load()));
        while (builds<Member> && builds_held) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (waits_for_device<Member>(arguments...)) ++waits;
        if (!fails()) return (below->*Member)(arguments...);
        if constexpr (std::is_same_v<R, cl_int>) {
            return CL_OUT_OF_RESOURCES;
        } else {
            if (cl_int* const code = std::get<sizeof...(A) - 1>(std::forward_as_tuple(arguments...))) *code = CL_OUT_OF_RESOURCES;
            return nullptr;
        }
    }
};

template <auto... Members>
void count() {
    ((own.*Members = Counted<Members>::call), ...);
}

}  // namespace

void layer::begin() {
    using D = cl_icd_dispatch;
    count<&D::clCreateContext, &D::clCreateCommandQueue, &D::clCreateBuffer, &D::clCreateProgramWithSource, &D::clCreateProgramWithBinary, &D::clBuildProgram, &D::clCreateKernel,
          &D::clSetKernelArg, &D::clEnqueueNDRangeKernel, &D::clEnqueueReadBuffer, &D::clEnqueueWriteBuffer, &D::clEnqueueCopyBuffer, &D::clEnqueueFillBuffer,
          &D::clEnqueueMapBuffer, &D::clEnqueueUnmapMemObject, &D::clEnqueueMarkerWithWaitList, &D::clWaitForEvents, &D::clFlush, &D::clFinish>();
    if (const char* const hold = std::getenv("TRIFOLD_TEST_HOLD_CALL")) held = std::atol(hold), std::fprintf(stderr, "call %ld of OpenCL does not return\n", held.load());
    if (const char* const slow = std::getenv("TRIFOLD_TEST_SLOW_CALLS")) slow_ms = std::atol(slow), std::fprintf(stderr, "calls of OpenCL take %ld ms longer\n", slow_ms);
}

extern "C" {

/// Calls since the last `trifold_fail_call`; from there on number `call` fails (-1: none), and all after it where `on` is set.
long trifold_calls() { return calls.load(); }
void trifold_fail_call(long call, int on) { failing = -1, calls = waits = 0, lasting = on != 0, failing = call; }

/// Of these, such as wait for the device.
long trifold_waits() { return waits.load(); }

/// Programs take so much longer to compile, or to be made of what was kept.
void trifold_slow_builds(long ms) { build_ms = ms; }

/// No program is compiled, or made of what was kept, while this is set.
void trifold_hold_builds(int on) { builds_held = on != 0; }

/// Number `call` from here on (-1: none) is not made before it is let go.
void trifold_hold_call(long call) { held = -1, calls = 0, held = call; }

/// Those that wait are made, and no other one is held.
void trifold_let_go() { held = -1, ++let_go; }

}  // extern "C"
