#include "worker/service/file_checker.h"

#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/actor/thread_name.h"
#include "worker/rank/check_job_files.h"
#include "worker/service/job_paths.h"

namespace troupe {
namespace {

constexpr size_t kWaitingMax = 16;

JobFilesChecked Answer(const CheckJobFiles& request) {
  absl::Status status = CheckJobPaths(request.job());
  if (status.ok()) status = CheckFilesOf(request.job());
  JobFilesChecked answer;
  answer.set_request(request.request());
  answer.set_error(std::string(status.message()));
  return answer;
}

}  // namespace

struct FileChecker::State {
  absl::Mutex mutex;
  std::deque<CheckJobFiles> waiting ABSL_GUARDED_BY(mutex);
  SendToScheduler send ABSL_GUARDED_BY(mutex);  // null: there is no scheduler
  bool runs ABSL_GUARDED_BY(mutex) = false;     // there is a thread
};

FileChecker::FileChecker() : state_(std::make_shared<State>()) {}

FileChecker::~FileChecker() { Detach(); }

void FileChecker::Check(const CheckJobFiles& request,
                        const SendToScheduler& send) {
  absl::MutexLock lock(&state_->mutex);
  if (state_->waiting.size() >= kWaitingMax) return;
  state_->send = send;
  state_->waiting.push_back(request);
  if (state_->runs) return;
  state_->runs = true;
  std::thread([state = state_] { Run(state); }).detach();
}

void FileChecker::Detach() {
  absl::MutexLock lock(&state_->mutex);
  state_->send = nullptr;
  state_->waiting.clear();
}

void FileChecker::Run(const std::shared_ptr<State>& state) {
  NameThisThread("check files");
  while (true) {
    CheckJobFiles request;
    {
      absl::MutexLock lock(&state->mutex);
      if (state->waiting.empty()) {
        state->runs = false;
        return;
      }
      request = std::move(state->waiting.front());
      state->waiting.pop_front();
    }
    WorkerMessage message;
    *message.mutable_files_checked() = Answer(request);
    absl::MutexLock lock(&state->mutex);
    // A session that has ended asked for it, and nobody waits any more.
    if (state->send != nullptr) state->send(std::move(message)).IgnoreError();
  }
}

}  // namespace troupe
