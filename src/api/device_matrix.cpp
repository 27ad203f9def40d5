// SPDX-License-Identifier: BSD-3-Clause
#include "api/device_matrix.hpp"

#include <string>

namespace trifold::tridiagonal {

DeviceMatrix::~DeviceMatrix() {
    for (Block& block : blocks_) release(block);
}

void DeviceMatrix::release(Block& block) noexcept {
    if (block.data) runtime_.release(device_.number, block.data);
    block = {};
}

void DeviceMatrix::raise() const { failure_.raise(std::string("Factor on '") + device_.name + "'"); }

void DeviceMatrix::copy(void* to, const void* from, std::size_t bytes) {
    if (!runtime_.copy(device_.number, stream_, to, from, bytes, failure_)) raise();
}

void DeviceMatrix::wait() {
    if (!runtime_.synchronize(device_.number, stream_, failure_)) raise();
}

// What is too small is given back first, so that old and new are never held together.
void DeviceMatrix::reserve(Block& block, std::size_t bytes) {
    if (bytes <= block.bytes) return;
    release(block);
    if (!runtime_.allocate(device_.number, bytes, &block.data, failure_)) raise();
    block.bytes = bytes;
}

void DeviceMatrix::bring_from_host(const KeptBand& band, char* to, devices::ScratchArena& scratch, int threads) {
    const std::size_t bytes = static_cast<std::size_t>(band.elements) * size_of(band.view.dtype);
    if (band.is_a_copy()) {
        copy(to, band.pieces[0].copy.from, bytes);
        wait();
        return;
    }
    const devices::Scratch packed = scratch.take(bytes);
    const double zero = 0;
    const auto bring = [&](const KeptPiece& piece, const void* from) {
        devices::StridedCopy one = piece.copy;
        one.from = from, one.to = static_cast<char*>(packed.data()) + piece.to_byte;
        copy_on_host(one, threads);
    };
    for (int k = 0; k < band.count; ++k) bring(band.pieces[static_cast<std::size_t>(k)], band.pieces[static_cast<std::size_t>(k)].copy.from);
    if (band.has_outside) bring(band.outside, &zero);
    copy(to, packed.data(), bytes);
    wait();  // before the host's copy is given back
}

void DeviceMatrix::bring_from_there(const KeptBand& band, char* to) {
    if (band.is_a_copy()) return copy(to, band.pieces[0].copy.from, static_cast<std::size_t>(band.elements) * size_of(band.view.dtype));
    const auto bring = [&](const KeptPiece& piece, const void* from) {
        devices::StridedCopy one = piece.copy;
        one.from = from, one.to = to + piece.to_byte;
        if (!runtime_.copy_strided(device_.number, stream_, one, failure_)) raise();
    };
    for (int k = 0; k < band.count; ++k) bring(band.pieces[static_cast<std::size_t>(k)], band.pieces[static_cast<std::size_t>(k)].copy.from);
    if (band.has_outside) bring(band.outside, to - header);
}

void DeviceMatrix::keep(const Matrix& matrix, const bool there[3], std::int64_t rows, std::span<const std::int64_t> batch, devices::ScratchArena& scratch, int threads) {
    layout_ = kept_layout(matrix, rows, batch, layout_);
    Coefficient* const coefficients[] = {&layout_.matrix.lower, &layout_.matrix.diag, &layout_.matrix.upper};
    for (std::size_t k = 0; k < 3; ++k)
        if (layout_.bands[k].elements == 0) release(blocks_[k]);
    for (std::size_t k = 0; k < 3; ++k) {
        KeptBand& band = layout_.bands[k];
        if (band.elements == 0) continue;
        reserve(blocks_[k], header + static_cast<std::size_t>(band.elements) * size_of(band.view.dtype));
        static constexpr char zeros[header] = {};
        copy(blocks_[k].data, zeros, header);
        char* const to = static_cast<char*>(blocks_[k].data) + header;
        there[matrix.transposed ? 2 - k : k] ? bring_from_there(band, to) : bring_from_host(band, to, scratch, threads);
        band.view.data = to, band.view.memory = {MemoryKind::device, device_.number};
        *coefficients[k] = band.view;
    }
    wait();
}

}  // namespace trifold::tridiagonal
