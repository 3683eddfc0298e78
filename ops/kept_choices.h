// Choices that a device makes by trying, such as which of a library's kernels
// multiplies a shape the fastest, kept where the next process finds them: what
// is measured differs from one time to the next, and another kernel adds up in
// another order, so a job that is started again must not measure again.
#ifndef TROUPE_OPS_KEPT_CHOICES_H_
#define TROUPE_OPS_KEPT_CHOICES_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"

namespace troupe {

// Thread-safe. Keys and choices are lines of text; " = " is in no key.
class KeptChoices {
 public:
  virtual ~KeptChoices() = default;

  // What is kept for the key, or else what `choose` returns, which is then
  // kept. Callers that ask meanwhile, in other processes too, wait. Nothing
  // where it cannot be kept, or where `choose` returns none, an empty text:
  // then nobody may rely on it.
  virtual absl::optional<std::string> FindOrChoose(
      const std::string& key, absl::FunctionRef<std::string()> choose) = 0;
};

}  // namespace troupe

#endif  // TROUPE_OPS_KEPT_CHOICES_H_
