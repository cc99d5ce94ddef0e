# trireme_add_plugin(NAME a.cpp …): builds the model plugin NAME.so. It sees the SDK headers and links
# nothing else, so one file serves every machine. Used by plugins/ here and, after
# find_package(Trireme), by projects of their own:
#
#   find_package(Trireme REQUIRED)
#   trireme_add_plugin(my-net my_net.cpp)       # target my-net, file my-net.so
#
# A plugin that needs more links it itself: target_link_libraries(my-net PRIVATE …).

function(trireme_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE Trireme::sdk)
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  if(NOT TRIREME_SANITIZE)
    # A missing symbol fails here, not on the cluster. (A sanitizer's symbols come from the program.)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  if(TARGET trireme_warnings)  # within Trireme's own build
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:trireme_warnings>)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/plugins)
    set_property(GLOBAL APPEND PROPERTY TRIREME_PLUGINS ${name})
  endif()
endfunction()
