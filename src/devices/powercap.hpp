// SPDX-License-Identifier: BSD-3-Clause
// Linux powercap zones of the host's processors ("RAPL": Intel's, and AMD's behind the same names): folders of small files.
#pragma once

#include <string>
#include <vector>

namespace trifold::devices {

struct PowercapZone {
    std::string name, folder;
};

/// $TRIFOLD_POWERCAP (a container may have it elsewhere), else /sys/class/powercap.
std::string powercap_root();

/// Packages ("package-0") and their memory ("dram"), in the order of their folders' names. Parts of packages and the whole platform are left out: they would count twice.
std::vector<PowercapZone> powercap_zones(const std::string& root);

/// A file's first line; empty where it cannot be read.
std::string powercap_text(const std::string& file);

/// The number that a file begins with; NaN where it cannot be read, or holds none.
double powercap_number(const std::string& file);

}  // namespace trifold::devices
