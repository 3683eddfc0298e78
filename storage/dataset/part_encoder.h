// Encodes parts of texts on several threads. What is encoded comes in the order
// of the parts, so that it does not depend on the number of threads.
#ifndef TROUPE_STORAGE_DATASET_PART_ENCODER_H_
#define TROUPE_STORAGE_DATASET_PART_ENCODER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace troupe {

struct EncodedPart {
  std::vector<int32_t> ids;
  std::vector<uint8_t> counts;  // for each id: 1 where it counts; or empty
  std::vector<size_t> ends;  // of documents: how many ids are before each
  int64_t skipped = 0;       // lines that were left out
};

class PartEncoder {
 public:
  // Called by several threads at once.
  using Encode = std::function<absl::Status(EncodedPart& part)>;
  // Called by the thread that calls Add and Finish.
  using Sink = std::function<absl::Status(const EncodedPart& part)>;

  // `threads`: 1 or more. One is the thread that calls Add.
  explicit PartEncoder(int threads);
  // Waits for what is being encoded.
  ~PartEncoder();
  PartEncoder(const PartEncoder&) = delete;
  PartEncoder& operator=(const PartEncoder&) = delete;

  // Gives to their sinks what is encoded by then; waits while four parts a
  // thread are not. The first error, in the order of the parts; then nothing
  // behind it goes to a sink.
  absl::Status Add(Encode encode, Sink sink);
  // All that waits. Errors as above.
  absl::Status Finish();

 private:
  struct Part {
    Encode encode;
    Sink sink;
    EncodedPart result;
    absl::Status status;
    bool done = false;
  };

  void Work();
  // Those at the front, until at most `left` are there.
  absl::Status Drain(size_t left);

  absl::Mutex mutex_;
  std::deque<std::unique_ptr<Part>> parts_;  // in order; of the caller
  std::deque<Part*> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // none: the caller encodes
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_PART_ENCODER_H_
