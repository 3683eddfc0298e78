// What is to become of a run. It is only ever raised within an attempt
// (JobTable::Raise); an attempt begins with the first. Those that save say why:
// which side asked for it, and for what.
#ifndef TROUPE_SCHEDULER_CLUSTER_INTENT_H_
#define TROUPE_SCHEDULER_CLUSTER_INTENT_H_

#include <string>
#include <variant>

#include "proto/status.pb.h"

namespace troupe {
namespace intent {

struct Run {};      // it trains to its end
struct Recover {};  // another attempt follows, in its places
struct SaveMove {   // it is saved, and goes on with other workers
  std::string why;
};
struct SaveCancel {  // it is saved, and ends
  std::string why;   // "cancelled by its user"
};
struct Cancel {
  std::string saved_why;  // it was to be saved before it failed; or empty
};

}  // namespace intent

using RunIntent = std::variant<intent::Run, intent::Recover, intent::SaveMove,
                               intent::SaveCancel, intent::Cancel>;

JobIntent KindOf(const RunIntent& intent);
// Empty where it saves nothing.
const std::string& WhyOf(const RunIntent& intent);
// The intent of this kind, with the reason where it has one.
RunIntent MakeIntent(JobIntent kind, std::string why);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_INTENT_H_
