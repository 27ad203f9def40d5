// SPDX-License-Identifier: BSD-3-Clause
// A libcuda.so.1 that stands before the driver (TRIFOLD_REAL_CUDA) and counts the calls which can fail: it lets one of them, or all from it on, fail, or one take its time. CUDA's runtime takes every
// function from cuGetProcAddress, so this has no signature of any other. What is given back and what is only asked is not counted, as in opencl/failing_layer.cpp; private tables
// (cuGetExportTable) are the driver's own.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "cuda/trampolines.hpp"

namespace {

using namespace trifold::tests;
using Version1 = int (*)(const char*, void**, int, unsigned long long);
using Version2 = int (*)(const char*, void**, int, unsigned long long, void*);

constexpr int not_found = 500, unknown = 999;  // CUresult

std::atomic<long> calls{0}, failing{-1};
std::atomic<bool> lasting{false};
std::atomic<int> failed{0}, code{unknown};
std::atomic<const char*> failed_function{""};
std::atomic<long> sleeping{-1}, sleep_ms{0}, slow_ms{0};

std::mutex mutex;
int used = 0;
std::string names[trampoline_count];
void* reals[trampoline_count];

bool counts(std::string_view name) {
    for (const std::string_view begin : {"cuInit", "cuDriverGetVersion", "cuGetErrorString", "cuGetErrorName", "cuGetExportTable", "cuDeviceGet", "cuDevicePrimaryCtxGetState", "cuCtxGet"})
        if (name.starts_with(begin)) return false;
    for (const std::string_view given_back : {"Free", "Destroy", "Unload", "Unregister", "Release"})
        if (name.find(given_back) != name.npos) return false;
    return true;
}

void* real_driver() {
    static void* const driver = [] {
        const char* const path = std::getenv("TRIFOLD_REAL_CUDA");
        void* const opened = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
        if (!opened) std::fprintf(stderr, "failing_cuda/libcuda.so.1: TRIFOLD_REAL_CUDA names no driver: %s\n", path ? dlerror() : "it is not set");
        if (const char* const slow = std::getenv("TRIFOLD_TEST_SLOW_CALLS")) slow_ms = std::atol(slow), std::fprintf(stderr, "calls of CUDA's driver take %ld ms longer\n", slow_ms.load());
        return opened;
    }();
    return driver;
}

template <class Function>
Function real(const char* name) {
    return real_driver() ? reinterpret_cast<Function>(dlsym(real_driver(), name)) : nullptr;
}

/// The trampoline before `function`, always the same one.
void* before(const char* name, void* function) {
    if (!function || !counts(name)) return function;
    const std::lock_guard lock(mutex);
    for (int slot = 0; slot < used; ++slot)
        if (reals[slot] == function && names[slot] == name) return trampoline(slot, function);
    if (used == trampoline_count) {
        std::fprintf(stderr, "failing_cuda/libcuda.so.1: more than %d functions: %s never fails\n", trampoline_count, name);
        return function;
    }
    names[used] = name, reals[used] = function;
    return trampoline(used++, function);
}

}  // namespace

int trifold::tests::result_instead(int slot) {
    const long call = calls.fetch_add(1), wanted = failing.load();
    if (const long ms = slow_ms.load(); ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    if (call == sleeping.load()) std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms.load()));
    if (wanted < 0 || !(call == wanted || (lasting.load() && call > wanted))) return 0;
    if (failed.fetch_add(1) == 0) failed_function = names[slot].c_str();
    return code.load();
}

extern "C" {
#define TRIFOLD_SHOWN __attribute__((visibility("default")))

TRIFOLD_SHOWN int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, void* found);

TRIFOLD_SHOWN int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
    static const auto driver = real<Version1>("cuGetProcAddress");
    if (!driver) return not_found;
    const int result = driver(name, function, version, flags);
    if (result != 0 || !name || !function || !*function) return result;
    if (std::string_view(name) == "cuGetProcAddress") *function = version < 12000 ? reinterpret_cast<void*>(cuGetProcAddress) : reinterpret_cast<void*>(cuGetProcAddress_v2);
    else *function = before(name, *function);
    return result;
}

TRIFOLD_SHOWN int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, void* found) {
    static const auto driver = real<Version2>("cuGetProcAddress_v2");
    if (!driver) return not_found;
    const int result = driver(name, function, version, flags, found);
    if (result != 0 || !name || !function || !*function) return result;
    if (std::string_view(name) == "cuGetProcAddress") *function = version < 12000 ? reinterpret_cast<void*>(cuGetProcAddress) : reinterpret_cast<void*>(cuGetProcAddress_v2);
    else *function = before(name, *function);
    return result;
}

/// Of those that look a name up in the library itself.
TRIFOLD_SHOWN int cuInit(unsigned flags) {
    static const auto driver = real<int (*)(unsigned)>("cuInit");
    return driver ? driver(flags) : not_found;
}
TRIFOLD_SHOWN int cuDriverGetVersion(int* version) {
    static const auto driver = real<int (*)(int*)>("cuDriverGetVersion");
    return driver ? driver(version) : not_found;
}
TRIFOLD_SHOWN int cuGetExportTable(const void** table, const void* id) {
    static const auto driver = real<int (*)(const void**, const void*)>("cuGetExportTable");
    return driver ? driver(table, id) : not_found;
}

/// Calls since the last `trifold_fail_call`; from there on number `call` fails (-1: none) with `result`, and all after it where `on` is set.
TRIFOLD_SHOWN long trifold_calls() { return calls.load(); }
TRIFOLD_SHOWN void trifold_fail_call(long call, int on, int result) { failing = -1, calls = 0, failed = 0, failed_function = "", lasting = on != 0, code = result, failing = call; }

/// How many have failed since then, and the first of them.
TRIFOLD_SHOWN int trifold_failed() { return failed.load(); }
TRIFOLD_SHOWN const char* trifold_failed_function() { return failed_function.load(); }

/// Number `call` from here on sleeps before it is made; every call does.
TRIFOLD_SHOWN void trifold_sleep_call(long call, long ms) { sleeping = -1, calls = 0, sleep_ms = ms, sleeping = call; }
TRIFOLD_SHOWN void trifold_slow_calls(long ms) { slow_ms = ms; }

}  // extern "C"
