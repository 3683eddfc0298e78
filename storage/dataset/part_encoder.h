// Encodes parts of a text on several threads. The ids come in the order of the
// parts, so that they do not depend on the number of threads.
#ifndef TROUPE_STORAGE_DATASET_PART_ENCODER_H_
#define TROUPE_STORAGE_DATASET_PART_ENCODER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace troupe {

class PartEncoder {
 public:
  // Appends a part's ids. Called by several threads at once.
  using Encode = std::function<absl::Status(const std::string& part,
                                            std::vector<int32_t>& ids)>;
  using Sink = std::function<absl::Status(absl::Span<const int32_t> ids)>;

  // `threads`: 1 or more.
  PartEncoder(int threads, Sink sink);

  // May encode what waits, and give it to the sink. Holds up to four parts a
  // thread.
  absl::Status Add(std::string part, Encode encode);
  // All that waits. The first error, in the order of the parts; then nothing
  // behind it has gone to the sink.
  absl::Status Finish();

 private:
  struct Part {
    std::string text;
    Encode encode;
    std::vector<int32_t> ids;
    absl::Status status;
  };

  const int threads_;
  const Sink sink_;
  std::vector<Part> waiting_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_PART_ENCODER_H_
