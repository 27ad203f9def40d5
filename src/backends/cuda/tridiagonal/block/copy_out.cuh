// SPDX-License-Identifier: BSD-3-Clause
// Copies out of shared memory that nobody waits for at once. copy_engine.cuh has those into it.
#pragma once

namespace trifold::cuda {

/// From shared memory, a multiple of 16 bytes; what is written elsewhere. One thread sends and waits.
__device__ __forceinline__ void send_bulk(void* to, unsigned from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// All that was sent has been read.
__device__ __forceinline__ void await_sent_reads() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
/// All that was sent is there.
__device__ __forceinline__ void await_sent() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

/// What was read or written here the copy engine reads or writes next.
__device__ __forceinline__ void leave_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace trifold::cuda
