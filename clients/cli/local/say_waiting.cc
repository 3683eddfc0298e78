#include "clients/cli/local/say_waiting.h"

#include <cmath>
#include <ostream>

#include "absl/strings/str_join.h"

namespace troupe {

WaitNews SayWaiting(std::ostream& out, const std::string& way_out) {
  return [&out, way_out](const std::vector<std::string>& names,
                         absl::Duration grace) {
    const bool is_one = names.size() == 1;
    out << "waiting for " << absl::StrJoin(names, ", ");
    if (grace == absl::InfiniteDuration()) {
      out << " to save " << (is_one ? "its job; " : "their jobs; ") << way_out
          << " kills " << (is_one ? "it" : "them");
    } else {
      out << " to end; " << std::lround(absl::ToDoubleSeconds(grace))
          << " s until " << (is_one ? "it is" : "they are") << " killed";
    }
    out << std::endl;
  };
}

}  // namespace troupe
