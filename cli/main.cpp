// SPDX-License-Identifier: BSD-3-Clause
// trifold: the command. Every way out is an exit code of README's table.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.hpp"
#include "build_info.hpp"
#include "common.hpp"
#include "families/tridiagonal/split/watch.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "trifold/error.hpp"

namespace trifold::cli {
namespace {

const char* const exit_codes =
    "\nExit codes: 0 ok, 1 internal, 2 usage, 3 bad input, 4 numerical (singular, not certified),\n"
    "5 device unavailable, 6 verification failed, 130 interrupted (128 + the signal).\n\n"
    "Examples:\n"
    "  trifold solve 'gen:diffusion?rows=100000&number=10&contrast=1e4&seed=1'\n"
    "  trifold solve problem.npz -o x.npy\n"
    "  trifold help solve\n";

// "Could not convert: --axis = x", of an option that takes a number.
std::string not_a_number(const CLI::App& where, const std::string& parser) {
    const std::size_t name = parser.find("--"), equals = parser.find(" = ");
    if (name == std::string::npos || equals == std::string::npos) return parser;
    const std::string option = parser.substr(name, equals - name);
    const CLI::Option* const known = where.get_option_no_throw(option);
    return option + ": '" + parser.substr(equals + 3) + "' is no " + (known && known->get_type_name() == "INT" ? "whole number" : "number");
}

constexpr const char* no_value = "is given without a value";

/// What the parser has found, in this command's words.
std::string words_of(const CLI::ParseError& error, const CLI::App& where, bool any_command) {
    const std::string words = error.what();
    if (!any_command && dynamic_cast<const CLI::RequiredError*>(&error)) return "no subcommand is named";
    if (dynamic_cast<const CLI::ConversionError*>(&error)) return not_a_number(where, words);
    if (const std::size_t colon = words.find(": "); dynamic_cast<const CLI::ArgumentMismatch*>(&error) && words.ends_with(" missing")) return words.substr(0, colon + 2) + no_value;
    return words;
}

// What was mistyped, and what was probably meant.
int usage_error(const CLI::App& app, const CLI::App* chosen, const CLI::ParseError& error) {
    const CLI::App& where = chosen ? *chosen : app;
    const std::string help = "see: trifold " + (chosen ? chosen->get_name() + " " : std::string()) + "--help";
    std::vector<std::string> rest = app.remaining(true);
    if (rest.empty()) {
        say(words_of(error, where, chosen != nullptr) + " (" + help + ")");
        return static_cast<int>(ErrorCode::usage);
    }
    const std::string wrong = rest.front().substr(0, rest.front().find('='));
    const bool option = wrong.starts_with("-");
    const std::string dashes = option ? "--" : "", name = wrong.substr(option ? std::min(wrong.find_first_not_of('-'), wrong.size()) : 0);  // dashes are no likeness
    std::vector<std::string> known;
    if (option)
        for (const CLI::Option* candidate : where.get_options()) {
            known.insert(known.end(), candidate->get_lnames().begin(), candidate->get_lnames().end());
        }
    else if (!chosen)
        for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
            known.push_back(command->get_name());
    const std::vector<std::string_view> views(known.begin(), known.end());
    if (chosen && wrong == dashes + name && std::find(views.begin(), views.end(), name) != views.end()) {
        say("'" + wrong + "' belongs behind the command: trifold " + chosen->get_name() + " " + wrong + " ... (" + help + ")");
        return static_cast<int>(ErrorCode::usage);
    }
    const std::string meant = nearest(name, views);
    say(std::string(option   ? "unknown option '"
                    : chosen ? "unexpected argument '"
                             : "unknown subcommand '") +
        wrong + "' (" + (meant.empty() ? "" : "did you mean '" + dashes + meant + "'? ") + help + ")");
    return static_cast<int>(ErrorCode::usage);
}

// A shell variable that is not set is no absent option. Who has a check of its own says more.
void refuse_empty_values(CLI::App& command) {
    const auto refuse = [](const std::string& value) { return std::string(value.empty() ? no_value : ""); };
    for (CLI::Option* const option : command.get_options())
        if (option->get_items_expected_max() > 0 && !option->get_positional()) option->check(refuse);
}

int run(int argc, char** argv) {
    CLI::App app{"Trifold: tridiagonal systems at memory speed, never silently wrong.", "trifold"};
    app.footer(exit_codes);
    app.set_version_flag("--version", version_text());
    app.require_subcommand(1);
    const Command commands[] = {solve_command(app), generate_command(app), verify_command(app),
                                plan_command(app),  heat_command(app),     bench_command(app),  devices_command(app)};
    for (const Command& command : commands) refuse_empty_values(*command.app);
    const auto chosen = [&]() -> const Command* {
        for (const Command& command : commands)
            if (command.app->parsed()) return &command;
        return nullptr;
    };
    // "help solve" is "solve --help". The parser takes words from the back.
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words.front() == "help") {
        words.erase(words.begin());
        if (words.empty() || std::any_of(std::begin(commands), std::end(commands), [&](const Command& command) { return command.app->get_name() == words.front(); }))
            words.emplace_back("--help");
    }
    std::reverse(words.begin(), words.end());
    try {
        app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            const int code = app.exit(error);
            print("");  // flushed, or said to be full
            return code;
        }
        return usage_error(app, chosen() ? chosen()->app : nullptr, error);
    }
    return chosen()->run();
}

int run_and_explain(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const Error& error) {
        say(error.what());
        return static_cast<int>(error.code());
    } catch (const std::bad_alloc&) {
        say("out of memory (use a smaller problem, --precision f32, or a machine with more memory)");
        return static_cast<int>(ErrorCode::bad_input);
    } catch (const std::exception& error) {
        say(std::string("internal error: ") + error.what());
        return static_cast<int>(ErrorCode::internal);
    }
}

}  // namespace
}  // namespace trifold::cli

int main(int argc, char** argv) {
    using namespace trifold;
    cli::occupy_closed_streams();
    cli::install_interrupt_handlers();
    const int code = cli::run_and_explain(argc, argv);
    if (tridiagonal::split::calls_left_behind() == 0) return code;
    std::fflush(nullptr);
    std::_Exit(code);  // no driver is taken down around its own call
}
