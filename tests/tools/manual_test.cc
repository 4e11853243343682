// Manual pages, completion, docs/command_line.md and docs/coming_from.md hold the flags that there
// are.
#include "tools/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/io/file.h"
#include "tests/testing/command.h"
#include "tools/app.h"

namespace interp::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class ManualTest : public ::testing::Test {
 protected:
  ExitCode exit_code_ = ExitCode::kOk;
  std::unique_ptr<CLI::App> app_ = MakeApp(exit_code_);
};

// As roff spells it.
std::string Roff(const std::string& text) { return absl::StrReplaceAll(text, {{"-", "\\-"}}); }

TEST_F(ManualTest, PagesHoldEveryCommandFlagAndDescription) {
  const std::string all = ManualPage(*app_, "1.2.3");
  EXPECT_THAT(all, HasSubstr("\"interp 1.2.3\""));
  ASSERT_GE(CommandsOf(*app_).size(), 8u);
  for (const CLI::App* command : CommandsOf(*app_)) {
    EXPECT_THAT(all, HasSubstr("\\fB" + command->get_name() + "\\fR\n"));
    const std::string page = ManualPage(*command, "1.2.3");
    EXPECT_THAT(page, HasSubstr("interp\\-" + command->get_name() + " \\- "));
    for (const CLI::Option* option : command->get_options()) {
      EXPECT_THAT(page, HasSubstr("\n" + Roff(option->get_description())));
    }
    for (const std::string& flag : FlagsOf(*command)) {
      EXPECT_THAT(page, HasSubstr("\\fB" + Roff(flag) + "\\fR"));
    }
  }
}

TEST_F(ManualTest, NothingInAPageIsTakenForACommandOfRoff) {
  CLI::App app(".so /etc/passwd", "odd");
  app.add_flag("--x")->description("'\\fB.");
  const std::string page = ManualPage(app, "1");
  EXPECT_THAT(page, HasSubstr("odd \\- \\&.so /etc/passwd"));
  EXPECT_THAT(page, HasSubstr("\n\\&'\\efB.\n"));
}

// What bash offers after these words, the last of which is being typed, in the order of names.
std::vector<std::string> Offers(const CLI::App& app, const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  std::ofstream(folder / "interp.bash") << BashCompletion(app);
  std::ofstream script(folder / "script");
  script << "cd " << folder / ""
         << "\n. ./interp.bash\nCOMP_WORDS=(";
  for (const std::string& word : words) script << "'" << word << "' ";
  script << ")\nCOMP_CWORD=" << words.size() - 1
         << "\n_interp\nprintf '%s\\n' \"${COMPREPLY[@]}\" | sort >offers\n";
  script.close();
  EXPECT_EQ(std::system(("bash " + (folder / "script")).c_str()), 0);
  const absl::StatusOr<std::string> offers = ReadFile(folder / "offers");
  EXPECT_TRUE(offers.ok());
  return absl::StrSplit(offers.value_or(""), '\n', absl::SkipEmpty());
}

TEST_F(ManualTest, BashCompletesEveryCommandAndFlag) {
  std::vector<std::string> commands;
  for (const CLI::App* command : CommandsOf(*app_)) {
    commands.push_back(command->get_name());
    EXPECT_THAT(Offers(*app_, {"interp", command->get_name(), "-"}),
                IsSupersetOf(FlagsOf(*command)));
  }
  EXPECT_THAT(Offers(*app_, {"interp", ""}), IsSupersetOf(commands));
}

TEST_F(ManualTest, BashCompletesWhatIsBegun) {
  EXPECT_THAT(Offers(*app_, {"interp", "ver"}), ElementsAre("verify"));
  EXPECT_THAT(Offers(*app_, {"interp", "run", "--par"}), ElementsAre("--params"));
  EXPECT_THAT(Offers(*app_, {"interp", "run", "--precision", "b"}), ElementsAre("bf16"));
  EXPECT_THAT(Offers(*app_, {"interp", "run", "--precision", "=", "fp"}), ElementsAre("fp16"));
  EXPECT_THAT(Offers(*app_, {"interp", "run", "--precision", "="}),
              ElementsAre("bf16", "float32", "fp16", "int8"));
  EXPECT_THAT(Offers(*app_, {"interp", "run", "inte"}), ElementsAre("interp.bash"));
  EXPECT_THAT(Offers(*app_, {"interp", "run", "none"}), IsEmpty());
}

// The flags that a text speaks of.
std::set<std::string> FlagsIn(const std::string& text) {
  static const std::regex kFlag("(^|[^-a-z0-9])(--[a-z][a-z0-9-]*)");
  std::set<std::string> flags;
  for (std::sregex_iterator i(text.begin(), text.end(), kFlag); i != std::sregex_iterator(); ++i) {
    flags.insert((*i)[2]);
  }
  return flags;
}

// The sections of docs/command_line.md on commands, by the command's name; "" is what comes first.
std::map<std::string, std::string> CommandSections() {
  const auto page = ReadFile(absl::StrCat(INTERP_SOURCE_DIR, "/docs/command_line.md"));
  EXPECT_TRUE(page.ok()) << page.status().message();
  std::map<std::string, std::string> sections;
  const std::string text = page.value_or("");
  for (const absl::string_view section : absl::StrSplit(text, "\n## ")) {
    if (sections.empty()) {
      sections[""] = std::string(section);
    } else if (absl::StartsWith(section, "interp ")) {
      const std::vector<std::string> words = absl::StrSplit(section, absl::ByAnyChar(" \n"));
      sections[words[1]] = std::string(section);
    }
  }
  return sections;
}

// Flags that commands share are described once, before all of them or with `run`.
TEST_F(ManualTest, TheDocumentedFlagsAreThoseThatThereAre) {
  const std::map<std::string, std::string> sections = CommandSections();
  std::set<std::string> existing = {"--help", "--version"};
  const std::set<std::string> shared = FlagsIn(sections.at("") + sections.at("run"));
  for (const CLI::App* command : CommandsOf(*app_)) {
    const std::string& name = command->get_name();
    ASSERT_EQ(sections.count(name), 1u) << "no section on `interp " << name << "`";
    const std::set<std::string> documented = FlagsIn(sections.at(name));
    for (const std::string& flag : FlagsOf(*command)) {
      existing.insert(flag);
      if (!absl::StartsWith(flag, "--") || flag == "--help") continue;
      EXPECT_TRUE(documented.count(flag) != 0 || shared.count(flag) != 0)
          << "docs/command_line.md says nothing of " << flag << " of `interp " << name << "`";
    }
  }
  for (const auto& [name, text] : sections) {
    for (const std::string& flag : FlagsIn(text)) {
      EXPECT_EQ(existing.count(flag), 1u)
          << "docs/command_line.md, section '" << name << "': no flag is named " << flag;
    }
  }
}

// Code in docs/coming_from.md that names what is ours: not the first cell of a table's row. With
// each span the command whose flags it has where it names none itself.
std::vector<std::pair<std::string, std::string>> OurNames() {
  const auto page = ReadFile(absl::StrCat(INTERP_SOURCE_DIR, "/docs/coming_from.md"));
  EXPECT_TRUE(page.ok()) << page.status().message();
  static const std::regex kCode("`([^`]+)`");
  std::vector<std::pair<std::string, std::string>> names;
  std::string command = "run";
  const std::string text = page.value_or("");
  for (const absl::string_view row : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(row, "## ")) command = row == "## Benchmark programs" ? "bench" : "run";
    const std::string line(row.substr(absl::StartsWith(row, "|") ? row.find('|', 1) : 0));
    for (std::sregex_iterator i(line.begin(), line.end(), kCode); i != std::sregex_iterator();
         ++i) {
      names.emplace_back(command, (*i)[1]);
    }
  }
  return names;
}

TEST_F(ManualTest, NewcomersAreToldOfCommandsAndFlagsThatThereAre) {
  std::map<std::string, std::vector<std::string>> flags;
  for (const CLI::App* command : CommandsOf(*app_)) flags[command->get_name()] = FlagsOf(*command);
  int found = 0;
  for (auto [command, code] : OurNames()) {
    if (absl::StartsWith(code, "interp ")) {
      command = std::vector<std::string>(absl::StrSplit(code, ' '))[1];
      EXPECT_EQ(flags.count(command), 1u) << "docs/coming_from.md: no command for '" << code << "'";
      ++found;
    }
    for (const std::string& flag : FlagsIn(code)) {
      EXPECT_THAT(flags[command], Contains(flag)) << "docs/coming_from.md: '" << code << "'";
      ++found;
    }
  }
  EXPECT_GE(found, 100);
}

}  // namespace
}  // namespace interp::testing
