// SPDX-License-Identifier: BSD-3-Clause
// A libcuda.so.1 of few functions, whose arguments take all registers and the stack.
#include <cstdarg>
#include <cstring>
#include <string_view>

extern "C" {

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long flags, int* found);
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) { return cuGetProcAddress_v2(name, function, version, flags, nullptr); }

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetExportTable(const void** table, const void* id) { return *table = id, 0; }

/// Every argument has a weight of its own.
int cuTenIntegers(long a, long b, long c, long d, long e, long f, long g, long h, long i, long* sum) { return *sum = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i, 0; }

int cuMixed(float a, int b, double c, long d, double e, double f, float g, double h, double i, double j, double k, char l, short m, unsigned n, long o, long p, double* sum) {
    *sum = a + 2.0 * b + 3 * c + 4.0 * static_cast<double>(d) + 5 * e + 6 * f + 7.0 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12.0 * l + 13.0 * m + 14.0 * n + 15.0 * static_cast<double>(o) + 16.0 * static_cast<double>(p);
    return 0;
}

int cuVarying(double* sum, int count, ...) {
    va_list rest;
    va_start(rest, count);
    for (*sum = 0; count > 0; --count) *sum = 10 * *sum + va_arg(rest, double);
    va_end(rest);
    return 0;
}

struct Large {
    long values[5];
};
int cuByValue(Large large, long* sum) {
    *sum = 0;
    for (const long value : large.values) *sum = 10 * *sum + value;
    return 0;
}

int cuRefuses() { return 201; }
int cuMemFree_v2(long* freed) { return ++*freed, 0; }

/// Of two versions, by the one that is asked for.
int cuNewer(long* which) { return *which = 2, 0; }
int cuOlder(long* which) { return *which = 1, 0; }

int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long long, int* found) {
    const std::string_view wanted = name ? name : "";
    *function = nullptr;
#define TRIFOLD_PLAYED(one) \
    if (wanted == #one) *function = reinterpret_cast<void*>(one);
    TRIFOLD_PLAYED(cuInit) TRIFOLD_PLAYED(cuDriverGetVersion) TRIFOLD_PLAYED(cuGetExportTable) TRIFOLD_PLAYED(cuTenIntegers) TRIFOLD_PLAYED(cuMixed) TRIFOLD_PLAYED(cuVarying)
    TRIFOLD_PLAYED(cuByValue) TRIFOLD_PLAYED(cuRefuses)
    if (wanted == "cuMemFree") *function = reinterpret_cast<void*>(cuMemFree_v2);
    if (wanted == "cuVersions") *function = version < 12000 ? reinterpret_cast<void*>(cuOlder) : reinterpret_cast<void*>(cuNewer);
    if (wanted == "cuGetProcAddress") *function = version < 12000 ? reinterpret_cast<void*>(cuGetProcAddress) : reinterpret_cast<void*>(cuGetProcAddress_v2);
    if (found) *found = *function ? 0 : 1;
    return *function ? 0 : 500;
}

}  // extern "C"
