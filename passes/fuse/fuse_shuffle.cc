#include "passes/fuse/fuse_shuffle.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/attr_reader.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/variable_view.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

constexpr absl::string_view kShuffle = "shuffle_channel";

// The `shape` of a reshape; empty for other ops.
std::vector<int64_t> ShapeOf(const Op& op) {
  if (op.type != "reshape2" && op.type != "reshape") return {};
  AttrReader attrs(op);
  std::vector<int64_t> dims = attrs.Ints("shape");
  return attrs.status().ok() && OnlyInput(op).has_value() ? dims : std::vector<int64_t>();
}

// Whether a reshape leaves the first dimension, declared as `batch`, as it is.
bool KeepsBatch(int64_t dim, int64_t batch) { return dim == -1 || dim == 0 || dim == batch; }

class ShuffleFuser {
 public:
  ShuffleFuser(Program program, const OpRegistry& ops) : fuser_(std::move(program), ops) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (!fuser_.IsGone(i)) TryFrom(i);
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  void TryFrom(int split) {
    const std::vector<int64_t> groups = ShapeOf(op(split));
    const std::optional<VarId> x = Fuser::Argument(op(split).inputs, "X");
    if (groups.size() != 5 || !x.has_value() || !IsSplit(groups, *x)) return;
    const std::optional<int> turn = Next(split);
    const std::vector<int64_t> wanted = {0, 2, 1, 3, 4};
    if (!turn.has_value() || AxesOfTranspose(op(*turn)) != wanted) return;
    const std::optional<int> join = Next(*turn);
    if (!join.has_value() || !IsJoined(ShapeOf(op(*join)), *x) || !fuser_.GivesOutAlone(*join)) {
      return;
    }
    const std::optional<VarId> out = Fuser::Argument(op(*join).outputs, "Out");
    if (!out.has_value() || !fuser_.IsStable(*x, split)) return;
    Op shuffle = fuser_.TakeForFusion(split);
    shuffle.type = std::string(kShuffle);
    std::erase_if(shuffle.attrs, [](const Attr& attr) { return attr.name == "shape"; });
    AddInput(shuffle, "X", {*x});
    AddOutput(shuffle, "Out", {*out});
    SetAttr(shuffle, "group", static_cast<int32_t>(groups[1]));
    const std::vector<int64_t> image = ImageOf(*x);
    SetAttr(shuffle, "fuse_image", std::vector<int64_t>(image.begin() + 1, image.end()));
    fuser_.Replace({split, *turn, *join}, std::move(shuffle));
  }

  // The only reader of the result, of which nothing else is seen.
  std::optional<int> Next(int index) const {
    if (!fuser_.GivesOutAlone(index)) return std::nullopt;
    const std::optional<int> next = fuser_.OnlyReader(index, "Out");
    return next.has_value() && !fuser_.IsGone(*next) ? next : std::nullopt;
  }

  // The declared dims of an image. A name that is used for several values declares one of them.
  std::vector<int64_t> ImageOf(VarId id) const {
    const VarUse& use = fuser_.uses()[id];
    const bool known = use.var != nullptr && use.writes <= 1 && use.var->dims.size() == 4;
    return known ? use.var->dims : std::vector<int64_t>();
  }

  // Whether the image becomes one of `dims`, its channels cut in two dimensions.
  bool IsSplit(const std::vector<int64_t>& dims, VarId x) const {
    const std::vector<int64_t> image = ImageOf(x);
    if (image.empty() || dims[1] <= 0 || dims[1] > image[1] || image[1] % dims[1] != 0) {
      return false;
    }
    return KeepsBatch(dims[0], image[0]) && dims[2] == image[1] / dims[1] && dims[3] == image[2] &&
           dims[4] == image[3];
  }

  // Whether a reshape to `dims` gives the image its shape again.
  bool IsJoined(const std::vector<int64_t>& dims, VarId x) const {
    const std::vector<int64_t> image = ImageOf(x);
    return dims.size() == 4 && KeepsBatch(dims[0], image[0]) && dims[1] == image[1] &&
           dims[2] == image[2] && dims[3] == image[3];
  }

  Fuser fuser_;
};

}  // namespace

absl::StatusOr<Program> FuseShuffle(Program program, const PassContext& context) {
  constexpr absl::string_view kTransposes[] = {"transpose2", "transpose"};
  if (!HasOpOf(program, kTransposes) || !CanMake(kShuffle, context)) return program;
  return ShuffleFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
