// SPDX-License-Identifier: BSD-3-Clause
#include "backends/opencl/tridiagonal/by_host.hpp"

#include <bit>
#include <memory>
#include <vector>

#include "backends/opencl/tridiagonal/accepts.hpp"
#include "backends/opencl/tridiagonal/batch.hpp"
#include "backends/opencl/tridiagonal/chunks.hpp"
#include "backends/opencl/tridiagonal/coupled.hpp"
#include "backends/opencl/tridiagonal/enqueued.hpp"
#include "backends/opencl/tridiagonal/spike.hpp"
#include "families/tridiagonal/two_pass.hpp"

namespace trifold::opencl {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Ops;
using tridiagonal::System;

namespace {

// Puts an outcome that the host knows into the device's memory, where it is looked for.
bool tell(int device, const System& system, const Launch& launch, void* outcome, Failure& failure, const Outcome& said) {
    return enqueued(device, system, launch, outcome, failure, [&](Call& call) {
        Found value{};
        value.first = said.failures ? static_cast<unsigned>(system.number) : ~0u;
        value.failures = static_cast<unsigned>(said.failures), value.rescued = 0;
        value.reason = static_cast<int>(said.reason), value.row = said.row, value.rows = system.rows, value.systems = 1;
        value.branch = static_cast<word>(tridiagonal::algorithm_from(said.branch));
        value.tried_other = said.tried_other;
        value.residual = said.residual == said.residual ? std::bit_cast<word>(said.residual) : 0;
        call.store(value);
        if (!launch.status) return;
        const Place place = place_of(launch.status + system.number);
        const auto reason = static_cast<std::int8_t>(said.reason);
        call.on.queue.enqueueWriteBuffer(place.buffer, CL_TRUE, place.offset, 1, &reason);
    });
}

}  // namespace

bool couple_on_host(int device, const System& system, const Launch& launch, void* outcome, Failure& failure) {
    OwnMemory memory{launch.scratch, launch.scratch_bytes, outcome, launch.stream};
    Ops verbs;
    verbs.device = found(device).name.c_str();
    verbs.number = device;
    verbs.refuses = refuses;
    verbs.workspace = [](const System&, Algorithm, int) { return std::size_t{0}; };  // the host has nothing of it
    verbs.solve = [](const System& one, Algorithm algorithm, const Launch& how, Outcome& said) {
        const auto& own = *static_cast<const OwnMemory*>(how.stream);
        Launch there = how;
        there.scratch = own.scratch, there.scratch_bytes = own.bytes, there.stream = own.queue;
        Found what{};
        guarded("solving", *how.failure, [&] {
            Call call(open_device(how.device), one, there, own.outcome);
            call.make();
            enqueue_batch(call, algorithm);
            call.read_outcome(what);
        });
        said = Outcome{};
        read_found(what, said);
    };
    verbs.reduce = reduce, verbs.finish = finish, verbs.restore = restore, verbs.corrects = true;
    Launch driver = launch;
    std::vector<std::byte> host(two_pass_workspace(verbs, system, 1, own_chunk_rows) + 64);
    void* aligned = host.data();
    std::size_t room = host.size();
    std::align(64, room - 64, aligned, room);
    driver.scratch = aligned, driver.scratch_bytes = room;
    driver.stream = &memory, driver.device = device, driver.failure = &failure, driver.status = nullptr;
    const Outcome said = solve_two_pass(verbs, system, driver, own_chunk_rows);
    return !failure.code && tell(device, system, launch, outcome, failure, said);
}

bool by_spike(int device, const System& system, Algorithm algorithm, const Launch& launch, void* outcome, Failure& failure) {
    Outcome said;
    const bool good = enqueued(device, system, launch, outcome, failure,
                               [&](Call& call) { solve_spike(call, algorithm, mapping_of(call.device.info.wide ? Kind::gpu : call.device.info.kind), said); });
    return good && tell(device, system, launch, outcome, failure, said);
}

}  // namespace trifold::opencl
