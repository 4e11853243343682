// Manual pages and completion of the command line, made of what the commands say of themselves.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace interp {

// The commands of `app` in the order in which it lists them.
std::vector<const CLI::App*> CommandsOf(const CLI::App& app);

// "-o", "--out": all spellings of the flags of `app`, positional arguments left out.
std::vector<std::string> FlagsOf(const CLI::App& app);

// The page of `app` or of one of its commands, in the man macros. `version` stands in its footer.
std::string ManualPage(const CLI::App& app, const std::string& version);

// "interp" of `app` itself, "interp-run" of its command `run`.
std::string ManualName(const CLI::App& app);

// A script for bash that completes commands, flags, values of flags that take one of a few, and
// else files.
std::string BashCompletion(const CLI::App& app);

}  // namespace interp
