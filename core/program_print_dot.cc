#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/each_argument.h"
#include "core/program_print.h"

namespace interp {
namespace {

std::string QuotedDot(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
}

// Writes one block; node names are "b<block>_op<index>" and "b<block>_var<id>".
class DotBlock {
 public:
  DotBlock(const Program& program, size_t block, std::string& out)
      : program_(program),
        block_(program.blocks[block]),
        prefix_(absl::StrCat("b", block)),
        out_(out) {}

  void Write() {
    absl::StrAppend(&out_, "  subgraph cluster_", prefix_,
                    " {\n    label=", QuotedDot(absl::StrCat("block ", block_.idx)), "\n");
    for (size_t i = 0; i < block_.ops.size(); ++i) WriteOp(block_.ops[i], i);
    out_ += "  }\n";
  }

 private:
  void WriteOp(const Op& op, size_t index) {
    const std::string node = absl::StrCat(prefix_, "_op", index);
    absl::StrAppend(&out_, "    ", node,
                    " [shape=box, label=", QuotedDot(absl::StrCat(op.type, " #", index)), "]\n");
    for (const VarId id : EachArgument(op.inputs)) WriteEdge(id, node);
    for (const VarId id : EachArgument(op.outputs)) writer_[id] = node;
  }

  void WriteEdge(VarId id, const std::string& to) {
    const std::string label = QuotedDot(NameForDump(program_, id));
    const auto [it, added] = writer_.try_emplace(id, absl::StrCat(prefix_, "_var", id));
    if (added) absl::StrAppend(&out_, "    ", it->second, " [label=", label, "]\n");
    absl::StrAppend(&out_, "    ", it->second, " -> ", to, " [label=", label, "]\n");
  }

  const Program& program_;
  const Block& block_;
  const std::string prefix_;
  std::string& out_;
  absl::flat_hash_map<VarId, std::string> writer_;  // the node that holds the variable's value
};

}  // namespace

std::string ToDot(const Program& program) {
  std::string out = "digraph program {\n";
  for (size_t b = 0; b < program.blocks.size(); ++b) DotBlock(program, b, out).Write();
  return out += "}\n";
}

}  // namespace interp
