// SPDX-License-Identifier: BSD-3-Clause
// oclspkt's mappings on the OpenCL devices here, data where they compute: on as many of its 256 million rows as there is memory and time for.
#include <algorithm>

#include "bench/suites/hetero_resident.hpp"
#include "bench/suites/suites.hpp"

namespace trifold::bench {

void run_mappings(const Settings& settings, Record& record) {
    Context context(options_with(settings.threads));
    // The arrays, and what is marshalled.
    const std::int64_t rows = rows_that_fit(settings.rows > 0 ? settings.rows : settings.quick ? 16e6 : 256e6, DType::f32, 10);
    Arrays arrays(static_cast<std::size_t>(rows) * sizeof(float));
    arrays.fill<float>(Matrix::dominant, rows);
    Resident(context, arrays, settings.budget_scale, record).run<float>({}, rows);
    if (record.rows.empty() && record.notes.empty()) record.note("no OpenCL device");
}

}  // namespace trifold::bench
