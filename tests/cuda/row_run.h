// One op by its row for the host and by that for GPUs, on the same inputs.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/cuda/cuda_device.h"
#include "core/device/stream_pool.h"
#include "core/find_kernel.h"
#include "tests/cuda/kernel_test.h"

namespace interp::cuda_test {

// A tensor of floats or integers of any dtype with these values.
inline Tensor Numbers(DType dtype, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = Shape(dims);
  EXPECT_TRUE(tensor.Allocate(SystemAllocator()).ok());
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    T* const to = static_cast<T*>(tensor.mutable_raw_data());
    for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
  };
  switch (dtype) {
    case DType::kFloat16:
      fill(float16());
      break;
    case DType::kBFloat16:
      fill(bfloat16());
      break;
    case DType::kFloat64:
      fill(double());
      break;
    case DType::kInt32:
      fill(int32_t());
      break;
    case DType::kInt64:
      fill(int64_t());
      break;
    case DType::kBool:
    case DType::kUInt8:
      fill(uint8_t());
      break;
    default:
      fill(float());
  }
  return tensor;
}

// From -2 to 2.
inline Tensor SomeNumbers(DType dtype, const std::vector<int64_t>& dims, uint32_t seed = 1) {
  return Numbers(dtype, dims, SomeValues<float>(static_cast<size_t>(NumelOf(dims)), seed));
}

// From `least` to `least` + 2: of roots, logarithms and variances.
inline Tensor NumbersFrom(float least, DType dtype, const std::vector<int64_t>& dims,
                          uint32_t seed = 1) {
  std::vector<float> values = SomeValues<float>(static_cast<size_t>(NumelOf(dims)), seed);
  for (float& value : values) value = least + (value + 2) / 2;
  return Numbers(dtype, dims, values);
}

inline std::vector<double> AsDoubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.numel()));
  const auto read = [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(tensor.raw_data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(from[i]);
  };
  switch (tensor.dtype) {
    case DType::kFloat16:
      read(float16());
      break;
    case DType::kBFloat16:
      read(bfloat16());
      break;
    case DType::kFloat64:
      read(double());
      break;
    case DType::kInt32:
      read(int32_t());
      break;
    case DType::kInt64:
      read(int64_t());
      break;
    case DType::kBool:
    case DType::kUInt8:
      read(uint8_t());
      break;
    default:
      read(float());
  }
  return values;
}

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
    const KernelContext::PlaceServices place = {.stream = stream.get(),
                                                .workspace = &pool->ForStream(*stream)};
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
