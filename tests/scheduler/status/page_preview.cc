// Serves the status page with a made-up cluster, for those who work on the
// page:
//   bazel run //tests/scheduler/status:page_preview -- 127.0.0.1:8080 [RANKS]
#include <cstdlib>
#include <iostream>

#include "absl/time/clock.h"
#include "proto/trust/secret.h"
#include "scheduler/status/status_server.h"
#include "tests/scheduler/status/made_up_cluster.h"

int main(int argc, char** argv) {
  troupe::Metrics metrics;
  troupe::MadeUpCluster made_up(&metrics, argc > 2 ? std::atoi(argv[2]) : 4);
  const std::string token = troupe::NewSecret();
  troupe::StatusServer server(
      made_up.host, metrics,
      {.health = [] { return absl::OkStatus(); }, .token = token});
  CHECK_OK(server.Start(argc > 1 ? argv[1] : "127.0.0.1:0"));
  std::cout << server.url() << "/?token=" << token << std::endl;
  for (int step = 0; step < 79; ++step) {
    absl::SleepFor(absl::Seconds(1));
    made_up.Step();
  }
  absl::SleepFor(absl::InfiniteDuration());
}
