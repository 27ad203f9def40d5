// SPDX-License-Identifier: BSD-3-Clause
#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    trifold::fuzz::generator(data, size);
    return 0;
}
