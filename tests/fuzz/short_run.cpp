// SPDX-License-Identifier: BSD-3-Clause
// The fuzz targets for a second each, from good inputs that are cut, flipped, repeated and crossed; always the same
// ones.
#include <gtest/gtest.h>
#include <omp.h>
#include <stdlib.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "io/generators/generator.hpp"
#include "io/npz.hpp"
#include "io/tridiagonal_data.hpp"
#include "targets.hpp"

namespace trifold::fuzz {
namespace {

using Target = void (*)(const std::uint8_t*, std::size_t);

class Mutator {
public:
    Mutator(std::vector<std::string> seeds, std::vector<std::string> words)
        : seeds_(std::move(seeds)), words_(std::move(words)) {}

    std::string next() {
        std::string text = pick(seeds_);
        for (std::size_t changes = below(5); changes > 0; --changes) change(text);
        return text;
    }

private:
    std::size_t below(std::size_t bound) { return bound ? random_() % bound : 0; }
    const std::string& pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

    void change(std::string& text) {
        const std::size_t at = below(text.size() + 1), length = below(std::min<std::size_t>(text.size() - at, 16) + 1);
        switch (below(8)) {
        case 0:
            text.resize(at);
            break;
        case 1:
            if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
            break;
        case 2:
            if (at < text.size()) text[at] = static_cast<char>(random_());
            break;
        case 3:
            text.erase(at, length);
            break;
        case 4:
            text.insert(at, pick(words_));
            break;
        case 5:
            text.insert(at, text.substr(below(text.size() + 1), length));
            break;
        case 6:
            text.replace(at, length, pick(words_));
            break;
        case 7: {
            const std::string& other = pick(seeds_);
            text = text.substr(0, at) + other.substr(std::min(at, other.size()));
            break;
        }
        }
    }

    std::vector<std::string> seeds_, words_;
    std::mt19937 random_{20240607};
};

// As many inputs as a second allows, at least 2000; the sequence itself is always the same.
void run(Target target, std::vector<std::string> seeds, std::vector<std::string> words) {
    omp_set_num_threads(1);  // small inputs: teams would take longer than the work
    for (const std::string& seed : seeds) target(reinterpret_cast<const std::uint8_t*>(seed.data()), seed.size());
    Mutator mutator(std::move(seeds), std::move(words));
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    int done = 0;
    for (; done < 2000 || std::chrono::steady_clock::now() < end; ++done) {
        const std::string input = mutator.next();
        target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    }
    testing::Test::RecordProperty("inputs", done);
}

std::string npy_of(const char* type, const char* shape, std::size_t bytes, const char* order = "False") {
    std::string dict =
        std::string("{'descr': '") + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
    std::string text("\x93NUMPY\1\0", 8);
    text += {static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
    return text + dict + std::string(bytes, '\1');
}

std::vector<std::string> npy_seeds() {
    return {npy_of("<f8", "(3,)", 24), npy_of("<f4", "(2, 3)", 24, "True"), npy_of("<f8", "()", 8),
            npy_of("<f8", "(0, 5)", 0), npy_of("|O", "(1,)", 8)};
}

const std::vector<std::string> npy_words{"<f8",     "<f4",
                                         ">f8",     "<c16",
                                         "True",    "False",
                                         "(",       ")",
                                         ",",       "'shape'",
                                         "'descr'", "{",
                                         "}",       "9223372036854775807",
                                         "-1",      std::string("\xff\xff", 2)};

TEST(Fuzz, Npy) {
    run(npy, npy_seeds(), npy_words);
}

TEST(Fuzz, Npz) {
    std::string folder = (std::filesystem::temp_directory_path() / "trifold-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const io::TridiagonalData data = io::load_tridiagonal("gen:toeplitz?rows=3");
    io::save_tridiagonal(folder + "/p.npz", data);
    std::ifstream file(folder + "/p.npz", std::ios::binary);
    const std::string stored{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove_all(folder);
    ASSERT_GT(stored.size(), 100u);
    std::vector<std::string> words = npy_words;
    words.insert(words.end(), {"PK\1\2", std::string("PK\3\4"), "PK\5\6", std::string("\0\0\0\0", 4),
                               std::string("\xff\xff\xff\xff", 4), std::string("\x08\0", 2), ".npy"});
    run(npz, {stored}, words);
}

TEST(Fuzz, GeneratorText) {
    std::vector<std::string> seeds{"gen:diffusion?rows=100&number=10&contrast=1e4&seed=1",
                                   "gen:random?shape=3x4x5&axis=1&zeros=0.5",
                                   "gen:toeplitz?rows=9&systems=3&matrix=scalar", "gen:zoo?number=14"},
        words{"&",   "?",   "=",      "x",         "gen:",  "1e308",         "-1",   "0", "99999999999999999999",
              "nan", "inf", "1e-320", "shape=2x2", "axis=", "matrix=shared", "seed="};
    for (const io::GeneratorKind* kind : io::generator_kinds()) {
        seeds.push_back("gen:" + std::string(kind->name));
        words.emplace_back(kind->name);
        for (const io::Parameter& parameter : kind->parameters) words.push_back(std::string(parameter.name) + "=");
    }
    run(generator, seeds, words);
}

}  // namespace
}  // namespace trifold::fuzz
