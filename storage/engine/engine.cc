#include "storage/engine/engine.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status IoEngine::Submit(absl::Span<const IoRequest> requests) {
  if (requests.size() > static_cast<size_t>(depth() - in_flight())) {
    return absl::FailedPreconditionError(absl::StrCat(
        name(), " engine: ", in_flight(), " requests in flight of at most ",
        depth(), ", no room for ", requests.size(), "; poll first"));
  }
  Start(requests);
  return absl::OkStatus();
}

}  // namespace troupe
