// What tests of the commands are tried on: the digit classifier and a program without parameters.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "tests/testing/command.h"

namespace interp::testing {

inline const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits/";
inline const std::string kModel = kDigits + "digits.pdmodel";
inline const std::string kOutput = "save_infer_model/scale_0.tmp_0";

// `interp run` on the digit classifier, with more arguments.
inline CommandResult RunDigits(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "run", kModel, "--params", kDigits + "digits.pdiparams", "--feed", kDigits + "image.npy"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunInterp(arguments);
}

// A program that needs no parameters: x --relu--> y.
class ReluProgram {
 public:
  ReluProgram() {
    std::ofstream(path()) << "program version=0\n"
                             "block 0\n"
                             "  var x float32[-1,2] check_feed\n"
                             "  var y float32[-1,2]\n"
                             "  var z float32[-1,2]\n"
                             "  relu(X=x) -> (Out=y)\n"
                             "  log(X=y) -> (Out=z)\n";
  }
  std::string path() const { return folder_ / "relu.txt"; }
  CommandResult Run(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"run", path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunInterp(arguments);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace interp::testing
