#include "clients/hugging_face/experts_config.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<int> ReadExperts(const JsonFields& config, const char* key,
                                int value_default) {
  ASSIGN_OR_RETURN(const int experts, config.IntOr(key, value_default));
  ASSIGN_OR_RETURN(const int local, config.IntOr("num_local_experts", experts));
  if (config.Has(key) && local != experts) {
    return config.Error(
        key, absl::StrCat("is ", experts, ", but num_local_experts ", local,
                          "; remove the one that is wrong"));
  }
  return local;
}

}  // namespace troupe
