// What one rendering of a chat template may use, so that no template runs for
// ever or exhausts the memory: whatever takes time or makes values spends
// steps, before it does so. A step is about what an expression takes, or 64
// bytes of a text that is read or made.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_BUDGET_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_BUDGET_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace troupe::chat {

class Budget {
 public:
  Budget(int64_t steps, size_t text_bytes_max)
      : steps_(steps), text_bytes_max_(text_bytes_max) {}

  // Each: ResourceExhausted where no steps are left.
  absl::Status Spend(size_t steps);
  // Of a text that is read once.
  absl::Status SpendRead(size_t bytes);
  // Of a text that is looked through for another one. Each place of it may
  // agree with all of that one but its end.
  absl::Status SpendSearch(size_t bytes, size_t sought_bytes);
  // Of a text that is made; also ResourceExhausted where it is too long.
  absl::Status SpendText(size_t bytes);
  // Of a text that grows: ResourceExhausted where it is too long.
  absl::Status CheckText(size_t bytes) const;
  size_t text_bytes_max() const { return text_bytes_max_; }

 private:
  int64_t steps_;
  const size_t text_bytes_max_;
};

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_BUDGET_H_
