// What tests of rows have in common: one op, run by its row of the host and by its row of a GPU.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/cuda/cuda_device.h"
#include "core/device/device_heap.h"
#include "core/op_def.h"
#include "core/resource/place_resources.h"
#include "tests/cuda/bound_row.h"
#include "tests/cuda/kernel_test.h"

namespace interp::cuda_test {

class RowTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    auto device = cuda::MakeCudaDevice(0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    heap_ = std::make_unique<DeviceHeap>(device_);
    resources_ = std::make_unique<PlaceResources>();
    stream_ = *device_->CreateStream("row", /*priority=*/0);
  }
  void TearDown() override {
    resources_.reset();
    stream_.reset();
    heap_.reset();
    device_.reset();
    KernelTest::TearDown();
  }

  // Every output of the GPU is that of the host, floats up to their precision.
  void ExpectSameAsHost(const RowCase& c) { CompareWithHost(c, ExpectSameTensor); }
  // To the last bit.
  void ExpectSameBitsAsHost(const RowCase& c) { CompareWithHost(c, ExpectSameBits); }
  // Whether a row of the GPU takes the case.
  static bool HasRow(const RowCase& c) {
    BoundRow bound;
    return BindRow(c, PlaceKind::kCuda, bound).ok();
  }
  // The outputs, on the host.
  std::vector<Tensor> Run(const RowCase& c, PlaceKind place) {
    const bool on_host = place == PlaceKind::kCpu;
    BoundRow bound;
    const absl::Status found = BindRow(c, place, bound);
    EXPECT_TRUE(found.ok()) << found;
    if (!found.ok()) return {};
    InferContext infer(bound.args, bound.attrs.get());
    const absl::Status inferred = bound.def->infer(infer);
    EXPECT_TRUE(inferred.ok()) << inferred;
    if (!inferred.ok()) return {};
    if (!on_host) MoveInputs(bound);
    Allocator& allocator = on_host ? SystemAllocator() : heap_->allocator();
    for (Variable& out : bound.outputs) {
      const bool allocated = out.tensor.numel() == 0 || out.tensor.Allocate(allocator).ok();
      EXPECT_TRUE(allocated);
    }
    std::unique_ptr<KernelState> state;
    const KernelContext::PlaceServices services{
        .stream = stream_.get(), .workspace = &allocator, .resources = resources_.get()};
    KernelContext ctx(
        bound.args, bound.attrs.get(),
        {.allocator = &SystemAllocator(), .state = &state, .place = on_host ? nullptr : &services});
    const absl::Status ran =
        on_host ? bound.kernel(ctx)
                : stream_->EnqueueKernel(ctx.work(), [&] { return bound.kernel(ctx); });
    EXPECT_TRUE(ran.ok()) << ran;
    if (!ran.ok()) return {};
    EXPECT_TRUE(stream_->Synchronize().ok());
    std::vector<Tensor> outputs;
    for (Variable& out : bound.outputs) {
      const bool on_device = !out.tensor.place().on_host();
      outputs.push_back(on_device ? *heap_->Download(out.tensor, SystemAllocator()) : out.tensor);
    }
    return outputs;
  }

 private:
  // Inputs go to the GPU; those of which only metadata are read have no memory there.
  void MoveInputs(BoundRow& bound) {
    for (size_t slot = 0; slot < bound.def->inputs.size(); ++slot) {
      const int flags = bound.def->inputs[slot].flags;
      const BoundArgs::Range range = bound.args.input_slots[slot];
      for (int i = 0; i < range.size; ++i) {
        Tensor& tensor = *bound.args.tensors[range.begin + i];
        if ((flags & kNoNeedBuffer) != 0) {
          tensor.DropMemory();
        } else if ((flags & (kHostInput | kValueInInfer)) == 0 && tensor.numel() > 0) {
          tensor = *heap_->Upload(tensor);
        }
      }
    }
  }

  template <typename Expect>
  void CompareWithHost(const RowCase& c, const Expect& expect) {
    SCOPED_TRACE(c.type);
    const std::vector<Tensor> want = Run(c, PlaceKind::kCpu);
    const std::vector<Tensor> got = Run(c, PlaceKind::kCuda);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("output ", i));
      expect(got[i], want[i]);
    }
  }

  template <typename T>
  static std::vector<T> ValuesOf(const Tensor& tensor) {
    const T* const data = tensor.data<T>();
    return std::vector<T>(data, data + tensor.numel());
  }

  static void ExpectSameTensor(const Tensor& got, const Tensor& want) {
    ASSERT_EQ(DescribeType(got), DescribeType(want));
    ASSERT_EQ(got.layout, want.layout);
    if (want.numel() == 0) return;
    if (want.dtype == DType::kFloat32)
      return ExpectClose(ValuesOf<float>(got), ValuesOf<float>(want));
    if (want.dtype == DType::kFloat64) {
      return ExpectClose(ValuesOf<double>(got), ValuesOf<double>(want));
    }
    if (want.dtype == DType::kFloat16) {
      return ExpectClose(ValuesOf<float16>(got), ValuesOf<float16>(want));
    }
    if (want.dtype == DType::kBFloat16) {
      return ExpectClose(ValuesOf<bfloat16>(got), ValuesOf<bfloat16>(want));
    }
    ExpectSameBits(got, want);
  }

  static void ExpectSameBits(const Tensor& got, const Tensor& want) {
    ASSERT_EQ(DescribeType(got), DescribeType(want));
    if (want.numel() == 0) return;
    const auto* const bytes = static_cast<const uint8_t*>(got.raw_data());
    const auto* const expected = static_cast<const uint8_t*>(want.raw_data());
    EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + got.size_bytes()),
              std::vector<uint8_t>(expected, expected + want.size_bytes()));
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceHeap> heap_;
  std::unique_ptr<PlaceResources> resources_;
  std::unique_ptr<Stream> stream_;
};

// SomeValues of T as a tensor of T.
template <typename T>
Tensor SomeTensor(const std::vector<int64_t>& dims, uint32_t seed = 1) {
  return Tensor::Of<T>(Shape(dims), SomeValues<T>(static_cast<size_t>(NumelOf(dims)), seed));
}

}  // namespace interp::cuda_test
