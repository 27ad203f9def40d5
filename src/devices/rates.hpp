// SPDX-License-Identifier: BSD-3-Clause
// What was seen of devices that solve together: numbers by name, learnt from every solve and kept between runs.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace trifold::devices {

/// A device's description without how much of the host's memory it shows, which PoCL makes another number from run to run.
std::string identity_of(std::string description);

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

    /// `device` is, on this machine, what `what` says: model and driver. Where it was another when things were learnt, all of them that name it are forgotten, and what it was is
    /// returned; else nothing.
    std::string identify(const std::string& device, const std::string& what);

    /// Some number is not what was loaded or saved.
    bool changed() const;

    /// Empty, and what is known stays, where there is no file, or it is read; else why it is not: corrupt, of another version of Trifold, or of another machine.
    std::string load(const std::string& file, const std::string& machine);

    /// Numbers that another process has saved since stay, where this one has not changed them.
    bool save(const std::string& file, const std::string& machine, std::string& why);

private:
    using Map = std::map<std::string, double, std::less<>>;
    using Names = std::map<std::string, std::string>;
    struct Kept {
        Map rates;
        Names devices;
    };
    static bool read(const std::string& file, const std::string& machine, Kept& kept, std::string& why);

    mutable std::mutex mutex_;
    std::mutex saving_;
    Map rates_, saved_;
    Names devices_;                 // what they were when it was learnt
    std::set<std::string> forgot_;  // devices of which what is in the file is not taken
    std::map<std::string, int> tallies_;
};

}  // namespace trifold::devices
