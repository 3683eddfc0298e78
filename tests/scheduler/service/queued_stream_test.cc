#include "scheduler/service/queued_stream.h"

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

// What a worker begins with may take long to make. A thread that has another
// message for it meanwhile holds the host's lock, and does not wait for that.
TEST(QueuedStream, NobodyWaitsForAMessageThatIsBeingMade) {
  ServedCluster served;
  absl::Notification begun, open;
  served.compiler.before_plan_of_rank = [&] {
    begun.Notify();
    open.WaitForNotification();
  };
  const auto worker = served.Join("w0");
  const int64_t job = served.Submit(SpecOf(1));
  begun.WaitForNotification();
  const grpc::Status cancelled = served.Cancel(job);  // within a minute
  open.Notify();
  EXPECT_TRUE(cancelled.ok()) << cancelled.error_message();
  EXPECT_TRUE(worker->Read()->has_start());
  EXPECT_TRUE(worker->Read()->has_stop()) << "in their order";
}

}  // namespace
}  // namespace troupe
