// Catching: exceptions of libraries end here.
#pragma once

#include <exception>
#include <new>
#include <system_error>
#include <type_traits>

#include "core/status.h"

namespace interp {

// What `function` returns, an absl::Status or StatusOr; an exception becomes an error.
template <typename Function>
std::invoke_result_t<const Function&> Catching(const Function& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("the system has no memory left");
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::resource_unavailable_try_again) {
      return absl::InternalError(e.what());
    }
    return ResourceExhausted("the system gives no thread: ", e.what());
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  } catch (...) {
    return absl::InternalError("threw something that is no std::exception");
  }
}

}  // namespace interp
