// SPDX-License-Identifier: BSD-3-Clause
// One system of the host's memory on each device alone and on every set of them: oclspkt's figures 6 to 8, 10, 11 and its table 5.
// Arrays are pinned where the device can. Beside them, measured in the same run: the link alone and while the cpu solves, the cpu alone and while copies run; the
// sum of the two rates that were seen together is what a split can reach.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <span>

#include "backends/energy_counter.hpp"
#include "base/aligned_buffer.hpp"
#include "bench/harness/link.hpp"
#include "bench/suites/suites.hpp"
#include "report/energy.hpp"
#include "report/trace.hpp"
#include "trifold/device_memory.hpp"

namespace trifold::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? NAN : values[values.size() / 2];
}

/// Five arrays for the largest system; smaller ones and other types are their beginnings.
class Arrays {
public:
    explicit Arrays(std::size_t bytes) {
        for (AlignedBuffer& buffer : buffers_) buffer = AlignedBuffer(bytes);
    }

    /// Dominant (2.5 at the least) with entries of like size, or -1, 2, -1.
    template <class T>
    void fill(bool dominant, std::int64_t rows) {
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::uint64_t z = static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15u;
            const double a = static_cast<double>(z >> 44) * 0x1p-20, b = static_cast<double>(z >> 24 & 0xfffff) * 0x1p-20, c = static_cast<double>(z >> 4 & 0xfffff) * 0x1p-20;
            at<T>(0)[i] = static_cast<T>(dominant ? -0.5 - 0.5 * a : -1);
            at<T>(1)[i] = static_cast<T>(dominant ? 5 + b : 2);
            at<T>(2)[i] = static_cast<T>(dominant ? -0.5 - 0.5 * c : -1);
            at<T>(3)[i] = static_cast<T>(c - 0.5), at<T>(4)[i] = 0;
        }
    }

    template <class T>
    T* at(int k) const {
        return static_cast<T*>(buffers_[k].data());
    }
    const AlignedBuffer& buffer(int k) const { return buffers_[k]; }

    template <class T>
    tridiagonal::Problem problem(std::int64_t rows) const {
        const auto view = [&](int k) { return View<const T>::rows(std::span<const T>(at<T>(k), static_cast<std::size_t>(rows))); };
        tridiagonal::Problem p;
        p.matrix = {view(0), view(1), view(2)}, p.rhs = view(3);
        p.x = View<T>::rows(std::span<T>(at<T>(4), static_cast<std::size_t>(rows)));
        return p;
    }

    /// max |rhs - A x| / (max row sum of |A| × max |x|), in double precision.
    template <class T>
    double backward_error(std::int64_t rows) const {
        double off = 0, most_x = 0, most_a = 0;
#pragma omp parallel for schedule(static) reduction(max : off, most_x, most_a)
        for (std::int64_t i = 0; i < rows; ++i) {
            const double l = i > 0 ? at<T>(0)[i] : T(0), d = at<T>(1)[i], u = i + 1 < rows ? at<T>(2)[i] : T(0);
            const double r = at<T>(3)[i] - (i > 0 ? l * at<T>(4)[i - 1] : 0) - d * at<T>(4)[i] - (i + 1 < rows ? u * at<T>(4)[i + 1] : 0);
            off = std::max(off, std::isfinite(r) ? std::abs(r) : INFINITY);
            most_x = std::max(most_x, std::abs(static_cast<double>(at<T>(4)[i]))), most_a = std::max(most_a, std::abs(l) + std::abs(d) + std::abs(u));
        }
        return off / (most_a * most_x);
    }

private:
    AlignedBuffer buffers_[5];
};

struct Sets {
    std::vector<std::string> names;  ///< as a Queue takes them; single ones first
    std::size_t singles = 0;
};

/// The cpu, every other device that can be used, and the sets of them with the cpu; two drivers of one board do not count as two devices.
Sets sets_here() {
    Sets sets{{"cpu"}, 0};
    std::vector<std::string> boards;
    bool cuda = false;
    for (const Device* device : registered_devices()) {
        const std::string name = device->name;
        if (name == "cpu" || name == "reference" || device->modelled || why_unavailable(*device)) continue;
        cuda = cuda || name.starts_with("cuda:");
        sets.names.push_back(name);
        if (device->runtime && !(cuda && name.starts_with("opencl:"))) boards.push_back(name);
    }
    // OpenCL shows boards that CUDA has, and the processors once more: there its record is another.
    if (cuda) std::erase_if(sets.names, [](const std::string& name) { return name.starts_with("opencl:"); });
    sets.singles = sets.names.size();
    for (std::size_t k = 1; k < sets.singles; ++k) sets.names.push_back("cpu," + sets.names[k]);
    for (std::uint32_t members = 1; members < 1u << boards.size(); ++members) {
        std::string name;
        int count = 0;
        for (std::size_t k = 0; k < boards.size(); ++k)
            if (members >> k & 1) name += (name.empty() ? "" : ",") + boards[k], ++count;
        if (count > 1) sets.names.push_back(name), sets.names.push_back("cpu," + name);
    }
    return sets;
}

class Hetero {
public:
    Hetero(const Settings& settings, Record& record) : settings_(settings), record_(record), context_(options_with(settings.threads)), watts_(report::watts_from(settings.watts)) {}

    void run() {
        const double wanted = settings_.rows > 0 ? settings_.rows : settings_.quick ? 16e6 : 1280e6;
        const std::int64_t most = rows_that_fit(wanted, DType::f32, 5);
        const std::size_t bytes = static_cast<std::size_t>(most) * 4;
        auto start = Clock::now();
        arrays_ = std::make_unique<Arrays>(bytes);
        arrays_->fill<float>(true, most);
        say("arrays", seconds_since(start), 5 * static_cast<double>(bytes));
        sets_ = sets_here();
        start = Clock::now();
        for (std::size_t k = 0; k < sets_.singles; ++k) {
            const Queue queue(context_, sets_.names[k]);
            for (int a = 0; a < 5; ++a) registered_.emplace_back(queue, arrays_->at<void>(a), bytes);
        }
        say("pinned", seconds_since(start), 5 * static_cast<double>(bytes));
        const std::int64_t least = std::min<std::int64_t>(most, settings_.rows > 0 || settings_.quick ? most : 256000000);
        ceilings<float>(least);
        size<float>("dominant", least, true);
        resident<float>(least);
        if (most > least) size<float>("dominant", most, false);
        arrays_->fill<double>(true, most / 2);
        ceilings<double>(most / 2);
        size<double>("dominant", most / 2, false);
        const std::int64_t hard = std::min<std::int64_t>(most / 2, least);
        arrays_->fill<double>(false, hard);
        size<double>("poisson", hard, false);
    }

private:
    static void say(const char* what, double seconds, double bytes) { std::fprintf(stderr, "  %s: %.1f s, %.1f GB/s\n", what, seconds, bytes / seconds * 1e-9); }

    double solves_for(const std::string& device, const tridiagonal::Problem& problem, double seconds) {
        Queue queue(context_, device);
        tridiagonal::solve(queue, problem);
        std::vector<double> times;
        for (const auto start = Clock::now(); times.size() < 3 || seconds_since(start) < seconds;) {
            const auto begin = Clock::now();
            tridiagonal::solve(queue, problem);
            times.push_back(seconds_since(begin));
        }
        return median(times);
    }

    /// The cpu and each link, alone and side by side.
    template <class T>
    void ceilings(std::int64_t rows) {
        const double seconds = 0.4 * settings_.budget_scale, n = static_cast<double>(rows), row_in = 4 * sizeof(T);
        const tridiagonal::Problem problem = arrays_->problem<T>(rows);
        const double cpu = n / solves_for("cpu", problem, seconds);
        for (std::size_t k = 1; k < sets_.singles; ++k) {
            const Device& device = device_at(find_device(sets_.names[k]));
            if (!device.runtime || !device.runtime->open_stream) continue;
            try {
                Link link(device, arrays_->at<void>(3), static_cast<std::size_t>(rows) * sizeof(T), arrays_->at<void>(4), static_cast<std::size_t>(rows) * sizeof(T));
                const LinkRates to = link.alone(Direction::to, seconds), from = link.alone(Direction::from, seconds), both = link.alone(Direction::solve, seconds);
                double beside = 0;
                const LinkRates shared = link.during(Direction::solve, [&] { beside = n / solves_for("cpu", problem, seconds); });
                Row row;
                row.set("kind", "ceiling").set("devices", "cpu," + sets_.names[k]).set("dtype", name_of(dtype_of<T>)).set("rows", n).set("threads", static_cast<double>(context_.threads()));
                row.set("to_bytes_per_s", to.to).set("from_bytes_per_s", from.from).set("solve_to_bytes_per_s", both.to).set("solve_from_bytes_per_s", both.from);
                row.set("cpu_rows_per_s", cpu).set("cpu_rows_per_s_while_copies", beside).set("to_bytes_per_s_while_cpu", shared.to).set("from_bytes_per_s_while_cpu", shared.from);
                row.set("ceiling_rows_per_s", beside + shared.to / row_in);
                ceiling_[std::string("cpu,") + sets_.names[k] + name_of(dtype_of<T>)] = beside + shared.to / row_in;
                link_rows_[sets_.names[k] + name_of(dtype_of<T>)] = to.to / row_in;
                record_.rows.push_back(std::move(row));
            } catch (const Error& error) {
                note(sets_.names[k] + ": link not measured: " + error.what());
            }
        }
    }

    template <class T>
    void size(const char* matrix, std::int64_t rows, bool energy) {
        const tridiagonal::Problem problem = arrays_->problem<T>(rows);
        const double n = static_cast<double>(rows);
        std::map<std::string, double> alone;
        for (std::size_t k = 0; k < sets_.names.size(); ++k) {
            const std::string& name = sets_.names[k];
            std::vector<double> times, of_all;
            Report report;
            Outcome outcome;
            double error = NAN;
            try {
                Queue queue(context_, name);
                tridiagonal::Options options;
                options.report = &report;
                // The first makes buffers; by the next ones the planner learns who is worth taking part.
                const int learning = k < sets_.singles ? 2 : 5, rounds = learning + 3;
                for (int round = 0; round < rounds; ++round) {
                    const auto start = Clock::now();
                    outcome = tridiagonal::solve(queue, problem, options);
                    if (round >= learning) times.push_back(seconds_since(start));
                    if (round > 0 && takes_all(report)) of_all.push_back(seconds_since(start));
                }
                error = arrays_->backward_error<T>(rows);
            } catch (const Error& failure) {
                note(name + ", " + name_of(dtype_of<T>) + ": " + failure.what());
                continue;
            }
            const double seconds = median(times), rate = n / seconds;
            if (k < sets_.singles) alone[name] = rate;
            Row row;
            row.set("kind", "solve").set("matrix", matrix).set("devices", name).set("dtype", name_of(dtype_of<T>)).set("rows", n).set("threads", static_cast<double>(context_.threads()));
            row.set("seconds", seconds).set("rows_per_s", rate).set("branch", outcome.branch).set("reason", name_of(outcome.reason)).set("ok", outcome.ok()).set("backward_error", error);
            double sum = 0;
            bool all = true;
            for (const std::string& part : parts_of(name)) all = all && alone.count(part), sum += alone.count(part) ? alone[part] : 0;
            if (k >= sets_.singles) row.set("all_rows_per_s", n / median(of_all)).set("chosen", chosen(report));
            if (k >= sets_.singles && all) row.set("of_the_sum", rate / sum);
            if (const auto found = ceiling_.find(name + name_of(dtype_of<T>)); found != ceiling_.end() && std::string_view(matrix) == "dominant") row.set("of_the_ceiling", rate / found->second);
            if (const auto found = link_rows_.find(name + name_of(dtype_of<T>)); found != link_rows_.end()) row.set("of_the_link", rate / found->second);
            const report::TraceSummary figures = report::summary(report);
            if (figures.seconds > 0) row.set("together", figures.together_s / figures.seconds);
            for (const DeviceShare& share : report.devices) {
                row.set("share_" + share.name, static_cast<double>(share.rows) / n).set("rows_per_s_" + share.name, share.rows_per_s);
                if (!share.state.empty()) row.set("state_" + share.name, share.state);
            }
            if (energy) joules(name, problem, report, n, row);
            std::fprintf(stderr, "  %-20s %s %s %.3g rows: %.0f Mrows/s\n", name.c_str(), name_of(dtype_of<T>), matrix, n, rate * 1e-6);
            record_.rows.push_back(std::move(row));
        }
    }

    static bool takes_all(const Report& report) {
        return !report.devices.empty() && std::all_of(report.devices.begin(), report.devices.end(), [](const DeviceShare& share) { return share.rows > 0; });
    }

    /// Who took part: "cpu,cuda:0".
    static std::string chosen(const Report& report) {
        std::string names;
        for (const DeviceShare& share : report.devices)
            if (share.rows > 0) names += (names.empty() ? "" : ",") + share.name;
        return names.empty() ? report.outcome.device : names;
    }

    /// Over a second at least, since counters move in steps; estimated from watts where there is none.
    void joules(const std::string& name, const tridiagonal::Problem& problem, const Report& report, double rows, Row& row) {
        Queue queue(context_, name);
        const Device& device = device_at(queue.device_index());
        std::vector<EnergyCounter> counters;
        if (device.parts.empty()) counters.emplace_back(device);
        for (const Device* part : device.parts) counters.emplace_back(*part);
        std::vector<double> before;
        for (EnergyCounter& counter : counters) before.push_back(counter.joules());
        int solves = 0;
        for (const auto start = Clock::now(); seconds_since(start) < 1.5 * settings_.budget_scale; ++solves) tridiagonal::solve(queue, problem);
        report::Energy energy;
        for (std::size_t k = 0; k < counters.size(); ++k) {
            const double joules = (counters[k].joules() - before[k]) / solves;
            const bool measured = std::isfinite(joules);
            energy.devices.push_back({counters[k].device(), joules, measured ? "measured" : "unknown", measured ? counters[k].source() : counters[k].why_not()});
        }
        report::complete(energy, report, watts_);
        row.set("joules", energy.joules).set("joules_kind", energy.kind).set("joules_note", energy.note).set("rows_per_joule", rows / energy.joules);
    }

    /// Data where the device computes: no transfers.
    template <class T>
    void resident(std::int64_t rows) {
        for (std::size_t k = 1; k < sets_.singles; ++k) {
            const std::string& name = sets_.names[k];
            Queue queue(context_, name);
            const bool opencl = name.starts_with("opencl:");
            if (queue.memory().kind != MemoryKind::device && !opencl) continue;
            for (const auto algorithm : {tridiagonal::Algorithm::automatic, tridiagonal::Algorithm::truncated_spike}) {
                if (algorithm != tridiagonal::Algorithm::automatic && !opencl) continue;
                try {
                    DeviceArray<T> on[5];
                    tridiagonal::Problem problem = arrays_->problem<T>(rows);
                    if (queue.memory().kind == MemoryKind::device) {
                        for (int a = 0; a < 5; ++a) {
                            on[a] = DeviceArray<T>(queue, rows);
                            if (a < 4) on[a].upload(std::span<const T>(arrays_->at<T>(a), static_cast<std::size_t>(rows)));
                        }
                        const auto view = [&](int a) { return View<const T>::rows(std::span<const T>(on[a].data(), static_cast<std::size_t>(rows)), on[a].memory()); };
                        problem.matrix = {view(0), view(1), view(2)}, problem.rhs = view(3);
                        problem.x = View<T>::rows(std::span<T>(on[4].data(), static_cast<std::size_t>(rows)), on[4].memory());
                    }
                    tridiagonal::Options options;
                    options.algorithm = algorithm;
                    std::vector<double> times;
                    Outcome outcome;
                    for (int round = 0; round < 4; ++round) {
                        const auto start = Clock::now();
                        outcome = tridiagonal::solve(queue, problem, options);
                        if (round > 0) times.push_back(seconds_since(start));
                    }
                    Row row;
                    row.set("kind", "resident").set("devices", name).set("algorithm", tridiagonal::name_of(algorithm)).set("dtype", name_of(dtype_of<T>)).set("rows", static_cast<double>(rows));
                    row.set("seconds", median(times)).set("rows_per_s", static_cast<double>(rows) / median(times)).set("branch", outcome.branch).set("reason", name_of(outcome.reason));
                    row.set("ok", outcome.ok());
                    record_.rows.push_back(std::move(row));
                } catch (const Error& error) {
                    note(name + ", data there: " + error.what());
                }
            }
        }
    }

    static std::vector<std::string> parts_of(const std::string& name) {
        std::vector<std::string> parts;
        for (std::size_t at = 0; at < name.size();) {
            const std::size_t comma = std::min(name.find(',', at), name.size());
            parts.push_back(name.substr(at, comma - at));
            at = comma + 1;
        }
        return parts;
    }

    void note(const std::string& text) {
        if (std::find(record_.notes.begin(), record_.notes.end(), text) == record_.notes.end()) record_.notes.push_back(text);
    }

    const Settings& settings_;
    Record& record_;
    Context context_;
    report::Watts watts_;
    Sets sets_;
    std::unique_ptr<Arrays> arrays_;
    std::vector<RegisteredMemory> registered_;
    std::map<std::string, double> ceiling_, link_rows_;
};

}  // namespace

void run_hetero(const Settings& settings, Record& record) { Hetero(settings, record).run(); }

}  // namespace trifold::bench
