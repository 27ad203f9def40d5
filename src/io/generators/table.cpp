// SPDX-License-Identifier: BSD-3-Clause
#include "io/generators/kinds.hpp"

namespace trifold::io {

static constexpr const GeneratorKind* kinds[] = {&diffusion_kind, &poisson_kind, &toeplitz_kind, &dominant_kind,
                                                 &random_kind,    &graded_kind,  &lesp_kind,     &kms_kind,
                                                 &dorr_kind,      &clement_kind, &zoo_kind};

std::span<const GeneratorKind* const> generator_kinds() {
    return kinds;
}

const GeneratorKind* find_generator(std::string_view name) {
    for (const GeneratorKind* kind : kinds)
        if (kind->name == name) return kind;
    return nullptr;
}

}  // namespace trifold::io
