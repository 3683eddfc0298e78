// A worker as the cluster sees it, in a simulation: it carries out what it is
// told, a message or a piece of work at a time. It reads what its rank starts
// with, meets its peers through the scheduler's store, sums each step with
// them, writes its shards at once or in the background, commits as rank 0,
// saves and stops when it is asked to, prunes the checkpoints that it may, and
// writes texts. Where the job recovers it copies its rank's state now and then,
// keeps the copies after the rank's end, saves them, and goes on from them when
// it is told to. Now and then it fails or its disk is full or slow; it may
// hang, or be stubborn. When it is cut off from its scheduler it goes on, and
// what it has to say waits in the outbox of a real worker.
#ifndef TROUPE_TESTS_FAULTS_SIMULATED_WORKER_H_
#define TROUPE_TESTS_FAULTS_SIMULATED_WORKER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "tests/faults/simulated_attempt.h"
#include "tests/faults/simulated_copies.h"
#include "tests/faults/simulated_disk.h"
#include "worker/service/outbox.h"

namespace troupe {

// Why copies cannot be saved, whatever the disk.
inline constexpr char kDeviceIsBroken[] = "a device is broken";

class SimulatedWorker {
 public:
  // Borrows all.
  SimulatedWorker(std::string name, std::mt19937& random,
                  SimulatedAttempts& attempts, SimulatedDisk& disk)
      : name_(std::move(name)),
        random_(random),
        attempts_(attempts),
        disk_(disk) {}

  // Of all schedulers of a simulation: they have one store.
  static constexpr char kClusterId[] = "simulated";

  // One piece of its work.
  void Work(absl::Time now);

  // Something happens to the rank that it has, or will hear that it has.
  void Harm();
  // The rank that it has is lost, and so are the copies that it keeps.
  void Lose();
  // From now on it says nothing more; or it says that it is alive, but does
  // nothing that it is told.
  void Hang();
  void BeStubborn();
  // It was asked to end: its job is saved first where that can be, be it from
  // what this worker keeps, unless it is in a hurry; then it says goodbye.
  void Leave(bool in_a_hurry);
  // It takes no checkpoint until then.
  void FillDisk(absl::Time until) { disk_full_until_ = until; }
  // No rank starts there until then: its machine is bad.
  void Break(absl::Time until) { broken_until_ = until; }
  // A bit flips in the state of its rank, which computes wrongly from here on.
  // False: it has none that trains with others.
  bool FlipABit();
  // Its process is gone, and its rank with it.
  void Die();
  // Its connection is gone, and what was on its way.
  void CutOff();
  // What it registers with, and then it has a connection. Its address must not
  // change from here on.
  Register Registration() const;
  void Connect();

  const std::string& name() const { return name_; }
  // Does what it is told.
  bool healthy() const { return !hangs_ && !stubborn_ && !leaving_ && !left_; }
  bool hangs() const { return hangs_; }
  bool leaves() const { return leaving_; }
  bool left() const { return left_; }
  // It was told that its rank is of no use any more, or will be.
  bool is_forgotten() const;
  // It was told to give up what it keeps, and may not have done so yet.
  bool is_to_give_up_kept() const;
  // Of the rank that it runs; null: none.
  const RankRef* ref() const {
    return seat_.has_value() ? &seat_->start.ref() : nullptr;
  }
  // Of a rank that has ended; null: nothing.
  const SimulatedKept* kept() const {
    return kept_.has_value() ? &*kept_ : nullptr;
  }
  // Whether it writes what it keeps.
  bool saves() const { return save_.has_value() && !save_->said; }
  // That it writes; 0: none.
  int64_t text() const { return text_.has_value() ? text_->request : 0; }
  // What it is at, for people who look for a fault.
  std::string Doing() const;

  std::deque<SchedulerMessage> inbox;
  std::deque<WorkerMessage> outbox;

 private:
  struct Write {
    int64_t step = 0;
    int64_t number = 0;  // worker.proto, CheckpointShard
    int64_t bytes = 0;
    int64_t bytes_total = 0;
    bool told = false;        // the scheduler has been told of the shard,
    bool unwritten = false;   // or that there is none, or no checkpoint
    bool may_commit = false;  // rank 0: all shards are there
    bool committed = false;   // rank 0: the scheduler has been told so
  };
  struct Keep {
    int which = -1;  // of the two copies; -1: it has not begun
  };
  struct Seat {
    Assignment start;
    SimulatedAttempt* attempt = nullptr;
    int to_read = 0;  // bytes, before it can begin
    int read = 0;
    bool introduced = false;
    std::set<std::string> unmet;  // keys of peers not heard of yet
    bool ready = false;
    int64_t step = 0;  // the last finished
    absl::Time arrived;
    bool stop = false;  // was asked to
    bool save = false;
    absl::Time abort_at = absl::InfiniteFuture();
    bool stops = false;          // all ranks do, after this step
    bool flipped = false;        // it computes wrongly
    std::optional<int64_t> due;  // a checkpoint of this step
    std::optional<Write> write;
    absl::Time retry_at = absl::InfinitePast();
    // Where the job recovers.
    bool recovered = false;
    int32_t made_by = 0;  // the attempt that came to `step`; 0: where it began
    std::optional<Keep> keep;
    SimulatedCopies copies;
  };
  // Of what it keeps; as in worker/service/copies_saver.h.
  struct Save {
    SaveCopies request;
    int pieces_left = 0;
    bool said = false;
    bool stays = false;
  };
  struct Text {
    int64_t request = 0;
    int rank = 0;
    int ranks = 1;
    int pieces_left = 0;
    bool stopped = false;
  };
  // As in worker/service/daemon.h.
  struct Held {
    HeldRank rank;
    std::unique_ptr<Outbox> outbox;
  };
  struct Ending {
    bool ok = false;
    std::string error;
    int missing_rank = -1;
    bool stopped = false;
    bool broken = false;  // its machine is
  };

  static constexpr int kBytesAPiece = 10;

  int Draw(int below) { return static_cast<int>(random_() % below); }
  int rank() const { return seat_->start.ref().rank(); }
  void DoOnePiece(absl::Time now);
  void Beat(absl::Time now);
  void Obey(const SchedulerMessage& message, absl::Time now);
  void ObeyStop(const StopRank& stop, absl::Time now);
  void TakeSeat(const Assignment& start);
  void ReadJob(int64_t text);
  void WriteText();
  // Each returns whether that was this piece of work.
  bool BeginRank(absl::Time now);
  bool WriteShard(absl::Time now);
  bool Recover();
  bool SaveKept();  // of a rank that has ended
  bool KeepCopy(absl::Time now);
  void Step(absl::Time now);
  void FinishStep(const SimulatedAttempt::Sum& sum);
  void AwaitPeers(const SimulatedAttempt::Sum& sum, absl::Time now);
  bool OutOfPatience(absl::Time now) const;
  // As many as a disk takes at a time, or one that is slow for long.
  int PiecesToWrite();
  void Prune(int64_t step);
  // Its disk is full, and the checkpoint may be written again.
  void SayUnwritten();
  void Commit();
  void ObeyCommit(const CheckpointCommit& commit);
  void ObeyDone(const CheckpointDone& done, absl::Time now);
  void GiveUpWrite(const CheckpointDone& done, absl::Time now);
  bool ResumesItsOwn() const;
  void CheckResume() const;
  void BeginSave(const SaveCopies& request);
  void EndSave();
  void KeepWhatIsSaid();
  void AnswerSave(const std::string& error, bool of_disk = false);
  void FillSaved(CopiesSaved& saved);
  bool MakesCopies() const;
  void KeepAfter(int64_t step);
  // What is known to be wrong must not be gone on from.
  void CheckSound(const SimulatedCopy& copy) const;
  void TakeKept();
  void SayKept(RankEnded& ended);
  static void SayCopies(const SimulatedCopies& copies,
                        google::protobuf::RepeatedPtrField<KeptCopy>& kept);
  std::string KeptText() const;
  void CheckNothingKept(const std::string& given) const;
  void Fail(const std::string& error);  // by itself
  void End(const Ending& ending);
  // The rank for which it stays when it was asked to end; null: none.
  const RankRef* WhatIsSaved() const;
  void SayGoodbye();
  // Says what was put together in this piece of work.
  void SayAll();
  bool Holds(const RankRef& ref) const;
  WorkerMessage& Say() { return saying_.emplace_back(); }

  const std::string name_;
  std::mt19937& random_;
  SimulatedAttempts& attempts_;
  SimulatedDisk& disk_;
  bool hangs_ = false;
  bool stubborn_ = false;
  bool leaving_ = false;
  bool left_ = false;
  absl::Time disk_full_until_ = absl::InfinitePast();
  absl::Time broken_until_ = absl::InfinitePast();
  absl::Time beat_ = absl::InfinitePast();
  std::deque<WorkerMessage> saying_;
  bool connected_ = true;
  std::optional<Held> held_;
  std::optional<Seat> seat_;
  std::optional<SimulatedKept> kept_;
  std::optional<Save> save_;
  std::optional<Text> text_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SIMULATED_WORKER_H_
