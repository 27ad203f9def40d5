# SPDX-License-Identifier: BSD-3-Clause
# Language, build type, warnings, compiler cache. Never -march=native: the SIMD units are dispatched at run time.

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  find_program(TRIFOLD_CCACHE ccache)
  mark_as_advanced(TRIFOLD_CCACHE)
  if(TRIFOLD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Paths relative to the tree: another checkout of the same sources hits the same cache.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${TRIFOLD_CCACHE})
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endif()

# What every target of Trifold is compiled with; not part of what an installed package asks of its user.
add_library(trifold_compile INTERFACE)
target_compile_features(trifold_compile INTERFACE cxx_std_20)
target_compile_options(trifold_compile INTERFACE -Wall -Wextra)
# Part of a project that names no build type: as released, not without any optimisation.
target_compile_options(trifold_compile INTERFACE $<$<CONFIG:>:-O3$<SEMICOLON>-DNDEBUG>)
target_include_directories(trifold_compile INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)

# For rooms whose units Highway dispatches: without a baseline g++ 12 also compiles Highway's scalar target, which lacks
# shuffles. Pass it as COMPILE ${TRIFOLD_SIMD_BASELINE}.
set(TRIFOLD_SIMD_BASELINE "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TRIFOLD_SIMD_BASELINE -march=x86-64-v2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # Vectors are members and elements of arrays here, which those of SVE, whose length is known at run time only, cannot be. Highway compiles NEON with its AES, and does not mix both.
  set(TRIFOLD_SIMD_BASELINE -march=armv8-a+crypto "-DHWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
endif()

# Every such unit is compiled once per instruction set, and sanitizers make that long: ENDS leaves out what lies between the
# lowest one and the best of this machine.
set(TRIFOLD_SIMD_SETS ALL CACHE STRING "Instruction sets of SIMD units: ALL, or ENDS = the lowest and the best of this machine")
set(TRIFOLD_SIMD_FLAGS "" CACHE STRING "Further options of SIMD units, which are large: for example sanitizers' checks to leave out")
list(APPEND TRIFOLD_SIMD_BASELINE ${TRIFOLD_SIMD_FLAGS})
set_property(CACHE TRIFOLD_SIMD_SETS PROPERTY STRINGS ALL ENDS)
if(TRIFOLD_SIMD_SETS STREQUAL "ENDS" AND TRIFOLD_SIMD_BASELINE)
  set(flags "")
  if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
  endif()
  if(flags MATCHES "avx512dq")
    list(APPEND TRIFOLD_SIMD_BASELINE "-DHWY_DISABLED_TARGETS=(HWY_AVX2|HWY_SSE4)")
  elseif(flags MATCHES "avx2")
    list(APPEND TRIFOLD_SIMD_BASELINE "-DHWY_DISABLED_TARGETS=(HWY_AVX3|HWY_SSE4)")
  endif()
endif()
