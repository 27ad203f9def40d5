// SPDX-License-Identifier: BSD-3-Clause
// Texts of kernels and of what they include, part of the shared object, for programs that are compiled at run time. The list is in
// ../CMakeLists.txt; names are paths below src/. What is there compiles under nvcc too.
#pragma once

#include <span>

namespace trifold::cuda::jit {

struct EmbeddedFile {
    const char* name;
    const char* text;
};

std::span<const EmbeddedFile> embedded_files();

}  // namespace trifold::cuda::jit
