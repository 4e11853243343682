#include "passes/fuse/fuse_groups.h"

#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "core/fused_forms.h"
#include "core/program_print.h"
#include "passes/fuse/fusion.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

constexpr absl::string_view kConvs[] = {"conv2d", "depthwise_conv2d"};

// Whether two ops compute the same of the same inputs.
bool AreAlike(const Op& a, const Op& b) {
  const auto is_in = [](const Op& op) {
    return [&op](const Attr& attr) {
      const Attr* const other = op.FindAttr(attr.name);
      return IsProvenanceAttr(attr) || (other != nullptr && other->value == attr.value);
    };
  };
  return a.type == b.type && absl::c_all_of(a.attrs, is_in(b)) && absl::c_all_of(b.attrs, is_in(a));
}

// Whether a split cuts along `axis` into equal parts.
bool CutsEvenly(const Op& split, int64_t axis, size_t parts) {
  AttrReader attrs(split);
  const std::vector<int64_t> sections = attrs.Ints("sections");
  const int64_t num = attrs.Long("num", 0);
  const bool even = num > 0
                        ? num == static_cast<int64_t>(parts)
                        : (sections.size() == parts && sections[0] > 0 &&
                           absl::c_all_of(sections, [&](int64_t s) { return s == sections[0]; }));
  return even && attrs.Long("axis", 0) == axis && attrs.status().ok() && ReadsOnly(split, {"X"});
}

class GroupFuser {
 public:
  GroupFuser(Program program, const OpRegistry& ops) : fuser_(std::move(program), ops) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (op(i).type == "split" && !fuser_.IsGone(i)) TryFrom(i);
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  void TryFrom(int split) {
    const std::optional<VarId> x = OnlyInput(op(split));
    const Slot* const out = op(split).FindOutput("Out");
    const ArgIds parts = out == nullptr ? ArgIds() : out->args;
    if (!x.has_value() || parts.size() < 2 || !fuser_.IsStable(*x, split)) return;
    std::vector<int> chain = {split};
    ArgIds filters;
    ArgIds results;
    for (const VarId part : parts) {
      const std::optional<int> conv = ReaderBehind(split, part);
      if (!conv.has_value() || !TakeConv(*conv, chain, filters, results)) return;
    }
    const std::optional<int> join = ReaderBehind(chain.back(), results[0]);
    const int first = chain[1];
    if (!join.has_value() || !Joins(op(*join), results, ChannelAxisOf(op(first)))) return;
    if (!CutsEvenly(op(split), ChannelAxisOf(op(first)), parts.size())) return;
    absl::c_sort(chain);
    chain.push_back(*join);
    const bool in_order = chain[chain.size() - 2] < *join;
    if (!in_order || !fuser_.AreSeenWithin(chain) || !AreOfOnePart(chain)) return;
    Replace(chain, first, *x, filters);
  }

  // The op behind `from` that reads a value last, which is the only one where it is one of a chain
  // that alone sees it.
  std::optional<int> ReaderBehind(int from, VarId id) const {
    const VarUse& use = fuser_.uses()[id];
    const bool known = use.block == 0 && !use.pinned() && use.writes == 1 && use.last > from;
    return known && !fuser_.IsGone(use.last) ? std::optional<int>(use.last) : std::nullopt;
  }

  // Adds a convolution that is like those before.
  bool TakeConv(int index, std::vector<int>& chain, ArgIds& filters, ArgIds& results) const {
    const Op& conv = op(index);
    const std::optional<VarId> filter = Fuser::Argument(conv.inputs, "Filter");
    const std::optional<VarId> result = Fuser::Argument(conv.outputs, "Output");
    const Var* const parameter = fuser_.Parameter(filter);
    if (!absl::c_linear_search(kConvs, conv.type) || !ReadsOnly(conv, {"Input", "Filter"}) ||
        parameter == nullptr || !result.has_value() || IsFusedConv(conv) ||
        !CheckNothingFused(conv).ok()) {
      return false;
    }
    if (chain.size() > 1) {
      const Var& before = *fuser_.Parameter(filters.back());
      const bool same = before.dims == parameter->dims && before.dtype == parameter->dtype;
      if (!same || !AreAlike(op(chain.back()), conv)) return false;
    }
    const bool known = parameter->dims.size() == 4 &&
                       absl::c_all_of(parameter->dims, [](int64_t dim) { return dim > 0; });
    AttrReader attrs(conv);
    if (!known || attrs.Int("groups", 1) < 1 || !attrs.status().ok()) return false;
    chain.push_back(index);
    filters.push_back(*filter);
    results.push_back(*result);
    return true;
  }

  static bool Joins(const Op& concat, const ArgIds& results, int64_t axis) {
    AttrReader attrs(concat);
    const int64_t along = attrs.Long("axis", 0);
    const Slot* const x = concat.FindInput("X");
    return concat.type == "concat" && attrs.status().ok() && ReadsOnly(concat, {"X"}) &&
           (along == axis || along == axis - 4) && x != nullptr && x->args == results &&
           concat.FindOutput("Out") != nullptr;
  }

  bool AreOfOnePart(const std::vector<int>& chain) const {
    return absl::c_all_of(chain, [&](int index) { return IsOfSamePart(op(chain[0]), op(index)); });
  }

  // `first`: the convolution of the first part, whose attributes count.
  void Replace(const std::vector<int>& chain, int first, VarId x, const ArgIds& filters) {
    const auto parts = static_cast<int32_t>(filters.size());
    const int32_t groups = AttrReader(op(first)).Int("groups", 1);
    int32_t all = 0;
    Var filter = *fuser_.Parameter(filters[0]);
    if (__builtin_mul_overflow(groups, parts, &all) ||
        __builtin_mul_overflow(filter.dims[0], int64_t{parts}, &filter.dims[0])) {
      return;
    }
    const VarId whole = fuser_.Declare(fuser_.program().NameOf(filters[0]) + ".groups", filter);
    Op join = fuser_.TakeAs("concat", chain.front());
    AddInput(join, "X", filters);
    AddOutput(join, "Out", {whole});
    SetAttr(join, "axis", int32_t{0});
    fuser_.PutBehind(chain.back() - 1, std::move(join));
    Op conv = fuser_.TakeForFusion(first);
    AddInput(conv, "Input", {x});
    AddInput(conv, "Filter", {whole});
    AddOutput(conv, "Output", op(chain.back()).FindOutput("Out")->args);
    SetAttr(conv, "groups", all);
    fuser_.Replace(chain, std::move(conv));
  }

  Fuser fuser_;
};

}  // namespace

absl::StatusOr<Program> FuseGroups(Program program, const PassContext& context) {
  if (!HasOpOf(program, {"split"}) || !HasOpOf(program, kConvs)) return program;
  return GroupFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
