#include "proto/plan/lora.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/glob.h"

namespace troupe {

bool LoraNames(const std::string& module, absl::string_view layer) {
  return module == kAllLinear || GlobMatches(module, layer) ||
         absl::EndsWith(layer, absl::StrCat(".", module));
}

bool HasAdapter(const LoraSpec& lora, absl::string_view layer) {
  return std::any_of(
      lora.modules().begin(), lora.modules().end(),
      [layer](const std::string& module) { return LoraNames(module, layer); });
}

double LoraScale(const LoraSpec& lora) {
  const double rank = lora.rank();
  return lora.alpha() / (lora.rank_stabilized() ? std::sqrt(rank) : rank);
}

}  // namespace troupe
