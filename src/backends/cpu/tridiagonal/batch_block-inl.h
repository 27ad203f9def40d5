// SPDX-License-Identifier: BSD-3-Clause
// One block: up to a few cache lines of systems, all their rows, from operands to x.
//
// Forward through all rows in tiles, c' and d' kept in scratch (in the second-level cache for up to about 1000 rows); every
// test is known before the first store. Backward; systems so long that scratch holds only a segment of their rows have
// each segment eliminated again from the carry that was kept at its start (9 words per row instead of 5, no array of the system's length).
// Lanes that failed are eliminated once more with pivoting (one segment) or left to the caller (several): what elimination refuses
// is not stored, so that rhs stays in place. What overflows only as x is stored (batch.hpp).
//
// Blocks of one line of systems whose rows lie side by side: batch_columns-inl.h. Whole lines of systems side by side: batch_lines-inl.h. There, and in FP64
// here, a block is eliminated while the one before it is substituted. The others ask for memory one or two tiles ahead of use, and for the next block's first tiles all through the backward sweep.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/tridiagonal/batch_columns-inl.h"
#include "backends/cpu/tridiagonal/batch_job.hpp"
#include "backends/cpu/tridiagonal/batch_lines-inl.h"
#include "backends/cpu/tridiagonal/batch_masked-inl.h"
#include "backends/cpu/tridiagonal/batch_rows-inl.h"
#include "backends/cpu/tridiagonal/batch_tiles-inl.h"
#include "hwy/highway.h"

#if defined(TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_BLOCK_INL_H_
#undef TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_BLOCK_INL_H_
#else
#define TRIFOLD_BACKENDS_CPU_TRIDIAGONAL_BATCH_BLOCK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace trifold::cpu::HWY_NAMESPACE {

/// computes: else only what a block moves, for benchmarks.
template <class T, bool computes = true>
class Block {
public:
    using D = hn::ScalableTag<T>;
    static constexpr std::int64_t N = static_cast<std::int64_t>(lanes_of<D>);
    static constexpr std::int64_t tile_rows = Source<D>::tile_rows, line = Source<D>::line;
    using Columns = ColumnLines<D, computes>;

    Block(const BatchJob<T>& job, T* scratch, T* buffers, void* sink)
        : job_(job),
          n_(job.rows),
          width_(job.block_lines * BatchJob<T>::line),
          sink_(sink),
          lower_(job.lower, n_, 1, n_, buffers, width_),
          diag_(job.diag, n_, 0, n_, buffers + Source<D>::buffer_elements(width_), width_),
          upper_(job.upper, n_, 0, n_ - 1, buffers + 2 * Source<D>::buffer_elements(width_), width_),
          rhs_(job.rhs, n_, 0, n_, buffers + 3 * Source<D>::buffer_elements(width_), width_),
          buffers_(buffers) {
        const std::int64_t kept = std::min(job.segment_rows, n_);
        reduced_ = {scratch, scratch + 2 * width_ * kept, width_};
        carries_ = scratch + 3 * width_ * kept;
        waiting_buffers_ = buffers + 4 * Source<D>::buffer_elements(width_);
    }

    static constexpr std::int64_t buffer_elements(std::int64_t width) { return 4 * Source<D>::buffer_elements(width) + 8 * width; }

    void solve(std::int64_t first_block, std::int64_t last_block) {
        if (first_block >= last_block) return;
        for (std::int64_t k = first_block; k < last_block;) {
            const std::int64_t end = end_of_block(k, last_block);
            const Place here = place_of(k, end);
            next_ = end < last_block ? place_of(end, end_of_block(end, last_block)) : Place{};
            enter(here);
            if (!overlapped_) {
                substitute_waiting();
                refused_ = solve(here);
                k = end;
            } else if (sweep_overlapped(here)) {
                k = end;
            } else {
                refused_ = true;  // and once more, with pivoting
            }
        }
        substitute_waiting();
    }

private:
    struct Place {
        T *lower = nullptr, *diag = nullptr, *upper = nullptr, *rhs = nullptr, *x = nullptr;
        std::int64_t outer = 0, lane = 0, count = 0, number = 0;
    };

    /// Where systems are refused, pivoting is likely to be needed further on, and that takes wide blocks: several narrow ones.
    std::int64_t end_of_block(std::int64_t k, std::int64_t last_block) const {
        if (!refused_ || !job_.narrow()) return k + 1;
        const std::int64_t run = job_.blocks_per_run(), low = job_.first_lane(k % run), most = std::min(k - k % run + run, last_block);
        std::int64_t end = k + 1;
        while (end < most && job_.first_lane(end % run + 1) - low <= width_) ++end;
        return end;
    }

    Place place_of(std::int64_t block, std::int64_t end) const {
        Place p;
        const std::int64_t run = job_.blocks_per_run(), k = block % run;
        p.outer = block / run;
        p.lane = job_.first_lane(k);
        p.count = job_.first_lane(k + end - block) - p.lane;
        const auto at = [&](const BatchOperand<T>& operand) {
            std::int64_t offset = p.lane * operand.lane_stride, rest = p.outer;
            for (int l = job_.outer_levels - 1; l >= 0; --l) {
                offset += rest % job_.outer_extent[l] * operand.outer_stride[l];
                rest /= job_.outer_extent[l];
            }
            return operand.data + offset;
        };
        p.lower = at(job_.lower), p.diag = at(job_.diag), p.upper = at(job_.upper), p.rhs = at(job_.rhs), p.x = at(job_.x);
        return p;
    }

    void enter(const Place& here) {
        span_.count = here.count;
        span_.vectors = static_cast<int>((here.count + N - 1) / N);
        span_.last = std::max<std::int64_t>(here.count - N, 0);
        for (Source<D>* source : {&lower_, &diag_, &upper_, &rhs_}) source->choose(span_);
        lower_.enter(here.lower, here.number, span_);
        diag_.enter(here.diag, here.number, span_);
        upper_.enter(here.upper, here.number, span_);
        rhs_.enter(here.rhs, here.number, span_);
        x_ = here.x;
        far_ = rhs_.transposed() ? 2 : 1;
        lead_ = rhs_.unaligned() || diag_.unaligned() ? N - 1 : 0;
        const bool whole = here.count >= N;
        x_direct_ = whole && job_.x.lane_stride == 1;
        x_transposed_ = whole && !x_direct_ && job_.x.row_stride == 1 && n_ >= line;
        in_columns_ = x_transposed_ && rhs_.transposed() && here.count == Columns::lanes && width_ == Columns::lanes && job_.segments() == 1 && n_ > line;
        for (const auto* operand : {&job_.lower, &job_.diag, &job_.upper})
            in_columns_ = in_columns_ && operand->kind == job_.rhs.kind && operand->row_stride == 1 && operand->lane_stride == job_.rhs.lane_stride;
        overlapped_ = !refused_ && job_.overlapped_lines > 0 && here.count == job_.overlapped_lines * line && here.count <= 4 * N && x_direct_ &&
                      rhs_.access() == Access::direct;
        for (const Source<D>* source : {&lower_, &diag_, &upper_})
            overlapped_ = overlapped_ && (source->access() == Access::direct || source->access() == Access::constant);
        for (const auto* operand : {&job_.lower, &job_.diag, &job_.upper})
            overlapped_ = overlapped_ && (operand->kind == tridiagonal::Operand::Kind::scalar || operand->row_stride == job_.rhs.row_stride);
        // FP64 and whole lines of rows only; FP32, whose tiles of 16 × 16 need all registers, was slower that way.
        if (in_columns_) overlapped_ = sizeof(T) == 8 && !refused_ && n_ % line == 0, ask_columns(here);
        columns_ = {{here.lower, here.diag, here.upper, here.rhs}, job_.rhs.lane_stride};
        const auto lines = [](const T* p, std::int64_t stride) { return (reinterpret_cast<std::uintptr_t>(p) | stride * sizeof(T)) % 64 == 0; };
        stream_ = !job_.in_place && span_.last == (span_.vectors - 1) * N &&
                  ((x_direct_ && here.count % line == 0 && lines(x_, job_.x.row_stride)) ||
                   (x_transposed_ && N == line && lines(x_, job_.x.lane_stride)));
    }

    /// True where systems were refused.
    bool solve(const Place& here) {
        const std::int64_t segments = job_.segments();
        Carry<T> first = carry(0);
        std::fill_n(first.c, 3 * width_, T(0));
        // Every lane will be pivoted from its rows: nothing of an elimination without pivots would be read.
        const bool pivots_alone = job_.method == BatchMethod::pivoted && segments == 1;
        if (pivots_alone) std::fill_n(carry(1).c, 3 * width_, T(0));
        for (std::int64_t s = 0; s < segments && !pivots_alone; ++s) {
            Carry<T> now = carry(s + 1);
            std::copy_n(carry(s).c, 3 * width_, now.c);
            forward(s * job_.segment_rows, end_of(s), now, here, true);
        }
        const Carry<T> end = carry(segments);
        const bool refused = masked().judge(end);
        bool slow = false, second = false;
        if (refused) {
            slow = true;
            if (job_.method != BatchMethod::unpivoted && segments == 1) second = true, masked().pivoted(end, [&](std::int64_t i) HWY_ATTR { return pivots_alone ? soon(here, i) : Soon<T>(); });
        }
        T* x1 = x_carry(0);
        std::fill_n(x1, 2 * width_, T(0));
        for (std::int64_t s = segments - 1; s >= 0; --s) {
            if (s + 1 < segments) {
                Carry<T> again = carry(segments);
                std::copy_n(carry(s).c, 3 * width_, again.c);
                forward(s * job_.segment_rows, end_of(s), again, here, false);
            }
            if (slow) masked().freeze(reduced_, s * job_.segment_rows, end_of(s));
            backward(s * job_.segment_rows, end_of(s), slow, second);
        }
        report(here, slow);
        return refused;
    }

    /// Eliminates this block and substitutes the one that waits. Then this one waits, unless systems are refused: false, nothing waits.
    bool sweep_overlapped(const Place& here) {
        const Carry<T> end = carry(1);
        if (in_columns_) sweep_columns(end);
        else if (waiting_.count > 0) sweep<LineWork::both>(here, end);
        else sweep<LineWork::eliminate>(here, end);
        if (masked().judge(end)) return false;
        waiting_ = here, stream_waiting_ = stream_;
        return true;
    }

    void substitute_waiting() {
        if (waiting_.count == 0) return;
        if (!columns_wait_) return sweep<LineWork::substitute>(waiting_, carry(1));
        asked_ = {};
        std::fill_n(x_carry(0), width_, T(0));
        const auto substitute = [&](auto sign) {
            constexpr int turn = sign * 2 * Columns::lanes;
            const T* const first = turn > 0 ? reduced_.s : reduced_.s + (n_ - 1) * 2 * width_;
            if (stream_waiting_) column_sweeps().template backward<Store::stream, turn>(first, x_carry(0), waiting_.x, job_.x.lane_stride);
            else column_sweeps().template backward<Store::regular, turn>(first, x_carry(0), waiting_.x, job_.x.lane_stride);
        };
        if (upwards_) substitute(std::integral_constant<int, 1>());
        else substitute(std::integral_constant<int, -1>());
        report_waiting();
    }

    /// Rows side by side: eliminates this block and substitutes the one that waits, if any.
    void sweep_columns(const Carry<T>& end) {
        std::fill_n(end.c, 3 * width_, T(0));
        if (waiting_.count == 0) {
            upwards_ = true;
            column_sweeps().forward(end);
        } else {
            upwards_ = !upwards_;
            T* const s = upwards_ ? reduced_.s : reduced_.s + (n_ - 1) * 2 * width_;
            const std::int64_t turn = upwards_ ? 2 * width_ : -2 * width_, stride = job_.x.lane_stride;
            if (stream_waiting_) column_sweeps().template both<Store::stream>(s, turn, reduced_.u, end, x_carry(0), waiting_.x, stride);
            else column_sweeps().template both<Store::regular>(s, turn, reduced_.u, end, x_carry(0), waiting_.x, stride);
            report_waiting();
        }
        columns_wait_ = true;
    }

    void report_waiting() {
        for (std::int64_t j = 0; j < waiting_.count; ++j)
            if (!std::isfinite(x_carry(0)[j])) job_.event(sink_, waiting_.outer, waiting_.lane + j, BatchEvent::overflow);
        waiting_ = {};
    }

    template <LineWork work>
    void sweep(const Place& here, const Carry<T>& carry) {
        if (work != LineWork::eliminate && stream_waiting_) sweep<work, true>(here, carry);
        else sweep<work, false>(here, carry);
        if (work != LineWork::eliminate) report_waiting();
        columns_wait_ = false;
    }

    template <LineWork work, bool stream>
    void sweep(const Place& here, const Carry<T>& carry) {
        const LineOperands<T> from = operands_of(here), next = operands_of(next_.count > 0 ? next_ : here);
        const std::int64_t turn = 2 * here.count;
        upwards_ = !upwards_;
        T* const s = upwards_ ? reduced_.s : reduced_.s + (n_ - 1) * turn;
        const auto with = [&](auto G, auto masked) HWY_ATTR {
            sweep_lines<G, work, masked, stream, computes>(D(), n_, from, next, job_.ahead_rows, s, upwards_ ? turn : -turn, carry, job_.growth, zeros(),
                                                 waiting_.x, job_.x.row_stride, x_carry(0));
        };
        const auto vectors = [&](auto G) HWY_ATTR {
            if (work == LineWork::substitute || (from.mask[0] & from.mask[1] & from.mask[2]) != 0) with(G, std::false_type());
            else if constexpr (work != LineWork::substitute) with(G, std::true_type());
        };
        std::fill_n(zeros(), width_, T(0));
        // A block has 1, 2 or 4 lines, and 4 vectors at most.
        if constexpr (2 * N >= line) {
            if (here.count == 2 * N) vectors(std::integral_constant<int, 2>());
        }
        if constexpr (N == line) {
            if (here.count == N) vectors(std::integral_constant<int, 1>());
        }
        if (here.count == 4 * N) vectors(std::integral_constant<int, 4>());
        if (stream) hwy::FlushStream();
    }

    LineOperands<T> operands_of(const Place& place) const {
        LineOperands<T> to;
        to.step = job_.rhs.row_stride;
        const auto set = [&](int k, const Source<D>& source, const T* at) {
            const bool there = source.access() == Access::direct;
            to.p[k] = there ? at : source.constants(), to.mask[k] = there ? -1 : 0;
        };
        set(0, lower_, place.lower), set(1, diag_, place.diag), set(2, upper_, place.upper), set(3, rhs_, place.rhs);
        return to;
    }

    std::int64_t end_of(std::int64_t segment) const { return std::min((segment + 1) * job_.segment_rows, n_); }
    Carry<T> carry(std::int64_t k) const { T* p = carries_ + 3 * width_ * k; return {p, p + width_, p + 2 * width_}; }
    T* x_carry(int k) const { return waiting_buffers_ + k * width_; }        // x1, x2
    T* zeros() const { return waiting_buffers_ + 7 * width_; }
    MaskedRows<T> masked() { return {job_, span_, reduced_, lower_, diag_, upper_, rhs_, waiting_buffers_}; }

    // Whether this block was asked for while the one before was solved; the next one will be, if it goes the same way.
    void ask_columns(const Place& here) {
        constexpr std::int64_t most = 256 << 10;  // bytes of a block, of which the second level holds two beside c' and d'
        const std::int64_t bytes = n_ * static_cast<std::int64_t>(sizeof(T)), step = job_.rhs.lane_stride * static_cast<std::int64_t>(sizeof(T));
        const bool more = next_.count == Columns::lanes && 4 * Columns::lanes * bytes <= most;
        asked_there_ = asked_for_ == here.rhs;
        asked_for_ = more ? next_.rhs : nullptr;
        asked_ = {};
        if (!more) return;
        const T* const p[4] = {next_.lower, next_.diag, next_.upper, next_.rhs};
        for (int k = 0; k < 4; ++k) asked_.p[k] = reinterpret_cast<std::uintptr_t>(p[k]);
        const bool dense = step == bytes;
        asked_.run = dense ? Columns::lanes * bytes : bytes, asked_.from_run_to_run = step;
        asked_.left = (dense ? 1 : Columns::lanes) * ((asked_.run + 63) / 64);
    }

    // The same block through registers, see batch_columns-inl.h.
    ColumnSweeps<D, computes> column_sweeps() { return {columns_, n_, reduced_.s, buffers_, job_.growth, asked_, asked_there_}; }

    template <Store how>
    void backward_columns() {
        const std::int64_t whole = n_ / line * line;
        if (whole < n_) {
            substitute_rows<Into::scratch>(reduced_.skip(whole), n_ - whole, whole, Asks<T>());
            store_rows(reduced_.skip(whole), n_ - whole, whole);
        }
        column_sweeps().template backward<how, 2 * Columns::lanes>(reduced_.s, x_carry(0), x_, job_.x.lane_stride);
    }

    void forward(std::int64_t first, std::int64_t end, Carry<T> now, const Place& here, bool prefetching) {
        if (in_columns_) return column_sweeps().forward(now);
        const D d;
        for (std::int64_t i = first; i < end; i += tile_rows) {
            const std::int64_t count = std::min(tile_rows, end - i);
            const Soon<T> next = prefetching ? soon(here, i) : Soon<T>();
            const Rows<T> a = lower_.rows(d, i, count, next.p[0]), b = diag_.rows(d, i, count, next.p[1]);
            const Rows<T> c = upper_.rows(d, i, count, next.p[2]), f = rhs_.rows(d, i, count, next.p[3]);
            const Reduced<T> to = reduced_.skip(i - first);
            each_group(span_, [&](auto G, int k) HWY_ATTR {
                const auto part = [&](const Rows<T>& r) { return r.group(k, G, span_.vectors); };
                Asks<T> mine = next.asks.group(k);
                eliminate<G>(d, part(a), part(b), part(c), part(f), count, to.group(k * N), now.group(k * N), job_.growth,
                             [&]() HWY_ATTR { mine.template in_row<G>(); });
            });
        }
    }

    // While the tile from row i on is read.
    Soon<T> soon(const Place& here, std::int64_t i) const {
        Soon<T> then;
        if (i + far_ * tile_rows < n_) ask(then.asks, here, i + far_ * tile_rows);
        const bool ends = i + tile_rows >= n_;
        const Place& there = ends ? next_ : here;
        if (there.count == 0) return then;
        const std::int64_t row = ends ? 0 : i + tile_rows;
        const T* const from[4] = {there.lower, there.diag, there.upper, there.rhs};
        for (int k = 0; k < 4; ++k) then.p[k] = from[k] + row;
        return then;
    }

    // The next block's first rows, spread over the backward sweep: tile `done` of `tiles`.
    void ask_next(Asks<T>& asks, std::int64_t done, std::int64_t tiles) const {
        const std::int64_t far = std::min(far_, tiles), first = far * done * tile_rows / tiles, last = far * (done + 1) * tile_rows / tiles;
        if (first == last) return;
        ask(asks, next_, first);
        asks.every = static_cast<int>(tile_rows / (last - first));
    }

    void ask(Asks<T>& asks, const Place& place, std::int64_t row) const {
        asks = {{lower_.ahead(place.lower, row), diag_.ahead(place.diag, row), upper_.ahead(place.upper, row), rhs_.ahead(place.rhs, row)},
                true, lead_};
    }

    void backward(std::int64_t first, std::int64_t end, bool slow, bool second) {
        if (in_columns_ && !slow) return stream_ ? backward_columns<Store::stream>() : backward_columns<Store::regular>();
        const std::int64_t tiles = (end - first + tile_rows - 1) / tile_rows;
        bool tail = false;  // the last rows are less than a line and are not stored yet
        for (std::int64_t t = tiles - 1; t >= 0; --t) {
            const std::int64_t i = first + t * tile_rows, count = std::min(tile_rows, end - i);
            Asks<T> asks;
            if (next_.count > 0 && first == 0) ask_next(asks, tiles - 1 - t, tiles);
            const Reduced<T> from = reduced_.skip(i - first);
            if (slow) masked().substitute(from, count, x_carry(0), x_carry(1), second);
            else if (!x_direct_) substitute_rows<Into::scratch>(from, count, i, asks);
            else if (stream_) substitute_rows<Into::stream>(from, count, i, asks);
            else substitute_rows<Into::place>(from, count, i, asks);
            if (x_transposed_) {
                if (count < line && t > 0) {
                    tail = true;
                    continue;
                }
                if (tail) store_lines(reduced_.skip(end - line - first), 1, end - line, Store::regular), tail = false;
                if (count < line) store_rows(from, count, i);  // a segment shorter than a line
                else store_lines(from, count / line, i, stream_ ? Store::stream : Store::regular);
                if (count > line && count % line != 0) store_lines(from.skip(count - line), 1, i + count - line, Store::regular);
            } else if (slow || !x_direct_) {
                store_rows(from, count, i);
            }
        }
        if (stream_) hwy::FlushStream();
    }

    template <Into into>
    void substitute_rows(const Reduced<T>& from, std::int64_t count, std::int64_t i, const Asks<T>& asks) {
        const D d;
        const Rows<T> x = into == Into::scratch ? Rows<T>{from.s, 0, 0, 0} : Rows<T>{x_ + i * job_.x.row_stride, job_.x.row_stride, N, span_.last};
        each_group(span_, [&](auto G, int k) HWY_ATTR {
            Asks<T> mine = asks.group(k);
            substitute<G, into>(d, from.group(k * N), count, x.group(k, G, span_.vectors), x_carry(0) + k * N, [&]() HWY_ATTR { mine.template in_row<G>(); });
        });
    }

    void store_lines(const Reduced<T>& from, std::int64_t lines, std::int64_t i, Store how) {
        const T* const x = from.s + width_;
        const std::int64_t stride = job_.x.lane_stride;
        if (how == Store::stream) store_columns<Store::stream>(D(), x, 2 * width_, lines, span_.vectors, span_.last, x_ + i, stride);
        else store_columns<Store::regular>(D(), x, 2 * width_, lines, span_.vectors, span_.last, x_ + i, stride);
    }

    void store_rows(const Reduced<T>& from, std::int64_t count, std::int64_t i) {
        store_any(D(), from.s + width_, 2 * width_, count, span_, x_ + i * job_.x.row_stride, job_.x.row_stride, job_.x.lane_stride);
    }

    void report(const Place& here, bool slow) {
        const D d;
        const auto zero = hn::Zero(d);
        auto good = hn::Eq(zero, zero);
        for (int k = 0; k < span_.vectors; ++k) good = hn::And(good, hn::Eq(hn::Mul(hn::Load(d, x_carry(0) + k * N), zero), zero));
        if (!slow && hn::AllTrue(d, good)) return;
        for (std::int64_t lane = 0; lane < span_.count; ++lane) {
            const bool in_last = lane >= span_.last;
            const std::int64_t j = in_last ? (span_.vectors - 1) * N + lane - span_.last : lane;
            const T mark = slow ? masked().state()[j] : T(0);
            if (mark == 2) job_.event(sink_, here.outer, here.lane + lane, BatchEvent::refused);
            else if (!std::isfinite(x_carry(0)[j])) job_.event(sink_, here.outer, here.lane + lane, BatchEvent::overflow);
            else if (mark == 1) job_.event(sink_, here.outer, here.lane + lane, BatchEvent::pivoted);
        }
    }

    const BatchJob<T>& job_;
    std::int64_t n_, width_;
    void* sink_;
    Source<D> lower_, diag_, upper_, rhs_;
    T* buffers_;                 ///< of the sources; both halves of ColumnLines
    FourColumns<T> columns_{};
    bool in_columns_ = false;    ///< this block goes through ColumnSweeps
    NextColumns asked_;          ///< … and asks for the one after it,
    const T* asked_for_ = nullptr;  ///< whose rhs is there
    bool asked_there_ = false;   ///< the one before it asked for this one
    bool overlapped_ = false;    ///< this one is eliminated beside the substitution of the one that waits, if any
    bool columns_wait_ = false;  ///< and that one went through ColumnSweeps
    bool refused_ = false;       ///< systems of the block before were
    Place waiting_;              ///< eliminated, not substituted yet
    bool stream_waiting_ = false;
    bool upwards_ = false;       ///< how c', d' of the last block that was eliminated lie
    Reduced<T> reduced_{};
    T *carries_ = nullptr, *waiting_buffers_ = nullptr, *x_ = nullptr;
    Place next_;
    Span span_;
    std::int64_t far_ = 1, lead_ = 0;  ///< tiles between asking and use; see Asks
    bool x_direct_ = false, x_transposed_ = false, stream_ = false;
};

}  // namespace trifold::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
