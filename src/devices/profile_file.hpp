// SPDX-License-Identifier: BSD-3-Clause
// Profiles kept between runs: one small JSON file per machine.
#pragma once

#include <optional>
#include <string>

#include "devices/profile.hpp"

namespace trifold::devices {

/// The folder where profiles lie: `asked` if not empty, else $XDG_CACHE_HOME/trifold, else ~/.cache/trifold. Empty where
/// `asked` is "none" or no folder is known.
std::string profile_folder(const std::string& asked);

/// folder/<what>-<hash of the machine>.json: machines that share a home folder do not overwrite each other's.
std::string profile_file(const std::string& folder, const std::string& machine, const char* what = "profile");

/// Written beside and renamed, so that a reader sees the old one or the new one. False with `why` where it cannot be.
bool replace_file(const std::string& file, const std::string& text, std::string& why);

/// The profile in a file, or nothing with `why` (empty where there simply is no file): corrupt, of another version of
/// Trifold, or of another machine. `machine` may name a device of it too; `what` is what another one is then.
std::optional<Profile> load_profile(const std::string& file, const std::string& machine, std::string& why, const char* what = "machine");

/// As replace_file.
bool save_profile(const Profile& profile, const std::string& file, std::string& why);

}  // namespace trifold::devices
