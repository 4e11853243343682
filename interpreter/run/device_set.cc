#include "interpreter/run/device_set.h"

#include <algorithm>
#include <utility>

#include "core/device/device_maker.h"
#include "core/device/sim_device.h"

namespace interp {

namespace {

absl::StatusOr<std::shared_ptr<Device>> MakeDevice(Place place) {
  const DeviceMaker* const maker = FindDeviceMaker(place.kind);
  if (maker != nullptr) return maker->make(place.index);
  return NotFound("the program is to run on ", Name(place),
                  ", which is not among the devices of this core (CoreOptions::devices), and no "
                  "library that makes such devices is loaded (interp::LoadCuda)");
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<Device>>> FindDevices(
    absl::Span<const Plan> plans, const std::vector<std::shared_ptr<Device>>& given,
    const SimOptions& sim) {
  std::vector<std::shared_ptr<Device>> found;
  const auto find = [](const std::vector<std::shared_ptr<Device>>& devices, Place place) {
    return std::find_if(devices.begin(), devices.end(),
                        [&](const auto& device) { return device->place() == place; });
  };
  for (const PlanStream& stream : plans[0].streams) {
    if (stream.place.on_host() || find(found, stream.place) != found.end()) continue;
    if (const auto it = find(given, stream.place); it != given.end()) {
      found.push_back(*it);
      continue;
    }
    if (stream.place.kind != PlaceKind::kSim) {
      INTERP_ASSIGN_OR_RETURN(std::shared_ptr<Device> made, MakeDevice(stream.place));
      found.push_back(std::move(made));
      continue;
    }
    SimOptions options = sim;
    options.index = static_cast<unsigned char>(stream.place.index);
    INTERP_ASSIGN_OR_RETURN(std::shared_ptr<Device> made, MakeSimDevice(options));
    found.push_back(std::move(made));
  }
  return found;
}

namespace {

// Whether work of the instruction uses host memory after it has been issued that the run did not
// make: the caller's, or a parameter's.
bool UsesHostMemory(const Plan& plan, const Instruction& instruction) {
  if (instruction.place.on_host()) return false;
  if (instruction.op_type == "memcpy_h2d") return true;
  for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
    if (instruction.inputs[arg] >= 0 && IsHostInput(instruction, arg)) return true;
  }
  return std::any_of(instruction.outputs.begin(), instruction.outputs.end(), [&](VarId var) {
    return var >= 0 && plan.vars[var].persistable && plan.vars[var].place.on_host();
  });
}

}  // namespace

// A stream's memory where work is captured: that of the pool, or that of graphs.
class DeviceSet::StreamMemory final : public Allocator {
 public:
  StreamMemory(Allocator& usual, Device& device, Stream& stream, const DeviceSetOptions& options)
      : usual_(usual),
        graph_pool_(StreamPool::Create(device, {.limit_bytes = options.limit_bytes,
                                                .trims_when_short = false,
                                                .fail = options.fail_allocation})),
        of_graphs_(graph_pool_->ForStream(stream)) {}

  absl::StatusOr<BufferRef> Allocate(size_t size_bytes) override {
    return (in_graph_ ? of_graphs_ : usual_).Allocate(size_bytes);
  }
  MemoryStats stats() const override { return graph_pool_->stats(); }
  void ResetPeak() override { graph_pool_->ResetPeak(); }
  StreamPool& graph_pool() const { return *graph_pool_; }
  void SetInGraph(bool in_graph) { in_graph_ = in_graph; }

 private:
  void Free(Buffer* /*buffer*/) override {}  // buffers belong to the pools

  Allocator& usual_;
  const std::shared_ptr<StreamPool> graph_pool_;
  Allocator& of_graphs_;
  bool in_graph_ = false;
};

absl::StatusOr<std::unique_ptr<DeviceSet>> DeviceSet::Create(
    absl::Span<const Plan> plans, const std::vector<std::shared_ptr<Device>>& devices,
    const DeviceSetOptions& options) {
  std::unique_ptr<DeviceSet> set(new DeviceSet);
  for (const std::shared_ptr<Device>& device : devices) {
    // Made-up devices are to show what is merely wrong; real ones have better things to do.
    const bool simulated = device->place().kind == PlaceKind::kSim;
    set->devices_.push_back(
        {.device = device,
         .pool = StreamPool::Create(*device, {.limit_bytes = options.limit_bytes,
                                              .poison_freed = simulated,
                                              .fail = options.fail_allocation}),
         .heap = std::make_unique<DeviceHeap>(device)});
  }
  const std::vector<PlanStream>& streams = plans[0].streams;
  set->streams_.resize(streams.size());
  set->allocators_.resize(streams.size(), nullptr);
  set->stream_memory_.resize(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].place.on_host()) continue;
    OnDevice& on = set->On(streams[i].place);
    INTERP_ASSIGN_OR_RETURN(set->streams_[i],
                            on.device->CreateStream(streams[i].name, streams[i].priority));
    on.streams.push_back(set->streams_[i].get());
    set->allocators_[i] = &on.pool->ForStream(*set->streams_[i]);
    if (!options.graphs) continue;
    set->stream_memory_[i] = std::make_unique<StreamMemory>(*set->allocators_[i], *on.device,
                                                            *set->streams_[i], options);
    set->allocators_[i] = set->stream_memory_[i].get();
  }
  std::vector<bool> uses(streams.size(), false);
  for (const Plan& plan : plans) {
    for (const Instruction& instruction : plan.instructions) {
      if (UsesHostMemory(plan, instruction)) uses[instruction.stream] = true;
      set->NotePeers(plan, instruction);
    }
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i]) set->host_streams_.push_back(set->streams_[i].get());
  }
  return set;
}

void DeviceSet::NotePeers(const Plan& plan, const Instruction& instruction) {
  for (const VarId var : instruction.inputs) {
    if (var < 0 || !ArePeers(plan.vars[var].place, instruction.place)) continue;
    std::vector<Stream*>& streams = On(plan.vars[var].place).streams;
    Stream* const stream = streams_[instruction.stream].get();
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
  }
}

absl::StatusOr<std::vector<std::unique_ptr<DeviceEvent>>> DeviceSet::MakeEvents(const Plan& plan) {
  std::vector<std::unique_ptr<DeviceEvent>> events;
  for (const PlanEvent& event : plan.events) {
    INTERP_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> made,
                            device(plan.instructions[event.recorder].place).CreateEvent());
    events.push_back(std::move(made));
  }
  return events;
}

DeviceSet::~DeviceSet() {
  for (OnDevice& on : devices_) on.device->EndUse(this);
  Synchronize().IgnoreError();
  for (OnDevice& on : devices_) on.pool.reset();  // before the streams it hands memory on in
  stream_memory_.clear();
}

void DeviceSet::BeginGraph(int32_t stream) { stream_memory_[stream]->SetInGraph(true); }
void DeviceSet::EndGraph(int32_t stream) { stream_memory_[stream]->SetInGraph(false); }

void DeviceSet::TrimGraphs() {
  for (const std::unique_ptr<StreamMemory>& memory : stream_memory_) {
    if (memory != nullptr) memory->graph_pool().Trim();
  }
}

DeviceSet::OnDevice& DeviceSet::On(Place place) {
  return *std::find_if(devices_.begin(), devices_.end(),
                       [&](const OnDevice& on) { return on.device->place() == place; });
}

absl::Status DeviceSet::Synchronize() {
  absl::Status status;
  for (const std::unique_ptr<Stream>& stream : streams_) {
    if (stream != nullptr) status.Update(stream->Synchronize());
  }
  return status;
}

absl::Status DeviceSet::SynchronizeDevices() {
  absl::Status status;
  for (const OnDevice& on : devices_) status.Update(on.device->Synchronize());
  return status;
}

absl::Status DeviceSet::SynchronizeHostMemory() {
  absl::Status status;
  for (Stream* stream : host_streams_) status.Update(stream->Synchronize());
  return status;
}

absl::Status DeviceSet::BeginRun() {
  for (const OnDevice& on : devices_) {
    INTERP_RETURN_IF_ERROR(on.device->BeginUse(this, on.streams));
  }
  return absl::OkStatus();
}

std::vector<StreamPool*> DeviceSet::Pools() const {
  std::vector<StreamPool*> pools;
  for (const OnDevice& on : devices_) pools.push_back(on.pool.get());
  for (const std::unique_ptr<StreamMemory>& memory : stream_memory_) {
    if (memory != nullptr) pools.push_back(&memory->graph_pool());
  }
  return pools;
}

MemoryStats DeviceSet::memory() const {
  MemoryStats sum;
  for (const StreamPool* pool : Pools()) {
    const MemoryStats stats = pool->stats();
    sum.current_bytes += stats.current_bytes;
    sum.peak_bytes += stats.peak_bytes;
    sum.reserved_bytes += stats.reserved_bytes;
    sum.allocations += stats.allocations;
  }
  return sum;
}

std::vector<PoolStats> DeviceSet::pool_stats() const {
  std::vector<PoolStats> stats;
  for (const StreamPool* pool : Pools()) stats.push_back(pool->pool_stats());
  return stats;
}

size_t DeviceSet::Trim() {
  size_t bytes = 0;
  for (const OnDevice& on : devices_) bytes += on.pool->Trim();
  return bytes;
}

}  // namespace interp
