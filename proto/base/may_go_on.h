// How something that takes long is ended from outside: it asks between its
// parts whether it may go on, and ends with the answer where it is an error.
//
//   RETURN_IF_ERROR(Ask(may_go_on));
//
// Before it builds something large it asks for room, too, and waits for it.
//
//   RETURN_IF_ERROR(AskForRoom(may_go_on, instructions));
#ifndef TROUPE_PROTO_BASE_MAY_GO_ON_H_
#define TROUPE_PROTO_BASE_MAY_GO_ON_H_

#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace troupe {

struct MayGoOn {
  // OK, or why not: DeadlineExceeded, Cancelled, Unavailable. Empty: always.
  // Asked often, so it should not take long.
  std::function<absl::Status()> go_on;
  // Waits until something of this size may be built in place of what was built
  // before, or says why it may not go on. Empty: at once.
  std::function<absl::Status(int64_t size)> take_room;

  MayGoOn() = default;
  template <typename F, typename = std::enable_if_t<
                            std::is_invocable_r_v<absl::Status, const F&>>>
  MayGoOn(F go_on) : go_on(std::move(go_on)) {}  // NOLINT: a lambda is one
};

inline absl::Status Ask(const MayGoOn& may_go_on) {
  return may_go_on.go_on ? may_go_on.go_on() : absl::OkStatus();
}

inline absl::Status AskForRoom(const MayGoOn& may_go_on, int64_t size) {
  return may_go_on.take_room ? may_go_on.take_room(size) : absl::OkStatus();
}

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_MAY_GO_ON_H_
