#include "tools/version.h"

#include "absl/strings/str_cat.h"
#include "core/machine/build_info.h"
#include "core/machine/processor.h"

namespace interp {

std::string VersionText() {
  const BuildInfo& info = GetBuildInfo();
  return absl::StrCat("interp ", info.version, "\n",                                     //
                      "  library    for ", info.level, ": ", LibraryPath(), "\n",        //
                      "  processor  ", ProcessorLevel(),                                 //
                      ProcessorHasBf16Products() ? ", products of bfloat16" : "", "\n",  //
                      "  build      ", info.build, ", by ", info.compiler, "\n",         //
                      "  kernels    ", info.kernels ? "in" : "left out", "\n",           //
                      "  with       ", info.libraries);
}

}  // namespace interp
