# SPDX-License-Identifier: BSD-3-Clause
# cmake -DOUT=texts.cpp -DNAMESPACE=a::b -DFUNCTION=text_of -P embed.cmake -- file…: a function that gives the text of a file by
# its name without folders, or nullptr. See trifold_embed() in TrifoldEmbed.cmake.
set(body "// Made by cmake/embed.cmake.\n#include <string_view>\n\nnamespace ${NAMESPACE} {\n\nconst char* ${FUNCTION}(std::string_view name) {\n")
set(files FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(k RANGE ${last})
  if(files)
    get_filename_component(name "${CMAKE_ARGV${k}}" NAME)
    file(READ "${CMAKE_ARGV${k}}" text)
    string(APPEND body "    if (name == \"${name}\") return R\"TRIFOLD(" "${text}" ")TRIFOLD\";\n")
  elseif("${CMAKE_ARGV${k}}" STREQUAL "--")
    set(files TRUE)
  endif()
endforeach()
string(APPEND body "    return nullptr;\n}\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUT} "${body}")
