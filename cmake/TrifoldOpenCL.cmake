# SPDX-License-Identifier: BSD-3-Clause
# OpenCL where the ICD loader and the Khronos headers are found: TRIFOLD_OPENCL=AUTO (default), ON (an error without them) or OFF.
# No vendor's driver is needed to build.

set(TRIFOLD_OPENCL AUTO CACHE STRING "Build libtrifold_opencl.so: AUTO = where OpenCL's loader and headers are found, ON, OFF")
set_property(CACHE TRIFOLD_OPENCL PROPERTY STRINGS AUTO ON OFF)

set(TRIFOLD_HAS_OPENCL OFF)
if(NOT TRIFOLD_OPENCL STREQUAL "OFF")
  find_package(OpenCL QUIET)
  find_path(TRIFOLD_OPENCL_HPP CL/opencl.hpp HINTS ${OpenCL_INCLUDE_DIRS})
  mark_as_advanced(TRIFOLD_OPENCL_HPP)
  if(OpenCL_FOUND AND TRIFOLD_OPENCL_HPP)
    set(TRIFOLD_HAS_OPENCL ON)
  elseif(TRIFOLD_OPENCL STREQUAL "ON")
    message(FATAL_ERROR "TRIFOLD_OPENCL=ON, but not all of it was found: ocl-icd-opencl-dev, opencl-c-headers, opencl-clhpp-headers")
  endif()
endif()
