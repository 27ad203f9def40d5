// SPDX-License-Identifier: BSD-3-Clause
// What the command tells, as values; text.cpp, json.cpp and csv.cpp turn it into characters.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "report/machine.hpp"
#include "trifold/context.hpp"
#include "trifold/report.hpp"

namespace trifold::report {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Nothing is faster than the roof: beyond what timing scatters, something else disturbed the stream that measured it.
inline bool disturbed(const Roof& roof) { return roof.fraction > 1.03; }

using Phases = std::vector<std::pair<std::string, double>>;  ///< wall seconds, in the order in which they ran

struct DeviceEnergy {
    std::string device;
    double joules = unknown;
    std::string kind = "unknown";  ///< "measured" or "estimated"
    std::string note;              ///< what was read or assumed, or why nothing could be
};

/// Of one solve, copies to a device and back included.
struct Energy {
    double joules = unknown;       ///< of all devices
    std::string kind = "unknown";  ///< "measured": all of it; "estimated": a part of it at least
    std::vector<DeviceEnergy> devices;
    std::string note;              ///< of all devices
    double seconds = 0;            ///< over which the counters were read
    int solves = 0;                ///< in that time; 0 = from one solve's time
};

/// One solve, from input to output.
struct Record {
    trifold::Report report;   ///< as the library filled it; of several repeats the one with the median solve_s
    std::string input;        ///< file or generator
    std::string description;  ///< of the input, in words
    std::vector<std::int64_t> shape;
    int axis = 0;
    bool periodic = false;
    std::int64_t right_hand_sides = 1;  ///< that share one matrix
    DeviceInfo device;                  ///< that really computed
    int threads = 1;  ///< of the host; 0 = the device computes without them
    int repeats = 1;
    double residual = unknown;  ///< backward error of x, computed after the solve and not part of solve_s
    Phases phases;              ///< of the whole command
    double total_s = 0;
    Energy energy;
    std::int64_t peak_bytes = 0;  ///< resident
    std::string output;           ///< file, or empty
    Machine machine;
};

/// x of a problem, looked at.
struct Verification {
    std::string input, solution;
    std::int64_t rows = 0, systems = 0;
    DType dtype = DType::f64;
    double residual = unknown, tolerance = 0;
    std::int64_t system = -1, row = -1;  ///< where the residual is largest
    bool ok() const { return residual <= tolerance; }
};

/// One cell of the grid device × family.
struct GridCell {
    std::string device, family, kind, note;
};

struct DeviceList {
    std::vector<DeviceInfo> devices;
    std::vector<std::pair<std::string, std::string>> unavailable;  ///< device, why
    std::vector<GridCell> cells;
    struct Bandwidth {
        std::int64_t footprint;
        int threads;  ///< 0 = the device's own
        std::string store;
        double bytes_per_s;
        std::string device = "cpu";
        std::string source = {};  ///< "measured now", "profile DATE", or "defaults"
    };
    std::vector<Bandwidth> bandwidth;
    std::string profile;  ///< "measured now", "profile DATE", or "defaults"
    bool measured = false;  ///< bandwidth is of this machine, not assumed
    int threads = 1;
    Machine machine;
};

struct BenchRow {
    std::string problem;
    std::int64_t rows = 0;
    DType dtype = DType::f64;
    std::string branch, reason;
    bool ok = true;
    double solve_s = 0, roof_bytes_per_s = 0, needed_bytes = 0, predicted_s = 0, certified_share = unknown;  ///< no roof: 0
    double rate() const { return ok && solve_s > 0 ? static_cast<double>(rows) / solve_s : unknown; }
    Roof roof() const {
        const bool known = ok && solve_s > 0 && roof_bytes_per_s > 0;
        return {roof_bytes_per_s, "measured now", needed_bytes, known ? needed_bytes / solve_s / roof_bytes_per_s : unknown};
    }
};

struct BenchTable {
    std::vector<BenchRow> rows;
    int threads = 1;
    Machine machine;
};

/// Beyond this mesh number the shortest waves hardly decay in a step, and accuracy is lost.
inline constexpr double accurate_mesh_number = 10;

/// A run of the heat solver.
struct HeatRecord {
    std::vector<std::int64_t> mesh;  ///< cells along x, y, z
    std::int64_t batch = 1, iterations = 0;
    double points = 0;               ///< of all meshes
    DType dtype = DType::f64;
    std::string scheme, boundary, initial, conductivity, source;   ///< as they were asked for; no source: empty
    std::string device, reason, place;                             ///< place: of a failure, in words
    bool ok = false;
    int threads = 0;
    double step = unknown, number = unknown;
    double solve_s = 0;              ///< the time loop, data where the device computes
    double total_s = 0;
    Phases phases;
    double least = unknown, most = unknown, mean = unknown;
    std::int64_t parts = 1;          ///< that the batch was advanced in, one after the other
    double roof_bytes_per_s = 0;     ///< of a stream that reads two arrays and writes one; 0 = not measured
    Energy energy;                   ///< of the run; `solves` are pieces of it
    std::int64_t energy_steps = 0;   ///< over which the counters were read
    std::int64_t peak_bytes = 0;
    std::vector<std::string> written;
    Machine machine;
};

struct PlanRecord {
    std::string input, description;
    std::int64_t rows = 0, systems = 0;
    std::vector<std::int64_t> shape;
    int axis = 0;
    bool periodic = false;
    DType dtype = DType::f64;
    Plan plan;
    std::int64_t workspace_bytes = 0, problem_bytes = 0;
    std::int64_t available_bytes = INT64_MAX;  ///< on the host, now
    int threads = 1;  ///< of the host; 0 = the device computes without them
};

}  // namespace trifold::report
