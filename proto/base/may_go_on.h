// How something that takes long is ended from outside: it asks between its
// parts whether it may go on, and ends with the answer where it is an error.
//
//   RETURN_IF_ERROR(Ask(may_go_on));
#ifndef TROUPE_PROTO_BASE_MAY_GO_ON_H_
#define TROUPE_PROTO_BASE_MAY_GO_ON_H_

#include <functional>

#include "absl/status/status.h"

namespace troupe {

// OK, or why not: DeadlineExceeded, Cancelled, Unavailable. Empty: always.
// Asked often, so it should not take long.
using MayGoOn = std::function<absl::Status()>;

inline absl::Status Ask(const MayGoOn& may_go_on) {
  return may_go_on ? may_go_on() : absl::OkStatus();
}

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_MAY_GO_ON_H_
