// SPDX-License-Identifier: BSD-3-Clause
#include "devices/errands.hpp"

#include <algorithm>
#include <utility>

namespace trifold::devices {

void Errands::start(const std::string& name, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    Errand& errand = all_[name];
    if (errand.thread.joinable()) {
        if (errand.runs) return;
        errand.thread.join();  // it has nothing left to do
    }
    errand.runs = true;
    try {
        errand.thread = std::thread([this, name, work = std::move(work)] {
            work();
            const std::lock_guard over(mutex_);
            all_[name].runs = false;
            over_.notify_all();
        });
    } catch (...) {
        all_.erase(name);
        throw;
    }
}

bool Errands::runs(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto at = all_.find(name);
    return at != all_.end() && at->second.runs;
}

bool Errands::any_runs() const {
    const std::lock_guard lock(mutex_);
    return std::any_of(all_.begin(), all_.end(), [](const auto& one) { return one.second.runs; });
}

bool Errands::wait_for(const std::string& name, std::chrono::duration<double> most) const {
    std::unique_lock lock(mutex_);
    return over_.wait_for(lock, most, [&] {
        const auto at = all_.find(name);
        return at == all_.end() || !at->second.runs;
    });
}

void Errands::wait() {
    for (;;) {
        std::thread next;
        {
            const std::lock_guard lock(mutex_);
            const auto at = std::find_if(all_.begin(), all_.end(), [](const auto& one) { return one.second.thread.joinable(); });
            if (at == all_.end()) return;
            next = std::move(at->second.thread);
        }
        next.join();
    }
}

}  // namespace trifold::devices
