// What every call of a client carries: its deadline, and which build asks.
#ifndef TROUPE_CLIENTS_CPP_CALL_CONTEXT_H_
#define TROUPE_CLIENTS_CPP_CALL_CONTEXT_H_

#include "absl/time/time.h"
#include "grpcpp/client_context.h"

namespace troupe {

// Before the call begins; `deadline` from now.
void PrepareCall(grpc::ClientContext& context, absl::Duration deadline);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_CALL_CONTEXT_H_
