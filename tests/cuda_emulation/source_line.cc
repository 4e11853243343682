#include "tests/cuda_emulation/source_line.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace interp::cuda_emulation {
namespace {

std::string FileOf(const link_map& image) {
  if (image.l_name[0] != '\0') return image.l_name;
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length < 0 ? "" : std::string(path.data(), length);
}

// What binutils' addr2line prints of a code address: a function and its place by turns, from what
// was inlined to what it was inlined into.
std::vector<std::string> Lines(uintptr_t pc) {
  Dl_info info;
  link_map* image = nullptr;
  if (dladdr1(reinterpret_cast<void*>(pc), &info, reinterpret_cast<void**>(&image),
              RTLD_DL_LINKMAP) == 0) {
    return {};
  }
  const std::string command = absl::StrCat("addr2line -Cfi -e '", FileOf(*image), "' 0x",
                                           absl::Hex(pc - image->l_addr), " 2>/dev/null");
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 4096> part;
  while (fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  pclose(pipe);
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

}  // namespace

std::string SourceLine(uintptr_t pc) {
  const std::vector<std::string> lines = Lines(pc);
  std::vector<std::string> places;
  for (size_t i = 1; i < lines.size(); i += 2) {
    const std::vector<absl::string_view> parts = absl::StrSplit(lines[i], '/');
    const std::vector<absl::string_view> words = absl::StrSplit(parts.back(), ' ');
    if (!absl::StartsWith(words[0], "?")) places.emplace_back(words[0]);
  }
  return places.empty() ? absl::StrCat("0x", absl::Hex(pc)) : absl::StrJoin(places, " in ");
}

std::string FunctionName(const void* function) {
  const std::vector<std::string> lines = Lines(reinterpret_cast<uintptr_t>(function));
  if (lines.empty() || absl::StartsWith(lines[0], "?")) return "of unknown name";
  // Without what belongs to C++ alone: namespaces, the type of the result, parameters.
  absl::string_view name = lines[0];
  int depth = 0;
  size_t begin = 0;
  size_t end = name.size();
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth != 0) continue;
    if (name[i] == ' ' || absl::StartsWith(name.substr(i), "::")) begin = i + 1;
    if (name[i] == '(' && !absl::StartsWith(name.substr(i), "(anonymous")) {
      end = i;
      break;
    }
  }
  name = name.substr(begin, end - begin);
  while (absl::StartsWith(name, ":")) name.remove_prefix(1);
  return std::string(name);
}

}  // namespace interp::cuda_emulation
