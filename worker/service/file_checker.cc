#include "worker/service/file_checker.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "worker/actor/thread_name.h"
#include "worker/rank/check_job_files.h"
#include "worker/service/job_paths.h"

namespace troupe {
namespace {

JobFilesChecked Answer(const CheckJobFiles& request) {
  absl::Status status = CheckJobPaths(request.job());
  if (status.ok()) status = CheckFilesOf(request.job());
  JobFilesChecked answer;
  answer.set_request(request.request());
  answer.set_error(std::string(status.message()));
  return answer;
}

}  // namespace

FileChecker::~FileChecker() {
  if (thread_.joinable()) thread_.join();
}

void FileChecker::Check(const CheckJobFiles& request,
                        const SendToScheduler& send) {
  if (busy_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this, request, send] {
    NameThisThread("check files");
    WorkerMessage message;
    *message.mutable_files_checked() = Answer(request);
    // Without a scheduler there is nobody to tell.
    send(std::move(message)).IgnoreError();
    busy_ = false;
  });
}

}  // namespace troupe
