// SPDX-License-Identifier: BSD-3-Clause
#include "devices/loadable.hpp"

#include <dlfcn.h>

#include <filesystem>

namespace trifold::devices {
namespace {

std::string folder_of_this_code() {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(&folder_of_this_code), &info) || !info.dli_fname) return "";
    std::filesystem::path path = info.dli_fname;
    std::error_code ignored;
    // A program is known by the name that it was called by, which may be found by the PATH.
    if (!path.is_absolute()) path = std::filesystem::read_symlink("/proc/self/exe", ignored);
    return path.parent_path().string() + "/";
}

void* open_beside_library(const char* name, std::string& why) {
    const std::string here = folder_of_this_code();
    for (const std::string& path : {here + name, here + "../lib/" + name, std::string(name)}) {
        if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
        const char* message = dlerror();
        const std::string text = message ? message : "";
        // A file that is there but does not load is the reason worth telling; one that is not there is told last.
        if (why.empty() || text.find("No such file") == std::string::npos) why = text;
    }
    return nullptr;
}

}  // namespace

void* function_beside_library(const char* library, const char* symbol, const char* built_where, std::string& why) {
    std::string reason;
    void* const handle = open_beside_library(library, reason);
    if (!handle) why = std::string(library) + " cannot be loaded: " + reason + " (" + built_where + ")";
    return handle ? dlsym(handle, symbol) : nullptr;
}

}  // namespace trifold::devices
