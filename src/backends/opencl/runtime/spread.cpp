// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/runtime/spread.hpp"

#include <sched.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace trifold::opencl {
namespace {

/// The processors that the calling thread may run on.
class Processors {
public:
    Processors() {
        // The kernel may know of more than cpu_set_t holds.
        for (int bits = CPU_SETSIZE; bits <= CPU_SETSIZE * 64; bits *= 2) {
            set_.reset(CPU_ALLOC(bits)), bytes_ = CPU_ALLOC_SIZE(bits), bits_ = bits;
            if (set_ && sched_getaffinity(0, bytes_, set_.get()) == 0) return;
        }
        set_.reset();
    }

    int count() const { return set_ ? CPU_COUNT_S(bytes_, set_.get()) : 0; }

    /// Leaves one of them to the calling thread.
    void keep(int which) {
        for (int p = 0; p < bits_; ++p)
            if (CPU_ISSET_S(p, bytes_, set_.get()) && which-- != 0) CPU_CLR_S(p, bytes_, set_.get());
        sched_setaffinity(0, bytes_, set_.get());
    }

private:
    struct Free {
        void operator()(cpu_set_t* set) const { CPU_FREE(set); }
    };
    std::unique_ptr<cpu_set_t, Free> set_;
    std::size_t bytes_ = 0;
    int bits_ = 0;
};

/// Where a driver's threads meet: who comes stays until all are there, so no thread comes twice.
class Meeting {
public:
    explicit Meeting(int threads) : threads_(threads) {}

    void come() {
        constexpr auto patience = std::chrono::milliseconds(50);
        Processors mine;
        std::unique_lock lock(mutex_);
        const int me = there_++;
        alike_ = alike_ && mine.count() == threads_;
        if (there_ == threads_) changed_.notify_all();
        if (!changed_.wait_for(lock, patience, [&] { return there_ == threads_; })) alike_ = false;
        if (alike_) mine.keep(me);
    }

private:
    const int threads_;
    int there_ = 0;
    bool alike_ = true;  ///< every one may run on as many processors as there are threads, and has come in time
    std::mutex mutex_;
    std::condition_variable changed_;
};

bool wanted(const FoundDevice& device) {
    const char* const own = std::getenv("TRIFOLD_OPENCL_AFFINITY");
    return device.units > 1 && device.is_pocl() && !std::getenv("POCL_AFFINITY") && !(own && std::string_view(own) == "0") &&
           (device.device.getInfo<CL_DEVICE_EXECUTION_CAPABILITIES>() & CL_EXEC_NATIVE_KERNEL);
}

}  // namespace

void spread_threads(const FoundDevice& device, const cl::Context& context) noexcept {
    using Place = std::shared_ptr<Meeting>;
    try {
        if (!wanted(device)) return;
        const auto meeting = std::make_shared<Meeting>(device.units);
        cl::CommandQueue queue(context, device.device, cl::QueueProperties::OutOfOrder);
        for (int k = 0; k < device.units; ++k) {
            // The driver copies the address; each call gives back its own place.
            auto place = std::make_unique<Place>(meeting);
            Place* address = place.get();
            queue.enqueueNativeKernel([](void* argument) { (*std::unique_ptr<Place>(*static_cast<Place**>(argument)))->come(); }, std::pair<void*, cl::size_type>(&address, sizeof address));
            place.release();
        }
        queue.finish();
    } catch (const std::exception&) {
    }
}

}  // namespace trifold::opencl
