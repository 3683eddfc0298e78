#include "tests/faults/simulated_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(1);
constexpr absl::Duration kStopGrace = absl::Seconds(1);
bool Same(const RankRef& a, const RankRef& b) {
  return KeyOf(a) == KeyOf(b) && a.rank() == b.rank();
}

// The rank that this is said to, of what its outbox hears; null: no rank.
const RankRef* HeardBy(const SchedulerMessage& message) {
  if (message.has_stop()) return &message.stop().ref();
  if (message.has_store_value()) return &message.store_value().ref();
  if (message.has_done()) return &message.done().ref();
  return message.has_stored() ? &message.stored().ref() : nullptr;
}

std::string AddressKey(int rank) { return absl::StrCat("address of ", rank); }

std::string AddressOf(const AttemptKey& key, int rank) {
  return absl::StrCat("of job ", key.first, ", attempt ", key.second, ", rank ",
                      rank);
}

}  // namespace

std::string SimulatedWorker::Doing() const {
  std::string text =
      absl::StrCat(name_, hangs_ ? " hangs" : "",
                   stubborn_ ? " is stubborn" : "", leaving_ ? " leaves" : "");
  if (text_.has_value()) absl::StrAppend(&text, " writes ", text_->request);
  if (kept_.has_value()) absl::StrAppend(&text, " keeps ", KeptText());
  if (!seat_.has_value()) return text;
  absl::StrAppend(&text, " is at ", seat_->start.ref().ShortDebugString(),
                  seat_->ready ? "" : ", not ready", ", after step ",
                  seat_->step, " of ", seat_->attempt->job.training().steps(),
                  seat_->stops ? ", stops" : "");
  if (seat_->due.has_value()) absl::StrAppend(&text, ", saves ", *seat_->due);
  if (!seat_->write.has_value()) return text;
  const Write& write = *seat_->write;
  return absl::StrCat(text, ", has written ", write.bytes, " of ",
                      write.bytes_total, " of step ", write.step,
                      write.told ? ", told" : "",
                      write.may_commit ? ", commits" : "");
}

void SimulatedWorker::Harm() {
  if (seat_.has_value()) seat_->attempt->harmed = true;
  // Its last words may be lost with it.
  if (held_.has_value()) attempts_.at(KeyOf(held_->rank.ref())).harmed = true;
  for (const SchedulerMessage& message : inbox) {
    if (!message.has_start()) continue;
    attempts_.at(KeyOf(message.start().ref())).harmed = true;
  }
}

void SimulatedWorker::Hang() {
  hangs_ = true;
  Harm();
}

void SimulatedWorker::Die() {
  Harm();
  Lose();
  if (seat_.has_value()) seat_->attempt->gone.insert(rank());
  seat_.reset();
  held_.reset();
  kept_.reset();
  save_.reset();
  text_.reset();
  inbox.clear();
  outbox.clear();
}

void SimulatedWorker::CutOff() {
  if (held_.has_value()) held_->outbox->Detach();
  connected_ = false;
  KeepWhatIsSaid();
  text_.reset();
  inbox.clear();
  outbox.clear();
}

Register SimulatedWorker::Registration() const {
  Register registration;
  if (held_.has_value()) *registration.mutable_held() = held_->rank;
  if (held_.has_value() && kept_.has_value() && !seat_.has_value()) {
    SayCopies(kept_->copies, *registration.mutable_held()->mutable_kept());
  }
  return registration;
}

void SimulatedWorker::Connect() {
  connected_ = true;
  if (!held_.has_value()) {
    kept_.reset();  // no scheduler counts on it any more
    return;
  }
  held_->outbox->Attach([this](WorkerMessage message) {
    outbox.push_back(std::move(message));
    return absl::OkStatus();
  });
}

bool SimulatedWorker::Holds(const RankRef& ref) const {
  return held_.has_value() && Same(held_->rank.ref(), ref);
}

bool SimulatedWorker::is_forgotten() const {
  return std::any_of(inbox.begin(), inbox.end(), [this](const auto& message) {
    return message.stop().forgotten() && Holds(message.stop().ref());
  });
}

bool SimulatedWorker::is_to_give_up_kept() const {
  return kept_.has_value() &&
         std::any_of(inbox.begin(), inbox.end(), [this](const auto& message) {
           return message.stop().give_up_kept() &&
                  Same(message.stop().ref(), kept_->ref);
         });
}

void SimulatedWorker::SayAll() {
  for (WorkerMessage& message : saying_) {
    switch (message.message_case()) {
      case WorkerMessage::kHeartbeat:
      case WorkerMessage::kGenerated:
      case WorkerMessage::kCheckpointJob:
      case WorkerMessage::kGoodbye:
      case WorkerMessage::kLeaving:
        if (connected_) outbox.push_back(std::move(message));
        break;
      default:
        if (held_.has_value()) {
          held_->outbox->Send(std::move(message)).IgnoreError();
        }
    }
  }
  saying_.clear();
}

void SimulatedWorker::Leave(bool in_a_hurry) {
  if (!healthy()) return;
  leaving_ = true;
  Harm();
  const RankRef* const waits_for = WhatIsSaved();
  if (!in_a_hurry && waits_for != nullptr) {
    Leaving& leaving = *Say().mutable_leaving();
    *leaving.mutable_ref() = *waits_for;
    leaving.set_reason("SIGTERM");
  } else {
    SayGoodbye();
  }
  SayAll();
}

void SimulatedWorker::SayGoodbye() {
  Lose();
  if (seat_.has_value()) seat_->attempt->gone.insert(rank());
  seat_.reset();
  KeepWhatIsSaid();
  kept_.reset();
  text_.reset();
  inbox.clear();
  Say().mutable_goodbye()->set_reason("asked to stop");
  left_ = true;
}

void SimulatedWorker::Work(absl::Time now) {
  if (hangs_ || left_) return;
  if (connected_ && now - beat_ >= kHeartbeat) Beat(now);
  if (!stubborn_) DoOnePiece(now);
  if (seat_.has_value() && held_.has_value()) {
    held_->rank.set_first_step(seat_->ready ? seat_->attempt->begins_after + 1
                                            : 0);
    held_->rank.set_step(seat_->step);
  }
  SayAll();
}

void SimulatedWorker::DoOnePiece(absl::Time now) {
  if (!inbox.empty()) {
    const SchedulerMessage message = inbox.front();
    inbox.pop_front();
    Obey(message, now);
    if (leaving_ && !left_ && WhatIsSaved() == nullptr) SayGoodbye();
    return;
  }
  if (text_.has_value()) return WriteText();
  if (SaveKept() || !seat_.has_value()) return;
  if (now >= seat_->abort_at) {
    return End({.error = "cancelled", .stopped = true});
  }
  if (BeginRank(now) || WriteShard(now) || KeepCopy(now)) return;
  Step(now);
}

// Where it is: what it reads or writes, and anything of its lanes.
void SimulatedWorker::Beat(absl::Time now) {
  beat_ = now;
  Heartbeat& heartbeat = *Say().mutable_heartbeat();
  heartbeat.set_memory_bytes(1 + Draw(100));
  if (!seat_.has_value()) return;
  RankProgress& progress = *heartbeat.mutable_progress();
  *progress.mutable_ref() = seat_->start.ref();
  progress.set_program(static_cast<Program::Kind>(Draw(4)));
  progress.set_step(seat_->step + Draw(2));
  progress.set_step_seconds(Draw(30));
  for (int lanes = Draw(4); lanes > 0; --lanes) {
    LaneProgress& lane = *progress.add_lanes();
    lane.set_lane(Draw(9) - 1);
    lane.set_running(Draw(2) == 0);
    lane.mutable_waits_for()->set_lane(Draw(9) - 1);
    if (Draw(2) == 0) lane.mutable_current()->set_group(Draw(3) - 1);
    if (Draw(2) == 0) lane.mutable_current()->set_peer(Draw(5) - 1);
  }
  if (seat_->write.has_value() && !seat_->write->told) {
    DiskProgress& disk = *progress.mutable_disk();
    disk.set_writes(true);
    disk.set_step(seat_->write->step);
    disk.set_bytes(seat_->write->bytes);
    disk.set_bytes_total(seat_->write->bytes_total);
  } else if (seat_->read < seat_->to_read) {
    progress.mutable_disk()->set_bytes(seat_->read);
    progress.mutable_disk()->set_bytes_total(seat_->to_read);
  }
}

void SimulatedWorker::Obey(const SchedulerMessage& message, absl::Time now) {
  const RankRef* heard_by = HeardBy(message);
  if (heard_by != nullptr && Holds(*heard_by)) {
    if (message.stop().forgotten()) {
      held_->outbox->Forget();
      if (seat_.has_value()) End({.error = message.stop().reason()});
      EndSave();
      kept_.reset();
    } else {
      held_->outbox->OnMessage(message);
    }
    if (held_->outbox->done()) held_.reset();
  }
  if (message.has_start()) return TakeSeat(message.start());
  if (message.has_read_job()) {
    EXPECT_FALSE(seat_.has_value() || text_.has_value())
        << name_ << " was asked to read beside its work";
    CheckNothingKept("a checkpoint to read");
    ReadJob(message.read_job().request());
  } else if (message.has_generate()) {
    EXPECT_FALSE(seat_.has_value() || text_.has_value())
        << name_ << " was given a text beside its work";
    CheckNothingKept("a text");
    text_ = {.request = message.generate().request(),
             .rank = message.generate().rank(),
             .ranks = message.generate().plan().weight_bytes_size(),
             .pieces_left = 1 + Draw(6)};
  } else if (message.has_stop_text()) {
    if (text_.has_value() && text_->request == message.stop_text().request()) {
      text_->stopped = true;
    }
  } else if (message.stop().give_up_kept() && kept_.has_value() &&
             Same(message.stop().ref(), kept_->ref)) {
    kept_.reset();
  }
  if (message.stop().give_up_kept()) EndSave();
  if (message.has_save_copies()) BeginSave(message.save_copies());
  if (!seat_.has_value()) return;
  const RankRef& ours = seat_->start.ref();
  const AttemptKey key = KeyOf(ours);
  if (message.has_stop() && Same(message.stop().ref(), ours)) {
    ObeyStop(message.stop(), now);
  } else if (message.has_store_value() &&
             Same(message.store_value().ref(), ours)) {
    const StoreValue& value = message.store_value();
    for (int peer = 0; peer < seat_->attempt->ranks; ++peer) {
      if (value.key() != AddressKey(peer)) continue;
      EXPECT_EQ(value.value(), AddressOf(key, peer)) << "a wrong address";
    }
    seat_->unmet.erase(value.key());
  } else if (message.has_commit() && Same(message.commit().ref(), ours)) {
    ObeyCommit(message.commit());
  } else if (message.has_done() && Same(message.done().ref(), ours)) {
    ObeyDone(message.done(), now);
  }
}

void SimulatedWorker::ObeyStop(const StopRank& stop, absl::Time now) {
  const bool again = seat_->abort_at != absl::InfiniteFuture();
  if (stop.peers_gone() || !seat_->ready || again) {
    return End({.error = stop.reason(), .stopped = true});
  }
  seat_->stop = true;
  if (stop.checkpoint()) {
    seat_->save = true;
  } else {
    seat_->abort_at = now + kStopGrace;
  }
}

void SimulatedWorker::TakeSeat(const Assignment& start) {
  EXPECT_FALSE(seat_.has_value()) << name_ << " was given a second rank";
  EXPECT_FALSE(text_.has_value()) << name_ << " was given a rank and a text";
  EndSave();
  seat_ = Seat();
  seat_->start = start;
  held_ = Held{.outbox = std::make_unique<Outbox>()};
  *held_->rank.mutable_ref() = start.ref();
  held_->rank.set_fingerprint(start.plan().fingerprint());
  held_->rank.set_cluster_id(kClusterId);
  held_->rank.set_run_id(start.run_id());
  Connect();
  seat_->attempt = &attempts_.at(KeyOf(start.ref()));
  seat_->to_read = kBytesAPiece * Draw(8);
  seat_->step = seat_->attempt->begins_after;
  TakeKept();
}

// By which job the checkpoint was made: by a small one, or one of which the
// model fits two workers or four.
void SimulatedWorker::ReadJob(int64_t text) {
  CheckpointJob& read = *Say().mutable_checkpoint_job();
  read.set_request(text);
  if (Draw(10) == 0) {
    read.set_error("no manifest");
    return;
  }
  const int ranks = 1 << Draw(3);
  read.mutable_job()->mutable_model()->set_hidden_size(1000 * ranks);
  read.mutable_job()->mutable_parallelism()->set_tensor(ranks);
}

void SimulatedWorker::WriteText() {
  GeneratedText& piece = *Say().mutable_generated();
  piece.set_request(text_->request);
  piece.set_loaded(true);
  if (text_->stopped) {
    piece.set_error("told to stop");
    piece.set_stopped(true);
  } else if (Draw(50) == 0) {
    piece.set_error("bad luck");
    if (Draw(2) == 0) piece.set_missing_rank(Draw(text_->ranks));
  } else if (text_->rank == 0) {
    piece.set_text("and ");
    piece.set_tokens(1);
  }
  if (piece.error().empty() && --text_->pieces_left > 0) return;
  piece.set_done(true);
  text_.reset();
}

bool SimulatedWorker::BeginRank(absl::Time now) {
  Seat& seat = *seat_;
  if (seat.ready) return false;
  if (now < broken_until_) {
    seat.attempt->harmed = true;
    End({.error = "its disk is broken", .broken = true});
    return true;
  }
  if (seat.read < seat.to_read) {
    if (seat.read == 0) CheckResume();
    seat.read += kBytesAPiece;
  } else if (!seat.introduced) {
    seat.introduced = true;
    const AttemptKey key = KeyOf(seat.start.ref());
    StoreSet& set = *Say().mutable_store_set();
    *set.mutable_ref() = seat.start.ref();
    set.set_key(AddressKey(rank()));
    set.set_value(AddressOf(key, rank()));
    for (int peer = 0; peer < seat.attempt->ranks; ++peer) {
      if (peer == rank()) continue;
      StoreGet& get = *Say().mutable_store_get();
      *get.mutable_ref() = seat.start.ref();
      get.set_key(AddressKey(peer));
      seat.unmet.insert(AddressKey(peer));
    }
  } else if (seat.unmet.empty() && !Recover()) {
    seat.ready = true;
    if (ResumesItsOwn()) Prune(seat.step);
    KeepAfter(seat.step);
    RankReady& ready = *Say().mutable_rank_ready();
    *ready.mutable_ref() = seat.start.ref();
    ready.set_first_step(seat.attempt->begins_after + 1);
  }
  return true;
}

void SimulatedWorker::Step(absl::Time now) {
  Seat& seat = *seat_;
  if (seat.stops) {
    return End({.error = "a rank was asked to stop", .stopped = true});
  }
  if (seat.step >= seat.attempt->job.training().steps()) {
    return End({.ok = true});
  }
  SimulatedAttempt::Sum& sum = seat.attempt->sums[seat.step + 1];
  if (sum.arrived.insert(rank()).second) {
    sum.stop |= seat.stop;
    sum.save |= seat.save;
    seat.arrived = now;
  } else if (sum.arrived.size() == static_cast<size_t>(seat.attempt->ranks)) {
    FinishStep(sum);
  } else {
    AwaitPeers(sum, now);
  }
}

void SimulatedWorker::FinishStep(const SimulatedAttempt::Sum& sum) {
  Seat& seat = *seat_;
  seat.attempt->finished[rank()] = ++seat.step;
  StepReport& report = *Say().mutable_step();
  *report.mutable_ref() = seat.start.ref();
  report.mutable_record()->set_step(seat.step);
  report.mutable_record()->set_step_seconds(0.1);
  if (seat.flipped) report.mutable_record()->set_loss(1 + rank());
  seat.made_by = seat.start.ref().attempt();
  seat.stops = sum.stop;
  if (!seat.stops) KeepAfter(seat.step);
  const bool asked = sum.stop && sum.save && seat.attempt->Saves();
  if (asked || seat.attempt->SavesAfter(seat.step)) {
    seat.due = seat.step;
  }
  if (Draw(300) == 0) Fail("bad luck");
}

// A collective without one of its ranks fails, at once or at its deadline.
void SimulatedWorker::AwaitPeers(const SimulatedAttempt::Sum& sum,
                                 absl::Time now) {
  for (int peer = 0; peer < seat_->attempt->ranks; ++peer) {
    if (sum.arrived.count(peer) > 0) continue;
    if (seat_->attempt->gone.count(peer) == 0 && !OutOfPatience(now)) {
      continue;
    }
    return End({.error = absl::StrCat("no word from rank ", peer),
                .missing_rank = peer});
  }
}

bool SimulatedWorker::OutOfPatience(absl::Time now) const {
  return now - seat_->arrived >
         absl::Seconds(seat_->start.collective_seconds_max());
}

void SimulatedWorker::Fail(const std::string& error) {
  seat_->attempt->harmed = true;
  End({.error = error});
}

void SimulatedWorker::End(const Ending& ending) {
  seat_->attempt->gone.insert(rank());
  if (ending.ok) seat_->attempt->ended_ok.insert(rank());
  RankEnded& ended = *Say().mutable_ended();
  *ended.mutable_ref() = seat_->start.ref();
  ended.set_ok(ending.ok);
  ended.set_error(ending.error);
  ended.set_step(seat_->step);
  ended.set_stopped(ending.stopped);
  // Of the ranks that fail by themselves, some name their machine.
  const bool by_itself =
      !ending.ok && !ending.stopped && ending.missing_rank < 0;
  ended.set_local_cause(ending.broken ||
                        (by_itself && seat_->start.ref().rank() % 2 == 0));
  if (ending.missing_rank >= 0) ended.set_missing_rank(ending.missing_rank);
  SayKept(ended);
  seat_.reset();
  if (leaving_ && WhatIsSaved() == nullptr) SayGoodbye();
}

}  // namespace troupe
