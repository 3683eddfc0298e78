#include "worker/engine/data_check.h"

#include <sys/resource.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "worker/actor/thread_name.h"

namespace troupe {

DataCheck::DataCheck(std::vector<const TokenFile*> files)
    : files_(std::move(files)) {
  thread_ = std::thread([this] {
    NameThisThread("data check");
    setpriority(PRIO_PROCESS, 0, 19);  // on Linux: of this thread
    status_ = Annotate(CheckAll(), "data.tokens");
    done_.Notify();
  });
}

absl::Status DataCheck::CheckAll() const {
  for (const TokenFile* const file : files_) {
    RETURN_IF_ERROR(file->CheckSum([this] { return !give_up_; }));
  }
  return absl::OkStatus();
}

DataCheck::~DataCheck() {
  give_up_ = true;
  thread_.join();
}

absl::Status DataCheck::status() const {
  return done_.HasBeenNotified() ? status_ : absl::OkStatus();
}

bool DataCheck::holds() const {
  return done_.HasBeenNotified() && status_.ok();
}

absl::Status DataCheck::AwaitEnd(absl::Duration patience) const {
  if (!done_.WaitForNotificationWithTimeout(patience)) {
    LogWarning(absl::StrCat(
        "data.tokens: ", files_.front()->path(),
        files_.size() > 1 ? " and others" : "",
        ": the job ends before its checksum is known: look with `troupe data "
        "inspect --verify`"));
  }
  return status();
}

}  // namespace troupe
