# cmake --install: the command, the library, its headers, the package for find_package(interp) and the
# sources of the examples.
include(CMakePackageConfigHelpers)

set_target_properties(interp_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS interp EXPORT interpTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(level ${INTERP_ISA_LEVELS})
  install(TARGETS interp_${level}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/glibc-hwcaps/${level} NAMELINK_SKIP)
endforeach()
if(TARGET interp_mpi)
  install(TARGETS interp_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET interp_cuda)
  install(TARGETS interp_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS interp_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

include(${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake)

# two_devices looks into what is not installed.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/examples/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/interp/examples
  PATTERN "two_devices*" EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/interp)
install(EXPORT interpTargets NAMESPACE interp:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/interpConfig.cmake.in
  ${PROJECT_BINARY_DIR}/interpConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/interpConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/interpConfig.cmake
  ${PROJECT_BINARY_DIR}/interpConfigVersion.cmake DESTINATION ${package_dir})
