// lrn: attributes and the loop over pixels, for both directions.
#pragma once

#include "absl/strings/str_cat.h"
#include "core/attr_reader.h"
#include "kernels/conv/image.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {

struct LrnAttrs {
  int64_t size = 5;
  float k = 2;
  float alpha = 1e-4F;
  float beta = 0.75F;
  bool channels_last_dims = false;
};

inline LrnAttrs ReadLrn(AttrReader& reader) {
  LrnAttrs attrs;
  attrs.size = reader.Int("n", 5);
  attrs.k = reader.Float("k", 2.0F);
  attrs.alpha = reader.Float("alpha", 1e-4F);
  attrs.beta = reader.Float("beta", 0.75F);
  attrs.channels_last_dims = HasChannelsLastDims(reader.String("data_format", "AnyLayout"));
  if (attrs.size < 1 || attrs.size % 2 == 0) {
    reader.Fail(absl::StrCat("attribute 'n' is ", attrs.size, ", expected a positive odd number"));
  }
  return attrs;
}

// Calls body(offset of a pixel's first channel, offset from one channel to the next) for all
// pixels.
template <typename Body>
void ForEachLrnPixel(const ImageView& view, int num_threads, const Body& body) {
  const int64_t rows = view.batch() * view.dims[2];
  ParallelFor(num_threads, rows, /*grain=*/16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * view.dims[3]; i < end * view.dims[3]; ++i) {
      const int64_t row = i / view.dims[3];
      body(row / view.dims[2] * view.strides[0] + row % view.dims[2] * view.strides[2] +
               i % view.dims[3] * view.strides[3],
           view.strides[1]);
    }
  });
}

}  // namespace interp::nn
