// SPDX-License-Identifier: BSD-3-Clause
// A run of the heat solver as a picture: the field, a profile through its middle, how it settles. SVG, the field as an image inside.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trifold::report {

struct HeatPicture {
    std::string title;
    std::string plane;                       ///< which one the field is, after "the field at the end"; empty where there is one
    std::int64_t width = 0, height = 0;      ///< of the field that is shown: a plane through the middle of the first mesh
    std::vector<float> field;                ///< [y][x]; empty where the mesh has one dimension
    std::vector<float> first, last;          ///< along x through the middle, at the beginning and at the end
    std::vector<std::pair<double, double>> change;  ///< after so many steps: largest change of the profile per step
};

std::string svg(const HeatPicture& picture);

/// `width` × `height` values as a PNG file, a square of pixels each where they are few; rows from bottom to top. Empty where it cannot be made.
std::string png(const std::vector<float>& values, std::int64_t width, std::int64_t height);

}  // namespace trifold::report
