#include "tests/testing/train_ops.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_replace.h"
#include "tests/testing/probe.h"

namespace interp::testing {
namespace {

struct Attrs {
  int32_t tag = 0;
  int32_t col = 0;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {.tag = reader.Int("tag", 0), .col = reader.Int("col", 0)};
}

const float* In(const KernelContext& ctx, int slot) { return ctx.input(slot).data<float>(); }
float* Out(KernelContext& ctx, int slot) { return ctx.output(slot).mutable_data<float>(); }

absl::Status LikeFirst(InferContext& ctx) {
  ctx.ShareShape(0, 0);
  return absl::OkStatus();
}

absl::Status Product(KernelContext& ctx) {
  const int64_t n = ctx.input(0).shape[0];
  const int64_t k = ctx.input(0).shape[1];
  for (int64_t i = 0; i < n; ++i) {
    Out(ctx, 0)[i] = std::inner_product(In(ctx, 1), In(ctx, 1) + k, In(ctx, 0) + i * k, 0.0F);
  }
  return absl::OkStatus();
}

absl::Status SquaredError(KernelContext& ctx) {
  const int64_t n = ctx.input(0).numel();
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float d = In(ctx, 0)[i] - In(ctx, 1)[i];
    sum += d * d;
    Out(ctx, 1)[i] = 2 * d / static_cast<float>(n);
  }
  Out(ctx, 0)[0] = sum / static_cast<float>(n);
  return absl::OkStatus();
}

absl::Status ProductGrad(KernelContext& ctx) {
  const int64_t n = ctx.input(0).shape[0];
  const int64_t k = ctx.input(0).shape[1];
  std::fill_n(Out(ctx, 0), k, 0.0F);
  for (int64_t i = 0; i < n * k; ++i) Out(ctx, 0)[i % k] += In(ctx, 1)[i / k] * In(ctx, 0)[i];
  return absl::OkStatus();
}

absl::Status Descend(KernelContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).numel(); ++i) {
    Out(ctx, 0)[i] = In(ctx, 0)[i] - 0.1F * In(ctx, 1)[i];
  }
  return absl::OkStatus();
}

absl::Status Track(KernelContext& ctx) {
  const int64_t n = ctx.input(0).numel();
  const float mean = std::accumulate(In(ctx, 0), In(ctx, 0) + n, 0.0F) / static_cast<float>(n);
  Out(ctx, 0)[0] = 0.9F * In(ctx, 1)[0] + 0.1F * mean;
  return absl::OkStatus();
}

absl::Status Noise(KernelContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).numel(); ++i) {
    const auto word = ctx.random().Word(static_cast<uint64_t>(i));
    Out(ctx, 0)[i] = In(ctx, 0)[i] + static_cast<float>(word >> 16) / 131072.0F;
  }
  return absl::OkStatus();
}

absl::Status Guard(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(ctx.attrs<Attrs>().tag));
  if (In(ctx, 0)[0] < -100) return InvalidArgument("a sample is bad");
  std::copy_n(In(ctx, 0), ctx.input(0).numel(), Out(ctx, 0));
  return absl::OkStatus();
}

absl::Status Count(KernelContext& ctx) {
  ctx.output(0).mutable_data<int64_t>()[0] = ctx.input(0).numel();
  return absl::OkStatus();
}

absl::Status Feed(KernelContext& ctx) {
  ctx.output(0) = ctx.input_array(0)[ctx.attrs<Attrs>().col];
  return absl::OkStatus();
}

absl::Status Fetch(KernelContext& ctx) {
  std::vector<Tensor>& list = ctx.output_array(0);
  const size_t col = static_cast<size_t>(ctx.attrs<Attrs>().col);
  if (list.size() <= col) list.resize(col + 1);
  INTERP_ASSIGN_OR_RETURN(list[col], ctx.input(0).Clone(ctx.allocator()));
  return absl::OkStatus();
}

OpDef Def(absl::string_view type, std::vector<SlotDef> inputs, std::vector<SlotDef> outputs,
          absl::Status (*infer)(InferContext&), KernelFn run) {
  return {.type = type,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .parse = ParseAttrs<Attrs, ReadAttrs>,
          .infer = infer,
          .kernels = {{DType::kFloat32, run}}};
}

void AddForward(OpRegistry& ops) {
  ops.Add(Def(
      "product", {{"X"}, {"W"}}, {{"P"}},
      [](InferContext& ctx) {
        ctx.SetShape(0, {ctx.input(0).shape[0]});
        return absl::OkStatus();
      },
      Product));
  ops.Add(Def(
      "squared_error", {{"P"}, {"Y"}}, {{"Loss"}, {"D"}},
      [](InferContext& ctx) {
        ctx.SetShape(0, {1});
        ctx.ShareShape(0, 1);
        return absl::OkStatus();
      },
      SquaredError));
  OpDef track = Def(
      "track", {{"X"}, {"State"}}, {{"StateOut"}},
      [](InferContext& ctx) {
        ctx.SetShape(0, {1});
        return absl::OkStatus();
      },
      Track);
  track.inplace = {{1, 0}};
  ops.Add(std::move(track));
  OpDef noise = Def("noise", {{"X"}}, {{"Out"}}, LikeFirst, Noise);
  noise.random = true;
  ops.Add(std::move(noise));
  OpDef guard = Def("guard", {{"X"}}, {{"Out"}}, LikeFirst, Guard);
  guard.inplace = {{0, 0}};
  ops.Add(std::move(guard));
  OpDef count = Def(
      "count", {{"X"}}, {{"Out"}},
      [](InferContext& ctx) {
        ctx.SetShape(0, {1});
        return absl::OkStatus();
      },
      Count);
  count.infer_dtype = [](DTypeContext& ctx) { ctx.Set(0, DType::kInt64); };
  ops.Add(std::move(count));
}

OpRegistry MakeTrainOps() {
  OpRegistry ops;
  AddForward(ops);
  ops.Add(Def(
      "product_grad", {{"X"}, {"D"}}, {{"WGrad"}},
      [](InferContext& ctx) {
        ctx.SetShape(0, {ctx.input(0).shape[1]});
        return absl::OkStatus();
      },
      ProductGrad));
  OpDef descend = Def("descend", {{"Param"}, {"Grad"}}, {{"ParamOut"}}, LikeFirst, Descend);
  descend.inplace = {{0, 0}};
  ops.Add(std::move(descend));
  ops.Add({.type = "feed",
           .inputs = {{"X", kTensorArray}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<Attrs, ReadAttrs>,
           .kernels = {{DType::kUndefined, Feed}},
           .dynamic_outputs = true});
  ops.Add({.type = "fetch",
           .inputs = {{"X", kAnyDType}},
           .outputs = {{"Out", kTensorArray}},
           .parse = ParseAttrs<Attrs, ReadAttrs>,
           .infer = [](InferContext&) { return absl::OkStatus(); },
           .kernels = {{DType::kUndefined, Fetch}},
           .side_effect = true});
  return ops;
}

}  // namespace

const OpRegistry& TrainOps() {
  static const OpRegistry* ops = new OpRegistry(MakeTrainOps());
  return *ops;
}

std::string RegressionText(bool with_noise) {
  constexpr absl::string_view kText = R"(block 0
  var w float32[3] param
  var s float32[1] persistable
  var x float32[-1,3] check_feed
  var y float32[-1] check_feed
  var seen float32[-1,3]
  var p float32[-1]
  var loss float32[1]
  var counted int64[1]
  var d float32[-1]
  var w@GRAD float32[3]
  guard(X=x) -> (Out=guarded) {op_role=0, tag=1}
  $READ(X=guarded) -> (Out=seen) {op_role=0, tag=2}
  track(X=seen, State=s) -> (StateOut=s) {op_role=0}
  product(X=seen, W=w) -> (P=p) {op_role=0}
  squared_error(P=p, Y=y) -> (Loss=loss, D=d) {op_role=256}
  count(X=w) -> (Out=counted) {op_role=0}
  product_grad(X=seen, D=d) -> (WGrad=w@GRAD) {op_role=1}
  descend(Param=w, Grad=w@GRAD) -> (ParamOut=w) {op_role=2}
)";
  return absl::StrReplaceAll(kText, {{"$READ", with_noise ? "noise" : "guard"}});
}

}  // namespace interp::testing
