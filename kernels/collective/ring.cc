#include "kernels/collective/ring.h"

#include "core/comm/device_communicator.h"
#include "core/device/device.h"
#include "core/resource/place_resources.h"

namespace interp {

namespace {

absl::StatusOr<const RingsHandle*> HandleOfRings(const KernelContext& ctx) {
  return ctx.place_resources().GetOrMake<RingsHandle>(
      "", []() -> absl::StatusOr<std::unique_ptr<RingsHandle>> {
        return std::make_unique<RingsHandle>(RingsHandle{.rings = Rings::Alone()});
      });
}

}  // namespace

absl::StatusOr<Rings*> RingsOf(const KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RingsHandle* const handle, HandleOfRings(ctx));
  return handle->rings.get();
}

absl::StatusOr<Communicator*> FindRing(const KernelContext& ctx, int ring_id) {
  INTERP_ASSIGN_OR_RETURN(Rings* const rings, RingsOf(ctx));
  return rings->Find(ring_id);
}

RingAttrs RingAttrs::Read(AttrReader& reader) {
  RingAttrs attrs;
  attrs.ring_id = reader.Int("ring_id", 0);
  attrs.nranks = reader.Int("nranks", 0);
  attrs.rank = reader.Int("rank", -1);
  // c_reduce_* call it by another name than all other ops.
  attrs.root = reader.Int(reader.Has("root_id") ? "root_id" : "root", 0);
  return attrs;
}

absl::StatusOr<Communicator*> FindRing(const KernelContext& ctx, const RingAttrs& attrs) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, attrs.ring_id));
  if (attrs.nranks > 0 && attrs.nranks != ring->size()) {
    return InvalidArgument("the op is for ", attrs.nranks, " ranks, and ring ", attrs.ring_id,
                           " has ", ring->size(), ": start that many, as with `mpirun -n ",
                           attrs.nranks, "`");
  }
  if (attrs.rank >= 0 && attrs.rank != ring->rank()) {
    return InvalidArgument("the op is for rank ", attrs.rank, " of ring ", attrs.ring_id,
                           ", and this process is rank ", ring->rank());
  }
  return ring;
}

absl::StatusOr<Communicator*> FindRingOfParts(const KernelContext& ctx) {
  RingAttrs attrs = ctx.attrs<RingAttrs>();
  attrs.nranks = attrs.parts();
  return FindRing(ctx, attrs);
}

namespace {

// What a collective is where a device has a ring for itself.
absl::Status CopyAlone(const KernelContext& ctx, const CommCall& call) {
  const size_t bytes = static_cast<size_t>(call.count) * SizeOf(call.dtype);
  if (call.in == call.out) return absl::OkStatus();
  return ctx.stream().CopyOnDevice(call.out, call.in, bytes, ctx.work());
}

absl::StatusOr<DeviceCommunicator*> FindDeviceRing(const KernelContext& ctx, Communicator& ring) {
  return ctx.place_resources().GetOrMake<DeviceCommunicator>(
      absl::StrCat(ring.number()), [&]() -> absl::StatusOr<std::unique_ptr<DeviceCommunicator>> {
        const PlaceKind kind = ctx.stream().place().kind;
        INTERP_RETURN_IF_ERROR(DeviceCommunication(kind));
        INTERP_ASSIGN_OR_RETURN(const RingsHandle* const handle, HandleOfRings(ctx));
        return FindDeviceCommunicatorMaker(kind)->make(handle->rings, ring, ctx.stream());
      });
}

KernelDef OnGpus(DType dtype, KernelFn run) {
  return {.dtype = dtype, .run = run, .place = PlaceKind::kCuda, .takes = GpusCommunicate};
}

}  // namespace

absl::Status BetweenHosts(const KernelContext& ctx, Communicator& ring, const CommCall& call,
                          const std::vector<BufferRef>& memory) {
  static_cast<void>(ctx);
  return ring.Run(call, memory);
}

absl::Status BetweenDevices(const KernelContext& ctx, Communicator& ring, const CommCall& call,
                            const std::vector<BufferRef>& memory) {
  static_cast<void>(memory);  // what a stream has to do is done before it is freed
  if (ring.size() == 1) {
    INTERP_RETURN_IF_ERROR(CheckCall(call, /*rank=*/0, /*size=*/1));
    return CopyAlone(ctx, call);
  }
  INTERP_ASSIGN_OR_RETURN(DeviceCommunicator* const devices, FindDeviceRing(ctx, ring));
  INTERP_RETURN_IF_ERROR(ring.Compare(call));
  return devices->Enqueue(call, ctx.stream(), ctx.work());
}

bool GpusCommunicate(const void* attrs) {
  static_cast<void>(attrs);
  return DeviceCommunication(PlaceKind::kCuda).ok();
}

std::vector<KernelDef> CollectiveKernels(KernelFn on_host, KernelFn on_gpus) {
  return {{.dtype = DType::kUndefined, .run = on_host, .host_only = true},
          OnGpus(DType::kUndefined, on_gpus)};
}

std::vector<KernelDef> ReducingKernels(KernelFn on_host, KernelFn on_gpus) {
  std::vector<KernelDef> rows = {{.dtype = DType::kUndefined, .run = on_host, .host_only = true}};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                            DType::kInt32, DType::kInt64, DType::kInt8, DType::kUInt8}) {
    rows.push_back(OnGpus(dtype, on_gpus));
  }
  return rows;
}

absl::StatusOr<int64_t> RowsOfPart(const OpContext& ctx, int slot, int64_t parts) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() > 0 && parts > 0 && shape[0] % parts == 0) return shape[0] / parts;
  return InvalidArgument("'X' has shape ", ToString(shape), ", expected a first dimension that ",
                         parts, " ranks can share");
}

absl::Status InferPartOfRows(InferContext& ctx) {
  Shape shape = ctx.input(0).shape;
  INTERP_ASSIGN_OR_RETURN(shape[0], RowsOfPart(ctx, 0, ctx.attrs<RingAttrs>().parts()));
  ctx.SetShape(0, shape);
  return absl::OkStatus();
}

}  // namespace interp
