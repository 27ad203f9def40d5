// SPDX-License-Identifier: BSD-3-Clause
// trifold verify: does x solve the problem?
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/number_text.hpp"
#include "common.hpp"
#include "io/convert.hpp"
#include "io/npy.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report/render.hpp"
#include "residual.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

struct Options : CommonOptions {
    std::string input, solution;
    double tolerance = 0;
};

int run(const Options& o) {
    if (o.input == "-" && o.solution == "-") throw Error(ErrorCode::usage, "verify", "INPUT and SOLUTION are both stdin", "name a file for one of them");
    if (!(o.tolerance >= 0) || !std::isfinite(o.tolerance)) throw Error(ErrorCode::usage, "--tolerance", number_text(o.tolerance) + " is no backward error", "use 0 (1000 roundings of the type) or more");
    const Context context(o.context());
    use_threads_of(context);
    ProgressLine line(o.quiet);
    line.stage("read " + o.input);
    io::TridiagonalData data = io::load_tridiagonal(o.input, o.load(true, line.bar()));
    line.stage("read " + o.solution);
    io::Array x = io::load_npy(o.solution, true, line.bar());
    if (x.shape().extents != data.rhs.shape().extents)
        throw Error(ErrorCode::bad_input, o.solution,
                    "shape " + x.shape().text() + " where rhs has " + data.rhs.shape().text(),
                    "give the solution of this problem, shaped like rhs");
    // The narrower side is widened, which is exact; x is judged by its own precision.
    const DType own = x.dtype(), narrower = std::min(own, data.rhs.dtype());
    if (own != data.rhs.dtype()) {
        if (own == DType::f32)
            x = io::converted(x, DType::f64, true, o.solution);
        else
            for (io::Array* array : {&data.lower, &data.diag, &data.upper, &data.rhs})
                *array = io::converted(*array, DType::f64, true, o.input);
    }
    line.stage("check the residual");
    const BackwardError error = backward_error(data.problem(x), context.threads());
    line.clear();
    if (std::isnan(error.worst))  // is the problem to blame, or x?
        if (const std::string place = data.first_not_finite(); !place.empty()) throw Error(ErrorCode::bad_input, data.name, place, "mend the array and save it anew");
    report::Verification v{o.input,
                           o.solution,
                           data.rows(),
                           data.systems(),
                           own,
                           error.worst,
                           o.tolerance > 0 ? o.tolerance : backward_error_limit(narrower),
                           error.system,
                           error.row};
    print(o.json ? report::json(v) : report::text(v, colour_on_stdout()));
    return v.ok() ? good : not_verified;
}

}  // namespace

Command verify_command(CLI::App& parent) {
    auto options = std::make_shared<Options>();
    CLI::App* app =
        parent.add_subcommand("verify", "compute the backward error of a solution; exit code 6 where it is too large");
    options->add_input(*app, options->input);
    app->add_option("SOLUTION", options->solution, "X.npy, shaped like rhs; '-' = stdin")->required()->check(not_empty);
    app->add_option("--tolerance", options->tolerance,
                    "largest normwise backward error that passes; 0 = 1000 roundings of the type")
        ->capture_default_str();
    options->add_data(*app);
    options->add_periodic(*app);
    options->add_talk(*app);
    options->add_threads(*app);
    set_examples(*app, "  trifold verify problem.npz x.npy\n"
                       "  trifold verify problem.npz x.npy --tolerance 1e-12 --json\n");
    return {app, [options] { return run(*options); }};
}

}  // namespace trifold::cli
