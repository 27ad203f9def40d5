// SPDX-License-Identifier: BSD-3-Clause
// Shared objects of devices that need a driver, found when such a device is first named.
#pragma once

#include <string>

namespace trifold::devices {

/// The function `symbol` of the shared object `library`, which is looked for beside libtrifold, beside a program that holds it statically, in the lib/ next to that
/// one's bin/, then as usual. Where it cannot be loaded `why` says so and where it is built. Never unloaded: a driver's threads may outlive every Context.
void* function_beside_library(const char* library, const char* symbol, const char* built_where, std::string& why);

/// What the shared object of a backend gives, or why there is none.
template <class Table>
struct Loaded {
    const Table* table = nullptr;
    std::string why;
};

/// Table has a `library_name`, a `table_symbol`, and `same_build`, which refuses a mixture of two builds.
template <class Table>
Loaded<Table> load_table(const char* built_where) {
    Loaded<Table> out;
    const auto give = reinterpret_cast<const Table* (*)()>(function_beside_library(Table::library_name, Table::table_symbol, built_where, out.why));
    if (!out.why.empty()) return out;
    const Table* const table = give ? give() : nullptr;
    if (!table || !table->same_build(Table())) {
        out.why = std::string(Table::library_name) + " is of another version of Trifold (build and install both together)";
        return out;
    }
    out.table = table;
    if (table->count() == 0) out.why = table->absent();
    return out;
}

}  // namespace trifold::devices
