#include "worker/service/job_reader.h"

#include <string>
#include <utility>

#include "storage/disk/roots.h"
#include "worker/actor/thread_name.h"
#include "worker/engine/text_generation.h"

namespace troupe {

JobReader::JobReader(const ReadCheckpointJob& request, SendToScheduler send)
    : request_(request), send_(std::move(send)) {
  thread_ = std::thread([this] { Run(); });
}

JobReader::~JobReader() { thread_.join(); }

void JobReader::Run() const {
  NameThisThread("read job");
  const absl::Status path = CheckJobPath("checkpoint", request_.checkpoint());
  const absl::StatusOr<CheckpointOrigin> origin =
      path.ok() ? OriginOf(request_.checkpoint()) : path;
  WorkerMessage message;
  CheckpointJob& answer = *message.mutable_checkpoint_job();
  answer.set_request(request_.request());
  if (origin.ok()) {
    *answer.mutable_job() = origin->job;
    answer.set_made(origin->made);
  } else {
    answer.set_error(std::string(origin.status().message()));
  }
  // Without a scheduler there is nobody to tell.
  send_(std::move(message)).IgnoreError();
}

}  // namespace troupe
