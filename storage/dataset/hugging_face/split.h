// How a text is split at what a pre-tokenizer finds in it: matches and the gaps
// between them come from left to right, and the behavior says which of them
// become pieces, alone or joined.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_SPLIT_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_SPLIT_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/dataset/hugging_face/json_place.h"

namespace troupe {

// Bytes of a text.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
};

enum class SplitBehavior {
  kRemoved,             // gaps only
  kIsolated,            // matches and gaps
  kMergedWithPrevious,  // a match ends the gap before it
  kMergedWithNext,      // a match begins the gap behind it
  kContiguous,          // matches that touch are one piece
};

absl::StatusOr<SplitBehavior> SplitBehaviorField(const JsonPlace& object,
                                                 const char* key);

// Takes the matches of one text, in order, and appends its pieces to `spans`.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, bool invert, std::vector<TextSpan>& spans)
      : behavior_(behavior), invert_(invert), spans_(spans) {}

  // A text of these bytes; then its matches; then its end.
  void Begin(TextSpan text) {
    text_ = text;
    done_ = text.begin;
  }
  void Match(size_t begin, size_t end) {
    if (begin != done_) Add({done_, begin}, invert_);
    Add({begin, end}, !invert_);
    done_ = end;
  }
  void End();

 private:
  struct Part {
    TextSpan span;
    bool is_match;
  };
  void Add(TextSpan span, bool is_match) {
    if (behavior_ == SplitBehavior::kIsolated) {
      Emit(span);
    } else if (behavior_ == SplitBehavior::kRemoved) {
      if (!is_match) Emit(span);
    } else {
      parts_.push_back({span, is_match});
    }
  }
  void Emit(TextSpan span) {
    if (span.begin < span.end) spans_.push_back(span);
  }
  void EmitContiguous();
  void EmitMergedWithPrevious();
  void EmitMergedWithNext();

  const SplitBehavior behavior_;
  const bool invert_;
  std::vector<TextSpan>& spans_;
  TextSpan text_;
  size_t done_ = 0;
  std::vector<Part> parts_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_SPLIT_H_
