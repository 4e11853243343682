# What <interp/interp.hpp> and <interp/interp.h> reach, and nothing else, is installed.

# interp_reached_headers(OUT HEADER...): the headers, relative to the source tree, and all that they
# include of it.
function(interp_reached_headers out)
  set(reached)
  set(left ${ARGN})
  while(left)
    list(POP_FRONT left header)
    if(header IN_LIST reached OR NOT EXISTS ${PROJECT_SOURCE_DIR}/${header})
      continue()
    endif()
    list(APPEND reached ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"[^\"]+\"")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND left ${lines})
  endwhile()
  list(SORT reached)
  set(${out} ${reached} PARENT_SCOPE)
endfunction()

# Ops that are made outside split their loops as ours do. interp/ itself is the folder that all of
# them are installed to.
interp_reached_headers(public_headers interp/interp.hpp interp/interp.h kernels/util/check_shape.h
  kernels/util/parallel_for.h)
foreach(header ${public_headers})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  cmake_path(GET header PARENT_PATH folder)
  string(REGEX REPLACE "^interp(/|$)" "" folder "${folder}")
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/interp/${folder})
endforeach()
