// What ranks tell each other about a store whose keys are kept by one rank each, and how.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "core/comm/communicator.h"
#include "core/tensor.h"

namespace interp {

enum class StoreVerb : int32_t {
  kPush,       // values follow
  kPushCodes,  // values in two bits each follow (two_bit.h)
  kPushRows,   // numbers of rows follow, then their values
  kPull,       // answered by the values
  kPullRows,   // numbers of rows follow; answered by their values
  kFlush,      // answered when all that came before is done
  kLeave,      // nothing comes any more
};

// Whether somebody waits for a StoreReply.
inline bool IsAnswered(StoreVerb verb) {
  return verb == StoreVerb::kPull || verb == StoreVerb::kPullRows || verb == StoreVerb::kFlush;
}

struct StoreRequest {
  StoreVerb verb = StoreVerb::kLeave;
  int32_t key = 0;  // counted in the order of Init
  int32_t priority = 0;
  float threshold = 0;   // of codes
  int64_t num_rows = 0;  // that follow
};

// In front of an answer.
struct StoreReply {
  int32_t code = 0;                    // absl::StatusCode; only kOk has values behind it
  std::array<char, 508> message = {};  // ends with a zero
};

// Tags behind the first one of a store.
inline constexpr int kStoreRequestTag = 0;
inline constexpr int kStoreDataTag = 1;  // what follows a request
inline constexpr int kStoreAnswerTag = 2;
inline constexpr int kNumStoreTags = 3;

// A tensor of the host, with memory.
absl::StatusOr<Tensor> NewTensor(DType dtype, const Shape& shape);

template <typename T>
absl::StatusOr<Tensor> BytesOf(const T& message) {
  static_assert(std::is_trivially_copyable_v<T>);
  INTERP_ASSIGN_OR_RETURN(Tensor bytes, NewTensor(DType::kUInt8, Shape{sizeof(T)}));
  std::memcpy(bytes.mutable_raw_data(), &message, sizeof(T));
  return bytes;
}

template <typename T>
T MessageIn(const Tensor& bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T message;
  std::memcpy(&message, bytes.raw_data(), sizeof(T));
  return message;
}

// Start a message of a tensor's bytes. Null where there are none: nothing is sent then.
using StartedMessage = absl::StatusOr<std::shared_ptr<CommRequest>>;
StartedMessage SendTensor(Communicator& ring, int rank, int tag, const Tensor& tensor);
// `patient`: without a timeout.
StartedMessage ReceiveTensor(Communicator& ring, int rank, int tag, Tensor& tensor,
                             bool patient = false);

}  // namespace interp
