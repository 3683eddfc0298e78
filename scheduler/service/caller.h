// The client that makes a call, for shares, rates and records, and its build.
#ifndef TROUPE_SCHEDULER_SERVICE_CALLER_H_
#define TROUPE_SCHEDULER_SERVICE_CALLER_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"

namespace troupe {

// The name in the client's certificate, "ada", wherever it calls from; where
// there is none, the address without its port, "ipv4:10.0.0.1". On one line, of
// a bounded length.
std::string NameOfCaller(const grpc::CallbackServerContext& context);

// FailedPrecondition: the client's build has no version of the protocol in
// common with this one. InvalidArgument: it says garbage. A client that says
// nothing is one of before protocol 16, or no program of ours, and is served:
// what it asks for is looked at field by field.
absl::Status CheckCallersBuild(const grpc::CallbackServerContext& context);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_CALLER_H_
