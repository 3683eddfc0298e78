#include "worker/metrics/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "proto/base/crc32c.h"
#include "proto/base/process_state.h"
#include "proto/base/status.h"
#include "proto/tensorboard.pb.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

constexpr absl::string_view kNameBegin = "events.out.tfevents.";

std::string Framed(const tensorboard::Event& event) {
  return FramedRecord(event.SerializeAsString());
}

// The second that is in the name of the newest event file; 0: there is none.
absl::StatusOr<int64_t> NewestSecond(const std::string& folder) {
  std::vector<std::string> names;
  if (ListPath(folder, names) != 0) {
    return ErrnoStatus(errno, absl::StrCat(folder, ": list"));
  }
  int64_t newest = 0;
  for (absl::string_view name : names) {
    int64_t second = 0;
    if (absl::ConsumePrefix(&name, kNameBegin) &&
        absl::SimpleAtoi(name.substr(0, name.find('.')), &second)) {
      newest = std::max(newest, second);
    }
  }
  return newest;
}

}  // namespace

uint32_t MaskedCrc32c(absl::string_view data) {
  const uint32_t crc = Crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::string FramedRecord(absl::string_view data) {
  char length[sizeof(uint64_t)];
  char crc[sizeof(uint32_t)];
  StoreLittleEndian(static_cast<uint64_t>(data.size()), length);
  const absl::string_view length_bytes(length, sizeof(length));
  const absl::string_view crc_bytes(crc, sizeof(crc));
  StoreLittleEndian(MaskedCrc32c(length_bytes), crc);
  std::string record = absl::StrCat(length_bytes, crc_bytes, data);
  StoreLittleEndian(MaskedCrc32c(data), crc);
  absl::StrAppend(&record, crc_bytes);
  return record;
}

EventFile::EventFile(const std::string& folder, int64_t first_step,
                     absl::Time now)
    : folder_(WithoutSlash(folder)),
      first_step_(first_step),
      now_(now),
      path_(folder_) {}

absl::StatusOr<std::vector<std::string>> EventFile::Start() {
  RETURN_IF_ERROR(MakeDirectories(folder_));
  if (path_ == folder_) {
    ASSIGN_OR_RETURN(const int64_t newest, NewestSecond(folder_));
    const int64_t second = std::max(absl::ToUnixSeconds(now_), newest + 1);
    path_ = absl::StrFormat("%s/%s%010d.%s.%d", folder_, kNameBegin, second,
                            HostName(), getpid());
  }
  tensorboard::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(now_ - absl::UnixEpoch()));
  event.set_file_version("brain.Event:2");
  std::string beginning = Framed(event);
  event.set_step(first_step_);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  beginning += Framed(event);
  ASSIGN_OR_RETURN(file_, AppendedFile::Open(path_, 0));
  RETURN_IF_ERROR(file_->Append(beginning));
  RETURN_IF_ERROR(SyncName(path_));
  return std::vector<std::string>();
}

absl::Status EventFile::Append(const MetricsRow& row) {
  tensorboard::Event event;
  event.set_wall_time(static_cast<double>(row.unix_ms) * 1e-3);
  event.set_step(row.record.step());
  for (const MetricsColumn& column : MetricsColumns()) {
    const absl::optional<double> value = column.value(row);
    if (!column.is_curve || !value.has_value()) continue;
    tensorboard::Summary::Value& scalar = *event.mutable_summary()->add_value();
    scalar.set_tag(std::string(column.name));
    scalar.set_simple_value(static_cast<float>(*value));
  }
  return file_->Append(Framed(event));
}

}  // namespace troupe
