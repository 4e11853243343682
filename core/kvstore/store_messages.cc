#include "core/kvstore/store_messages.h"

namespace interp {

absl::StatusOr<Tensor> NewTensor(DType dtype, const Shape& shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
  return tensor;
}

StartedMessage SendTensor(Communicator& ring, int rank, int tag, const Tensor& tensor) {
  if (tensor.size_bytes() == 0) return nullptr;
  return ring.Start({.kind = CommKind::kSend,
                     .root = rank,
                     .tag = tag,
                     .count = static_cast<int64_t>(tensor.size_bytes()),
                     .in = tensor.raw_data(),
                     .name = "store"},
                    {tensor.buffer()});
}

StartedMessage ReceiveTensor(Communicator& ring, int rank, int tag, Tensor& tensor, bool patient) {
  if (tensor.size_bytes() == 0) return nullptr;
  return ring.Start({.kind = CommKind::kReceive,
                     .root = rank,
                     .tag = tag,
                     .count = static_cast<int64_t>(tensor.size_bytes()),
                     .out = tensor.mutable_raw_data(),
                     .name = "store",
                     .patient = patient},
                    {tensor.buffer()});
}

}  // namespace interp
