#include "core/io/param_decl.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/any_op.h"
#include "core/element_types.h"
#include "core/storage/lasting_memory.h"
#include "core/sub_blocks.h"
#include "core/weight_scales.h"

namespace interp {
namespace {

// Variables that ops name as outputs, or as inputs, by VarId: in all slots, or in those that
// `takes` accepts.
std::vector<bool> NamedIn(const Program& program, const std::vector<Slot> Op::*slots,
                          bool (*takes)(const Op&, const Slot&) = nullptr) {
  std::vector<bool> named(program.names.size());
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      for (const Slot& slot : op.*slots) {
        if (takes != nullptr && !takes(op, slot)) continue;
        for (const VarId id : slot.args) named[id] = true;
      }
    }
  }
  return named;
}

// Notes what is named in the order in which ops run.
class NamedSoFar {
 public:
  explicit NamedSoFar(const Program& program)
      : program_(program), entered_(program.blocks.size()), named_(program.names.size()) {}

  bool operator[](VarId id) const { return named_[id]; }

  void Name(const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      for (const VarId id : slot.args) named_[id] = true;
    }
  }

  // What the blocks name that the op runs.
  void NameBlocksOf(const Op& op) {
    std::vector<int32_t> waiting;
    const auto enter = [&](const Op& running) {
      ForEachSubBlock(running, [&](int32_t block) { waiting.push_back(block); });
    };
    enter(op);
    while (!waiting.empty()) {
      const int32_t block = waiting.back();
      waiting.pop_back();
      if (block <= 0 || block >= std::ssize(program_.blocks) || entered_[block]) continue;
      entered_[block] = true;
      for (const Op& inner : program_.blocks[block].ops) {
        Name(inner.inputs);
        Name(inner.outputs);
        enter(inner);
      }
    }
  }

 private:
  const Program& program_;
  std::vector<bool> entered_;  // by block
  std::vector<bool> named_;    // by VarId
};

// Variables that an op of block 0 writes before any op reads them, in the blocks that ops run as
// well, by VarId.
std::vector<bool> MadeFirst(const Program& program) {
  std::vector<bool> made(program.names.size());
  if (program.blocks.empty()) return made;
  NamedSoFar named(program);
  for (const Op& op : program.blocks[0].ops) {
    named.Name(op.inputs);
    named.NameBlocksOf(op);
    for (const Slot& slot : op.outputs) {
      for (const VarId id : slot.args) made[id] = made[id] || !named[id];
    }
    named.Name(op.outputs);
  }
  return made;
}

bool FitsDims(absl::Span<const int64_t> found, absl::Span<const int64_t> declared) {
  return std::equal(found.begin(), found.end(), declared.begin(), declared.end(),
                    [](int64_t dim, int64_t of) { return of == -1 || of == dim; });
}

std::vector<int64_t> WithoutOnes(std::vector<int64_t> dims) {
  std::erase(dims, 1);
  return dims;
}

// Whether the numbers of dims differ, and dims of 1 are all that differs.
bool FitsButForOnes(absl::Span<const int64_t> found, const ParamDecl& param) {
  return found.size() != param.dims.size() &&
         FitsDims(WithoutOnes({found.begin(), found.end()}), WithoutOnes(param.dims));
}

// Paddle's Python may leave the dims out (create_var(persistable=True) without a shape), which is
// written as those of a number are.
bool DeclaresNoDims(const Shape& shape, const ParamDecl& param) {
  return param.dims.empty() && shape.numel() != 1;
}

// Whether a step of the program drops elements that the program does not declare.
bool LosesElements(const Shape& shape, const ParamDecl& param) {
  if (!param.loses_elements || absl::c_linear_search(param.dims, -1)) return false;
  // In double, which has room for the dims of any file.
  const double declared = absl::c_accumulate(param.dims, 1.0, std::multiplies<double>());
  return static_cast<double>(shape.numel()) > declared;
}

bool FitsShape(const Shape& shape, const ParamDecl& param) {
  return FitsDims(shape.dims(), param.dims) || DeclaresNoDims(shape, param) ||
         LosesElements(shape, param) || (param.written && FitsButForOnes(shape.dims(), param));
}

bool FitsDType(DType dtype, const ParamDecl& param) {
  return param.dtype == DType::kUndefined || param.unused || dtype == param.dtype;
}

// Whether a tensor may take the declared dims as its own.
bool Reshapes(const Shape& shape, const Lod& lod, const ParamDecl& param) {
  const bool complete = param.dims.size() <= kMaxRank && !absl::c_linear_search(param.dims, -1);
  return complete && lod.empty() && FitsButForOnes(shape.dims(), param);
}

// A number has one dim or none, depending on the version of Paddle.
bool IsNumber(const Shape& shape) { return shape.rank() <= 1 && shape.numel() == 1; }

bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// Weights of quantised programs.
bool Widens(DType from, DType to) {
  return to == DType::kFloat32 && (from == DType::kInt8 || from == DType::kInt16);
}

// Whether the program has ops that put values on a grid of whole numbers, or bring them back.
bool IsQuantised(const Program& program) {
  return AnyOp(program, [](const Op& op) { return absl::StrContains(op.type, "quantize"); });
}

// By VarId: what the whole numbers of weights are multiplied by; empty where that does not bring
// them back: Paddle 2.6 cuts the scales off to integers.
absl::flat_hash_map<VarId, std::vector<float>> FindWeightScales(const Program& program) {
  absl::flat_hash_map<VarId, std::vector<float>> found;
  for (const WeightScaleAttr& at : WeightScaleAttrsOf(program)) {
    const auto* const scales = std::get_if<std::vector<float>>(&at.attr.value);
    found[at.weights] = scales == nullptr ? std::vector<float>() : *scales;
  }
  return found;
}

// Counts of auc, which leaves those out that it does not use.
bool IsCountOfAuc(const Op& op, const Slot& slot) {
  return op.type == "auc" && (slot.name == "StatPosOut" || slot.name == "StatNegOut");
}

// Multiplies a tensor by the scales of its declaration: one for all, or one for each output
// channel, which come first in filters of convolutions and last in weights of products.
absl::Status MultiplyByScales(const ParamDecl& param, Tensor& tensor) {
  const int dim = tensor.shape.rank() > 2 ? 0 : tensor.shape.rank() - 1;
  const auto count = std::ssize(param.scales);
  const bool by_index = count > 1;
  if (by_index && (dim < 0 || dim >= tensor.shape.rank() || tensor.shape[dim] != count)) {
    return InvalidArgument("an op brings the whole numbers of the file back by ", count,
                           " scales, which do not fit ", ToString(tensor.shape));
  }
  const int64_t inner = by_index ? tensor.shape.numel(dim + 1, tensor.shape.rank()) : 1;
  auto* const values = tensor.mutable_data<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) values[i] *= param.scales[i / inner % count];
  return absl::OkStatus();
}

absl::Status NotDeclared(DType dtype, const Shape& shape, const ParamDecl& param) {
  return InvalidArgument("the file has ", Name(dtype), ToString(shape), ", the program declares ",
                         Name(param.dtype), "[", absl::StrJoin(param.dims, ","), "]");
}

bool IsPersistableTensor(const Var& var) {
  return var.persistable && var.kind == VarKind::kLodTensor;
}

}  // namespace

std::vector<VarId> PersistableTensors(const Program& program) {
  std::vector<VarId> ids;
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (IsPersistableTensor(var)) ids.push_back(var.id);
    }
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<ParamDecl> ParamsOf(const Program& program, absl::Span<const VarId> made_in_runs) {
  const std::vector<bool> written = NamedIn(program, &Op::outputs);
  const std::vector<bool> read = NamedIn(program, &Op::inputs);
  const std::vector<bool> made_first = MadeFirst(program);
  const std::vector<bool> counts = NamedIn(program, &Op::outputs, IsCountOfAuc);
  const bool quantised = IsQuantised(program);
  absl::flat_hash_map<VarId, std::vector<float>> scales = FindWeightScales(program);
  std::vector<ParamDecl> params;
  std::vector<bool> seen(program.names.size());
  for (const Block& block : program.blocks) {
    for (const Var& var : block.vars) {
      if (!IsPersistableTensor(var) || seen[var.id]) continue;
      seen[var.id] = true;
      params.push_back({.name = program.NameOf(var.id),
                        .dtype = var.dtype,
                        .dims = var.dims,
                        .written = written[var.id],
                        .unused = !written[var.id] && !read[var.id],
                        .quantised = quantised,
                        .loses_elements = counts[var.id],
                        .made_first = made_first[var.id]});
      if (const auto own = scales.find(var.id); own != scales.end()) {
        params.back().quantised = !own->second.empty();
        params.back().scales = std::move(own->second);
      }
    }
  }
  for (const VarId id : made_in_runs) {
    params.push_back({.name = program.NameOf(id), .dims = {}, .written = true, .made_first = true});
  }
  std::sort(params.begin(), params.end(),
            [](const ParamDecl& a, const ParamDecl& b) { return a.name < b.name; });
  return params;
}

absl::Status CheckDeclared(DType dtype, const Shape& shape, const ParamDecl& param) {
  if (param.dtype == DType::kUndefined) return absl::OkStatus();
  if (FitsDType(dtype, param) && FitsShape(shape, param)) return absl::OkStatus();
  return NotDeclared(dtype, shape, param);
}

bool Rounds(DType from, DType to) {
  return to == DType::kFloat32 ? IsHalf(from) : from == DType::kFloat32 && IsHalf(to);
}

absl::StatusOr<Tensor> Converted(const Tensor& tensor, DType dtype) {
  Tensor result;
  result.dtype = dtype;
  result.shape = tensor.shape;
  result.layout = tensor.layout;
  result.lod = tensor.lod;
  INTERP_RETURN_IF_ERROR(result.Allocate(LastingAllocator()));
  WithNumber(tensor.dtype, [&]<typename From>() {
    WithOneOf<float, float16, bfloat16>(dtype, [&]<typename To>() {
      std::transform(tensor.data<From>(), tensor.data<From>() + tensor.numel(),
                     result.mutable_data<To>(),
                     [](From value) { return To(static_cast<float>(value)); });
    });
  });
  return result;
}

absl::Status CheckTaken(DType dtype, const Shape& shape, const Lod& lod, const ParamDecl& param) {
  if (CheckDeclared(dtype, shape, param).ok()) return absl::OkStatus();
  const bool converts = FitsDType(dtype, param) || Rounds(dtype, param.dtype) ||
                        (param.quantised && Widens(dtype, param.dtype));
  const bool reshapes = FitsShape(shape, param) || Reshapes(shape, lod, param);
  return converts && reshapes ? absl::OkStatus() : NotDeclared(dtype, shape, param);
}

absl::StatusOr<Tensor> AsDeclared(Tensor tensor, const ParamDecl& param) {
  INTERP_RETURN_IF_ERROR(CheckTaken(tensor.dtype, tensor.shape, tensor.lod, param));
  if (param.dtype == DType::kUndefined) return tensor;
  if (!FitsDType(tensor.dtype, param)) {
    const bool scales = !param.scales.empty() && Widens(tensor.dtype, param.dtype);
    INTERP_ASSIGN_OR_RETURN(tensor, Converted(tensor, param.dtype));
    if (scales) INTERP_RETURN_IF_ERROR(MultiplyByScales(param, tensor));
  }
  const bool reshapes = !FitsShape(tensor.shape, param) || IsNumber(tensor.shape);
  if (reshapes && Reshapes(tensor.shape, tensor.lod, param)) tensor.shape = Shape(param.dims);
  return tensor;
}

}  // namespace interp
