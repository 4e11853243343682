# What is installed beside the command and the library, and the package that `cpack` makes of it all:
# docs/packaging.md.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
# The libraries whose headers ours include.
list(JOIN interp_absl " " interp_pc_requires)
string(REPLACE "absl::" "absl_" interp_pc_requires "${interp_pc_requires}")
configure_file(cmake/interp.pc.in ${PROJECT_BINARY_DIR}/interp.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/interp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(DIRECTORY tools/digits DESTINATION ${CMAKE_INSTALL_DATADIR}/interp
  PATTERN "*.py" EXCLUDE)
# Where Debian has the conditions of a package.
configure_file(NOTICE ${PROJECT_BINARY_DIR}/copyright COPYONLY)
install(FILES ${PROJECT_BINARY_DIR}/copyright LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Made by a program, which cannot run here when it is built for another processor.
if(NOT CMAKE_CROSSCOMPILING)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/manual/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    FILES_MATCHING PATTERN "*.1.gz")
  install(FILES ${PROJECT_BINARY_DIR}/manual/interp.bash RENAME interp
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME interp)
set(CPACK_PACKAGE_CONTACT "the authors of interp <interp@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs and trains Paddle programs on CPUs")
set(CPACK_PACKAGE_DESCRIPTION "A static graph is read, rewritten by passes, analysed once into a plan and run,
by one thread or many. With the command, the library in variants for several
levels of x86-64, its headers, examples and manual pages. Needs SSE4.2.")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES TRUE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS TRUE)
# For programs that embed the library, and for several ranks.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake | pkgconf, libabsl-dev, openmpi-bin")
# For packages of others that embed it.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS TRUE)
include(CPack)
