#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/copies.h"
#include "tests/faults/simulated_worker.h"

namespace troupe {

// The part of SimulatedWorker that keeps copies of its rank's state and goes on
// from them.

void SimulatedWorker::Lose() {
  const auto lose = [this](const RankRef& ref) {
    attempts_.at(KeyOf(ref)).lost.insert(ref.rank());
  };
  if (held_.has_value()) lose(held_->rank.ref());
  if (kept_.has_value()) lose(kept_->ref);
  for (const SchedulerMessage& message : inbox) {
    if (message.has_start()) lose(message.start().ref());
  }
}

const RankRef* SimulatedWorker::WhatIsSaved() const {
  if (seat_.has_value()) {
    return seat_->attempt->Saves() ? &seat_->start.ref() : nullptr;
  }
  if (!kept_.has_value()) return nullptr;
  return attempts_.at(KeyOf(kept_->ref)).Saves() ? &kept_->ref : nullptr;
}

// One that is about to go, and stays for what it keeps, does as it is told.
void SimulatedWorker::BeStubborn() {
  if (leaving_ && !seat_.has_value()) return;
  stubborn_ = true;
  Harm();
}

bool SimulatedWorker::MakesCopies() const {
  const Plan& plan = seat_->start.plan();
  return KeepsCopies(plan.job(), plan.mesh());
}

void SimulatedWorker::CheckNothingKept(const std::string& given) const {
  EXPECT_FALSE(kept_.has_value())
      << name_ << " was given " << given << " and keeps copies of "
      << kept_->ref.ShortDebugString();
}

bool SimulatedWorker::FlipABit() {
  if (!seat_.has_value() || !seat_->ready || seat_->attempt->ranks < 2) {
    return false;
  }
  seat_->flipped = true;
  seat_->attempt->harmed = true;
  seat_->attempt->flipped = true;
  return true;
}

void SimulatedWorker::CheckSound(const SimulatedCopy& copy) const {
  const RankRef& ref = seat_.has_value() ? seat_->start.ref() : kept_->ref;
  const auto made_by = attempts_.find({ref.job(), copy.made_by});
  if (made_by == attempts_.end()) return;  // it is where the job began
  EXPECT_LT(copy.step, made_by->second.known_wrong)
      << name_ << " is to use a copy of a wrong step, in "
      << ref.ShortDebugString();
}

// Its copies come with it where the new attempt counts on them.
void SimulatedWorker::TakeKept() {
  Seat& seat = *seat_;
  const RankRef& ref = seat.start.ref();
  if (kept_.has_value()) {
    EXPECT_TRUE(kept_->ref.job() == ref.job() &&
                kept_->ref.rank() == ref.rank() &&
                kept_->ref.attempt() < ref.attempt())
        << name_ << " is " << ref.ShortDebugString() << " and keeps copies of "
        << kept_->ref.ShortDebugString();
    if (seat.start.has_recovery()) seat.copies = kept_->copies;
    kept_.reset();
  }
  seat.attempt->brought[rank()] = seat.copies;
}

// Its own copy, or what others hand to it. All have met, so each has what it
// brought.
bool SimulatedWorker::Recover() {
  Seat& seat = *seat_;
  if (seat.recovered || !seat.start.has_recovery()) return false;
  const Recovery& recovery = seat.start.recovery();
  const int64_t step = recovery.state().step();
  for (const Handover& handover : recovery.handovers()) {
    if (handover.to() != rank()) continue;
    if (seat.attempt->gone.count(handover.from()) > 0) {
      End({.error = "no word from who has the copy",
           .missing_rank = handover.from()});
      return true;
    }
    const SimulatedCopy* copy =
        seat.attempt->brought.at(handover.from()).Find(step, handover.peer());
    EXPECT_NE(copy, nullptr)
        << "rank " << handover.from() << " is to hand on what it has not, in "
        << seat.start.ref().ShortDebugString() << ": "
        << recovery.ShortDebugString();
    if (copy != nullptr) seat.copies.Bring(step, copy->made_by);
  }
  const SimulatedCopy* copy = seat.copies.Find(step, /*peer=*/false);
  EXPECT_NE(copy, nullptr) << name_ << " has no copy of step " << step << " in "
                           << seat.start.ref().ShortDebugString() << ": "
                           << recovery.ShortDebugString();
  if (copy == nullptr) {
    Fail("the copy is not there");
    return true;
  }
  CheckSound(*copy);
  seat.made_by = copy->made_by;
  seat.attempt->histories.insert(copy->made_by);
  EXPECT_EQ(seat.attempt->histories.size(), 1u)
      << "the ranks of " << seat.start.ref().ShortDebugString()
      << " go on from different histories";
  seat.copies.DropAfter(step);
  seat.recovered = true;
  return true;
}

void SimulatedWorker::KeepAfter(int64_t step) {
  const SimulatedAttempt& attempt = *seat_->attempt;
  if (!MakesCopies() || step >= attempt.job.training().steps()) return;
  const bool due =
      step == attempt.begins_after || step % attempt.KeepEvery() == 0;
  if (due) seat_->keep = Keep();
}

// A copy that is handed on is whole when the two others are at theirs.
bool SimulatedWorker::KeepCopy(absl::Time now) {
  Seat& seat = *seat_;
  if (!seat.keep.has_value()) return false;
  const Plan& plan = seat.start.plan();
  std::set<int>& begun = seat.attempt->keeps[seat.step];
  if (seat.keep->which < 0) {
    seat.keep->which = seat.copies.Begin();
    begun.insert(rank());
    seat.arrived = now;
    return true;
  }
  const bool mirrors = NeedsMirrors(plan);
  if (mirrors) {
    for (const int peer : {MirrorOf(plan, rank()), MirroredBy(plan, rank())}) {
      if (begun.count(peer) > 0) continue;
      if (seat.attempt->gone.count(peer) > 0 || OutOfPatience(now)) {
        End({.error = absl::StrCat("no copy from rank ", peer),
             .missing_rank = peer});
      }
      return true;
    }
  }
  if (Draw(3) == 0) return true;  // it takes its time
  seat.copies.End(seat.keep->which, {.step = seat.step,
                                     .made_by = seat.made_by,
                                     .own = true,
                                     .peer = mirrors});
  seat.keep.reset();
  return true;
}

std::string SimulatedWorker::KeptText() const {
  std::string text = kept_->ref.ShortDebugString();
  for (const SimulatedCopy& copy : kept_->copies.Whole()) {
    absl::StrAppend(&text, ", step ", copy.step, " of attempt ", copy.made_by,
                    copy.peer ? " and its peer's" : "");
  }
  return text;
}

void SimulatedWorker::SayCopies(
    const SimulatedCopies& copies,
    google::protobuf::RepeatedPtrField<KeptCopy>& kept) {
  for (const SimulatedCopy& copy : copies.Whole()) {
    KeptCopy& said = *kept.Add();
    said.mutable_state()->set_step(copy.step);
    said.set_own(copy.own);
    said.set_peer(copy.peer);
  }
}

void SimulatedWorker::SayKept(RankEnded& ended) {
  SayCopies(seat_->copies, *ended.mutable_kept());
  if (ended.kept().empty()) return;
  kept_ = {.ref = seat_->start.ref(), .copies = seat_->copies};
}

}  // namespace troupe
