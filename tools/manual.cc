#include "tools/manual.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace interp {
namespace {

// Text as roff prints it: no character of it is a command.
std::string Roff(absl::string_view text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  const bool is_command = absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'");
  return is_command ? absl::StrCat("\\&", escaped) : escaped;
}
std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", Roff(text), "\\fR"); }
std::string Italic(absl::string_view text) { return absl::StrCat("\\fI", Roff(text), "\\fR"); }

std::string Section(absl::string_view title) {
  return absl::StrCat(".SH \"", Roff(absl::AsciiStrToUpper(title)), "\"\n");
}

std::vector<std::string> SpellingsOf(const CLI::Option& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.get_snames()) all.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
  return all;
}

// What stands for the value: "TEXT", "INT in [1 - 1024]", "{text,json}"; empty without a value.
std::string ValueOf(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const size_t check = type.find(':');
  return check == std::string::npos ? type : type.substr(check + 1);
}

std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string value = ValueOf(option);
  absl::string_view list = value;
  if (!absl::ConsumePrefix(&list, "{") || !absl::ConsumeSuffix(&list, "}")) return {};
  return absl::StrSplit(list, ',');
}

// An entry of a list of arguments or flags.
std::string Entry(const CLI::Option& option) {
  std::string head;
  if (option.get_positional()) {
    head = Italic(option.get_name(/*positional=*/true));
  } else {
    head = absl::StrJoin(SpellingsOf(option), ", ", [](std::string* out, const std::string& name) {
      absl::StrAppend(out, Bold(name));
    });
    const std::string value = ValueOf(option);
    if (!value.empty()) absl::StrAppend(&head, " ", Italic(value));
  }
  std::string text = absl::StrCat(".TP\n", head, "\n", Roff(option.get_description()));
  const std::string by_default = option.get_default_str();
  if (option.get_required()) absl::StrAppend(&text, " (required)");
  if (!by_default.empty()) absl::StrAppend(&text, " (default ", Roff(by_default), ")");
  return text + "\n";
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app, bool positional) {
  return app.get_options(
      [&](const CLI::Option* option) { return option->get_positional() == positional; });
}

// Group by group, in the order in which the groups begin.
std::string FlagSections(const CLI::App& app) {
  const std::vector<const CLI::Option*> options = OptionsOf(app, /*positional=*/false);
  std::string text;
  for (const std::string& group : app.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : options) {
      if (option->get_group() == group) absl::StrAppend(&entries, Entry(*option));
    }
    if (!entries.empty()) absl::StrAppend(&text, Section(group), entries);
  }
  return text;
}

std::string Synopsis(const CLI::App& app) {
  std::string text = Section("synopsis");
  if (app.get_parent() == nullptr) {
    return absl::StrCat(text, Bold(app.get_name()), " ", Italic("COMMAND"), " [", Italic("FLAGS"),
                        "] [", Italic("ARGUMENTS"), "]\n");
  }
  absl::StrAppend(&text, Bold(absl::StrCat(app.get_parent()->get_name(), " ", app.get_name())),
                  " [", Italic("FLAGS"), "]");
  for (const CLI::Option* option : OptionsOf(app, /*positional=*/true)) {
    const std::string name = Italic(option->get_name(/*positional=*/true));
    const bool many = option->get_items_expected_max() > 1;
    absl::StrAppend(&text, option->get_required()
                               ? absl::StrCat(" ", name)
                               : absl::StrCat(" [", name, many ? "..." : "", "]"));
  }
  return text + "\n";
}

// What stands below the flags in the help: its first line is a title when a colon ends it.
std::string Footer(const CLI::App& app) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(app.get_footer()), '\n');
  std::string text = Section("notes");
  if (absl::EndsWith(lines[0], ":")) {
    text = Section(absl::StripSuffix(lines[0], ":"));
    lines.erase(lines.begin());
  }
  if (lines.empty() || lines[0].empty()) return "";
  absl::StrAppend(&text, ".nf\n");
  for (const std::string& line : lines) {
    absl::StrAppend(&text, Roff(absl::StripAsciiWhitespace(line)), "\n");
  }
  return text + ".fi\n";
}

std::string SeeAlso(const CLI::App& app) {
  std::vector<std::string> pages;
  if (app.get_parent() != nullptr) {
    pages.push_back(ManualName(*app.get_parent()));
  } else {
    for (const CLI::App* command : CommandsOf(app)) pages.push_back(ManualName(*command));
  }
  return absl::StrCat(Section("see also"),
                      absl::StrJoin(pages, ",\n",
                                    [](std::string* out, const std::string& page) {
                                      absl::StrAppend(out, Bold(page), "(1)");
                                    }),
                      "\n");
}

}  // namespace

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) { return app.get_subcommands({}); }

std::vector<std::string> FlagsOf(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (std::string& name : SpellingsOf(*option)) flags.push_back(std::move(name));
  }
  return flags;
}

std::string ManualName(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return absl::StrCat(app.get_parent()->get_name(), "-", app.get_name());
}

std::string ManualPage(const CLI::App& app, const std::string& version) {
  const std::string name = ManualName(app);
  std::string description = app.get_description();
  while (absl::EndsWith(description, ".")) description.pop_back();
  std::string page =
      absl::StrCat(".TH \"", Roff(absl::AsciiStrToUpper(name)), "\" 1 \"\" \"interp ", version,
                   "\" \"User Commands\"\n", Section("name"), Roff(name), " \\- ",
                   Roff(description), "\n", Synopsis(app));
  const std::vector<const CLI::App*> commands = CommandsOf(app);
  if (!commands.empty()) absl::StrAppend(&page, Section("commands"));
  for (const CLI::App* command : commands) {
    absl::StrAppend(&page, ".TP\n", Bold(command->get_name()), "\n",
                    Roff(command->get_description()), "\n");
  }
  const std::vector<const CLI::Option*> arguments = OptionsOf(app, /*positional=*/true);
  if (!arguments.empty()) absl::StrAppend(&page, Section("arguments"));
  for (const CLI::Option* argument : arguments) absl::StrAppend(&page, Entry(*argument));
  return absl::StrCat(page, FlagSections(app), Footer(app), SeeAlso(app));
}

// Long because of the script that it fills in.
std::string BashCompletion(const CLI::App& app) {
  std::vector<std::string> words = FlagsOf(app);
  std::string flags;
  std::string values;
  for (const CLI::App* command : CommandsOf(app)) {
    const std::string& name = command->get_name();
    words.push_back(name);
    absl::StrAppend(&flags, "    ", name, ") flags='", absl::StrJoin(FlagsOf(*command), " "),
                    "' ;;\n");
    for (const CLI::Option* option : command->get_options()) {
      const std::vector<std::string> choices = ChoicesOf(*option);
      if (choices.empty()) continue;
      for (const std::string& flag : SpellingsOf(*option)) {
        absl::StrAppend(&values, "    '", name, " ", flag, "') words='",
                        absl::StrJoin(choices, " "), "' ;;\n");
      }
    }
  }
  return absl::StrCat(
      "# Completion of interp in bash, made of the commands' own descriptions.\n"
      "_interp() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} flags words=\n"
      "  # bash makes three words of --flag=value.\n"
      "  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then\n"
      "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n",
      flags,
      "    *) flags= ;;\n"
      "  esac\n"
      "  case \"${COMP_WORDS[1]} $before\" in\n",
      values,
      "  esac\n"
      "  if ((COMP_CWORD == 1)); then words='",
      absl::StrJoin(words, " "),
      "'\n"
      "  elif [[ -z $words && $word == -* ]]; then words=$flags; fi\n"
      "  if [[ -n $words ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  else\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n"
      "}\n"
      "complete -F _interp interp\n");
}

}  // namespace interp
