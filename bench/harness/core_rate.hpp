// SPDX-License-Identifier: BSD-3-Clause
// How much of a core a thread gets: what a guest of a shared machine sees of its neighbours.
#pragma once

namespace trifold::bench {

/// Cycles per addition of eight independent chains, in cycles of one dependent chain beside it; the most of `threads` threads. A quarter on cores that add four
/// numbers per cycle (Zen to Zen 4), and about twice as much while somebody else runs on the other thread of the core: the dependent chain is as fast as
/// before then, and so is what waits for memory, but not what fills the core's units. Some 30 µs.
double cycles_per_addition(int threads);

}  // namespace trifold::bench
