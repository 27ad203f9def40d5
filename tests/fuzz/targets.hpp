// SPDX-License-Identifier: BSD-3-Clause
// What is fuzzed: any bytes at all must end in a value that holds what it says, or in an Error of the right kind. Each
// aborts on anything else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trifold::fuzz {

void npy(const std::uint8_t* data, std::size_t size);
void npz(const std::uint8_t* data, std::size_t size);
void generator(const std::uint8_t* data, std::size_t size);

}  // namespace trifold::fuzz
