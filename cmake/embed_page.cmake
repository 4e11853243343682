# Makes a C++ source of a page: its text with every {{file}} that lies beside it put in.
#   cmake -DPAGE=plan_view.html -DOUTPUT=page.cc -P embed_page.cmake
cmake_path(GET PAGE PARENT_PATH folder)
file(READ ${PAGE} text)
string(REGEX MATCHALL "{{[a-z_]+\\.[a-z]+}}" marks "${text}")
foreach(mark ${marks})
  string(REGEX REPLACE "[{}]" "" name "${mark}")
  file(READ ${folder}/${name} part)
  string(STRIP "${part}" part)
  string(REPLACE "${mark}" "${part}" text "${text}")
endforeach()
if(text MATCHES "\\)page\"")
  message(FATAL_ERROR "${PAGE}: holds the end of the raw string it is put into")
endif()
file(WRITE ${OUTPUT} "#include \"interpreter/inspect/plan_view/page.h\"

namespace interp::plan_print {

const absl::string_view kPlanViewPage = R\"page(${text})page\";

}  // namespace interp::plan_print
")
