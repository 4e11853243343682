// Parameters in Paddle's pickles: .pdparams and .pdopt of paddle.static.save, fluid.save and
// paddle.save.
//
// Such a file is a dict from names to NumPy arrays, or to (name, array) tuples, or one such tuple.
// Arrays that were split for being larger than 1 GiB are put together again; what models in
// paddle.nn call their parameters ("fc.weight") is replaced by the names of the variables, where
// the file tells them. Entries that are no arrays (the state of a learning-rate schedule, an epoch)
// are left out. See pickle.h for what a pickle may hold at all.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/buffer.h"
#include "core/io/params.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// All tensors of a file, in its order. They share `file` where their elements are aligned in it.
// Errors start with the byte offset: DataLoss and Unimplemented as of ParsePickle, InvalidArgument
// for a file that holds something else than parameters.
absl::StatusOr<std::vector<NamedTensor>> ParsePickledParams(const BufferRef& file);

// The same for a file. Errors start with the path.
absl::StatusOr<std::vector<NamedTensor>> ListPickledParams(const std::string& path);

// Reads the parameters of a program from whatever `path` is: a pickle or an .npz file, which name
// their tensors, else what ReadParams takes. With a.pdparams, a.pdopt beside it is read too when it
// is there and the first one does not hold all of `params`; what files with names hold more is left
// out. NotFound for a parameter that no such file has.
absl::StatusOr<std::vector<NamedTensor>> ReadAnyParams(const std::string& path,
                                                       absl::Span<const ParamDecl> params,
                                                       ParamMemory memory = ParamMemory::kCopied);

}  // namespace interp
