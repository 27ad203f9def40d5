// SPDX-License-Identifier: BSD-3-Clause
// Sweeps over meshes in combinations that nobody has listed (random_sweep_case.hpp), against the reference, or, where that takes long, the cpu. And what must hold on one device: a mesh has the bits
// of its batch, a run in pieces those of a whole one, and whatever lies between rows; nothing but the target changes; a value that is not finite is noticed, and spoils its own mesh alone.
//
//   property_random_sweeps                                    some cases on every device, from a seed that is printed
//   property_random_sweeps --device cuda:0 --seed 7           the case that is drawn from 7
//   property_random_sweeps --device cuda:0 --seconds 600 [--most 4000000] [--from 1]
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <sstream>

#include "contract/tridiagonal/devices.hpp"
#include "property/random_arguments.hpp"
#include "property/random_sweep_case.hpp"
#include "support/random.hpp"

namespace trifold::tests {
namespace {

constexpr std::int64_t usual_most = 30000;
RandomArguments arguments{.most = usual_most};

/// Fields with values drawn from the case's seed; gaps hold a number that nobody else writes, or none.
template <class T>
struct Fields {
    SweepCase how;
    T gap;
    std::vector<T> u, k, source;

    explicit Fields(const SweepCase& drawn, T between = T(-1234.5)) : how(drawn), gap(between), u(static_cast<std::size_t>(how.elements), gap), k(static_cast<std::size_t>(how.shape.points())), source(k.size()) {
        Random random(how.seed ^ 0x5eed);
        for (std::int64_t at = 0; at < how.shape.points(); ++at) {
            u[place(at)] = static_cast<T>(random.uniform(-1, 1));
            k[static_cast<std::size_t>(at)] = static_cast<T>(random.uniform(0.2, 2)), source[static_cast<std::size_t>(at)] = static_cast<T>(random.uniform(-1, 1));
        }
    }

    /// Of the point with this number, x fastest.
    std::size_t place(std::int64_t at) const {
        const MeshShape& s = how.shape;
        return static_cast<std::size_t>(at % s.x * how.strides[0] + at / s.x % s.y * how.strides[1] + at / s.x / s.y % s.z * how.strides[2] + at / s.x / s.y / s.z * how.strides[3]);
    }
    std::int64_t each() const { return how.shape.x * how.shape.y * how.shape.z; }

    SweepOutcome run(Queue& queue, std::int64_t steps, std::int64_t first_step) {
        std::array<std::int64_t, 4> of_k = Field<T>::packed(k.data(), how.shape).stride, of_source = of_k;
        if (how.one_k) of_k[3] = 0;
        if (how.one_source) of_source[3] = 0;
        const AnyField fields[] = {Field<T>::strided(u.data(), how.strides, how.sides), Field<const T>::strided(k.data(), of_k, how.mirrored), Field<const T>::strided(source.data(), of_source, how.mirrored)};
        return sweep(queue, {how.shape, fields, how.sweeps, how.parameters}, steps, {.first_step = first_step});
    }

    /// One of its meshes, by itself.
    Fields alone(std::int64_t mesh) const {
        SweepCase one = how;
        one.shape.meshes = 1;
        Fields out(one);
        for (std::int64_t at = 0; at < each(); ++at) {
            out.u[out.place(at)] = u[place(mesh * each() + at)];
            const auto from = static_cast<std::size_t>(mesh * each() + at), to = static_cast<std::size_t>(at);
            out.k[to] = k[how.one_k ? to : from], out.source[to] = source[how.one_source ? to : from];
        }
        return out;
    }

    bool gaps_are_whole() const {
        std::vector<bool> used(u.size());
        for (std::int64_t at = 0; at < how.shape.points(); ++at) used[place(at)] = true;
        for (std::size_t at = 0; at < u.size(); ++at)
            if (!used[at] && std::memcmp(&u[at], &gap, sizeof(T)) != 0) return false;
        return true;
    }
};

template <class T>
std::string attempt_as(Queue& queue, Queue& peer, const SweepCase& how) {
    std::ostringstream out;
    const Fields<T> before(how);
    Fields<T> ours = before;
    const SweepOutcome outcome = ours.run(queue, how.steps, how.first_step);
    if (outcome.reason != Reason::exact || outcome.failures != 0) out << "says " << trifold::name_of(outcome.reason) << ", " << outcome.failures << " failures, sweep " << outcome.sweep << ", axis " << outcome.axis << "\n";
    if (ours.k != before.k || ours.source != before.source) out << "a field that is read has changed\n";
    if (!ours.gaps_are_whole()) out << "what lies between rows has changed\n";
    Fields<T> expected = before;
    if (!expected.run(peer, how.steps, how.first_step).ok()) return out.str() + "and the peer fails\n";
    double largest = 0, off = 0;
    std::int64_t worst = 0;
    for (std::int64_t at = 0; at < how.shape.points(); ++at) {
        const auto a = static_cast<double>(ours.u[ours.place(at)]), b = static_cast<double>(expected.u[ours.place(at)]);
        largest = std::max(largest, std::abs(b));
        if (!(std::abs(a - b) <= off)) off = std::abs(a - b), worst = at;
        if (std::isnan(off)) break;
    }
    const double allowed = 200 * std::numeric_limits<T>::epsilon() * largest;
    if (!(off <= allowed)) out << "point " << worst << " is off by " << off << ", where " << allowed << " is allowed\n";
    if (out.tellp() > 0) return out.str();

    Fields<T> elsewhere(how, std::numeric_limits<T>::quiet_NaN());
    elsewhere.run(queue, how.steps, how.first_step);
    if (!elsewhere.gaps_are_whole()) out << "what lies between rows has changed where it is no number\n";
    for (std::int64_t at = 0; at < how.shape.points(); ++at)
        if (std::memcmp(&elsewhere.u[elsewhere.place(at)], &ours.u[ours.place(at)], sizeof(T)) != 0) {
            out << "point " << at << " has other bits where something else lies between rows\n";
            break;
        }

    if (how.steps > 1) {
        Fields<T> pieces = before;
        const std::int64_t first = 1 + static_cast<std::int64_t>(how.seed % static_cast<std::uint64_t>(how.steps - 1));
        pieces.run(queue, first, how.first_step), pieces.run(queue, how.steps - first, how.first_step + first);
        if (std::memcmp(pieces.u.data(), ours.u.data(), ours.u.size() * sizeof(T)) != 0) out << first << " steps and " << how.steps - first << " have other bits than " << how.steps << "\n";
    }
    if (how.shape.meshes > 1 && !how.asks_mesh) {
        const std::int64_t mesh = static_cast<std::int64_t>(how.seed / 7 % static_cast<std::uint64_t>(how.shape.meshes));
        Fields<T> one = before.alone(mesh);
        one.run(queue, how.steps, how.first_step);
        const Fields<T> there = ours.alone(mesh);
        std::int64_t differ = 0, first = -1;
        double apart = 0;
        for (std::int64_t at = 0; at < one.each(); ++at) {
            const T a = one.u[one.place(at)], b = there.u[there.place(at)];
            if (a == b) continue;
            if (differ++ == 0) first = at;
            apart = std::max(apart, std::abs(static_cast<double>(a) - static_cast<double>(b)));
        }
        if (differ > 0) out << "mesh " << mesh << " has other bits alone at " << differ << " of " << one.each() << " points, first at " << first << ", up to " << apart << " apart\n";
    }
    if (how.bad) {
        Fields<T> spoilt = before;
        const std::int64_t mesh = static_cast<std::int64_t>(how.seed / 3 % static_cast<std::uint64_t>(how.shape.meshes)), at = mesh * spoilt.each() + static_cast<std::int64_t>(how.seed / 11 % static_cast<std::uint64_t>(spoilt.each()));
        spoilt.u[spoilt.place(at)] = std::numeric_limits<T>::quiet_NaN();
        const SweepOutcome told = spoilt.run(queue, how.steps, how.first_step);
        if (told.reason != Reason::not_finite || told.failures < 1 || told.mesh != mesh || told.step != how.first_step || told.sweep != 0)
            out << "NaN in mesh " << mesh << ": says " << trifold::name_of(told.reason) << ", " << told.failures << " failures, mesh " << told.mesh << ", step " << told.step << ", sweep " << told.sweep << "\n";
        for (std::int64_t other = 0; other < how.shape.points(); ++other)
            if (other / spoilt.each() != mesh && !std::isfinite(spoilt.u[spoilt.place(other)])) {
                out << "NaN in mesh " << mesh << " spoils mesh " << other / spoilt.each() << "\n";
                break;
            }
    }
    return out.str();
}

// Empty where it went as promised.
std::string report(const std::string& device, std::uint64_t seed) {
    const SweepCase drawn = draw_sweeps(seed, arguments.most);
    if (arguments.loud) std::fprintf(stderr, "%llu: %s\n", static_cast<unsigned long long>(seed), drawn.text().c_str());
    Queue queue(context(), device), peer(context(), device == "cpu" || drawn.shape.points() <= 200000 ? "reference" : "cpu");
    std::string wrong;
    try {
        wrong = drawn.dtype == DType::f32 ? attempt_as<float>(queue, peer, drawn) : attempt_as<double>(queue, peer, drawn);
    } catch (const std::exception& error) {
        wrong = std::string("the test stopped: ") + error.what() + "\n";
    }
    if (wrong.empty()) return "";
    return drawn.text() + "\n" + wrong + "again: property_random_sweeps --device " + device + " --seed " + std::to_string(seed) + " --most " + std::to_string(arguments.most) + "\n";
}

// As many as go into the seconds; the first few failures are shown.
int cases(const std::string& device, std::uint64_t from, double seconds) {
    const auto start = std::chrono::steady_clock::now();
    int failed = 0;
    std::uint64_t done = 0;
    for (; failed < 12 && std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds; ++done) {
        const std::string text = report(device, from + done);
        if (text.empty()) continue;
        ++failed;
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(from + done), text.c_str());
        std::fflush(stdout);
    }
    std::printf("%s: %llu cases from seed %llu, %d failed\n", device.c_str(), static_cast<unsigned long long>(done), static_cast<unsigned long long>(from), failed);
    return failed;
}

class RandomSweeps : public OnMeshDevice {};

TEST_P(RandomSweeps, AreAsPromised) {
    if (GetParam() == "reference") GTEST_SKIP() << "what others are compared with";
    EXPECT_EQ(cases(GetParam(), arguments.first_seed(), 8), 0);
}

TRIFOLD_ON_EVERY_DEVICE(RandomSweeps);

}  // namespace
}  // namespace trifold::tests

int main(int count, char** values) {
    using namespace trifold::tests;
    return run_drawn(arguments, count, values, "[--device NAME] [--seed N | --seconds S [--from N]] [--most POINTS] [--loud 1]", [](std::uint64_t seed) { return draw_sweeps(seed, arguments.most).text(); }, report,
                     [](const std::string& device, std::uint64_t from, double seconds) { return cases(device, from, seconds); });
}
