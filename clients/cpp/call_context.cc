#include "clients/cpp/call_context.h"

#include "absl/time/clock.h"
#include "proto/build_version.h"

namespace troupe {

void PrepareCall(grpc::ClientContext& context, absl::Duration deadline) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  context.AddMetadata(kBuildVersionKey, ThisBuild().SerializeAsString());
}

}  // namespace troupe
