// SPDX-License-Identifier: BSD-3-Clause
// What the subcommands share: options of the same name mean the same everywhere.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/tridiagonal_data.hpp"
#include "report/energy.hpp"
#include "trifold/context.hpp"
#include "trifold/tridiagonal.hpp"

namespace trifold::cli {

/// Exit codes beyond those of ErrorCode.
enum Exit { good = 0, numerical = 4, not_verified = 6 };

/// A subcommand: its part of the command line, and what runs when it is chosen. Throws Error; returns an exit code.
struct Command {
    CLI::App* app = nullptr;
    std::function<int()> run;
};

Command solve_command(CLI::App& parent);
Command generate_command(CLI::App& parent);
Command verify_command(CLI::App& parent);
Command plan_command(CLI::App& parent);
Command bench_command(CLI::App& parent);
Command devices_command(CLI::App& parent);
Command heat_command(CLI::App& parent);

struct CommonOptions {
    std::string device = "cpu", algorithm = "automatic", precision, objective = "time", watts_text;
    int threads = 0;
    std::optional<int> axis;
    bool quiet = false, json = false, periodic = false;
    report::Watts watts;
    std::vector<tridiagonal::DeviceWatts> device_watts;

    CLI::Option* add_input(CLI::App& app, std::string& input);  ///< required, unless the caller says otherwise
    void add_run(CLI::App& app);   ///< --device, --algorithm, --threads
    void add_data(CLI::App& app);  ///< --precision, --axis
    void add_threads(CLI::App& app);
    void add_periodic(CLI::App& app);
    void add_objective(CLI::App& app);  ///< --optimise, --watts
    void add_watts(CLI::App& app);

    /// The view of `watts` in what is returned is of this object. Throws Error(usage).
    void apply_objective(tridiagonal::Options& settings);
    /// Says which of --watts name a device that is not asked.
    void note_watts(const Queue& queue) const;
    void add_talk(CLI::App& app);  ///< --quiet, --json

    /// Throws Error(usage) with the nearest name.
    std::optional<DType> dtype() const;

    io::LoadOptions load(bool values, io::Progress progress = {}) const;

    ContextOptions context() const;
};

/// A transform of options that count: 5000 or 5e3, from `least` to `most`.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);

/// A check of options that name a file: an empty name (a shell variable that is not set) is no absent option.
std::string not_empty(const std::string& name);

/// Loops outside the library (generators, checks) take as many threads as the Context.
void use_threads_of(const Context& context);

/// "trifold solve" examples and the exit codes, below the options.
void set_examples(CLI::App& app, const std::string& examples);

/// The problem's shape without its values, and what solving it takes.
struct Prospect {
    io::TridiagonalData shape;
    io::Array x;
    double bytes = 0;  ///< problem and x
    double workspace = 0;  ///< of the host, fall-backs included
    double certain = 0;    ///< the part of it that no solve does without
};
Prospect look_ahead(const std::string& input, const CommonOptions& common, Queue& queue,
                    const tridiagonal::Options& options);

/// The host's threads that a plan runs it on: no more than help; 0 where another device computes.
int planned_threads(const Queue& queue, const tridiagonal::Problem& problem, tridiagonal::Algorithm algorithm);

}  // namespace trifold::cli
