#include "worker/rank/tier_port.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/types/span.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kIoAlignment - 1) / kIoAlignment * kIoAlignment;
}

}  // namespace

TierPort::~TierPort() {
  window_.reset();
  queue_.reset();
  if (!knows_memory_) return;
  for (const absl::Span<char>& moved : memory_->MovedByNvme()) {
    engine_->ForgetMemory(moved.data());
  }
}

absl::StatusOr<SpillQueue*> TierPort::Queue() {
  if (queue_ != nullptr) return queue_.get();
  CHECK(memory_ != nullptr && memory_->spill() != nullptr)
      << "an address in an nvme tier that there is not";
  if (engine_ == nullptr) {
    ASSIGN_OR_RETURN(engine_, memory_->NewEngine());
  }
  SpillQueueOptions options;
  if (log_ != nullptr) {
    options.stopped = [log = log_] { return log->aborted(); };
  }
  ASSIGN_OR_RETURN(queue_,
                   SpillQueue::Open(*memory_->spill(), *engine_, options));
  return queue_.get();
}

void TierPort::KnowMemory() {
  if (knows_memory_) return;
  knows_memory_ = true;
  for (const absl::Span<char>& moved : memory_->MovedByNvme()) {
    // Without, moves cost more.
    engine_->RegisterMemory(moved.data(), moved.size()).IgnoreError();
  }
}

absl::StatusOr<SpillWindow*> TierPort::Window() {
  if (window_ == nullptr) {
    ASSIGN_OR_RETURN(SpillQueue* const queue, Queue());
    window_ = std::make_unique<SpillWindow>(*queue);
  }
  return window_.get();
}

absl::Status TierPort::Move(const TierAddress& from, const TierAddress& to,
                            int64_t bytes) {
  if (from.tier() == NVME && to.tier() == NVME) {
    return CopyWithinNvme(from, to, bytes);
  }
  if (from.tier() == NVME || to.tier() == NVME) {
    const bool reads = from.tier() == NVME;
    const TierAddress& host = reads ? to : from;
    CHECK_EQ(host.tier(), HOST)
        << "a move between tiers that are no neighbours";
    ASSIGN_OR_RETURN(SpillQueue* const queue, Queue());
    KnowMemory();
    return queue->Now(
        reads ? IoKind::kRead : IoKind::kWrite,
        {.offset = (reads ? from : to).offset(), .bytes = RoundUp(bytes)},
        host.memory());
  }
  if (from.tier() == DEVICE && to.tier() == DEVICE) {
    device_.CopyWithin(to.memory(), from.memory(), bytes);
  } else if (from.tier() == DEVICE) {
    device_.CopyToHost(to.memory(), from.memory(), bytes);
  } else if (to.tier() == DEVICE) {
    device_.CopyFromHost(to.memory(), from.memory(), bytes);
  } else {
    std::memcpy(to.memory(), from.memory(), bytes);
  }
  return absl::OkStatus();
}

absl::Status TierPort::Read(const TierAddress& from, int64_t bytes,
                            char* host) {
  if (from.tier() == NVME) {
    ASSIGN_OR_RETURN(SpillWindow* const window, Window());
    return window->Read(from.offset(), bytes, host);
  }
  return Move(from, TierAddress::InHost(host), bytes);
}

absl::Status TierPort::Write(const TierAddress& to, const char* host,
                             int64_t bytes) {
  if (to.tier() == NVME) {
    ASSIGN_OR_RETURN(SpillWindow* const window, Window());
    return window->Write(to.offset(), bytes, host);
  }
  return Move(TierAddress::InHost(const_cast<char*>(host)), to, bytes);
}

absl::Status TierPort::Zero(const TierAddress& to, int64_t bytes) {
  if (to.tier() == NVME) return ZeroNvme(to.offset(), to.offset() + bytes);
  if (to.tier() == DEVICE) {
    device_.Zero(to.memory(), bytes);
  } else {
    std::memset(to.memory(), 0, bytes);
  }
  return absl::OkStatus();
}

// What was never written is zero and need not be.
absl::Status TierPort::ZeroNvme(uint64_t begin, uint64_t end) {
  ASSIGN_OR_RETURN(SpillWindow* const window, Window());
  RETURN_IF_ERROR(window->Flush());
  const std::string zeros(SpillWindow::kWindowBytes, '\0');
  while (begin < end) {
    const uint64_t next =
        std::min(end, begin / zeros.size() * zeros.size() + zeros.size());
    const uint64_t first_block = begin / kIoAlignment * kIoAlignment;
    const SpillRange blocks = {first_block, RoundUp(next) - first_block};
    if (!memory_->spill()->IsZero(blocks)) {
      RETURN_IF_ERROR(window->Write(begin, next - begin, zeros.data()));
    }
    begin = next;
  }
  return absl::OkStatus();
}

absl::Status TierPort::CopyWithinNvme(const TierAddress& from,
                                      const TierAddress& to, int64_t bytes) {
  constexpr int64_t kAtOnce = SpillWindow::kWindowBytes;
  std::string part(std::min(bytes, kAtOnce), '\0');
  for (int64_t at = 0; at < bytes; at += kAtOnce) {
    const int64_t count = std::min(bytes - at, kAtOnce);
    RETURN_IF_ERROR(Read(from + at, count, part.data()));
    RETURN_IF_ERROR(Write(to + at, part.data(), count));
  }
  return Flush();
}

absl::Status TierPort::Flush() {
  RETURN_IF_ERROR(Settle());
  return window_ == nullptr ? absl::OkStatus() : window_->Flush();
}

}  // namespace troupe
