// SPDX-License-Identifier: BSD-3-Clause
// cuSPARSE as it is installed on the machine, loaded at run time; where it is not, there is no peer.
#pragma once

#include <cusparse.h>
#include <dlfcn.h>

namespace trifold::bench {

struct Sparse {
    void* library = dlopen("libcusparse.so.12", RTLD_NOW);
    cusparseHandle_t handle = nullptr;

    template <class F>
    F* find(const char* name) const { return reinterpret_cast<F*>(dlsym(library, name)); }

    Sparse() {
        if (library && find<decltype(cusparseCreate)>("cusparseCreate")(&handle) != CUSPARSE_STATUS_SUCCESS) handle = nullptr;
    }

    void use(cudaStream_t stream) const {
        if (handle) find<decltype(cusparseSetStream)>("cusparseSetStream")(handle, stream);
    }
};

/// The function for T = double (type D, name d) or float (type S, name s).
template <class T, class D, class S>
auto choose(const Sparse& sparse, const char* d, const char* s) {
    if constexpr (sizeof(T) == 8) return sparse.find<D>(d);
    else return sparse.find<S>(s);
}

}  // namespace trifold::bench

/// choose<T>(…) for cusparseD<name> and cusparseS<name>.
#define TRIFOLD_CUSPARSE(T, sparse, name) \
    (::trifold::bench::choose<T, decltype(cusparseD##name), decltype(cusparseS##name)>(sparse, "cusparseD" #name, "cusparseS" #name))
