// SPDX-License-Identifier: BSD-3-Clause
// CUDA C++ to machine code at run time, by NVRTC, which is part of the CUDA toolkit and is loaded when it is first needed. Neither a
// driver nor a GPU is asked.
#pragma once

#include <span>
#include <string>

#include "base/failure.hpp"

namespace trifold::cuda::jit {

/// nullptr where NVRTC is there, else why it cannot be used and where it comes from.
const char* compiler_missing();

/// What decides, besides the text, what comes out: version of the compiler, options, headers.
std::string compiler_key(int architecture);

/// A text that begins with this line divides floats to two units in the last place, without a branch: a third of the instructions. Doubles are not concerned.
inline constexpr const char* rough_division = "// rough division\n";

/// `text` may include what embedded.hpp has. architecture: 90 for sm_90. Multiply-adds are fused where the text names them and nowhere else, so that what is rounded does
/// not depend on what a thread computes beside it; divisions and roots are correctly rounded (but for `rough_division`), subnormals are kept. False: failure names the first
/// error and where its line came from (#line), and `log` has all of the compiler's words.
bool compile(const std::string& text, const std::string& name, int architecture, std::string& cubin, std::string& log, Failure& failure);

}  // namespace trifold::cuda::jit
