#include "tests/cuda_emulation/stream_order.h"

#include <algorithm>

namespace interp::cuda_emulation {

void Moment::Join(const Moment& other) {
  numbers_.resize(std::max(numbers_.size(), other.numbers_.size()));
  for (size_t i = 0; i < other.numbers_.size(); ++i) {
    numbers_[i] = std::max(numbers_[i], other.numbers_[i]);
  }
}

void Moment::Set(uint32_t queue, uint32_t number) {
  if (queue >= numbers_.size()) numbers_.resize(queue + 1);
  numbers_[queue] = number;
}

Moment& StreamOrder::OfQueue(uint32_t queue) {
  if (queue >= queues_.size()) queues_.resize(queue + 1);
  return queues_[queue];
}

StreamWork StreamOrder::Enqueue(uint32_t queue) {
  Moment& moment = OfQueue(queue);
  moment.Join(host_);
  const uint32_t number = moment.Get(queue) + 1;
  moment.Set(queue, number);
  return {.stamp = WorkStamp(queue, number), .moment = std::make_shared<const Moment>(moment)};
}

std::shared_ptr<const Moment> StreamOrder::Now(uint32_t queue) {
  return std::make_shared<const Moment>(OfQueue(queue));
}

void StreamOrder::Wait(uint32_t queue, const Moment& moment) { OfQueue(queue).Join(moment); }

}  // namespace interp::cuda_emulation
