// SPDX-License-Identifier: BSD-3-Clause
// Stands before CUDA's own in the tests of the plans: these are built where there is no CUDA, and must not lean on it where there is.
#error "host code of CUDA's plans is tested where CUDA is not: forward-declare what its header has"
