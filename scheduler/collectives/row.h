// What a row of the table of collectives is: how an exchange over a group is
// carried out, as a pure function. A row says over which levels the members are
// cut, in which steps, and into how many pieces the buffer may be; that the
// steps arrive at the result is proven of each plan (proto/plan/ways.h), what
// they cost is the cost model's to say.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_ROW_H_
#define TROUPE_SCHEDULER_COLLECTIVES_ROW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// An exchange, as rows see it.
struct GroupExchange {
  // Of each member, by its place in the group: the number of its host.
  absl::Span<const int> hosts;
  Collective collective = ALL_REDUCE;
  int64_t bytes = 0;  // of the whole buffer
  // The slowest of the group.
  LinkRate within_hosts = {};
  LinkRate between_hosts = {};
};

// None: flat.
struct LaidWay {
  std::vector<Group::Level> levels;
  std::vector<Group::Step> steps;  // Step.level: index into these levels
  // Where the row of this group is the flat one: why, a sentence's end. A job
  // that names the row gets the flat one.
  std::string why_flat;
  // Way.pieces, the choices there are, one or more: the cost model takes the
  // quickest, of equal ones the first.
  std::vector<int> pieces = {1};
};

struct CollectiveRow {
  absl::string_view name;
  absl::string_view summary;
  // FailedPrecondition: why this group does not do so, a sentence's end: "two
  // of its members are on host 0, one on host 1".
  absl::StatusOr<LaidWay> (*lay)(const GroupExchange& exchange) = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_ROW_H_
