# cmake --install: the command, the library, its headers, the package for find_package(interp) and the
# sources of the examples.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(interp PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(interp_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS interp EXPORT interpTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS interp_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# Headers keep their paths below include/interp. Those of the wire formats need protobuf's and are
# nobody's business outside. Ops that are made outside split their loops as ours do.
foreach(folder core passes interpreter)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/interp
    FILES_MATCHING PATTERN "*.h" PATTERN "program_wire.h" EXCLUDE PATTERN "plan_wire.h" EXCLUDE)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/kernels/util/parallel_for.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/interp/kernels/util)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/examples/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/interp/examples)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/interp)
install(EXPORT interpTargets NAMESPACE interp:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/interpConfig.cmake.in
  ${PROJECT_BINARY_DIR}/interpConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/interpConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/interpConfig.cmake
  ${PROJECT_BINARY_DIR}/interpConfigVersion.cmake DESTINATION ${package_dir})
