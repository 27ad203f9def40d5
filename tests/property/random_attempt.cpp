// SPDX-License-Identifier: BSD-3-Clause
// Makes the call of a case, twice, and has it judged.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "contract/tridiagonal/moved.hpp"
#include "property/random_case.hpp"
#include "property/random_verdict.hpp"

namespace trifold::tests {
namespace {

Context& context(bool other) {
    static Context two({.threads = 2, .profile_path = "none", .log = {}}), three({.threads = 3, .profile_path = "none", .log = {}});
    return other ? three : two;
}

struct Made {
    bool refused = false;
    ErrorCode code{};
    std::string error;
    Outcome outcome;
    std::vector<std::int8_t> status;
};

void spoil(tridiagonal::Problem& problem, tridiagonal::Options& options, Misuse misuse) {
    AnyView* const diag = std::get_if<AnyView>(&problem.matrix.diag);
    const auto further = [](const AnyView& view, std::int64_t elements) { return static_cast<char*>(view.data) + elements * static_cast<std::int64_t>(size_of(view.dtype)); };
    switch (misuse) {
        case Misuse::none: return;
        case Misuse::x_meets_rhs: problem.x = problem.rhs, problem.x.data = further(problem.rhs, problem.rhs.axis.stride), problem.x.writable = true; return;
        case Misuse::x_meets_matrix: diag->data = problem.x.data; return;
        case Misuse::x_on_itself: problem.x.axis.stride = 0; return;
        case Misuse::read_only: problem.x.writable = false; return;
        case Misuse::no_memory: problem.rhs.data = nullptr; return;
        case Misuse::other_type: problem.rhs.dtype = problem.rhs.dtype == DType::f32 ? DType::f64 : DType::f32; return;
        case Misuse::odd_address: problem.x.data = static_cast<char*>(problem.x.data) + 1; return;
        case Misuse::other_rows: diag->axis.extent -= 1; return;
        case Misuse::other_batch: problem.rhs.batch_dims = problem.rhs.batch_dims == 0 ? 1 : problem.rhs.batch_dims - 1; return;
        case Misuse::tolerance: options.tolerance = NAN; return;
    }
}

template <class T>
class Attempt {
public:
    Attempt(const std::string& device, const Case& c) : c_(c), name_(device), several_(device == "all" || device.find(',') != std::string::npos) {
        auto entries = std::make_shared<DrawnEntries>(c.entries);
        if (std::ranges::find(entries->kind, Kind::zoo) != entries->kind.end()) entries->fetch_animals();
        recipe_ = c.recipe, recipe_.entries = entries;
    }

    std::string text() {
        // What lies around is another's: bits must not depend on what is not to be read.
        Recipe elsewhere = recipe_;
        elsewhere.around = recipe_.around == Around::nan ? Around::numbers : Around::nan;
        Trial<T> first(recipe_), second(elsewhere);
        if (c_.misuse != Misuse::none && !spoilable(first)) return "";
        Queue queue(context(false), name_), other(context(c_.other_threads), name_);
        Circumstances how;
        how.named = c_.algorithm != tridiagonal::Algorithm::automatic, how.checked = c_.check_finite, how.tolerance = c_.tolerance;
        how.rows_are_named = name_ == "cpu" || name_ == "reference";
        if (c_.way == Way::factor || c_.way == Way::refactor) return kept(queue, first, second, how);
        const Made made = solve(queue, first, c_.own_workspace);
        std::string wrong = made.refused ? refusal(first, made) : c_.misuse != Misuse::none ? "was not refused\n" : verdict(first, made.outcome, made.status, how);
        if (!wrong.empty()) return describe(made) + wrong;
        if (made.refused || several_) return "";
        const Made again = solve(other, second, c_.way == Way::async || !c_.own_workspace);
        if (again.refused) return "the second time: " + again.error;
        // How few long systems are solved is a question of time, and so of threads.
        if (c_.other_threads && std::strcmp(made.outcome.branch, again.outcome.branch)) return "";
        // So is what is tried of those that do not decay among some that do.
        if (c_.other_threads && !how.named && made.outcome.tried_other && std::strcmp(made.outcome.branch, "certified") == 0) return "";
        wrong = differences(first, second, made.outcome, again.outcome, made.status);
        if (made.status != again.status) wrong += "another status the second time\n";
        return wrong.empty() ? "" : describe(made) + wrong;
    }

private:
    bool spoilable(const Trial<T>& trial) const {
        const AnyView* const diag = std::get_if<AnyView>(&trial.problem().matrix.diag);
        std::int64_t systems = 1;
        for (const std::int64_t extent : recipe_.batch) systems *= extent;
        if (recipe_.rows < 3 || systems < 1 || recipe_.one_rhs || !recipe_.lengths.empty()) return false;
        return diag || (c_.misuse != Misuse::x_meets_matrix && c_.misuse != Misuse::other_rows);
    }

    Made solve(Queue& queue, Trial<T>& trial, bool own_workspace) {
        const bool moves = c_.in_device_memory && queue.memory().kind == MemoryKind::device;
        std::optional<Moved<T>> moved;
        if (moves) moved.emplace(queue, trial, recipe_.seed % 2 == 0);
        tridiagonal::Problem problem = moves ? moved->problem : trial.problem();
        Made made;
        Report report;
        tridiagonal::Options options;
        options.algorithm = c_.algorithm, options.tolerance = c_.tolerance, options.check_finite = c_.check_finite;
        if (c_.report) options.report = &report;
        std::vector<std::int8_t> status(static_cast<std::size_t>(trial.systems()) + 2, 77);
        DeviceArray<std::int8_t> status_there;
        if (moves) status_there = {queue, std::span<const std::int8_t>(status)};
        if (c_.status) options.status = (moves ? status_there.data() : status.data()) + 1;
        spoil(problem, options, c_.misuse);
        try {
            Queue home = queue;
            DeviceArray<std::byte> scratch;
            if (own_workspace) {
                const WorkspaceNeed need = tridiagonal::workspace(queue, problem, options).at(0);
                home = Queue(queue.context(), need.memory.kind == MemoryKind::device ? name_ : "cpu");
                scratch = {home, static_cast<std::int64_t>(need.bytes)};
                if (need.bytes > 0) options.workspace = {scratch.data(), need.bytes};
            }
            if (moves && c_.twice) call(queue, problem, options, made), moved->bring_there();
            call(queue, problem, options, made);
        } catch (const Error& error) {
            made.refused = true, made.code = error.code(), made.error = error.what();
        }
        if (moves) moved->bring_back(), status_there.download(status);
        if (status.front() != 77 || status.back() != 77) made.error += "wrote beside the status";
        if (c_.status && !made.refused) made.status.assign(status.begin() + 1, status.end() - 1);
        return made;
    }

    void call(Queue& queue, const tridiagonal::Problem& problem, const tridiagonal::Options& options, Made& made) {
        if (c_.way != Way::async) {
            made.outcome = tridiagonal::solve(queue, problem, options);
            return;
        }
        const std::span<const std::int64_t> offsets = problem.offsets;
        RegisteredMemory pinned;
        if (!offsets.empty()) pinned = {queue, const_cast<std::int64_t*>(offsets.data()), offsets.size_bytes()};
        tridiagonal::PendingOutcome pending(queue);
        tridiagonal::solve_async(queue, problem, options, pending);
        made.outcome = pending.read();
    }

    // A Factor takes the matrix without the leading dimensions of the right-hand sides.
    std::string kept(Queue& queue, Trial<T>& first, Trial<T>& second, const Circumstances& given) {
        Circumstances how = given;
        how.kept = true;
        std::vector<std::int64_t> own(recipe_.batch.begin() + static_cast<std::ptrdiff_t>(recipe_.front), recipe_.batch.end());
        std::int64_t systems = 1;
        for (const std::int64_t extent : own) systems *= extent;
        try {
            Recipe before = recipe_;
            DrawnEntries others = c_.entries;
            others.kind = {Kind::dominant}, others.planted.clear(), ++others.seed;
            if (c_.way == Way::refactor) before.entries = std::make_shared<DrawnEntries>(others);
            Trial<T> old(before);
            const bool moves = c_.in_device_memory && queue.memory().kind == MemoryKind::device;
            std::optional<Moved<T>> there, there_again, old_there;
            if (moves) there.emplace(queue, first, recipe_.seed % 2 == 0), there_again.emplace(queue, second, recipe_.seed % 2 == 0), old_there.emplace(queue, old, true);
            const auto matrix = [](const Trial<T>& trial, const std::optional<Moved<T>>& moved) { return moved ? moved->moved(trial.matrix_behind_front()) : trial.matrix_behind_front(); };
            tridiagonal::Factor factor(queue, matrix(old, old_there), recipe_.rows, own, dtype_of<T>);
            old_there.reset();  // the Factor has what it needs
            if (c_.way == Way::refactor) factor.refactor(matrix(first, there));
            std::string wrong = verdict_of_factor(first, factor.outcome(), systems);
            if (!wrong.empty() || !factor.outcome().ok() || first.systems() == 0) return wrong;
            const auto solve = [&](Trial<T>& trial, std::optional<Moved<T>>& moved) {
                const tridiagonal::Problem& problem = moved ? moved->problem : trial.problem();
                Made made;
                if (c_.twice) {
                    const WorkspaceNeed need = factor.workspace(problem.rhs, problem.x).at(0);
                    const DeviceArray<std::byte> scratch(queue, static_cast<std::int64_t>(need.bytes));
                    tridiagonal::PendingOutcome pending(queue);
                    factor.solve_async(queue, problem.rhs, problem.x, pending, {scratch.data(), need.bytes});
                    made.outcome = pending.read();
                } else {
                    made.outcome = factor.solve(problem.rhs, problem.x);
                }
                if (moved) moved->bring_back();
                return made;
            };
            const Made made = solve(first, there);
            wrong = verdict(first, made.outcome, {}, how);
            const Made again = solve(second, there_again);
            wrong += differences(first, second, made.outcome, again.outcome, {});
            return wrong.empty() ? "" : describe(made) + wrong;
        } catch (const Error& error) {
            if (c_.in_device_memory && error.code() == ErrorCode::device_unavailable && tridiagonal::plan(queue, first.problem()).device != name_) return "";  // what is left to the cpu lies in the host's memory
            return std::string("is refused: ") + error.what() + "\n";
        }
    }

    // What some devices, algorithms and memories are documented not to do; everything else must be done.
    std::string refusal(const Trial<T>& trial, const Made& made) const {
        const Trial<T> untouched(recipe_);
        for (std::int64_t k = 0; k < trial.systems(); ++k)
            if (!same_bits(trial.stored(k), untouched.stored(k))) return "was refused, but x has changed\n";
        if (!trial.surroundings_untouched()) return "was refused, but an array has changed\n";
        if (made.error.empty()) return "was refused without a word\n";
        if (c_.misuse != Misuse::none) return made.code == ErrorCode::usage ? "" : "not refused as misuse\n";
        if (made.code != ErrorCode::usage && made.code != ErrorCode::device_unavailable) return "refused as what it is not\n";
        const bool elsewhere = c_.in_device_memory && Queue(context(false), name_).memory().kind == MemoryKind::device;
        const bool may = c_.algorithm != tridiagonal::Algorithm::automatic || elsewhere;
        return may ? "" : "was refused\n";
    }

    static bool same_bits(const std::vector<T>& a, const std::vector<T>& b) { return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0); }

    std::string differences(const Trial<T>& first, const Trial<T>& second, const Outcome& a, const Outcome& b, const std::vector<std::int8_t>& status) const {
        std::ostringstream out;
        if (a.reason != b.reason || a.system != b.system || a.row != b.row || a.failures != b.failures || a.rescued != b.rescued || std::strcmp(a.branch, b.branch))
            out << "the second time: " << trifold::name_of(b.reason) << ", system " << b.system << ", row " << b.row << ", " << b.failures << " failures, " << b.rescued << " rescued, branch " << b.branch << "\n";
        std::int64_t differ = 0, where = -1;
        for (std::int64_t k = 0; k < first.systems(); ++k) {
            const bool good = status.empty() ? a.ok() : status[static_cast<std::size_t>(k)] > 0;
            if (good && !same_bits(first.stored(k), second.stored(k))) ++differ, where = where < 0 ? k : where;
        }
        if (!differ) return out.str();
        const std::vector<T> x = first.stored(where), y = second.stored(where);
        std::size_t i = 0;
        while (std::memcmp(&x[i], &y[i], sizeof(T)) == 0) ++i;
        out << "other bits the second time in " << differ << " systems, first " << where << ", row " << i << ": " << std::hexfloat << x[i] << ", " << y[i] << "\n";
        return out.str();
    }

    static std::string describe(const Made& made) {
        std::ostringstream out;
        const Outcome& o = made.outcome;
        if (made.refused) out << "refused: " << made.error << "\n";
        else out << trifold::name_of(o.reason) << ", system " << o.system << ", row " << o.row << ", " << o.failures << " failures, " << o.rescued << " rescued, branch " << o.branch << " on " << o.device
                 << (o.tried_other ? ", another was tried" : "") << " " << made.error << "\n";
        return out.str();
    }

    const Case& c_;
    std::string name_;
    bool several_;
    Recipe recipe_;
};

}  // namespace

std::string attempt(const std::string& device, const Case& c) {
    const SimdBelow simd(c.simd);
    return c.dtype == DType::f32 ? Attempt<float>(device, c).text() : Attempt<double>(device, c).text();
}

}  // namespace trifold::tests
