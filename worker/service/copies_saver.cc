#include "worker/service/copies_saver.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "storage/checkpoint/commit.h"
#include "storage/disk/storage_error.h"
#include "worker/actor/thread_name.h"
#include "worker/engine/save_copies.h"
#include "worker/service/job_paths.h"

namespace troupe {

CopiesSaver::CopiesSaver(const SaveCopies& request, const KeptMemory& kept,
                         const RankResources& resources, SendToScheduler send)
    : request_(request),
      kept_(kept),
      resources_(resources),
      send_(std::move(send)),
      log_(resources.clock) {
  thread_ = std::thread([this] { Run(); });
}

CopiesSaver::~CopiesSaver() {
  log_.Abort(absl::CancelledError("the copies are not needed any more"));
  thread_.join();
  if (gives_up_) GiveUp();
}

void CopiesSaver::GiveUp() const {
  if (!request_.has_commits() && request_.copies().empty()) return;
  const JobSpec& job = request_.has_commits() ? request_.commits().job()
                                              : request_.copies(0).plan().job();
  const absl::Status abandoned =
      AbandonCheckpoint(CopiesAttempt(job, request_));
  if (!abandoned.ok()) LogWarning(abandoned.message());
}

void CopiesSaver::Run() {
  NameThisThread("save copies");
  WorkerMessage message;
  CopiesSaved& answer = *message.mutable_copies_saved();
  *answer.mutable_ref() = request_.ref();
  answer.set_token(request_.token());
  const absl::Status status = Save(answer);
  if (!status.ok()) {
    LogWarning(
        absl::StrCat("job ", request_.ref().job(),
                     ": copies of states are not saved: ", status.message()));
    answer.set_error(std::string(status.message()));
    answer.set_fails_again(!MayBeWrittenLater(status));
    GiveUp();
  }
  said_ = status.ok() && !request_.has_commits();
  // Without a scheduler there is nobody to tell.
  send_(std::move(message)).IgnoreError();
}

absl::Status CopiesSaver::Save(CopiesSaved& answer) {
  const int64_t begin_ns = resources_.clock.MonotonicNanos();
  for (const CopyToSave& copy : request_.copies()) {
    RETURN_IF_ERROR(CheckJobPaths(copy.plan().job()));
    ASSIGN_OR_RETURN(*answer.add_shard_records(),
                     WriteCopy(copy, CopiesAttempt(copy.plan().job(), request_),
                               kept_, resources_, log_));
  }
  if (!request_.has_commits()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckJobPaths(request_.commits().job()));
  ASSIGN_OR_RETURN(*answer.mutable_checkpoint(),
                   CommitCopies(request_, resources_.clock));
  answer.mutable_checkpoint()->set_seconds(
      (resources_.clock.MonotonicNanos() - begin_ns) * 1e-9);
  LogInfo(absl::StrCat("job ", request_.ref().job(), ": checkpoint ",
                       answer.checkpoint().path(), ", from copies"));
  return absl::OkStatus();
}

}  // namespace troupe
