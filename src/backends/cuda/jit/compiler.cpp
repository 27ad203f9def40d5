// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/jit/compiler.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "backends/cuda/jit/embedded.hpp"
#include "base/text_hash.hpp"

namespace trifold::cuda::jit {
namespace {

// nvrtc.h is not needed to build: its functions, as of CUDA 12 and 13.
struct Program;
using Result = int;

struct Nvrtc {
    Result (*version)(int*, int*) = nullptr;
    Result (*create)(Program**, const char* text, const char* name, int headers, const char* const* texts, const char* const* names) = nullptr;
    Result (*compile)(Program*, int options, const char* const* list) = nullptr;
    Result (*log_size)(Program*, std::size_t*) = nullptr;
    Result (*log)(Program*, char*) = nullptr;
    Result (*cubin_size)(Program*, std::size_t*) = nullptr;
    Result (*cubin)(Program*, char*) = nullptr;
    Result (*destroy)(Program**) = nullptr;
    const char* (*error)(Result) = nullptr;

    int major = 0, minor = 0;
    std::string why;  // it cannot be used

    Nvrtc() {
        void* const library = open();
        if (!library) return;
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            if (!function && why.empty()) why = std::string("the NVRTC library that was found has no function ") + name;
        };
        find(version, "nvrtcVersion"), find(create, "nvrtcCreateProgram"), find(compile, "nvrtcCompileProgram");
        find(log_size, "nvrtcGetProgramLogSize"), find(log, "nvrtcGetProgramLog");
        find(cubin_size, "nvrtcGetCUBINSize"), find(cubin, "nvrtcGetCUBIN");
        find(destroy, "nvrtcDestroyProgram"), find(error, "nvrtcGetErrorString");
        if (why.empty() && version(&major, &minor) != 0) why = "the NVRTC library that was found does not say its version";
    }

    void* open() {
        std::vector<std::string> folders{""};
        for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
            if (const char* const value = std::getenv(variable); value && *value) folders.push_back(std::string(value) + "/lib64/");
        folders.push_back("/usr/local/cuda/lib64/");
        for (const std::string& folder : folders)
            for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
                if (void* const library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
        why = "sweeps are compiled for the GPU at run time, and libnvrtc.so (13 or 12) is neither on the library path nor in /usr/local/cuda/lib64";
        return nullptr;
    }
};

const Nvrtc& nvrtc() {
    static const Nvrtc loaded;
    return loaded;
}

constexpr const char* where_it_is = "it is part of the CUDA toolkit (package cuda-nvrtc): install it, or set CUDA_HOME or LD_LIBRARY_PATH";

std::vector<std::string> options_for(int architecture) {
    return {"--gpu-architecture=sm_" + std::to_string(architecture), "--std=c++17", "--fmad=false", "--device-as-default-execution-space"};
}

std::string first_error(const std::string& log) {
    std::size_t from = log.find("error");
    if (from == std::string::npos) from = 0;
    from = from == 0 ? 0 : log.rfind('\n', from) + 1;
    return log.substr(from, log.find('\n', from) - from);
}

}  // namespace

const char* compiler_missing() { return nvrtc().why.empty() ? nullptr : nvrtc().why.c_str(); }

std::string compiler_key(int architecture) {
    static const std::string headers = [] {
        TextHash hash;
        for (const EmbeddedFile& file : embedded_files()) hash.add(file.name), hash.add(file.text);
        return hash.text();
    }();
    std::string key = "nvrtc " + std::to_string(nvrtc().major) + "." + std::to_string(nvrtc().minor) + " " + headers;
    for (const std::string& option : options_for(architecture)) key += " " + option;
    return key;
}

bool compile(const std::string& text, const std::string& name, int architecture, std::string& cubin, std::string& log, Failure& failure) {
    if (const char* const why = compiler_missing()) return failure.say(ErrorCode::device_unavailable, why, where_it_is);
    std::vector<const char*> names, texts, options;
    for (const EmbeddedFile& file : embedded_files()) names.push_back(file.name), texts.push_back(file.text);
    names.push_back("cstdint");
    texts.push_back("#pragma once\nnamespace std { using int8_t = signed char; using uint8_t = unsigned char; using int64_t = long; using uint64_t = unsigned long; using uintptr_t = unsigned long; }\n");
    std::vector<std::string> list = options_for(architecture);
    if (text.starts_with(rough_division)) list.emplace_back("--prec-div=false");
    for (const std::string& option : list) options.push_back(option.c_str());

    const auto bad = [&](Result result, const char* doing) {
        const std::string message = std::string("NVRTC ") + std::to_string(nvrtc().major) + "." + std::to_string(nvrtc().minor) + ", " + doing + ": " + nvrtc().error(result);
        return failure.say(ErrorCode::device_unavailable, message.c_str(), where_it_is);
    };
    Program* program = nullptr;
    if (const Result result = nvrtc().create(&program, text.c_str(), name.c_str(), static_cast<int>(names.size()), texts.data(), names.data()))
        return bad(result, "taking the text");
    const Result result = nvrtc().compile(program, static_cast<int>(options.size()), options.data());
    std::size_t bytes = 0;
    if (nvrtc().log_size(program, &bytes) == 0 && bytes > 1) log.resize(bytes), nvrtc().log(program, log.data()), log.resize(bytes - 1);
    constexpr Result compilation = 6;  // NVRTC_ERROR_COMPILATION
    bool good = result == 0;
    if (result == compilation) failure.say(ErrorCode::usage, ("does not compile for the GPU: " + first_error(log)).c_str(), "write it in the subset that trifold/point_function.hpp names");
    else if (result != 0) bad(result, "compiling");
    if (good) {
        good = nvrtc().cubin_size(program, &bytes) == 0 && bytes > 0;
        cubin.resize(bytes);
        good = good && nvrtc().cubin(program, cubin.data()) == 0;
        if (!good) failure.say(ErrorCode::device_unavailable, "NVRTC gives no machine code", where_it_is);
    }
    nvrtc().destroy(&program);
    return good;
}

}  // namespace trifold::cuda::jit
