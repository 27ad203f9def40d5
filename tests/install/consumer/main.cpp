// SPDX-License-Identifier: BSD-3-Clause
// A user of the installed package: solves one system in place and a batch into a separate array, looks at the residual,
// and catches an error thrown by the library.
#include <trifold/trifold.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace tri = trifold::tridiagonal;

// max |rhs - A x| for the matrix tridiag(lower, diag, upper) with constant entries.
static double residual(const double* x, const double* rhs, std::int64_t n, double lower, double diag, double upper) {
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double before = i > 0 ? lower * x[i - 1] : 0, after = i + 1 < n ? upper * x[i + 1] : 0;
        worst = std::fmax(worst, std::fabs(rhs[i] - before - diag * x[i] - after));
    }
    return worst;
}

static int fail(const char* what) {
    std::fprintf(stderr, "consumer: %s\n", what);
    return 1;
}

int main() {
    using trifold::View;
    trifold::Context context({.threads = 1, .profile_path = "none", .log = {}});

    const std::int64_t n = 1000;
    std::vector<double> lower(n, -1.0), diag(n, 2.5), upper(n, -1.25), rhs(n), x;
    for (std::int64_t i = 0; i < n; ++i) rhs[i] = std::sin(0.37 * double(i));
    x = rhs;
    tri::Problem single;
    single.matrix.lower = View<const double>::rows(lower);
    single.matrix.diag = View<const double>::rows(diag);
    single.matrix.upper = View<const double>::rows(upper);
    single.rhs = single.x = View<double>::rows(x);
    if (const auto outcome = tri::solve(context, single); !outcome.ok()) return fail(trifold::name_of(outcome.reason));
    if (!(residual(x.data(), rhs.data(), n, -1.0, 2.5, -1.25) < 1e-14)) return fail("wrong solution of a single system");

    const std::int64_t systems = 10, rows = n / systems;
    std::vector<double> y(n);
    tri::Problem batch;
    batch.matrix.lower = -1.0;
    batch.matrix.diag = 2.5;
    batch.matrix.upper = -1.25;
    batch.rhs = View<const double>::contiguous(rhs.data(), systems, rows);
    batch.x = View<double>::contiguous(y.data(), systems, rows);
    if (const auto outcome = tri::solve(context, batch); !outcome.ok()) return fail(trifold::name_of(outcome.reason));
    for (std::int64_t s = 0; s < systems; ++s)
        if (!(residual(&y[s * rows], &rhs[s * rows], rows, -1.0, 2.5, -1.25) < 1e-14)) return fail("wrong solution of a batch");

    try {
        trifold::Queue queue(context, "cpy");
        return fail("an unknown device was accepted");
    } catch (const trifold::Error& error) {
        if (!std::strstr(error.what(), "cpu")) return fail("the nearest device name is missing from the message");
    }
    std::puts(TRIFOLD_VERSION);
}
