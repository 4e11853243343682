// Graphs of MachineState: what a stream was asked for while it was captured, pushed as a whole.
#include <utility>

#include "tests/cuda_emulation/machine.h"

namespace interp::cuda_emulation {

cudaError_t MachineState::FindUncaptured(cudaStream_t stream, int current, Target& target) {
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  std::lock_guard<std::mutex> guard(mutex_);
  const auto capture = captures_.find(target.queue());
  if (capture == captures_.end()) return cudaSuccess;
  capture->second->valid = false;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t MachineState::BeginCapture(cudaStream_t stream, int current) {
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  Target target;
  if (const cudaError_t error = FindUncaptured(stream, current, target); error != cudaSuccess) {
    return error;
  }
  std::lock_guard<std::mutex> guard(mutex_);
  captures_[target.queue()] = std::make_unique<CUgraph_st>(CUgraph_st{.device = target.number});
  return cudaSuccess;
}

cudaError_t MachineState::EndCapture(cudaStream_t stream, int current, cudaGraph_t* graph) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  std::lock_guard<std::mutex> guard(mutex_);
  const auto capture = captures_.find(target.queue());
  if (capture == captures_.end()) return cudaErrorInvalidValue;
  std::unique_ptr<CUgraph_st> captured = std::move(capture->second);
  captures_.erase(capture);
  if (!captured->valid) return cudaErrorStreamCaptureInvalidated;
  graphs_.insert(captured.get());
  *graph = captured.release();
  return cudaSuccess;
}

void MachineState::AbandonCapture(cudaStream_t stream) {
  Target target;
  if (stream == nullptr || Find(stream, /*current=*/0, target) == cudaErrorInvalidResourceHandle) {
    return;
  }
  std::lock_guard<std::mutex> guard(mutex_);
  captures_.erase(target.queue());
}

cudaError_t MachineState::InstantiateGraph(cudaGraph_t graph, cudaGraphExec_t* runnable) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!graphs_.contains(graph)) return cudaErrorInvalidResourceHandle;
  *runnable = new CUgraphExec_st{*graph};
  runnable_graphs_.insert(*runnable);
  return cudaSuccess;
}

cudaError_t MachineState::DestroyGraph(cudaGraph_t graph) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (graphs_.erase(graph) == 0) return cudaErrorInvalidResourceHandle;
  delete graph;
  return cudaSuccess;
}

cudaError_t MachineState::LaunchGraph(cudaGraphExec_t runnable, cudaStream_t stream, int current) {
  Target target;
  if (const cudaError_t error = Find(stream, current, target); error != cudaSuccess) return error;
  CUgraph_st graph;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!runnable_graphs_.contains(runnable)) return cudaErrorInvalidResourceHandle;
    graph = runnable->graph;
  }
  if (graph.device != target.number) return cudaErrorInvalidValue;
  for (CapturedWork& work : graph.work) Push(target, work.kind, work.bytes, std::move(work.run));
  return cudaSuccess;
}

cudaError_t MachineState::DestroyGraphExec(cudaGraphExec_t runnable) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (runnable_graphs_.erase(runnable) == 0) return cudaErrorInvalidResourceHandle;
  delete runnable;
  return cudaSuccess;
}

}  // namespace interp::cuda_emulation
