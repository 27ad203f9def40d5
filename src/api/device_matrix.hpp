// SPDX-License-Identifier: BSD-3-Clause
// A copy of a matrix in the memory of a device that has its own, for many solves there.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "api/kept_layout.hpp"
#include "devices/scratch.hpp"
#include "families/device.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::tridiagonal {

class DeviceMatrix {
public:
    /// The device has Runtime::copy_strided. `stream`: where copies are enqueued.
    DeviceMatrix(const Device& device, void* stream) : device_(device), runtime_(*device.runtime), stream_(stream) {}
    ~DeviceMatrix();
    DeviceMatrix(const DeviceMatrix&) = delete;
    DeviceMatrix& operator=(const DeviceMatrix&) = delete;

    /// Takes over a matrix of views and scalars that normalise() has taken; there: which of lower, diag and upper lie on the device. Waits. Throws Error,
    /// and holds nothing useful then. Where the same bands are arrays as before, shared along the same dimensions, they lie as these did.
    void keep(const Matrix& matrix, const bool there[3], std::int64_t rows, std::span<const std::int64_t> batch, devices::ScratchArena& scratch, int threads);

    /// How it lies; its matrix has the addresses.
    const KeptLayout& layout() const noexcept { return layout_; }

private:
    /// An array's memory, each its own: drivers may allow a part of the device's at once. It begins with a 0, of which entries outside the matrix are made.
    struct Block {
        void* data = nullptr;
        std::size_t bytes = 0;
    };
    static constexpr std::size_t header = 256;

    void reserve(Block& block, std::size_t bytes);
    void release(Block& block) noexcept;
    void bring_from_host(const KeptBand& band, char* to, devices::ScratchArena& scratch, int threads);
    void bring_from_there(const KeptBand& band, char* to);
    void copy(void* to, const void* from, std::size_t bytes);
    void wait();
    [[noreturn]] void raise() const;

    const Device& device_;
    const devices::Runtime& runtime_;
    void* stream_;
    std::array<Block, 3> blocks_{};
    KeptLayout layout_;
    Failure failure_;
};

}  // namespace trifold::tridiagonal
