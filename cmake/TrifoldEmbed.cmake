# SPDX-License-Identifier: BSD-3-Clause

# trifold_embed(<target> <out.cpp> NAMESPACE <a::b> FUNCTION <name> FILES <file…>)
#
# The texts of the files become part of the target: `const char* name(std::string_view file)` in that namespace. For kernels
# that are compiled where they run. One text is at most 64 KiB (a string literal).
function(trifold_embed target out)
  cmake_parse_arguments(PARSE_ARGV 2 embed "" "NAMESPACE;FUNCTION" "FILES")
  set(path ${CMAKE_CURRENT_BINARY_DIR}/${out})
  list(TRANSFORM embed_FILES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE files)
  add_custom_command(OUTPUT ${path}
    COMMAND ${CMAKE_COMMAND} -DOUT=${path} -DNAMESPACE=${embed_NAMESPACE} -DFUNCTION=${embed_FUNCTION}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake -- ${files}
    DEPENDS ${PROJECT_SOURCE_DIR}/cmake/embed.cmake ${files} VERBATIM)
  target_sources(${target} PRIVATE ${path})
endfunction()
