#include "storage/dataset/part_encoder.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr size_t kPartsPerThread = 4;

}  // namespace

PartEncoder::PartEncoder(int threads, Sink sink)
    : threads_(threads), sink_(std::move(sink)) {
  CHECK(threads >= 1);
}

absl::Status PartEncoder::Add(std::string part, Encode encode) {
  waiting_.push_back({std::move(part), std::move(encode), {}, {}});
  if (waiting_.size() < kPartsPerThread * threads_) return absl::OkStatus();
  return Finish();
}

absl::Status PartEncoder::Finish() {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < waiting_.size(); i = next++) {
      Part& part = waiting_[i];
      part.status = part.encode(part.text, part.ids);
    }
  };
  const size_t count = std::min<size_t>(threads_, waiting_.size());
  std::vector<std::thread> others;
  for (size_t i = 1; i < count; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  for (const Part& part : waiting_) {
    RETURN_IF_ERROR(part.status);
    RETURN_IF_ERROR(sink_(part.ids));
  }
  waiting_.clear();
  return absl::OkStatus();
}

}  // namespace troupe
