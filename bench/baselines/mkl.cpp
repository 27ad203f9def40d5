// SPDX-License-Identifier: BSD-3-Clause
// Intel MKL's ?dtsvb (diagonally dominant, no pivoting, elimination from both ends), where scripts/bench-peers has put
// libmkl_rt, or TRIFOLD_MKL names it. Loaded at run time; own prototypes from Intel's documentation of the Fortran interface.
#include <dlfcn.h>

#include <cstdlib>

#include "bench/baselines/baseline.hpp"

namespace trifold::bench {
namespace {

struct Mkl {
    using Solve64 = void (*)(const int* n, const int* columns, double* lower, double* diag, double* upper, double* b, const int* ldb, int* info);
    using Solve32 = void (*)(const int* n, const int* columns, float* lower, float* diag, float* upper, float* b, const int* ldb, int* info);
    Solve64 ddtsvb = nullptr;
    Solve32 sdtsvb = nullptr;
    std::string absent;

    Mkl() {
        // One thread and 32-bit integers, said before the library looks.
        setenv("MKL_THREADING_LAYER", "SEQUENTIAL", 1);
        setenv("MKL_INTERFACE_LAYER", "LP64", 1);
        void* library = nullptr;
        for (const char* path : {static_cast<const char*>(std::getenv("TRIFOLD_MKL")), TRIFOLD_BENCH_PEERS "/lib/libmkl_rt.so.3",
                                 TRIFOLD_BENCH_PEERS "/lib/libmkl_rt.so.2"})
            if (path && !library) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            absent = "libmkl_rt is not here: scripts/bench-peers installs it, or TRIFOLD_MKL names it";
            return;
        }
        ddtsvb = reinterpret_cast<Solve64>(dlsym(library, "ddtsvb"));
        sdtsvb = reinterpret_cast<Solve32>(dlsym(library, "sdtsvb"));
        if (!ddtsvb || !sdtsvb) absent = "this libmkl_rt has no ?dtsvb";
    }
};

const Mkl& mkl() {
    static const Mkl library;
    return library;
}

class Dtsvb : public OverwritingBaseline {
public:
    std::string name() const override { return "MKL dtsvb"; }
    std::string absent() const override { return mkl().absent; }
    bool solve() override { return data_->rhs.dtype() == DType::f32 ? run<float>(mkl().sdtsvb) : run<double>(mkl().ddtsvb); }

private:
    template <class T, class Solve>
    bool run(Solve call) {
        const int n = static_cast<int>(layout_.rows), one = 1;
        bool good = true;
        for (std::int64_t s = 0; s < layout_.outer; ++s) {
            const std::int64_t at = s * layout_.rows;
            int info = 0;
            call(&n, &one, lower_.as<T>() + at + 1, diag_.as<T>() + at, upper_.as<T>() + at, rhs_.as<T>() + at, &n, &info);
            good = good && info == 0;
        }
        return good;
    }
};

}  // namespace

std::unique_ptr<Baseline> mkl_dtsvb() { return std::make_unique<Dtsvb>(); }

}  // namespace trifold::bench
