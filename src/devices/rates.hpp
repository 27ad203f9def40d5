// SPDX-License-Identifier: BSD-3-Clause
// Rows per second of devices that solved together, by what was running.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace trifold::devices {

class Rates {
public:
    /// 0 where nothing is known.
    double of(std::string_view key) const;

    /// Half of what was known and half of what was seen, as seconds per row.
    void saw(std::string_view key, double per_s);

private:
    mutable std::mutex mutex_;
    std::map<std::string, double, std::less<>> rates_;
};

}  // namespace trifold::devices
