# SPDX-License-Identifier: BSD-3-Clause
# The rooms become two libraries: trifold (shared, only the public interface visible, installable) and trifold_internal
# (static, everything visible) for the command, the benchmarks and the tests.

get_property(rooms GLOBAL PROPERTY TRIFOLD_ROOMS)
set(room_targets "")
foreach(room IN LISTS rooms)
  trifold_room_target(target ${room})
  list(APPEND room_targets ${target})
endforeach()

if(NOT room_targets)
  message(WARNING "no room under src/ has a CMakeLists.txt: there is no library to build")
  add_library(trifold_internal INTERFACE)
  target_link_libraries(trifold_internal INTERFACE trifold_compile)
  return()
endif()

add_library(trifold_internal STATIC)
target_link_libraries(trifold_internal PUBLIC ${room_targets})
set_target_properties(trifold_internal PROPERTIES LINKER_LANGUAGE CXX)

file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/trifold/*.hpp
     ${PROJECT_SOURCE_DIR}/include/trifold/*/*.hpp)
add_library(trifold SHARED)
add_library(trifold::trifold ALIAS trifold)
target_sources(trifold PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${public_headers})
target_compile_features(trifold PUBLIC cxx_std_20)
target_link_libraries(trifold PRIVATE ${room_targets})
set_target_properties(trifold PROPERTIES
  LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  VERIFY_INTERFACE_HEADER_SETS ON)
include(TrifoldInstall)
