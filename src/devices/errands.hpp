// SPDX-License-Identifier: BSD-3-Clause
// Work on threads of its own that no solve waits for to the end: the Context does, before it ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace trifold::devices {

class Errands {
public:
    Errands() = default;
    ~Errands() { wait(); }
    Errands(const Errands&) = delete;
    Errands& operator=(const Errands&) = delete;

    /// work(), which does not throw, unless one of this name runs. Throws std::system_error where there is no thread to be had.
    void start(const std::string& name, std::function<void()> work);

    bool runs(const std::string& name) const;
    bool any_runs() const;

    /// False: it still runs.
    bool wait_for(const std::string& name, std::chrono::duration<double> most) const;

    /// For all of them.
    void wait();

private:
    struct Errand {
        std::thread thread;
        bool runs = true;
    };
    mutable std::mutex mutex_;
    mutable std::condition_variable over_;
    std::map<std::string, Errand> all_;
};

}  // namespace trifold::devices
