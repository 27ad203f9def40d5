// SPDX-License-Identifier: BSD-3-Clause
// The functions of a mesh problem as device functions in the text of a program that is compiled at run time (jit/program.hpp).
//
// A point function becomes, under a name that FunctionTexts gives (trifold_function_0, …):
//
//   template <class real, class Near, class Parameters>
//   __device__ __forceinline__ void NAME(const Near& trifold_near, const Parameters& trifold_p, real* trifold_out,
//                                        std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step)
//
// with the user's own text as its body, in which
//   at(f, dx, dy, dz)   is  trifold_near.template at<f, dx, dy, dz>()      real; all four known when it is compiled
//   p(k)                is  trifold_p[k]                                   what has operator[], an array or a pointer: kernel arguments
//   out(k)              is  trifold_out[k]                                 an array of the caller's: registers, once inlined
//   mad(a, b, c)        is  trifold_mad(real(a), real(b), real(c))         one rounding; programs fuse nothing by themselves (jit/compiler.hpp)
// The text has no values of parameters in it, so that a run with others needs no other program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trifold/point_function.hpp"

namespace trifold::cuda {

class FunctionTexts {
public:
    /// Adds it, unless one of that name and text is there.
    std::string name_of(const PointFunction& function) { return name_of(function.name, function.source); }
    std::string name_of(std::string_view name, std::string_view source);

    /// All that have been named, to stand before kernels that call them.
    std::string text() const;

private:
    struct Function {
        std::string name, source;
    };
    std::vector<Function> functions_;
};

}  // namespace trifold::cuda
