// Seeded random programs over ProbeOps().
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/scope.h"
#include "core/tensor.h"

namespace interp::testing {

struct RandomGraphOptions {
  int num_ops = 40;
  int num_feeds = 3;  // the last one is an image
  int num_params = 2;
  int num_fetches = 4;
  bool dynamic = true;   // shapes that depend on values
  bool rewrites = true;  // variables written more than once, also by ops that read them
  bool updates = true;   // parameters updated in place
  bool arrays = true;
  bool casts = true;  // int32 variables among int64 ones
  bool images = true;
  bool growth = false;  // variables, states of scans among them, that grow from trip to trip, and
                        // scans whose results take the name of what their blocks read
  bool rows = false;    // selected rows
  // Loops, branches and scans whose blocks nest so deep; what is inside counts among num_ops.
  int max_depth = 0;
  // Ops run on the host or on one of so many simulated devices, as drawn, some on streams of their
  // own. The ops themselves are those of the same seed without devices.
  int num_devices = 0;
};

struct RandomGraph {
  Program program;  // with feed and fetch ops
  std::vector<std::string> params;
  int num_ops = 0;  // tags are 1 to num_ops
};

// The same graph for the same seed and options. Values are used by several ops or by none, branches
// are independent of each other or meet, and every kind of variable may be fetched.
RandomGraph MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options = {});

// Values for the graph's feeds; `rows` is the first dimension of all of them.
std::vector<Tensor> RandomFeeds(uint64_t seed, const RandomGraphOptions& options, int64_t rows);

// Initial values of parameter `index`.
Tensor RandomParameter(uint64_t seed, int index);

// A scope that holds the graph's parameters.
std::shared_ptr<Scope> RandomScope(uint64_t seed, const RandomGraph& graph);

}  // namespace interp::testing
