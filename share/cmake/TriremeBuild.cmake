# How every target of the project is built: flags, one static library a folder, programs, tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()
# Reading headers is most of the compiler's work, so up to eight sources of a target are compiled as one; who edits a file
# again and again turns this off. Names in unnamed namespaces are unique in a folder: an op's stand in a namespace of its name.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "Compile several sources of a target together")
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8 CACHE STRING "How many sources at most")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# What holds for plugins too: warnings and sanitizers, no include path.
add_library(trireme_warnings INTERFACE)
target_compile_options(trireme_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow>)
if(CMAKE_UNITY_BUILD)  # to gcc every source is then a header, whose unnamed namespaces it minds
  target_compile_options(trireme_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
if(TRIREME_SANITIZE)
  target_compile_options(trireme_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TRIREME_SANITIZE};-fno-omit-frame-pointer;-g>)
  target_link_options(trireme_warnings INTERFACE -fsanitize=${TRIREME_SANITIZE})
  target_compile_definitions(trireme_warnings INTERFACE TRIREME_SANITIZED)
endif()

add_library(trireme_flags INTERFACE)
target_link_libraries(trireme_flags INTERFACE trireme_warnings fmt::fmt)  # fmt for all: <format> comes with g++ 13
target_include_directories(trireme_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/plugins/sdk)
# No errno and no traps from arithmetic, so loops vectorise; NaN and Inf keep their meaning.
target_compile_options(trireme_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno;-fno-trapping-math>)

# trireme_subdirectories(a b …), in this order.
function(trireme_subdirectories)
  foreach(folder ${ARGN})
    add_subdirectory(${folder})
  endforeach()
endfunction()

# Folders that parse, print and wait: optimising them fully costs a third of their compile time for nothing.
set(TRIREME_COLD_FOLDERS cli launch telemetry checkpoint)

# What nearly every source includes, compiled once: trireme_headers_hot, and trireme_headers_cold with the flags of the
# cold folders and the JSON library. A build with -DTRIREME_PRECOMPILE=OFF shows what a source forgot to include.
option(TRIREME_PRECOMPILE "Compile common headers once (gcc and clang)" ON)
function(trireme_headers temperature)
  set(name trireme_headers_${temperature})
  if(TARGET ${name})
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/headers.cpp CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/headers.cpp)
  target_link_libraries(${name} PRIVATE trireme_flags)
  target_precompile_headers(${name} PRIVATE
    <algorithm> <array> <chrono> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <span>
    <string> <string_view> <thread> <unordered_map> <vector> <fmt/format.h>)
  if(temperature STREQUAL "cold")
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    target_precompile_headers(${name} PRIVATE <nlohmann/json.hpp>)
  endif()
endfunction()

# trireme_folder(NAME SOURCES a.cpp … DEPENDS base device … LIBRARIES DNNL::dnnl …)
# DEPENDS are other folders by NAME (public), LIBRARIES are outside libraries (private).
# A folder of headers alone gives no SOURCES.
function(trireme_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  set(sources ${ARG_SOURCES})
  list(FILTER sources EXCLUDE REGEX "[.]h$")
  list(TRANSFORM ARG_DEPENDS PREPEND trireme_)
  if(sources)
    add_library(trireme_${name} STATIC ${sources})
    target_link_libraries(trireme_${name} PUBLIC trireme_flags ${ARG_DEPENDS} PRIVATE ${ARG_LIBRARIES})
    set(temperature hot)
    if(name IN_LIST TRIREME_COLD_FOLDERS)
      set(temperature cold)
      target_compile_options(trireme_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
    # Sources with other flags (OpenMP's) can't use them.
    if(TRIREME_PRECOMPILE AND NOT OpenMP::OpenMP_CXX IN_LIST ARG_LIBRARIES)
      trireme_headers(${temperature})
      target_precompile_headers(trireme_${name} REUSE_FROM trireme_headers_${temperature})
    endif()
    set_property(GLOBAL APPEND PROPERTY TRIREME_FOLDERS trireme_${name})
  else()
    add_library(trireme_${name} INTERFACE)
    target_link_libraries(trireme_${name} INTERFACE trireme_flags ${ARG_DEPENDS} ${ARG_LIBRARIES})
  endif()
  set_property(GLOBAL APPEND PROPERTY TRIREME_LIBRARIES ${ARG_LIBRARIES})
endfunction()

# libtrireme.so from the objects of all folders (none is dropped, whoever refers to it), and the thin
# program `trireme`. LINK_ONLY: the outside libraries' headers and flags stay with the folders.
function(trireme_program)
  get_property(folders GLOBAL PROPERTY TRIREME_FOLDERS)
  get_property(libraries GLOBAL PROPERTY TRIREME_LIBRARIES)
  list(REMOVE_DUPLICATES libraries)
  add_library(trireme_shared SHARED)
  foreach(folder ${folders})
    target_sources(trireme_shared PRIVATE $<TARGET_OBJECTS:${folder}>)
  endforeach()
  target_link_libraries(trireme_shared PUBLIC trireme_flags)
  foreach(library ${libraries})
    target_link_libraries(trireme_shared PRIVATE $<LINK_ONLY:${library}>)
  endforeach()
  set_target_properties(trireme_shared PROPERTIES
    OUTPUT_NAME trireme LINKER_LANGUAGE CXX INSTALL_RPATH "$ORIGIN")
  add_executable(trireme ${PROJECT_SOURCE_DIR}/core/main.cpp)
  target_link_libraries(trireme PRIVATE trireme_shared)
  set_target_properties(trireme PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
endfunction()

# What every test includes, compiled once: GoogleTest's headers cost more than the tests themselves, and
# optimising test code gains nothing. The flags are those of the test programs, or gcc refuses the header.
function(trireme_test_headers)
  if(TARGET trireme_test_headers)
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp CONTENT "")
  add_library(trireme_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cpp)
  set_target_properties(trireme_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(trireme_test_headers PRIVATE -fPIE $<$<NOT:$<CONFIG:Debug>>:-O1> -fpch-preprocess)
  target_link_libraries(trireme_test_headers PRIVATE trireme_flags GTest::gmock GTest::gtest)
  target_precompile_headers(trireme_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <filesystem> <fstream> <span> <string> <vector>)
endfunction()

function(trireme_reuse_test_headers target)
  trireme_test_headers()
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE $<$<NOT:$<CONFIG:Debug>>:-O1> -fpch-preprocess)
  target_precompile_headers(${target} REUSE_FROM trireme_test_headers)
endfunction()

# trireme_test(NAME SOURCES a_test.cpp … DEPENDS base … [LIBRARIES …] [RANKS 1 2 4] [LABELS …] [TIMEOUT s] [BY_FILE PREFIX])
# A GoogleTest program test_NAME over static folder libraries. With RANKS it runs under mpirun
# once for each number of ranks (and has its own main); a build without MPI runs it on one rank, if 1 is among them.
# With BY_FILE it has an entry PREFIX_FILE for each FILE_test.cpp, so that long ones run beside one another.
# A test of whole libtrireme.so says DEPENDS shared.
function(trireme_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;BY_FILE" "SOURCES;DEPENDS;LIBRARIES;RANKS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(ARG_RANKS AND NOT TRIREME_MPI)
    if(NOT 1 IN_LIST ARG_RANKS)
      return()
    endif()
    set(ARG_RANKS 1)
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND trireme_)
  add_executable(test_${name} ${ARG_SOURCES})
  trireme_reuse_test_headers(test_${name})
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPENDS} trireme_flags ${ARG_LIBRARIES} GTest::gmock GTest::gtest)
  if(ARG_RANKS)
    foreach(ranks ${ARG_RANKS})
      set(start $<TARGET_FILE:test_${name}>)
      if(TRIREME_MPI)
        set(start ${TRIREME_MPIRUN} -n ${ranks} ${start})
      endif()
      add_test(NAME ${name}.ranks${ranks} COMMAND ${start})
      set_tests_properties(${name}.ranks${ranks} PROPERTIES
        TIMEOUT ${ARG_TIMEOUT} LABELS "${name};${ARG_LABELS}" PROCESSORS ${ranks} ENVIRONMENT "${TRIREME_MPIRUN_ENV}")
    endforeach()
  else()
    target_link_libraries(test_${name} PRIVATE GTest::gtest_main)
    set(tests ${name})
    if(ARG_BY_FILE)
      set(tests)
      foreach(source ${ARG_SOURCES})
        file(STRINGS ${source} suites REGEX "^TEST(_F|_P)?[(]")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
        list(TRANSFORM suites REPLACE "^TEST(_F|_P)?[(]([A-Za-z0-9]+),.*" "\\2.*:*/\\2.*")
        list(REMOVE_DUPLICATES suites)
        list(JOIN suites ":" filter)
        string(REGEX REPLACE "_test[.]cpp$" "" test ${ARG_BY_FILE}_${source})
        add_test(NAME ${test} COMMAND test_${name} --gtest_filter=${filter})
        list(APPEND tests ${test})
      endforeach()
    else()
      add_test(NAME ${name} COMMAND test_${name})
    endif()
    set_tests_properties(${tests} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${name};${ARG_LABELS}")
  endif()
endfunction()
