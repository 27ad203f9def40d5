// SPDX-License-Identifier: BSD-3-Clause
// What kind of device a platform shows, from the strings that vendors document.
#pragma once

#include <string_view>

namespace trifold::opencl {

enum class Kind { cpu, gpu, accelerator, fpga, emulator };

inline const char* name_of(Kind kind) {
    constexpr const char* names[] = {"cpu", "gpu", "accelerator", "FPGA", "emulated FPGA"};
    return names[static_cast<int>(kind)];
}

/// `emulation`: the environment variable XCL_EMULATION_MODE is set. `is_cpu`, `is_gpu`: the device's type.
inline Kind kind_of(std::string_view platform, std::string_view vendor, bool is_cpu, bool is_gpu, bool emulation) {
    if (platform.find("FPGA Emulation Platform") != platform.npos) return Kind::emulator;
    if (platform.find("FPGA SDK for OpenCL") != platform.npos) return Kind::fpga;
    if (vendor == "Xilinx") return emulation ? Kind::emulator : Kind::fpga;
    return is_gpu ? Kind::gpu : is_cpu ? Kind::cpu : Kind::accelerator;
}

/// What makes programs for a device whose driver has no compiler.
inline const char* offline_compiler(std::string_view vendor) {
    return vendor == "Xilinx" ? "v++ (Vitis)" : vendor.find("Intel") != vendor.npos || vendor.find("Altera") != vendor.npos ? "aoc" : "the vendor's compiler";
}

}  // namespace trifold::opencl
