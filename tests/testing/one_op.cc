#include "tests/testing/one_op.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/testing/slot_dtypes.h"

namespace interp::testing {
namespace {

void AbortUnless(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

}  // namespace

OneOp::OneOp(std::string type, std::vector<Attr> attrs, const std::vector<Input>& inputs,
             Layout layout, absl::Span<const absl::string_view> absent_outputs) {
  op_.type = std::move(type);
  op_.attrs = std::move(attrs);
  def_ = OpRegistry::Global().Find(op_.type);
  if (def_ == nullptr) AbortUnless(NotFound("no op '", op_.type, "'"));
  if (def_->parse != nullptr) {
    AttrReader reader(op_);
    absl::StatusOr<ParsedAttrs> parsed = def_->parse(reader);
    AbortUnless(parsed.status());
    attrs_ = *std::move(parsed);
  }
  BindInputs(inputs);
  BindOutputs(layout, absent_outputs);
  InferContext context(args_, attrs_.get());
  AbortUnless(def_->infer(context));
  for (Variable& out : outputs_) AbortUnless(out.tensor.Allocate(SystemAllocator()));
}

void OneOp::BindInputs(const std::vector<Input>& inputs) {
  for (const SlotDef& slot : def_->inputs) {
    BoundArgs::Range range{static_cast<int32_t>(args_.tensors.size()), 0};
    for (const Input& input : inputs) {
      if (input.slot != slot.name) continue;
      Variable& variable = inputs_.emplace_back();
      variable.tensor = input.tensor;
      args_.tensors.push_back(&variable.tensor);
      args_.variables.push_back(&variable);
      args_.constant.push_back(false);
      ++range.size;
    }
    args_.input_slots.push_back(range);
  }
}

void OneOp::BindOutputs(Layout layout, absl::Span<const absl::string_view> absent) {
  SlotDTypes in;
  for (const BoundArgs::Range range : args_.input_slots) {
    in.counts.push_back(range.size);
    for (int i = 0; i < range.size; ++i) {
      in.dtypes.push_back(args_.tensors[range.begin + i]->dtype);
    }
  }
  SlotDTypes out_types{.dtypes = std::vector<DType>(def_->outputs.size(), DType::kUndefined),
                       .counts = std::vector<int32_t>(def_->outputs.size(), 1)};
  const DTypeContext undecided(in.AsInputs(), attrs_.get(), inputs_[0].tensor.dtype,
                               out_types.AsOutputs());
  const DType dtype =
      def_->kernel_dtype != nullptr ? def_->kernel_dtype(undecided) : inputs_[0].tensor.dtype;
  std::fill(out_types.dtypes.begin(), out_types.dtypes.end(), dtype);
  DTypeContext decided(in.AsInputs(), attrs_.get(), dtype, out_types.AsOutputs());
  if (def_->infer_dtype != nullptr) def_->infer_dtype(decided);
  for (size_t i = 0; i < def_->outputs.size(); ++i) {
    Variable& variable = outputs_.emplace_back();
    Tensor& out = variable.tensor;
    out.dtype = out_types.dtypes[i];
    out.layout = layout;
    const bool is_absent =
        std::find(absent.begin(), absent.end(), def_->outputs[i].name) != absent.end();
    args_.output_slots.push_back({static_cast<int32_t>(args_.tensors.size()), is_absent ? 0 : 1});
    if (is_absent) continue;
    args_.tensors.push_back(&out);
    args_.variables.push_back(&variable);
  }
  const auto row = std::find_if(
      def_->kernels.begin(), def_->kernels.end(),
      [dtype](const KernelDef& k) { return k.dtype == dtype || k.dtype == DType::kUndefined; });
  if (row == def_->kernels.end())
    AbortUnless(NotFound(op_.type, " has no kernel for ", Name(dtype)));
  kernel_ = row->run;
}

absl::Status OneOp::Run(int num_threads) {
  KernelContext::Services services;
  services.allocator = &SystemAllocator();
  services.state = &state_;
  services.num_threads = num_threads;
  KernelContext context(args_, attrs_.get(), services);
  return kernel_(context);
}

}  // namespace interp::testing
