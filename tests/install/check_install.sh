#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: check_install.sh <source tree> <build tree> <compiler> <flags>
# Installs into a scratch prefix and uses the package there as a user would: with find_package and with pkg-config.
set -euo pipefail
source=$1 build=$2 compiler=$3 flags=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
consumer=$source/tests/install/consumer

cmake --install "$build" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/moved" # an install tree can be moved
prefix=$scratch/moved
library=$(dirname "$(find "$prefix" -name libtrifold.so)")
cmp "$source/LICENSE" "$prefix/share/doc/trifold/LICENSE"

cmake -S "$consumer" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_CXX_FLAGS="$flags" >/dev/null
cmake --build "$scratch/build" >/dev/null
version=$("$scratch/build/consumer")

# The example is a user's project too.
cmake -S "$source/examples/reaction_diffusion" -B "$scratch/example" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_CXX_FLAGS="$flags" >/dev/null
cmake --build "$scratch/example" >/dev/null
"$scratch/example/reaction_diffusion" 64 500 >"$scratch/pattern"
"$scratch/example/reaction_diffusion" cuda:0 2>"$scratch/usage" && exit 1  # not a number of cells
grep -q '^usage: ' "$scratch/usage"
grep -q '[@%#*+]' "$scratch/pattern"

# What the guide shows is what users write.
python3 "$source/tests/install/check_guide.py" "$source" "$prefix" "$compiler" "$flags"

described=$(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --modversion trifold)
if [ "$version" != "$described" ]; then
    echo "headers say version $version, trifold.pc says $described" >&2
    exit 1
fi
# shellcheck disable=SC2046,SC2086
"$compiler" -std=c++20 $flags $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags trifold) "$consumer/main.cpp" -o "$scratch/by-pkg-config" \
    $(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --libs trifold)
LD_LIBRARY_PATH=$library "$scratch/by-pkg-config" >/dev/null

# What the library is made of stays inside: no third-party symbol is exported for others to bind to.
leaked=$(nm -DC --defined-only "$library/libtrifold.so" | grep -E ' [TWVBD] (fmt|nlohmann|hwy|CLI|fast_float)::' || true)
if [ -n "$leaked" ]; then
    echo "third-party symbols exported by libtrifold.so:" >&2
    head -n 5 <<<"$leaked" >&2
    exit 1
fi
