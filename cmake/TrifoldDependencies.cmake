# SPDX-License-Identifier: BSD-3-Clause
# Every third-party target that a room may name under LIBS:
#   library    OpenMP::OpenMP_CXX  hwy::hwy  PkgConfig::hwloc  PkgConfig::libzip  ZLIB::ZLIB  PNG::PNG  fmt::fmt
#              nlohmann_json::nlohmann_json  FastFloat::fast_float  Threads::Threads  ${CMAKE_DL_LIBS}
#   command    CLI11::CLI11
#   tests      GTest::gtest  GTest::gmock  rapidcheck  rapidcheck_gtest  PkgConfig::lapacke
#   benchmarks PkgConfig::lapacke CLI11::CLI11
# Debian packages that bring them are listed in scripts/setup.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
find_package(hwy REQUIRED CONFIG)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(fmt REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(FastFloat REQUIRED CONFIG)
# hwloc has no CMake package, and libzip's is a fatal error without its command line tools.
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)

if(TRIFOLD_BUILD_CLI OR TRIFOLD_BUILD_BENCH)
  find_package(CLI11 REQUIRED CONFIG)
endif()
if(TRIFOLD_BUILD_TESTS)
  find_package(GTest REQUIRED CONFIG)
  find_package(rapidcheck REQUIRED CONFIG)
  # The system's Python first: it is the one whose NumPy the set-up installs.
  find_program(Python3_EXECUTABLE python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
if(TRIFOLD_BUILD_TESTS OR TRIFOLD_BUILD_BENCH)
  # OpenBLAS serves LAPACK's symbols: the pthread build, whose thread count can be set (a serial one would shadow it).
  pkg_check_modules(lapacke REQUIRED IMPORTED_TARGET lapacke openblas)
endif()
