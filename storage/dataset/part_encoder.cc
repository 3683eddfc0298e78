#include "storage/dataset/part_encoder.h"

#include <utility>

#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr size_t kPartsPerThread = 4;

}  // namespace

PartEncoder::PartEncoder(int threads) {
  CHECK(threads >= 1);
  if (threads == 1) return;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

PartEncoder::~PartEncoder() {
  {
    absl::MutexLock lock(&mutex_);
    waiting_.clear();
    ended_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void PartEncoder::Work() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_ || !waiting_.empty();
  };
  while (true) {
    Part* part = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (waiting_.empty()) return;
      part = waiting_.front();
      waiting_.pop_front();
    }
    part->status = part->encode(part->result);
    absl::MutexLock lock(&mutex_);
    part->done = true;
  }
}

absl::Status PartEncoder::Add(Encode encode, Sink sink) {
  if (threads_.empty()) {
    EncodedPart part;
    RETURN_IF_ERROR(encode(part));
    return sink(part);
  }
  parts_.push_back(std::make_unique<Part>());
  parts_.back()->encode = std::move(encode);
  parts_.back()->sink = std::move(sink);
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(parts_.back().get());
  }
  return Drain(kPartsPerThread * threads_.size());
}

absl::Status PartEncoder::Finish() { return Drain(0); }

absl::Status PartEncoder::Drain(size_t left) {
  while (!parts_.empty()) {
    Part& part = *parts_.front();
    {
      absl::MutexLock lock(&mutex_);
      if (parts_.size() > left) mutex_.Await(absl::Condition(&part.done));
      if (!part.done) break;
    }
    RETURN_IF_ERROR(part.status);
    RETURN_IF_ERROR(part.sink(part.result));
    parts_.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace troupe
