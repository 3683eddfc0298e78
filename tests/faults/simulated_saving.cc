#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/faults/simulated_worker.h"

namespace troupe {
namespace {

std::string CopyWords(const std::string& token, int rank) {
  return absl::StrCat(token, ", rank ", rank);
}

}  // namespace

// The part of SimulatedWorker that saves what its rank has come to, and what it
// keeps after its end.

int SimulatedWorker::PiecesToWrite() {
  return Draw(20) == 0 ? 600 : 1 + Draw(12);
}

bool SimulatedWorker::WriteShard(absl::Time now) {
  Seat& seat = *seat_;
  if (!seat.write.has_value() && seat.due.has_value() && now >= seat.retry_at) {
    seat.write = Write{.step = *seat.due,
                       .number = seat.attempt->writes[rank()] + 1,
                       .bytes_total = PiecesToWrite() * kBytesAPiece};
    seat.due.reset();
  }
  // Between two writes of the last checkpoint.
  if (!seat.write.has_value()) return seat.due.has_value();
  Write& write = *seat.write;
  const bool waits = seat.due.has_value() || seat.stops ||
                     seat.step == seat.attempt->job.training().steps() ||
                     !seat.attempt->job.checkpoint().background();
  const bool full = now < disk_full_until_;
  if (!write.told && full) {
    SayUnwritten();
  } else if (write.bytes < write.bytes_total) {
    write.bytes += kBytesAPiece;
    if (Draw(1000) == 0) {
      Fail("the GPU is dead");
      return true;
    }
  } else if (!write.told) {
    write.told = true;
    seat.attempt->shards[write.number].insert(rank());
    CheckpointShard& shard = *Say().mutable_shard();
    *shard.mutable_ref() = seat.start.ref();
    shard.set_step(write.step);
    shard.set_write(write.number);
    shard.mutable_shard()->set_bytes(write.bytes_total);
    shard.mutable_shard()->set_file(
        ShardWords(KeyOf(seat.start.ref()), write.step, rank()));
  } else if (write.may_commit && !write.committed && !write.unwritten && full) {
    SayUnwritten();
  } else if (write.may_commit && !write.committed && !write.unwritten) {
    write.committed = true;
    Commit();
  }
  return waits;
}

void SimulatedWorker::Commit() {
  Seat& seat = *seat_;
  const Write& write = *seat.write;
  const AttemptKey key = KeyOf(seat.start.ref());
  for (int rank = 0; rank < seat.attempt->ranks; ++rank) {
    EXPECT_EQ(seat.attempt->shards[write.number].count(rank), 1u)
        << "rank 0 commits what rank " << rank << " has not written";
    EXPECT_EQ(seat.attempt->writes[rank], write.number - 1)
        << "rank " << rank << " has gone on, and would write into what is "
        << "committed here";
  }
  seat.attempt->written_later += seat.attempt->writes_given_up > 0;
  ++seat.attempt->commits[write.step];
  CheckpointCommitted& committed = *Say().mutable_committed();
  *committed.mutable_ref() = seat.start.ref();
  committed.mutable_checkpoint()->set_step(write.step);
  const std::string path = CheckpointPath(*seat.attempt, key, write.step);
  committed.mutable_checkpoint()->set_path(path);
  disk_.Add(seat.start.ref().job(), write.step, path);
}

void SimulatedWorker::SayUnwritten() {
  Seat& seat = *seat_;
  seat.write->told = seat.write->unwritten = true;
  // One that is to move goes on from its copies, if it may once more.
  if (seat.save && seat.attempt->job.has_recovery()) {
    seat.attempt->harmed = true;
  }
  CheckpointUnwritten& unwritten = *Say().mutable_unwritten();
  *unwritten.mutable_ref() = seat.start.ref();
  unwritten.set_step(seat.write->step);
  unwritten.set_write(seat.write->number);
  unwritten.set_error("ENOSPC");
}

void SimulatedWorker::ObeyCommit(const CheckpointCommit& commit) {
  std::optional<Write>& write = seat_->write;
  EXPECT_TRUE(write.has_value() && write->told &&
              write->step == commit.step() && write->number == commit.write())
      << name_ << " is to commit what it has not written";
  if (write.has_value()) write->may_commit = true;
}

void SimulatedWorker::ObeyDone(const CheckpointDone& done, absl::Time now) {
  if (!done.given_up().empty()) return GiveUpWrite(done, now);
  std::optional<Write>& write = seat_->write;
  EXPECT_GT(seat_->attempt->commits[done.step()], 0)
      << "told of a checkpoint that nobody committed: "
      << done.ShortDebugString();
  if (!write.has_value() || write->step != done.step()) return;
  if (!done.unstored()) Prune(write->step);
  write.reset();
  ++seat_->attempt->writes[rank()];
}

// Those of the last step, and of a stop, are written until they are there.
void SimulatedWorker::GiveUpWrite(const CheckpointDone& done, absl::Time now) {
  Seat& seat = *seat_;
  if (!seat.write.has_value() || seat.write->number != done.write()) return;
  EXPECT_TRUE(seat.write->told)
      << "a checkpoint is given up, and rank " << rank() << " still writes it";
  EXPECT_FALSE(seat.write->committed) << "what is committed is given up";
  EXPECT_EQ(seat.write->step, done.step());
  ++seat.attempt->writes[rank()];
  ++seat.attempt->writes_given_up;
  // An earlier one need not be there if this one is.
  const bool last = done.step() == seat.attempt->job.training().steps() ||
                    (seat.stops && done.step() == seat.step);
  seat.write.reset();
  if (!last) return;
  seat.due = done.step();
  seat.retry_at = now + absl::Seconds(1);
}

// The checkpoints that the job has no use for any more: another one is stored,
// or it goes on from it.
void SimulatedWorker::Prune(int64_t step) {
  if (rank() != 0) return;
  disk_.Prune(seat_->start.ref().job(), step,
              seat_->attempt->job.checkpoint().keep());
}

// One of its own, whichever attempt made it.
bool SimulatedWorker::ResumesItsOwn() const {
  const Assignment& start = seat_->start;
  return start.ran_before() && !start.has_recovery() &&
         !start.resume().empty() &&
         start.resume() != seat_->attempt->job.checkpoint().resume();
}

void SimulatedWorker::CheckResume() const {
  const Assignment& start = seat_->start;
  const int64_t job = start.ref().job();
  if (!ResumesItsOwn()) return;
  EXPECT_TRUE(disk_.Has(job, seat_->attempt->begins_after, start.resume()))
      << start.ref().ShortDebugString() << " is to go on from "
      << start.resume() << ", which is not there";
}

// What the one before has written is given up, unless this one commits it.
void SimulatedWorker::BeginSave(const SaveCopies& request) {
  if (save_.has_value() && save_->request.token() == request.token() &&
      request.has_commits()) {
    save_->stays = true;
  }
  EndSave();
  save_ = Save{.request = request, .pieces_left = PiecesToWrite()};
}

void SimulatedWorker::EndSave() {
  if (!save_.has_value()) return;
  if (!save_->said) AnswerSave("cut short");
  if (!save_->stays) disk_.Remove(save_->request.token());
  save_.reset();
}

// Nobody hears it, and another worker may be committing what was said.
void SimulatedWorker::KeepWhatIsSaid() {
  if (!save_.has_value()) return;
  save_->stays = save_->said && !save_->request.has_commits();
  EndSave();
}

// Now and then its disk is full.
bool SimulatedWorker::SaveKept() {
  if (!save_.has_value() || save_->said) return false;
  if (--save_->pieces_left > 0) return true;
  const RankRef& ref = save_->request.ref();
  const bool here = kept_.has_value() && ref.attempt() == kept_->ref.attempt();
  if (!here) {
    AnswerSave("the rank that kept them is not here any more");
  } else if (Draw(8) > 0) {
    AnswerSave("");
  } else if (save_->request.state().step() % 4 == 3) {
    AnswerSave(kDeviceIsBroken);
  } else {
    AnswerSave("the disk is full", /*of_disk=*/true);
  }
  return true;
}

void SimulatedWorker::AnswerSave(const std::string& error, bool of_disk) {
  save_->said = true;
  const SaveCopies& request = save_->request;
  CopiesSaved& saved = *outbox.emplace_back().mutable_copies_saved();
  *saved.mutable_ref() = request.ref();
  saved.set_token(request.token());
  saved.set_error(error);
  saved.set_fails_again(!error.empty() && !of_disk);
  if (error.empty()) FillSaved(saved);
  if (!saved.error().empty()) disk_.Remove(request.token());
}

void SimulatedWorker::FillSaved(CopiesSaved& saved) {
  const SaveCopies& request = save_->request;
  const std::string& token = request.token();
  const int64_t step = request.state().step();
  for (const CopyToSave& copy : request.copies()) {
    const SimulatedCopy* kept = kept_->copies.Find(step, copy.peer());
    EXPECT_NE(kept, nullptr) << name_ << " is to save the copy of step " << step
                             << ", and keeps " << KeptText();
    if (kept != nullptr) CheckSound(*kept);
    disk_.Write(token, copy.plan().rank());
    saved.add_shard_records()->set_file(CopyWords(token, copy.plan().rank()));
  }
  if (!request.has_commits()) return;
  SimulatedAttempt& attempt = attempts_.at(KeyOf(kept_->ref));
  std::set<std::string> said;
  for (const ShardRecord& shard : request.shard_records()) {
    said.insert(shard.file());
  }
  std::set<std::string> all;
  for (int rank = 0; rank < attempt.ranks; ++rank) {
    all.insert(CopyWords(token, rank));
  }
  EXPECT_EQ(said, all) << "what is to be committed as " << token
                       << " is not what was written as that";
  // A worker that wrote some of it may have given it up since.
  if (disk_.Shards(token) < attempt.ranks) {
    return saved.set_error("a shard is missing");
  }
  const std::string path = absl::StrCat("/copies/", token, "/step-", step);
  EXPECT_TRUE(attempt.from_copies.insert(path).second)
      << path << " is committed twice";
  disk_.Remove(token);
  disk_.Add(request.ref().job(), step, path);
  saved.mutable_checkpoint()->set_step(step);
  saved.mutable_checkpoint()->set_path(path);
}

}  // namespace troupe
