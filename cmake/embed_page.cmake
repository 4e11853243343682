# Makes a C++ source of a page: its text with every {{file}} put in, by its path from the page.
#   cmake -DPAGE=plan_view.html -DNAME=kPlanView -DOUTPUT=page.cc -P embed_page.cmake
cmake_path(GET PAGE PARENT_PATH folder)
file(READ ${PAGE} text)
string(REGEX MATCHALL "{{[a-z_./]+\\.[a-z]+}}" marks "${text}")
foreach(mark ${marks})
  string(REGEX REPLACE "[{}]" "" name "${mark}")
  file(READ ${folder}/${name} part)
  string(STRIP "${part}" part)
  string(REPLACE "${mark}" "${part}" text "${text}")
endforeach()
if(text MATCHES "\\)page\"")
  message(FATAL_ERROR "${PAGE}: holds the end of the raw string it is put into")
endif()
file(WRITE ${OUTPUT} "#include \"interpreter/inspect/pages.h\"

namespace interp::pages {

const absl::string_view ${NAME} = R\"page(${text})page\";

}  // namespace interp::pages
")
