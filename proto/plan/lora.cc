#include "proto/plan/lora.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/glob.h"
#include "proto/plan/fields.h"

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

absl::Status CheckSameLora(const LoraSpec& lora, const LoraNumbers& of_files) {
  const auto refuse = [&lora](const char* field, const auto& here,
                              const char* key, const auto& there) {
    return FieldError(
        absl::StrCat("training.lora.", field),
        absl::StrCat("is ", here, ", but ", key, " of the adapter in ",
                     lora.adapter(), " is ", there,
                     "; leave it out to take the adapter's"));
  };
  if (lora.has_rank() && lora.rank() != of_files.rank) {
    return refuse("rank", lora.rank(), "r", of_files.rank);
  }
  if (lora.has_alpha() && lora.alpha() != of_files.alpha) {
    return refuse("alpha", lora.alpha(), "lora_alpha", of_files.alpha);
  }
  if (lora.has_rank_stabilized() &&
      lora.rank_stabilized() != of_files.rank_stabilized) {
    const auto text = [](bool value) { return value ? "true" : "false"; };
    return refuse("rank_stabilized", text(lora.rank_stabilized()), "use_rslora",
                  text(of_files.rank_stabilized));
  }
  return absl::OkStatus();
}

}  // namespace troupe
