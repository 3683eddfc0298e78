#include "storage/dataset/text_stream.h"

#include <utility>

#include "proto/base/status.h"
#include "storage/dataset/utf8.h"

namespace troupe {

absl::StatusOr<std::string> TextStream::Add(int32_t id) {
  ASSIGN_OR_RETURN(const std::string text, tokenizer_.TokenText(id));
  waiting_ += text;
  const size_t complete = waiting_.size() - UnfinishedBytes(waiting_);
  std::string out = waiting_.substr(0, complete);
  waiting_.erase(0, complete);
  return out;
}

std::string TextStream::Finish() { return std::exchange(waiting_, ""); }

}  // namespace troupe
