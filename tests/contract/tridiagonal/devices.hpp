// SPDX-License-Identifier: BSD-3-Clause
// The contract is tested on every device that this machine has, through the public interface only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "trifold/trifold.hpp"

namespace trifold::tests {

inline Context& context() {
    static Context shared({.threads = 2, .profile_path = "none", .log = {}});
    return shared;
}

/// All that can be used here, or of these the one that TRIFOLD_TEST_DEVICE names.
inline std::vector<std::string> devices() {
    const char* const only = std::getenv("TRIFOLD_TEST_DEVICE");
    std::vector<std::string> names;
    for (const DeviceInfo& device : context().devices())
        if (!only || device.name == only) names.push_back(device.name);
    return names;
}

class OnDevice : public testing::TestWithParam<std::string> {
protected:
    Queue queue{context(), GetParam()};
};

/// For sizes at which other devices take another branch: the reference has one, and takes seconds.
#define TRIFOLD_NOT_THE_REFERENCE() \
    if (GetParam() == "reference") GTEST_SKIP() << "it has one branch for all sizes"

/// Where sweeps over meshes have kernels.
class OnMeshDevice : public OnDevice {
protected:
    void SetUp() override {
        if (GetParam().starts_with("opencl:")) GTEST_SKIP() << GetParam() << " has no kernels for sweeps over meshes";
    }
};

/// For what holds a device against the reference and asks for nothing else.
class NotTheReference : public OnMeshDevice {
protected:
    void SetUp() override {
        OnMeshDevice::SetUp();
        if (GetParam() == "reference") GTEST_SKIP() << "what others are compared with";
    }
};

inline std::string device_test_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    return name;
}

#define TRIFOLD_ON_EVERY_DEVICE(suite) \
    GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite); \
    INSTANTIATE_TEST_SUITE_P(Device, suite, testing::ValuesIn(trifold::tests::devices()), trifold::tests::device_test_name)

}  // namespace trifold::tests
