// write_manual FOLDER: writes the manual pages of `interp` and its completion for bash there.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/machine/build_info.h"
#include "tools/app.h"
#include "tools/manual.h"

namespace interp {
namespace {

bool Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::cerr << "cannot write '" << path.string() << "'\n";
  return !file.fail();
}

bool WriteManual(const std::filesystem::path& folder) {
  ExitCode unused = ExitCode::kOk;
  const std::unique_ptr<CLI::App> app = MakeApp(unused);
  const std::string version(GetBuildInfo().version);
  std::vector<const CLI::App*> pages = CommandsOf(*app);
  pages.push_back(app.get());
  for (const CLI::App* page : pages) {
    if (!Write(folder / (ManualName(*page) + ".1"), ManualPage(*page, version))) return false;
  }
  return Write(folder / "interp.bash", BashCompletion(*app));
}

}  // namespace
}  // namespace interp

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_manual FOLDER\n";
    return 2;
  }
  return interp::WriteManual(argv[1]) ? 0 : 1;
}
