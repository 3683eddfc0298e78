#include "scheduler/cluster/intent.h"

#include <iterator>
#include <utility>

namespace troupe {

JobIntent KindOf(const RunIntent& intent) {
  constexpr JobIntent kKinds[] = {INTENT_RUN, INTENT_RECOVER, INTENT_SAVE_MOVE,
                                  INTENT_SAVE_CANCEL, INTENT_CANCEL};
  static_assert(std::size(kKinds) == std::variant_size_v<RunIntent>);
  return kKinds[intent.index()];
}

const std::string& WhyOf(const RunIntent& intent) {
  static const std::string& nothing = *new std::string();
  if (const auto* move = std::get_if<intent::SaveMove>(&intent)) {
    return move->why;
  }
  if (const auto* save = std::get_if<intent::SaveCancel>(&intent)) {
    return save->why;
  }
  if (const auto* cancel = std::get_if<intent::Cancel>(&intent)) {
    return cancel->saved_why;
  }
  return nothing;
}

RunIntent MakeIntent(JobIntent kind, std::string why) {
  switch (kind) {
    case INTENT_RECOVER:
      return intent::Recover{};
    case INTENT_SAVE_MOVE:
      return intent::SaveMove{std::move(why)};
    case INTENT_SAVE_CANCEL:
      return intent::SaveCancel{std::move(why)};
    case INTENT_CANCEL:
      return intent::Cancel{std::move(why)};
    default:
      return intent::Run{};
  }
}

}  // namespace troupe
