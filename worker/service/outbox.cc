#include "worker/service/outbox.h"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe {
namespace {

bool IsKept(const WorkerMessage& message) {
  switch (message.message_case()) {
    case WorkerMessage::kRankReady:
    case WorkerMessage::kStep:
    case WorkerMessage::kShard:
    case WorkerMessage::kUnwritten:
    case WorkerMessage::kCommitted:
    case WorkerMessage::kEnded:
    case WorkerMessage::kStoreSet:
    case WorkerMessage::kStoreGet:
      return true;
    default:
      return false;
  }
}

// Of a key that others may set, too, it waits for the value.
bool AsksForValue(const WorkerMessage& message, const std::string& key) {
  return (message.has_store_get() && message.store_get().key() == key) ||
         (message.store_set().keep_first() && message.store_set().key() == key);
}

bool IsOfMeeting(const WorkerMessage& message) {
  return message.has_rank_ready() ||
         (message.has_store_set() && !message.store_set().keep_first());
}

// What a rank says of its part of a checkpoint.
bool IsAnswer(const WorkerMessage& message) {
  return message.has_shard() || message.has_unwritten();
}

bool IsAnswerFor(const WorkerMessage& message, int64_t up_to_step) {
  return (message.has_shard() && message.shard().step() <= up_to_step) ||
         (message.has_unwritten() && message.unwritten().step() <= up_to_step);
}

bool IsCommit(const WorkerMessage& message, int64_t up_to_step) {
  return message.has_committed() &&
         message.committed().checkpoint().step() <= up_to_step;
}

}  // namespace

absl::Status Outbox::Send(WorkerMessage message) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &Outbox::HasRoom));
  if (!closed_.ok()) return closed_;
  if (done_) return absl::OkStatus();
  if (send_ == nullptr && !IsKept(message)) {
    return absl::UnavailableError("there is no session with a scheduler");
  }
  if (send_ == nullptr && message.has_step()) {
    message.mutable_step()->clear_timeline();
  }
  // A rank has one answer, its last; a commit takes its place, too.
  if (IsAnswer(message) || message.has_committed()) Drop(IsAnswer);
  Entry& entry = entries_.emplace_back();
  entry.bytes = message.ByteSizeLong();
  entry.message = std::move(message);
  waiting_bytes_ += entry.bytes;
  Pump();
  return absl::OkStatus();
}

void Outbox::Pump() {
  if (pumping_) return;
  pumping_ = true;
  while (send_ != nullptr && said_ < entries_.size()) {
    Entry& entry = entries_[said_];
    WorkerMessage message = entry.message;
    waiting_bytes_ -= entry.bytes;
    if (!IsKept(message)) {
      entries_.erase(entries_.begin() + said_);
    } else {
      if (message.has_step()) {
        entry.message.mutable_step()->clear_timeline();
        entry.bytes = entry.message.ByteSizeLong();
      }
      ++said_;
      said_bytes_ += entry.bytes;
      BoundSaid();
    }
    const SendToScheduler send = send_;
    mutex_.Unlock();
    const bool sent = send(std::move(message)).ok();
    mutex_.Lock();
    // The session is over; the next one hears all of it.
    if (!sent) send_ = nullptr;
  }
  pumping_ = false;
}

void Outbox::Attach(SendToScheduler send) {
  absl::MutexLock lock(&mutex_);
  send_ = std::move(send);
  waiting_bytes_ += said_bytes_;
  said_ = said_bytes_ = 0;
  Pump();
}

void Outbox::Detach() {
  absl::MutexLock lock(&mutex_);
  send_ = nullptr;
  const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !pumping_;
  };
  mutex_.Await(absl::Condition(&is_idle));
}

void Outbox::OnMessage(const SchedulerMessage& message) {
  absl::MutexLock lock(&mutex_);
  if (message.stop().give_up_kept()) {
    for (Entry& entry : entries_) {
      if (entry.message.has_ended()) {
        entry.message.mutable_ended()->clear_kept();
      }
    }
  } else if (message.has_store_value()) {
    const std::string& key = message.store_value().key();
    Drop([&](const WorkerMessage& kept) { return AsksForValue(kept, key); });
  } else if (message.has_done()) {
    const CheckpointDone& done = message.done();
    // By the answers to one that is given up the next scheduler sees that.
    if (!done.given_up().empty()) return;
    Drop([&](const WorkerMessage& kept) {
      return IsAnswerFor(kept, done.step()) ||
             (!done.unstored() && IsCommit(kept, done.step()));
    });
  } else if (message.has_stored() && message.stored().ended()) {
    done_ = true;
    DropAll();
  } else if (message.has_stored()) {
    const Stored& stored = message.stored();
    Drop([&](const WorkerMessage& kept) {
      return (stored.ready() && IsOfMeeting(kept)) ||
             (kept.has_step() &&
              kept.step().record().step() <= stored.step()) ||
             IsCommit(kept, stored.checkpoint());
    });
  }
}

bool Outbox::done() const {
  absl::MutexLock lock(&mutex_);
  return done_;
}

void Outbox::Forget() {
  absl::MutexLock lock(&mutex_);
  done_ = true;
  DropAll();
}

void Outbox::Close(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (closed_.ok()) closed_ = why;
  DropAll();
}

void Outbox::Drop(absl::FunctionRef<bool(const WorkerMessage&)> which) {
  std::deque<Entry> kept;
  size_t said = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const bool was_said = i < said_;
    if (which(entries_[i].message)) {
      (was_said ? said_bytes_ : waiting_bytes_) -= entries_[i].bytes;
      continue;
    }
    said += was_said;
    kept.push_back(std::move(entries_[i]));
  }
  entries_ = std::move(kept);
  said_ = said;
}

void Outbox::BoundSaid() {
  if (said_bytes_ <= bytes_max_) return;
  size_t excess = said_bytes_ - bytes_max_ / 2;
  size_t left = said_;  // what waits is not touched
  Drop([&](const WorkerMessage& kept) {
    if (left == 0 || excess == 0) return false;
    --left;
    if (!kept.has_step() && !kept.has_committed()) return false;
    excess -= std::min(excess, kept.ByteSizeLong());
    return true;
  });
}

void Outbox::DropAll() {
  entries_.clear();
  said_ = said_bytes_ = waiting_bytes_ = 0;
}

}  // namespace troupe
