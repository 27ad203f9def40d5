// SPDX-License-Identifier: BSD-3-Clause
// Meshes of the ADI heat benchmark: those of bench/published/adi_heat.json, and larger ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trifold/dtype.hpp"
#include "trifold/mesh.hpp"

namespace trifold::bench {

struct HeatCase {
    std::string group;  ///< "2d", "2d-large", "3d", "3d-large"
    MeshShape shape;
    DType dtype;
    int iterations;
    bool energy = false;  ///< joules are published, or asked for
    bool larger = false;  ///< of the two batches of a mesh
    bool quick = false;
    bool varies = false;    ///< conductivity, one per cell for all meshes
    Edge edge = Edge::odd;  ///< of all sides
    bool halves = false;    ///< Peaceman and Rachford's scheme

    std::string mesh() const {
        const bool cube = shape.x == shape.y && (shape.z == 1 || shape.z == shape.x);
        if (cube) return std::to_string(shape.x) + (shape.z > 1 ? "^3" : "^2");
        return std::to_string(shape.x) + "x" + std::to_string(shape.y) + (shape.z > 1 ? "x" + std::to_string(shape.z) : "");
    }
    /// "2d/128^2x3000/f32": what --only looks into.
    std::string name() const { return group + "/" + mesh() + "x" + std::to_string(shape.meshes) + "/" + name_of(dtype) + options(); }
    std::string options() const {
        return std::string(varies ? "/k" : "") + (edge == Edge::periodic ? "/periodic" : "") + (halves ? "/halves" : "");
    }
    /// Words per point and step that must move through memory, if each line solve is a pass: a mesh's own, and what all meshes share.
    double words() const {
        const bool solid = shape.z > 1;
        return (halves ? 4 : solid ? 7 : 5) + (varies ? solid ? 3 : 2 : 0) / static_cast<double>(shape.meshes);
    }
    /// What moves where a right-hand side and each line solve are passes, and matrices are kept through the run, as they are where conductivity varies: two words a line solve for them, one for conductivity.
    double words_of_kept() const {
        const bool solid = shape.z > 1;
        return (solid ? 9 : 7) + (solid ? 7 : 5) / static_cast<double>(shape.meshes);
    }
};

inline std::vector<HeatCase> heat_cases() {
    std::vector<HeatCase> list;
    for (const DType dtype : {DType::f32, DType::f64}) {
        for (const int n : {32, 48, 64, 80, 96, 112, 128})
            for (const int batch : {1500, 3000})
                list.push_back({"2d", {n, n, 1, batch}, dtype, 120, n == 32 || n == 64 || n == 128, batch == 3000, batch == 3000 && (n == 32 || n == 128)});
        for (const int n : {256, 384, 512, 640, 768, 896})
            for (const int batch : {12, 60, 180}) {
                const bool published = dtype == DType::f32 && batch > 12;
                if (published || batch == 60 || n == 512) list.push_back({"2d-large", {n, n, 1, batch}, dtype, 100, published && (n == 256 || n == 512 || n == 896), batch == 180, n == 512 && batch == 60});
            }
        for (const MeshShape& mesh : {MeshShape{32, 32, 32}, MeshShape{80, 32, 32}, MeshShape{48, 48, 48}, MeshShape{80, 64, 64}, MeshShape{80, 80, 80}, MeshShape{96, 96, 96}})
            for (const int batch : {24, 72}) {
                const bool table = mesh.x == mesh.y && mesh.x != 80;
                list.push_back({"3d", {mesh.x, mesh.y, mesh.z, batch}, dtype, 100, table, batch == 72, batch == 72 && table && mesh.x != 32});
            }
        for (const auto& [n, batch] : std::vector<std::pair<int, int>>{{64, 1}, {64, 128}, {128, 1}, {128, 16}, {192, 8}, {256, 1}, {256, 4}, {384, 1}, {512, 1}})
            list.push_back({"3d-large", {n, n, n, batch}, dtype, 100, n == 256 && batch == 1, true, n == 256 && batch == 1});
        for (const MeshShape& mesh : {MeshShape{112, 112, 112, 16}, MeshShape{96, 80, 80, 24}, MeshShape{128, 96, 96, 16}}) list.push_back({"3d-large", mesh, dtype, 100, false, true});
        // What simulations have besides: conductivity that varies, other sides, the other scheme.
        for (const MeshShape& mesh : {MeshShape{64, 64, 1, 3000}, MeshShape{256, 256, 1, 180}, MeshShape{32, 32, 32, 72}, MeshShape{48, 48, 48, 72}}) {
            list.push_back({"varying", mesh, dtype, 100});
            list.back().varies = true;
        }
        for (const MeshShape& mesh : {MeshShape{128, 128, 1, 1500}, MeshShape{512, 512, 1, 60}, MeshShape{1024, 1024, 1, 1}, MeshShape{96, 96, 96, 72}, MeshShape{256, 256, 256, 1}}) {
            const auto add = [&](const char* group, bool varies, Edge edge, bool halves) {
                list.push_back({group, mesh, dtype, 100});
                HeatCase& one = list.back();
                one.varies = varies, one.edge = edge, one.halves = halves;
            };
            add("varying", true, Edge::odd, false), add("varying", true, Edge::periodic, false), add("sides", false, Edge::periodic, false);
            if (mesh.z == 1) add("halves", false, Edge::odd, true), add("halves", true, Edge::odd, true);
        }
    }
    return list;
}

/// Order of importance where time is short: a dozen of all kinds, what the published tables and charts have for the larger batches, the rest.
inline int importance(const HeatCase& one) { return one.quick ? 0 : one.larger && (one.energy || one.group == "3d-large") ? 1 : one.larger ? 2 : 3; }

/// Whether every part between commas occurs in the case's name.
inline bool matches(const HeatCase& one, const std::string& only) {
    const std::string name = one.name();
    for (std::size_t from = 0; from <= only.size();) {
        const std::size_t comma = std::min(only.find(',', from), only.size());
        if (name.find(only.substr(from, comma - from)) == std::string::npos) return false;
        from = comma + 1;
    }
    return true;
}

}  // namespace trifold::bench
