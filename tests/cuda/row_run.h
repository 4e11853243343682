// One op by its row for the host and by that for GPUs, on the same inputs.
// Long because both ways to run an op share its tensors.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/cuda/cuda_device.h"
#include "core/device/stream_pool.h"
#include "core/find_kernel.h"
#include "core/resource/place_resources.h"
#include "tests/cuda/kernel_test.h"
#include "tests/cuda/numbers.h"

namespace interp::cuda_test {

struct RowRunOptions {
  size_t offset = 0;     // elements before each tensor on the GPU, for bad alignment
  bool inplace = false;  // outputs take the memory of inputs where the op allows it
  double tolerance = 0;  // 0: that of the dtype
  std::vector<absl::string_view> absent = {};  // outputs that the program does not ask for
};

// Runs an op both ways and compares all outputs. A machine lives.
class RowRun {
 public:
  RowRun(const std::string& type, const std::vector<Attr>& attrs,
         const std::vector<testing::OneOp::Input>& inputs, const RowRunOptions& options = {})
      : type_(type),
        inputs_(inputs),
        options_(options),
        host_(type, attrs, inputs, Layout::kPlain, options.absent) {
    op_.type = type;
    op_.attrs = attrs;
  }
  ~RowRun() {
    for (void* address : memory_) cudaFree(address);
  }

  void ExpectTheSame() {
    ASSERT_TRUE(host_.Run().ok());
    const absl::Status status = RunOnGpu();
    ASSERT_TRUE(status.ok()) << status;
    const OpDef& def = *OpRegistry::Global().Find(type_);
    for (size_t slot = 0; slot < def.outputs.size(); ++slot) {
      if (IsAbsent(def.outputs[slot])) continue;
      SCOPED_TRACE(absl::StrCat(type_, ", output ", def.outputs[slot].name));
      Compare(outputs_[slot], host_.output(static_cast<int>(slot)));
    }
  }

 private:
  bool IsAbsent(const SlotDef& slot) const {
    return std::find(options_.absent.begin(), options_.absent.end(), slot.name) !=
           options_.absent.end();
  }

  // A copy on the GPU.
  Tensor Upload(const Tensor& tensor) {
    Tensor copy = Place(tensor);
    if (tensor.size_bytes() > 0) {
      EXPECT_EQ(cudaMemcpy(copy.mutable_raw_data(), tensor.raw_data(), tensor.size_bytes(),
                           cudaMemcpyHostToDevice),
                cudaSuccess);
    }
    return copy;
  }
  // The same, not written.
  Tensor Place(const Tensor& tensor) {
    void* address = nullptr;
    const size_t before = options_.offset * SizeOf(tensor.dtype);
    EXPECT_EQ(cudaMalloc(&address, tensor.size_bytes() + before), cudaSuccess);
    memory_.push_back(address);
    return Tensor::Borrow(tensor.dtype, tensor.shape, static_cast<char*>(address) + before);
  }

  void BindInputs(const OpDef& def) {
    for (const SlotDef& slot : def.inputs) {
      const auto begin = static_cast<int32_t>(device_inputs_.size());
      for (const auto& input : inputs_) {
        if (input.slot != slot.name) continue;
        const bool on_host = (slot.flags & (kHostInput | kValueInInfer)) != 0;
        device_inputs_.push_back(on_host ? input.tensor : Upload(input.tensor));
      }
      args_.input_slots.push_back({begin, static_cast<int32_t>(device_inputs_.size()) - begin});
    }
  }

  void BindOutputs(const OpDef& def) {
    for (size_t slot = 0; slot < def.outputs.size(); ++slot) {
      const Tensor& like = host_.output(static_cast<int>(slot));
      Tensor out;
      for (const SharePair& pair : def.inplace) {
        const BoundArgs::Range in = args_.input_slots[pair.input];
        const bool fits = options_.inplace && !IsAbsent(def.outputs[slot]) &&
                          pair.output == static_cast<int>(slot) && in.size > 0 &&
                          !out.has_memory() && Take(in.begin, like);
        if (!fits) continue;
        out = Tensor::Borrow(like.dtype, like.shape, device_inputs_[in.begin].raw_data());
      }
      const bool absent = IsAbsent(def.outputs[slot]);
      outputs_.push_back(out.has_memory() || absent ? out : Place(like));
      args_.output_slots.push_back(
          {static_cast<int32_t>(device_inputs_.size() + slot), absent ? 0 : 1});
    }
  }
  // Whether an output may have the memory of that input, which no other has then.
  bool Take(int32_t input, const Tensor& like) {
    const bool taken = std::find(taken_.begin(), taken_.end(), input) != taken_.end();
    const bool fits = device_inputs_[input].size_bytes() == like.size_bytes() && !taken;
    if (fits) taken_.push_back(input);
    return fits;
  }

  absl::Status RunOnGpu() {
    const OpDef& def = *OpRegistry::Global().Find(type_);
    ParsedAttrs attrs;
    if (def.parse != nullptr) {
      AttrReader reader(op_);
      INTERP_ASSIGN_OR_RETURN(attrs, def.parse(reader));
    }
    BindInputs(def);
    BindOutputs(def);
    for (Tensor& tensor : device_inputs_) args_.tensors.push_back(&tensor);
    for (Tensor& tensor : outputs_) args_.tensors.push_back(&tensor);
    args_.constant.assign(device_inputs_.size(), false);
    INTERP_ASSIGN_OR_RETURN(const int32_t row,
                            FindKernel(def, host_.output(0).dtype, attrs.get(), PlaceKind::kCuda));
    INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, cuda::MakeCudaDevice(0));
    INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device->CreateStream("s", 0));
    const std::shared_ptr<StreamPool> pool = StreamPool::Create(*device, {.poison_freed = true});
    PlaceResources resources;
    const KernelContext::PlaceServices place = {
        .stream = stream.get(), .workspace = &pool->ForStream(*stream), .resources = &resources};
    const KernelContext::Services services = {.allocator = &SystemAllocator(), .place = &place};
    KernelContext context(args_, attrs.get(), services);
    INTERP_RETURN_IF_ERROR(
        stream->EnqueueKernel({}, [&] { return def.kernels[row].run(context); }));
    return stream->Synchronize();
  }

  void Compare(const Tensor& on_gpu, const Tensor& want) {
    Tensor got;
    got.dtype = want.dtype;
    got.shape = want.shape;
    ASSERT_TRUE(got.Allocate(SystemAllocator()).ok());
    if (got.size_bytes() == 0) return;
    ASSERT_EQ(cudaMemcpy(got.mutable_raw_data(), on_gpu.raw_data(), got.size_bytes(),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    const double tolerance = options_.tolerance > 0           ? options_.tolerance
                             : want.dtype == DType::kBFloat16 ? 8e-3
                             : want.dtype == DType::kFloat16  ? 1e-3
                             : want.dtype == DType::kFloat32  ? 5e-6
                                                              : 0;
    const std::vector<double> wanted = AsDoubles(want);
    const std::vector<double> values = AsDoubles(got);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(wanted[i]) && std::isnan(values[i])) continue;
      if (wanted[i] == values[i]) continue;
      ASSERT_LE(std::abs(values[i] - wanted[i]), tolerance * (1 + std::abs(wanted[i])))
          << "element " << i << " is " << values[i] << ", the host has " << wanted[i];
    }
  }

  const std::string type_;
  const std::vector<testing::OneOp::Input> inputs_;
  const RowRunOptions options_;
  testing::OneOp host_;
  Op op_;
  std::vector<void*> memory_;
  std::vector<Tensor> device_inputs_;
  std::vector<Tensor> outputs_;
  std::vector<int32_t> taken_;
  BoundArgs args_;
};

inline void ExpectRowGivesTheSame(const std::string& type, const std::vector<Attr>& attrs,
                                  const std::vector<testing::OneOp::Input>& inputs,
                                  const RowRunOptions& options = {}) {
  SCOPED_TRACE(type);
  RowRun(type, attrs, inputs, options).ExpectTheSame();
}

// Also at bad alignment and in place.
inline void ExpectRowGivesTheSameAnyhow(const std::string& type, const std::vector<Attr>& attrs,
                                        const std::vector<testing::OneOp::Input>& inputs,
                                        double tolerance = 0,
                                        const std::vector<absl::string_view>& absent = {}) {
  for (const size_t offset : {0, 1}) {
    for (const bool inplace : {false, true}) {
      SCOPED_TRACE(absl::StrCat("offset ", offset, ", in place ", inplace));
      ExpectRowGivesTheSame(
          type, attrs, inputs,
          {.offset = offset, .inplace = inplace, .tolerance = tolerance, .absent = absent});
    }
  }
}

}  // namespace interp::cuda_test
