// How large a message may be, by its kind. gRPC refuses what is larger than any
// may be before it is read (GrpcServer::kReceivedBytesMax); these are much less
// for most, so that nobody has the scheduler keep, or plan, what no job needs.
#ifndef TROUPE_SCHEDULER_SERVICE_MESSAGE_LIMITS_H_
#define TROUPE_SCHEDULER_SERVICE_MESSAGE_LIMITS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "proto/worker.pb.h"

namespace troupe {

// Of a client. ResourceExhausted, with its size and what it may have: 1 MiB for
// a job, 4 MiB for a text to go on from, 64 KiB for every other.
absl::Status CheckRequestSize(const google::protobuf::Message& request);

// Of a worker: 2 MiB to register and for a key of the rendezvous, 64 MiB for a
// checkpoint's shard or job, 16 MiB for a step and its trace, 1 MiB for every
// other.
absl::Status CheckWorkerMessageSize(const WorkerMessage& message);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_MESSAGE_LIMITS_H_
