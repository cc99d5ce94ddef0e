# cmake -DSDK=… -DCXX=… [-DSOURCES=…] [-DCC=…] -P compile.cmake: compiles the sources, or headers of the SDK by
# themselves; fails with the compiler's words where it says anything.
set(warnings -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I${SDK})
set(failures 0)

macro(compile what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE words ERROR_VARIABLE words)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${what}:\n${words}")
    math(EXPR failures "${failures} + 1")
  endif()
endmacro()

foreach(source ${SOURCES})
  compile(${source} ${CXX} -std=c++20 ${warnings} ${source})
endforeach()
if(NOT SOURCES)
  # Those that no other header of the SDK includes before its own needs; model.h's order covers the rest.
  foreach(header trireme/config.h trireme/entry.h trireme/function.h trireme/layers.h trireme/parallel.h)
    compile(${header} ${CXX} -std=c++20 ${warnings} -include ${SDK}/${header} -x c++ /dev/null)
  endforeach()
  compile("abi.h as C11" ${CC} -std=c11 ${warnings} -include ${SDK}/trireme/abi.h -x c /dev/null)
endif()
if(failures)
  message(FATAL_ERROR "${failures} do not compile cleanly with ${CXX}")
endif()
