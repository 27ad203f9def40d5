// SPDX-License-Identifier: BSD-3-Clause
// Every chunk is solved as a system of its own; where two meet they are joined by a window around it (seam.hpp). 5 words per row.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "families/tridiagonal/split/attempt.hpp"
#include "families/tridiagonal/split/seam.hpp"

namespace trifold::tridiagonal::split {
namespace {

constexpr int slots = 3;

// Chunks begin at multiples of so many rows: copies then begin with a line.
constexpr std::int64_t unit = 1024;

// A window of twice so many rows is solved in some ten microseconds. Where it takes more rows to forget, chunks are mostly solved in two passes, which lose
// where they are small.
constexpr std::int64_t widest_apart = 128;

class Joined : Attempt {
public:
    Joined(const System& system, const Setting& setting, std::int64_t width, double close, Clock::time_point start)
        : Attempt(system, setting, start), width_(width), close_(close) {}

    Result run() {
        const double begin = since();
        const std::vector<Pace> paces = lanes();
        Board board(system_.rows, least_chunk(), unit, paces, [this](std::int64_t b) { seams_.emplace(b, Windows(system_, *setting_.host).open(b, width_)); });
        Shared shared{system_, board, setting_.tolerance, start_};

        on_lanes([&](std::size_t k) { return paces[k].takes_part; }, [&](std::size_t k) { run_lane(shared, k); },
                 [&](std::size_t k) { board.leave_behind(static_cast<int>(k), false); });
        if (!board.stopped() && !board.complete())
            run_host_lane(shared, static_cast<int>(rescuer()), host_part(), host_threads(), true, *setting_.scratch, Calls({}, nullptr), 1, done_[rescuer()]);
        result_.phases.emplace_back("chunks", since() - begin);
        report();
        if (!board.complete()) {
            restore(board);
            result_.outcome = board.why();
            return give_up("a chunk cannot be solved as a system of its own");
        }
        const double before_join = since();
        const bool joined = join(shared);
        result_.phases.emplace_back("join", since() - before_join);
        if (!joined) return restore(board), give_up("chunks could not be joined");
        result_.solved = true;
        fill_outcome(board);
        return std::move(result_);
    }

private:
    std::int64_t least_chunk() const { return (std::max(4 * width_, setting_.least_rows) + unit - 1) / unit * unit; }

    // Fewer rows than this no thread solves in one pass by itself: as many lanes of a vector, each with eight halos.
    std::int64_t least_of_a_thread() const { return std::max<std::int64_t>(setting_.least_rows > 0 ? setting_.least_rows : 1 << 14, 8 * (64 / static_cast<std::int64_t>(size_of(system_.dtype))) * width_); }

    // The host's threads each by itself: where there are chunks for many rounds, and the windows between them cost nothing.
    bool apart() const { return width_ <= widest_apart && 16 * host_threads() * least_of_a_thread() <= system_.rows; }

    std::vector<Pace> lanes() {
        std::vector<Pace> paces;
        slot_rows_.assign(setting_.parts.size(), 0);
        for (std::size_t k = 0; k < setting_.parts.size(); ++k) {
            Pace pace = pace_of(k);
            if (is_host(k) && apart()) pace.side_by_side = host_threads(), pace.least = least_of_a_thread();
            if (pace.takes_part && !on_host(k)) {
                slot_rows_[k] = slot_rows(system_, setting_.parts[k], slots, wanted_slot_rows());
                pace.most = slot_rows_[k], pace.ahead = slots;
                pace.least = std::min(pace.least, pace.most);
                if (slot_rows_[k] < 2 * least_chunk()) pace.takes_part = false, done_[k].share.state = "left out: its memory does not hold a chunk";
            }
            paces.push_back(pace);
        }
        paces.push_back({.takes_part = false});  // the rescuer
        return paces;
    }

    void run_lane(Shared& shared, std::size_t k) {
        const Part& part = setting_.parts[k];
        const int lane = static_cast<int>(k);
        if (part.runtime) return run_stream_lane(shared, lane, part, slots, slot_rows_[k], copiers(), *setting_.kits, calls_of(k), trouble_of(k).slower, done_[k]);
        if (is_host(k) && apart()) return run_host_threads(shared, lane, part, host_threads(), *setting_.scratch, calls_of(k), trouble_of(k).slower, done_[k]);
        if (is_host(k)) return run_host_lane(shared, lane, part, host_threads(), true, *setting_.scratch, calls_of(k), trouble_of(k).slower, done_[k]);
        auto scratch = setting_.kits->take_scratch();
        run_host_lane(shared, lane, part, host_threads(), false, *scratch, calls_of(k), trouble_of(k).slower, done_[k]);
        setting_.kits->give_back(std::move(scratch));
    }

    bool join(const Shared& shared) {
        std::vector<const Windows::Seam*> seams;
        for (const auto& [row, seam] : seams_) seams.push_back(&seam);
        const auto count = static_cast<std::int64_t>(seams.size());
        std::vector<Windows::Joined> joined(seams.size());
        std::vector<double> begin(seams.size()), end(seams.size());
        const Windows windows(system_, *setting_.host);
#pragma omp parallel for num_threads(host_threads()) schedule(static, 1)
        for (std::int64_t k = 0; k < count; ++k) {
            const auto at = static_cast<std::size_t>(k);
            begin[at] = shared.seconds();
            joined[at] = windows.join(*seams[at], width_, close_);
            end[at] = shared.seconds();
        }
        bool good = true;
        for (std::size_t k = 0; k < seams.size(); ++k) {
            result_.trace.push_back({-1, 0, "join", seams[k]->at - width_, 2 * width_, begin[k], end[k], 5.0 * 2 * static_cast<double>(width_) * static_cast<double>(size_of(system_.dtype))});
            good = good && joined[k].good;
            amplified_ = std::max(amplified_, joined[k].amplified);
        }
        return good;
    }

    // The weakest word that is true for all chunks. A bound needs one from every chunk: the error of y beside a seam comes back in dx.
    void fill_outcome(const Board& board) {
        Outcome& all = result_.outcome;
        all.reason = Reason::certified;
        all.device = setting_.parts[0].ops->device;
        double certificate = 0;
        for (const Chunk& chunk : board.chunks()) {
            const Outcome& one = chunk.outcome;
            if (one.reason != Reason::certified) all.reason = all.reason == Reason::refined || one.reason == Reason::refined ? Reason::refined : Reason::exact;
            certificate = std::max(certificate, one.certificate);
            all.rescued += one.rescued;
            all.tried_other = all.tried_other || one.tried_other;
            if (one.residual > 0 && !(all.residual >= one.residual)) all.residual = one.residual;
            if (!all.branch[0] || one.reason != Reason::certified) all.branch = one.branch;
        }
        if (all.reason == Reason::certified) all.certificate = certificate * (1 + amplified_), all.certified_share = 1;
    }

    // In place, the chunks that are in x become the right-hand side again that they solve; what was kept around seams is put back as it was.
    void restore(const Board& board) {
        if (!system_.in_place) return;
        std::vector<Chunk> solved;
        for (const Chunk& chunk : board.chunks())
            if (chunk.done) solved.push_back(chunk);
        const auto count = static_cast<std::int64_t>(solved.size());
#pragma omp parallel for num_threads(host_threads()) schedule(static, 1)
        for (std::int64_t k = 0; k < count; ++k) {
            const Chunk& chunk = solved[static_cast<std::size_t>(k)];
            multiply_in_place(slice(system_, chunk.first, chunk.rows), 0, 0);
        }
        for (const auto& [row, seam] : seams_) Windows::put_back(system_, seam, width_);
    }

    const std::int64_t width_;
    const double close_;
    double amplified_ = 0;
    std::vector<std::int64_t> slot_rows_;
    std::map<std::int64_t, Windows::Seam> seams_;  // by row; written under the board's lock
};

}  // namespace

Result solve_joined(const System& system, const Setting& setting, std::int64_t width, double close, Clock::time_point start) {
    return Joined(system, setting, width, close, start).run();
}

}  // namespace trifold::tridiagonal::split
