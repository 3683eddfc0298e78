#include "worker/collective/enqueued/under_way.h"

#include <utility>

#include "proto/base/check.h"

namespace troupe {

void UnderWay::Add(Operation operation) {
  CHECK(operations_.empty() || operations_.back().end != nullptr)
      << operations_.back().awaited.what << " is not enqueued yet";
  operations_.push_back(std::move(operation));
}

void UnderWay::Enqueued(std::unique_ptr<Fence> end) {
  CHECK(!operations_.empty() && operations_.back().end == nullptr);
  if (end == nullptr) {
    operations_.pop_back();
  } else {
    operations_.back().end = std::move(end);
  }
}

void UnderWay::Sweep(absl::Time now) {
  while (!operations_.empty() && operations_.front().end != nullptr &&
         operations_.front().end->HasRun()) {
    operations_.pop_front();
  }
  if (operations_.empty()) return;
  Operation& oldest = operations_.front();
  if (oldest.turn == absl::InfiniteFuture() && oldest.begin->HasRun()) {
    oldest.turn = now;
  }
}

void UnderWay::LetGo() {
  for (Operation& operation : operations_) operation.hold.reset();
}

absl::Time UnderWay::due() const {
  if (operations_.empty()) return absl::InfiniteFuture();
  return operations_.front().turn + operations_.front().awaited.timeout;
}

}  // namespace troupe
