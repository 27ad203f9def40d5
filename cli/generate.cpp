// SPDX-License-Identifier: BSD-3-Clause
// trifold generate: a generator's arrays into an .npz, or the list of generators.
#include <cmath>
#include <memory>

#include "base/available_memory.hpp"
#include "base/number_text.hpp"
#include "common.hpp"
#include "interrupt.hpp"
#include "io/atomic_file.hpp"
#include "io/generators/generator.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report/format.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

struct Options : CommonOptions {
    std::string input, output;
    bool list = false;
};

std::string shown(double value) {
    return std::isnan(value) ? "drawn" : number_text(value);
}

void append(std::string& out, std::span<const io::Parameter> parameters) {
    for (const io::Parameter& p : parameters) {
        std::string name = "    " + std::string(p.name) + "=" + shown(p.value);
        name.resize(std::max<std::size_t>(name.size() + 1, 24), ' ');
        out += name + std::string(p.doc) + ", " + shown(p.least) + " to " + shown(p.most) + "\n";
    }
}

std::string catalogue() {
    std::string out = "gen:NAME?key=value&key=value, with these names, keys and defaults:\n";
    for (const io::GeneratorKind* kind : io::generator_kinds()) {
        out += "\n" + std::string(kind->name) + ": " + std::string(kind->doc) + "\n";
        append(out, kind->parameters);
    }
    out += "\nevery generator:\n";
    append(out, io::common_parameters());
    out += "    shape=                  extents of an n-d array, for example 512x512x512, instead of rows and systems\n"
           "    matrix=own              own: one matrix per system; shared: one for all; scalar: one number per "
           "diagonal\n";
    return out;
}

int run(const Options& o) {
    if (o.list) {
        print(catalogue());
        return good;
    }
    if (o.input.empty())
        throw Error(ErrorCode::usage, "generate", "no generator named", "see: trifold generate --list");
    if (!o.input.starts_with("gen:"))
        throw Error(ErrorCode::usage, "generate", "'" + o.input + "' is not a generator",
                    "write gen:NAME?key=value&..., see: trifold generate --list");
    if (o.output.empty()) throw Error(ErrorCode::usage, "generate", "no output named", "add -o problem.npz");
    if (o.output == "-" && terminal_on_stdout())
        throw Error(ErrorCode::usage, "-o -", "stdout is a terminal", "name a file or redirect stdout");
    if (o.output != "-" && !o.output.ends_with(".npz"))
        throw Error(ErrorCode::usage, "-o " + o.output, "is not an .npz file",
                    "a problem has four arrays: name it *.npz");
    const Context context(o.context());
    use_threads_of(context);
    Stopwatch watch;
    ProgressLine line(o.quiet);
    const io::TridiagonalData shape = io::load_tridiagonal(o.input, o.load(false));
    io::require_writable(o.output, shape.bytes() + 4096, watch_temporary);
    line.stage("generate " + o.input);
    const io::TridiagonalData data = io::load_tridiagonal(o.input, o.load(true, line.bar()));
    line.stage("write " + o.output);
    io::save_tridiagonal(o.output, data, line.bar(), watch_temporary);
    line.clear();
    if (!o.quiet)
        say((o.output == "-" ? "stdout" : o.output) + ": " + report::problem_text(data.rows(), data.systems()) + ", " + name_of(data.rhs.dtype()) +
            ", " + bytes_text(static_cast<double>(data.bytes())) + ", " + report::seconds_text(watch.total()));
    return good;
}

}  // namespace

Command generate_command(CLI::App& parent) {
    auto options = std::make_shared<Options>();
    CLI::App* app = parent.add_subcommand("generate", "write a generated problem, or list the generators");
    CLI::Option* const input = app->add_option("INPUT", options->input, "gen:NAME?key=value&...");
    CLI::Option* const output = app->add_option("-o,--output", options->output, "FILE.npz for the arrays lower, diag, upper, rhs; '-' = stdout")->check(not_empty);
    app->add_flag("--list", options->list, "every generator with its parameters, defaults and ranges")->excludes(input)->excludes(output);
    options->add_data(*app);
    app->add_flag("-q,--quiet", options->quiet, "no progress and no notes on stderr");
    options->add_threads(*app);
    set_examples(*app,
                 "  trifold generate --list\n"
                 "  trifold generate 'gen:diffusion?rows=100000&number=10&contrast=1e4&seed=1' -o problem.npz\n"
                 "  trifold generate gen:poisson -o - | trifold solve - -o x.npy\n"
                 "  trifold generate 'gen:dominant?shape=32x64x16&axis=0&ratio=2' --precision f32 -o batch.npz\n");
    return {app, [options] { return run(*options); }};
}

}  // namespace trifold::cli
