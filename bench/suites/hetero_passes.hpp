// SPDX-License-Identifier: BSD-3-Clause
// The first rows of a system that does not forget, by the cpu alone and pass by pass, as the cpu of a split does them: its chunks, its pieces, its tasks of the second pass.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "bench/suites/hetero_all.hpp"
#include "bench/suites/hetero_arrays.hpp"
#include "families/tridiagonal/coupling.hpp"
#include "families/tridiagonal/split/coupled.hpp"
#include "families/tridiagonal/split/finishing.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::bench {

namespace split = tridiagonal::split;

class TwoPasses {
public:
    /// of_rows: of the whole system, by which pieces are cut.
    template <class T>
    static std::unique_ptr<TwoPasses> of(const Arrays& arrays, std::int64_t rows, std::int64_t of_rows, int threads) {
        T* each[5];
        for (int k = 0; k < 5; ++k) each[k] = arrays.at<T>(k);
        return std::unique_ptr<TwoPasses>(new TwoPasses(system_of(each, rows), tridiagonal::two_pass_chunk_rows(of_rows, dtype_of<T>), threads));
    }

    /// Seconds of the first pass.
    double reduce() {
        reducer_.reset();
        done_ = {};
        const auto start = Clock::now();
        split::Pace pace;
        pace.rows_per_s = pace_, pace.least = least_chunk;
        board_ = std::make_unique<split::Board>(system_.rows, std::max<std::int64_t>(4 * piece_, 2048 / piece_ * piece_), piece_, std::vector<split::Pace>{pace}, [](std::int64_t) {});
        shared_ = std::make_unique<split::Shared>(split::Shared{system_, *board_, std::ldexp(1.0, system_.dtype == DType::f32 ? -24 : -53), start});
        reducer_ = split::reducer_on_host(*shared_, 0, {ops_.device, &ops_, nullptr, 0}, threads_, true, piece_, scratch_, split::Calls({}, nullptr), done_);
        const bool good = reducer_->reduce() && board_->complete();
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        if (!good) return NAN;
        pace_ = static_cast<double>(system_.rows) / seconds;
        return seconds;
    }

    /// x at the ends of all pieces, after `reduce`. False: it is singular.
    bool couple() {
        std::vector<tridiagonal::ChunkRows> rows;
        std::int64_t pieces = 0;
        for (const split::Reduced& one : reducer_->reduced) rows.push_back({one.rows, one.count}), pieces += one.count;
        boundary_.assign(static_cast<std::size_t>(2 * pieces + 2), 0);
        const devices::Scratch scratch = scratch_.take(tridiagonal::coupling_scratch(pieces, static_cast<std::int64_t>(rows.size())));
        return tridiagonal::couple(rows, boundary_.data() + 1, tridiagonal::coupled_to(system_.dtype), threads_, scratch.data()) < 0;
    }

    /// Seconds of the second pass, after `couple`; NaN where x was not accepted.
    double finish() {
        const auto start = Clock::now();
        split::Finishing tasks(piece_, most_rows / piece_);
        // By place: since it was coupled it may have been reduced again, in other chunks.
        for (split::Reduced& one : reducer_->reduced) one.ends = boundary_.data() + 1 + 2 * (one.chunk->first / piece_), tasks.add(one);
        tasks.open();
        bool good = true, refused = false;
        while (split::Finishing::Task* const task = good && !refused ? tasks.front(true) : nullptr) good = reducer_->finish(task->part, refused);
        done_.trace.clear();
        return good && !refused ? std::chrono::duration<double>(Clock::now() - start).count() : NAN;
    }

private:
    using Clock = std::chrono::steady_clock;

    TwoPasses(const tridiagonal::System& system, std::int64_t piece, int threads) : system_(system), piece_(piece), threads_(threads) {}

    // As split/coupled.cpp and executor.hpp have them.
    static constexpr std::int64_t least_chunk = 1 << 14, most_rows = std::int64_t{1} << 20;

    const tridiagonal::Ops& ops_ = ops_of(device_at(find_device("cpu")));
    const tridiagonal::System system_;
    const std::int64_t piece_;
    const int threads_;
    double pace_ = 0;
    devices::ScratchArena scratch_;
    split::Done done_;
    std::unique_ptr<split::Board> board_;
    std::unique_ptr<split::Shared> shared_;
    std::unique_ptr<split::Reducer> reducer_;
    std::vector<double> boundary_;
};

}  // namespace trifold::bench
