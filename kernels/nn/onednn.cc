#include "kernels/nn/onednn.h"

#include <omp.h>

#include <new>

#include "kernels/util/parallel_for.h"
#include "kernels/util/strides.h"

namespace interp::nn {

const dnnl::engine& Engine() {
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

const dnnl::stream& Stream() {
  static const auto& stream = *new dnnl::stream(Engine());
  return stream;
}

bool MultipliesBf16Tiles() {
  static const bool kDoes = dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_amx;
  return kDoes;
}

void UseThreads(int num_threads) {
  if (omp_get_max_threads() != num_threads) omp_set_num_threads(num_threads);
  FlushDenormalsInTeam(num_threads);
}

absl::Status StatusOfException(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const dnnl::error*>(&exception)) {
    const std::string message = absl::StrCat("oneDNN: ", error->message);
    if (error->status == dnnl_unimplemented) return absl::UnimplementedError(message);
    if (error->status == dnnl_out_of_memory) return absl::ResourceExhaustedError(message);
    return absl::InternalError(message);
  }
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return ResourceExhausted("out of memory");
  }
  return absl::InternalError(exception.what());
}

MemDesc StridedDesc(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides,
                    dnnl::memory::data_type type) {
  return MemDesc(
      dnnl::memory::dims(dims.begin(), dims.end()), type,
      strides.empty() ? DenseStrides(dims) : dnnl::memory::dims(strides.begin(), strides.end()));
}

MemDesc AnyDesc(absl::Span<const int64_t> dims, dnnl::memory::data_type type) {
  return MemDesc(dnnl::memory::dims(dims.begin(), dims.end()), type, dnnl::memory::format_tag::any);
}

namespace {

// FNV-1a over whole numbers. absl::Hash gives others in every process.
class NumberHash {
 public:
  void Add(int64_t number) {
    hash_ = (hash_ ^ static_cast<uint64_t>(number)) * 0x100000001b3u;
    hash_ ^= hash_ >> 29;  // high bits reach low ones, too
  }
  void Add(const dnnl_dim_t* numbers, int count) {
    Add(count);
    for (int i = 0; i < count; ++i) Add(numbers[i]);
  }
  uint64_t get() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace

uint64_t FormatHash(const MemDesc& desc) {
  const dnnl_memory_desc_t& data = desc.data;
  NumberHash hash;
  hash.Add(data.format_kind);
  if (data.format_kind == dnnl_blocked) {
    const dnnl_blocking_desc_t& blocks = data.format_desc.blocking;
    hash.Add(data.data_type);
    hash.Add(data.dims, data.ndims);
    hash.Add(data.padded_dims, data.ndims);
    hash.Add(blocks.strides, data.ndims);
    hash.Add(blocks.inner_blks, blocks.inner_nblks);
    hash.Add(blocks.inner_idxs, blocks.inner_nblks);
    hash.Add(static_cast<int64_t>(data.extra.flags));
  } else {
    hash.Add(static_cast<int64_t>(desc.get_size()));
  }
  return hash.get() >> 1;
}

Primitive::Primitive(dnnl::primitive primitive, const MemDesc& scratchpad)
    : primitive_(std::move(primitive)), scratchpad_bytes_(scratchpad.get_size()) {
  if (scratchpad_bytes_ > 0) AddArg(DNNL_ARG_SCRATCHPAD, scratchpad);
}

int Primitive::AddArg(int arg, const MemDesc& desc) {
  return AddMemory(arg, dnnl::memory(desc, Engine(), DNNL_MEMORY_NONE));
}

int Primitive::AddMemory(int arg, dnnl::memory memory) {
  args_.push_back({arg, memory.get()});
  memories_.push_back(std::move(memory));
  return static_cast<int>(args_.size()) - 1;
}

void Primitive::SetMemory(int position, dnnl::memory memory) {
  args_[position].memory = memory.get();
  memories_[position] = std::move(memory);
}

void Primitive::SetData(int position, const void* data) {
  // Cannot fail for CPU memory without padding.
  dnnl_memory_set_data_handle(args_[position].memory, const_cast<void*>(data));
}

absl::Status Primitive::Execute(const KernelContext& ctx) {
  if (scratchpad_bytes_ == 0) return Execute(nullptr);
  INTERP_ASSIGN_OR_RETURN(const Workspace scratchpad, ctx.workspace(scratchpad_bytes_));
  return Execute(scratchpad.data());
}

absl::Status Primitive::Execute(void* scratchpad) {
  if (scratchpad_bytes_ > 0) SetData(0, scratchpad);
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), Stream().get(),
                                                      static_cast<int>(args_.size()), args_.data());
  if (status != dnnl_success) {
    return absl::InternalError(
        absl::StrCat("oneDNN cannot run a primitive: status ", static_cast<int>(status)));
  }
  return absl::OkStatus();
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

FormatCopy::FormatCopy(const MemDesc& from, const MemDesc& to) {
  const dnnl::reorder::primitive_desc desc(Engine(), from, Engine(), to, UserScratchpad());
  primitive_ = std::make_unique<Primitive>(dnnl::reorder(desc), desc.scratchpad_desc());
  from_ = primitive_->AddArg(DNNL_ARG_FROM, from);
  to_ = primitive_->AddArg(DNNL_ARG_TO, to);
}

absl::Status FormatCopy::Run(const KernelContext& ctx, const void* from, dnnl::memory to) {
  primitive_->SetData(from_, from);
  primitive_->SetMemory(to_, std::move(to));
  return primitive_->Execute(ctx);
}

absl::Status FormatCopy::Run(const KernelContext& ctx, dnnl::memory from, void* to) {
  primitive_->SetMemory(from_, std::move(from));
  primitive_->SetData(to_, to);
  return primitive_->Execute(ctx);
}

absl::Status Reorder(const MemDesc& from, const void* source, dnnl::memory target) {
  return CatchErrors([&] {
    dnnl::memory in(from, Engine(), const_cast<void*>(source));
    const dnnl::stream& stream = Stream();
    dnnl::reorder(in, target).execute(stream, in, target);
    return absl::OkStatus();
  });
}

}  // namespace interp::nn
