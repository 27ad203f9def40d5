// SPDX-License-Identifier: BSD-3-Clause
#include "families/tridiagonal/split/executor.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <system_error>
#include <thread>

#include "families/tridiagonal/split/board.hpp"
#include "families/tridiagonal/split/lane.hpp"
#include "families/tridiagonal/split/seam.hpp"

namespace trifold::tridiagonal::split {
namespace {

// dx is cut off where it has fallen below so much of the tolerance: then what lies beyond may be 2^40 times smaller than what is beside the boundary.
// Where that takes too many rows, where it is as small as the tolerance; every equation near the boundary is looked at in any case.
constexpr double strict = 0x1p-42, weak = 0x1p-4;
constexpr std::int64_t longest_window = 16384;
constexpr int places = 12;

constexpr int slots = 3;

// A slot holds so many bytes of an array: some milliseconds of a link.
constexpr std::size_t slot_array_bytes = std::size_t{32} << 20;

double margin_of(const System& system, const Ops& host, double tolerance, std::int64_t& width) {
    const Windows windows(system, host);
    for (const double margin : {strict, weak}) {
        width = windows.width(margin * tolerance, std::min(longest_window, system.rows / 8), places);
        if (width > 0) return margin * tolerance;
    }
    return 0;
}

class Split {
public:
    Split(const System& system, const Setting& setting) : system_(system), setting_(setting) {}

    Result run() {
        const auto start = Clock::now();
        const auto since = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
        close_ = margin_of(system_, *setting_.host, setting_.tolerance, width_);
        result_.phases.emplace_back("look for decay", since());
        if (width_ == 0) return give_up("the matrix does not forget within a window");

        const std::size_t count = setting_.parts.size();
        done_.resize(count);
        std::vector<Pace> paces = lanes();
        paces.push_back({.takes_part = false});  // the one that takes what is left, if it comes to that
        Board board(system_.rows, std::max(4 * width_, setting_.least_rows), paces, [this](std::int64_t b) { seams_.emplace(b, Windows(system_, *setting_.host).open(b, width_)); });
        Shared shared{system_, board, setting_.tolerance, start};

        std::vector<std::thread> threads;
        int here = -1;  // on this thread: the first that works in the host's memory, whose threads are warm
        for (std::size_t k = 0; k < count; ++k) {
            if (!paces[k].takes_part) continue;
            if (here < 0 && !setting_.parts[k].runtime) here = static_cast<int>(k);
            else threads.emplace_back([this, &shared, k] { run_lane(shared, static_cast<int>(k)); });
        }
        if (here >= 0) run_lane(shared, here);
        for (std::thread& thread : threads) thread.join();
        result_.phases.emplace_back("chunks", since() - result_.phases[0].second);

        // What nobody could do, the host's own device does.
        if (!board.stopped() && !board.complete()) {
            rescuer_ = static_cast<int>(count);
            done_.emplace_back();
            run_host_lane(shared, rescuer_, Part{setting_.host->device, setting_.host, nullptr, 0}, setting_.threads, true, *setting_.scratch, {}, done_.back());
        }
        report(board);
        if (!board.complete()) return undo(board);
        const double before_join = since();
        const bool joined = join(shared);
        result_.phases.emplace_back("join", since() - before_join);
        collect_trace();
        if (!joined) return restore(board), give_up("chunks could not be joined");
        result_.solved = true;
        fill_outcome(board);
        return std::move(result_);
    }

private:
    Result give_up(const char* why) {
        result_.why = why;
        return std::move(result_);
    }

    std::vector<Pace> lanes() {
        std::vector<Pace> paces;
        slot_rows_.assign(setting_.parts.size(), 0);
        for (std::size_t k = 0; k < setting_.parts.size(); ++k) {
            const Part& part = setting_.parts[k];
            Pace pace;
            done_[k].share.name = part.name;
            if (k < setting_.rows_per_s.size()) pace.rows_per_s = setting_.rows_per_s[k];
            pace.least = setting_.least_rows > 0 ? setting_.least_rows : 1 << 14;
            if (part.runtime) {
                const std::int64_t wanted = setting_.slot_rows > 0 ? setting_.slot_rows : static_cast<std::int64_t>(slot_array_bytes / size_of(system_.dtype));
                slot_rows_[k] = slot_rows(system_, part, slots, std::min(wanted, system_.rows));
                pace.most = slot_rows_[k], pace.ahead = slots;
                pace.least = std::min(pace.least, pace.most);
                if (slot_rows_[k] < 8 * width_) pace.takes_part = false, done_[k].share.state = "left out: its memory does not hold a chunk";
            }
            paces.push_back(pace);
        }
        return paces;
    }

    void run_lane(Shared& shared, int lane) {
        const auto k = static_cast<std::size_t>(lane);
        const Part& part = setting_.parts[k];
        const Trouble trouble = k < setting_.trouble.size() ? setting_.trouble[k] : Trouble{};
        const int copiers = std::clamp(setting_.threads / 2, 1, 8);
        if (part.runtime) run_stream_lane(shared, lane, part, slots, slot_rows_[k], copiers, *setting_.kits, trouble, done_[k]);
        else run_host_lane(shared, lane, part, host_threads(), part.ops == setting_.host, *setting_.scratch, trouble, done_[k]);
    }

    // Who streams needs a core to wait and to copy with; of few cores none is given up for that.
    int host_threads() const {
        const auto streams = std::count_if(setting_.parts.begin(), setting_.parts.end(), [](const Part& part) { return part.runtime; });
        return setting_.threads >= 4 ? std::max(setting_.threads - static_cast<int>(streams), 1) : setting_.threads;
    }

    void report(const Board& board) {
        for (std::size_t k = 0; k < setting_.parts.size(); ++k) {
            Done& done = done_[k];
            if (!done.retired.empty()) done.share.state = "retired: " + done.retired;
            if (done.share.busy_s > 0) done.share.rows_per_s = static_cast<double>(done.share.rows) / done.share.busy_s;
            result_.rows_per_s.push_back(done.share.rows > 0 ? board.rate(static_cast<int>(k)) : 0);
            result_.devices.push_back(done.share);
        }
        if (rescuer_ < 0) return;
        Done& done = done_.back();
        done.share.name = setting_.host->device;
        done.share.state = "took what was left";
        result_.devices.push_back(done.share);
    }

    void collect_trace() {
        for (Done& done : done_) result_.trace.insert(result_.trace.end(), done.trace.begin(), done.trace.end());
        done_.clear();
    }

    bool join(const Shared& shared) {
        std::vector<const Windows::Seam*> seams;
        for (const auto& [row, seam] : seams_) seams.push_back(&seam);
        const auto count = static_cast<std::int64_t>(seams.size());
        std::vector<Windows::Joined> joined(seams.size());
        std::vector<double> begin(seams.size()), end(seams.size());
        const Windows windows(system_, *setting_.host);
#pragma omp parallel for num_threads(setting_.threads) schedule(dynamic, 1)
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
#pragma omp parallel for num_threads(setting_.threads) schedule(dynamic, 1)
        for (std::int64_t k = 0; k < count; ++k) {
            const Chunk& chunk = solved[static_cast<std::size_t>(k)];
            multiply_in_place(slice(system_, chunk.first, chunk.rows));
        }
        for (const auto& [row, seam] : seams_) Windows::put_back(system_, seam, width_);
    }

    Result undo(const Board& board) {
        restore(board);
        result_.outcome = board.why();
        collect_trace();
        return give_up("a chunk cannot be solved as a system of its own");
    }

    const System& system_;
    const Setting& setting_;
    Result result_;
    std::int64_t width_ = 0;
    double close_ = 0, amplified_ = 0;
    int rescuer_ = -1;
    std::vector<std::int64_t> slot_rows_;
    std::vector<Done> done_;
    std::map<std::int64_t, Windows::Seam> seams_;  // by row; written under the board's lock
};

}  // namespace

const char* refuses(const System& system) {
    if (system.levels != 0 || system.offsets) return "a split takes one system";
    if (system.periodic) return "a split takes no periodic system";
    if (system.accumulate) return "a split stores x and does not add to it";
    for (const Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x}) {
        if (operand->kind == Operand::Kind::generator) return "a split reads arrays and scalars, not generators";
        if (operand->kind == Operand::Kind::view && operand->row_stride != 1) return "a split needs rows that lie side by side";
    }
    return nullptr;
}

std::int64_t forgets_within(const System& system, const Ops& host, double tolerance) {
    std::int64_t width = 0;
    margin_of(system, host, tolerance, width);
    return width;
}

Result solve(const System& system, const Setting& setting) { return Split(system, setting).run(); }

}  // namespace trifold::tridiagonal::split
