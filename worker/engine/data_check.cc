#include "worker/engine/data_check.h"

#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "worker/actor/thread_name.h"

namespace troupe {

DataCheck::DataCheck(const TokenFile& file) : file_(file) {
  thread_ = std::thread([this] {
    NameThisThread("data check");
    setpriority(PRIO_PROCESS, 0, 19);  // on Linux: of this thread
    status_ =
        Annotate(file_.CheckSum([this] { return !give_up_; }), "data.tokens");
    done_.Notify();
  });
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
        "data.tokens: ", file_.path(),
        ": the job ends before its checksum is known: look with `troupe data "
        "inspect --verify`"));
  }
  return status();
}

}  // namespace troupe
