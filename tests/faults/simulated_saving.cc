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

bool SimulatedWorker::WriteShard() {
  Seat& seat = *seat_;
  if (!seat.write.has_value() && seat.due.has_value()) {
    seat.write =
        Write{.step = *seat.due, .bytes_total = PiecesToWrite() * kBytesAPiece};
    seat.due.reset();
  }
  if (!seat.write.has_value()) return false;
  Write& write = *seat.write;
  const bool waits = seat.due.has_value() || seat.stops ||
                     seat.step == seat.attempt->job.training().steps() ||
                     !seat.attempt->job.checkpoint().background();
  if (write.bytes < write.bytes_total) {
    write.bytes += kBytesAPiece;
    if (Draw(1000) == 0) {
      Fail("the disk is full");
      return true;
    }
  } else if (!write.told) {
    write.told = true;
    seat.attempt->shards[write.step].insert(rank());
    CheckpointShard& shard = *Say().mutable_shard();
    *shard.mutable_ref() = seat.start.ref();
    shard.set_step(write.step);
    shard.mutable_shard()->set_bytes(write.bytes_total);
    shard.mutable_shard()->set_file(
        ShardWords(KeyOf(seat.start.ref()), write.step, rank()));
  } else if (write.may_commit && !write.committed) {
    write.committed = true;
    ++seat.attempt->commits[write.step];
    CheckpointCommitted& committed = *Say().mutable_committed();
    *committed.mutable_ref() = seat.start.ref();
    committed.mutable_checkpoint()->set_step(write.step);
    const std::string path =
        CheckpointPath(*seat.attempt, KeyOf(seat.start.ref()), write.step);
    committed.mutable_checkpoint()->set_path(path);
    disk_.Add(seat.start.ref().job(), write.step, path);
  }
  return waits;
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
  AnswerSave(!here          ? "the rank that kept them is not here any more"
             : Draw(8) == 0 ? "the disk is full"
                            : "");
  return true;
}

void SimulatedWorker::AnswerSave(const std::string& error) {
  save_->said = true;
  const SaveCopies& request = save_->request;
  CopiesSaved& saved = *outbox.emplace_back().mutable_copies_saved();
  *saved.mutable_ref() = request.ref();
  saved.set_token(request.token());
  saved.set_error(error);
  if (error.empty()) FillSaved(saved);
  if (!saved.error().empty()) disk_.Remove(request.token());
}

void SimulatedWorker::FillSaved(CopiesSaved& saved) {
  const SaveCopies& request = save_->request;
  const std::string& token = request.token();
  const int64_t step = request.state().step();
  for (const CopyToSave& copy : request.copies()) {
    EXPECT_NE(kept_->copies.Find(step, copy.peer()), nullptr)
        << name_ << " is to save the copy of step " << step << ", and keeps "
        << KeptText();
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
  // Whoever wrote some of it may have given it up since.
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
