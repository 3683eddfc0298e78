#include "worker/collective/in_process/board.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

Verdict Late(int peer) {
  return {absl::StatusCode::kDeadlineExceeded, peer, "did not come"};
}

Verdict Gone(int peer) {
  return {absl::StatusCode::kUnavailable, peer, "closed its communicator"};
}

}  // namespace

Board::Board(int ranks)
    : ranks_(ranks),
      given_(ranks),
      phase_(ranks),
      entries_(ranks),
      left_(ranks),
      boxes_(ranks * ranks) {}

int Board::MissingRank(int64_t phase) const {
  int missing = -1;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (phase_[rank] >= phase) continue;
    if (left_[rank]) return rank;  // says more than one that is late
    if (missing < 0) missing = rank;
  }
  return missing;
}

Verdict Board::FailLocked(Verdict outcome) {
  if (failure_.ok()) failure_ = std::move(outcome);
  return failure_;
}

void Board::Fail(Verdict outcome) {
  absl::MutexLock lock(&mutex_);
  FailLocked(std::move(outcome));
}

void Board::Leave(int rank) {
  absl::MutexLock lock(&mutex_);
  left_[rank] = true;
}

Verdict Board::Enter(int rank, Entry entry, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  const int64_t phase = ++phase_[rank];
  if (phase > call_phase_) {  // the first one
    call_phase_ = phase;
    call_ = entry.call;
  }
  CHECK(call_ == entry.call) << "rank index " << rank << " called "
                             << entry.call << " where others called " << call_;
  entries_[rank] = std::move(entry);
  const auto settled = [this, phase]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int missing = MissingRank(phase);
    return missing < 0 || left_[missing] || !failure_.ok();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&settled), deadline - SteadyNow());
  // All came before the group failed: then all carry on, or none does.
  const int missing = MissingRank(phase);
  if (missing >= 0) {
    if (!failure_.ok()) return failure_;
    return FailLocked(left_[missing] ? Gone(missing) : Late(missing));
  }
  return {};
}

void Board::NextPhase(int rank) {
  absl::MutexLock lock(&mutex_);
  const int64_t phase = ++phase_[rank];
  const auto all = [this, phase]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return MissingRank(phase) < 0;
  };
  mutex_.Await(absl::Condition(&all));
}

CommBuffer Board::BufferOf(int rank) const {
  absl::MutexLock lock(&mutex_);
  return entries_[rank].buffer;
}

Board::Entry Board::EntryOf(int rank) const {
  absl::MutexLock lock(&mutex_);
  return entries_[rank];
}

Verdict Board::Send(const Route& route, CommBuffer data, absl::Time deadline) {
  CommBuffer into;
  {
    absl::MutexLock lock(&mutex_);
    Box& box = BoxOf(route);
    const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return box.mail == Mail::kWanted || left_[route.receiver] ||
             !failure_.ok();
    };
    mutex_.AwaitWithTimeout(absl::Condition(&settled), deadline - SteadyNow());
    if (!failure_.ok()) return failure_;
    if (box.mail != Mail::kWanted) {
      return FailLocked(left_[route.receiver] ? Gone(route.receiver)
                                              : Late(route.receiver));
    }
    box.mail = Mail::kFilling;  // the receiver now waits for us
    into = box.into;
  }
  CHECK_EQ(into.bytes(), data.bytes());
  std::memcpy(into.data, data.data, data.bytes());
  CountGiven(route.sender, data.bytes());
  absl::MutexLock lock(&mutex_);
  BoxOf(route).mail = Mail::kFilled;
  return {};
}

Verdict Board::Recv(const Route& route, CommBuffer data, absl::Time deadline) {
  const Verdict wanted = Want(route, data);
  return wanted.ok() ? Take(route, deadline) : wanted;
}

Verdict Board::Cross(const Crossing& crossing, absl::Time deadline) {
  const Verdict wanted = Want(crossing.in, crossing.receive);
  if (!wanted.ok()) return wanted;
  const Verdict sent = Send(crossing.out, crossing.send, deadline);
  // Though the group has failed: the sender may be filling our buffer.
  const Verdict taken = Take(crossing.in, deadline);
  return sent.ok() ? taken : sent;
}

Verdict Board::Want(const Route& route, CommBuffer data) {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  BoxOf(route) = {Mail::kWanted, data};
  return {};
}

Verdict Board::Take(const Route& route, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  Box& box = BoxOf(route);
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (box.mail == Mail::kWanted) {
      return left_[route.sender] || !failure_.ok();
    }
    return true;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&settled), deadline - SteadyNow());
  if (box.mail == Mail::kWanted) {
    box = {};
    if (!failure_.ok()) return failure_;
    return FailLocked(left_[route.sender] ? Gone(route.sender)
                                          : Late(route.sender));
  }
  const auto filled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return box.mail == Mail::kFilled;
  };
  mutex_.Await(absl::Condition(&filled));
  box = {};
  return {};
}

}  // namespace troupe
