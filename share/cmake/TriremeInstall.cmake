# cmake --install: a prefix that can be moved as a whole. Everything in it finds the rest by $ORIGIN.

include(CMakePackageConfigHelpers)

install(TARGETS trireme_sdk EXPORT TriremeTargets)
install(DIRECTORY plugins/sdk/trireme DESTINATION include FILES_MATCHING PATTERN "*.h")
install(EXPORT TriremeTargets NAMESPACE Trireme:: DESTINATION lib/cmake/Trireme)
configure_package_config_file(share/cmake/TriremeConfig.cmake.in TriremeConfig.cmake
  INSTALL_DESTINATION lib/cmake/Trireme PATH_VARS CMAKE_INSTALL_PREFIX)
write_basic_package_version_file(TriremeConfigVersion.cmake COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/TriremeConfig.cmake ${PROJECT_BINARY_DIR}/TriremeConfigVersion.cmake
  share/cmake/TriremePlugin.cmake DESTINATION lib/cmake/Trireme)

install(TARGETS trireme trireme_shared RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
if(TARGET trireme_cuda)
  install(TARGETS trireme_cuda LIBRARY DESTINATION lib)
endif()
get_property(plugins GLOBAL PROPERTY TRIREME_PLUGINS)
install(TARGETS ${plugins} LIBRARY DESTINATION lib/trireme/plugins)

# oneDNN from the wheels lies in the build tree, so the prefix takes a copy under its soname.
get_target_property(dnnl DNNL::dnnl LOCATION)
file(REAL_PATH ${dnnl} dnnl)
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${dnnl} NORMALIZE inside_source)
cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${dnnl} NORMALIZE inside_binary)
if(inside_source OR inside_binary)
  install(PROGRAMS ${dnnl} DESTINATION lib RENAME libdnnl.so.3)
endif()

install(DIRECTORY share/jobs DESTINATION share/trireme)
install(DIRECTORY jobscripts DESTINATION share/trireme USE_SOURCE_PERMISSIONS)
install(FILES LICENSE DESTINATION share/trireme)
