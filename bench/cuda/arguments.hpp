// SPDX-License-Identifier: BSD-3-Clause
// The command line of a benchmark program for a GPU. Read by a file of its own: nvcc need not compile the library that does it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trifold::bench {

class Arguments {
public:
    Arguments(const char* program, const char* says);
    ~Arguments();

    void text(const char* name, std::string& value, const char* says);
    void texts(const char* name, std::vector<std::string>& values, const char* says);
    /// From `least` to `most`, both of them allowed.
    void count(const char* name, std::int64_t& value, std::int64_t least, std::int64_t most, const char* says);
    void rounds(int& value, int least);
    void flag(const char* name, bool& value, const char* says);
    void clears(const char* name, bool& value, const char* says);
    void seconds(const char* name, double& value, const char* says);
    void one_of(const char* name, std::string& value, const std::vector<std::string>& known, const char* says);
    /// Words without a name, of those that are known: what is to be measured.
    void parts(std::vector<std::string>& chosen, const std::vector<std::string>& known);

    /// --json FILE, --rows COUNT and --rounds N, as most of these programs have them.
    void common(std::string& json, std::int64_t& rows, std::int64_t least_rows, int* rounds = nullptr);

    /// The exit status, where the program is to end: for help, or what is wrong was said.
    std::optional<int> parse(int argc, const char* const* argv);

private:
    struct Parser;
    std::unique_ptr<Parser> parser_;
};

/// Whether `name` is in a list of names with commas between them, or that is empty.
bool is_asked_for(const std::string& list, const std::string& name);

}  // namespace trifold::bench
