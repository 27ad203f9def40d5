// SPDX-License-Identifier: BSD-3-Clause
// Solves on a device with memory of its own, without one: its memory is the heap's, its addresses are known only to it, and the
// oracle computes. What is copied, packed and put back is tested here; kernels are tested by the contract suite on a real one.
#include <cmath>
#include <cstring>
#include <map>

#include "api/device_matrix.hpp"
#include "api/device_solve.hpp"
#include "api/device_sweep.hpp"
#include "api/tabulate.hpp"
#include "backends/registry.hpp"
#include "contract/tridiagonal/devices.hpp"
#include "contract/tridiagonal/trial.hpp"
#include "devices/context_state.hpp"
#include "problems/tridiagonal/normalise.hpp"

namespace trifold::tests {
namespace {

using tridiagonal::Algorithm;
using tridiagonal::Launch;
using tridiagonal::Ops;
using tridiagonal::System;

std::map<const char*, std::size_t> blocks;
std::size_t free_bytes = std::size_t{1} << 30;
bool unwilling = false;  // to tell where an array lies
int copies_left = -1;    // until one fails; -1 = none does

bool allowed(Failure& failure) { return copies_left != 0 ? (copies_left -= copies_left > 0, true) : failure.say(ErrorCode::device_unavailable, "the link has gone"); }

bool is_theirs(const void* address) {
    for (const auto& [data, bytes] : blocks)
        if (address >= data && address < data + bytes) return true;
    return false;
}

const Ops& oracle() { return *static_cast<const Ops*>(find_cell(device_at(find_device("reference")), "tridiagonal").ops); }

const devices::Runtime& heap() {
    static const devices::Runtime table = [] {
        devices::Runtime r;
        r.allocate = [](int, std::size_t bytes, void** memory, Failure& failure) {
            if (bytes > free_bytes) return failure.say(ErrorCode::bad_input, "too much asked for");
            char* const data = static_cast<char*>(::operator new(bytes, std::align_val_t{256}));
            std::memset(data, 0xff, bytes);  // NaN
            blocks[data] = bytes;
            *memory = data;
            return true;
        };
        r.release = [](int, void* memory) {
            blocks.erase(static_cast<char*>(memory));
            ::operator delete(memory, std::align_val_t{256});
        };
        r.memory_info = [](int, std::size_t* free, std::size_t* total, Failure&) { return *free = free_bytes, *total = 2 * free_bytes, true; };
        r.where = [](int, const void* address, Memory* found, Failure& failure) {
            if (unwilling) return failure.say(ErrorCode::device_unavailable, "it does not tell where an array lies");
            return *found = is_theirs(address) ? Memory{MemoryKind::device, 0} : Memory{}, true;
        };
        r.copy = [](int, void*, void* to, const void* from, std::size_t bytes, Failure& failure) { return allowed(failure) && (std::memcpy(to, from, bytes), true); };
        r.copy_strided = [](int, void*, const devices::StridedCopy& copy, Failure& failure) {
            if (!is_theirs(copy.from) || !is_theirs(copy.to)) return failure.say(ErrorCode::internal, "an array of the host reached the device");
            return allowed(failure) && (tridiagonal::copy_on_host(copy, 1), true);
        };
        r.synchronize = [](int, void*, Failure&) { return true; };
        r.enter = [](int, void*, bool, bool* capturing, Failure&) { return *capturing = false, true; };
        r.mark = [](int, void*, void**, Failure&) { return true; };
        r.seconds = [](int, void*, void*, double* seconds, Failure&) { return *seconds = 1, true; };
        r.release_mark = [](int, void*) {};
        return r;
    }();
    return table;
}

bool enqueue(int, const System& system, Algorithm, const Launch& launch, void* outcome, Failure& failure) {
    for (const tridiagonal::Operand* operand : {&system.lower, &system.diag, &system.upper, &system.rhs, &system.x})
        if (operand->kind == tridiagonal::Operand::Kind::view && !is_theirs(static_cast<char*>(operand->data) + (operand == &system.lower ? 8 : 0)))
            return failure.say(ErrorCode::internal, "an array of the host reached the device");
    if (launch.status && !is_theirs(launch.status)) return failure.say(ErrorCode::internal, "a status of the host reached the device");
    Outcome found;
    oracle().solve(system, Algorithm::lu, launch, found);
    std::memcpy(outcome, &found, sizeof found);
    return true;
}

bool mesh_run(int, const mesh::Checked& checked, std::int64_t first_step, std::int64_t steps, const Launch& launch, SweepOutcome& outcome, Failure& failure) {
    for (const AnyField& field : checked.problem->fields)
        if (!is_theirs(field.data)) return failure.say(ErrorCode::internal, "a field of the host reached the device");
    if (!is_theirs(launch.scratch)) return failure.say(ErrorCode::internal, "scratch of the host reached the device");
    oracle().mesh_sweep(checked, first_step, steps, launch, outcome);
    return true;
}

const Ops& ops() {
    static const Ops table = [] {
        Ops t;
        t.device = "heap:0";
        t.refuses = [](const System&, Algorithm) -> const char* { return nullptr; };
        t.workspace = [](const System& system, Algorithm, int) { return oracle().workspace(system, Algorithm::lu, 1); };
        t.outcome_bytes = sizeof(Outcome);
        t.enqueue = enqueue;
        t.read_outcome = [](const void* copy, Outcome& outcome) { std::memcpy(&outcome, copy, sizeof outcome); };
        t.mesh_scratch = [](int, const mesh::Checked& checked, std::size_t* bytes, Failure&) { return *bytes = oracle().mesh_bytes(checked, 1), true; };
        t.mesh_run = mesh_run;
        return t;
    }();
    return table;
}

Device heap_device() {
    Device device{"heap:0", nullptr, false, nullptr, {}, 0, &heap()};
    return device;
}

// A Context whose device memory goes before the test's map of it does.
struct DeviceSolve : testing::Test {
    Context own{{.threads = 2, .profile_path = "none", .log = {}}};
    Queue queue{own, "cpu"};

    template <class T>
    Outcome solve(const Trial<T>& trial, const tridiagonal::Options& options = {}) {
        const System system = tridiagonal::normalise(trial.problem());
        tridiagonal::DeviceTimes times;
        return tridiagonal::solve_on_device(queue, heap_device(), ops(), system, trial.problem().matrix.transposed, Algorithm::automatic, {}, options,
                                            true, times);
    }

    template <class T>
    void attempt(const Recipe& recipe) {
        Trial<T> trial(recipe);
        std::vector<std::int8_t> status(static_cast<std::size_t>(trial.systems()), 77);
        tridiagonal::Options options;
        options.status = status.data();
        trial.expect_solved(solve(trial, options), &status);
    }

    /// With a workspace that is none of the device.
    void solve_in_host_memory(const Trial<double>& trial) {
        alignas(256) static std::byte host[1 << 16];
        tridiagonal::Options options;
        options.workspace = {host, sizeof host};
        solve(trial, options);
    }
};

TEST_F(DeviceSolve, CopiesEveryLayoutThereAndBack) {
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
        Recipe recipe = random_recipe(seed);
        recipe.periodic = recipe.accumulate = false;
        if (!recipe.lengths.empty() || recipe.rows == 0) continue;
        for (Source* source : {&recipe.lower, &recipe.diag, &recipe.upper})
            if (*source == Source::generator) *source = Source::full;
        if (Trial<float>(recipe).systems() == 0) continue;
        attempt<double>(recipe);
        attempt<float>(recipe);
        ASSERT_FALSE(HasFailure()) << "seed " << seed << ": " << recipe.text();
        ++tried;
    }
    EXPECT_GT(tried, 2000);
}

TEST_F(DeviceSolve, SaysWhatFitsBeforeItAllocates) {
    for (const bool one : {false, true}) {
        Recipe recipe;
        recipe.rows = one ? 100000 : 1000;
        if (!one) recipe.batch = {100};
        Trial<double> trial(recipe);
        free_bytes = 1000 * 50 * 40;
        try {
            solve(trial);
            ADD_FAILURE() << "more than there is was allocated";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_input);
            const char* const expected = one ? "of the 1e+05 rows fit" : "of the 100 systems fit: solve so many at a time";
            EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
        }
        free_bytes = std::size_t{1} << 30;
        EXPECT_TRUE(trial.surroundings_untouched());
    }
}

TEST_F(DeviceSolve, DoesWithLessWhereThereIsNotMore) {
    Recipe recipe;
    recipe.rows = 1000, recipe.batch = {100};
    Trial<double> trial(recipe);
    Ops spendthrift = ops();
    spendthrift.workspace = [](const System& system, Algorithm, int) { return oracle().workspace(system, Algorithm::lu, 1) + (std::size_t{1} << 30); };
    const System system = tridiagonal::normalise(trial.problem());
    const auto solve_with = [&] {
        tridiagonal::DeviceTimes times;
        return tridiagonal::solve_on_device(queue, heap_device(), spendthrift, system, false, Algorithm::automatic, {}, {}, true, times);
    };
    free_bytes = std::size_t{1} << 30;
    EXPECT_THROW(solve_with(), Error);
    spendthrift.least_workspace = [](const System& of, Algorithm) { return oracle().workspace(of, Algorithm::lu, 1); };
    trial.expect_solved(solve_with());
}

TEST_F(DeviceSolve, NamesAWorkspaceThatIsNoneOfTheDevice) {
    Recipe recipe;
    recipe.rows = 100;
    Trial<double> trial(recipe);
    EXPECT_THROW(
        {
            try {
                solve_in_host_memory(trial);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::usage);
                EXPECT_EQ(error.where(), "Options::workspace");
                throw;
            }
        },
        Error);
}

TEST_F(DeviceSolve, SaysThatTheDriverDoesNotTellWhereItLies) {
    Recipe recipe;
    recipe.rows = 100;
    Trial<double> trial(recipe);
    unwilling = true;
    try {
        solve_in_host_memory(trial);
        ADD_FAILURE() << "it was not asked";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::device_unavailable) << error.what();
        EXPECT_NE(std::string(error.what()).find("where an array lies"), std::string::npos) << error.what();
    }
    unwilling = false;
    EXPECT_TRUE(trial.surroundings_untouched());
}

// ---- matrices that are kept ----

using tridiagonal::DeviceMatrix;

/// A matrix whose arrays count as the device's own while this lives, or are the host's.
template <class T>
class Given {
public:
    Given(Trial<T>& trial, bool there) : matrix(trial.matrix_behind_front()) {
        const Recipe& recipe = trial.recipe();
        const std::vector<std::int64_t> batch(recipe.batch.begin() + static_cast<std::ptrdiff_t>(recipe.front), recipe.batch.end());
        Coefficient* const bands[] = {&matrix.lower, &matrix.diag, &matrix.upper};
        for (int k = 0; k < 3; ++k) {
            if (const Generator* const generator = std::get_if<Generator>(bands[k])) {
                tables_[k].resize(static_cast<std::size_t>(recipe.rows * trial.systems()));
                *bands[k] = tridiagonal::tabulated(Generator(*generator), recipe.rows, batch, dtype_of<T>, tables_[k].data(), 2);
            } else {
                lies_there[k] = there && std::holds_alternative<AnyView>(*bands[k]);
            }
        }
        if (!there) return;
        for (const std::span<T> array : trial.memory()) {
            const char* const data = reinterpret_cast<const char*>(array.data());
            blocks[data] = array.size_bytes(), theirs_.push_back(data);
        }
    }
    ~Given() {
        for (const char* const data : theirs_) blocks.erase(data);
    }
    Given(const Given&) = delete;
    Given& operator=(const Given&) = delete;

    tridiagonal::Matrix matrix;
    bool lies_there[3] = {};

private:
    std::vector<T> tables_[3];
    std::vector<const char*> theirs_;
};

template <class T>
void expect_kept(const Trial<T>& trial, const tridiagonal::Matrix& kept) {
    const Recipe& recipe = trial.recipe();
    const std::int64_t n = recipe.rows;
    EXPECT_FALSE(kept.transposed);
    EXPECT_EQ(kept.periodic, recipe.periodic);
    for (std::int64_t k = 0; k < trial.systems(); ++k) {
        const Bands<double> expected = trial.system(k);
        const auto entry = [&](const Coefficient& band, std::int64_t i) {
            if (const double* const number = std::get_if<double>(&band)) return static_cast<double>(static_cast<T>(*number));
            const AnyView& view = std::get<AnyView>(band);
            std::int64_t at = i * view.axis.stride, rest = k;
            for (std::size_t d = recipe.batch.size(); d-- > recipe.front;) {
                const Dim& dim = view.batch[d - recipe.front];
                EXPECT_TRUE(dim.extent == recipe.batch[d] || (dim.extent == 1 && dim.stride == 0));
                at += rest % recipe.batch[d] * dim.stride, rest /= recipe.batch[d];
            }
            const T* const address = static_cast<const T*>(view.data) + at;
            EXPECT_TRUE(is_theirs(address));
            return static_cast<double>(*address);
        };
        const auto outside = [&](const Coefficient& band) {
            const AnyView* const view = std::get_if<AnyView>(&band);
            return view && view->axis.stride != 0 && !recipe.periodic;
        };
        for (std::int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(entry(kept.diag, i), expected.diag[static_cast<std::size_t>(i)]) << "diag, row " << i << ", system " << k;
            if (i > 0 || recipe.periodic) { ASSERT_EQ(entry(kept.lower, i), expected.lower[static_cast<std::size_t>(i)]) << "lower, row " << i << ", system " << k; }
            if (i + 1 < n || recipe.periodic) { ASSERT_EQ(entry(kept.upper, i), expected.upper[static_cast<std::size_t>(i)]) << "upper, row " << i << ", system " << k; }
        }
        if (outside(kept.lower)) { ASSERT_EQ(entry(kept.lower, 0), 0) << "lower, system " << k; }
        if (outside(kept.upper)) { ASSERT_EQ(entry(kept.upper, n - 1), 0) << "upper, system " << k; }
    }
}

template <class T>
void keep_it(Context& own, DeviceMatrix& kept, const Recipe& recipe, bool there) {
    SCOPED_TRACE(recipe.text() + (there ? ", there" : ""));
    Trial<T> trial(recipe);
    {
        const Given<T> given(trial, there);
        const std::vector<std::int64_t> batch(recipe.batch.begin() + static_cast<std::ptrdiff_t>(recipe.front), recipe.batch.end());
        kept.keep(given.matrix, given.lies_there, recipe.rows, batch, own.state().scratch, own.threads());
    }
    expect_kept(trial, kept.layout().matrix);
    EXPECT_TRUE(trial.surroundings_untouched());
}

TEST_F(DeviceSolve, KeepsEveryMatrixAsItIs) {
    const Device device = heap_device();
    DeviceMatrix kept(device, nullptr);
    int tried = 0;
    for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
        Recipe recipe = random_recipe(seed);
        recipe.accumulate = false, recipe.mixed = recipe.mixed || seed % 3 == 0;
        if (!recipe.lengths.empty() || recipe.rows == 0 || Trial<float>(recipe).systems() == 0) continue;
        keep_it<double>(own, kept, recipe, seed % 2 == 0);
        keep_it<float>(own, kept, recipe, seed % 2 == 1);
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
        ++tried;
    }
    EXPECT_GT(tried, 2000);
}

TEST_F(DeviceSolve, KeepsAMatrixWhereTheLastOneLay) {
    const Device device = heap_device();
    DeviceMatrix kept(device, nullptr);
    AnyView first[3];
    for (const std::uint64_t seed : {1, 2, 3}) {
        Recipe recipe;
        recipe.rows = 30, recipe.batch = {20}, recipe.upper = Source::shared, recipe.seed = seed;
        recipe.layout = seed == 1 ? Layout::interleaved : seed == 2 ? Layout::contiguous : Layout::scattered, recipe.transposed = seed == 3;
        if (recipe.transposed) std::swap(recipe.lower, recipe.upper);
        keep_it<double>(own, kept, recipe, seed == 2);
        int k = 0;
        for (const Coefficient* const band : {&kept.layout().matrix.lower, &kept.layout().matrix.diag, &kept.layout().matrix.upper}) {
            const AnyView& view = std::get<AnyView>(*band);
            if (seed == 1) first[k] = view;
            EXPECT_EQ(view.data, first[k].data);
            EXPECT_EQ(view.axis, first[k].axis);
            EXPECT_EQ(view.batch, first[k++].batch);
        }
    }
}

TEST_F(DeviceSolve, AMatrixThatCannotBeKeptLeavesNothingBehind) {
    const std::size_t before = blocks.size();
    {
        const Device device = heap_device();
        DeviceMatrix kept(device, nullptr);
        Recipe recipe;
        recipe.rows = 30, recipe.batch = {20}, recipe.layout = Layout::scattered;
        Trial<double> trial(recipe);
        const auto keep = [&](bool there) {
            const Given<double> given(trial, there);
            kept.keep(given.matrix, given.lies_there, recipe.rows, recipe.batch, own.state().scratch, own.threads());
        };
        const auto refused = [&](bool there, ErrorCode code) {
            try {
                keep(there);
                return false;
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), code) << error.what();
                EXPECT_NE(std::string(error.what()).find("heap:0"), std::string::npos) << error.what();
                return true;
            }
        };
        free_bytes = 1000;
        EXPECT_TRUE(refused(false, ErrorCode::bad_input));
        free_bytes = std::size_t{1} << 30;
        EXPECT_EQ(blocks.size(), before);
        for (const bool there : {false, true}) {
            int failed = 0;
            for (copies_left = 0; refused(there, ErrorCode::device_unavailable); copies_left = ++failed) {}
            EXPECT_GE(failed, 6);  // three bands, and a zero each
            copies_left = -1;
            keep(there);
            expect_kept(trial, kept.layout().matrix);
        }
        EXPECT_EQ(blocks.size(), before + 3);
    }
    EXPECT_EQ(blocks.size(), before);
}

// ---- sweeps ----

TRIFOLD_POINT_FUNCTION(spread, { out(0) = at(0, 0, 0, 0) + p(0) * (at(0, -1, 0, 0) + at(0, 0, 1, 0) + at(1, 0, 0, 1) + at(2, 0, 0, 0)); })

// Packed, with gaps, with x slowest, shared among meshes, the same array twice; u on the host or on the device already.
TEST_F(DeviceSolve, BringsFieldsThereAndTargetsBack) {
    const MeshShape shape{5, 4, 3, 2};
    const auto points = static_cast<std::size_t>(shape.points());
    const std::array<std::int64_t, 4> layouts[] = {{1, 5, 20, 60}, {1, 7, 28, 90}, {12, 3, 1, 60}};
    const std::vector<Sweep> sweeps{{spread, {{0, {-0.3, 2, -0.2}}, {2, {-0.1, 1, 0}}}, {}, 0, {}}};
    const std::vector<double> parameters{0.25};
    for (const auto& u_strides : layouts)
        for (const std::array<std::int64_t, 4>& k_strides : {layouts[0], layouts[1], std::array<std::int64_t, 4>{1, 5, 0, 0}, std::array<std::int64_t, 4>{0, 0, 0, 1}})
            for (const bool there : {false, true}) {
                std::vector<double> u(200), k(200), expected;
                for (std::size_t i = 0; i < u.size(); ++i) u[i] = std::cos(static_cast<double>(i)), k[i] = std::sin(static_cast<double>(i));
                expected = u;
                const auto fields = [&](double* target) {
                    return std::vector<AnyField>{Field<double>::strided(target, u_strides), Field<const double>::strided(k.data(), k_strides),
                                                 Field<const double>::strided(target, u_strides)};
                };
                const std::vector<AnyField> own = fields(expected.data());
                Queue reference(context(), "reference");
                ASSERT_TRUE(sweep(reference, {shape, own, sweeps, parameters}, 3).ok());

                double* const theirs = there ? static_cast<double*>(::operator new(200 * sizeof(double), std::align_val_t{256})) : u.data();
                if (there) std::copy(u.begin(), u.end(), theirs), blocks[reinterpret_cast<char*>(theirs)] = 200 * sizeof(double);
                const std::vector<AnyField> used = fields(theirs);
                const MeshProblem problem{shape, used, sweeps, parameters};
                const SweepOutcome outcome = sweep_on_device(queue, heap_device(), ops(), mesh::check(problem), 0, 3);
                if (there) {
                    std::copy(theirs, theirs + 200, u.begin());
                    blocks.erase(reinterpret_cast<char*>(theirs));
                    ::operator delete(theirs, std::align_val_t{256});
                }
                ASSERT_EQ(outcome.reason, Reason::exact);
                ASSERT_STREQ(outcome.device, "heap:0");
                ASSERT_EQ(u, expected) << "what lies between the points included; " << points << " points";
            }
}

TEST_F(DeviceSolve, AFieldThatSaysItLiesThereMustDoSo) {
    std::vector<double> u(8, 1.0);
    AnyField field = Field<double>::packed(u.data(), {8});
    field.memory = {MemoryKind::device, 0};
    const std::vector<Sweep> sweeps{{{}, {{0, {-1, 3, -1}}}, {}, 0, {}}};
    const MeshProblem problem{{8}, std::span(&field, 1), sweeps, {}};
    EXPECT_THROW(sweep_on_device(queue, heap_device(), ops(), mesh::check(problem, {MemoryKind::device, 0}), 0, 1), Error);
}

}  // namespace
}  // namespace trifold::tests
