// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/mesh/functions.hpp"

namespace trifold::cuda {

std::string FunctionTexts::name_of(std::string_view name, std::string_view source) {
    std::size_t k = 0;
    while (k < functions_.size() && (functions_[k].source != source || functions_[k].name != name)) ++k;
    if (k == functions_.size()) functions_.push_back({std::string(name), std::string(source)});
    return "trifold_function_" + std::to_string(k);
}

std::string FunctionTexts::text() const {
    std::string text = "#include <cstdint>\n"
                       "__device__ __forceinline__ float trifold_mad(float a, float b, float c) { return fmaf(a, b, c); }\n"
                       "__device__ __forceinline__ double trifold_mad(double a, double b, double c) { return fma(a, b, c); }\n"
                       "#define mad(a, b, c) trifold_mad(real(a), real(b), real(c))\n"
                       "#define at(f, dx, dy, dz) trifold_near.template at<f, dx, dy, dz>()\n"
                       "#define out(k) trifold_out[k]\n"
                       "#define p(k) trifold_p[k]\n"
                       "#define trifold_kept(k) trifold_near.template kept<k>()\n";
    for (std::size_t k = 0; k < functions_.size(); ++k) {
        text += "template <class real, class Near, class Parameters>\n"
                "__device__ __forceinline__ void trifold_function_" + std::to_string(k) +
                "(const Near& trifold_near, const Parameters& trifold_p, real* trifold_out,\n"
                "    std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t mesh, std::int64_t step)\n";
        // Whoever reads an error should find the function that it is of.
        text += "#line 1 \"point function " + functions_[k].name + "\"\n" + functions_[k].source + "\n";
    }
    return text + "#line 1 \"kernels\"\n#undef at\n#undef out\n#undef p\n#undef mad\n#undef trifold_kept\n";
}

}  // namespace trifold::cuda
