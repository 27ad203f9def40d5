// SPDX-License-Identifier: BSD-3-Clause
// The processor time that a container grants: Linux control groups, versions 1 and 2.
#pragma once

#include <string>

namespace trifold::devices {

/// Cores' worth of processor time per period, rounded up; 0 = unlimited or unknown. `self` is the text of
/// /proc/self/cgroup, `root` the mount point; every group from this process's own up to the root may limit it.
int cgroup_quota_cores(const std::string& self, const std::string& root);
int cgroup_quota_cores();

}  // namespace trifold::devices
