// Where Gloo's exceptions end.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_CATCH_GLOO_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_CATCH_GLOO_H_

#include <exception>

#include "absl/status/status.h"

namespace troupe {

// Runs a call into Gloo. An exception becomes Unavailable with its text.
template <typename Body>
absl::Status CatchGloo(const Body& body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::UnavailableError(error.what());
  }
}

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_CATCH_GLOO_H_
