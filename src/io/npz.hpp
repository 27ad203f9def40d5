// SPDX-License-Identifier: BSD-3-Clause
// NumPy .npz archives: a zip file of .npy arrays, stored or deflated.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/npy.hpp"

namespace trifold::io {

/// An archive open for reading. Arrays are named without ".npy". Every failure is an Error(bad_input) that names the
/// archive and the array.
class NpzReader {
public:
    explicit NpzReader(const std::string& path);

    /// An archive in memory, which must outlive the reader.
    NpzReader(std::span<const std::byte> bytes, std::string name);
    ~NpzReader();
    NpzReader(NpzReader&&) noexcept;

    const std::vector<std::string>& names() const;

    /// Throws also where no array has this name, or where its sizes cannot be true.
    Array read(std::string_view name, bool values = true, const Progress& progress = {}) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

struct NamedArray {
    std::string_view name;
    const Array* array;
};

/// Stored (not deflated), as numpy.savez does. Written atomically, or by way of a temporary file to "-", stdout; not to a device or pipe by name.
void save_npz(const std::string& path, std::span<const NamedArray> arrays, const Progress& progress = {},
              TemporaryWatch watch = {});

}  // namespace trifold::io
