// SPDX-License-Identifier: BSD-3-Clause
// Puts failing_driver.cpp before CUDA's driver, for a process that has not asked for the driver yet: a library is found by its name when it is loaded already.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace trifold::tests {

/// Where this machine's driver is; empty: there is none. A child looks, so that it is not loaded here.
inline std::string find_driver() {
    int ends[2];
    if (pipe(ends) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
        link_map* map = nullptr;
        void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        const bool found = driver && dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0;
        const std::string path = found ? map->l_name : "";
        _exit(write(ends[1], path.data(), path.size()) == static_cast<ssize_t>(path.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string path;
    char some[256];
    for (ssize_t count; (count = read(ends[0], some, sizeof some)) > 0;) path.append(some, static_cast<std::size_t>(count));
    close(ends[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    return path;
}

struct FailingDriver {
    long (*calls)() = nullptr;
    void (*fail)(long call, int on, int result) = nullptr;
    int (*failed)() = nullptr;
    const char* (*failed_function)() = nullptr;
    void (*sleep)(long call, long ms) = nullptr;
    void (*slow)(long ms) = nullptr;
    std::string why_not;  ///< empty: it stands before the driver
};

/// Once in a process. It lies beside the libraries of the program: lib/tests/failing_cuda in a build and in a bundle.
inline FailingDriver stand_before_driver() {
    FailingDriver out;
    const auto not_there = [&](const std::string& why) { return out.why_not = why, out; };
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) return not_there("CUDA's driver is loaded already");
    if (!std::getenv("TRIFOLD_REAL_CUDA")) {
        const std::string path = find_driver();
        if (path.empty()) return not_there("this machine has no NVIDIA driver");
        setenv("TRIFOLD_REAL_CUDA", path.c_str(), 1);
    }
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    std::string folder(self, static_cast<std::size_t>(length > 0 ? length : 0));
    folder.erase(folder.find_last_of('/') + 1);
    void* const library = dlopen((folder + "../lib/tests/failing_cuda/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return not_there(dlerror());
    const auto find = [&](auto& function, const char* name) { function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name)); };
    find(out.calls, "trifold_calls"), find(out.fail, "trifold_fail_call"), find(out.failed, "trifold_failed"), find(out.failed_function, "trifold_failed_function");
    find(out.sleep, "trifold_sleep_call"), find(out.slow, "trifold_slow_calls");
    if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) != library) return not_there("another libcuda.so.1 is found before it");
    return out;
}

}  // namespace trifold::tests
