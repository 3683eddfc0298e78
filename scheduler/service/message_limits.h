// How large a message may be, by its kind. gRPC refuses what is larger than any
// may be before it is read (GrpcServer::kReceivedBytesMax); these are much less
// for most, so that nobody has the scheduler keep, or plan, what no job needs.
#ifndef TROUPE_SCHEDULER_SERVICE_MESSAGE_LIMITS_H_
#define TROUPE_SCHEDULER_SERVICE_MESSAGE_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "proto/worker.pb.h"

namespace troupe {

// Of a job with the names of its fields. It says what is trained, with what and
// how; those that people write have 2 KiB. The scheduler keeps a thousand in
// its queue and as many that have ended.
inline constexpr size_t kJobBytesMax = size_t{64} << 10;

// Of a client. ResourceExhausted, with its size and what it may have: 4 MiB for
// a text to go on from, kJobBytesMax for a job, 64 KiB for every other.
absl::Status CheckRequestSize(const google::protobuf::Message& request);

// Of a worker: 2 MiB to register and for a key of the rendezvous, 64 MiB for a
// checkpoint's shard or job, 16 MiB for a step and its trace, 1 MiB for every
// other.
absl::Status CheckWorkerMessageSize(const WorkerMessage& message);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_MESSAGE_LIMITS_H_
