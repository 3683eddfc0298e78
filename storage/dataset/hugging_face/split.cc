#include "storage/dataset/hugging_face/split.h"

#include <algorithm>
#include <string>

#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<SplitBehavior> SplitBehaviorField(const JsonPlace& object,
                                                 const char* key) {
  ASSIGN_OR_RETURN(const std::string name, object.Text(key));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  ASSIGN_OR_RETURN(const JsonPlace field, object.Field(key));
  return field.Error("is not known");
}

void Splitter::End() {
  if (done_ != text_.end) Add({done_, text_.end}, invert_);
  if (behavior_ == SplitBehavior::kContiguous) EmitContiguous();
  if (behavior_ == SplitBehavior::kMergedWithPrevious) EmitMergedWithPrevious();
  if (behavior_ == SplitBehavior::kMergedWithNext) EmitMergedWithNext();
  parts_.clear();
}

void Splitter::EmitContiguous() {
  for (size_t i = 0; i < parts_.size();) {
    TextSpan span = parts_[i].span;
    size_t next = i + 1;
    while (next < parts_.size() &&
           parts_[next].is_match == parts_[i].is_match) {
      span.end = parts_[next++].span.end;
    }
    Emit(span);
    i = next;
  }
}

void Splitter::EmitMergedWithPrevious() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    TextSpan span = parts_[i].span;
    if (!parts_[i].is_match && i + 1 < parts_.size() &&
        parts_[i + 1].is_match) {
      span.end = parts_[++i].span.end;
    }
    Emit(span);
  }
}

void Splitter::EmitMergedWithNext() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    TextSpan span = parts_[i].span;
    if (parts_[i].is_match && i + 1 < parts_.size() &&
        !parts_[i + 1].is_match) {
      span.end = parts_[++i].span.end;
    }
    Emit(span);
  }
}

}  // namespace troupe
