// What the messages of a version look like, a line for each part of them that a
// peer or a store depends on:
//
//   protocol 22
//   troupe.Register.held = 5 optional message troupe.HeldRank
//   troupe.JobState.RUNNING = 4
//   troupe.Workers.Session(stream troupe.WorkerMessage) stream troupe....
//
// Of all files that the services import: what workers, clients and schedulers
// say to each other, and what stores keep of it.
#ifndef TROUPE_TESTS_COMPATIBILITY_MESSAGE_RECORD_H_
#define TROUPE_TESTS_COMPATIBILITY_MESSAGE_RECORD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace troupe {

struct MessageRecord {
  int32_t protocol = 0;
  std::map<std::string, std::string> lines;  // what is named, and how it is
};

// Of the files and of all that they import.
MessageRecord RecordOf(
    const std::vector<const google::protobuf::FileDescriptor*>& files,
    int32_t protocol);
// Of this build.
MessageRecord PresentRecord();

std::string RecordText(const MessageRecord& record);
// InvalidArgument names the line.
absl::StatusOr<MessageRecord> ParseRecord(absl::string_view text);

// OK: a build of `present` may talk to one of `recorded` under the same number,
// and read what it stored; only additions have come, or the number is higher.
// FailedPrecondition names what was removed or changed.
absl::Status CheckGrownFrom(const MessageRecord& recorded,
                            const MessageRecord& present);
// The names of what `present` has and `recorded` has not.
std::vector<std::string> Added(const MessageRecord& recorded,
                               const MessageRecord& present);

}  // namespace troupe

#endif  // TROUPE_TESTS_COMPATIBILITY_MESSAGE_RECORD_H_
