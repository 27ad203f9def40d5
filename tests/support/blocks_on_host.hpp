// SPDX-License-Identifier: BSD-3-Clause
// Runs the threads of a cluster of blocks on the host, one after the other between barriers, for kernels whose threads meet nowhere
// else: their logic is tested where there is no GPU. To be included before the kernels.
#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#define __device__
#define __host__
#define __forceinline__ inline

namespace trifold::tests {

class BlocksOnHost {
public:
    /// Shared memory starts as NaN: what is read before it is written shows.
    BlocksOnHost(int blocks, int threads, std::size_t shared_bytes, bool reversed)
        : threads_(threads), reversed_(reversed), shared_bytes_(shared_bytes), shared_(static_cast<std::size_t>(blocks) * shared_bytes, static_cast<unsigned char>(0xff)),
          fibers_(static_cast<std::size_t>(blocks * threads)), arrived_(static_cast<std::size_t>(blocks)), turn_(static_cast<std::size_t>(blocks)) {}

    void run(const std::function<void(unsigned char* shared)>& kernel) {
        BlocksOnHost* const before = running_;
        running_ = this;
        kernel_ = &kernel;
        for (Fiber& fiber : fibers_) {
            fiber.stack.reset(new unsigned char[stack_bytes]);
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.get(), fiber.context.uc_stack.ss_size = stack_bytes;
            fiber.context.uc_link = &scheduler_;
            makecontext(&fiber.context, &BlocksOnHost::enter, 0);
        }
        for (std::size_t left = fibers_.size(); left > 0;)
            for (std::size_t k = 0; k < fibers_.size(); ++k) {
                own_ = reversed_ ? fibers_.size() - 1 - k : k;
                if (fibers_[own_].done) continue;
                swapcontext(&scheduler_, &fibers_[own_].context);
                left -= fibers_[own_].done;
            }
        running_ = before;
    }

    static BlocksOnHost& current() { return *running_; }
    int thread() const { return static_cast<int>(own_) % threads_; }
    int block() const { return static_cast<int>(own_) / threads_; }
    unsigned char* shared(int block) { return shared_.data() + static_cast<std::size_t>(block) * shared_bytes_; }

    template <class T>
    T* there(const T* own, int rank) {
        return reinterpret_cast<T*>(shared(rank) + (reinterpret_cast<const unsigned char*>(own) - shared(block())));
    }

    void block_barrier() { wait(arrived_[static_cast<std::size_t>(block())], turn_[static_cast<std::size_t>(block())], threads_); }
    void cluster_arrive() {
        block_barrier();
        fibers_[own_].turn = all_turn_;
        if (++all_arrived_ == static_cast<int>(fibers_.size())) all_arrived_ = 0, ++all_turn_;
    }
    void let_others_run() {
        const std::size_t own = own_;
        swapcontext(&fibers_[own].context, &scheduler_);
    }
    void cluster_wait() { wait_for(all_turn_, fibers_[own_].turn); }

private:
    static constexpr std::size_t stack_bytes = 256 * 1024;

    struct Fiber {
        ucontext_t context{};
        std::unique_ptr<unsigned char[]> stack;
        bool done = false;
        int turn = 0;  // of the cluster, when it arrived
    };

    static void enter() {
        BlocksOnHost& all = *running_;
        (*all.kernel_)(all.shared(all.block()));
        all.fibers_[all.own_].done = true;
    }

    void wait(int& arrived, int& turn, int of) {
        const int mine = turn;
        if (++arrived == of) arrived = 0, ++turn;
        wait_for(turn, mine);
    }

    void wait_for(const int& turn, int mine) {
        const std::size_t own = own_;
        while (turn == mine) swapcontext(&fibers_[own].context, &scheduler_);
    }

    inline static BlocksOnHost* running_ = nullptr;
    int threads_;
    bool reversed_;
    std::size_t shared_bytes_;
    std::vector<unsigned char> shared_;
    std::vector<Fiber> fibers_;
    std::vector<int> arrived_, turn_;
    int all_arrived_ = 0, all_turn_ = 0;
    std::size_t own_ = 0;
    ucontext_t scheduler_{};
    const std::function<void(unsigned char*)>* kernel_ = nullptr;
};

}  // namespace trifold::tests

namespace trifold::cuda {

inline tests::BlocksOnHost& on_host() { return tests::BlocksOnHost::current(); }
inline int thread_number() { return on_host().thread(); }
inline int rank_in_cluster() { return on_host().block(); }
inline void block_barrier() { on_host().block_barrier(); }
inline void cluster_arrive() { on_host().cluster_arrive(); }
inline void cluster_wait() { on_host().cluster_wait(); }
inline void cluster_barrier() { cluster_arrive(), cluster_wait(); }
template <class T>
struct Elsewhere {
    T* at;
    Elsewhere(T* own, int rank) : at(on_host().there(own, rank)) {}
    T load(int i) const { return at[i]; }
    void store(int i, T value) const { at[i] = value; }
    inline void send(int i, T value, int box) const;
};

struct Letterbox {
    unsigned short round, expected;
    int bytes;
    void look() {
        if (expected && bytes == 0) ++round, expected = 0;
    }
};
inline void open_letterbox(void* box) { *static_cast<Letterbox*>(box) = {}; }
inline void expect_letters(void* box, int bytes) {
    auto& own = *static_cast<Letterbox*>(box);
    own.expected = 1, own.bytes += bytes, own.look();
}
inline void wait_for_letters(void* box, unsigned round) {
    while ((static_cast<const volatile Letterbox*>(box)->round & 1) == (round & 1)) on_host().let_others_run();
}
template <class T>
void Elsewhere<T>::send(int i, T value, int box) const {
    auto& there = *reinterpret_cast<Letterbox*>(at + box);
    at[i] = value, there.bytes -= static_cast<int>(sizeof(T)), there.look();
}
template <class T>
T multiply_add(T x, T y, T z) { return std::fma(x, y, z); }
template <class T>
T unforeseen(T value) { return value; }
template <class T>
void load_vector(const T* from, T* to) {
    for (std::size_t k = 0; k < 16 / sizeof(T); ++k) to[k] = from[k];
}

struct MeshState;
inline void give_up(MeshState* state, unsigned long long from);
inline bool gave_up(const MeshState* state, unsigned long long from);

}  // namespace trifold::cuda
