#include "core/device/memcpy.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/device/device.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status CopyOnHost(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (!x.has_memory()) {
    out.DropMemory();
  } else if (x.raw_data() != out.raw_data() && x.size_bytes() > 0) {
    std::memcpy(out.mutable_raw_data(), x.raw_data(), x.size_bytes());
  }
  return absl::OkStatus();
}

absl::Status EnqueueCopy(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (!x.has_memory()) out.DropMemory();
  const size_t bytes = x.has_memory() ? x.size_bytes() : 0;
  if (bytes == 0) return absl::OkStatus();
  const Work work = ctx.work();
  if (x.place().on_host()) {
    return ctx.stream().CopyToDevice(out.mutable_raw_data(), x.raw_data(), x.buffer(), bytes, work);
  }
  if (out.place().on_host()) {
    return ctx.stream().CopyToHost(out.mutable_raw_data(), out.buffer(), x.raw_data(), bytes, work);
  }
  if (x.place().kind != out.place().kind) {
    return absl::InternalError(absl::StrCat("a copy from ", Name(x.place()), " to ",
                                            Name(out.place()), " has to go through the host"));
  }
  if (x.place() != out.place()) {
    return ctx.stream().CopyFromPeer(out.mutable_raw_data(), x.raw_data(), x.place(), bytes, work);
  }
  return ctx.stream().CopyOnDevice(out.mutable_raw_data(), x.raw_data(), bytes, work);
}

KernelDef EnqueueRow(PlaceKind place) {
  return {.dtype = DType::kUndefined,
          .run = EnqueueCopy,
          .place = place,
          .layout = LayoutRule::kFollows};
}

OpDef CopyDef(absl::string_view type) {
  return OpDef{.type = type,
               .inputs = {{"X", kAnyDType | kMayBeEmpty}},
               .outputs = {{"Out"}},
               .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, ctx.input(kX)); },
               .infer = Infer,
               .kernels = {{DType::kUndefined, CopyOnHost},
                           EnqueueRow(PlaceKind::kSim),
                           EnqueueRow(PlaceKind::kCuda)},
               .layout = LayoutRule::kFollows};
}

}  // namespace

OpDef MemcpyHostToDevice() { return CopyDef("memcpy_h2d"); }
OpDef MemcpyDeviceToHost() { return CopyDef("memcpy_d2h"); }

OpDef MemcpyPeerToPeer() {
  OpDef def = CopyDef("memcpy_p2p");
  def.kernels.erase(def.kernels.begin());  // none for the host
  return def;
}

}  // namespace interp
