// SPDX-License-Identifier: BSD-3-Clause
// What was seen of devices that solve together: numbers by name, learnt from every solve and kept between runs.
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

    /// Rows per second: half of what was known and half of what was seen, as time.
    void saw(std::string_view key, double per_s);

    /// The number itself.
    void set(std::string_view key, double value);

    /// Counts of this process, which are not kept.
    int tally(const std::string& name) const;
    void set_tally(const std::string& name, int count);

    /// Some number is a tenth away from what was loaded or saved, or new.
    bool changed() const;

    /// Nothing where the file is not there, is none of these, or of another machine or version of Trifold.
    void load(const std::string& file, const std::string& machine);
    bool save(const std::string& file, const std::string& machine, std::string& why);

private:
    using Map = std::map<std::string, double, std::less<>>;
    mutable std::mutex mutex_;
    Map rates_, saved_;
    std::map<std::string, int> tallies_;
};

}  // namespace trifold::devices
