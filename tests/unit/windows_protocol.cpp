// SPDX-License-Identifier: BSD-3-Clause
// The barriers between the warps of a block in src/backends/cuda/tridiagonal/device/windows_roles.cuh, in every order in which the warps can come to
// them: nobody waits for ever, nobody passes a barrier for another phase than the one that is meant, and what a warp reads is what was written for it.
//
// A barrier counts arrivals; a wait names a turn and sees only whether that turn's phase is of the barrier's parity. So the state of all is where each
// warp stands, and every state that can be reached is visited. Two warps compute, and one moves, and one couples: more that compute do the same.
// How far blocks wait for each other is not in it; docs/algorithms/gpu_windows_protocol.md has that.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace trifold::tests {
namespace {

/// What comes of a window in the first pass: finished; finished, its ends unknown; only reduced.
enum class Kind { whole, skipped, reduced };

enum Barrier { full, reduced, published, solved, met, finished, settled, meeting, barriers };
/// What one writes and others read, two or three of each in turns.
enum Shared { stage, parts, shown, known, skip, first_x, largest, shared };

struct Step {
    enum What { wait, arrive, write, read } what;
    int which, turn;
};

constexpr int compute_warps = 2, warps = compute_warps + 2, stages = 3;

struct Protocol {
    std::array<std::vector<Step>, warps> steps;

    explicit Protocol(const std::vector<Kind>& first, const std::vector<Kind>& second, bool waits_for_couples = true) {
        const int n = static_cast<int>(first.size()), m = static_cast<int>(second.size());
        for (int w = 0; w < compute_warps; ++w) computes(steps[static_cast<std::size_t>(w)], first, second);
        moves(steps[compute_warps], first, second, waits_for_couples);
        auto& couples = steps[compute_warps + 1];
        for (int t = 0; t <= n; ++t) {
            couples.push_back({Step::wait, full, t});
            couples.push_back({Step::read, stage, t});
            if (t == n) break;
            if (first[static_cast<std::size_t>(t)] == Kind::reduced) {
                couples.push_back({Step::wait, settled, t - 2});
                couples.push_back({Step::arrive, solved, t});
                couples.push_back({Step::wait, reduced, t});
                shows(couples, t);
                continue;
            } else {
                couples.push_back({Step::wait, reduced, t});
                couples.push_back({Step::read, parts, t});
                couples.push_back({Step::wait, published, t});
                couples.push_back({Step::read, shown, t});
                couples.push_back({Step::write, known, t}), couples.push_back({Step::write, skip, t});
            }
            couples.push_back({Step::arrive, solved, t});
        }
        couples.push_back({Step::arrive, meeting, 0});
        couples.push_back({Step::wait, meeting, 0});
        for (int s = 0; s < m; ++s) {
            couples.push_back({Step::wait, settled, n + s - 2});
            couples.push_back({Step::write, known, n + s}), couples.push_back({Step::write, skip, n + s});
            couples.push_back({Step::arrive, solved, n + s});
        }
    }

private:
    static void shows(std::vector<Step>& to, int turn) {
        to.push_back({Step::read, parts, turn}), to.push_back({Step::write, shown, turn});
        to.push_back({Step::arrive, published, turn});
    }

    static void finishes(std::vector<Step>& to, Kind kind, int turn, int loaded) {
        to.push_back({Step::wait, solved, turn});
        to.push_back({Step::read, known, turn}), to.push_back({Step::read, skip, turn});
        to.push_back({Step::read, stage, loaded});
        if (kind == Kind::whole) {
            to.push_back({Step::write, first_x, turn}), to.push_back({Step::write, largest, turn});
            to.push_back({Step::arrive, met, turn}), to.push_back({Step::wait, met, turn});
            to.push_back({Step::read, first_x, turn}), to.push_back({Step::read, stage, loaded});
        } else {
            to.push_back({Step::arrive, met, turn});
        }
        to.push_back({Step::arrive, finished, turn});
    }

    static void computes(std::vector<Step>& to, const std::vector<Kind>& first, const std::vector<Kind>& second) {
        const int n = static_cast<int>(first.size()), m = static_cast<int>(second.size());
        for (int t = 0; t <= n; ++t) {
            to.push_back({Step::wait, full, t});
            const bool another = t < n, only_reduced = another && first[static_cast<std::size_t>(t)] == Kind::reduced;
            if (another) {
                to.push_back({Step::wait, published, t - 2});
                to.push_back({Step::read, stage, t});
                to.push_back({Step::write, parts, t});
                if (only_reduced) {
                    to.push_back({Step::wait, settled, t - 2});
                    to.push_back({Step::arrive, met, t}), to.push_back({Step::arrive, finished, t});
                }
                to.push_back({Step::arrive, reduced, t});
            }
            if (t > 0 && first[static_cast<std::size_t>(t) - 1] != Kind::reduced) finishes(to, first[static_cast<std::size_t>(t) - 1], t - 1, t - 1);
        }
        to.push_back({Step::arrive, meeting, 0});
        to.push_back({Step::wait, meeting, 0});
        for (int s = 0; s <= m; ++s) {
            to.push_back({Step::wait, full, n + 1 + s});
            if (s < m) finishes(to, second[static_cast<std::size_t>(s)], n + s, n + 1 + s);
        }
    }

    static void moves(std::vector<Step>& to, const std::vector<Kind>& first, const std::vector<Kind>& second, bool waits_for_couples) {
        const int n = static_cast<int>(first.size()), m = static_cast<int>(second.size());
        int next = 0;
        const auto bring = [&](int last) {
            if (next > last) return;
            to.push_back({Step::write, stage, next}), to.push_back({Step::arrive, full, next++});
        };
        const auto settle = [&](int turn) {
            to.push_back({Step::wait, finished, turn});
            to.push_back({Step::read, skip, turn}), to.push_back({Step::read, largest, turn});
            to.push_back({Step::arrive, settled, turn});
        };
        for (int s = 0; s < stages; ++s) bring(n);
        for (int t = 0; t <= n; ++t) {
            const bool another = t < n, only_reduced = another && first[static_cast<std::size_t>(t)] == Kind::reduced;
            if (another && !only_reduced) to.push_back({Step::wait, reduced, t}), shows(to, t);
            if (t > 0 && first[static_cast<std::size_t>(t) - 1] != Kind::reduced) settle(t - 1), bring(n);
            if (!only_reduced) continue;
            to.push_back({Step::wait, finished, t});
            if (waits_for_couples) to.push_back({Step::wait, solved, t});
            to.push_back({Step::arrive, settled, t});
            bring(n);
        }
        to.push_back({Step::arrive, meeting, 0});
        to.push_back({Step::wait, meeting, 0});
        for (int s = 0; s < stages; ++s) bring(n + 1 + m);
        for (int s = 0; s < m; ++s) settle(n + s), bring(n + 1 + m);
    }
};

class Search {
public:
    explicit Search(const Protocol& protocol) : steps_(protocol.steps) {
        for (std::size_t w = 0; w < warps; ++w)
            for (std::size_t i = 0; i < steps_[w].size(); ++i) {
                const Step& step = steps_[w][i];
                if (arrivals_[w].empty()) arrivals_[w].emplace_back();
                arrivals_[w].push_back(arrivals_[w].back());
                if (step.what == Step::arrive) ++arrivals_[w].back()[place(step)];
                if (step.what == Step::arrive || step.what == Step::wait) continue;
                auto& at = step.what == Step::write ? writes_ : reads_;
                at.push_back({static_cast<int>(w), static_cast<int>(i), step.which, step.turn});
            }
    }

    /// The first thing that can go wrong; empty: nothing can.
    std::string run() {
        std::vector<std::array<std::uint8_t, warps>> open{{}};
        seen_.insert(0);
        while (!open.empty() && wrong_.empty()) {
            const auto at = open.back();
            open.pop_back();
            bool any = false, all = true;
            for (std::size_t w = 0; w < warps && wrong_.empty(); ++w) {
                if (at[w] == steps_[w].size()) continue;
                all = false;
                if (!passes(at, w)) continue;
                any = true;
                auto next = at;
                ++next[w];
                std::uint64_t key = 0;
                for (const auto p : next) key = key << 8 | p;
                if (seen_.insert(key).second) open.push_back(next);
            }
            if (!any && !all && wrong_.empty()) wrong_ = "all wait";
        }
        return wrong_;
    }

    std::size_t states() const { return seen_.size(); }

private:
    struct Access {
        int warp, at, which, turn;
    };

    static int several(const Step& step) { return step.which == full ? stages : step.which == meeting ? 1 : 2; }
    static int instance(const Step& step) { return (step.turn % several(step) + several(step)) % several(step); }
    static std::size_t place(const Step& step) { return static_cast<std::size_t>(stages * step.which + instance(step)); }
    static int instances(int which) { return which == stage ? stages : 2; }

    bool passes(const std::array<std::uint8_t, warps>& at, std::size_t w) {
        const Step& step = steps_[w][at[w]];
        const auto say = [&](const char* what) {
            wrong_ = "warp " + std::to_string(w) + ", step " + std::to_string(at[w]) + ", turn " + std::to_string(step.turn) + ": " + what;
        };
        if (step.what == Step::wait) {
            const int phase = (step.turn - instance(step)) / several(step);
            const int each = step.which == reduced || step.which == met || step.which == finished ? compute_warps : step.which == meeting ? warps : 1;
            int arrived = 0;
            for (std::size_t v = 0; v < warps; ++v) arrived += arrivals_[v][at[v]][place(step)];
            const int over = arrived / each;
            const bool lets_pass = (over & 1) != (phase & 1);
            if (lets_pass && over != phase + 1) say("passes before its phase is over");
            if (!lets_pass && over > phase) say("does not see that its phase is over");
            return lets_pass;
        }
        if (step.what == Step::arrive) return true;
        const int apart = instances(step.which);
        for (const Access& other : writes_)
            if (other.which == step.which && step.what == Step::read) {
                if (other.turn == step.turn && at[static_cast<std::size_t>(other.warp)] <= other.at) say("reads what is not there yet");
                if (other.turn == step.turn + apart && at[static_cast<std::size_t>(other.warp)] > other.at) say("reads what is there no more");
            }
        for (const Access& other : reads_)
            if (other.which == step.which && step.what == Step::write && other.turn == step.turn - apart && at[static_cast<std::size_t>(other.warp)] <= other.at)
                say("writes over what is still to be read");
        return wrong_.empty();
    }

    const std::array<std::vector<Step>, warps>& steps_;
    std::array<std::vector<std::array<std::uint8_t, stages * barriers>>, warps> arrivals_;  ///< of a warp's first steps, by barrier
    std::vector<Access> writes_, reads_;
    std::unordered_set<std::uint64_t> seen_;
    std::string wrong_;
};

/// Every sequence of `count` kinds out of `kinds`.
std::vector<std::vector<Kind>> sequences(int count, int kinds) {
    std::vector<std::vector<Kind>> all{{}};
    for (int i = 0; i < count; ++i) {
        std::vector<std::vector<Kind>> longer;
        for (const auto& one : all)
            for (int k = 0; k < kinds; ++k) longer.push_back(one), longer.back().push_back(static_cast<Kind>(k));
        all = std::move(longer);
    }
    return all;
}

std::string text(const std::vector<Kind>& kinds) {
    std::string out;
    for (const Kind kind : kinds) out += "wsr"[static_cast<int>(kind)];
    return out;
}

TEST(WindowsProtocol, FirstPass) {
    std::size_t states = 0;
    for (int count = 0; count <= 5; ++count)
        for (const auto& kinds : sequences(count, 3)) {
            const Protocol protocol(kinds, {});
            Search search(protocol);
            ASSERT_EQ(search.run(), "") << text(kinds);
            states += search.states();
        }
    RecordProperty("states", static_cast<int>(states));
    EXPECT_GT(states, 10000u);
}

TEST(WindowsProtocol, SecondPassAfterFirst) {
    for (int count = 1; count <= 3; ++count)
        for (int again = 0; again <= 3; ++again)
            for (const auto& kinds : sequences(count, 3))
                for (const auto& second : sequences(again, 2)) {
                    const Protocol protocol(kinds, second);
                    Search search(protocol);
                    ASSERT_EQ(search.run(), "") << text(kinds) << " then " << text(second);
                }
}

// A fault put in: the one that moves does not wait for the one that couples before it fills a stage again.
TEST(WindowsProtocol, TheSearchFindsAFault) {
    std::string wrong;
    for (const auto& kinds : sequences(4, 3)) {
        const Protocol protocol(kinds, {}, false);
        Search search(protocol);
        wrong = search.run();
        if (!wrong.empty()) break;
    }
    EXPECT_NE(wrong, "");
}

}  // namespace
}  // namespace trifold::tests
