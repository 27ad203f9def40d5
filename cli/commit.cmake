# SPDX-License-Identifier: BSD-3-Clause
# cmake -DSOURCE=… -DHEADER=… -P commit.cmake: the commit of SOURCE as a macro in HEADER; empty outside a clone.
set(commit "")
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${git} -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
  if(commit AND changes)
    string(APPEND commit "+changes")
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define TRIFOLD_COMMIT \"${commit}\"\n")
