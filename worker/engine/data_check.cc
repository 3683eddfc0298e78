#include "worker/engine/data_check.h"

#include <sys/resource.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/plan/data_files.h"
#include "worker/actor/thread_name.h"

namespace troupe {

std::vector<CheckedFile> CheckedFilesOf(const DataSpec& data,
                                        const SampleReader& reader) {
  const std::vector<DataFileField> fields = DataFiles(data);
  const std::vector<const TokenFile*> files = reader.files();
  CHECK_EQ(fields.size(), files.size());
  std::vector<CheckedFile> checked;
  for (size_t i = 0; i < files.size(); ++i) {
    checked.push_back({.field = fields[i].field, .file = files[i]});
  }
  return checked;
}

DataCheck::DataCheck(std::vector<CheckedFile> files)
    : files_(std::move(files)) {
  thread_ = std::thread([this] {
    NameThisThread("data check");
    setpriority(PRIO_PROCESS, 0, 19);  // on Linux: of this thread
    status_ = CheckAll();
    done_.Notify();
  });
}

absl::Status DataCheck::CheckAll() const {
  for (const CheckedFile& checked : files_) {
    RETURN_IF_ERROR(Annotate(
        checked.file->CheckSum([this] { return !give_up_; }), checked.field));
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
        files_.front().field, ": ", files_.front().file->path(),
        files_.size() > 1 ? " and others" : "",
        ": the job ends before its checksum is known: look with `troupe data "
        "inspect --verify`"));
  }
  return status();
}

}  // namespace troupe
