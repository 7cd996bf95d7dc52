# Writes the header that tells which source a binary was built from. Runs at every build; the file
# is touched only when its contents change, so that nothing is recompiled without need.
# Call: cmake -DSOURCE=... -DOUTPUT=... -P source_state.cmake
set(commit "")
set(diff_digest "")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse HEAD WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    set(commit "")
  else()
    execute_process(COMMAND ${GIT_EXECUTABLE} diff --binary HEAD WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE difference ERROR_QUIET)
    # Files that git does not know yet count as well: their names and contents.
    execute_process(COMMAND ${GIT_EXECUTABLE} ls-files --others --exclude-standard
                    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE others
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(others)
      string(REPLACE ";" "\\;" others "${others}")
      string(REPLACE "\n" ";" others "${others}")
      foreach(name IN LISTS others)
        # Results and ledgers are what a binary makes, not what it is made of.
        if(NOT name MATCHES "^(results|runs|ledgers)/" AND EXISTS "${SOURCE}/${name}")
          file(SHA256 "${SOURCE}/${name}" digest)
          string(APPEND difference "${name} ${digest}\n")
        endif()
      endforeach()
    endif()
    if(difference)
      string(SHA256 diff_digest "${difference}")
    endif()
  endif()
endif()
file(WRITE ${OUTPUT}.new "// Written at build time; see source_state.cmake.
#pragma once
#define ASSAY_SOURCE_COMMIT \"${commit}\"
#define ASSAY_SOURCE_DIFF_SHA256 \"${diff_digest}\"
")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUTPUT}.new ${OUTPUT})
file(REMOVE ${OUTPUT}.new)
