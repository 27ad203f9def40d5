// SPDX-License-Identifier: BSD-3-Clause
#include "bench/cuda/arguments.hpp"

#include <CLI/CLI.hpp>

namespace trifold::bench {

struct Arguments::Parser {
    CLI::App app;
};

Arguments::Arguments(const char* program, const char* says) : parser_(new Parser{CLI::App(says, program)}) {}
Arguments::~Arguments() = default;

void Arguments::text(const char* name, std::string& value, const char* says) { parser_->app.add_option(name, value, says); }
void Arguments::texts(const char* name, std::vector<std::string>& values, const char* says) { parser_->app.add_option(name, values, says)->allow_extra_args(false); }
void Arguments::count(const char* name, std::int64_t& value, std::int64_t least, std::int64_t most, const char* says) {
    parser_->app.add_option(name, value, says)->capture_default_str()->check(CLI::Range(least, most));
}
void Arguments::rounds(int& value, int least) { parser_->app.add_option("--rounds", value, "how often each is timed")->capture_default_str()->check(CLI::Range(least, 1000000)); }
void Arguments::flag(const char* name, bool& value, const char* says) { parser_->app.add_flag(name, value, says); }
void Arguments::clears(const char* name, bool& value, const char* says) {
    parser_->app.add_flag_callback(name, [&value] { value = false; }, says);
}
void Arguments::seconds(const char* name, double& value, const char* says) { parser_->app.add_option(name, value, says)->check(CLI::PositiveNumber); }
void Arguments::one_of(const char* name, std::string& value, const std::vector<std::string>& known, const char* says) { parser_->app.add_option(name, value, says)->check(CLI::IsMember(known)); }
void Arguments::parts(std::vector<std::string>& chosen, const std::vector<std::string>& known) { parser_->app.add_option("part", chosen, "what to measure; else all")->check(CLI::IsMember(known)); }

void Arguments::common(std::string& json, std::int64_t& rows, std::int64_t least_rows, int* rounds) {
    text("--json", json, "where the record is written");
    count("--rows", rows, least_rows, std::int64_t{1} << 32, "of all systems together, at most");
    if (rounds) this->rounds(*rounds, 1);
}

std::optional<int> Arguments::parse(int argc, const char* const* argv) {
    try {
        parser_->app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        const int status = parser_->app.exit(error);
        return status == 0 ? 0 : 2;
    }
}

bool is_asked_for(const std::string& list, const std::string& name) {
    const auto between_commas = [](const std::string& text) { return std::string(1, ',').append(text).append(1, ','); };
    return list.empty() || between_commas(list).find(between_commas(name)) != std::string::npos;
}

}  // namespace trifold::bench
