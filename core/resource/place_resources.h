// PlaceResources: things that the instructions of one place share, made by the first that asks: the
// handle of a library, say, or the random states that cuDNN's dropout wants in device memory.
//
//   INTERP_ASSIGN_OR_RETURN(DropoutStates* states,
//                           ctx.place_resources().GetOrMake<DropoutStates>("", [&] { ... }));
//
// What depends on one instruction is KernelState; what is computed from constants and shared by
// clones is SharedConstants.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/status.h"

namespace interp {

// Thread-safety: all methods. Each core has one per place, which goes when nothing is in flight and
// before the device.
class PlaceResources {
 public:
  // The resource under (T, name), made by `make` when there is none: by one thread while the others
  // wait for it. `make` returns absl::StatusOr<std::unique_ptr<T>>; it may ask for other resources.
  // After an error the next that asks tries again. The result lives as long as the PlaceResources.
  template <typename T, typename Make>
  absl::StatusOr<T*> GetOrMake(absl::string_view name, Make make) {
    const auto erased = [&make]() -> absl::StatusOr<std::shared_ptr<void>> {
      absl::StatusOr<std::unique_ptr<T>> made = make();
      if (!made.ok()) return made.status();
      return std::shared_ptr<void>(*std::move(made));
    };
    INTERP_ASSIGN_OR_RETURN(void* const resource, Find({typeid(T), std::string(name)}, erased));
    return static_cast<T*>(resource);
  }

 private:
  struct Entry {
    std::mutex mutex;  // held while it is made; guards `resource`
    std::shared_ptr<void> resource;
  };
  using Key = std::pair<std::type_index, std::string>;

  absl::StatusOr<void*> Find(Key key,
                             const std::function<absl::StatusOr<std::shared_ptr<void>>()>& make);

  std::mutex mutex_;                               // guards entries_, not what they hold
  std::map<Key, std::unique_ptr<Entry>> entries_;  // few
};

}  // namespace interp
