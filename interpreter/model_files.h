// The files of a model: which file is the program, and which hold its parameters.
#pragma once

#include <string>

#include "core/status.h"

namespace interp {

struct ModelFiles {
  std::string model;
  std::string params;  // a file, or a folder with one file each; empty: none lies beside the model
};

// Finds them from what people have at hand:
//
//   a folder   its only .pdmodel, or __model__; several .pdmodel are an error that lists them
//   a prefix   `inference` for inference.pdmodel
//   a file     itself
//
// Parameters are what lies beside the model under the names that Paddle's releases gave them:
// inference.pdiparams or inference.pdparams for inference.pdmodel; __params__ or params for
// __model__, and else the folder itself, where it holds anything besides. Looks at names alone.
// NotFound where there is no model; a path with an ending is taken as it is, for its reader to say
// what is wrong with it.
absl::StatusOr<ModelFiles> FindModelFiles(const std::string& path);

}  // namespace interp
