#include "worker/collective/nccl/join.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

TEST(JoinNcclTest, NamesWhoDoesNotCome) {
  const absl::StatusOr<std::unique_ptr<CudaDevice>> device =
      CudaDevice::Create(0);
  if (!device.ok()) GTEST_SKIP() << "no CUDA device: " << device.status();
  InMemoryStore store;
  CommunicatorSeat seat = TestSeat(2, 0, &store);
  seat.device = device->get();
  seat.timeout = absl::Milliseconds(200);
  const absl::Status joined = JoinNccl(seat).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(joined)) << joined;
  EXPECT_NE(joined.message().find("group test-group: join"),
            absl::string_view::npos)
      << joined;
  EXPECT_NE(joined.message().find(absl::StrCat("rank ", GlobalRank(1))),
            absl::string_view::npos)
      << joined;
}

}  // namespace
}  // namespace troupe
