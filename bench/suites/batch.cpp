// SPDX-License-Identifier: BSD-3-Clause
#include "bench/suites/suites.hpp"

namespace trifold::bench {

static void run_one(const Settings& settings, Record& record, const std::string& name, const std::string& generator, DType dtype, bool gtsv) {
    Case problem(generator, dtype);
    for (const int threads : settings.thread_counts()) {
        Group group(problem, threads, true);
        group.add_solver("automatic");
        group.add_batch_order();
        if (threads == 1) {
            group.add_peer(thomas_loop(), record);
            if (gtsv) group.add_peer(lapack_gtsv(), record);
        }
        group.run({.rounds = 15, .least = 3, .budget_s = 6 * settings.budget_scale}, name, record, threads == 1 ? "Thomas loop" : "");
    }
}

void run_batch(const Settings& settings, Record& record) {
    const std::string systems = settings.quick ? "16384" : "131072";
    for (const DType dtype : {DType::f64, DType::f32})
        run_one(settings, record, systems + " x 256", "dominant?ratio=2&shape=" + systems + "x256&axis=1", dtype, true);
    // More rows along y than a processor remembers pages of.
    const std::string grids = settings.quick ? "4x1000x500" : "32x1000x1000";
    for (const DType dtype : {DType::f64, DType::f32}) run_one(settings, record, grids + " along y", "dominant?ratio=2&shape=" + grids + "&axis=1", dtype, false);
    struct Cube {
        DType dtype;
        int side;
    };
    for (const Cube cube : {Cube{DType::f32, settings.quick ? 192 : 512}, Cube{DType::f64, settings.quick ? 160 : 400}}) {
        const std::string side = std::to_string(cube.side), shape = side + "x" + side + "x" + side;
        for (int axis = 2; axis >= 0; --axis)
            run_one(settings, record, side + "^3 along " + std::string(1, "zyx"[axis]),
                    "dominant?ratio=2&shape=" + shape + "&axis=" + std::to_string(axis), cube.dtype, false);
    }
}

}  // namespace trifold::bench
