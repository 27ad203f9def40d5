// SPDX-License-Identifier: BSD-3-Clause
// The devices cuda:0, cuda:1 … as libtrifold sees them. Nothing here needs CUDA: what does lies in libtrifold_cuda.so, which
// is loaded when such a device is first named.
#include <array>
#include <string>
#include <vector>

#include "backends/cuda/table.hpp"
#include "devices/loadable.hpp"
#include "families/device.hpp"

namespace trifold {
namespace {

using Library = devices::Loaded<cuda::Table>;

const Library& library() {
    static const Library loaded = devices::load_table<cuda::Table>("it is built where nvcc is found, and belongs beside libtrifold");
    return loaded;
}

std::string describe(const Device& device) {
    const Library& lib = library();
    return lib.table && lib.table->count() > device.number ? lib.table->describe(device.number) : "";
}

const char* unavailable(const Device& device) {
    const Library& lib = library();
    return lib.why.empty() ? lib.table->unusable(device.number) : lib.why.c_str();
}

constexpr const char* note = "the cpu computes ragged batches of rings, the reference algorithms by name, from host memory; a Factor keeps the matrix; generators are tabulated";

struct Devices {
    std::vector<std::string> names;
    std::vector<std::array<Cell, 1>> cells;
    std::vector<Device> devices;

    Devices() {
        const Library& lib = library();
        const int there = lib.table ? lib.table->count() : 0, listed = there > 0 ? there : 1;
        for (int k = 0; k < listed; ++k) {
            names.push_back("cuda:" + std::to_string(k));
            cells.push_back({Cell{"tridiagonal", CellKind::native, k < there ? lib.table->tridiagonal(k) : nullptr, note}});
        }
        for (int k = 0; k < listed; ++k)
            devices.push_back({names[static_cast<std::size_t>(k)].c_str(), describe, false, unavailable, cells[static_cast<std::size_t>(k)], k,
                               there > 0 ? lib.table->runtime : nullptr});
    }
};

}  // namespace

std::span<const Device> cuda_devices() {
    static const Devices all;
    return all.devices;
}

}  // namespace trifold
