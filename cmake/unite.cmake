# Writes one source file of several, so that what they include is compiled once. The anonymous namespace
# of each gets a named one around it: names in it need not differ from those of other files.
#   cmake -DSOURCES=A.cc,B.cc -DOUTPUT=FILE.cc -P unite.cmake
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
string(REPLACE "," ";" SOURCES "${SOURCES}")
set(united "")
foreach(source ${SOURCES})
  file(READ ${source} text)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${root} OUTPUT_VARIABLE name)
  string(MAKE_C_IDENTIFIER "of_${name}" scope)
  string(REGEX REPLACE "\nnamespace {\n" "\nnamespace ${scope} { namespace {\n" text "${text}")
  string(REGEX REPLACE "\n}  // namespace\n" "\n}}  // namespace\n" text "${text}")
  string(APPEND united "#line 1 \"${source}\"\n${text}")
endforeach()
file(WRITE ${OUTPUT} "${united}")
