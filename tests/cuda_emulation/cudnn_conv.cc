// Convolutions of the emulated cuDNN: what descriptors say, which engines there are, and sums.
#include <algorithm>

#include "tests/cuda_emulation/cudnn_graph_types.h"
#include "tests/cuda_emulation/library_values.h"

namespace interp::cuda_emulation {
namespace {

// The attributes by which an operation knows its parts.
struct ConvParts {
  cudnnBackendAttributeName_t window, image, filter, result;
};
ConvParts PartsOf(cudnnBackendDescriptorType_t direction) {
  switch (direction) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
}

cudaDataType_t ElementTypeOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16:
      return CUDA_R_16BF;
    case CUDNN_DATA_FLOAT:
      break;
  }
  return CUDA_R_32F;
}

// Only dense tensors are known here.
bool ReadTensor(const EmulatedDescriptor* descriptor, ConvTensor& tensor) {
  if (descriptor == nullptr || !descriptor->finalized) return false;
  const auto dims = descriptor->Values<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = descriptor->Values<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  if (dims.size() < 4 || dims.size() > 5 || strides.size() != dims.size()) return false;
  int64_t size = 1;
  for (size_t d = dims.size(); d-- > 0; size *= dims[d]) {
    if (dims[d] < 1 || strides[d] != size) return false;
  }
  tensor.dims = {dims[0], dims[1], 1, 1, 1};
  std::copy(dims.begin() + 2, dims.end(), tensor.dims.begin() + 7 - std::ssize(dims));
  tensor.size = size;
  tensor.uid = descriptor->Values<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)[0];
  tensor.alignment = descriptor->Values<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)[0];
  return true;
}

// One list of a window, at the end of `values`. False where it has not a value for each axis.
bool ReadList(const EmulatedDescriptor& window, cudnnBackendAttributeName_t name,
              std::array<int64_t, 3>& values) {
  const auto list = window.Values<int64_t>(name);
  if (std::ssize(list) != window.Values<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)[0]) {
    return false;
  }
  std::copy(list.begin(), list.end(), values.end() - std::ssize(list));
  return true;
}

bool FitsTogether(const EmulatedConv& conv, const std::array<int64_t, 3>& post_pads) {
  const auto& [n, c, d, h, w] = conv.image.dims;
  const auto& filter = conv.filter.dims;
  if (c % filter[1] != 0 || filter[0] % conv.groups() != 0 || conv.result.dims[0] != n ||
      conv.result.dims[1] != filter[0]) {
    return false;
  }
  for (int i = 0; i < 3; ++i) {
    const int64_t extent = conv.dilations[i] * (filter[i + 2] - 1) + 1;
    const int64_t room = conv.image.dims[i + 2] + conv.pads[i] + post_pads[i] - extent;
    if (room < 0 || conv.result.dims[i + 2] != room / conv.strides[i] + 1) return false;
  }
  return true;
}

// Calls body(index in image, in filter, in result) for every product of a tap of the filter,
// `filter_at`, with a plane of the image. The results of a row are neighbours: programs have
// billions of products, which stay in the cache so.
template <typename Body>
void ForEachTermOfTap(const EmulatedConv& conv, const std::array<int64_t, 3>& tap, int64_t image_at,
                      int64_t filter_at, int64_t result_at, const Body& body) {
  const auto& image = conv.image.dims;
  const auto& result = conv.result.dims;
  const auto position = [&](int i, int64_t at) {
    return at * conv.strides[i] + tap[i] * conv.dilations[i] - conv.pads[i];
  };
  // The columns whose position is inside.
  const int64_t stride = conv.strides[2];
  const int64_t start = position(2, 0);
  const int64_t first = start < 0 ? (stride - 1 - start) / stride : 0;
  const int64_t room = image[4] - 1 - start;
  const int64_t last = room < 0 ? 0 : std::min(result[4], room / stride + 1);
  for (int64_t d = 0; d < result[2]; ++d) {
    const int64_t z = position(0, d);
    if (z < 0 || z >= image[2]) continue;
    for (int64_t h = 0; h < result[3]; ++h) {
      const int64_t y = position(1, h);
      if (y < 0 || y >= image[3]) continue;
      const int64_t row = image_at + (z * image[3] + y) * image[4] + start;
      const int64_t results = result_at + (d * result[3] + h) * result[4];
      for (int64_t w = first; w < last; ++w) body(row + w * stride, filter_at, results + w);
    }
  }
}

// The same for every product of the convolution.
template <typename Body>
void ForEachTerm(const EmulatedConv& conv, const Body& body) {
  const auto& image = conv.image.dims;
  const auto& filter = conv.filter.dims;
  const auto& result = conv.result.dims;
  const int64_t taps = filter[2] * filter[3] * filter[4];
  const int64_t group_out = filter[0] / conv.groups();
  for (int64_t n = 0; n < image[0]; ++n) {
    for (int64_t k = 0; k < filter[0]; ++k) {
      const int64_t result_at = (n * result[1] + k) * result[2] * result[3] * result[4];
      for (int64_t c = 0; c < filter[1]; ++c) {
        const int64_t channel = k / group_out * filter[1] + c;
        const int64_t image_at = (n * image[1] + channel) * image[2] * image[3] * image[4];
        for (int64_t tap = 0; tap < taps; ++tap) {
          const std::array<int64_t, 3> at = {tap / filter[4] / filter[3],
                                             tap / filter[4] % filter[3], tap % filter[4]};
          ForEachTermOfTap(conv, at, image_at, (k * filter[1] + c) * taps + tap, result_at, body);
        }
      }
    }
  }
}

// The tensors of a convolution in the order in which work touches them, the computed one last.
struct TensorOrder {
  const ConvTensor* first;
  const ConvTensor* second;
  const ConvTensor* out;
};
TensorOrder OrderOf(const EmulatedConv& conv) {
  switch (conv.direction) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {&conv.filter, &conv.result, &conv.image};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return {&conv.image, &conv.result, &conv.filter};
    default:
      return {&conv.image, &conv.filter, &conv.result};
  }
}

void Convolve(const EmulatedConv& conv, bool as_tf32, absl::Span<char* const> bytes) {
  const TensorOrder order = OrderOf(conv);
  std::vector<double> first = Load(conv.type, bytes[0], order.first->size);
  std::vector<double> second = Load(conv.type, bytes[1], order.second->size);
  if (as_tf32) {
    RoundToTf32(first);
    RoundToTf32(second);
  }
  std::vector<double> sums(static_cast<size_t>(order.out->size));
  switch (conv.direction) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      ForEachTerm(conv, [&](int64_t image, int64_t filter, int64_t result) {
        sums[image] += first[filter] * second[result];
      });
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      ForEachTerm(conv, [&](int64_t image, int64_t filter, int64_t result) {
        sums[filter] += first[image] * second[result];
      });
      break;
    default:
      ForEachTerm(conv, [&](int64_t image, int64_t filter, int64_t result) {
        sums[result] += first[image] * second[filter];
      });
  }
  Store(conv.type, sums, bytes[2]);
}

}  // namespace

cudnnStatus_t ReadConv(const EmulatedDescriptor& operation, EmulatedConv& conv) {
  const ConvParts parts = PartsOf(operation.type);
  const EmulatedDescriptor* const window = operation.Part(parts.window);
  if (window == nullptr || !window->finalized ||
      !ReadTensor(operation.Part(parts.image), conv.image) ||
      !ReadTensor(operation.Part(parts.filter), conv.filter) ||
      !ReadTensor(operation.Part(parts.result), conv.result)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  conv.direction = operation.type;
  conv.type = ElementTypeOf(
      operation.Part(parts.image)->Values<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)[0]);
  std::array<int64_t, 3> post_pads = {0, 0, 0};
  if (!ReadList(*window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, conv.strides) ||
      !ReadList(*window, CUDNN_ATTR_CONVOLUTION_DILATIONS, conv.dilations) ||
      !ReadList(*window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, conv.pads) ||
      !ReadList(*window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, post_pads)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  conv.even = conv.pads == post_pads;
  return FitsTogether(conv, post_pads) ? CUDNN_STATUS_SUCCESS
                                       : CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
}

// Of each kind one: those that a caller may not want come first.
EngineFacts FactsOf(int engine, const EmulatedConv& conv) {
  switch (engine) {
    case 0:
      return {.notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}};
    case 1:
      return {.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, .supports = conv.even};
    case 2:
      return {.notes = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}};
    case 3:
      return {.notes = {}, .supports = false};
    case 4:
      return {.notes = {}, .workspace_bytes = int64_t{1} << 40};
    case 5:
      return {.notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD},
              .supports = conv.even && conv.groups() == 1,
              .workspace_bytes = conv.image.size * static_cast<int64_t>(sizeof(float))};
    case 6:
      return {.notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4},
              .supports = conv.even && conv.groups() == 1};
    default:
      return {.notes = {}, .supports = conv.even};
  }
}

LibraryWork ConvWork(const EmulatedConv& conv, int engine, const std::map<int64_t, void*>& memory,
                     void* workspace) {
  const TensorOrder order = OrderOf(conv);
  const EngineFacts facts = FactsOf(engine, conv);
  const bool as_tf32 = conv.type == CUDA_R_32F && std::count(facts.notes.begin(), facts.notes.end(),
                                                             CUDNN_NUMERICAL_NOTE_TENSOR_CORE) > 0;
  LibraryWork work{.name = "cudnnBackendExecute"};
  for (const ConvTensor* tensor : {order.first, order.second, order.out}) {
    work.ranges.push_back({memory.at(tensor->uid),
                           static_cast<size_t>(tensor->size) * ElementBytes(conv.type),
                           /*write=*/tensor == order.out});
  }
  work.ranges.push_back({workspace, static_cast<size_t>(facts.workspace_bytes), /*write=*/true});
  work.run = [conv, as_tf32](absl::Span<char* const> bytes) { Convolve(conv, as_tf32, bytes); };
  return work;
}

}  // namespace interp::cuda_emulation
