#include "tools/program_page.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/program_info.h"
#include "tools/sizes.h"
#include "tools/tensor_statistics.h"

namespace interp {
namespace {

std::string TotalsText(const ParameterTotals& totals) {
  return absl::StrCat(totals.count, ", ", FormatBytes(totals.size_bytes));
}

}  // namespace

ProgramPage MakeProgramPage(const Model& model, const absl::Status& parameters) {
  const ProgramInfo info = CollectInfo(model, model.loaded.count > 0);
  ProgramPage page;
  page.title = std::filesystem::path(model.path).filename().string();
  page.facts = {{"Paddle", info.version}, {"Parameters", TotalsText(info.declared)}};
  if (info.loaded.has_value()) page.facts.emplace_back("Loaded", TotalsText(*info.loaded));
  if (!parameters.ok()) page.facts.emplace_back("Not loaded", std::string(parameters.message()));
  page.facts.emplace_back("Memory", MemoryText(info));
  page.facts.emplace_back("Unsupported ops",
                          info.unsupported.empty() ? "none" : absl::StrJoin(info.unsupported, " "));
  page.statistics = ParameterStatistics(model.program, *model.scope);
  return page;
}

}  // namespace interp
