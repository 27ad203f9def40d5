// SPDX-License-Identifier: BSD-3-Clause
// The cpu's `reduce` of the tridiagonal contract.
#pragma once

#include "families/tridiagonal/ops.hpp"

namespace trifold::cpu {

/// As Ops::reduce, for one system of views with row_stride 1 and scalars. Scratch: two_pass_scratch().
void reduce(const tridiagonal::System& system, const tridiagonal::Partition& partition, const tridiagonal::Launch& launch,
            tridiagonal::InterfaceRow* rows, std::int64_t* zero_pivot);

/// nullptr, or why reduce and finish do not take this system, as Ops::refuses.
const char* two_pass_refuses(const tridiagonal::System& system);

/// Groups of chunks that go through the vector units together, of all but the last chunk, and bytes of the operands: by which threads share them (group_slices.hpp).
std::int64_t groups_of_chunks(const tridiagonal::Partition& partition, DType dtype);
std::size_t operand_bytes(const tridiagonal::System& system);

/// Scratch bytes of reduce and finish, as Ops::workspace.
std::size_t two_pass_scratch(const tridiagonal::System& system, std::int64_t chunk_rows, int threads);

}  // namespace trifold::cpu
