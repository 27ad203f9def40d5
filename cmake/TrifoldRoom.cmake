# SPDX-License-Identifier: BSD-3-Clause

# trifold_room(<folder under src/> SOURCES file… [USES room…] [LIBS target…] [COMPILE option…])
#
# A room is one folder of src/ and one OBJECT library: trifold_<folder with _ for />. USES names the rooms (folders again)
# whose headers it includes; the edge must be allowed by cmake/layers. LIBS are third-party targets. COMPILE options apply
# to this room's sources only, for example -march=x86-64-v2 for units that Highway dispatches.
function(trifold_room folder)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "SOURCES;USES;LIBS;COMPILE")
  if(room_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "trifold_room(${folder}): unknown arguments: ${room_UNPARSED_ARGUMENTS}")
  endif()
  trifold_room_target(target ${folder})
  add_library(${target} OBJECT ${room_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
  target_link_libraries(${target} PUBLIC trifold_compile ${room_LIBS})
  target_compile_options(${target} PRIVATE ${room_COMPILE})
  set_property(GLOBAL APPEND PROPERTY TRIFOLD_ROOMS ${folder})
  trifold_record_edges(${target} "${folder}" ${room_USES})
endfunction()

# trifold_program(<target> [OUTPUT name] SOURCES file… [USES room…] [LIBS target…])
#
# A program that may use the inside of the library (the command, benchmarks, tests): it links all rooms statically. USES
# names what it includes, so that the layers can be checked. Pure users of the public interface link trifold::trifold.
function(trifold_program target)
  cmake_parse_arguments(PARSE_ARGV 1 program "" "OUTPUT" "SOURCES;USES;LIBS;COMPILE")
  if(program_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "trifold_program(${target}): unknown arguments: ${program_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${target} ${program_SOURCES})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(program_OUTPUT)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${program_OUTPUT})
  endif()
  target_link_libraries(${target} PRIVATE trifold_internal ${program_LIBS})
  target_compile_options(${target} PRIVATE ${program_COMPILE})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  trifold_record_edges("" "${folder}" ${program_USES})
endfunction()

function(trifold_room_target out folder)
  string(REPLACE "/" "_" name ${folder})
  set(${out} trifold_${name} PARENT_SCOPE)
endfunction()

# Edges are linked at the end of the configuration, when every room is known, whatever the order of their folders.
function(trifold_record_edges target folder)
  foreach(used IN LISTS ARGN)
    set_property(GLOBAL APPEND PROPERTY TRIFOLD_EDGES "${target}>${folder}>${used}")
  endforeach()
endfunction()

function(trifold_connect_rooms)
  get_property(edges GLOBAL PROPERTY TRIFOLD_EDGES)
  set(lines "")
  foreach(edge IN LISTS edges)
    string(REGEX MATCH "^([^>]*)>([^>]*)>(.*)$" _ ${edge})
    set(target ${CMAKE_MATCH_1})
    set(folder ${CMAKE_MATCH_2})
    set(used ${CMAKE_MATCH_3})
    string(APPEND lines "${folder} ${used}\n")
    trifold_room_target(used_target ${used})
    if(NOT TARGET ${used_target})
      message(STATUS "room ${folder} uses ${used}, which has no CMakeLists.txt")
    elseif(target)
      target_link_libraries(${target} PUBLIC ${used_target})
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/room-edges.txt CONTENT "${lines}" @ONLY)
endfunction()
