// SPDX-License-Identifier: BSD-3-Clause
#include "report/heat_picture.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace trifold::report {
namespace {

constexpr std::int64_t least_side = 480;  // pixels of an image's longer side, about
constexpr double panel_width = 360, panel_height = 300, left = 64, top = 56, apart = 90;
constexpr const char* ink = "#333333";
constexpr const char* blue = "#2166ac";
constexpr const char* red = "#b2182b";

struct Range {
    double low = INFINITY, high = -INFINITY;

    void add(double value) { low = std::min(low, value), high = std::max(high, value); }
    double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

Range range_of(const std::vector<float>& values) {
    Range range;
    for (const float value : values) range.add(value);
    return range;
}

// Dark blue over white to dark red, equal steps of lightness.
std::array<unsigned char, 3> colour(double share) {
    static constexpr double stops[7][3] = {{33, 57, 120}, {67, 127, 188}, {160, 200, 225}, {245, 245, 240}, {246, 190, 150}, {210, 95, 75}, {120, 20, 40}};
    const double at = std::clamp(share, 0.0, 1.0) * 6;
    const int k = std::min(static_cast<int>(at), 5);
    std::array<unsigned char, 3> rgb{};
    for (std::size_t c = 0; c < 3; ++c) rgb[c] = static_cast<unsigned char>(std::lround(stops[k][c] + (at - k) * (stops[k + 1][c] - stops[k][c])));
    return rgb;
}

std::string base64(const std::string& bytes) {
    static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        unsigned group = 0;
        const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
        for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; ++k) out += k <= have ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
}

class Panel {
public:
    Panel(std::string& out, int number, const std::string& title) : out_(out), x_(left + number * (panel_width + apart)) {
        label(panel_width / 2, -14, title, "middle", 14);
    }

    void frame() { out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", x_, top, panel_width, panel_height, ink); }

    void label(double x, double y, const std::string& text, const char* anchor, int size = 11, const char* fill = ink) {
        out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\">{}</text>\n", x_ + x, top + y, anchor, size, fill, escaped(text));
    }

    void ends(const Range& range, const char* format) {
        label(-6, panel_height, fmt::format(fmt::runtime(format), range.low), "end");
        label(-6, 10, fmt::format(fmt::runtime(format), range.high), "end");
    }

    template <class Point>
    void line(std::size_t count, const char* stroke, Point point) {
        out_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"", stroke);
        for (std::size_t k = 0; k < count; ++k) {
            const auto [across, up] = point(k);
            out_ += fmt::format("{:.2f},{:.2f} ", x_ + across * panel_width, top + (1 - up) * panel_height);
        }
        out_ += "\"/>\n";
    }

    void image(const std::string& bytes, std::int64_t width, std::int64_t height) {
        const double scale = std::min(panel_width / static_cast<double>(width), panel_height / static_cast<double>(height));
        const double w = scale * static_cast<double>(width), h = scale * static_cast<double>(height);
        out_ += fmt::format("<image x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" preserveAspectRatio=\"none\" href=\"data:image/png;base64,{}\"/>\n",
                            x_ + (panel_width - w) / 2, top + (panel_height - h) / 2, w, h, base64(bytes));
    }

    void scale(const Range& range) {
        for (int k = 0; k < 64; ++k) {
            const auto rgb = colour((k + 0.5) / 64);
            out_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"10\" fill=\"#{:02x}{:02x}{:02x}\"/>\n", x_ + k * panel_width / 64, top + panel_height + 14,
                                panel_width / 64 + 0.3, rgb[0], rgb[1], rgb[2]);
        }
        label(0, panel_height + 38, fmt::format("{:.4g}", range.low), "start");
        label(panel_width, panel_height + 38, fmt::format("{:.4g}", range.high), "end");
    }

private:
    std::string& out_;
    double x_;
};

void profile(std::string& out, int number, const HeatPicture& picture) {
    Panel panel(out, number, "along x, through the middle");
    panel.frame();
    Range range = range_of(picture.first);
    for (const float value : picture.last) range.add(value);
    panel.ends(range, "{:.3g}");
    for (const auto& line : {std::pair{&picture.first, blue}, std::pair{&picture.last, red}})
        panel.line(line.first->size(), line.second, [&](std::size_t k) {
            return std::pair{(static_cast<double>(k) + 0.5) / static_cast<double>(line.first->size()), range.share((*line.first)[k])};
        });
    panel.label(0, panel_height + 20, "first step", "start", 11, blue);
    panel.label(panel_width, panel_height + 20, "last step", "end", 11, red);
}

void settling(std::string& out, int number, const HeatPicture& picture) {
    Panel panel(out, number, "largest change of that line per step, log scale");
    panel.frame();
    Range steps, change;
    for (const auto& [step, value] : picture.change)
        if (value > 0) steps.add(step), change.add(std::log10(value));
    if (!(steps.low <= steps.high)) return panel.label(panel_width / 2, panel_height / 2, "no change", "middle");
    panel.label(-6, panel_height, fmt::format("{:.1e}", std::pow(10, change.low)), "end");
    panel.label(-6, 10, fmt::format("{:.1e}", std::pow(10, change.high)), "end");
    std::vector<std::pair<double, double>> points;
    for (const auto& [step, value] : picture.change)
        if (value > 0) points.emplace_back(steps.share(step), change.share(std::log10(value)));
    if (points.size() == 1) points.push_back({1, points.front().second}), points.front().first = 0;  // a line can be seen, a point not
    panel.line(points.size(), red, [&](std::size_t k) { return points[k]; });
    panel.label(0, panel_height + 20, fmt::format("step {:.0f}", steps.low), "start");
    panel.label(panel_width, panel_height + 20, fmt::format("step {:.0f}", steps.high), "end");
}

}  // namespace

std::string png(const std::vector<float>& values, std::int64_t width, std::int64_t height) {
    const Range range = range_of(values);
    // Cells of a small mesh are squares that can be seen, and viewers have nothing to smear.
    const std::int64_t square = std::max<std::int64_t>(1, least_side / std::max(width, height));
    std::vector<unsigned char> pixels;
    pixels.reserve(values.size() * static_cast<std::size_t>(3 * square * square));
    for (std::int64_t y = height * square - 1; y >= 0; --y)
        for (std::int64_t x = 0; x < width * square; ++x) {
            const auto rgb = colour(range.share(values[static_cast<std::size_t>(y / square * width + x / square)]));
            pixels.insert(pixels.end(), rgb.begin(), rgb.end());
        }
    width *= square, height *= square;
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width), image.height = static_cast<png_uint_32>(height);
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t bytes = 0;
    if (!png_image_write_to_memory(&image, nullptr, &bytes, 0, pixels.data(), 0, nullptr)) return {};
    std::string file(bytes, '\0');
    if (!png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr)) return {};
    file.resize(bytes);
    return file;
}

std::string svg(const HeatPicture& picture) {
    const bool plane = !picture.field.empty();
    const int panels = plane ? 3 : 2;
    const double width = left + panels * (panel_width + apart) - apart + 24, height = top + panel_height + 56;
    std::string out = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\">\n"
                                  "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{2}\" y=\"22\" font-size=\"15\" fill=\"{3}\">{4}</text>\n",
                                  width, height, left, ink, escaped(picture.title));
    if (plane) {
        Panel panel(out, 0, "the field at the end" + picture.plane);
        panel.image(png(picture.field, picture.width, picture.height), picture.width, picture.height);
        panel.scale(range_of(picture.field));
    }
    profile(out, panels - 2, picture);
    settling(out, panels - 1, picture);
    return out + "</svg>\n";
}

}  // namespace trifold::report
