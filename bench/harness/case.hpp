// SPDX-License-Identifier: BSD-3-Clause
// One generated problem with everything that is raced on it: our solves, the roof, the peers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/baselines/baseline.hpp"
#include "bench/harness/race.hpp"
#include "bench/harness/record.hpp"
#include "bench/harness/single_ceiling.hpp"
#include "devices/roof.hpp"
#include "io/tridiagonal_data.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::bench {

/// Options that every suite takes.
struct Settings {
    bool quick = false;     ///< a tenth of the rows, few rounds
    int threads = 0;        ///< 0 = 1 and all
    double budget_scale = 1;
    double rows = 0;        ///< hetero, mappings, dominance: of the largest system; 0 = as the suite has it
    double seconds = 0;     ///< hetero…: that the suite may take; 0 = as long as it does
    std::string watts;      ///< hetero: DEVICE=WATTS,… of devices without an energy counter
    std::string devices;    ///< hetero: a,b,…: every set of these; empty = what is here
    std::string out;
    std::vector<int> thread_counts() const;
};

ContextOptions options_with(int threads);

class Case {
public:
    /// `generator` without precision, as after "gen:".
    Case(const std::string& generator, DType dtype);

    const io::TridiagonalData& data() const { return data_; }
    io::Array& x() { return x_; }
    DType dtype() const { return data_.rhs.dtype(); }
    double rows() const { return static_cast<double>(data_.rhs.shape().elements()); }
    double needed_bytes() const { return 5 * rows() * static_cast<double>(size_of(dtype())); }

    tridiagonal::Problem problem(bool in_place) const;

    /// x becomes a copy of rhs: what an in-place solve starts from.
    void load_rhs();

private:
    io::TridiagonalData data_;
    io::Array x_;
};

/// A group of runners on one case with one number of threads; every runner becomes a row of the record.
class Group {
public:
    Group(Case& problem, int threads, bool in_place);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    /// Our solver; `label` names the row.
    void add_solver(const std::string& label, tridiagonal::Algorithm algorithm = tridiagonal::Algorithm::automatic);

    /// A peer, where it takes this case; else a note. One thread each.
    void add_peer(std::unique_ptr<Baseline> peer, Record& record);

    /// Beside the roof, what the batch solve's own kernels reach without arithmetic; in place.
    void add_batch_order() { batch_order_ = true; }

    /// Beside the roof, what bounds one system's pass: its moving alone and its arithmetic alone.
    void add_single_ceiling(SingleCeiling::Pass pass) { ceiling_ = pass; }

    /// The roof beside them, the race, and a row each with time, rate, fraction of the roof, error and memory. `ratio_to`
    /// names the row that ours are compared with.
    void run(const Pace& pace, const std::string& name, Record& record, const std::string& ratio_to = {});

    Queue& queue() { return queue_; }

private:
    struct Entry;
    struct Measured;
    Runner runner_of(Entry& entry);
    std::vector<devices::Store> stores() const;
    std::vector<devices::RoofProbe> roof_probes(const Pace& pace) const;
    Row row_of(const std::string& name, Entry& entry, const Timing& timing, const Runner& runner, const Measured& measured, const std::string& ratio_to);
    void set_outcome(Row& row, Entry& entry, const Timing& timing, const Runner& runner);

    Case& case_;
    int threads_;
    bool in_place_;
    bool batch_order_ = false;
    std::optional<SingleCeiling::Pass> ceiling_;
    Context context_;
    Queue queue_;
    std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace trifold::bench
