# Installs interp to a temporary prefix, then configures, builds and runs consumers that lie outside
# of the source tree and know that prefix alone.
#   cmake -DSOURCE_DIR=... -DBINARY_DIR=... -DCOMPILER=... -DGENERATOR=... -P install_test.cmake
set(root ${BINARY_DIR}/install_test)
file(REMOVE_RECURSE ${root})
file(COPY ${SOURCE_DIR}/tests/install/consumer DESTINATION ${root})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(result)
    message(FATAL_ERROR "failed (${result}): ${ARGV}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${root}/prefix)
run(${CMAKE_COMMAND} -S ${root}/consumer -B ${root}/build -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${root}/prefix)
run(${CMAKE_COMMAND} --build ${root}/build)

# What interp.hpp reaches, and nothing else.
set(include ${root}/prefix/include/interp)
foreach(header interp.hpp interp.h version.h core/op_def.h interpreter/predictor.h passes/train/minimize.h)
  if(NOT EXISTS ${include}/${header})
    message(FATAL_ERROR "${header} is not installed")
  endif()
endforeach()
foreach(internal interpreter/analysis interpreter/run/frame.h interpreter/train/replicas.h
        interpreter/plan_file/plan_wire.h
        passes/inplace.h core/program_wire.h core/storage/shared_memory.h kernels/math)
  if(EXISTS ${include}/${internal})
    message(FATAL_ERROR "${internal} is internal, but installed")
  endif()
endforeach()

set(digits ${SOURCE_DIR}/tools/digits)
run(${root}/build/digit_reader ${digits}/digits.pdmodel ${digits}/digits.pdiparams ${digits}/image.npy)
string(REGEX MATCHALL "digit 3\n" answers "${output}")
list(LENGTH answers count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "expected the digit 3 twice, from the core and from its clone")
endif()

# The same without CMake.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc_file ${root}/prefix/*/interp.pc)
  cmake_path(GET pc_file PARENT_PATH pc_folder)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_folder} ${PKG_CONFIG} --cflags --libs interp)
  string(STRIP "${output}" flags)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  cmake_path(GET pc_folder PARENT_PATH libraries)
  run(${COMPILER} ${root}/consumer/main.cc -o ${root}/digit_reader ${flags} -Wl,-rpath,${libraries})
  run(${root}/digit_reader ${digits}/digits.pdmodel ${digits}/digits.pdiparams ${digits}/image.npy)
endif()

# Every command has its page.
foreach(page interp interp-run interp-train interp-ops)
  if(NOT EXISTS ${root}/prefix/share/man/man1/${page}.1.gz)
    message(FATAL_ERROR "no manual page ${page}(1) is installed")
  endif()
endforeach()

# The op of the documentation, as it stands there, and every header.
file(COPY ${SOURCE_DIR}/tests/install/outside DESTINATION ${root})
file(READ ${SOURCE_DIR}/docs/add_an_op.md text)
string(FIND "${text}" "```cpp\n" begin)
math(EXPR begin "${begin} + 7")
string(SUBSTRING "${text}" ${begin} -1 text)
string(FIND "${text}" "```" end)
string(SUBSTRING "${text}" 0 ${end} text)
file(WRITE ${root}/outside/axpy.cc "${text}")
run(${CMAKE_COMMAND} -S ${root}/outside -B ${root}/build_outside -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${root}/prefix)
run(${CMAKE_COMMAND} --build ${root}/build_outside)
run(${root}/build_outside/own_op)

# So do the installed examples.
run(${CMAKE_COMMAND} -S ${root}/prefix/share/interp/examples -B ${root}/examples -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${root}/prefix)
run(${CMAKE_COMMAND} --build ${root}/examples)
run(${root}/examples/train_lenet 2)
if(NOT output MATCHES "step   2  loss [0-9.]+\nrecognises [0-9.]+ % of 1000 other digits")
  message(FATAL_ERROR "expected two steps of training and what they led to")
endif()

# The programs of the documentation are those that were built.
file(READ ${SOURCE_DIR}/docs/embedding.md text)
file(READ ${SOURCE_DIR}/tests/install/consumer/main.cc reader)
file(READ ${SOURCE_DIR}/tools/examples/read_digit.c c_reader)
string(FIND "${reader}" "#include" begin)
string(SUBSTRING "${reader}" ${begin} -1 reader)
string(FIND "${c_reader}" "static interp_status read_digit" begin)
string(FIND "${c_reader}" "int main" end)
math(EXPR length "${end} - ${begin}")
string(SUBSTRING "${c_reader}" ${begin} ${length} c_reader)
string(STRIP "${c_reader}" c_reader)
foreach(program reader c_reader)
  string(FIND "${text}" "${${program}}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "docs/embedding.md has another ${program} than the one that was built")
  endif()
endforeach()

# C needs no package: header and library.
find_program(C_COMPILER NAMES cc gcc clang REQUIRED)
file(GLOB_RECURSE library ${root}/prefix/libinterp.so)
cmake_path(GET library PARENT_PATH libraries)
run(${C_COMPILER} -std=c99 -Wall -Wextra -Werror -pedantic ${SOURCE_DIR}/tools/examples/read_digit.c
  -I${root}/prefix/include -L${libraries} -linterp -Wl,-rpath,${libraries} -o ${root}/read_digit)
run(${root}/read_digit ${digits} ${digits}/image.npy)
if(NOT output MATCHES "digit 3")
  message(FATAL_ERROR "expected the digit 3 from C")
endif()

# The installed program finds the installed library.
run(${root}/prefix/bin/interp run ${digits}/digits.pdmodel --params ${digits}/digits.pdiparams
  --feed ${digits}/image.npy --expect ${digits}/expected.npz)
