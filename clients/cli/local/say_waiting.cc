#include "clients/cli/local/say_waiting.h"

#include <cmath>
#include <ostream>

#include "absl/strings/str_join.h"

namespace troupe {

WaitNews SayWaiting(std::ostream& out) {
  return [&out](const std::vector<std::string>& names, absl::Duration grace) {
    out << "waiting for " << absl::StrJoin(names, ", ") << " to save and end; "
        << std::lround(absl::ToDoubleSeconds(grace)) << " s until "
        << (names.size() == 1 ? "it is" : "they are") << " killed" << std::endl;
  };
}

}  // namespace troupe
