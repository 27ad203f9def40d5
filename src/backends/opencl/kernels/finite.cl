// SPDX-License-Identifier: BSD-3-Clause
// Looks at every value that a solve would read. One work item per system; what it finds is its first bad row.
#include "common.h"

__kernel void finite(SOLVER_ARGUMENTS) {
    UNPACK_ARGUMENTS
    for (word k = get_global_id(0); k < job.systems; k += get_global_size(0)) {
        word index[4];
        indices_of(&job, k, index);
        const Line a = line_of(&job.lower, lower, index), b = line_of(&job.diag, diag, index), c = line_of(&job.upper, upper, index),
                   f = line_of(&job.rhs, rhs, index);
        word bad = -1;
        for (word i = 0; i < job.rows && bad < 0; ++i) {
            REAL sum = get(&b, i) * (REAL)0 + get(&f, i) * (REAL)0;
            if (i > 0) sum += get(&a, i) * (REAL)0;
            if (i + 1 < job.rows) sum += get(&c, i) * (REAL)0;
            if (!(sum == (REAL)0)) bad = i;
        }
        marks[k] = bad < 0 ? SOLVED : FAILED;
        if (bad < 0) continue;
        verdicts[k] = bad * 8 - NOT_FINITE;
        report_failure(found, 0, number_at(&job, index), NOT_FINITE);
    }
}
