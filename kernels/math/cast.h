// The attribute of cast.
#pragma once

#include "core/attr_reader.h"
#include "core/dtype.h"

namespace interp {

struct CastAttrs {
  DType out_dtype;
  static CastAttrs Read(AttrReader& attrs) {
    const DType out_dtype = attrs.Type("out_dtype", DType::kUndefined);
    if (out_dtype == DType::kUndefined) attrs.Fail("attribute 'out_dtype' is missing");
    return {out_dtype};
  }
};

}  // namespace interp
