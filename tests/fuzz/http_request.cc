// Any bytes as the head of an HTTP request, to the real status server: as they
// are, and once more with what opens the door, so that what is behind it is
// reached. Whatever comes, the answer is one, and the token is not in it.
#include <csignal>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "scheduler/status/metrics.h"
#include "scheduler/status/status_server.h"
#include "tests/scheduler/status/made_up_cluster.h"

namespace troupe {
namespace {

constexpr char kToken[] = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";

class Served {
 public:
  Served() { CHECK_OK(server_.Start("127.0.0.1:0")); }

  void Ask(const std::string& head) {
    const std::string answer = server_.AnswerTo(head, "192.0.2.1:77");
    CHECK(answer.empty() || absl::StartsWith(answer, "HTTP/1.1 ")) << answer;
    // A path that has it is what was asked for.
    CHECK(absl::StrContains(head, kToken) || !absl::StrContains(answer, kToken))
        << answer;
  }

 private:
  Metrics metrics_;
  MadeUpCluster made_up_{&metrics_};
  StatusServer server_{made_up_.host,
                       metrics_,
                       {.health = [] { return absl::OkStatus(); },
                        .token = kToken,
                        .rate = {.per_second = 1e9, .burst = 1 << 20}}};
};

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static troupe::Served* const served = [] {
    signal(SIGPIPE, SIG_IGN);
    return new troupe::Served;
  }();
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const size_t line = bytes.find("\r\n");
  served->Ask(absl::StrCat(bytes, "\r\n\r\n"));
  if (line != std::string::npos) {
    served->Ask(absl::StrCat(bytes.substr(0, line),
                             "\r\nHost: localhost\r\nAuthorization: Bearer ",
                             troupe::kToken, bytes.substr(line), "\r\n\r\n"));
  }
  return 0;
}
