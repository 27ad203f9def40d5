// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/coupled.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include "base/keep_for_good.hpp"
#include "families/tridiagonal/coupling.hpp"
#include "families/tridiagonal/split/attempt.hpp"
#include "families/tridiagonal/split/finishing.hpp"
#include "families/tridiagonal/split/seam.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::tridiagonal::split {
namespace {

// Rows beside a boundary over which its two equations are judged: as many as are finished together elsewhere.
constexpr std::int64_t beside = 512;

// A part of a chunk that is reduced by its spikes. Near a zero of x, where neither y nor what is added to it is small, a row's residual is that of the part's largest x, and what nothing forgets grows with its rows: in parts
// that are not much longer than the windows by which boundaries are judged it is what is accepted there. Of parts of 2^20 rows in FP32 and Poisson's equation, sums were up to six times as large as x and more, and every
// other solve was refused for one that was eight times as large.
constexpr std::int64_t longest_spike = std::int64_t{1} << 14;

// Of chunks that go to such a device: the last ones decide how long one waits for another.
constexpr std::int64_t longest_chunk = std::int64_t{1} << 21;

class Coupled : Attempt {
public:
    Coupled(const System& system, const Setting& setting, Clock::time_point start)
        : Attempt(system, setting, start), piece_(two_pass_chunk_rows(system.rows, system.dtype)), scratch_(setting.parts.size()) {}

    ~Coupled() {
        const bool behind = std::any_of(left_.begin(), left_.end(), [](char left) { return left; });
        leave_reducers();
        if (behind) keep_for_good(std::move(finishing_));
        reducers_.clear();
        for (auto& scratch : scratch_)
            if (scratch) setting_.kits->give_back(std::move(scratch));
    }

    Result run() {
        const double begin = since();
        reducers_.resize(setting_.parts.size() + 1);
        const std::vector<Pace> paces = lanes();
        Board board(system_.rows, least_chunk(), piece_, paces, [this](std::int64_t b) { keep_rhs(b); });
        Shared shared{system_, board, setting_.tolerance, start_};
        first_pass(shared, paces);
        result_.phases.emplace_back("reduce", since() - begin);
        if (board.stopped() || !board.complete()) return close_reducers(), report(), result_.outcome = board.why(), give_up("a chunk could not be reduced");

        const double coupling = since();
        const bool coupled = couple_all();
        result_.phases.emplace_back("couple", since() - coupling);
        if (!coupled) return close_reducers(), report(), give_up("the coupled rows have no pivot");

        const double finishing = since();
        const bool finished = second_pass(shared) && seams_hold();
        if (!finished && !refused_[0]) refused_ = "equations where chunks meet do not hold";
        result_.phases.emplace_back("finish", since() - finishing);
        report();
        if (!finished) return restore(), give_up(refused_);
        result_.solved = result_.coupled = true;
        result_.outcome.reason = Reason::exact;
        result_.outcome.branch = name_of(Algorithm::two_pass);
        result_.outcome.device = setting_.parts[0].ops->device;
        return std::move(result_);
    }

private:
    // Two pieces at least, so that a device's verbs have something to cut.
    std::int64_t least_chunk() const { return std::max<std::int64_t>({4 * piece_, 2048 / piece_ * piece_, setting_.least_rows / piece_ * piece_}); }

    std::vector<Pace> lanes() {
        std::vector<Pace> paces;
        rows_.assign(setting_.parts.size(), {});
        for (std::size_t k = 0; k < setting_.parts.size(); ++k) {
            Pace pace = pace_of(k);
            if (!pace.takes_part) {
                paces.push_back(pace);
                continue;
            }
            const char* why = reducer_refuses(setting_.parts[k], system_);
            if (!why && !on_host(k)) {
                rows_[k] = reducer_rows(system_, setting_.parts[k], std::min(wanted_slot_rows(), longest_chunk), longest_spike, piece_);
                pace.most = rows_[k].chunk, pace.ahead = 2;
                pace.least = std::min(pace.least, pace.most);
                if (pace.most < 2 * least_chunk()) why = "its memory does not hold a chunk";
            }
            if (why) pace.takes_part = false, done_[k].share.state = std::string("left out: ") + why;
            paces.push_back(pace);
        }
        paces.push_back({.takes_part = false});  // the rescuer
        return paces;
    }

    std::unique_ptr<Reducer> reducer(Shared& shared, std::size_t k) {
        const int lane = static_cast<int>(k);
        if (k == rescuer()) return reducer_on_host(shared, lane, host_part(), host_threads(), true, piece_, *setting_.scratch, Calls({}, nullptr), done_[k]);
        const Part& part = setting_.parts[k];
        if (part.runtime) return reducer_on_device(shared, lane, part, rows_[k], piece_, copiers(), *setting_.kits, calls_of(k), done_[k]);
        if (is_host(k)) return reducer_on_host(shared, lane, part, host_threads(), true, piece_, *setting_.scratch, calls_of(k), done_[k]);
        scratch_[k] = setting_.kits->take_scratch();
        return reducer_on_host(shared, lane, part, host_threads(), false, piece_, *scratch_[k], calls_of(k), done_[k]);
    }

    void first_pass(Shared& shared, const std::vector<Pace>& paces) {
        for (std::size_t k = 0; k < setting_.parts.size(); ++k)
            if (paces[k].takes_part) reducers_[k] = reducer(shared, k);
        on_lanes(
            [&](std::size_t k) { return reducers_[k] != nullptr; },
            [&](std::size_t k) {
                if (reducers_[k]->reduce()) return;
                // What it had reduced lies with it.
                for (const Reduced& one : reducers_[k]->reduced) shared.board.reopen(*one.chunk);
                reducers_[k]->reduced.clear();
                done_[k].retired = reducers_[k]->why;
                reducers_[k]->close();
            },
            [&](std::size_t k) { shared.board.leave_behind(static_cast<int>(k), true); });
        leave_reducers();
        if (shared.board.stopped() || shared.board.complete()) return;
        reducers_[rescuer()] = reducer(shared, rescuer());
        reducers_[rescuer()]->reduce();
    }

    // Where there is no second pass, at whose end they are.
    void close_reducers() {
        on_lanes([&](std::size_t k) { return reducers_[k] && !in_host_memory(k); }, [&](std::size_t k) { reducers_[k]->close(); }, [](std::size_t) {});
        leave_reducers();
    }

    // What a lane that was left behind still refers to is nobody's.
    void leave_reducers() {
        for (std::size_t k = 0; k < setting_.parts.size(); ++k)
            if (left_[k]) keep_for_good(std::move(reducers_[k])), keep_for_good(std::move(scratch_[k]));
    }

    // The rows of all pieces, in the order of the system, where they lie.
    bool couple_all() {
        std::map<std::int64_t, Reduced*> all;
        for (const auto& lane : reducers_)
            if (lane)
                for (Reduced& one : lane->reduced) all.emplace(one.chunk->first, &one);
        std::int64_t pieces = 0;
        for (const auto& [first, one] : all) pieces += one->count;
        // Kept memory: pages of fresh blocks would take as long as the coupling.
        boundary_block_ = setting_.scratch->take(static_cast<std::size_t>(2 * pieces + 2) * sizeof(double));
        double* boundary = static_cast<double*>(boundary_block_.data());
        boundary[0] = boundary[2 * pieces + 1] = 0;
        std::vector<ChunkRows> rows;
        ++boundary;
        for (const auto& [first, one] : all) rows.push_back({one->rows, one->count}), one->ends = boundary, boundary += 2 * one->count;
        return couple_rows(rows, static_cast<double*>(boundary_block_.data()) + 1);
    }

    bool couple_rows(std::span<const ChunkRows> rows, double* boundary) {
        std::int64_t pieces = 0;
        for (const ChunkRows& one : rows) pieces += one.chunks;
        const devices::Scratch scratch = setting_.scratch->take(coupling_scratch(pieces, static_cast<std::int64_t>(rows.size())));
        std::vector<CouplingSpan> spans;
        const bool good = couple(rows, boundary, coupled_to(system_.dtype), host_threads(), scratch.data(), &spans) < 0;
        const auto at = [&](Clock::time_point when) { return std::chrono::duration<double>(when - start_).count(); };
        for (const CouplingSpan& span : spans) result_.trace.push_back({-1, span.thread, "join", 0, system_.rows, at(span.begin), at(span.end), 0});
        return good;
    }

    // Of the lane with this number: what it reduced lies in the host's memory, where any other may finish it.
    bool in_host_memory(std::size_t k) const { return k == rescuer() || on_host(k); }

    void open_finishing() {
        std::int64_t most = INT64_MAX;
        for (std::size_t k = 0; k < rows_.size(); ++k)
            if (reducers_[k] && !in_host_memory(k)) most = std::min(most, rows_[k].sent / piece_);
        finishing_ = std::make_unique<Finishing>(piece_, most);
        for (std::size_t k = 0; k < reducers_.size(); ++k)
            if (reducers_[k] && in_host_memory(k))
                for (const Reduced& one : reducers_[k]->reduced) finishing_->add(one);
        finishing_->open();
    }

    bool second_pass(Shared& shared) {
        open_finishing();
        std::vector<char> bad(reducers_.size(), 0);
        std::vector<std::vector<Reduced*>> left(reducers_.size());
        const auto lost = [&](std::size_t k) {
            if (in_host_memory(k)) return;
            for (Reduced& one : reducers_[k]->reduced)
                if (!one.finished()) left[k].push_back(&one);
        };
        const auto finish = [&](std::size_t k) {
            Reducer& lane = *reducers_[k];
            bool failed = false, refused = false;
            if (in_host_memory(k)) {
                // Other devices than the host's own finish into memory of the lane's.
                const bool many = k == rescuer() || is_host(k);
                for (Finishing::Task* task; !failed && !refused && (task = finishing_->front(many));) failed = !lane.finish(task->part, refused);
            } else {
                // One of its own comes back while one goes there, and is combined before its kernels wait for that: both ways are busy then, and what is left of its own has the way back alone.
                for (std::size_t own = 0; !failed;) {
                    if (own < lane.reduced.size()) failed = !lane.finish(lane.reduced[own++], refused);
                    Sent sent;
                    Finishing::Task* task = nullptr;
                    if (!failed && lane.takes_pieces()) {
                        failed = !lane.make_room(sent);
                        if (!failed && lane.takes_pieces()) task = finishing_->back(sent);
                    }
                    if (task) failed = !lane.finish_sent(task->part);
                    else if (own == lane.reduced.size()) break;
                }
            }
            if (!failed && !refused) failed = !lane.flush(refused);
            bad[k] = refused;
            if (failed) done_[k].retired = lane.why;
            lane.close();
            if (!refused) lost(k);
        };
        // Who has failed in the first pass has nothing here, and is not asked again.
        on_lanes([&](std::size_t k) { return reducers_[k] && k != rescuer() && done_[k].retired.empty(); }, finish, lost);
        const auto any_bad = [&] { return std::any_of(bad.begin(), bad.end(), [](char b) { return b; }); };
        constexpr const char* too_large = "a chunk's residual was too large";
        if (!any_bad() && reducers_[rescuer()]) finish(rescuer());
        if (any_bad() || !finish_what_was_sent(shared)) return refused_ = too_large, false;
        for (const auto& chunks : left)
            for (Reduced* one : chunks)
                if (!finish_again(shared, *one)) return refused_ = "a chunk that was lost could not be solved again", false;
        return true;
    }

    // Pieces that a device did not solve, or that no lane came to: by the host.
    bool finish_what_was_sent(Shared& shared) {
        std::unique_ptr<Reducer> host;
        for (Finishing::Task& task : finishing_->tasks()) {
            if (task.finished()) continue;
            if (!host) host = reducer_on_host(shared, static_cast<int>(rescuer()), host_part(), host_threads(), true, piece_, *setting_.scratch, Calls({}, nullptr), done_[rescuer()]);
            bool refused = false;
            // A lane of the host's has failed between two calls, and x of some pieces is where their right-hand side was.
            if (system_.in_place) put_back(task.part);
            if (!task.part.chunk) Finishing::unfold(task);
            // A lane that was left behind may still look at the task.
            Finishing::Task again = task;
            Finishing::unfold(again);
            if (!host->finish(again.part, refused) || refused) return false;
            task.part.stored = again.part.stored;
        }
        return true;
    }

    // A chunk that was lost with its device: reduced anew by the host's, coupled between what is known beside it.
    bool finish_again(Shared& shared, Reduced& lost) {
        const double before = lost.ends[-1], after = lost.ends[2 * lost.count];
        auto host = reducer_on_host(shared, static_cast<int>(rescuer()), host_part(), host_threads(), true, piece_, *setting_.scratch, Calls({}, nullptr), done_[rescuer()]);
        Reduced again;
        again.chunk = lost.chunk;
        if (!host->reduce_again(again)) return false;
        std::vector<double>& boundary = ends_again_.emplace_back(static_cast<std::size_t>(2 * again.count + 2), 0.0);
        boundary.front() = before, boundary.back() = after;
        for (int k = 0; k < 2; ++k) {
            InterfaceRow &first = again.rows[k], &last = again.rows[2 * again.count - 2 + k];
            first.rhs -= first.coefficient[0] * before, first.coefficient[0] = 0;
            last.rhs -= last.coefficient[3] * after, last.coefficient[3] = 0;
        }
        const ChunkRows rows{again.rows, again.count};
        if (!couple_rows({&rows, 1}, boundary.data() + 1)) return false;
        again.ends = boundary.data() + 1;
        bool bad = false;
        const bool good = host->finish(again, bad) && !bad;
        static_cast<Pieces&>(lost) = again;
        return good;
    }

    void keep_rhs(std::int64_t b) { seams_.emplace(b, Windows(system_, *setting_.host).open(b, beside)); }

    // The two equations at every boundary, which no one device has seen with the x that is there. Far apart in memory: one thread waits some ten microseconds for each.
    bool seams_hold() const {
        const Windows windows(system_, *setting_.host);
        std::vector<const Windows::Seam*> seams;
        for (const auto& [row, seam] : seams_) seams.push_back(&seam);
        const auto count = static_cast<std::int64_t>(seams.size());
        bool hold = true;
#pragma omp parallel for num_threads(host_threads()) schedule(static, 1) reduction(&& : hold)
        for (std::int64_t k = 0; k < count; ++k) hold = hold && windows.residual(*seams[static_cast<std::size_t>(k)], beside) <= widest * unit_roundoff(system_.dtype);
        return hold;
    }

    // In place: what was stored becomes the right-hand side again that it solves; around boundaries it was kept.
    void restore() {
        if (!system_.in_place) return;
        for (const auto& lane : reducers_)
            if (lane)
                for (const Reduced& one : lane->reduced) put_back(one);
        for (const Finishing::Task& task : finishing_->tasks()) put_back(task.part);
        for (const auto& [row, seam] : seams_) Windows::put_back(system_, seam, beside);
    }

    void put_back(const Pieces& one) const {
        for (std::size_t k = 0; k < one.stored.size(); ++k) {
            if (!one.stored[k]) continue;
            const Piece piece = one.piece(static_cast<std::int64_t>(k));
            multiply_in_place(slice(system_, piece.first, piece.rows), coupling(piece, true) * one.ends[2 * static_cast<std::ptrdiff_t>(k) - 1], coupling(piece, false) * one.ends[2 * k + 2]);
        }
    }

    double coupling(const Piece& piece, bool first) const {
        const std::int64_t row = first ? piece.first : piece.first + piece.rows - 1;
        return (first ? row == 0 : row + 1 == system_.rows) ? 0 : entry(first ? system_.lower : system_.upper, row, system_.dtype);
    }

    const std::int64_t piece_;
    const char* refused_ = "";
    std::vector<SpikeRows> rows_;  // by part
    std::unique_ptr<Finishing> finishing_;
    std::vector<std::unique_ptr<devices::ScratchArena>> scratch_;
    std::vector<std::unique_ptr<Reducer>> reducers_;
    devices::Scratch boundary_block_;                // x at the ends of all pieces, with a 0 at either end
    std::deque<std::vector<double>> ends_again_;     // of chunks that were lost
    std::map<std::int64_t, Windows::Seam> seams_;
};

}  // namespace

Result solve_coupled(const System& system, const Setting& setting, Clock::time_point start) { return Coupled(system, setting, start).run(); }

}  // namespace trifold::tridiagonal::split
