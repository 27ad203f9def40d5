// SPDX-License-Identifier: BSD-3-Clause
// Programs that were compiled at run time, kept in files: $XDG_CACHE_HOME/trifold/<folder>, else ~/.cache/trifold/<folder>. A file that
// is damaged, or cannot be read or written, is as good as none.
#pragma once

#include <string>
#include <string_view>

namespace trifold {

class ProgramCache {
public:
    /// Suffixes of what is kept: of compiled programs, and of texts that do not compile.
    constexpr ProgramCache(std::string_view folder, std::string_view compiled, std::string_view text) noexcept
        : folder_(folder), compiled_(compiled), text_(text) {}

    /// Empty: none.
    std::string load(const std::string& key) const;

    /// Whole or not at all, whoever else writes it at the same time.
    void store(const std::string& key, std::string_view program) const;

    /// Keeps a text that does not compile, with what the compiler says, to look at. Returns where; empty: nowhere.
    std::string keep_failure(const std::string& key, std::string_view text, std::string_view log) const;

private:
    std::string path(const std::string& key, std::string_view suffix) const;

    std::string_view folder_, compiled_, text_;
};

}  // namespace trifold
